//! From a snapshot to a trace: back from the state at the end to that at the start, then forward
//! from what happened to what the program did.
//!
//! A snapshot has the state at its end only. Undoing the entries one by one gives the state at the
//! start ([`memory`]), in which the length of a block that was freed meanwhile has to be found
//! ([`layout`]). The entries say what the allocator did; the operations that made it do so follow
//! from their order ([`operations`]), and which streams a freed block waited for from the gaps
//! between them ([`queues`]).

mod capture;
mod layout;
mod memory;
mod operations;
mod queues;
#[cfg(test)]
mod tests;

use crate::error::Error;

use super::Trace;
use super::torch_snapshot::TorchSnapshot;
use capture::Captures;
use memory::Memory;

impl TorchSnapshot {
    /// The operations that were recorded on `device`, and the memory in use when they began.
    ///
    /// `None` takes the only device that has any.
    ///
    /// Not recorded, and so not in the trace: the stream of a `record_stream` (a stand-in has its
    /// place), and a call that emptied the cache and found nothing, except where a graph is
    /// captured (PyTorch empties the cache before it).
    ///
    /// # Errors
    /// There is no such device, nothing was recorded, several devices are to choose from, or the
    /// entries do not lead to the state at the end.
    pub fn trace(&self, device: Option<u32>) -> Result<Trace, Error> {
        let device = self.device_or_only(device)?;
        let entries = &self.device_traces[device as usize];
        let mut memory = Memory::at_end(self, device);
        let mut captures = Captures::new(self, device);
        for (index, entry) in entries.iter().enumerate().rev() {
            memory.undo(entry).map_err(|what| {
                self.does_not_fit(format!("device_traces[{device}][{index}] {what}"))
            })?;
            if captures.begins_at(index) {
                captures.note_begin(index, memory.is_trimmed(&self.settings));
            }
        }
        let start = layout::start(&memory, entries, &self.settings)
            .map_err(|what| self.does_not_fit(what))?;
        operations::forward(self, entries, start, &captures).map_err(|what| self.does_not_fit(what))
    }

    fn device_or_only(&self, device: Option<u32>) -> Result<u32, Error> {
        let devices = self.device_traces.len();
        if let Some(device) = device {
            if (device as usize) < devices {
                return Ok(device);
            }
            return Err(Error::recording(format!(
                "snapshot {} has no device {device}, only {devices} of them",
                self.name
            )));
        }
        let used: Vec<usize> = (0..devices)
            .filter(|&device| !self.device_traces[device].is_empty())
            .collect();
        match used[..] {
            [device] => Ok(device as u32),
            [] => Err(Error::recording(format!(
                "snapshot {} has no events, only the state at its end",
                self.name
            ))
            .with_help(
                "call `torch.cuda.memory._record_memory_history()` before the work that you record",
            )),
            _ => Err(Error::recording(format!(
                "snapshot {} has events of devices {used:?}",
                self.name
            ))
            .with_help("choose one: `TorchSnapshot::open(path)?.trace(Some(0))`")),
        }
    }

    fn does_not_fit(&self, what: String) -> Error {
        Error::recording(format!(
            "the events of snapshot {} do not lead to its state at the end: {what}",
            self.name
        ))
        .with_help(
            "take the snapshot while the recording is still on, and pickle it as it is: events of \
             another process or an edited file do not fit",
        )
    }
}
