//! A ledger read back.

use crate::event::Event;
use crate::ids::TextId;

/// The events of a ledger, in order, and the texts they name.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Events that did not fit; figures of a recording that lost some are too low.
    pub lost: u64,
    texts: Vec<String>,
}

impl Recording {
    pub(super) fn empty(lost: u64) -> Self {
        Self {
            events: Vec::new(),
            lost,
            texts: vec![String::new()],
        }
    }

    pub(super) fn put_text(&mut self, id: TextId, bytes: &[u8]) {
        let index = id.0 as usize;
        if self.texts.len() <= index {
            self.texts.resize(index + 1, String::new());
        }
        self.texts[index] = String::from_utf8_lossy(bytes).into_owned();
    }

    /// A recording of events and texts made elsewhere; `texts[0]` is the unknown text.
    pub fn new(events: Vec<Event>, texts: Vec<String>) -> Self {
        Self {
            events,
            lost: 0,
            texts,
        }
    }

    /// The text of an id; empty for an unknown one.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }
}
