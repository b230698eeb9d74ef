//! What the other program said, whose lines have a form each.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Mutex;

use super::{MIB, recording, same};
use crate::sim_driver::bench::{Bench, call, call_plain, free_bytes, malloc, ok, stream};

/// Compares the recorded lines between two that begin so (the second excluded), without those
/// that begin as one of `without`, with what was said.
#[track_caller]
fn agree(first: &str, end: &str, without: &[&str], said: &[String]) {
    let text = recording("h200_more.txt");
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with(first))
        .take_while(|line| !line.starts_with(end))
        .filter(|line| !without.iter().any(|start| line.starts_with(start)));
    same(&lines.collect::<Vec<_>>(), said);
}

macro_rules! said {
    ($said:ident, $($format:tt)*) => { $said.push(format!($($format)*)) };
}

#[test]
fn a_device_and_its_context_say_what_was_recorded() {
    let bench = Bench::fresh(1);
    let mut said = Vec::new();
    let (mut word, mut free, mut total) = (0_u64, 0_usize, 0_usize);
    let code = call("cuMemAlloc_v2", (&mut word, 1_usize));
    said!(said, "alloc before init {code}");
    let code = call("cuCtxGetCurrent", (&mut word,));
    said!(said, "ctxget before init {code}");
    said!(said, "init {}", call("cuInit", (0_u32,)));
    let mut number = 0_i32;
    ok("cuDriverGetVersion", (&mut number,));
    said!(said, "version {number}");
    let code = call("cuMemAlloc_v2", (&mut word, 1_usize));
    said!(said, "alloc without ctx {code}");
    let code = call("cuCtxGetDevice", (&mut number,));
    said!(said, "getdevice without ctx {code}");
    said!(said, "sync without ctx {}", call_plain("cuCtxSynchronize"));
    let code = call("cuMemFree_v2", (0x1234_u64,));
    said!(said, "free garbage without ctx {code}");
    let code = call("cuMemGetInfo_v2", (&mut free, &mut total));
    said!(said, "getinfo without ctx {code}");
    ok("cuDeviceTotalMem_v2", (&mut total, 0_i32));
    said!(said, "cuDeviceTotalMem {total}");
    let text_of = |name: &str| {
        let mut text = [0 as c_char; 32];
        ok(name, (text.as_mut_ptr(), 32_i32, 0_i32));
        // SAFETY: the driver wrote a text with its end.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        format!("b'{}'", text.to_str().unwrap())
    };
    said!(said, "name {}", text_of("cuDeviceGetName"));
    said!(said, "pci {}", text_of("cuDeviceGetPCIBusId"));
    let code = call(
        "cuDeviceGetLuid",
        ([0_u8; 8].as_mut_ptr(), &mut number, 0_i32),
    );
    said!(said, "luid {code}");
    let state = || {
        let (mut flags, mut active) = (9_u32, 9_i32);
        ok(
            "cuDevicePrimaryCtxGetState",
            (0_i32, &mut flags, &mut active),
        );
        format!("{flags} {active}")
    };
    said!(said, "state before {}", state());
    let context = bench.enter(0);
    said!(said, "state after {}", state());
    ok("cuMemGetInfo_v2", (&mut free, &mut total));
    said!(said, "info {free} {total}");
    for limit in 0..12_i32 {
        // A limit that there is not leaves the value of the one before.
        let code = call("cuCtxGetLimit", (&mut total, limit));
        let value = if limit > 7 { 0 } else { total };
        said!(said, "limit {limit} {code} {value}");
    }
    let (mut least, mut greatest) = (9_i32, 9_i32);
    ok("cuCtxGetStreamPriorityRange", (&mut least, &mut greatest));
    said!(said, "prio {least} {greatest}");
    for (what, name) in [
        ("cacheconfig", "cuCtxGetCacheConfig"),
        ("sharedmemconfig", "cuCtxGetSharedMemConfig"),
        ("ctxflags", "cuCtxGetFlags"),
    ] {
        let code = call(name, (&mut number,));
        said!(said, "{what} {code} {number}");
    }
    let code = call("cuCtxGetApiVersion", (context, &mut number));
    said!(said, "apiversion {code} {number}");
    let code = call("cuModuleGetLoadingMode", (&mut number,));
    said!(said, "loadingmode {code} {number}");
    agree("alloc before init", "ERRORS", &["ATTRS"], &said);
}

