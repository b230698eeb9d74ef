//! Values of options.

use crate::error::Error;

/// `true`, `false`, `1` or `0`, in any case.
pub(super) fn boolean(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::configuration(format!(
            "`{name}={value}`: `{value}` is neither true nor false"
        ))),
    }
}

/// A share of the card's memory, from 0 to 1.
pub(super) fn fraction(name: &str, value: &str) -> Result<f64, Error> {
    let number: f64 = number(name, value, "a share from 0 to 1, as in 0.9")?;
    if number > 1.0 && number.is_finite() {
        return Err(Error::configuration(format!(
            "`{name}={value}`: a share above 1 oversubscribes the card by managed memory, which \
             this version does not simulate"
        ))
        .with_help("set a share of at most 1, or a larger device"));
    }
    share(name, value)
}

/// A share of anything else, from 0 to 1.
pub(super) fn share(name: &str, value: &str) -> Result<f64, Error> {
    let number: f64 = number(name, value, "a share from 0 to 1, as in 0.9")?;
    if !(0.0..=1.0).contains(&number) {
        return Err(Error::configuration(format!(
            "`{name}={value}`: `{value}` is not a share from 0 to 1"
        )));
    }
    Ok(number)
}

/// A share of the card's memory as XLA takes it, which does not refuse one above 1: the pool then
/// backs off from its limit to what the card has.
pub(super) fn share_of_xla(name: &str, value: &str) -> Result<f64, Error> {
    let number: f64 = number(name, value, "a share such as 0.9")?;
    if !number.is_finite() || number < 0.0 {
        return Err(Error::configuration(format!(
            "`{name}={value}`: `{value}` is not a share of 0 or more"
        )));
    }
    Ok(number)
}

/// A whole number of MiB, as bytes.
pub(super) fn mebibytes(name: &str, value: &str) -> Result<u64, Error> {
    let count: u64 = number(name, value, "a number of MiB, as in 1024")?;
    count.checked_mul(1 << 20).ok_or_else(|| {
        Error::configuration(format!("`{name}={value}`: more MiB than 64 bits can count"))
    })
}

/// A size with its unit, in bytes.
pub(super) fn size(name: &str, value: &str) -> Result<u64, Error> {
    gpumem_test_syntax::parse_size(value).map_err(|reason| {
        Error::configuration(format!("`{name}={value}`: {reason}"))
            .with_help("`memory_limit_mb` takes a plain number of MiB")
    })
}

fn number<T: std::str::FromStr>(name: &str, value: &str, wanted: &str) -> Result<T, Error> {
    value
        .parse()
        .map_err(|_| Error::configuration(format!("`{name}={value}`: `{value}` is not {wanted}")))
}
