use super::{BfcConfig, BfcFramework};
use crate::config::Card;

use BfcFramework::{Plain, TensorFlow, Xla};

fn config(framework: BfcFramework, text: &str) -> BfcConfig {
    BfcConfig::parse(framework, text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .0
}

fn warnings(framework: BfcFramework, text: &str) -> Vec<String> {
    BfcConfig::parse(framework, text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .1
}

fn refusal(framework: BfcFramework, text: &str) -> String {
    BfcConfig::parse(framework, text)
        .expect_err(text)
        .to_string()
}

/// An H200 after its context was made.
const H200: Card = Card {
    total: 150_109_880_320,
    free: 149_557_477_376,
    budget: None,
    compute_major: 9,
    unusable: 3_276_800,
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn limit(framework: BfcFramework, text: &str, card: Card) -> u64 {
    config(framework, text).options(&card).limit
}

#[test]
fn defaults_are_the_frameworks_own() {
    let of = |framework| {
        let config = config(framework, "");
        (config.allow_growth, config.garbage_collection)
    };
    assert_eq!(of(Plain), (false, false));
    assert_eq!(of(TensorFlow), (false, true));
    assert_eq!(of(Xla), (false, false));
}

#[test]
fn a_bare_pool_is_all_that_can_be_had_in_whole_pages() {
    let bare = limit(Plain, "", H200);
    assert_eq!(bare % (2 * MIB), 0);
    assert!(bare <= H200.free - H200.unusable && bare + 2 * MIB > H200.free - H200.unusable);
}

#[test]
fn tensorflow_leaves_a_reserve_by_compute_capability() {
    let of = |free, compute_major| {
        let card = Card {
            free,
            compute_major,
            ..H200
        };
        free - limit(TensorFlow, "", card)
    };
    for (major, mib) in [
        (3, 500),
        (6, 500),
        (7, 1050),
        (8, 1536),
        (9, 1800),
        (12, 1800),
    ] {
        assert_eq!(of(80 * GIB, major), mib * MIB, "{major}");
    }
    assert_eq!(of(2 * GIB - 1, 9), 225 * MIB);
    // A reserve that is not smaller than what is free is none.
    assert_eq!(of(225 * MIB, 9), 0);
    assert_eq!(of(100 * MIB, 9), 0);
}

#[test]
fn a_fraction_is_of_the_total_whatever_is_free() {
    let card = Card { free: GIB, ..H200 };
    let third = limit(TensorFlow, "per_process_gpu_memory_fraction=0.3", card);
    assert_eq!(third, (150_109_880_320_f64 * 0.3) as u64);
    // Of a preset, 0 is the default.
    let none = limit(TensorFlow, "fraction=0", H200);
    assert_eq!(none, limit(TensorFlow, "", H200));
}

#[test]
fn the_share_of_xla_travels_in_single_precision_and_is_rounded_up_to_pages() {
    for text in [
        "XLA_PYTHON_CLIENT_MEM_FRACTION=0.02",
        "XLA_CLIENT_MEM_FRACTION=0.02",
        "fraction=0.02",
    ] {
        assert_eq!(limit(Xla, text, H200), 3_003_121_664, "{text}");
    }
    let three_quarters = H200.total / 4 * 3;
    assert_eq!(
        limit(Xla, "", H200),
        three_quarters.next_multiple_of(2 * MIB)
    );
}

#[test]
fn the_budget_is_the_limit_and_caps_what_is_asked_for() {
    let card = Card {
        total: 2 * GIB + 5,
        free: 2 * GIB + 5,
        budget: Some(2 * GIB + 5),
        ..H200
    };
    for framework in [Plain, TensorFlow, Xla] {
        assert_eq!(limit(framework, "", card), 2 * GIB);
        assert_eq!(limit(framework, "memory_limit=3GiB", card), 2 * GIB);
        assert_eq!(limit(framework, "fraction=1.0", card), 2 * GIB);
        assert_eq!(limit(framework, "memory_limit_mb=512", card), 512 * MIB);
    }
    assert_eq!(limit(TensorFlow, "fraction=0.5", card), GIB + 2);
}

#[test]
fn the_limit_of_a_virtual_device_comes_before_the_system_and_that_before_the_fraction() {
    let card = Card {
        free: 10 * GIB,
        ..H200
    };
    let of = |text: &str| limit(TensorFlow, text, card);
    let all = "fraction=0.1,gpu_system_memory_size_in_mb=1024,TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2048";
    assert_eq!(of(&format!("{all},memory_limit=3GiB")), 3 * GIB);
    assert_eq!(of(all), 8 * GIB);
    assert_eq!(
        of("fraction=0.1,gpu_system_memory_size_in_mb=1024"),
        9 * GIB
    );
    // More than there is, is ignored.
    let too_much = "fraction=0.1,gpu_system_memory_size_in_mb=10241";
    assert_eq!(of(too_much), of("fraction=0.1"));
    assert_eq!(of("TF_DEVICE_MIN_SYS_MEMORY_IN_MB=0"), 10 * GIB);
}

#[test]
fn variables_override_options_wherever_they_stand() {
    for (framework, text, growth) in [
        (
            Plain,
            "TF_FORCE_GPU_ALLOW_GROWTH=true,allow_growth=false",
            true,
        ),
        (
            TensorFlow,
            "allow_growth=1,TF_FORCE_GPU_ALLOW_GROWTH=false",
            false,
        ),
        (Xla, "XLA_PYTHON_CLIENT_PREALLOCATE=false", true),
        (Xla, "XLA_PYTHON_CLIENT_PREALLOCATE:0", true),
        (Xla, "XLA_PYTHON_CLIENT_PREALLOCATE=no", false),
        (
            Xla,
            "allow_growth=True,XLA_PYTHON_CLIENT_PREALLOCATE=",
            true,
        ),
        (Plain, " allow_growth : TRUE ,", true),
    ] {
        assert_eq!(config(framework, text).allow_growth, growth, "{text}");
        assert_eq!(warnings(framework, text), [""; 0], "{text}");
    }
    assert!(!config(TensorFlow, "TF_ENABLE_GPU_GARBAGE_COLLECTION=false").garbage_collection);
    assert!(!config(Plain, "disallow_retry_on_allocation_failure=true").allow_retry_on_failure);
    let half = config(Plain, "internal_fragmentation_fraction=0.5").fragmentation_fraction;
    assert_eq!(half, 0.5);
}

#[test]
fn what_a_framework_ignores_is_a_warning() {
    for (framework, text, part) in [
        (
            TensorFlow,
            "TF_FORCE_GPU_ALLOW_GROWTH=True",
            "`true` and `false` only",
        ),
        (
            TensorFlow,
            "TF_ENABLE_GPU_GARBAGE_COLLECTION=0",
            "is ignored",
        ),
        (
            TensorFlow,
            "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=-1",
            "no number of MiB",
        ),
        (TensorFlow, "TF_GPU_ALLOCATOR=bfc", "it stays bfc"),
        (
            TensorFlow,
            "XLA_PYTHON_CLIENT_PREALLOCATE=false",
            "no effect under `tensorflow`",
        ),
        (
            Xla,
            "TF_FORCE_GPU_ALLOW_GROWTH=true",
            "no effect under `xla`",
        ),
        (
            Xla,
            "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB=5",
            "a pool of its own",
        ),
        (
            Plain,
            "allow_growth=true,allow_growth=false",
            "given 2 times",
        ),
    ] {
        let found = warnings(framework, text);
        assert!(
            found.len() == 1 && found[0].contains(part),
            "{text}: {found:?}"
        );
        let without_effect = config(framework, text);
        assert_eq!(without_effect, BfcConfig::new(framework), "{text}");
    }
}

#[test]
fn of_two_that_set_the_same_the_one_without_effect_is_named() {
    for (text, part) in [
        (
            "fraction=0.5,memory_fraction=0.6",
            "`fraction` and `memory_fraction` are the same option, the last one counts",
        ),
        (
            "memory_limit=1GiB,memory_limit_mb=512",
            "`memory_limit` and `memory_limit_mb` are the same option",
        ),
        (
            "per_process_gpu_memory_fraction=0.5,memory_limit=1GiB",
            "the share of memory has no effect",
        ),
    ] {
        let found = warnings(Plain, text);
        assert!(
            found.len() == 1 && found[0].contains(part),
            "{text}: {found:?}"
        );
    }
    assert_eq!(
        config(Plain, "fraction=0.5,memory_fraction=0.6").fraction,
        Some(0.6)
    );
}

#[test]
fn what_cannot_be_is_named() {
    for (framework, text, part) in [
        (Plain, "alow_growth=true", "did you mean `allow_growth`?"),
        (Plain, "allow_growht", "did you mean `allow_growth`?"),
        (Plain, "allow_growth", "`allow_growth` has no value"),
        (Plain, "allow_growth=yes", "`yes` is neither true nor false"),
        (Plain, "fraction=1.5", "a share above 1"),
        (Plain, "fraction=-0.1", "not a share from 0 to 1"),
        (Plain, "fraction=nan", "not a share from 0 to 1"),
        (Plain, "fraction=half", "`half` is not a share"),
        (
            Plain,
            "fragmentation_fraction=2",
            "`2` is not a share from 0 to 1",
        ),
        (Plain, "memory_limit=1024", "`memory_limit=1024`"),
        (Plain, "memory_limit_mb=1GiB", "not a number of MiB"),
        (Plain, "use_unified_memory=true", "managed memory"),
        (Xla, "TF_FORCE_UNIFIED_MEMORY=true", "managed memory"),
        (
            Xla,
            "XLA_CLIENT_MEM_FRACTION=.5,XLA_PYTHON_CLIENT_MEM_FRACTION=.5",
            "set one of them",
        ),
        (
            Xla,
            "XLA_CLIENT_MEM_FRACTION=0.75-0.85",
            "a share that grows",
        ),
        (
            Xla,
            "XLA_PYTHON_CLIENT_ALLOCATOR=platform",
            "use policy `eager`",
        ),
        (
            Xla,
            "XLA_PYTHON_CLIENT_ALLOCATOR=CUDA_ASYNC",
            "use policy `async`",
        ),
        (
            Xla,
            "XLA_PYTHON_CLIENT_ALLOCATOR=vmm",
            "not in this version",
        ),
        (
            Xla,
            "XLA_PYTHON_CLIENT_ALLOCATOR=defualt",
            "did you mean `default`?",
        ),
        (
            TensorFlow,
            "TF_GPU_ALLOCATOR=cuda_malloc_async",
            "use policy `async`",
        ),
        (
            TensorFlow,
            "TF_GPU_ALLOCATOR=cuda_malloc",
            "use policy `eager`",
        ),
        (
            TensorFlow,
            "TF_GPU_ALLOCATOR=memory_guard",
            "not in this version",
        ),
    ] {
        let found = refusal(framework, text);
        assert!(found.contains(part), "{text}: {found}");
    }
    let error = BfcConfig::parse(Plain, "memory_limit=1024").unwrap_err();
    assert!(error.help().unwrap().contains("memory_limit_mb"));
    config(Xla, "XLA_PYTHON_CLIENT_ALLOCATOR=Default");
}

#[test]
fn settings_in_force_parse_back() {
    let text = "allow_growth=true,fraction=0.25,fragmentation_fraction=0.125,garbage_collection=1";
    let options = config(Plain, text).options(&H200);
    let printed: Vec<String> = (options.settings().into_iter())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let again = config(Plain, &printed.join(",")).options(&H200);
    assert_eq!(again, options, "{printed:?}");
}

/// XLA multiplies whatever it is given; the pool backs off to what the card has.
#[test]
fn xla_does_not_refuse_a_share_above_the_card() {
    for text in [
        "XLA_CLIENT_MEM_FRACTION=1.5",
        "XLA_PYTHON_CLIENT_MEM_FRACTION=1.5",
        "fraction=1.5",
    ] {
        let wanted = (H200.total / 2 * 3).next_multiple_of(2 * MIB);
        assert_eq!(limit(Xla, text, H200), wanted, "{text}");
    }
    let card = Card {
        total: GIB,
        free: GIB,
        budget: Some(GIB),
        ..H200
    };
    assert_eq!(limit(Xla, "fraction=1.5", card), GIB);
    assert_eq!(limit(Xla, "fraction=1e300", H200), u64::MAX - (2 * MIB - 1));
    for text in ["fraction=inf", "fraction=-1", "XLA_CLIENT_MEM_FRACTION=nan"] {
        assert!(refusal(Xla, text).contains("not a share"), "{text}");
    }
}

#[test]
fn an_exponent_is_no_share_that_grows() {
    for (text, same) in [("2e-2", "0.02"), ("+0.02", "0.02"), ("2E-2", "0.02")] {
        let of = |share: &str| limit(Xla, &format!("XLA_CLIENT_MEM_FRACTION={share}"), H200);
        assert_eq!(of(text), of(same), "{text}");
    }
    for text in ["0.75+", "0.75-0.85", "-"] {
        let found = refusal(Xla, &format!("XLA_CLIENT_MEM_FRACTION={text}"));
        assert!(found.contains("a share that grows"), "{text}: {found}");
    }
}
