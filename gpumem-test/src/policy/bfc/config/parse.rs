//! From a string to settings.
//!
//! Options are applied as they stand, environment variables after all of them, as in the
//! frameworks: the variable wins wherever it is written.

use super::{BfcConfig, BfcFramework, allocator, values};
use crate::error::Error;

/// Options under their own names, each with its aliases, in the order of the documentation.
const OPTIONS: [&[&str]; 8] = [
    &["allow_growth"],
    &[
        "per_process_gpu_memory_fraction",
        "memory_fraction",
        "fraction",
    ],
    &["memory_limit", "memory_limit_mb"],
    &["garbage_collection"],
    &["fragmentation_fraction", "internal_fragmentation_fraction"],
    &[
        "allow_retry_on_failure",
        "disallow_retry_on_allocation_failure",
    ],
    &["gpu_system_memory_size_in_mb"],
    &["use_unified_memory"],
];

/// The variables that TensorFlow reads.
const OF_TENSORFLOW: [&str; 4] = [
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_ENABLE_GPU_GARBAGE_COLLECTION",
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
    "TF_GPU_ALLOCATOR",
];

/// The variables that XLA and JAX read.
const OF_XLA: [&str; 6] = [
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "TF_FORCE_UNIFIED_MEMORY",
];

pub(super) fn parse(
    framework: BfcFramework,
    text: &str,
) -> Result<(BfcConfig, Vec<String>), Error> {
    let pairs = pairs(text)?;
    let mut parser = Parser {
        config: BfcConfig::new(framework),
        warnings: Vec::new(),
        system_option: None,
        system_variable: None,
        fraction_variable: None,
    };
    parser.note_repetitions(&pairs);
    let is_variable = |name: &str| OF_TENSORFLOW.contains(&name) || OF_XLA.contains(&name);
    for (name, value) in pairs.iter().filter(|(name, _)| !is_variable(name)) {
        parser.option(name, value)?;
    }
    for (name, value) in pairs.iter().filter(|(name, _)| is_variable(name)) {
        parser.variable(name, value)?;
    }
    parser.note_unused_share();
    let of_system = [parser.system_variable, parser.system_option];
    parser.config.left_to_system = of_system.into_iter().flatten().collect();
    Ok((parser.config, parser.warnings))
}

/// The names and values of a string.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, Error> {
    let items = text.split(',').map(str::trim);
    items
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (name, value) = item.split_once(['=', ':']).ok_or_else(|| {
                known(item).err().unwrap_or_else(|| {
                    Error::configuration(format!("option `{item}` has no value"))
                        .with_help(format!("write it as `{item}=…`"))
                })
            })?;
            let name = name.trim();
            known(name)?;
            Ok((name, value.trim()))
        })
        .collect()
}

/// # Errors
/// If there is no such option.
fn known(name: &str) -> Result<(), Error> {
    let names: Vec<&str> = (OPTIONS.iter().copied().flatten())
        .chain(&OF_TENSORFLOW)
        .chain(&OF_XLA)
        .copied()
        .collect();
    if names.contains(&name) {
        return Ok(());
    }
    let message = gpumem_test_syntax::one_of("option", "options", name, &names);
    Err(Error::configuration(message))
}

struct Parser {
    config: BfcConfig,
    warnings: Vec<String>,
    /// Bytes left to the system, by the option and by the variable.
    system_option: Option<u64>,
    system_variable: Option<u64>,
    /// The variable that gave a fraction.
    fraction_variable: Option<String>,
}

impl Parser {
    /// Applies an option of its own name.
    fn option(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let config = &mut self.config;
        match name {
            "allow_growth" => config.allow_growth = values::boolean(name, value)?,
            "per_process_gpu_memory_fraction" | "memory_fraction" | "fraction" => {
                let fraction = match config.framework {
                    BfcFramework::Xla => values::share_of_xla(name, value)?,
                    BfcFramework::Plain | BfcFramework::TensorFlow => {
                        values::fraction(name, value)?
                    }
                };
                // For all but XLA, 0 stands for the default.
                let is_set = fraction > 0.0 || config.framework == BfcFramework::Xla;
                config.fraction = is_set.then_some(fraction);
            }
            "memory_limit" => config.memory_limit = Some(values::size(name, value)?),
            "memory_limit_mb" => config.memory_limit = Some(values::mebibytes(name, value)?),
            "garbage_collection" => config.garbage_collection = values::boolean(name, value)?,
            "fragmentation_fraction" | "internal_fragmentation_fraction" => {
                config.fragmentation_fraction = values::share(name, value)?;
            }
            "allow_retry_on_failure" => {
                config.allow_retry_on_failure = values::boolean(name, value)?;
            }
            "disallow_retry_on_allocation_failure" => {
                config.allow_retry_on_failure = !values::boolean(name, value)?;
            }
            "gpu_system_memory_size_in_mb" => {
                let bytes = values::mebibytes(name, value)?;
                self.system_option = (bytes > 0).then_some(bytes);
            }
            "use_unified_memory" => no_unified_memory(name, value)?,
            _ => unreachable!("`{name}` was looked up"),
        }
        Ok(())
    }

