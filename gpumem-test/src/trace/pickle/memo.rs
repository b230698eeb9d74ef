//! The memo: values by number.

use rustc_hash::FxHashMap;

use super::value::Value;

/// Values by number.
///
/// Picklers count from 0, so those are a plain list; a number out of turn, which may be as large
/// as four billion, only costs its own entry.
#[derive(Default)]
pub(super) struct Memo {
    in_turn: Vec<Value>,
    out_of_turn: FxHashMap<u64, Value>,
}

impl Memo {
    pub(super) fn get(&self, number: u64) -> Option<Value> {
        match self.in_turn.get(usize::try_from(number).ok()?) {
            Some(value) => Some(*value),
            None => self.out_of_turn.get(&number).copied(),
        }
    }

    pub(super) fn put(&mut self, number: u64, value: Value) {
        let length = self.in_turn.len() as u64;
        if number < length {
            self.in_turn[number as usize] = value;
        } else if number == length {
            self.in_turn.push(value);
        } else {
            self.out_of_turn.insert(number, value);
        }
    }

    /// Puts a value at the next number.
    ///
    /// Source: CPython's `MEMOIZE` takes the number of entries. It is used alone, in turn.
    pub(super) fn memoize(&mut self, value: Value) {
        let number = (self.in_turn.len() + self.out_of_turn.len()) as u64;
        self.put(number, value);
    }
}
