//! The budget's arithmetic: what the card has given, by whom it was counted.
//!
//! Three sums: what the model holds (pages of plain allocations, created pages, chunks of the
//! default pool), what is charged because it passes us by, and by how much the driver's own figure
//! for the default pool differs from the model's. Owns no memory.

/// A moment at which the driver's figure for its default pool was not the shadow's. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShadowDifference {
    /// The call after which it was seen.
    pub call: &'static str,
    /// How many calls on pools came before it in this session.
    pub step: u64,
    /// What the shadow expected the pool to hold.
    pub expected: u64,
    /// What the driver says that it holds.
    pub reserved: u64,
}

/// Differences that are kept one by one; the rest is counted.
const KEPT: usize = 64;

/// The sums. All figures are bytes.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The cap.
    budget: Option<u64>,
    /// What was charged and not discharged.
    charged: u64,
    /// What the driver's default pool holds above the model's (or below).
    excess: i64,
    /// The highest sum above the budget.
    exceeded: Option<u64>,
    differences: Vec<ShadowDifference>,
    seen: u64,
}

impl Account {
    pub(super) fn set_budget(&mut self, budget: Option<u64>) {
        self.budget = budget;
    }

    pub(super) fn budget(&self) -> Option<u64> {
        self.budget
    }

    pub(super) fn charged(&self) -> u64 {
        self.charged
    }

    pub(super) fn excess(&self) -> i64 {
        self.excess
    }

    /// The cap that is left for the model: the budget less what the model does not know of.
    pub(super) fn model_budget(&self) -> Option<u64> {
        let left = |budget: u64| {
            let left = i128::from(budget) - i128::from(self.charged) - i128::from(self.excess);
            u64::try_from(left.max(0)).unwrap_or(u64::MAX)
        };
        self.budget.map(left)
    }

    /// All that the card has given, when the model holds `model`.
    pub(super) fn used(&self, model: u64) -> u64 {
        let used = i128::from(model) + i128::from(self.charged) + i128::from(self.excess);
        u64::try_from(used.max(0)).unwrap_or(u64::MAX)
    }

    /// Whether `bytes` more stay inside the budget.
    pub(super) fn admits(&self, model: u64, bytes: u64) -> bool {
        let used = u128::from(self.used(model)) + u128::from(bytes);
        self.budget.is_none_or(|budget| used <= u128::from(budget))
    }

    pub(super) fn charge(&mut self, bytes: u64) {
        self.charged = self.charged.saturating_add(bytes);
    }

    pub(super) fn discharge(&mut self, bytes: u64) {
        self.charged = self.charged.saturating_sub(bytes);
    }

    /// Takes the driver's figure for the default pool beside the model's. Keeps a difference when
    /// `expected` was not it and it is not the one known before; says how the excess changed.
    pub(super) fn compare(
        &mut self,
        (call, step): (&'static str, u64),
        expected: u64,
        model: u64,
        reserved: u64,
    ) -> i64 {
        let excess = difference(reserved, model);
        if reserved != expected && difference(reserved, expected) != self.excess {
            self.note(ShadowDifference {
                call,
                step,
                expected,
                reserved,
            });
        }
        excess - std::mem::replace(&mut self.excess, excess)
    }

    fn note(&mut self, difference: ShadowDifference) {
        self.seen += 1;
        if self.differences.len() < KEPT {
            self.differences.push(difference);
        }
    }

    /// Remembers it if the card has given more than the budget.
    pub(super) fn judge(&mut self, model: u64) {
        let used = self.used(model);
        if self.budget.is_some_and(|budget| used > budget) {
            self.exceeded = Some(self.exceeded.map_or(used, |highest| highest.max(used)));
        }
    }

    pub(super) fn exceeded(&self) -> Option<u64> {
        self.exceeded
    }

    pub(super) fn differences(&self) -> &[ShadowDifference] {
        &self.differences
    }

    /// How many differences there were, kept or not.
    pub(super) fn differences_seen(&self) -> u64 {
        self.seen
    }
}

/// `left` less `right`.
fn difference(left: u64, right: u64) -> i64 {
    i64::try_from(i128::from(left) - i128::from(right)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Account;

    #[test]
    fn the_model_gets_what_of_the_budget_nobody_else_has() {
        let mut account = Account::default();
        assert_eq!(account.model_budget(), None);
        account.set_budget(Some(100));
        account.charge(30);
        assert_eq!(account.model_budget(), Some(70));
        assert_eq!(account.used(50), 80);
        assert!(account.admits(50, 20));
        assert!(!account.admits(50, 21));
        account.compare(("cuMemAllocAsync", 0), 10, 10, 15);
        assert_eq!(account.model_budget(), Some(65));
        assert_eq!(account.used(50), 85);
        account.compare(("cuMemAllocAsync", 1), 10, 10, 4);
        assert_eq!(account.model_budget(), Some(76));
        account.charge(200);
        assert_eq!(account.model_budget(), Some(0));
        assert!(!account.admits(0, 1));
        account.discharge(230);
        assert_eq!(
            account.used(0),
            0,
            "the pool holds less than the model by 6"
        );
    }

    #[test]
    fn what_is_above_the_budget_is_remembered_at_its_highest() {
        let mut account = Account::default();
        account.set_budget(Some(64));
        account.judge(64);
        assert_eq!(account.exceeded(), None);
        account.compare(("cuMemAllocAsync", 0), 32, 32, 96);
        account.judge(32);
        account.compare(("cuStreamSynchronize", 1), 32, 32, 64);
        account.judge(32);
        account.judge(4);
        assert_eq!(account.exceeded(), Some(96));
    }

    #[test]
    fn a_difference_is_kept_when_it_comes_and_not_while_it_stays() {
        let mut account = Account::default();
        assert_eq!(account.compare(("a", 0), 32, 32, 64), 32);
        assert_eq!(account.compare(("b", 1), 64, 64, 96), 0);
        assert_eq!(account.differences_seen(), 1);
        // Gone: the driver did more than the shadow foresaw, and both agree again.
        assert_eq!(account.compare(("c", 2), 0, 0, 0), -32);
        assert_eq!(account.differences_seen(), 1);
        let kept = &account.differences()[0];
        assert_eq!((kept.call, kept.expected, kept.reserved), ("a", 32, 64));
        for step in 0..200 {
            account.compare(("d", step), 32, 32, 32 * (step % 2));
        }
        assert_eq!(account.differences_seen(), 101);
        assert_eq!(account.differences().len(), 64);
    }
}
