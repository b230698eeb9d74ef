//! What is issued on streams, and when it is done.

use super::OnStream;
use super::callbacks::HostCall;
use super::host_functions::Place;
use super::value_ops::ValueWrite;
use crate::sim_driver::capture;
use crate::sim_driver::copies::{Copy, Fill};
use crate::sim_driver::export::Answer;
use crate::sim_driver::graphs::Run;

/// Something that a stream does; it can be kept and done again. What the call itself would be
/// refused for was found before.
#[derive(Clone, Debug)]
pub(in crate::sim_driver) enum Work {
    Copy(Copy),
    Fill(Fill),
    /// A function of the program.
    Call(HostCall),
    Write(ValueWrite),
    /// A graph.
    Graph(Run),
}

impl Work {
    fn run(&self) -> Answer {
        match self {
            Self::Copy(copy) => copy.run(),
            Self::Fill(fill) => fill.run(),
            Self::Call(call) => {
                call.run();
                Ok(())
            }
            Self::Write(write) => write.run(),
            Self::Graph(run) => run.run(),
        }
    }
}

impl OnStream {
    pub(super) fn place(&self) -> Place {
        let is_blocking = self.is_legacy() || {
            let tables = self.host.state.tables();
            let stream = tables.streams.get(self.handle);
            stream.is_ok_and(|stream| stream.flags & super::NON_BLOCKING == 0)
        };
        Place {
            ordinal: self.ordinal,
            stream: self.id,
            is_blocking,
        }
    }

    /// Whether something of the program's runs in the stream, or is to run, that what is issued
    /// now must follow.
    fn is_behind_host_function(&self) -> bool {
        let (ordinal, id, legacy) = (self.ordinal, self.id, self.is_legacy());
        self.host.state.host_functions.has(|place| {
            place.ordinal == ordinal && (place.stream == id || (legacy && place.is_blocking))
        })
    }
}

/// Issues work on a stream: kept if the stream is captured, done when its turn comes.
pub(in crate::sim_driver) fn issue(stream: OnStream, work: Work) -> Answer {
    if let Some(id) = stream.capture {
        return capture::keep(id, stream, work);
    }
    stream.device(|device| device.issue_work(stream.id));
    if stream.is_behind_host_function() {
        let (work, bytes) = match work {
            Work::Copy(copy) => match copy.staged()? {
                Some((copy, bytes)) => (Work::Copy(copy), bytes),
                None => {
                    super::wait::wait_for(stream.host, stream.ordinal, stream.id);
                    return copy.run();
                }
            },
            other => (other, Vec::new()),
        };
        let place = stream.place();
        stream.host.state.host_functions.add(place, move || {
            // The call has returned: as with the driver's own, nobody hears of a late failure.
            let _ = work.run();
            drop(bytes);
        });
        return Ok(());
    }
    work.run()
}

/// Does work that the caller waits for: it takes its turn in a stream and is done on return.
pub(in crate::sim_driver) fn issue_at_once(stream: OnStream, work: &Work) -> Answer {
    stream.outside_capture()?;
    stream.device(|device| device.issue_work(stream.id));
    super::wait::wait_for(stream.host, stream.ordinal, stream.id);
    work.run()
}
