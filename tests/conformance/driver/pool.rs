//! `pool*`: rows `[op, id, size, stream, value, reserved, reserved high, used, used high, device
//! bytes]` of stream-ordered pools and all that touches them.

mod operations;

use std::collections::BTreeMap;
use std::path::Path;

use gpumem_test::{
    Address, DeviceMemory, DeviceProfile, Fence, HostFunction, PoolId, PoolSettings, ReusePolicy,
    SimDevice, StreamId, StreamKind,
};
use serde::Deserialize;

use super::delays::delays;
use super::server::{Given, Server};
use super::{Tally, cases};
use crate::case::CaseResult;

/// Free device memory at the start of a case, after a small plain block was made.
const FREE_AT_START: u64 = 149_553_283_072;

/// That block.
const FIRST_BLOCK: u64 = 4 << 10;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    threshold: u64,
    streams: usize,
    #[serde(default)]
    max_size: u64,
    #[serde(default)]
    default_pool: u8,
    #[serde(default = "non_blocking")]
    flags: u8,
    #[serde(default)]
    null_stream: u8,
    ops: Vec<Row>,
}

fn non_blocking() -> u8 {
    1
}

/// Op, id, size, stream, value, reserved, reserved high, used, used high, device bytes.
type Row = (String, u64, u64, usize, u64, u64, u64, u64, u64, u64);

/// Value, reserved, reserved high, used, used high, device bytes.
type Figures = (u64, u64, u64, u64, u64, u64);

/// Replays a file: its cases ran in one process, in order.
pub(crate) fn pool(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_all(path, false)
}

/// The same where `async` serves, with the case's threshold and maximum as its options. It has but
/// the default pool: a case with a pool of its own gets a device to itself, whose default pool is
/// that one.
pub(crate) fn pool_under_async(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_all(path, true)
}

fn replay_all(path: &Path, under_async: bool) -> Result<Vec<CaseResult>, String> {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let stem = name
        .as_deref()
        .and_then(|name| name.split('.').next())
        .unwrap_or_default()
        .to_owned();
    let mut device = process()?;
    if stem.starts_with("pool2") || stem.starts_with("pool3") {
        // In the process of these recordings the null stream had a place in the default pool
        // before the streams of all cases; a file need not hold the case that gave it that.
        device
            .join_pool(PoolId::DEFAULT, StreamId::DEFAULT)
            .map_err(|refusal| format!("default pool: {refusal:?}"))?;
    }
    let cases: Vec<Case> = cases(path)?;
    cases
        .iter()
        .enumerate()
        .map(|(index, case)| {
            let name = case
                .name
                .clone()
                .unwrap_or_else(|| format!("{index} {}", case.kind));
            let delays = case
                .name
                .as_deref()
                .map_or(&[][..], |name| delays(&stem, name));
            let mut alone = None;
            let device = match under_async && case.default_pool == 0 {
                true => alone.insert(process()?),
                false => &mut device,
            };
            let server = match under_async {
                true => Server::stream_ordered(PoolSettings {
                    release_threshold: case.threshold,
                    max_size: (case.max_size > 0).then_some(case.max_size),
                }),
                false => Server::Device,
            };
            let mut replay = Replay::start(device, server, case, delays)?;
            replay.first_layout = case.name.is_none();
            let mut tally = Tally::new(name);
            let outcome = case.ops.iter().enumerate().try_for_each(|(index, row)| {
                let rest = &case.ops[index + 1..];
                replay.row(index, row, rest, &mut tally)
            });
            replay
                .end()
                .and(outcome)
                .map_err(|error| format!("{}: {error}", tally.result.name))?;
            device.check();
            Ok(tally.result)
        })
        .collect()
}

/// The device as a recorded process had it before its first case.
fn process() -> Result<SimDevice, String> {
    let profile = DeviceProfile::h200().with_free_after_context(FREE_AT_START + (2 << 20));
    let mut device = SimDevice::new(profile);
    device
        .malloc(FIRST_BLOCK)
        .map_err(|refusal| format!("first block: {refusal:?}"))?;
    Ok(device)
}

/// One case on the process's device.
struct Replay<'a> {
    device: &'a mut SimDevice,
    server: Server,
    pool: PoolId,
    kind: StreamKind,
    streams: Vec<StreamId>,
    /// Blocks of the pool by id, with the stream of their allocation.
    blocks: BTreeMap<u64, (Given, usize)>,
    plain: BTreeMap<u64, Address>,
    fences: BTreeMap<u64, Fence>,
    functions: BTreeMap<usize, HostFunction>,
    delays: std::slice::Iter<'a, usize>,
    /// Host functions whose effect is yet to come, and before which row.
    due: Vec<(usize, HostFunction)>,
    /// Device bytes when the case began.
    start: u64,
    /// Bytes in use that the policy was not told of.
    before: u64,
    is_placed: bool,
    /// Whether this is the layout of `pool`, where the last row stands for the whole end.
    first_layout: bool,
}

