//! Launching executable graphs.

use std::sync::Arc;

use super::exec::{AUTO_FREE, Exec, exec};
use super::memory::{self, Block, Span};
use super::{Graph, Operation, graph};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::Host;
use crate::sim_driver::copies::{Copy, Fill};
use crate::sim_driver::export::Answer;
use crate::sim_driver::launch::{self, Arguments};
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::{
    HostCall, OnStream, ValueWrite, Work, issue, issue_calls, record, resolve, wait_on_stream,
};

/// What a launch of a graph does, in its order.
#[derive(Clone, Debug)]
pub(in crate::sim_driver) struct Run {
    /// The graph that it is of.
    graph: Handle,
    steps: Arc<[Step]>,
}

#[derive(Debug)]
enum Step {
    Kernel(Arguments),
    Copy(Copy),
    Fill(Fill),
    Call(HostCall),
    Write(ValueWrite),
    Wait(Handle),
    Record(Handle),
    Allocate(Arc<Block>),
    Free(DevicePtr),
    /// Taken apart into its own steps.
    Child(Handle),
}

/// Adds the steps of a graph.
fn collect(handle: Handle, order: &[Handle], steps: &mut Vec<Step>) -> Answer {
    let graph = graph(handle)?;
    for node in order {
        let step = match lock(&graph).operation(*node)? {
            Operation::Kernel(launch, _) => Step::Kernel(launch.arguments.clone()),
            Operation::LibraryKernel => Step::Kernel(Arguments::Unknown),
            Operation::Copy(copy) => Step::Copy(copy.1),
            Operation::Fill(fill) => Step::Fill(*fill),
            Operation::Call(call) => Step::Call(*call),
            Operation::Write(write) => Step::Write(*write),
            Operation::WaitEvent(event) => Step::Wait(*event),
            Operation::RecordEvent(event) => Step::Record(*event),
            Operation::Allocate(block, _) => Step::Allocate(block.clone()),
            Operation::Free(address) => Step::Free(*address),
            Operation::Empty => continue,
            Operation::Child(child) => Step::Child(*child),
        };
        if let Step::Child(child) = step {
            let order = lock(&*super::graph(child)?).in_order()?;
            collect(child, &order, steps)?;
        } else {
            steps.push(step);
        }
    }
    Ok(())
}

impl Run {
    fn of(exec: &Exec) -> Result<Self, Status> {
        let enabled: Vec<Handle> = {
            let disabled = lock(&exec.disabled);
            exec.order
                .iter()
                .copied()
                .filter(|node| !disabled.contains(node))
                .collect()
        };
        let mut steps = Vec::new();
        collect(exec.graph, &enabled, &mut steps)?;
        Ok(Self {
            graph: exec.graph,
            steps: steps.into(),
        })
    }

    /// A graph that does the same, as part of another.
    pub(in crate::sim_driver) fn to_graph(&self) -> Handle {
        let clone = Graph::duplicate(self.graph);
        Graph::adopt(clone);
        clone
    }

    /// Does what acts on bytes and calls the program's functions; on any thread, with nothing
    /// locked.
    pub(in crate::sim_driver) fn run(&self) -> Answer {
        self.steps.iter().try_for_each(|step| match step {
            Step::Copy(copy) => copy.run(),
            Step::Fill(fill) => fill.run(),
            Step::Write(write) => write.run(),
            Step::Call(call) => {
                call.run();
                Ok(())
            }
            Step::Kernel(_)
            | Step::Wait(_)
            | Step::Record(_)
            | Step::Allocate(_)
            | Step::Free(_)
            | Step::Child(_) => Ok(()),
        })
    }

    /// Takes account of what its kernels may write, and counts them.
    fn touch(&self, host: &Host) -> Result<u64, Status> {
        let mut kernels = 0;
        for step in self.steps.iter() {
            if let Step::Kernel(arguments) = step {
                arguments.touch(host)?;
                kernels += 1;
            }
        }
        Ok(kernels)
    }

    fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Call(_)))
    }

    /// Finds out whether its memory can be allocated and freed as it says.
    fn check_memory(&self, frees_first: bool) -> Answer {
        let mut live: Vec<(DevicePtr, bool)> = Vec::new();
        let now = |live: &[(DevicePtr, bool)], address: DevicePtr, fresh: bool| {
            let known = live.iter().rev().find(|(other, _)| *other == address);
            known.map_or(fresh, |(_, is_live)| *is_live)
        };
        for step in self.steps.iter() {
            match step {
                Step::Allocate(block) => {
                    let address = block.address();
                    let before = memory::is_live(address) == Some(true) && !frees_first;
                    if now(&live, address, before) {
                        return Err(Status::INVALID_VALUE);
                    }
                    live.push((address, true));
                }
                Step::Free(address) => {
                    let before = memory::is_live(*address) == Some(true);
                    if !now(&live, *address, before) {
                        return Err(Status::INVALID_VALUE);
                    }
                    live.push((*address, false));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Allocates and frees.
    fn change_memory(&self, frees_first: bool) -> Answer {
        if frees_first {
            for step in self.steps.iter() {
                if let Step::Allocate(block) = step
                    && memory::is_live(block.address()) == Some(true)
                {
                    let _ = memory::free(block.address());
                }
            }
        }
        for step in self.steps.iter() {
            match step {
                Step::Allocate(block) => memory::allocate(block)?,
                Step::Free(address) => {
                    let _ = memory::free(*address); // checked before
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Backs the memory of an executable graph, on each device that it has some of.
fn back(exec: &Exec) -> Answer {
    let mut spans = exec.spans()?;
    while let Some(first) = spans.first() {
        let ordinal = first.ordinal();
        let is_own = |span: &Arc<Span>| span.ordinal() == ordinal;
        let (own, others): (Vec<_>, Vec<_>) = spans.into_iter().partition(is_own);
        memory::back(ordinal, &own)?;
        spans = others;
    }
    Ok(())
}

/// Makes an executable graph ready to be launched.
pub(super) fn upload(handle: Handle, _stream: OnStream) -> Answer {
    back(&*exec(handle)?)
}

fn launch_graph(handle: Handle, stream: OnStream) -> Answer {
    let exec = exec(handle)?;
    let run = Run::of(&exec)?;
    if stream.capture.is_some() {
        if run
            .steps
            .iter()
            .any(|step| matches!(step, Step::Allocate(_) | Step::Free(_)))
        {
            return Err(Status::NOT_SUPPORTED);
        }
        return issue(stream, Work::Graph(run));
    }
    let frees_first = exec.flags & AUTO_FREE != 0;
    run.check_memory(frees_first)?;
    let kernels = run.touch(stream.host)?;
    back(&exec)?;
    run.change_memory(frees_first)?;
    for step in run.steps.iter() {
        if let Step::Wait(event) = step {
            wait_on_stream(stream, *event, 0)?;
        }
    }
    launch::count(kernels);
    let steps = run.steps.clone();
    if run.has_calls() {
        issue_calls(stream, run);
    } else {
        issue(stream, Work::Graph(run))?;
    }
    for step in steps.iter() {
        if let Step::Record(event) = step {
            record(stream, *event)?;
        }
    }
    Ok(())
}

stream_functions! { null:
    fn cuGraphLaunch, cuGraphLaunch_ptsz(exec: Handle, stream: Handle) {
        launch_graph(exec, resolve(stream, null)?)
    }

    fn cuGraphUpload, cuGraphUpload_ptsz(exec: Handle, stream: Handle) {
        upload(exec, resolve(stream, null)?)
    }
}
