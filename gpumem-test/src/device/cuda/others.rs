//! What other processes hold of the card.
//!
//! Two sources. Neighbours that the test declared say themselves what was gone from the card when
//! they had taken their share, before this process had a context. Of all others NVML says what the
//! whole card and what this process holds; where it does not know this process, nothing is known.

use std::sync::OnceLock;

use super::nvml::Nvml;

/// By how much NVML's figures may make others look larger than they are, in bytes: a context's
/// figure for its process is less than what the context takes of the card.
///
/// Source: driver 580.159 on an H200: 9 240 576 for a context; several times that, since libraries
/// take memory too, and since what is claimed of others must be true.
const DOUBT: u64 = 64 << 20;

/// Who else is on the card.
#[derive(Debug, Default)]
pub(super) struct Others {
    declared: Option<Declared>,
    /// Loaded when a request has failed, and not before. `None` in it where that failed.
    nvml: OnceLock<Option<Nvml>>,
}

/// What declared neighbours hold, in bytes.
#[derive(Clone, Copy, Debug)]
struct Declared {
    /// Gone from the card when the last one had taken its share.
    gone: u64,
    /// What of it counts where another card's figures are shown.
    shown: u64,
}

impl Others {
    pub(super) fn declare(&mut self, gone: u64, shown: u64) {
        self.declared = Some(Declared { gone, shown });
    }

    /// What counts where another card's figures are shown.
    pub(super) fn shown(&self) -> u64 {
        self.declared.map_or(0, |declared| declared.shown)
    }

    /// Bytes that others hold, on the card of that identity, of which this process holds at least
    /// `own`.
    pub(super) fn held(&self, card: [u8; 16], own: u64) -> Option<u64> {
        if let Some(declared) = self.declared {
            return Some(declared.gone);
        }
        let nvml = self.nvml.get_or_init(|| Nvml::open(card).ok()).as_ref()?;
        Some(beside(nvml.card()?.used, nvml.process(own)?))
    }
}

/// What others hold of `used` bytes where this process has `process`, if in doubt less.
fn beside(used: u64, process: u64) -> u64 {
    used.saturating_sub(process).saturating_sub(DOUBT)
}

#[cfg(test)]
mod tests {
    use super::{Others, beside};

    #[test]
    fn neighbours_are_believed() {
        let mut others = Others::default();
        others.declare(10 << 30, 9 << 30);
        assert_eq!(others.held([0; 16], 0), Some(10 << 30));
        assert_eq!(others.shown(), 9 << 30);
    }

    /// An H200 with one context on it, as cuMemGetInfo and NVML say it.
    #[test]
    fn a_process_alone_on_its_card_has_no_others() {
        assert_eq!(beside(552_402_944, 543_162_368), 0);
        let other = 4 << 30;
        let said = beside(552_402_944 + other, 543_162_368);
        assert!((other - (64 << 20)..=other).contains(&said), "{said}");
    }
}
