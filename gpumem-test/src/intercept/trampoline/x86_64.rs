//! Trampolines for x86-64, System V calling convention.

use std::arch::naked_asm;

use crate::intercept::slots::{SLOT_SIZE, SLOTS, resolve};
use crate::intercept::table::{COUNT, Symbol};

macro_rules! define_trampolines {
    ($($name:ident $way:ident,)*) => {
        $(
            // The row is for `lazy`. r11 is the scratch register of calls through a table.
            #[allow(non_snake_case)]
            #[cfg_attr(feature = "direct", unsafe(no_mangle))]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                naked_asm!(
                    "mov r11d, {row}",
                    "jmp qword ptr [rip + {slots} + {offset}]",
                    row = const Symbol::$name as u16,
                    slots = sym SLOTS,
                    offset = const Symbol::$name as usize * SLOT_SIZE,
                )
            }
        )*

        /// The trampolines, in the order of the table.
        pub(crate) static TRAMPOLINES: [unsafe extern "C" fn(); COUNT] = [$($name,)*];
    };
}
for_each_symbol!(define_trampolines);

/// The target of a slot that is not filled: asks where the call goes and goes there.
///
/// Keeps all that carries arguments: six integer registers, rax (the number of vector registers of
/// a variadic call), eight vector registers. No driver function passes vectors wider than xmm.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn lazy() {
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "push rcx",
        ".cfi_adjust_cfa_offset 8",
        "push r8",
        ".cfi_adjust_cfa_offset 8",
        "push r9",
        ".cfi_adjust_cfa_offset 8",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        // Return address and seven pushes: the stack is aligned to 16 here.
        "sub rsp, 128",
        ".cfi_adjust_cfa_offset 128",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "mov edi, r11d",
        "call {resolve}",
        "mov r11, rax",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "add rsp, 128",
        ".cfi_adjust_cfa_offset -128",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "pop r9",
        ".cfi_adjust_cfa_offset -8",
        "pop r8",
        ".cfi_adjust_cfa_offset -8",
        "pop rcx",
        ".cfi_adjust_cfa_offset -8",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp r11",
        ".cfi_endproc",
        resolve = sym resolve,
    )
}
