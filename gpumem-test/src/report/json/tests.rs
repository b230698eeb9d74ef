//! The document against its schema.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::tests::{strict, training};
use super::{Judged, json};
use crate::advice::tests::{growing_while_holding_the_old, play};
use crate::check::{Bounds, Compared, Ended, judge};
use crate::event::{DriverMemory, EventKind, OomClass};
use crate::summary::Summary;
use crate::summary::testing::{MIB, Script};

/// The document of a test that has advice of every kind.
fn advised() -> serde_json::Value {
    let bounds = Bounds {
        max_reserved: Some(500 * MIB),
        ..Bounds::default()
    };
    let played = play("caching", Some(800 * MIB), growing_while_holding_the_old);
    let advice = played.advice(&bounds);
    let text = json(&Judged {
        summary: &played.summary,
        bounds: &bounds,
        findings: &played.findings(&bounds),
        ended: &played.ended,
        advice: Some(&advice),
        snapshot: Compared::Equal,
    });
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_document_has_the_advice() {
    let document = advised();
    let advice = &document["advice"];
    assert_eq!(advice["check"]["exact"], true);
    assert_eq!(advice["reach"], "test");
    let policy = &advice["passing"][0]["policy"];
    assert_eq!(policy, "caching:expandable_segments:True");
    assert_eq!(advice["overlap"]["times"], 4);
    let none = document_of_a_pass();
    assert_eq!(none["advice"], serde_json::Value::Null);
}

fn document_of_a_pass() -> serde_json::Value {
    document(&Script::new("driver"), &Bounds::default(), &Ended::Returned)
}

fn document(script: &Script, bounds: &Bounds, ended: &Ended) -> serde_json::Value {
    let summary = script.summary();
    let findings = judge(&summary, bounds);
    let text = json(&Judged {
        summary: &summary,
        bounds,
        findings: &findings,
        ended,
        advice: None,
        snapshot: Compared::Equal,
    });
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_document_carries_verdict_findings_and_end() {
    let ended = Ended::TimedOut {
        after: Duration::from_secs(2),
    };
    let failed = document(&training(), &strict(), &ended);
    assert_eq!(failed["schema"], 1);
    assert_eq!(failed["verdict"], "failed");
    assert_eq!(failed["end"]["kind"], "timed_out");
    assert_eq!(failed["end"]["after_ns"], 2_000_000_000_u64);
    assert_eq!(failed["findings"][0]["bound"], "max_allocated");
    assert_eq!(failed["findings"][0]["limit"], 1280 * MIB);
    assert_eq!(failed["findings"][0]["place"], "allocated_peak");
    let passed = document(&Script::new("driver"), &Bounds::default(), &Ended::Returned);
    assert_eq!(passed["verdict"], "passed");
    assert_eq!(passed["summary"]["budget"], serde_json::Value::Null);
}

#[test]
fn a_summary_survives_its_document() {
    let summary = training().summary();
    let document = document(&training(), &strict(), &Ended::Returned);
    let read: Summary = serde_json::from_value(document["summary"].clone()).unwrap();
    assert_eq!(read, summary);
}

fn schema() -> Value {
    schema_of("summary.schema.json")
}

fn schema_of(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    serde_json::from_str(&std::fs::read_to_string(path.join(file)).unwrap()).unwrap()
}

/// That documents have exactly the keys of a schema in `docs`, and between them meet all of it.
pub(in crate::report) fn assert_documented(file: &str, documents: &[Value]) {
    let schema = schema_of(file);
    let mut validator = Validator {
        root: &schema,
        errors: Vec::new(),
        used: Vec::new(),
    };
    for document in documents {
        validator.check(&schema, document, "$");
    }
    assert_eq!(validator.errors, Vec::<String>::new());
    // Each definition was met, so that none can differ unnoticed.
    for name in schema["$defs"].as_object().unwrap().keys() {
        assert!(validator.used.contains(name), "{name} was never met");
    }
}

/// What of `value` the schema does not allow, and the definitions that it names. Stricter than the
/// schema, which allows keys that it does not name.
struct Validator<'a> {
    root: &'a Value,
    errors: Vec<String>,
    used: Vec<String>,
}

impl Validator<'_> {
    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.strip_prefix("#/$defs/").unwrap();
            self.used.push(name.to_owned());
            let root = self.root;
            self.check(&root["$defs"][name], value, path);
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            let choice = choices
                .iter()
                .find(|choice| (choice["type"] == "null") == value.is_null());
            self.check(choice.unwrap(), value, path);
        }
        if !schema["type"].is_null() && !has_type(&schema["type"], value) {
            self.errors
                .push(format!("{path}: {value} is no {}", schema["type"]));
        }
        if schema["enum"]
            .as_array()
            .is_some_and(|values| !values.contains(value))
        {
            self.errors
                .push(format!("{path}: {value} is not in the list"));
        }
        if schema
            .get("const")
            .is_some_and(|constant| constant != value)
        {
            self.errors
                .push(format!("{path}: {value} is not the constant"));
        }
        if let Some(number) = value.as_f64() {
            let below = schema["minimum"]
                .as_f64()
                .is_some_and(|least| number < least);
            let above = schema["maximum"].as_f64().is_some_and(|most| number > most);
            if below || above {
                self.errors
                    .push(format!("{path}: {number} is out of range"));
            }
        }
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            if schema["maxItems"]
                .as_u64()
                .is_some_and(|most| values.len() as u64 > most)
            {
                self.errors.push(format!("{path}: {} items", values.len()));
            }
            for (index, value) in values.iter().enumerate() {
                self.check(items, value, &format!("{path}[{index}]"));
            }
        }
        if let (Some(properties), Some(object)) =
            (schema["properties"].as_object(), value.as_object())
        {
            for key in object.keys().filter(|key| !properties.contains_key(*key)) {
                self.errors.push(format!("{path}.{key} is not documented"));
            }
            for (key, schema) in properties {
                match object.get(key) {
                    Some(value) => self.check(schema, value, &format!("{path}.{key}")),
                    None => self.errors.push(format!("{path}.{key} is missing")),
                }
            }
        }
    }
}

fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the schema names the unknown type {other}"),
    };
    match types {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

#[test]
fn documents_have_exactly_the_documented_keys() {
    let mut crashed = training();
    crashed.misuse("freed twice").run_begin(1);
    let mut twice = training();
    twice.run_begin(1).run_end(1);
    let mut passing = training();
    passing
        .take(DriverMemory::Managed, 1, MIB)
        .take(DriverMemory::PinnedHost, 2, MIB)
        .sample(MIB, Some(MIB))
        .sample(2 * MIB, Some(MIB))
        .not_simulated("cuTexRefCreate")
        .violation("a hook panicked")
        .event(EventKind::Launches { count: 3 })
        .event(EventKind::ShadowDiffers {
            model: 1,
            driver: 2,
        })
        .run_begin(1)
        .run_end(1);
    let unknown = Bounds {
        max_process_memory: Some(1),
        ..Bounds::default()
    };
    let mut shared = Script::new("driver");
    shared.about().neighbours = vec![("1GiB".to_owned(), Some(1 << 30)), ("xla".to_owned(), None)];
    shared.out_of_memory(OomClass::OutsideProcess, MIB);
    let documents = [
        advised(),
        document(&shared, &Bounds::default(), &Ended::Returned),
        document(&passing, &strict(), &Ended::Returned),
        document(&training(), &unknown, &Ended::Returned),
        document(&training(), &strict(), &Ended::Returned),
        document(
            &crashed,
            &strict(),
            &Ended::Signalled {
                number: 11,
                name: "SIGSEGV".to_owned(),
            },
        ),
        document(
            &twice,
            &Bounds::default(),
            &Ended::Panicked {
                message: "no".to_owned(),
                place: "a.rs:1".to_owned(),
            },
        ),
        document(
            &Script::new("driver"),
            &Bounds::default(),
            &Ended::Exited { code: 1 },
        ),
    ];
    assert_documented("summary.schema.json", &documents);
}

#[test]
fn the_validator_notices_keys_that_come_and_go() {
    let schema = schema();
    let mut wrong = document(&training(), &strict(), &Ended::Returned);
    wrong["summary"]["devices"][0]["counts"]["frees"] = Value::from(-1);
    wrong["summary"]["more"] = Value::from(1);
    wrong["end"].as_object_mut().unwrap().remove("code");
    let mut validator = Validator {
        root: &schema,
        errors: Vec::new(),
        used: Vec::new(),
    };
    validator.check(&schema, &wrong, "$");
    assert_eq!(
        validator.errors,
        [
            "$.end.code is missing",
            "$.summary.more is not documented",
            "$.summary.devices[0].counts.frees: -1 is out of range"
        ]
    );
}

/// The version does not grow with a new key, so a reader that validates must let it pass.
#[test]
fn the_schema_allows_keys_of_later_releases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/summary.schema.json");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(!text.contains("additionalProperties"));
}

#[test]
fn the_version_is_the_documented_one() {
    assert_eq!(schema()["properties"]["schema"]["const"], super::SCHEMA);
}
