//! Small snapshots for tests, pickled as Python's protocol 4 would.

use super::TorchSnapshot;

/// A plain value.
#[derive(Clone, Debug)]
pub(crate) enum Plain {
    Int(i64),
    Text(&'static str),
    Flag(bool),
    List(Vec<Plain>),
    Dict(Vec<(&'static str, Plain)>),
}

use Plain::{Dict, Flag, Int, List, Text};

impl Plain {
    pub(crate) fn pickled(&self) -> Vec<u8> {
        let mut bytes = vec![0x80, 4];
        self.write_to(&mut bytes);
        bytes.push(b'.');
        bytes
    }

    pub(crate) fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Int(number) => {
                bytes.extend([0x8a, 8]);
                bytes.extend(number.to_le_bytes());
            }
            Text(text) => {
                bytes.extend([0x8c, text.len() as u8]);
                bytes.extend(text.as_bytes());
            }
            Flag(flag) => bytes.push(if *flag { 0x88 } else { 0x89 }),
            List(items) => {
                bytes.extend(*b"](");
                items.iter().for_each(|item| item.write_to(bytes));
                bytes.push(b'e');
            }
            Dict(entries) => {
                bytes.extend(*b"}(");
                for (key, value) in entries {
                    Text(key).write_to(bytes);
                    value.write_to(bytes);
                }
                bytes.push(b'u');
            }
        }
    }

    /// The value under a path of keys and indices: `segments.0.blocks`.
    pub(crate) fn at(&mut self, path: &str) -> &mut Plain {
        let mut value = self;
        for step in path.split('.') {
            value = match value {
                Dict(entries) => {
                    let entry = entries.iter_mut().find(|(key, _)| *key == step);
                    &mut entry.expect("a key of the sample").1
                }
                List(items) => &mut items[step.parse::<usize>().expect("an index")],
                other => panic!("{other:?} has no {step}"),
            };
        }
        value
    }
}

/// Address of the sample segments: 256 MiB apart.
pub(crate) const BASE: i64 = 0x7000_0000_0000;

/// Stack: `model.py` with this line below a frame of PyTorch.
pub(crate) fn frames(line: i64) -> Plain {
    let frame = |filename, line| {
        Dict(vec![
            ("name", Text("f")),
            ("filename", Text(filename)),
            ("line", Int(line)),
        ])
    };
    List(vec![
        frame("/lib/site-packages/torch/nn/functional.py", 7),
        frame("model.py", line),
    ])
}

/// An entry on the default stream, from line 1.
pub(crate) fn entry(action: &'static str, address: i64, size: i64) -> Plain {
    Dict(vec![
        ("action", Text(action)),
        ("addr", Int(address)),
        ("size", Int(size)),
        ("stream", Int(0)),
        ("time_us", Int(5)),
        ("frames", frames(1)),
    ])
}

/// A segment on the default stream whose blocks have these sizes, bytes asked for and states.
pub(crate) fn segment(
    address: i64,
    kind: &'static str,
    blocks: &[(i64, i64, &'static str)],
) -> Plain {
    let mut at = address;
    let mut states = Vec::new();
    for &(size, requested, state) in blocks {
        states.push(Dict(vec![
            ("address", Int(at)),
            ("size", Int(size)),
            ("requested_size", Int(requested)),
            ("state", Text(state)),
            ("frames", frames(2)),
        ]));
        at += size;
    }
    Dict(vec![
        ("device", Int(0)),
        ("address", Int(address)),
        ("total_size", Int(at - address)),
        ("stream", Int(0)),
        ("segment_type", Text(kind)),
        ("segment_pool_id", List(vec![Int(0), Int(0)])),
        ("is_expandable", Flag(false)),
        ("blocks", List(states)),
        ("a_key_of_the_future", Int(1)),
    ])
}

/// A snapshot with default settings.
pub(crate) fn snapshot(segments: Vec<Plain>, entries: Vec<Plain>) -> Plain {
    Dict(vec![
        ("segments", List(segments)),
        ("device_traces", List(vec![List(entries)])),
        (
            "allocator_settings",
            Dict(vec![
                ("PYTORCH_CUDA_ALLOC_CONF", Text("")),
                ("max_split_size", Int(-1)),
                ("expandable_segments", Flag(false)),
                (
                    "roundup_power2_divisions",
                    Dict(vec![("1", Int(0)), ("2", Int(0)), ("4", Int(0))]),
                ),
            ]),
        ),
        ("external_annotations", List(Vec::new())),
    ])
}

/// Reads a snapshot that is well-formed.
pub(crate) fn read(snapshot: &Plain) -> TorchSnapshot {
    TorchSnapshot::from_bytes("sample", &snapshot.pickled()).expect("a snapshot")
}

/// A segment of 2 MiB with a block held and one freed, and how they came.
pub(crate) fn small() -> Plain {
    snapshot(
        vec![segment(
            BASE,
            "small",
            &[
                (1024, 700, "active_allocated"),
                ((2 << 20) - 1024, 512, "inactive"),
            ],
        )],
        vec![
            entry("segment_alloc", BASE, 2 << 20),
            entry("alloc", BASE, 700),
            entry("alloc", BASE + 1024, 512),
            entry("free_requested", BASE + 1024, 512),
            entry("free_completed", BASE + 1024, 512),
        ],
    )
}
