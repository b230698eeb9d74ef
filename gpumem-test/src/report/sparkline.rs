//! A course of values as a line of little bars.

use crate::bytes::Bytes;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar a value; a bar is full at `highest`.
pub(super) fn sparkline(values: &[Bytes], highest: Bytes) -> String {
    let full = u128::from(highest.get().max(1));
    let steps = BARS.len() as u128;
    values
        .iter()
        .map(|value| {
            let step = (u128::from(value.get()) * steps).div_ceil(full);
            BARS[step.clamp(1, steps) as usize - 1]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;
    use crate::bytes::Bytes;

    #[test]
    fn the_highest_value_gets_the_full_bar() {
        let values: Vec<_> = [0, 1, 50, 99, 100, u64::MAX].map(Bytes::new).to_vec();
        assert_eq!(sparkline(&values, Bytes::new(100)), "▁▁▄███");
        assert_eq!(sparkline(&values[..1], Bytes::ZERO), "▁");
    }
}
