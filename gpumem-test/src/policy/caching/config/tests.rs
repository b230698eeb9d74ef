//! Verdicts and messages of the configuration string.

use super::CachingConfig;
use crate::bytes::Bytes;

fn settings(text: &str) -> CachingConfig {
    CachingConfig::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .0
}

fn refusal(text: &str) -> String {
    CachingConfig::parse(text).expect_err(text).to_string()
}

fn warnings(text: &str) -> Vec<String> {
    CachingConfig::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .1
}

#[test]
fn refusals_carry_the_message_of_the_original() {
    for (text, message) in [
        (
            "foo:1",
            "Unrecognized key 'foo' in Accelerator allocator config.",
        ),
        (
            "max_split_size_mb:64,,",
            "Unrecognized key ',' in Accelerator allocator config.",
        ),
        (
            "large_segment_size_mb:10",
            "option large_segment_size_mb must be > 10 MB",
        ),
        (
            "max_split_size_mb:19",
            "max_split_size_mb too small, must be >= 20",
        ),
        (
            "large_segment_size_mb:30,max_split_size_mb:25",
            "too small, must be >= 30",
        ),
        (
            "max_non_split_rounding_mb:5",
            "max_non_split_rounding_mb too small, must be >= 20",
        ),
        (
            "garbage_collection_threshold:0",
            "is invalid, set it in (0.0, 1.0)",
        ),
        ("garbage_collection_threshold:x", "stod"),
        (
            "roundup_power2_divisions:0",
            "the divisions has to be power of 2 ",
        ),
        (
            "roundup_power2_divisions:[64:3]",
            "has to be power of 2 or 0 to disable roundup ",
        ),
        (
            "roundup_power2_divisions:[3:2]",
            "the intervals have to be power of 2 ",
        ),
        (
            "roundup_power2_divisions:[64:8,",
            "Expected closing bracket ']'",
        ),
        ("backend:[native", "Expected closing bracket ']'"),
        (
            "pinned_num_register_threads:3",
            "has to be power of 2, got 3",
        ),
        (
            "pinned_num_register_threads:256",
            "less than or equal to 128, got 256",
        ),
        (
            "pinned_reserve_segment_size_mb:0",
            "has to be greater than 0",
        ),
        (
            "backend:foo",
            "Unknown allocator backend, options are native and cudaMallocAsync",
        ),
        (
            "expandable_segments:true",
            "Expected 'True' or 'False' at index 2",
        ),
        (
            "max_split_size_mb",
            "Index out of bounds in ConfigTokenizer",
        ),
        ("max_split_size_mb:99999999999999999999", "out of range"),
        (
            "per_process_memory_fraction:-0.1",
            "is invalid, set it in [0.0, 1.0]",
        ),
    ] {
        let found = refusal(text);
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn an_unknown_option_leads_to_the_known_one() {
    let error = CachingConfig::parse("max_split_size:64").unwrap_err();
    let help = error.help().unwrap();
    assert!(
        help.starts_with("did you mean `max_split_size_mb`?"),
        "{help}"
    );
}

#[test]
fn lists_of_divisions_fill_as_the_original_does() {
    for (text, divisions) in [
        (
            "[64:8,256:4,1024:2,>:1]",
            [8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 2, 1, 1, 1, 1, 1],
        ),
        ("[>:4]", [0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]),
        (
            "[1:2,>:8]",
            [2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8],
        ),
        (
            "[64:8,32:4]",
            [8, 8, 8, 8, 8, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        ("[64:8]", [8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("[]", [0; 16]),
        ("2", [2; 16]),
    ] {
        let config = settings(&format!("roundup_power2_divisions:{text}"));
        assert_eq!(config.roundup_power2_divisions, divisions, "{text}");
    }
}

#[test]
fn printed_settings_parse_back() {
    for text in [
        "",
        "max_split_size_mb:64,max_non_split_rounding_mb:30,garbage_collection_threshold:0.25",
        "roundup_power2_divisions:[64:8,256:4,1024:2,>:1],expandable_segments:True",
        "roundup_power2_divisions:[1:2,>:8],per_process_memory_fraction:0.5",
        "roundup_power2_divisions:[64:8,32:4],large_segment_size_mb:32",
        "roundup_power2_divisions:4",
    ] {
        let config = settings(text);
        let printed: Vec<String> = config
            .settings()
            .into_iter()
            .filter(|(_, value)| value != "off" && value != "unlimited")
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        assert_eq!(
            settings(&printed.join(",")),
            config,
            "{text} printed as {printed:?}"
        );
    }
}

#[test]
fn sloppy_forms_are_accepted_with_a_warning() {
    for (text, warning) in [
        (
            "max_split_size_mb:64abc",
            "`64abc` was read as the number 64",
        ),
        (
            "max_split_size_mb:-1",
            "`max_split_size_mb` is capped at 17592186044415 MiB",
        ),
        ("max_split_size_mb;:64,", "Unrecognized"),
        (
            "max_split_size_mb:64:backend:native",
            "`:` at token 3 was taken for `,`",
        ),
        ("max_split_size_mb:6 4", "it was read as `64`"),
        ("max_split_size_mb:64,max_split_size_mb:32", "given 2 times"),
        ("backend:cudaMallocAsync", "stays the native one"),
        ("pinned_num_register_threads:8", "has no effect here"),
    ] {
        if warning == "Unrecognized" {
            assert!(refusal(text).contains(warning));
            continue;
        }
        let found = warnings(text);
        assert!(
            found.iter().any(|line| line.contains(warning)),
            "{text}: {found:?}"
        );
    }
    assert!(warnings("max_split_size_mb:64, garbage_collection_threshold:0.5").is_empty());
}

#[test]
fn an_update_resets_what_it_does_not_name() {
    let mut config = settings(
        "large_segment_size_mb:30,max_split_size_mb:40,max_non_split_rounding_mb:50,\
         garbage_collection_threshold:0.5,expandable_segments:True,roundup_power2_divisions:4,\
         per_process_memory_fraction:0.5",
    );
    config.update("").unwrap();
    let expected = CachingConfig {
        large_segment_size: Bytes::mib(30),
        max_non_split_rounding: Bytes::mib(30),
        expandable_segments: true,
        per_process_memory_fraction: 0.5,
        ..CachingConfig::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn what_preceded_an_error_stays_applied() {
    let mut config = CachingConfig::default();
    config
        .update("pinned_num_register_threads:3,roundup_power2_divisions:4")
        .unwrap_err();
    assert_eq!(config.roundup_power2_divisions, [4; 16]);
    config
        .update("max_split_size_mb:10,roundup_power2_divisions:8")
        .unwrap_err();
    assert_eq!(config.roundup_power2_divisions, [0; 16]);
    config.update("roundup_power2_divisions:[64:8").unwrap_err();
    assert_eq!(
        config.roundup_power2_divisions[..8],
        [8, 8, 8, 8, 8, 8, 8, 0]
    );
}
