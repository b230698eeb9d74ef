//! The options: their names, what each takes, and the reading of all of them.

use std::collections::BTreeSet;

use gpumem_test_syntax::one_of;
use proc_macro2::{Ident, Span, TokenStream};
use syn::Error;

use crate::clause::{Clause, clauses};
use crate::mistakes::Mistakes;
use crate::value::{
    Args, Budget, Count, Device, Flag, Leak, Neighbours, Policies, Reason, Share, Size,
    SnapshotName, Timeout, Value,
};

/// An option's value and where it stands.
pub(crate) struct Given<T> {
    /// The option's name in the user's code.
    pub(crate) name: Ident,
    /// What was understood.
    pub(crate) value: T,
    /// What was written behind `=`; the name if there is nothing.
    pub(crate) written: TokenStream,
}

impl<T> Given<T> {
    /// A mistake in the value.
    pub(crate) fn mistake(&self, sentence: String) -> Error {
        Error::new_spanned(&self.written, sentence)
    }

    /// The value as it was written, without quotes.
    pub(crate) fn text(&self) -> String {
        syn::parse2(self.written.clone()).map_or_else(
            |_| self.written.to_string(),
            |string: syn::LitStr| string.value(),
        )
    }
}

/// Writes the list of options once: the struct, the names and the reading.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $value:ty,)*) => {
        /// What one use of the attribute says.
        #[derive(Default)]
        pub(crate) struct Options {
            $($(#[$doc])* pub(crate) $name: Option<Given<$value>>,)*
            written: BTreeSet<String>,
        }

        /// The names, in the order of the alphabet.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Options {
            fn read(&mut self, clause: Clause) -> syn::Result<()> {
                match clause.name.to_string().as_str() {
                    $(stringify!($name) => self.$name = Some(given(clause)?),)*
                    other => return Err(unknown(other, clause.name.span())),
                }
                Ok(())
            }
        }
    };
}

options! {
    /// An out-of-memory may reach the code.
    allow_oom: Flag,
    /// One test for each value.
    args: Args,
    /// Hard cap on reserved bytes.
    budget: Budget,
    /// Where the test runs.
    device: Device,
    /// Not run unless asked for.
    ignore: Reason,
    /// Highest peak of allocated bytes.
    max_allocated: Size,
    /// Highest count of requests.
    max_allocations: Count,
    /// Highest count of driver allocations.
    max_device_allocations: Count,
    /// Highest fragmentation.
    max_fragmentation: Share,
    /// What may stay allocated.
    max_leak: Leak,
    /// Highest peak of the process's bytes on the device.
    max_process_memory: Size,
    /// Highest peak of reserved bytes.
    max_reserved: Size,
    /// Highest slack at the reserved peak.
    max_slack: Share,
    /// Highest waste at the reserved peak.
    max_waste: Share,
    /// Other processes that hold memory of the card.
    neighbours: Neighbours,
    /// One test under each policy.
    policy: Policies,
    /// At least one out-of-memory must reach the code.
    should_oom: Flag,
    /// Compare with the accepted summary.
    snapshot: SnapshotName,
    /// How long the test may run.
    timeout: Timeout,
    /// How far bytes may differ from the accepted summary.
    tolerance: Share,
}

/// Options that a later version will know: their error says so.
const LATER: [&str; 7] = [
    "devices",
    "isolation",
    "iterations",
    "max_growth",
    "oom",
    "scaling",
    "warmup",
];

/// Words of other harnesses and allocators for what an option here does.
const ALIASES: [(&str, &str); 20] = [
    ("alloc", "policy"),
    ("allocator", "policy"),
    ("cases", "args"),
    ("gpu", "device"),
    ("limit", "budget"),
    ("max_memory", "max_allocated"),
    ("max_memory_allocated", "max_allocated"),
    ("max_memory_reserved", "max_reserved"),
    ("max_peak", "max_allocated"),
    ("max_total", "budget"),
    ("memory", "budget"),
    ("neighbors", "neighbours"),
    ("neighbour", "neighbours"),
    ("params", "args"),
    ("peak", "max_allocated"),
    ("profile", "device"),
    ("skip", "ignore"),
    ("threshold", "tolerance"),
    ("total", "budget"),
    ("values", "args"),
];

