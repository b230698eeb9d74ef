//! The three functions for x86-64, System V calling convention.

use std::arch::naked_asm;
use std::ffi::{c_char, c_int, c_void};

use super::{decide_open, decide_sym, no_loader};
use crate::intercept::libraries::{HANDLE_COUNT, HANDLES};
use crate::intercept::real::{DLCLOSE, DLOPEN, DLSYM};

/// The C library's function of that name: what comes after us in the order of libraries.
///
/// # Safety
/// `name` is one of the three names, as a C string.
#[unsafe(naked)]
pub(in crate::intercept) unsafe extern "C" fn find_next(name: *const c_char) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "mov rbx, rdi",
        "mov rdi, -1", // RTLD_NEXT
        "mov rsi, rbx",
        "lea rdx, [rip + 20f]",
        "call {dlvsym}@PLT",
        "test rax, rax",
        "jnz 9f",
        "mov rdi, -1",
        "mov rsi, rbx",
        "lea rdx, [rip + 21f]",
        "call {dlvsym}@PLT",
        "test rax, rax",
        "jnz 9f",
        "call {no_loader}",
        "9:",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        ".cfi_endproc",
        "20: .asciz \"GLIBC_2.34\"",
        "21: .asciz \"GLIBC_2.2.5\"",
        dlvsym = sym dlvsym,
        no_loader = sym no_loader,
    )
}

/// `dlopen` of the executable.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(in crate::intercept) unsafe extern "C" fn dlopen(
    path: *const c_char,
    flags: c_int,
) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "test rdi, rdi",
        "jz 5f",
        // rdx: what follows the last slash. rax: one past the 0 at the end.
        "mov rax, rdi",
        "mov rdx, rdi",
        "2:",
        "movzx ecx, byte ptr [rax]",
        "inc rax",
        "cmp cl, 47", // '/'
        "cmove rdx, rax",
        "test cl, cl",
        "jnz 2b",
        "sub rax, rdx",
        "cmp rax, 6", // five letters and the 0
        "jb 5f",
        "movzx ecx, byte ptr [rdx + 4]",
        "cmp dword ptr [rdx], 0x6362696c", // "libc"
        "jne 3f",
        "cmp cl, 117", // 'u'
        "jne 5f",
        "jmp 4f",
        "3:",
        "cmp dword ptr [rdx], 0x6e62696c", // "libn"
        "jne 5f",
        "cmp cl, 118", // 'v'
        "je 4f",
        "cmp cl, 99", // 'c'
        "jne 5f",
        "4:",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {decide}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rdx, rdx",
        "jz 5f",
        "ret",
        "5:",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 6f",
        "jmp rax",
        "6:",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "lea rdi, [rip + 20f]",
        "call {find}",
        "mov [rip + {real}], rax",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        "20: .asciz \"dlopen\"",
        decide = sym decide_open,
        find = sym find_next,
        real = sym DLOPEN,
    )
}

/// `dlsym` of the executable.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(in crate::intercept) unsafe extern "C" fn dlsym(
    handle: *mut c_void,
    name: *const c_char,
) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "lea rax, [rip + {handles}]",
        "mov rdx, rdi",
        "sub rdx, rax",
        "cmp rdx, {handle_count}",
        "jb 4f",
        "test rsi, rsi",
        "jz 5f",
        "cmp byte ptr [rsi], 99", // 'c'
        "jne 5f",
        "cmp byte ptr [rsi + 1], 117", // 'u'
        "jne 5f",
        "4:",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {decide}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rdx, rdx",
        "jz 5f",
        "ret",
        "5:",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 6f",
        "jmp rax",
        "6:",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "lea rdi, [rip + 20f]",
        "call {find}",
        "mov [rip + {real}], rax",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        "20: .asciz \"dlsym\"",
        handles = sym HANDLES,
        handle_count = const HANDLE_COUNT,
        decide = sym decide_sym,
        find = sym find_next,
        real = sym DLSYM,
    )
}

/// `dlclose` of the executable.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(in crate::intercept) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    naked_asm!(
        ".cfi_startproc",
        "lea rax, [rip + {handles}]",
        "mov rdx, rdi",
        "sub rdx, rax",
        "cmp rdx, {handle_count}",
        "jae 5f",
        "xor eax, eax",
        "ret",
        "5:",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 6f",
        "jmp rax",
        "6:",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "lea rdi, [rip + 20f]",
        "call {find}",
        "mov [rip + {real}], rax",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        "20: .asciz \"dlclose\"",
        handles = sym HANDLES,
        handle_count = const HANDLE_COUNT,
        find = sym find_next,
        real = sym DLCLOSE,
    )
}

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}