impl<'a> Replay<'a> {
    fn start(
        device: &'a mut SimDevice,
        mut server: Server,
        case: &Case,
        delays: &'static [usize],
    ) -> Result<Self, String> {
        let before = device.used();
        // What the case before left to be told is not this one's.
        device.watch_changes(false);
        server.prepare(device)?;
        let pool = match case.default_pool {
            0 if !server.is_policy() => {
                device.create_pool((case.max_size > 0).then_some(case.max_size))
            }
            _ => PoolId::DEFAULT,
        };
        let exists = "the pool exists";
        device
            .set_release_threshold(pool, case.threshold)
            .expect(exists);
        device
            .set_reuse(pool, ReusePolicy::default())
            .expect(exists);
        device.reset_reserved_high(pool).expect(exists);
        device.reset_used_high(pool).expect(exists);
        device.delay_host_functions(!delays.is_empty());
        let kind = if case.flags == 0 {
            StreamKind::Blocking
        } else {
            StreamKind::NonBlocking
        };
        let streams = (0..case.streams)
            .map(|index| match index {
                0 if case.null_stream != 0 => StreamId::DEFAULT,
                _ => device.create_stream(kind),
            })
            .collect();
        let start = device.used();
        Ok(Self {
            device,
            server,
            pool,
            kind,
            streams,
            blocks: BTreeMap::new(),
            plain: BTreeMap::new(),
            fences: BTreeMap::new(),
            functions: BTreeMap::new(),
            delays: delays.iter(),
            due: Vec::new(),
            start,
            before,
            is_placed: false,
            first_layout: false,
        })
    }

    fn row(
        &mut self,
        index: usize,
        row: &Row,
        rest: &[Row],
        tally: &mut Tally,
    ) -> Result<(), String> {
        self.show_due(index, matches!(row.0.as_str(), "U" | "c"));
        let recorded = (row.4, row.5, row.6, row.7, row.8, row.9);
        let outcome = if self.is_end(row, rest) {
            self.finish(row)
        } else {
            self.apply(index, row)
        };
        let came = self.figures(outcome.map_err(|error| format!("row {index} {row:?}: {error}"))?);
        let came = self.with_effect_between_readings(index, came, recorded);
        self.server.hear(self.device);
        let agrees = self.server.agrees(self.device.used() - self.before);
        tally.step(row, &(recorded, true), &(came, agrees));
        Ok(())
    }

    /// Whether a row begins the end of its case, which says less than was done. A case that was
    /// cut short may stop at a row that looks the same: then what is left in use tells.
    fn is_end(&self, row: &Row, rest: &[Row]) -> bool {
        if self.first_layout {
            return row.0 == "s" && rest.is_empty() && row.7 == 0;
        }
        let is_whole = matches!(rest, [wait, trim] if wait.0 == "c" && trim.0 == "t");
        let is_cut =
            matches!(rest, [] | [_]) && rest.iter().all(|row| row.0 == "c") && row.9 == row.5;
        row.0 == "n" && self.blocks.is_empty() && (is_whole || is_cut)
    }

    /// Does the part of the end that has no rows of its own.
    fn finish(&mut self, row: &Row) -> Result<u64, String> {
        if self.first_layout {
            self.free_everything()?;
        } else {
            self.free_plain()?;
        }
        Ok(row.4)
    }

    fn show_due(&mut self, index: usize, all: bool) {
        let (now, later): (Vec<_>, Vec<_>) = self
            .due
            .drain(..)
            .partition(|(row, _)| all || *row <= index);
        self.due = later;
        for (_, function) in now {
            self.device.show_host_function(function);
        }
    }

    /// A host function's effect may come between the reading of the pool's figures and that of
    /// the device: if it is due before the next row and the device bytes alone say so, they are
    /// read after it.
    fn with_effect_between_readings(
        &mut self,
        index: usize,
        came: Figures,
        recorded: Figures,
    ) -> Figures {
        let is_due = self.due.iter().any(|(row, _)| *row == index + 1);
        let mut other = came;
        other.5 = recorded.5;
        if !is_due || came == recorded || other != recorded {
            return came;
        }
        self.show_due(index + 1, false);
        other.5 = self.device.used() - self.start;
        other
    }

    fn figures(&self, value: u64) -> Figures {
        let figures = self
            .device
            .pool_figures(self.pool)
            .expect("the pool exists");
        let bytes = self.device.used() - self.start;
        (
            value,
            figures.reserved,
            figures.reserved_high,
            figures.used,
            figures.used_high,
            bytes,
        )
    }

    /// Frees all blocks in order of id and synchronises every stream.
    fn free_everything(&mut self) -> Result<(), String> {
        for (_, (given, stream)) in std::mem::take(&mut self.blocks) {
            let stream = self.streams[stream];
            let freed = self.server.free_ordered(self.device, given, stream);
            freed.map_err(|error| format!("end of case: {error}"))?;
        }
        for stream in &self.streams {
            // One that was destroyed and not made anew has nothing to wait for.
            let _ = self.device.synchronize_stream(*stream);
        }
        Ok(())
    }

    fn free_plain(&mut self) -> Result<(), String> {
        for (_, address) in std::mem::take(&mut self.plain) {
            let freed = self.device.free(address);
            freed.map_err(|refusal| format!("end of case: {refusal:?}"))?;
        }
        Ok(())
    }

    /// Leaves the process as the recorded one was between two cases.
    fn end(mut self) -> Result<(), String> {
        self.show_due(usize::MAX, true);
        self.free_everything()?;
        self.device.synchronize();
        let refused = |refusal| format!("end of case: {refusal:?}");
        self.free_plain()?;
        self.device.trim_pool(self.pool, 0).map_err(refused)?;
        for stream in self.streams {
            if stream != StreamId::DEFAULT {
                let _ = self.device.destroy_stream(stream);
            }
        }
        for (_, fence) in self.fences {
            self.device.destroy_fence(fence).map_err(refused)?;
        }
        if self.pool != PoolId::DEFAULT {
            self.device.destroy_pool(self.pool).map_err(refused)?;
        }
        Ok(())
    }
}