impl Options {
    /// Reads the tokens between the attribute's parentheses.
    pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut options = Self::default();
        for clause in clauses(tokens, mistakes) {
            let name = clause.name.to_string();
            let span = clause.name.span();
            if options.has(&name) {
                let sentence = format!("option `{name}` is given twice: keep one");
                mistakes.add(Error::new(span, sentence));
                continue;
            }
            let read = options.read(clause);
            let is_known = NAMES.contains(&name.as_str());
            mistakes.keep(read);
            if is_known {
                options.written.insert(name);
            }
        }
        options
    }

    /// Whether the option is written, even if its value is wrong.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.contains(name)
    }
}

fn given<T: Value>(clause: Clause) -> syn::Result<Given<T>> {
    let value = T::parse(&clause.name, clause.value.as_ref())?;
    let written = clause
        .value
        .unwrap_or_else(|| proc_macro2::TokenTree::from(clause.name.clone()).into());
    Ok(Given {
        name: clause.name,
        value,
        written,
    })
}

fn unknown(name: &str, span: Span) -> Error {
    let all = NAMES.join(", ");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let sentence = if LATER.contains(&name) {
        format!("option `{name}` is not in this version of gpumem-test (options: {all})")
    } else if let Some((_, meant)) = alias {
        format!("unknown option `{name}`, did you mean `{meant}`? (options: {all})")
    } else if name == "should_panic" {
        format!(
            "unknown option `{name}`: a panic fails the test; `should_oom` asks for an out-of-memory (options: {all})"
        )
    } else {
        one_of("option", "options", name, NAMES)
    };
    Error::new(span, sentence)
}

#[cfg(test)]
mod tests {
    use super::{ALIASES, LATER, NAMES, Options};
    use crate::mistakes::{Mistakes, sentences};
    use crate::value::{Budget, Size};

    fn parse(text: &str) -> (Options, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let options = Options::parse(text.parse().unwrap(), &mut mistakes);
        let wrong = mistakes
            .into_result()
            .map_or_else(sentences, |()| Vec::new());
        (options, wrong)
    }

    #[test]
    fn names_are_sorted_and_apart_from_those_of_later_versions() {
        assert!(NAMES.is_sorted());
        assert!(LATER.iter().all(|later| !NAMES.contains(later)));
        assert!(ALIASES.is_sorted());
        for (alias, meant) in ALIASES {
            assert!(NAMES.contains(&meant) && !NAMES.contains(&alias), "{alias}");
        }
    }

    #[test]
    fn options_are_read_in_any_order() {
        let (options, wrong) = parse("snapshot, max_allocated = \"1GiB\", budget = \"2GiB\"");
        assert_eq!(wrong, [""; 0]);
        assert_eq!(options.budget.unwrap().value, Budget::Bytes(2 << 30));
        let bound = options.max_allocated.unwrap();
        assert_eq!(
            (bound.value, bound.text()),
            (Size(1 << 30), "1GiB".to_owned())
        );
        assert_eq!(options.snapshot.unwrap().value.0, None);
    }

    #[test]
    fn all_mistakes_are_found_in_one_reading() {
        let (options, wrong) =
            parse("budget = 5, buget = \"1GiB\", budget = \"2GiB\", oom = \"sweep\", limit = 1");
        assert_eq!(wrong.len(), 5);
        for (sentence, part) in wrong.iter().zip([
            "write `budget = \"5MiB\"`",
            "unknown option `buget`, did you mean `budget`? (options: allow_oom, args,",
            "`budget` is given twice",
            "`oom` is not in this version",
            "unknown option `limit`, did you mean `budget`?",
        ]) {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(options.has("budget") && options.budget.is_none());
    }

    #[test]
    fn an_option_of_a_panic_is_explained() {
        let (_, wrong) = parse("should_panic");
        assert!(wrong[0].contains("`should_oom` asks for"), "{wrong:?}");
    }
}