#[test]
fn rows_arrays_and_streams_are_as_recorded() {
    let _bench = Bench::ready(1);
    let mut said = Vec::new();
    let mut text: *const c_char = c"".as_ptr();
    let code = call("cuGetErrorName", (4242_i32, &mut text));
    assert!(text.is_null());
    said!(said, "errname unknown {code} None");
    for (width, height, element) in [
        (1000_usize, 10_usize, 4_u32),
        (1, 1, 4),
        (513, 3, 4),
        (512, 3, 16),
        (1000, 10, 5),
        (0, 10, 4),
        (10, 0, 4),
        (1000, 10, 0),
    ] {
        let (mut address, mut pitch) = (0_u64, 0_usize);
        let code = call(
            "cuMemAllocPitch_v2",
            (&mut address, &mut pitch, width, height, element),
        );
        let pitch = if code == 0 {
            pitch.to_string()
        } else {
            "None".to_owned()
        };
        said!(said, "pitch {width} {height} {element} {code} {pitch}");
        ok("cuMemFree_v2", (address,));
    }
    let start = free_bytes().0;
    for (width, height, format, channels) in [
        (1024_usize, 1024_usize, 32_i32, 4_u32),
        (64, 64, 32, 1),
        (1000, 1000, 32, 1),
        (1024, 0, 32, 1),
        (300, 300, 1, 1),
        (4096, 4096, 32, 4),
        (1000, 7, 16, 2),
    ] {
        let mut array = 0_u64;
        let descriptor = (width, height, format, channels);
        let code = call("cuArrayCreate_v2", (&mut array, &descriptor));
        let gone = start - free_bytes().0;
        ok("cuArrayDestroy", (array,));
        let back = start - free_bytes().0;
        said!(
            said,
            "array {width} {height} {format} {channels} {code} {gone} back {back}"
        );
    }
    let mut streams = Vec::new();
    for count in 1..71 {
        streams.push(stream(1));
        if [1, 2, 32, 33, 64, 65, 70].contains(&count) {
            said!(said, "streams {count} {}", start - free_bytes().0);
        }
    }
    for stream in streams {
        ok("cuStreamDestroy_v2", (stream,));
    }
    said!(said, "after destroy {}", start - free_bytes().0);
    said!(said, "sync0 {}", call("cuStreamSynchronize", (0_u64,)));
    said!(
        said,
        "eventsync null {}",
        call("cuEventSynchronize", (0_u64,))
    );
    let [zero, one, two] = [0_u64, 1, 2].map(|name| call("cuStreamDestroy_v2", (name,)));
    said!(said, "streamdestroy 0 {zero} 1: {one} 2: {two}");
    let free = call("cuMemFree_v2", (0x1234_u64,));
    let later = call("cuMemFreeAsync", (0x1234_u64, 0_u64));
    said!(said, "free unknown {free} async {later}");
    agree("errname", "ptrattr", &["streamid"], &said);
}

