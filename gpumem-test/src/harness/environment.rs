//! The environment variables that the harness reads.
//!
//! A variable goes before the attribute, for every test of the run. (A settings file,
//! `gpumem.toml`, is for a later version.) One that is empty counts as
//! not set. A wrong value, or a name that is nearly one of these, keeps all tests from starting
//! (status [`NOT_STARTED`](crate::exit_code::NOT_STARTED)).
//!
//! | variable | in place of | example |
//! |---|---|---|
//! | [`GPUMEM_DEVICE`](DEVICE) | `device` | `sim:rtx4090`, `cuda:1` |
//! | [`GPUMEM_POLICY`](POLICY) | `policy` | `caching:expandable_segments:True` |
//! | [`GPUMEM_BUDGET`](BUDGET) | `budget` | `2GiB` |
//! | [`GPUMEM_LEDGER_EVENTS`](LEDGER_EVENTS) | – | `16_000_000` |
//! | [`GPUMEM_SITES`](SITES) | – | `off`, `failure`, `always` |
//! | [`GPUMEM_UNSUPPORTED`](UNSUPPORTED) | – | `list`, `error` |
//! | [`GPUMEM_SKIP`](SKIP) | – | `fail`, `pass` |
//!
//! A snapshot is not compared where a variable changes what it holds: the policy, the budget, or
//! the device of a test that names one. The result says so.

/// `GPUMEM_DEVICE`: the device of every test. A GPU that this machine has not keeps all tests from
/// starting; where only a test's attribute names it, that test is skipped.
pub const DEVICE: &str = "GPUMEM_DEVICE";

/// `GPUMEM_POLICY`: the policy of every test. A list of policies becomes this one; the test's name
/// keeps its part for the policy, which is as in the list if this one stands there, else its kind.
pub const POLICY: &str = "GPUMEM_POLICY";

/// `GPUMEM_BUDGET`: the budget of every test. A lower one than the test's own is silent, a higher
/// one is printed with the result.
pub const BUDGET: &str = "GPUMEM_BUDGET";

/// `GPUMEM_LEDGER_EVENTS`: how many events the ledger of a test holds, 4 194 304 unless set. A test
/// that has more fails. The file is sparse: 64 bytes of disk for an event that happens.
pub const LEDGER_EVENTS: &str = "GPUMEM_LEDGER_EVENTS";

/// `GPUMEM_SITES`: the places of driver calls in unmodified code. `failure` (unless set) keeps
/// return addresses, and looks up files and lines when a test fails; the JSON of a test that passed
/// has them as module and offset. `always` looks them up for every test. `off` keeps none. Places of
/// the `Gpu` handle are always known.
pub const SITES: &str = "GPUMEM_SITES";

/// `GPUMEM_UNSUPPORTED`: what comes of a function that the simulated driver lacks. `list` (unless
/// set) names it in the report, `error` fails the test too. Either way the code is told that there
/// is no such function.
pub const UNSUPPORTED: &str = "GPUMEM_UNSUPPORTED";

/// `GPUMEM_SKIP`: what comes of a test that this machine cannot run, where the runner knows only
/// pass and fail (cargo-nextest). `fail` (unless set) fails it with the reason, `pass` lets it pass.
/// `cargo test` shows it as ignored, with the reason, and so does nextest if that is known when the
/// tests are listed.
pub const SKIP: &str = "GPUMEM_SKIP";

/// `GPUMEM_PRELOAD`: the folder that `gpumem-preload` leaves figures in. Tests do not read it.
pub const PRELOAD: &str = "GPUMEM_PRELOAD";
