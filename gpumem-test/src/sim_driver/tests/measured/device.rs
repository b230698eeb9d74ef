use std::ffi::{CStr, c_char};
use std::ptr;

use super::{MIB, Section, recording};
use crate::sim_driver::bench::{call, ok, stream};

/// A value, or the code of the refusal.
fn or_code(code: i32, value: impl ToString) -> String {
    if code == 0 {
        value.to_string()
    } else {
        format!("code:{code}")
    }
}

#[test]
fn attributes_and_limits_are_an_h200s() {
    let mut section = Section::new("device");
    let mut total = 0_usize;
    ok("cuDeviceTotalMem_v2", (&mut total, 0_i32));
    section.say("cuDeviceTotalMem", total);
    for attribute in 1..149_i32 {
        let mut value = 0_i32;
        let code = call("cuDeviceGetAttribute", (&mut value, attribute, 0_i32));
        section.say(format!("attribute {attribute}"), or_code(code, value));
    }
    let (mut least, mut greatest) = (0_i32, 0_i32);
    ok("cuCtxGetStreamPriorityRange", (&mut least, &mut greatest));
    section.say("priorities", format!("{least},{greatest}"));
    for limit in 0..10_i32 {
        let mut value = 0_usize;
        let code = call("cuCtxGetLimit", (&mut value, limit));
        section.say(format!("limit {limit}"), or_code(code, value));
    }
    section.agree();
}

fn streams(section: &'static str, flags: u32) {
    const SAID: [usize; 16] = [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 48, 64, 65, 80, 96];
    let mut section = Section::new(section);
    for _ in 0..2 {
        let mut streams = Vec::new();
        for count in 1..97 {
            streams.push(stream(flags));
            if SAID.contains(&count) {
                section.gone(format!("{count} streams"));
            }
        }
        for stream in streams {
            ok("cuStreamDestroy_v2", (stream,));
        }
        section.gone("all destroyed");
    }
    for _ in 0..1000 {
        ok("cuEventCreate", (&mut 0_u64, 0_u32));
    }
    section.gone("1000 events");
    section.agree();
}

#[test]
fn streams_take_memory_in_the_recorded_steps() {
    streams("streams-non-blocking", 1);
    streams("streams-blocking", 0);
}

#[test]
fn contexts_take_what_was_recorded() {
    let mut section = Section::new("contexts");
    let primary = section.bench.enter(0);
    let (mut first, mut second) = (0_u64, 0_u64);
    ok("cuCtxCreate_v2", (&mut first, 0_u32, 0_i32));
    section.gone("second context");
    ok("cuCtxCreate_v2", (&mut second, 0_u32, 0_i32));
    section.gone("third context");
    stream(1);
    section.gone("a stream in it");
    ok("cuCtxDestroy_v2", (second,));
    ok("cuCtxDestroy_v2", (first,));
    ok("cuCtxSetCurrent", (primary,));
    section.gone("both destroyed");
    section.agree();
}

#[test]
fn limits_take_what_was_recorded() {
    let mut section = Section::new("limits");
    for kib in [1_usize, 2, 4, 16, 3, 1, 16, 1] {
        let code = call("cuCtxSetLimit", (0_i32, kib << 10));
        section.gone(format!("stack of {kib} KiB, code {code}"));
    }
    for (limit, value) in [(1_i32, 64 * MIB), (2, 512 * MIB), (4, 4096)] {
        let code = call("cuCtxSetLimit", (limit, value as usize));
        section.gone(format!("limit {limit} of {value}, code {code}"));
    }
    section.agree();
}

fn text_of(function: &str, code: i32) -> Option<String> {
    let mut text: *const c_char = ptr::null();
    let known = call(function, (code, &mut text)) == 0;
    // SAFETY: the driver's texts live as long as the process.
    known.then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
}

#[test]
fn every_code_has_the_recorded_name_and_text() {
    let _section = Section::new("device");
    let text = recording("h200_more.txt");
    let line = text.lines().find_map(|line| line.strip_prefix("ERRORS "));
    let codes: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    let codes = codes.as_object().unwrap();
    assert_eq!(codes.len(), 101);
    for code in 0..1000 {
        let recorded = codes.get(&code.to_string());
        let text = |index: usize| Some(recorded?[index].as_str()?.to_owned());
        assert_eq!(text_of("cuGetErrorName", code), text(0), "{code}");
        assert_eq!(text_of("cuGetErrorString", code), text(1), "{code}");
    }
}
