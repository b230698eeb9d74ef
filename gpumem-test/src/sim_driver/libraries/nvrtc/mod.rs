//! NVRTC: programs are read for the names of their kernels and variables, not compiled.
//!
//! So a program that the real compiler refuses passes here. The PTX names what the source does:
//! functions with C linkage by their names, others by any mangled name with their name in it, name
//! expressions by lowered names of ours. Preprocessing is not done: both sides of a condition
//! count, and where a macro makes kernels any name is taken for one, which is noted.

mod lowered;
mod reader;
mod source;
mod tokens;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use self::source::Source;
use super::export::{Answer, LibraryStatus, put};
use crate::abi::Handle;
use crate::sim_driver::Function;
use crate::sim_driver::objects::{Objects, lock};

// Numbers of `nvrtcResult`.
const INVALID_INPUT: LibraryStatus = LibraryStatus(3);
const INVALID_PROGRAM: LibraryStatus = LibraryStatus(4);
const NO_NAMES_AFTER_COMPILATION: LibraryStatus = LibraryStatus(8);
const NO_LOWERED_NAMES_BEFORE_COMPILATION: LibraryStatus = LibraryStatus(9);
const NAME_NOT_VALID: LibraryStatus = LibraryStatus(10);
const INTERNAL_ERROR: LibraryStatus = LibraryStatus(11);

/// CUDA 13.0's.
const VERSION: (c_int, c_int) = (13, 0);
const ARCHITECTURES: [c_int; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

static PROGRAMS: Objects<Arc<Mutex<Program>>> = Objects::new();

#[derive(Debug, Default)]
struct Program {
    source: Source,
    /// Expressions that the program wants names for, and the names.
    expressions: Vec<(CString, CString)>,
    /// PTX with its zero byte, once compiled.
    compiled: Option<Vec<u8>>,
}

fn of(program: Handle) -> Result<Arc<Mutex<Program>>, LibraryStatus> {
    PROGRAMS.get(program).ok_or(INVALID_PROGRAM)
}

/// The architecture in an option: `--gpu-architecture=compute_90`, `-arch=sm_90a`.
fn architecture(option: &str) -> Option<u32> {
    let value = option
        .strip_prefix("--gpu-architecture=")
        .or_else(|| option.strip_prefix("-arch="))
        .or_else(|| option.strip_prefix("--gpu-architecture "))?;
    let digits = value.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits
        .trim_end_matches(|letter: char| !letter.is_ascii_digit())
        .parse()
        .ok()
}

/// Gives the length of the PTX, with its end.
///
/// # Safety
/// `bytes` is null or valid for a write.
unsafe fn put_length(program: Handle, bytes: *mut usize) -> Answer {
    let program = of(program)?;
    let length = lock(&program)
        .compiled
        .as_ref()
        .map(Vec::len)
        .ok_or(INVALID_PROGRAM)?;
    // SAFETY: the caller's.
    unsafe { put(bytes, length, INVALID_INPUT) }
}

/// Gives the PTX, with its end.
///
/// # Safety
/// `into` is null or valid for as many bytes as [`put_length`] says.
unsafe fn put_ptx(program: Handle, into: *mut c_char) -> Answer {
    let program = of(program)?;
    let program = lock(&program);
    let text = program.compiled.as_ref().ok_or(INVALID_PROGRAM)?;
    if into.is_null() {
        return Err(INVALID_INPUT);
    }
    // SAFETY: the caller's.
    unsafe { into.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    Ok(())
}

/// Text for a result, which lives as long as the process.
unsafe extern "C" fn error_text(result: c_int) -> *const c_char {
    let text = match result {
        0 => c"NVRTC_SUCCESS",
        3 => c"NVRTC_ERROR_INVALID_INPUT",
        4 => c"NVRTC_ERROR_INVALID_PROGRAM",
        8 => c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => c"NVRTC_ERROR_INTERNAL_ERROR",
        _ => c"NVRTC_ERROR unknown",
    };
    text.as_ptr()
}

/// The function of a name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    match name {
        "nvrtcGetErrorString" => Some(error_text as *const c_void),
        _ => functions::lookup(name),
    }
}

mod functions {
    use super::*;

    library_functions! { INTERNAL_ERROR;
        fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
            put(major, VERSION.0, INVALID_INPUT)?;
            put(minor, VERSION.1, INVALID_INPUT)
        }

        fn nvrtcGetNumSupportedArchs(count: *mut c_int) {
            put(count, ARCHITECTURES.len() as c_int, INVALID_INPUT)
        }

