//! Which address of the card stands for which address of the model.

use std::collections::BTreeMap;

/// One stretch: a live allocation or a reserved range. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Where the card has it.
    pub(super) real: u64,
    /// Where the model has it.
    pub(super) model: u64,
    /// Its length.
    pub(super) size: u64,
}

/// All stretches, by both addresses.
#[derive(Debug, Default)]
pub(super) struct Book {
    by_real: BTreeMap<u64, Stretch>,
    by_model: BTreeMap<u64, Stretch>,
}

impl Book {
    /// Enters a stretch. One that the card gave before at this address without telling us of its
    /// end is over.
    pub(super) fn enter(&mut self, stretch: Stretch) {
        if let Some(gone) = self.by_real.insert(stretch.real, stretch) {
            self.by_model.remove(&gone.model);
        }
        self.by_model.insert(stretch.model, stretch);
    }

    /// The stretch that starts at the model's address.
    pub(super) fn starting_at(&self, model: u64) -> Option<Stretch> {
        self.by_model.get(&model).copied()
    }

    /// The stretch that starts at the card's address.
    pub(super) fn starting_at_real(&self, real: u64) -> Option<Stretch> {
        self.by_real.get(&real).copied()
    }

    /// Strikes a stretch out.
    pub(super) fn strike(&mut self, stretch: Stretch) {
        self.by_real.remove(&stretch.real);
        self.by_model.remove(&stretch.model);
    }

    /// The card's address for one inside a stretch of the model.
    pub(super) fn real(&self, model: u64) -> Option<u64> {
        let (start, stretch) = self.by_model.range(..=model).next_back()?;
        (model - start < stretch.size).then(|| stretch.real + (model - start))
    }

    /// The model's address for one inside a stretch of the card.
    pub(super) fn model(&self, real: u64) -> Option<u64> {
        let (start, stretch) = self.by_real.range(..=real).next_back()?;
        (real - start < stretch.size).then(|| stretch.model + (real - start))
    }
}

#[cfg(test)]
mod tests {
    use super::{Book, Stretch};

    #[test]
    fn addresses_inside_a_stretch_are_translated_both_ways() {
        let mut book = Book::default();
        let (real, model, size) = (0x7000, 0x100, 16);
        let stretch = Stretch { real, model, size };
        book.enter(stretch);
        assert_eq!(book.real(0x10f), Some(0x700f));
        assert_eq!(book.model(0x7001), Some(0x101));
        assert_eq!((book.real(0x110), book.model(0x7010)), (None, None));
        assert_eq!((book.real(0xff), book.model(0x6fff)), (None, None));
        assert_eq!(book.starting_at(0x100), Some(stretch));
        assert_eq!(book.starting_at(0x101), None);
        book.strike(stretch);
        assert_eq!(
            (book.real(0x100), book.starting_at_real(0x7000)),
            (None, None)
        );
    }
}
