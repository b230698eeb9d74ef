//! The three functions for aarch64, AAPCS64.

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
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "str x0, [sp, #16]",
        "mov x1, x0",
        "mov x0, #-1", // RTLD_NEXT
        "adr x2, 20f",
        "bl {dlvsym}",
        "cbnz x0, 9f",
        "ldr x1, [sp, #16]",
        "mov x0, #-1",
        "adr x2, 21f",
        "bl {dlvsym}",
        "cbnz x0, 9f",
        "bl {no_loader}",
        "9:",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "ret",
        ".cfi_endproc",
        "20: .asciz \"GLIBC_2.34\"",
        "21: .asciz \"GLIBC_2.17\"",
        ".balign 4",
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
        "cbz x0, 5f",
        // x2: what follows the last slash. x3: one past the 0 at the end.
        "mov x2, x0",
        "mov x3, x0",
        "2:",
        "ldrb w4, [x3], #1",
        "cmp w4, #47", // '/'
        "csel x2, x3, x2, eq",
        "cbnz w4, 2b",
        "sub x3, x3, x2",
        "cmp x3, #6", // five letters and the 0
        "b.lo 5f",
        "ldrb w4, [x2]",
        "cmp w4, #108", // 'l'
        "b.ne 5f",
        "ldrb w4, [x2, #1]",
        "cmp w4, #105", // 'i'
        "b.ne 5f",
        "ldrb w4, [x2, #2]",
        "cmp w4, #98", // 'b'
        "b.ne 5f",
        "ldrb w4, [x2, #3]",
        "ldrb w5, [x2, #4]",
        "cmp w4, #99", // 'c'
        "b.ne 3f",
        "cmp w5, #117", // 'u'
        "b.ne 5f",
        "b 4f",
        "3:",
        "cmp w4, #110", // 'n'
        "b.ne 5f",
        "cmp w5, #118", // 'v'
        "b.eq 4f",
        "cmp w5, #99", // 'c'
        "b.ne 5f",
        "4:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {decide}",
        "mov x9, x1",
        "mov x10, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "cbz x9, 5f",
        "mov x0, x10",
        "ret",
        "5:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 6f",
        "br x16",
        "6:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "adr x0, 20f",
        "bl {find}",
        "mov x16, x0",
        "adrp x9, {real}",
        "add x9, x9, :lo12:{real}",
        "str x16, [x9]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "br x16",
        ".cfi_endproc",
        "20: .asciz \"dlopen\"",
        ".balign 4",
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
        "adrp x2, {handles}",
        "add x2, x2, :lo12:{handles}",
        "sub x2, x0, x2",
        "cmp x2, #{handle_count}",
        "b.lo 4f",
        "cbz x1, 5f",
        "ldrb w2, [x1]",
        "cmp w2, #99", // 'c'
        "b.ne 5f",
        "ldrb w2, [x1, #1]",
        "cmp w2, #117", // 'u'
        "b.ne 5f",
        "4:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {decide}",
        "mov x9, x1",
        "mov x10, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "cbz x9, 5f",
        "mov x0, x10",
        "ret",
        "5:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 6f",
        "br x16",
        "6:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "adr x0, 20f",
        "bl {find}",
        "mov x16, x0",
        "adrp x9, {real}",
        "add x9, x9, :lo12:{real}",
        "str x16, [x9]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "br x16",
        ".cfi_endproc",
        "20: .asciz \"dlsym\"",
        ".balign 4",
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
        "adrp x2, {handles}",
        "add x2, x2, :lo12:{handles}",
        "sub x2, x0, x2",
        "cmp x2, #{handle_count}",
        "b.hs 5f",
        "mov w0, wzr",
        "ret",
        "5:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 6f",
        "br x16",
        "6:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset w29, -32",
        ".cfi_offset w30, -24",
        "mov x29, sp",
        "str x0, [sp, #16]",
        "adr x0, 20f",
        "bl {find}",
        "mov x16, x0",
        "adrp x9, {real}",
        "add x9, x9, :lo12:{real}",
        "str x16, [x9]",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "br x16",
        ".cfi_endproc",
        "20: .asciz \"dlclose\"",
        ".balign 4",
        handles = sym HANDLES,
        handle_count = const HANDLE_COUNT,
        find = sym find_next,
        real = sym DLCLOSE,
    )
}

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}
