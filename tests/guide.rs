//! The guide in `docs/`: its pictures are what the policies do, its pages are all listed and lead
//! somewhere, and each policy's page names every setting of that policy.
//!
//! `GPUMEM_GUIDE=write cargo test -p gpumem-tests --test guide` draws the pictures anew.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use gpumem_test::{
    AnyPolicy, BlockId, Card, DeviceMemory, DeviceProfile, Origin, Policy, PolicySpec, Request,
    SimDevice, StreamId, heap_svg,
};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

/// What happens before a picture is drawn.
#[derive(Clone, Copy)]
enum Step {
    /// `cuMemAllocAsync` of so many bytes.
    Ask(&'static str, u64),
    /// `cuMemAlloc`.
    AskPlain(&'static str, u64),
    Free(&'static str),
    /// Every stream is waited for.
    Synchronize,
    /// A request that must fail.
    Fail(u64),
}
use Step::{Ask, AskPlain, Fail, Free, Synchronize};

/// The requests that every page shows: weights, then temporaries that come and go.
const TEN: &[Step] = &[
    Ask("weights", 20 * MIB),
    AskPlain("embeddings", 6 * MIB),
    Ask("bias", 700 * KIB),
    AskPlain("scales", 300 * KIB),
    Ask("activations", 12 * MIB),
    Ask("scratch", 9 * MIB),
    Free("activations"),
    Ask("index", 1536 * KIB),
    Free("scratch"),
    AskPlain("logits", 25 * MIB),
    Ask("mask", 3 * MIB),
    AskPlain("lengths", 600 * KIB),
];

/// Three buffers that are too large for two to share a page.
const PAGES: &[Step] = &[
    AskPlain("first", 1_100 * KIB),
    AskPlain("second", 1_100 * KIB),
    AskPlain("third", 1_100 * KIB),
];

const SMALL_KEEPS_CHUNK: &[Step] = &[
    Ask("first", 20 * MIB),
    Ask("small", MIB),
    Ask("second", 70 * MIB),
    Free("first"),
    Free("second"),
    Synchronize,
];

/// The public report of `examples/bug-reports`: state moves into a temporary's segment.
const HOLE: &[Step] = &[
    Ask("model", 1_024 * MIB),
    Ask("temporary", 4_096 * MIB),
    Free("temporary"),
    Ask("moments", 1_024 * MIB),
    Ask("variances", 1_024 * MIB),
    Fail(4_096 * MIB),
];

const REGIONS: &[Step] = &[
    Ask("first", 3_072 * MIB),
    Ask("second", 3_072 * MIB),
    Free("second"),
    Fail(6_144 * MIB),
];

struct Picture {
    file: &'static str,
    policy: &'static str,
    budget: u64,
    steps: &'static [Step],
}

const fn picture(
    file: &'static str,
    policy: &'static str,
    budget_mib: u64,
    steps: &'static [Step],
) -> Picture {
    Picture {
        file,
        policy,
        budget: budget_mib * MIB,
        steps,
    }
}

const PICTURES: [Picture; 13] = [
    picture("driver", "driver", 128, TEN),
    picture("driver-pages", "driver", 128, PAGES),
    picture("eager", "eager", 128, TEN),
    picture("lazy", "lazy", 128, TEN),
    picture("async", "async", 128, TEN),
    picture("async-chunk", "async", 128, SMALL_KEEPS_CHUNK),
    picture("caching", "caching", 128, TEN),
    picture("caching-hole", "caching", 8_192, HOLE),
    picture("bfc", "bfc", 128, TEN),
    picture("bfc-growing", "bfc:allow_growth=true", 128, TEN),
    picture("bfc-regions", "bfc:allow_growth=true", 10_240, REGIONS),
    picture(
        "tensorflow",
        "tensorflow:TF_FORCE_GPU_ALLOW_GROWTH=true",
        128,
        TEN,
    ),
    picture("xla", "xla:XLA_CLIENT_MEM_FRACTION=0.75", 160, TEN),
];

impl Picture {
    fn card(&self) -> (SimDevice, Card) {
        let mut device = SimDevice::new(DeviceProfile::h200());
        device.set_budget(Some(self.budget));
        let info = device.memory_info();
        let card = Card {
            total: info.total,
            free: info.free,
            budget: Some(self.budget),
            unusable: device.profile().unusable_tail,
            compute_major: device.profile().compute_capability.0,
        };
        (device, card)
    }

    fn draw(&self) -> String {
        let (mut device, card) = self.card();
        let spec: PolicySpec = self.policy.parse().unwrap();
        let mut policy = AnyPolicy::new(&spec, &card).unwrap();
        let mut held: HashMap<&str, BlockId> = HashMap::new();
        let stream = StreamId::DEFAULT;
        for step in self.steps {
            let mut ask = |size, origin| {
                let request = Request {
                    size,
                    stream,
                    origin,
                };
                policy.alloc(&mut device, &mut (), request)
            };
            match *step {
                Ask(name, size) => {
                    held.insert(name, ask(size, Origin::StreamOrdered).unwrap().id);
                }
                AskPlain(name, size) => {
                    held.insert(name, ask(size, Origin::Plain).unwrap().id);
                }
                Fail(size) => {
                    let error = ask(size, Origin::StreamOrdered).unwrap_err();
                    assert!(error.is_out_of_memory(), "{}: {error}", self.file);
                }
                Free(name) => {
                    let block = held.remove(name).unwrap();
                    policy.free(&mut device, &mut (), block, stream).unwrap();
                }
                Synchronize => {
                    device.synchronize();
                    policy.device_synchronized(&mut device, &mut ());
                }
            }
        }
        let title = format!("{}, budget {}", self.policy, size(self.budget));
        heap_svg(&policy.heap_map(), &title)
    }
}

fn size(bytes: u64) -> String {
    gpumem_test::Bytes::new(bytes).to_string()
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages below `docs/`, as paths from there.
fn pages() -> BTreeSet<String> {
    let mut pages = BTreeSet::new();
    for folder in ["", "policies"] {
        for entry in fs::read_dir(docs().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                pages.insert(match folder {
                    "" => name,
                    folder => format!("{folder}/{name}"),
                });
            }
        }
    }
    pages
}

/// The targets of the links and pictures of a page that lie in the repository.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .filter(|target| !target.starts_with("http"))
        .collect()
}

#[test]
fn pictures_are_what_the_policies_do() {
    let write = std::env::var("GPUMEM_GUIDE").is_ok_and(|what| what == "write");
    for picture in &PICTURES {
        let path = docs().join(format!("images/{}.svg", picture.file));
        let drawn = picture.draw();
        if write {
            fs::write(&path, &drawn).unwrap();
        }
        assert!(
            read(&path) == drawn,
            "docs/images/{}.svg is not what {} does now: look at the change after \
             `GPUMEM_GUIDE=write cargo test -p gpumem-tests --test guide`",
            picture.file,
            picture.policy
        );
    }
}

#[test]
fn every_picture_is_on_a_page() {
    let mut shown = BTreeSet::new();
    for page in pages() {
        for link in links(&read(&docs().join(&page))) {
            if let Some((_, file)) = link.split_once("images/") {
                shown.insert(file.trim_end_matches(".svg").to_owned());
            }
        }
    }
    let drawn: BTreeSet<String> = (PICTURES.iter())
        .map(|picture| picture.file.to_owned())
        .collect();
    assert_eq!(shown, drawn);
}

#[test]
fn every_page_is_in_the_contents_and_every_link_leads_somewhere() {
    let mut pages = pages();
    let contents = read(&docs().join("SUMMARY.md"));
    for page in &pages {
        let folder = Path::new(page).parent().unwrap();
        for link in links(&read(&docs().join(page))) {
            let target = link.split('#').next().unwrap();
            let path = docs().join(folder).join(target);
            assert!(
                target.is_empty() || path.exists(),
                "docs/{page} leads to {link}, which is not there"
            );
        }
    }
    pages.remove("SUMMARY.md");
    let listed: BTreeSet<String> = links(&contents).into_iter().collect();
    assert_eq!(listed, pages);
}

#[test]
fn each_policys_page_names_its_settings() {
    for (policy, page) in [
        ("driver", "driver"),
        ("eager", "eager"),
        ("lazy", "lazy"),
        ("async:max_size=64MiB", "async"),
        ("caching", "caching"),
        ("bfc", "bfc"),
        ("tensorflow", "bfc"),
        ("xla", "bfc"),
    ] {
        let (_, card) = PICTURES[0].card();
        let policy = AnyPolicy::new(&policy.parse().unwrap(), &card).unwrap();
        let text = read(&docs().join(format!("policies/{page}.md")));
        for (name, _) in policy.settings() {
            assert!(
                [format!("`{name}`"), format!("`{name}:")]
                    .iter()
                    .any(|said| text.contains(said)),
                "docs/policies/{page}.md says nothing of `{name}`"
            );
        }
    }
}
