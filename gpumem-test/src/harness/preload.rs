//! A session for a whole process that is no test: what `gpumem-preload` opens.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, fs, process};

use crate::check::{Bounds, Compared, Ended};
use crate::config::{DeviceSpec, PolicySpec};
use crate::error::Error;
use crate::event::EventKind;
use crate::intercept;
use crate::ledger::Ledger;
use crate::report::{self, Judged};
use crate::session::{Neighbours, Session, SessionConfig};
use crate::snapshot;
use crate::summary::{About, Summary};

use super::environment;
use super::exit_code;
use super::machine::Machine;
use super::messages;
use super::settings::{Settings, SitesSetting};

/// The session of this process.
static RECORDED: OnceLock<Recorded> = OnceLock::new();

struct Recorded {
    session: Arc<Session>,
    ledger: Arc<Ledger>,
    /// Where figures go: the folder and the process, without an ending.
    place: PathBuf,
    policy: PolicySpec,
    process: u32,
}

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

/// Opens a session if [`environment::PRELOAD`] says where its figures go, and has them written when
/// the process exits. A setting that cannot be used ends the process before its `main`: without
/// its budget it would pass where it should not.
pub fn start() {
    let Some(folder) = env::var_os(environment::PRELOAD).filter(|folder| !folder.is_empty()) else {
        return;
    };
    let recorded = match Settings::from_env() {
        Ok(settings) => open(Path::new(&folder), settings).map_err(|error| vec![error]),
        Err(errors) => Err(errors),
    };
    match recorded {
        Ok(recorded) => {
            if RECORDED.set(recorded).is_ok() {
                atexit(finish);
            }
        }
        Err(errors) => {
            for error in errors {
                eprintln!("error: {error:?}");
            }
            process::exit(exit_code::NOT_STARTED.into());
        }
    }
}

fn open(folder: &Path, settings: Settings) -> Result<Recorded, Error> {
    let io = |error| Error::io(format!("cannot write to {}", folder.display()), error);
    fs::create_dir_all(folder).map_err(io)?;
    // The program may change its folder.
    let folder = folder.canonicalize().map_err(io)?;
    let process = process::id();
    let program = env::current_exe().ok();
    let program = (program.as_deref().and_then(Path::file_name))
        .map_or_else(|| "program".into(), |name| name.to_string_lossy());
    let place = folder.join(format!("{program}-{process}"));

    // In memory: every shell on the way has us loaded too, and most end by `exec`.
    let ledger = Arc::new(Ledger::in_memory(settings.ledger_events)?);
    let policy = settings.policy.unwrap_or_default();
    let device = settings.device.unwrap_or_default();
    let device = device.resolved(|| Machine::here().gpus().count);
    if matches!(device, DeviceSpec::Cuda { ordinal } if ordinal > 0) {
        return Err(messages::not_the_first_card(environment::DEVICE, &device));
    }
    let session = Session::open(SessionConfig {
        device,
        policy: policy.clone(),
        budget: settings.budget,
        neighbours: Neighbours::default(),
        ledger: Arc::clone(&ledger),
        keeps_call_sites: settings.sites != SitesSetting::Off,
        // The program sees its own card, not the default profile.
        names_device: true,
        samples_process: true,
    })?;
    intercept::serve(&session)?;
    session.run_begin(0);
    Ok(Recorded {
        session,
        ledger,
        place,
        policy,
        process,
    })
}

/// The process exits. The driver may be gone: nothing here asks it.
extern "C" fn finish() {
    // A child that forked has our memory and is not us.
    let Some(recorded) = RECORDED.get().filter(|it| it.process == process::id()) else {
        return;
    };
    let session = &recorded.session;
    intercept::close();
    session.record(session.cause_unknown(), EventKind::RunEnd { run: 0 });
    session.close();
    if let Err(error) = recorded.write() {
        eprintln!("error: {error:?}");
    }
}

impl Recorded {
    /// Writes the summary. A process that did nothing on the card leaves nothing.
    fn write(&self) -> Result<(), Error> {
        let recording = self.ledger.read();
        if recording.events.iter().all(|event| is_ours(event.kind)) {
            return Ok(());
        }
        let facts = self.session.facts();
        let about = About {
            test: self
                .place
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            policy: self.policy.clone(),
            settings: facts.settings,
            device: facts.device,
            device_named: true,
            device_total: facts.device_total,
            budget: facts.budget,
            context_overhead: facts.context_overhead,
            neighbours: Vec::new(),
        };
        let summary = Summary::of(&recording, &about);
        let json = report::json(&Judged {
            summary: &summary,
            bounds: &Bounds::default(),
            findings: &[],
            ended: &Ended::Returned,
            advice: None,
            snapshot: Compared::Equal,
        });
        for (ending, text) in [("json", json), ("txt", snapshot::text(&summary))] {
            let path = with_ending(&self.place, ending);
            fs::write(&path, text)
                .map_err(|error| Error::io(format!("cannot write {}", path.display()), error))?;
        }
        eprintln!(
            "gpumem-preload: figures in {}",
            with_ending(&self.place, "txt").display()
        );
        Ok(())
    }
}

/// Whether the event is there although the program never called the driver.
fn is_ours(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunBegin { .. }
            | EventKind::RunEnd { .. }
            | EventKind::ThreadBegin { .. }
            | EventKind::ThreadEnd
    )
}

/// Not `with_extension`: a program's name may have dots.
fn with_ending(place: &Path, ending: &str) -> PathBuf {
    let mut path = place.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}