        fn nvrtcGetSupportedArchs(into: *mut [c_int; ARCHITECTURES.len()]) {
            put(into, ARCHITECTURES, INVALID_INPUT)
        }

        fn nvrtcCreateProgram(
            program: *mut Handle,
            text: *const c_char,
            _name: *const c_char,
            headers: c_int,
            header_texts: *const *const c_char,
            _header_names: *const *const c_char,
        ) {
            if text.is_null() || headers < 0 || (headers > 0 && header_texts.is_null()) {
                return Err(INVALID_INPUT);
            }
            // SAFETY: C's contract says that these are C strings.
            let mut source = Source::parse(&unsafe { CStr::from_ptr(text) }.to_string_lossy());
            for index in 0..headers as usize {
                // SAFETY: C's contract says that there are so many headers, each a C string.
                let header = unsafe { CStr::from_ptr(header_texts.add(index).read()) };
                source.join(Source::parse(&header.to_string_lossy()));
            }
            let made = Program { source, ..Program::default() };
            put(program, PROGRAMS.add(Arc::new(Mutex::new(made))), INVALID_INPUT)
        }

        fn nvrtcDestroyProgram(program: *mut Handle) {
            if program.is_null() {
                return Err(INVALID_PROGRAM);
            }
            // SAFETY: not null, and C's contract says that a program is there.
            PROGRAMS.remove(unsafe { program.read_unaligned() }).ok_or(INVALID_PROGRAM)?;
            put(program, 0, INVALID_PROGRAM)
        }

        fn nvrtcAddNameExpression(program: Handle, expression: *const c_char) {
            let program = of(program)?;
            let mut program = lock(&program);
            if program.compiled.is_some() {
                return Err(NO_NAMES_AFTER_COMPILATION);
            }
            if expression.is_null() {
                return Err(NAME_NOT_VALID);
            }
            // SAFETY: not null, and C's contract says that this is a C string.
            let expression = unsafe { CStr::from_ptr(expression) };
            let lowered = program.source.lower(&expression.to_string_lossy()).ok_or(NAME_NOT_VALID)?;
            let lowered = CString::new(lowered).map_err(|_| NAME_NOT_VALID)?;
            program.expressions.push((expression.to_owned(), lowered));
            Ok(())
        }

        /// The name lives as long as the program.
        fn nvrtcGetLoweredName(
            program: Handle,
            expression: *const c_char,
            lowered: *mut *const c_char,
        ) {
            let program = of(program)?;
            let program = lock(&program);
            if program.compiled.is_none() {
                return Err(NO_LOWERED_NAMES_BEFORE_COMPILATION);
            }
            if expression.is_null() {
                return Err(NAME_NOT_VALID);
            }
            // SAFETY: not null, and C's contract says that this is a C string.
            let expression = unsafe { CStr::from_ptr(expression) };
            let known = program.expressions.iter().find(|(known, _)| **known == *expression);
            put(lowered, known.ok_or(NAME_NOT_VALID)?.1.as_ptr(), INVALID_INPUT)
        }

        fn nvrtcCompileProgram(
            program: Handle,
            options: c_int,
            texts: *const *const c_char,
        ) {
            let program = of(program)?;
            if options < 0 || (options > 0 && texts.is_null()) {
                return Err(INVALID_INPUT);
            }
            let mut program = lock(&program);
            let mut image = program.source.image();
            for index in 0..options as usize {
                // SAFETY: C's contract says that there are so many options, each a C string.
                let option = unsafe { CStr::from_ptr(texts.add(index).read()) };
                image.architecture = architecture(&option.to_string_lossy()).or(image.architecture);
            }
            let mut text = image.to_ptx().into_bytes();
            text.push(0);
            program.compiled = Some(text);
            Ok(())
        }

        fn nvrtcGetPTXSize(program: Handle, bytes: *mut usize) {
            put_length(program, bytes)
        }

        fn nvrtcGetPTX(program: Handle, into: *mut c_char) {
            put_ptx(program, into)
        }

        /// What loads as a cubin is PTX here.
        fn nvrtcGetCUBINSize(program: Handle, bytes: *mut usize) {
            put_length(program, bytes)
        }

        fn nvrtcGetCUBIN(program: Handle, into: *mut c_char) {
            put_ptx(program, into)
        }

        /// The log is empty.
        fn nvrtcGetProgramLogSize(program: Handle, bytes: *mut usize) {
            of(program)?;
            put(bytes, 1, INVALID_INPUT)
        }

        fn nvrtcGetProgramLog(program: Handle, into: *mut c_char) {
            of(program)?;
            put(into, 0, INVALID_INPUT)
        }
    }
}
