//! Which of the device's allocators serves a request.

use super::{CHUNK, PAGE, UNIT};
use crate::event::Origin;

/// Where a policy of this room sends requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    /// `driver`: where the code sent them.
    #[default]
    AsAsked,
    /// `eager`: to plain memory.
    Plain,
    /// `async`: to the stream-ordered pool.
    Pool,
    /// `lazy`: to plain memory whose pages come at the first write.
    Lazy,
}

impl Route {
    /// The allocator that serves a request which `origin` made.
    #[inline]
    pub(super) fn of(self, origin: Origin) -> Allocator {
        match (self, origin) {
            (Self::AsAsked, Origin::Plain) | (Self::Plain, _) => Allocator::Plain,
            (Self::AsAsked, Origin::StreamOrdered) | (Self::Pool, _) => Allocator::Pool,
            (Self::Lazy, _) => Allocator::Lazy,
        }
    }
}

/// An allocator of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocator {
    /// `cuMemAlloc`.
    Plain,
    /// `cuMemAllocAsync`.
    Pool,
    /// Plain memory whose pages come at the first write.
    Lazy,
}

impl Allocator {
    /// Bytes that a request of `size` takes there.
    #[inline]
    pub(super) fn rounded(self, size: u64) -> u64 {
        let units = size.checked_next_multiple_of(UNIT).unwrap_or(u64::MAX);
        if self != Self::Pool && units >= PAGE {
            size.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
        } else {
            units
        }
    }

    /// The bytes that it takes from the device at a time.
    pub(super) fn portion(self) -> u64 {
        match self {
            Self::Plain | Self::Lazy => PAGE,
            Self::Pool => CHUNK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocator, PAGE};

    #[test]
    fn a_request_takes_units_or_whole_pages_and_never_wraps() {
        for (size, plain, pool) in [
            (1, 512, 512),
            (PAGE - 512, PAGE - 512, PAGE - 512),
            (PAGE - 511, PAGE, PAGE),
            (PAGE + 1, 2 * PAGE, PAGE + 512),
            (u64::MAX, u64::MAX, u64::MAX),
        ] {
            assert_eq!(Allocator::Plain.rounded(size), plain);
            assert_eq!(Allocator::Lazy.rounded(size), plain);
            assert_eq!(Allocator::Pool.rounded(size), pool);
        }
    }
}
