//! The best-fit with coalescing allocator against recordings of the original and of JAX.

mod device;
mod extra;
mod jax;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use gpumem_test::{BfcAttributes, BfcOptions, BfcPolicy, Block, Policy, Request, StreamId};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use device::FakeDevice;
pub(crate) use extra::extra;
pub(crate) use jax::jax;

/// The lines of a compressed recording.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    (1..)
        .zip(BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines())
        .filter(|(_, line)| line.as_ref().map_or(true, |line| !line.trim().is_empty()))
        .map(|(number, line)| {
            let line = line.map_err(|error| error.to_string())?;
            serde_json::from_str(&line).map_err(|error| format!("line {number}: {error}"))
        })
        .collect()
}

/// A pool under a recording: blocks by the recording's keys.
struct Pool {
    policy: BfcPolicy,
    device: FakeDevice,
    held: HashMap<u64, Block>,
}

impl Pool {
    fn new(options: BfcOptions, device: FakeDevice) -> Self {
        Self {
            policy: BfcPolicy::new(options),
            device,
            held: HashMap::new(),
        }
    }

    /// The address that a request gets; none for 0 bytes and when memory ran out.
    fn alloc(&mut self, key: u64, size: u64, alignment: u64) -> Result<Option<u64>, String> {
        let request = Request::new(size, StreamId::DEFAULT);
        let attributes = BfcAttributes {
            alignment,
            ..BfcAttributes::default()
        };
        let served = self
            .policy
            .alloc_with(&mut self.device, &mut (), request, attributes);
        match served {
            Ok(block) => {
                self.held.insert(key, block);
                Ok((block != Block::NULL).then_some(block.address.0))
            }
            Err(error) if error.is_out_of_memory() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn free(&mut self, key: u64) -> Result<(), String> {
        let block = (self.held.remove(&key)).ok_or_else(|| format!("{key} is not held"))?;
        self.policy
            .free(&mut self.device, &mut (), block.id, StreamId::DEFAULT)
            .map_err(|error| error.to_string())
    }

    /// The figures that a recording names, in its order.
    fn figures(&self, keys: &[String]) -> Result<Vec<u64>, String> {
        keys.iter().map(|key| self.figure(key)).collect()
    }

    fn figure(&self, key: &str) -> Result<u64, String> {
        let stats = self.policy.stats();
        Ok(match key {
            "num_allocs" => stats.num_allocs,
            "bytes_in_use" => stats.bytes_in_use,
            "peak_bytes_in_use" => stats.peak_bytes_in_use,
            "largest_alloc_size" => stats.largest_alloc_size,
            "bytes_limit" => stats.bytes_limit,
            "pool_bytes" => stats.pool_bytes,
            "peak_pool_bytes" => stats.peak_pool_bytes,
            "largest_free_block_bytes" => stats.largest_free_block_bytes,
            "bytes_reserved" => stats.bytes_reserved,
            "peak_bytes_reserved" => stats.peak_bytes_reserved,
            "peak_allocated_bytes" => stats.peak_allocated_bytes,
            "regions" => self.policy.region_count() as u64,
            "next_region" => self.policy.next_region(),
            "sub_used" => self.device.used(),
            other => return Err(format!("unknown statistic `{other}`")),
        })
    }
}

/// One operation of a recording: its letter, and what stands at the other places.
struct Row<'a>(&'a [Value]);

impl Row<'_> {
    fn operation(&self) -> &str {
        self.0.first().and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, place: usize) -> Result<u64, String> {
        let number = self.0.get(place).and_then(Value::as_u64);
        number.ok_or_else(|| format!("no number at place {place} of {:?}", self.0))
    }

    /// A number, or none where the recording has null.
    fn maybe(&self, place: usize) -> Result<Option<u64>, String> {
        match self.0.get(place) {
            Some(Value::Null) => Ok(None),
            _ => self.number(place).map(Some),
        }
    }

    /// The numbers from a place on.
    fn numbers_from(&self, place: usize) -> Result<Vec<u64>, String> {
        (place..self.0.len())
            .map(|place| self.number(place))
            .collect()
    }
}
