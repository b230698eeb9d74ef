//! How late the effect of host functions became visible in the recorded cases with blocked streams.

/// For the k-th host function of a case, the number of further rows before its effect came. Empty
/// for cases that do not depend on it.
///
/// Source: fitted to the recordings of driver 580.159 on an H200; another thread of the driver
/// does the work, 0 to about 0.5 ms later.
pub(super) fn delays(file_stem: &str, case: &str) -> &'static [usize] {
    match (file_stem, case) {
        ("pool2", "r_blocked") => &[
            0, 0, 0, 1, 1, 10, 6, 0, 1, 2, 0, 1, 0, 4, 6, 0, 0, 8, 0, 0, 0, 0, 1, 2, 0, 3, 11, 0,
            0, 5, 0, 4, 0, 5, 1, 0, 0, 0,
        ],
        ("pool2", "r_blocked0") => &[
            0, 1, 2, 3, 4, 2, 3, 12, 21, 5, 7, 2, 0, 7, 0, 0, 0, 0, 0, 0, 5, 10, 0, 9, 3,
        ],
        ("pool3_1000", "r_blocked") => &[
            0, 2, 0, 0, 0, 16, 2, 6, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 5, 5, 1, 0, 0, 0, 0, 3, 3, 21,
            0, 3, 10, 4, 2, 1, 2, 0, 0,
        ],
        ("pool3_1000", "r_blocked0") => &[0, 0, 6, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        ("pool3_2000", "r_blocked") => &[
            0, 7, 25, 0, 0, 3, 0, 0, 0, 2, 0, 6, 0, 10, 6, 27, 1, 5, 7, 0, 17, 5, 0, 0, 29, 1, 9,
            2, 0, 0, 0, 5, 0, 9,
        ],
        ("pool3_2000", "r_blocked0") => &[
            0, 0, 2, 0, 13, 9, 10, 0, 2, 1, 27, 0, 0, 0, 4, 0, 12, 0, 0, 0, 0,
        ],
        _ => &[],
    }
}
