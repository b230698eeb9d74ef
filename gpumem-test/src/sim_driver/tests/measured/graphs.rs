use super::{MIB, recording, same};
use crate::sim_driver::bench::{Bench, call, call_plain, free_bytes, ok, stream};

/// What `tests/on_gpu/graph_facts.c` prints.
struct Facts {
    start: usize,
    said: Vec<String>,
}

impl Facts {
    fn fact(&mut self, what: &str, code: i32) {
        let gone = self.start - free_bytes().0;
        self.said
            .push(format!("{what:<64} code {code:4}  gone {gone:12}"));
    }

    fn attributes(&mut self, what: &str) {
        let mut value = [0_u64; 4];
        for (number, value) in (0_u32..).zip(&mut value) {
            ok("cuDeviceGetGraphMemAttribute", (0_i32, number, value));
        }
        let [used, used_high, reserved, high] = value;
        self.said.push(format!(
            "{what:<64} used {used} high {used_high} reserved {reserved} high {high}"
        ));
    }

    fn line(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    /// Adds a node that allocates: the node and its address.
    fn allocate(&mut self, graph: u64, before: &[u64], bytes: u64) -> (u64, u64) {
        let (mut node, mut params) = (0_u64, [0_u64; 15]);
        (params[0], params[1], params[13]) = (1, 1, bytes);
        let code = call(
            "cuGraphAddMemAllocNode",
            (&mut node, graph, before.as_ptr(), before.len(), &mut params),
        );
        self.fact("add an allocation node", code);
        (node, params[14])
    }

    /// One capture: a call in it, and its end.
    fn capture(&mut self, mode: u32, what: &str, stream: u64, run: impl FnOnce() -> i32) {
        ok("cuStreamBeginCapture_v2", (stream, mode));
        let code = run();
        self.fact(what, code);
        let code = call("cuStreamEndCapture", (stream, &mut 0_u64));
        self.fact("    end", code);
    }

    /// Ends it: what was said is what was recorded from one headline to another.
    #[track_caller]
    fn agree(self, first: &str, end: Option<&str>) {
        let text = recording("h200_graphs.txt");
        let lines: Vec<&str> = text.lines().collect();
        let at = |headline: &str| {
            let found = lines.iter().position(|line| *line == headline);
            found.expect("a headline of the recording")
        };
        same(&lines[at(first)..end.map_or(lines.len(), at)], &self.said);
    }
}

fn facts() -> (Bench, Facts, u64, u64) {
    let bench = Bench::ready(1);
    let (one, two) = (stream(1), stream(1));
    let facts = Facts {
        start: free_bytes().0,
        said: Vec::new(),
    };
    (bench, facts, one, two)
}

fn graph() -> u64 {
    let mut graph = 0_u64;
    ok("cuGraphCreate", (&mut graph, 0_u32));
    graph
}

fn instantiate(exec: &mut u64, graph: u64) -> i32 {
    call("cuGraphInstantiateWithFlags", (exec, graph, 0_u64))
}

const MODULES: &str = "# modules";
const PLAIN: &str = "# a graph without memory";
const FREES: &str = "# a graph with 3 MiB that it frees";
const KEEPS: &str = "# a second graph: three times 1 KiB, not freed";
const CAPTURES: &str = "# captures: the code of a call, then that of the end";

#[test]
fn memory_of_graphs_comes_and_goes_as_recorded() {
    let (bench, mut facts, stream, _) = facts();
    let (mut exec, mut node, mut other) = (0_u64, 0_u64, 0_u64);
    facts.line(PLAIN);
    let plain = graph();
    ok("cuGraphAddEmptyNode", (&mut node, plain, 0_u64, 0_usize));
    let code = instantiate(&mut exec, plain);
    facts.fact("instantiate", code);
    facts.fact("launch", call("cuGraphLaunch", (exec, stream)));

    facts.line(FREES);
    let frees = graph();
    let (node, address) = facts.allocate(frees, &[], 3 * MIB);
    let mut freed = 0_u64;
    ok(
        "cuGraphAddMemFreeNode",
        (&mut freed, frees, &node, 1_usize, address),
    );
    let code = instantiate(&mut exec, frees);
    facts.fact("instantiate", code);
    facts.attributes("instantiated");
    facts.fact(
        "instantiate it a second time",
        instantiate(&mut other, frees),
    );
    facts.fact("clone it", call("cuGraphClone", (&mut other, frees)));
    facts.fact("destroy its node", call("cuGraphDestroyNode", (freed,)));
    facts.fact("upload", call("cuGraphUpload", (exec, stream)));
    facts.attributes("uploaded");
    facts.fact("launch", call("cuGraphLaunch", (exec, stream)));
    facts.attributes("launched");
    let code = call("cuGraphExecDestroy", (exec,));
    facts.fact("destroy the executable graph", code);
    facts.attributes("destroyed");
    facts.fact("trim", call("cuDeviceGraphMemTrim", (0_i32,)));

    facts.line(KEEPS);
    // The high values were as high before: the recording does not tell them apart.
    let keeps = graph();
    let (node, a) = facts.allocate(keeps, &[], 1024);
    let (node, b) = facts.allocate(keeps, &[node], 1024);
    let (_, c) = facts.allocate(keeps, &[node], 1024);
    facts.line(&format!("addresses {a:x} {b:x} {c:x}"));
    let code = instantiate(&mut exec, keeps);
    facts.fact("instantiate", code);
    facts.fact("launch", call("cuGraphLaunch", (exec, stream)));
    facts.attributes("launched");
    facts.fact("launch it again", call("cuGraphLaunch", (exec, stream)));
    facts.fact("cuMemFree one", call("cuMemFree_v2", (a,)));
    facts.fact("cuMemFreeAsync one", call("cuMemFreeAsync", (b, stream)));
    let code = call("cuGraphExecDestroy", (exec,));
    facts.fact("destroy the executable graph", code);
    facts.fact("destroy the graph", call("cuGraphDestroy", (keeps,)));
    facts.fact("cuMemFree the last", call("cuMemFree_v2", (c,)));
    facts.attributes("freed");
    facts.fact("trim", call("cuDeviceGraphMemTrim", (0_i32,)));
    facts.agree(PLAIN, Some(CAPTURES));
    bench.device(0, |device| device.check());
}

#[test]
fn captures_give_the_recorded_codes() {
    let (_bench, mut f, stream, other) = facts();
    let (mut event, mut unrecorded, mut plain, mut pool, mut taken) = (0_u64, 0, 0_u64, 0_u64, 0);
    ok("cuEventCreate", (&mut event, 2_u32));
    ok("cuEventCreate", (&mut unrecorded, 2_u32));
    f.line(CAPTURES);
    ok("cuMemAlloc_v2", (&mut plain, 1024_usize));
    ok("cuMemAllocAsync", (&mut pool, 1024_usize, stream));
    ok("cuStreamSynchronize", (stream,));
    ok("cuEventRecord", (event, other));
    ok("cuStreamSynchronize", (other,));
    let wait = |stream: u64, event: u64| call("cuStreamWaitEvent", (stream, event, 0_u32));
    f.capture(
        0,
        "wait for an event that was never recorded",
        stream,
        || wait(stream, unrecorded),
    );
    f.capture(0, "wait for an event recorded outside", stream, || {
        wait(stream, event)
    });
    f.capture(0, "free pool memory of before", stream, || {
        call("cuMemFreeAsync", (pool, stream))
    });
    f.capture(0, "allocate 0 bytes", stream, || {
        call("cuMemAllocAsync", (&mut taken, 0_usize, stream))
    });
    f.capture(0, "launch with a grid of 0", stream, || {
        launch_nothing(stream)
    });
    f.capture(0, "cuMemAlloc, global mode", stream, || {
        call("cuMemAlloc_v2", (&mut taken, 1024_usize))
    });
    f.capture(0, "cuMemFree, global mode", stream, || {
        call("cuMemFree_v2", (plain,))
    });
    f.capture(0, "synchronise the stream", stream, || {
        call("cuStreamSynchronize", (stream,))
    });
    f.capture(2, "synchronise the context, relaxed", stream, || {
        call_plain("cuCtxSynchronize")
    });
    f.capture(0, "begin again", stream, || {
        call("cuStreamBeginCapture_v2", (stream, 0_u32))
    });
    ok("cuStreamBeginCapture_v2", (stream, 2_u32));
    ok("cuEventRecord", (event, stream));
    ok("cuStreamEndCapture", (stream, &mut 0_u64));
    f.fact(
        "wait for an event of a capture that has ended",
        wait(other, event),
    );
    f.fact("query it", call("cuEventQuery", (event,)));
    let code = call("cuStreamEndCapture", (stream, &mut 0_u64));
    f.fact("end where nothing is captured", code);
    f.agree(CAPTURES, None);
}

/// A launch of no function, with a grid of 0.
fn launch_nothing(stream: u64) -> i32 {
    crate::sim_driver::testing::call!("cuLaunchKernel"(
        0 => u64, 0 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        stream => u64, 0 => u64, 0 => u64
    ))
}

#[test]
fn variables_of_modules_take_what_was_recorded() {
    let (_bench, mut facts, ..) = facts();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let entry = ".visible .entry f() { ret; }\n\0";
    let plain = format!("{head}{entry}");
    let table = format!("{head}.visible .global .align 4 .b8 table[1048576];\n{entry}");
    let mut module = 0_u64;
    let mut load = |text: &str| call("cuModuleLoadData", (&mut module, text.as_ptr()));
    facts.line(MODULES);
    facts.fact("load a module without variables", load(&plain));
    facts.fact("load it once more", load(&plain));
    facts.fact("load one with a variable of 1 MiB", load(&table));
    facts.fact("unload that", call("cuModuleUnload", (module,)));
    let code = call("cuModuleLoadData", (&mut module, c"hello".as_ptr()));
    facts.fact("load text", code);
    facts.agree(MODULES, Some(PLAIN));
}
