//! A ledger read back.

use std::collections::{BTreeMap, HashMap};

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
    /// Frames of call sites, innermost first: a module's text and an offset in it.
    frames: BTreeMap<TextId, Vec<(TextId, u64)>>,
}

impl Recording {
    pub(super) fn empty(lost: u64) -> Self {
        Self {
            events: Vec::new(),
            lost,
            texts: vec![String::new()],
            frames: BTreeMap::new(),
        }
    }

    pub(super) fn put_text(&mut self, id: TextId, bytes: &[u8]) {
        self.set_text(id, String::from_utf8_lossy(bytes).into_owned());
    }

    fn set_text(&mut self, id: TextId, text: String) {
        let index = id.0 as usize;
        if self.texts.len() <= index {
            self.texts.resize(index + 1, String::new());
        }
        self.texts[index] = text;
    }

    pub(super) fn put_frames(&mut self, id: TextId, frames: Vec<(TextId, u64)>) {
        self.frames.insert(id, frames);
    }

    /// The call sites that are known by their frames.
    pub(crate) fn framed(&self) -> impl Iterator<Item = TextId> {
        self.frames.keys().copied()
    }

    /// The frames of a call site, innermost first: a module's text and an offset in it. Empty for
    /// any other text.
    pub(crate) fn frames(&self, id: TextId) -> &[(TextId, u64)] {
        self.frames.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Gives call sites names for the time being: each stays a site of its own.
    pub(crate) fn label_sites(&mut self, labels: Vec<(TextId, String)>) {
        for (id, label) in labels {
            self.set_text(id, label);
        }
    }

    /// Gives call sites their names. Events of sites with one name are then of one site.
    pub(crate) fn name_sites(&mut self, names: Vec<(TextId, String)>) {
        let mut by_name: HashMap<String, TextId> = HashMap::new();
        for (index, text) in self.texts.iter().enumerate().skip(1) {
            let id = TextId(index as u32);
            if !self.frames.contains_key(&id) {
                by_name.entry(text.clone()).or_insert(id);
            }
        }
        let mut site_of: HashMap<TextId, TextId> = HashMap::new();
        for (id, name) in names {
            let first = *by_name.entry(name.clone()).or_insert(id);
            site_of.insert(id, first);
            self.set_text(id, name);
        }
        for event in &mut self.events {
            if let Some(site) = site_of.get(&event.site) {
                event.site = *site;
            }
        }
    }

    /// A recording of events and texts made elsewhere; `texts[0]` is the unknown text.
    pub fn new(events: Vec<Event>, texts: Vec<String>) -> Self {
        Self {
            events,
            lost: 0,
            texts,
            frames: BTreeMap::new(),
        }
    }

    /// The text of an id; empty for an unknown one.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }
}