#[test]
fn attributes_of_addresses_are_as_recorded() {
    let bench = Bench::ready(1);
    let mut said = Vec::new();
    let address = malloc(1000);
    let context = bench.enter(0);
    for attribute in 1..22_i32 {
        let mut value = 0_u64;
        let code = call("cuPointerGetAttribute", (&mut value, attribute, address));
        match attribute {
            1 => {
                assert_eq!(value, context);
                said!(said, "ptrattr 1 {code} 987318032");
            }
            3 | 11 | 19 => {
                assert_eq!(value, address);
                said!(said, "ptrattr {attribute} {code} addr");
            }
            4 => said!(said, "ptrattr 4 {code} addr"),
            // Numbers of the allocation, which no program can foresee.
            7 | 20 => assert!(code == 0 && value != 0, "{attribute}"),
            _ => said!(said, "ptrattr {attribute} {code} {value}"),
        }
    }
    let (mut pinned, mut value) = (0_u64, 0_u32);
    ok("cuMemAllocHost_v2", (&mut pinned, 4096_usize));
    for attribute in [2_i32, 8, 9, 13] {
        value = 0;
        let code = call("cuPointerGetAttribute", (&mut value, attribute, pinned));
        said!(said, "host ptrattr {attribute} {code} {value}");
    }
    let unknown = &raw const value as u64;
    let codes = [2_i32, 8, 9, 11].map(|attribute| {
        let code = call("cuPointerGetAttribute", (&mut 0_u64, attribute, unknown));
        format!("({attribute}, {code})")
    });
    said!(said, "ptrattr unknown address [{}]", codes.join(", "));
    agree("ptrattr", "[", &["ptrattr 7 ", "ptrattr 20 "], &said);
}

static CODES: Mutex<Vec<(&str, i32)>> = Mutex::new(Vec::new());

unsafe extern "C" fn calls_the_driver(_: *mut c_void) {
    let (mut word, mut free, mut total) = (0_u64, 0_usize, 0_usize);
    *CODES.lock().unwrap() = vec![
        ("alloc", call("cuMemAlloc_v2", (&mut word, 1_usize))),
        (
            "allocasync",
            call("cuMemAllocAsync", (&mut word, 1_usize, 0_u64)),
        ),
        ("getinfo", call("cuMemGetInfo_v2", (&mut free, &mut total))),
        ("free", call("cuMemFree_v2", (0x1234_u64,))),
    ];
}

#[test]
fn host_functions_may_not_call_the_driver() {
    let _bench = Bench::ready(1);
    let function: unsafe extern "C" fn(*mut c_void) = calls_the_driver;
    ok("cuLaunchHostFunc", (0_u64, function, ptr::null::<c_void>()));
    assert_eq!(call_plain("cuCtxSynchronize"), 0);
    let codes = CODES.lock().unwrap();
    let words = codes
        .iter()
        .map(|(name, code)| format!("('{name} in hostfn', {code})"));
    let said = format!("[{}]", words.collect::<Vec<_>>().join(", "));
    agree("[", "managed", &[], &[said]);
}

#[test]
fn a_captured_allocation_is_a_graphs_as_recorded() {
    let _bench = Bench::ready(1);
    let stream = stream(1);
    let start = free_bytes().0;
    let gone = || start - free_bytes().0;
    let attributes = || {
        let mut value = [0_u64; 4];
        for (number, value) in (0_u32..).zip(&mut value) {
            ok("cuDeviceGetGraphMemAttribute", (0_i32, number, value));
        }
        format!("{value:?}")
    };
    let mut said = Vec::new();
    let (mut address, mut graph, mut exec) = (0_u64, 0_u64, 0_u64);
    ok("cuStreamBeginCapture_v2", (stream, 0_u32));
    let bytes = 64 * MIB as usize;
    let code = call("cuMemAllocAsync", (&mut address, bytes, stream));
    said!(said, "captured alloc {code} {address:#x}");
    ok("cuMemFreeAsync", (address, stream));
    let code = call("cuStreamEndCapture", (stream, &mut graph));
    said!(said, "capture {code} {}", gone());
    said!(said, "graph attr captured {} {}", attributes(), gone());
    let code = call("cuGraphInstantiateWithFlags", (&mut exec, graph, 0_u64));
    said!(said, "{code} instantiated {} {}", attributes(), gone());
    ok("cuGraphLaunch", (exec, stream));
    ok("cuStreamSynchronize", (stream,));
    said!(said, "launched {} {}", attributes(), gone());
    ok("cuGraphExecDestroy", (exec,));
    said!(said, "exec destroyed {} {}", attributes(), gone());
    ok("cuDeviceGraphMemTrim", (0_i32,));
    said!(said, "trimmed {} {}", attributes(), gone());
    ok("cuGraphDestroy", (graph,));
    said!(said, "graph destroyed {} {}", attributes(), gone());
    agree("captured alloc", "\0", &[], &said);
}