    /// Applies an environment variable, if the framework reads it.
    fn variable(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let is_read = match self.config.framework {
            BfcFramework::Plain => true,
            BfcFramework::TensorFlow => OF_TENSORFLOW.contains(&name) || is_unified(name),
            BfcFramework::Xla => OF_XLA.contains(&name),
        };
        if !is_read {
            let framework = self.config.framework.name();
            self.warn(format!("`{name}` has no effect under `{framework}`"));
            return Ok(());
        }
        match name {
            "TF_FORCE_GPU_ALLOW_GROWTH" => {
                if let Some(growth) = self.exact_boolean(name, value) {
                    self.config.allow_growth = growth;
                }
            }
            "TF_ENABLE_GPU_GARBAGE_COLLECTION" => {
                if let Some(collects) = self.exact_boolean(name, value) {
                    self.config.garbage_collection = collects;
                }
            }
            "TF_DEVICE_MIN_SYS_MEMORY_IN_MB" => match values::mebibytes(name, value) {
                Ok(bytes) => self.system_variable = Some(bytes),
                Err(_) => self.warn(format!(
                    "`{name}={value}` is ignored: `{value}` is no number of MiB"
                )),
            },
            "TF_GPU_ALLOCATOR" => {
                if let Some(unknown) = allocator::of_tensorflow(name, value)? {
                    self.warn(format!(
                        "`{name}={unknown}` names no allocator that TensorFlow knows: it stays bfc"
                    ));
                }
            }
            "TF_FORCE_UNIFIED_MEMORY" => no_unified_memory(name, value)?,
            "XLA_PYTHON_CLIENT_PREALLOCATE" => {
                if !value.is_empty() {
                    self.config.allow_growth = ["false", "False", "0"].contains(&value);
                }
            }
            "XLA_CLIENT_MEM_FRACTION" | "XLA_PYTHON_CLIENT_MEM_FRACTION" => {
                self.xla_fraction(name, value)?;
            }
            "XLA_PYTHON_CLIENT_ALLOCATOR" => allocator::of_xla(name, value)?,
            "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB" => self.warn(format!(
                "`{name}` has no effect here: collective memory is a pool of its own"
            )),
            _ => unreachable!("`{name}` was looked up"),
        }
        Ok(())
    }

    /// The share in single precision, in which it travels.
    fn xla_fraction(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match &self.fraction_variable {
            Some(other) if other != name => {
                return Err(Error::configuration(format!(
                    "`{other}` and `{name}` both set the share of memory: set one of them"
                )));
            }
            _ => self.fraction_variable = Some(name.to_owned()),
        }
        // An exponent may have a sign; a text that is no number and has one is a range.
        if value.parse::<f64>().is_err() && value.contains(['+', '-']) {
            return Err(Error::configuration(format!(
                "`{name}={value}`: a share that grows is not in this version"
            )));
        }
        let fraction = values::share_of_xla(name, value)?;
        self.config.fraction = Some(f64::from(fraction as f32));
        Ok(())
    }

    /// A variable that TensorFlow reads as exactly `true` or `false`; any other text it ignores.
    fn exact_boolean(&mut self, name: &str, value: &str) -> Option<bool> {
        match value {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.warn(format!(
                    "`{name}={value}` is ignored: TensorFlow reads `true` and `false` only"
                ));
                None
            }
        }
    }

    /// Names what is set more than once, be it under two names.
    fn note_repetitions(&mut self, pairs: &[(&str, &str)]) {
        let sets_the_same = |one: &str, other: &str| {
            one == other
                || (OPTIONS.iter()).any(|names| names.contains(&one) && names.contains(&other))
        };
        for (index, (name, _)) in pairs.iter().enumerate() {
            if (pairs[..index].iter()).any(|(other, _)| sets_the_same(name, other)) {
                continue;
            }
            let later = || pairs[index + 1..].iter().map(|(other, _)| *other);
            let count = 1 + later().filter(|other| other == name).count();
            if let Some(alias) = later().find(|other| other != name && sets_the_same(name, other)) {
                self.warn(format!(
                    "`{name}` and `{alias}` are the same option, the last one counts"
                ));
            } else if count > 1 {
                self.warn(format!(
                    "`{name}` is given {count} times, the last one counts"
                ));
            }
        }
    }

    /// A limit in bytes stands in place of any share.
    fn note_unused_share(&mut self) {
        if self.config.memory_limit.is_some() && self.config.fraction.is_some() {
            self.warn(
                "the share of memory has no effect, since `memory_limit` gives the limit"
                    .to_owned(),
            );
        }
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

fn is_unified(name: &str) -> bool {
    name == "TF_FORCE_UNIFIED_MEMORY"
}

/// # Errors
/// If managed memory is wanted.
fn no_unified_memory(name: &str, value: &str) -> Result<(), Error> {
    if !values::boolean(name, value)? {
        return Ok(());
    }
    Err(Error::configuration(format!(
        "`{name}={value}` takes managed memory, which this version does not simulate"
    )))
}
