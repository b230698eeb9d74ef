//! Trampolines for aarch64, AAPCS64.

use std::arch::naked_asm;

use crate::intercept::slots::{SLOT_SIZE, SLOTS, resolve};
use crate::intercept::table::{COUNT, Symbol};

macro_rules! define_trampolines {
    ($($name:ident $way:ident,)*) => {
        $(
            // The row is for `lazy`. x16 and x17 are the scratch registers between procedures.
            #[allow(non_snake_case)]
            #[cfg_attr(feature = "direct", unsafe(no_mangle))]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                naked_asm!(
                    "adrp x16, {slots} + {offset}",
                    "ldr x16, [x16, :lo12:{slots} + {offset}]",
                    "mov w17, #{row}",
                    "br x16",
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
/// Keeps all that carries arguments: x0 to x7, x8 (where a large result goes), q0 to q7; and the
/// frame pointer and return address.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn lazy() {
    naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-224]!",
        ".cfi_def_cfa_offset 224",
        ".cfi_offset w29, -224",
        ".cfi_offset w30, -216",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov w0, w17",
        "bl {resolve}",
        "mov x16, x0",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp x29, x30, [sp], #224",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "br x16",
        ".cfi_endproc",
        resolve = sym resolve,
    )
}
