//! The options of `async`, as a test writes them.

use gpumem_test_syntax::{one_of, parse_size};

use super::CHUNK;
use crate::bytes::Bytes;
use crate::device::PoolSettings;
use crate::error::Error;

const RELEASE_THRESHOLD: &str = "release_threshold";
const MAX_SIZE: &str = "max_size";

/// Every option, in the order of the documentation.
const OPTIONS: [&str; 2] = [RELEASE_THRESHOLD, MAX_SIZE];

/// A larger maximum is a mistake: no card has so much, and a pool's addresses are twice of it.
const LARGEST: u64 = 16 << 40;

/// Reads `release_threshold=64MiB,max_size=2GiB`; a colon does for the equals sign.
///
/// # Errors
/// An option that does not exist or comes twice, a value that is no size, a maximum that no
/// request would fit in.
pub(crate) fn parse(text: &str) -> Result<PoolSettings, Error> {
    let mut settings = PoolSettings::default();
    let mut seen: Vec<&str> = Vec::new();
    for option in text.split(',').map(str::trim).filter(|o| !o.is_empty()) {
        let (name, value) = option.split_once(['=', ':']).unwrap_or((option, ""));
        let (name, value) = (name.trim(), value.trim());
        if !OPTIONS.contains(&name) {
            let unknown = one_of("option", "options", name, &OPTIONS);
            return Err(refused(&unknown));
        }
        if seen.contains(&name) {
            return Err(refused(&format!(
                "option `{name}` is given twice, as `{value}` the second time: keep one"
            )));
        }
        seen.push(name);
        match name {
            RELEASE_THRESHOLD => settings.release_threshold = threshold(value)?,
            _ => settings.max_size = Some(maximum(value)?),
        }
    }
    Ok(settings)
}

fn refused(what: &str) -> Error {
    Error::configuration(format!("policy `async`: {what}"))
}

fn size(name: &str, value: &str) -> Result<u64, Error> {
    match value {
        "0" => Ok(0),
        _ => parse_size(value).map_err(|wrong| {
            refused(&format!(
                "option `{name}`: {wrong}, as in `{name}={}`",
                match name {
                    RELEASE_THRESHOLD => "64MiB` or `release_threshold=max",
                    _ => "2GiB",
                }
            ))
        }),
    }
}

fn threshold(value: &str) -> Result<u64, Error> {
    match value {
        "max" => Ok(u64::MAX),
        _ => size(RELEASE_THRESHOLD, value),
    }
}

fn maximum(value: &str) -> Result<u64, Error> {
    let bytes = size(MAX_SIZE, value)?;
    if (CHUNK..=LARGEST).contains(&bytes) {
        return Ok(bytes);
    }
    Err(refused(&format!(
        "option `{MAX_SIZE}`: {} is not between {}, the chunk in which a pool grows, and {}; leave \
         it out for a pool without a maximum",
        Bytes::new(bytes),
        Bytes::new(CHUNK),
        Bytes::new(LARGEST),
    )))
}

/// The settings in force: what the pool makes of the values, which it rounds down to its chunks.
pub(super) fn in_force(settings: PoolSettings) -> Vec<(&'static str, String)> {
    let chunks = |bytes: u64| Bytes::new(bytes / CHUNK * CHUNK).to_string();
    let threshold = match settings.release_threshold {
        u64::MAX => "max".to_owned(),
        bytes => chunks(bytes),
    };
    let maximum = settings.max_size.map_or_else(|| "none".to_owned(), chunks);
    vec![(RELEASE_THRESHOLD, threshold), (MAX_SIZE, maximum)]
}

#[cfg(test)]
mod tests {
    use super::{in_force, parse};
    use crate::device::PoolSettings;

    const MIB: u64 = 1 << 20;

    #[test]
    fn both_signs_and_any_spaces_are_read() {
        let settings = PoolSettings {
            release_threshold: 64 * MIB,
            max_size: Some(2 << 30),
        };
        for text in [
            "release_threshold=64MiB,max_size=2GiB",
            "max_size:2GiB,release_threshold:64MiB",
            " release_threshold = 64 MiB , max_size: 2 GiB ,",
        ] {
            assert_eq!(parse(text).unwrap(), settings, "{text}");
        }
        assert_eq!(parse("").unwrap(), PoolSettings::default());
        assert_eq!(
            parse("release_threshold=0").unwrap(),
            PoolSettings::default()
        );
        let all = parse("release_threshold=max").unwrap();
        assert_eq!(all.release_threshold, u64::MAX);
    }

    #[test]
    fn what_is_in_force_is_whole_chunks() {
        let shown = |text: &str| -> Vec<String> {
            let settings = in_force(parse(text).unwrap());
            settings.into_iter().map(|(_, value)| value).collect()
        };
        assert_eq!(shown(""), ["0 B", "none"]);
        assert_eq!(
            shown("release_threshold=50MiB,max_size=200MiB"),
            ["32.00 MiB", "192.00 MiB"]
        );
        assert_eq!(shown("release_threshold=max"), ["max", "none"]);
    }

    #[test]
    fn mistakes_name_the_option_the_value_and_the_fix() {
        for (text, parts) in [
            (
                "release_treshold=1MiB",
                &["`release_treshold`", "did you mean `release_threshold`"][..],
            ),
            ("trim=1MiB", &["unknown option `trim`", "max_size"]),
            ("max_size", &["`max_size`", "max_size=2GiB"]),
            ("max_size=max", &["`max_size`", "max"]),
            ("release_threshold=64", &["unit", "release_threshold=max"]),
            (
                "max_size=16MiB",
                &["16.00 MiB", "32.00 MiB", "leave it out"],
            ),
            ("max_size=100000GiB", &["16.00 TiB"]),
            ("max_size=1GiB,max_size=2GiB", &["twice", "2GiB"]),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.is_configuration(), "{error}");
            for part in parts {
                assert!(error.to_string().contains(part), "{text}: {error}");
            }
        }
    }
}
