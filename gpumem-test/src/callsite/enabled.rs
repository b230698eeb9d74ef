//! The stack of a thread: walked fast where its frames are known, unwound where they are not.
//!
//! A frame has the same size each time that it is left at the same return address, unless its
//! function allocates on the stack. So the unwinder is asked once for each return address
//! (`table.rs` keeps the answers), and a walk is a few loads from there: 8 frames in tens of
//! nanoseconds instead of more than a microsecond. A step is only learned after the stack itself
//! was seen to hold the caller's address where the step says.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use super::Stack;
use super::naming::Symbol;
use super::table::{Step, Table};
use crate::ledger::MAX_FRAMES;

static TABLE: Table = Table::new();

/// Stands in the table for the frame of [`walk`] itself, which has no return address of its own.
const WALK: usize = 1;

/// What the module of this program is called in the ledger, wherever its file lies.
const PROGRAM: &str = "(program)";

thread_local! {
    /// The end of this thread's stack; 0 for not asked yet.
    static STACK_END: Cell<usize> = const { Cell::new(0) };
}

/// Fills `stack` with the return addresses above this function's caller.
#[inline(never)]
pub(super) fn walk(stack: &mut Stack) {
    let pointer = stack_pointer();
    if !walk_known(pointer, stack) {
        stack.count = 0;
        unwind(pointer, stack);
    }
}

/// Walks by what is known; false if something is not.
// PERF: plain loops and few calls, since tests mostly run without optimisation.
#[inline(always)]
fn walk_known(mut pointer: usize, stack: &mut Stack) -> bool {
    let (start, end) = (pointer, stack_end());
    let mut address = WALK;
    while stack.count < MAX_FRAMES {
        let word = TABLE.word(address);
        if word <= Step::LAST_MARK {
            return word == Step::END;
        }
        let (size, slot) = Step::unpack(word);
        address = read(pointer + slot, start, end);
        pointer += size;
        // Not on this thread's own stack (a fibre's), or led astray.
        if address == 0 || pointer > end {
            return false;
        }
        stack.addresses[stack.count] = address;
        stack.count += 1;
    }
    true
}

/// Asks the unwinder, and learns.
#[cold]
#[inline(never)]
fn unwind(pointer: usize, stack: &mut Stack) {
    let end = stack_end();
    // The frame before: its name in the table and its stack pointer.
    let mut before = (WALK, pointer);
    let mut is_cut = false;
    let mut visit = |frame: &backtrace::Frame| {
        let (address, here) = (frame.ip() as usize, frame.sp() as usize);
        // The frames of the unwinder, of this function and of `walk` come first.
        if here <= pointer {
            return true;
        }
        if address == 0 {
            return false;
        }
        TABLE.learn(before.0, step(before.1, here, address, end));
        before = (address, here);
        is_cut = !stack.push(address);
        !is_cut
    };
    // SAFETY: on this platform the unwinder has no state that calls share; the function is unsafe
    // for the sake of Windows, whose debugging library has.
    unsafe { backtrace::trace_unsynchronized(&mut visit) };
    if !is_cut {
        TABLE.learn(before.0, Step::End);
    }
}

/// The step from the frame at `from` to its caller's at `to`, to which `address` returns.
fn step(from: usize, to: usize, address: usize, end: usize) -> Step {
    let frame = || {
        u32::try_from(to.checked_sub(from)?)
            .ok()
            .filter(|size| *size > 0)
    };
    let Some(size) = frame().filter(|_| to < end) else {
        return Step::Varies;
    };
    let word = size_of::<usize>() as u32;
    // x86-64 pushes the return address last; others save it somewhere in the frame.
    let last = size.saturating_sub(word);
    let lowest = if cfg!(target_arch = "x86_64") {
        last
    } else {
        0
    };
    (lowest..=last)
        .step_by(word as usize)
        .find(|slot| read(from + *slot as usize, from, end) == address)
        .map_or(Step::Varies, |slot| Step::Caller { size, slot })
}

/// The word at `place`; 0 if that is not between `start`, a stack pointer of a caller, and `end`,
/// the end of the stack.
#[inline(always)]
fn read(place: usize, start: usize, end: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    if !place.is_multiple_of(WORD) || place < start || place + WORD > end {
        return 0;
    }
    // SAFETY: the place is aligned and lies between the stack pointer of a frame that is still in
    // use and the end of the thread's stack, all of which is mapped and readable for as long as
    // the thread runs; only this thread writes there, and not now.
    unsafe { *std::ptr::with_exposed_provenance::<usize>(place) }
}

/// The stack pointer of the function that this is inlined in.
#[inline(always)]
fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: copies a register; touches neither memory nor flags nor the stack.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    // Without it every stack is unwound.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        pointer = usize::MAX;
    }
    pointer
}

/// The end of this thread's stack; 0 if it cannot be known, as in a destructor.
#[inline]
fn stack_end() -> usize {
    STACK_END
        .try_with(|end| {
            if end.get() == 0 {
                end.set(ask_stack_end());
            }
            end.get()
        })
        .unwrap_or(0)
}

#[cold]
fn ask_stack_end() -> usize {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (std::ptr::null_mut::<c_void>(), 0);
    // SAFETY: `attributes` is written by the first call and used only if that succeeded, and is
    // destroyed once; the other pointers are to variables of ours.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        let asked = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if asked != 0 {
            return 0;
        }
    }
    start as usize + size
}

/// The module that `address` is in, and its offset there.
pub(super) fn locate(address: usize) -> Option<(String, u64)> {
    let (path, base) = module_of(address)?;
    let (_, own) = module_of(locate as *const () as usize)?;
    let name = if base == own {
        PROGRAM.to_owned()
    } else {
        path
    };
    Some((name, (address - base) as u64))
}

/// The file of the module that `address` is in, and where the module begins.
fn module_of(address: usize) -> Option<(String, usize)> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the structure is ours, and all zeros is valid for it.
    let (known, info) = unsafe {
        let known = libc::dladdr(std::ptr::without_provenance(address), found.as_mut_ptr());
        (known, found.assume_init())
    };
    if known == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader says that it is a string; it lives as long as the module, which is loaded
    // while code of it is on the stack.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    let base = info.dli_fbase as usize;
    (base <= address).then(|| (path.to_string_lossy().into_owned(), base))
}

/// Names what returns to `offset` in `module`, innermost inlined function first. Nothing if this
/// process has not loaded the module, or it has no names.
pub(super) fn resolve(module: &str, offset: u64, name: &mut dyn FnMut(Symbol)) {
    let base = match module {
        PROGRAM => module_of(resolve as *const () as usize).map(|(_, base)| base),
        path => base_of(path),
    };
    let Some(address) = base.and_then(|base| base.checked_add(offset as usize)) else {
        return;
    };
    backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
        name(Symbol {
            function: symbol.name().map(|name| format!("{name:#}")),
            file: symbol
                .filename()
                .map(|file| file.to_string_lossy().into_owned()),
            line: symbol.lineno(),
        });
    });
}

/// Where the module of the file `path` begins in this process, if it is loaded.
fn base_of(path: &str) -> Option<usize> {
    struct Search<'a> {
        path: &'a str,
        base: Option<usize>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        search: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the loader passes a valid structure with a string, and the pointer that
        // `base_of` gave it, which nobody else uses meanwhile.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        if name.to_bytes() != search.path.as_bytes() {
            return 0;
        }
        search.base = Some(info.dlpi_addr as usize);
        1
    }
    let mut search = Search { path, base: None };
    // SAFETY: `visit` gets the pointer to `search` only during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.base
}
