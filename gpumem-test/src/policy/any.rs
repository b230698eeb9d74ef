//! Any of the policies, chosen by name. An enum, so that the hot path has no virtual call.

use crate::config::{Card, PolicyKind, PolicySpec};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventSink, Extent};
use crate::ids::{BlockId, StreamId};

use super::bfc::{BfcConfig, BfcFramework, BfcPolicy};
use super::caching::{CachingConfig, CachingPolicy, MemoryLimits};
use super::driver::{DriverPolicy, Route, parse_pool};
use super::{Block, HeapMap, Policy, Request, Statistics};

/// One of the policies.
pub enum AnyPolicy {
    /// `driver`, `eager`, `async`, `lazy`.
    Driver(Box<DriverPolicy>),
    /// `caching`.
    Caching(Box<CachingPolicy>),
    /// `bfc`, `tensorflow` and `xla`.
    Bfc(Box<BfcPolicy>),
}

macro_rules! each {
    ($policy:expr, $name:ident => $call:expr) => {
        match $policy {
            AnyPolicy::Driver($name) => $call,
            AnyPolicy::Caching($name) => $call,
            AnyPolicy::Bfc($name) => $call,
        }
    };
}

impl AnyPolicy {
    /// The policy that `spec` names, on `card`.
    ///
    /// # Errors
    /// If the options do not parse.
    pub fn new(spec: &PolicySpec, card: &Card) -> Result<Self, Error> {
        Ok(match spec.kind {
            PolicyKind::Driver => Self::Driver(Box::default()),
            PolicyKind::Eager => {
                no_options(spec)?;
                Self::Driver(Box::new(DriverPolicy::eager()))
            }
            PolicyKind::Lazy => {
                no_options(spec)?;
                Self::Driver(Box::new(DriverPolicy::lazy()))
            }
            PolicyKind::Async => {
                let pool = parse_pool(&spec.options)?;
                Self::Driver(Box::new(DriverPolicy::stream_ordered(pool)))
            }
            PolicyKind::Caching => {
                let (config, _) = CachingConfig::parse(&spec.options)?;
                Self::Caching(Box::new(CachingPolicy::new(
                    config,
                    MemoryLimits {
                        device_total: card.total,
                        budget: card.budget,
                    },
                )))
            }
            kind @ (PolicyKind::Bfc | PolicyKind::TensorFlow | PolicyKind::Xla) => {
                let (config, _) = BfcConfig::parse(BfcFramework::of(kind), &spec.options)?;
                Self::Bfc(Box::new(BfcPolicy::of(config, card)))
            }
        })
    }

    /// Where a held block is, under a policy whose blocks may be reused across streams.
    pub(crate) fn extent(&self, block: BlockId) -> Option<Extent> {
        match self {
            Self::Bfc(policy) => policy.extent(block),
            _ => None,
        }
    }

    /// Whether memory comes at the first write, so that writes are news to it.
    #[inline]
    pub(crate) fn has_first_writes(&self) -> bool {
        matches!(self, Self::Driver(policy) if policy.route() == Route::Lazy)
    }
}

fn no_options(spec: &PolicySpec) -> Result<(), Error> {
    if spec.options.is_empty() {
        return Ok(());
    }
    let (name, options) = (spec.kind.name(), &spec.options);
    Err(Error::configuration(format!(
        "policy `{name}` has no options, but `{spec}` gives it `{options}`: write `{name}` alone"
    )))
}

/// Checks that the options of a policy parse, and returns what a reader should be warned of.
///
/// # Errors
/// If they do not.
pub(crate) fn check(spec: &PolicySpec) -> Result<Vec<String>, Error> {
    match spec.kind {
        PolicyKind::Driver => Ok(Vec::new()),
        PolicyKind::Eager | PolicyKind::Lazy => no_options(spec).map(|()| Vec::new()),
        PolicyKind::Async => parse_pool(&spec.options).map(|_| Vec::new()),
        PolicyKind::Caching => CachingConfig::parse(&spec.options).map(|(_, warnings)| warnings),
        kind @ (PolicyKind::Bfc | PolicyKind::TensorFlow | PolicyKind::Xla) => {
            let parsed = BfcConfig::parse(BfcFramework::of(kind), &spec.options);
            parsed.map(|(_, warnings)| warnings)
        }
    }
}

/// Whether a policy takes memory with its first request, whatever that asks for, so that it holds a
/// share of the card by being there.
///
/// # Errors
/// If its options do not parse.
pub(crate) fn takes_at_once(spec: &PolicySpec) -> Result<bool, Error> {
    if !spec.kind.is_bfc() {
        return Ok(false);
    }
    let (config, _) = BfcConfig::parse(BfcFramework::of(spec.kind), &spec.options)?;
    Ok(!config.allow_growth)
}

impl Policy for AnyPolicy {
    fn prepare<D: DeviceMemory>(&mut self, device: &mut D) -> Result<(), Error> {
        each!(self, policy => policy.prepare(device))
    }

    #[inline]
    fn alloc<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error> {
        each!(self, policy => policy.alloc(device, events, request))
    }

    #[inline]
    fn free<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        stream: StreamId,
    ) -> Result<(), Error> {
        each!(self, policy => policy.free(device, events, block, stream))
    }

    fn free_idle<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        owner: StreamId,
    ) -> Result<(), Error> {
        each!(self, policy => policy.free_idle(device, events, block, owner))
    }

    fn record_stream(&mut self, block: BlockId, stream: StreamId) -> Result<(), Error> {
        each!(self, policy => policy.record_stream(block, stream))
    }

    fn trim<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error> {
        each!(self, policy => policy.trim(device, events))
    }

    fn device_synchronized<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) {
        each!(self, policy => policy.device_synchronized(device, events));
    }

    fn begin_capture(&mut self, pool: (u64, u64), stream: StreamId) -> Result<(), Error> {
        each!(self, policy => policy.begin_capture(pool, stream))
    }

    fn end_capture(&mut self, pool: (u64, u64)) -> Result<(), Error> {
        each!(self, policy => policy.end_capture(pool))
    }

    fn statistics(&self) -> &Statistics {
        each!(self, policy => policy.statistics())
    }

    fn statistics_mut(&mut self) -> &mut Statistics {
        each!(self, policy => policy.statistics_mut())
    }

    fn heap_map(&self) -> HeapMap {
        each!(self, policy => policy.heap_map())
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        each!(self, policy => policy.settings())
    }
}
