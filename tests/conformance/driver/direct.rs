//! `direct*`: rows `[op, id, size, address, device bytes]` of `cuMemAlloc` and `cuMemFree`.

use std::collections::BTreeMap;
use std::path::Path;

use gpumem_test::{Address, DeviceMemory, DeviceProfile, SimDevice};
use serde::Deserialize;

use super::server::{Given, Server};
use super::{Tally, cases, value};
use crate::case::CaseResult;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    kind: String,
    ops: Vec<Row>,
}

/// Op, id, size, address, device bytes.
type Row = (String, u64, u64, u64, u64);

/// Replays a file: its cases ran in one process, in order.
pub(crate) fn direct(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_all(path, Server::Device)
}

/// The same where `eager` serves, asked for stream-ordered memory.
pub(crate) fn direct_under_eager(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_all(path, Server::eager())
}

fn replay_all(path: &Path, mut server: Server) -> Result<Vec<CaseResult>, String> {
    let cases: Vec<Case> = cases(path)?;
    let mut device = SimDevice::new(DeviceProfile::h200());
    if let Some(base) = first_base(&cases)? {
        device
            .set_direct_base(base)
            .map_err(|refusal| format!("{refusal:?}"))?;
    }
    cases
        .iter()
        .enumerate()
        .map(|(index, case)| replay(&mut device, &mut server, index, case))
        .collect()
}

/// The base with which the process's first allocation gets its recorded address.
fn first_base(cases: &[Case]) -> Result<Option<Address>, String> {
    let mut rows = cases.iter().flat_map(|case| &case.ops);
    let Some((_, _, size, address, _)) = rows.find(|row| row.0 == "a") else {
        return Ok(None);
    };
    let mut trial = SimDevice::new(DeviceProfile::h200());
    let base = trial.direct_base();
    let came = trial
        .malloc(*size)
        .map_err(|refusal| format!("first allocation: {refusal:?}"))?;
    Ok(Some(Address(
        address.wrapping_sub(came.0).wrapping_add(base.0),
    )))
}

fn replay(
    device: &mut SimDevice,
    server: &mut Server,
    index: usize,
    case: &Case,
) -> Result<CaseResult, String> {
    let name = case
        .name
        .clone()
        .unwrap_or_else(|| format!("{index} {}", case.kind));
    let mut tally = Tally::new(name);
    let mut live: BTreeMap<u64, Given> = BTreeMap::new();
    let start = device.used();
    for row in &case.ops {
        let (op, id, size, recorded, bytes) = row;
        let came = match op.as_str() {
            "a" | "o" => {
                let outcome = server.plain(device, *size);
                if let Ok(given) = outcome {
                    live.insert(*id, given);
                }
                value(outcome.map(|given| given.address))
            }
            "f" => {
                let given = live.remove(id).ok_or(format!("{row:?}: no such block"))?;
                server
                    .free(device, given)
                    .map_err(|error| format!("{row:?}: {error}"))?;
                *recorded
            }
            _ => return Err(format!("{row:?}: unknown operation")),
        };
        tally.step(row, &(*recorded, *bytes), &(came, device.used() - start));
    }
    device.check();
    for (_, given) in live {
        server
            .free(device, given)
            .map_err(|error| format!("end of case: {error}"))?;
    }
    Ok(tally.result)
}
