//! What the rows of a pool's recording stand for.

use gpumem_test::{Address, DeviceMemory, StreamId};

use super::{Replay, Row};
use crate::driver::value;

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: u64 = 600;

impl Replay<'_> {
    /// Does what a row says and returns its value; rows without one keep what was recorded.
    pub(super) fn apply(&mut self, index: usize, row: &Row) -> Result<u64, String> {
        let (op, id, size, stream_index, recorded) = (row.0.as_str(), row.1, row.2, row.3, row.4);
        let stream = *self.streams.get(stream_index).ok_or("no such stream")?;
        let refused = |refusal| format!("{refusal:?}");
        let fence = self
            .fences
            .get(&id)
            .copied()
            .ok_or_else(|| format!("no event {id}"));
        let device = &mut *self.device;
        match op {
            "a" | "o" => {
                if op == "a" && size > 0 && !self.is_placed {
                    device
                        .set_pool_base(self.pool, Address(recorded))
                        .map_err(refused)?;
                    self.is_placed = true;
                }
                let outcome = self.server.ordered(device, self.pool, size, stream);
                if let Ok(given) = outcome {
                    self.blocks.insert(id, (given, stream_index));
                }
                return Ok(value(outcome.map(|given| given.address)));
            }
            "f" | "F" => {
                let (given, _) = self.blocks.remove(&id).ok_or("no such block")?;
                if op == "F" {
                    self.server.free(device, given)?;
                } else {
                    self.server.free_ordered(device, given, stream)?;
                }
            }
            "m" | "M" => {
                let outcome = device.malloc(size);
                if let Ok(address) = outcome {
                    self.plain.insert(id, address);
                }
                // Only one address a case is fed, the pool's: of a plain block it counts that
                // there is one.
                return Ok(if outcome.is_ok() && op == "m" {
                    recorded
                } else {
                    value(outcome)
                });
            }
            "x" => {
                let address = self.plain.remove(&id).ok_or("no such plain block")?;
                device.free(address).map_err(refused)?;
            }
            "s" => device.synchronize_stream(stream).map_err(refused)?,
            "c" => device.synchronize(),
            "q" => return device.query_stream(stream).map(code).map_err(refused),
            "e" => {
                let fence = *self
                    .fences
                    .entry(id)
                    .or_insert_with(|| device.create_fence());
                device.record_fence(fence, stream).map_err(refused)?;
            }
            "w" => device.stream_wait(stream, fence?).map_err(refused)?,
            "E" => device.synchronize_fence(fence?).map_err(refused)?,
            "Q" => return device.query_fence(fence?).map(code).map_err(refused),
            "t" => device.trim_pool(self.pool, size).map_err(refused)?,
            "T" => device
                .set_release_threshold(self.pool, size)
                .map_err(refused)?,
            "P" => self.set_reuse(id, size != 0)?,
            "d" | "h" | "S" => device.issue_work(StreamId::DEFAULT),
            "D" | "H" | "A" => device.issue_work(stream),
            "B" => {
                let function = device.launch_host_function(stream);
                self.functions.insert(stream_index, function);
                if let Some(delay) = self.delays.next() {
                    self.due.push((index + 1 + delay, function));
                } else {
                    device.show_host_function(function);
                }
            }
            "U" => {
                let function = self
                    .functions
                    .get(&stream_index)
                    .ok_or("no host function")?;
                device.finish_host_function(*function);
            }
            "X" => device.destroy_stream(stream).map_err(refused)?,
            "Y" => self.streams[stream_index] = device.create_stream(self.kind),
            "n" | "z" => {}
            _ => return Err("unknown operation".to_owned()),
        }
        Ok(recorded)
    }

    fn set_reuse(&mut self, attribute: u64, on: bool) -> Result<(), String> {
        let mut reuse = self
            .device
            .reuse(self.pool)
            .map_err(|refusal| format!("{refusal:?}"))?;
        match attribute {
            1 => reuse.follow_events = on,
            2 => reuse.opportunistic = on,
            3 => reuse.internal_dependencies = on,
            _ => return Err(format!("no reuse attribute {attribute}")),
        }
        self.device
            .set_reuse(self.pool, reuse)
            .map_err(|refusal| format!("{refusal:?}"))
    }
}

/// What a query returned, as the driver's code.
fn code(complete: bool) -> u64 {
    if complete { 0 } else { NOT_READY }
}
