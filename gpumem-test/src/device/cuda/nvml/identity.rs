//! Which card, and which process, by NVML's names.

/// The name by which NVML knows a card: its kind and 16 bytes in groups.
pub(super) fn name_of(kind: &str, uuid: [u8; 16]) -> String {
    let mut name = kind.to_owned();
    for (index, byte) in uuid.into_iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&index) {
            name.push('-');
        }
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

/// This process's figure, of what NVML lists as (process id, bytes).
///
/// In a container NVML may list ids of another namespace. A process that holds less than we know
/// that we hold is not this one; where only one process is listed, under another id, it may be this
/// one or a neighbour's, and the figure stays unknown.
pub(super) fn own_figure(listed: &[(u32, Option<u64>)], own: u32, held: u64) -> Option<u64> {
    let mut figures = listed.iter().filter(|(process, _)| *process == own);
    let figure = figures.next()?.1?;
    // Two with our id: at least one is of another namespace.
    (figures.next().is_none() && figure >= held).then_some(figure)
}

#[cfg(test)]
mod tests {
    use super::{name_of, own_figure};

    #[test]
    fn a_card_is_named_as_nvidia_smi_names_it() {
        let uuid = std::array::from_fn(|index| index as u8 * 16 + 1);
        assert_eq!(
            name_of("GPU", uuid),
            "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1"
        );
    }

    #[test]
    fn a_process_figure_is_known_only_where_it_is_certain() {
        let one = [(7, Some(600)), (8, Some(900))];
        assert_eq!(own_figure(&one, 7, 500), Some(600));
        assert_eq!(own_figure(&one, 7, 601), None, "it holds less than we do");
        assert_eq!(own_figure(&one, 9, 0), None, "not listed");
        assert_eq!(own_figure(&[(7, None)], 7, 0), None, "listed without bytes");
        assert_eq!(
            own_figure(&[(4_123, Some(600))], 7, 600),
            None,
            "alone, by another id"
        );
        assert_eq!(
            own_figure(&[(7, Some(600)), (7, Some(700))], 7, 0),
            None,
            "twice"
        );
    }
}
