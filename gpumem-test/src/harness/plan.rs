//! From annotated functions to the tests that run: one for each policy and argument, with the
//! settings in force, every string checked before anything runs.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{Budget, DeviceSpec, NeighbourSpec, PolicySpec};
use crate::error::Error;

use super::facts;
use super::machine::Machine;
use super::messages;
use super::registry::{SnapshotOption, TestEntry};
use super::settings::Settings;

use table::TableCase;
pub(crate) use table::TablePlan;

/// Bytes in the name of a report or a snapshot, without its endings (`.snap.new`): file systems
/// take 255.
const LONGEST_NAME: usize = 240;

/// One test: a function under one policy with one argument.
#[derive(Clone)]
pub(crate) struct Case {
    /// The function.
    pub(crate) entry: &'static TestEntry,
    /// `module::test[::policy][::arg]`, without the crate.
    pub(crate) name: String,
    /// The snapshot's name relative to the function's module, if it wants one.
    pub(crate) snapshot: Option<String>,
    /// The index of its argument; 0 without `args`.
    pub(crate) arg: usize,
    /// The policy in force.
    pub(crate) policy: PolicySpec,
    /// The device in force.
    pub(crate) device: DeviceSpec,
    /// Whether the test itself names a device, which its snapshot then holds.
    pub(crate) device_named: bool,
    /// The budget in force.
    pub(crate) budget: Option<Budget>,
    /// Other processes on the card.
    pub(crate) neighbours: Vec<NeighbourSpec>,
    /// Bounds that the environment loosened, in sentences.
    pub(crate) loosened: Vec<String>,
    /// Why the summary is not comparable with the accepted one.
    pub(crate) incomparable: Option<String>,
    /// Why this machine cannot run it, as far as that is known before; it is listed as ignored.
    pub(crate) not_run: Option<String>,
}

impl Case {
    /// Its name as a file's: `module__test__policy`.
    pub(crate) fn file_name(&self) -> String {
        self.name.replace("::", "__")
    }
}

/// All tests of the program, by name.
pub(crate) struct Plan {
    /// The tests, by name.
    pub(crate) cases: Vec<Case>,
    /// The tables of tests with a list of policies.
    pub(crate) tables: Vec<TablePlan>,
    /// What is odd and yet no mistake, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// A mistake in what a test says, or in what the environment says for tests.
pub(crate) struct Mistake {
    /// The function; none where the environment is wrong.
    pub(crate) entry: Option<&'static TestEntry>,
    /// What is wrong.
    pub(crate) error: Error,
}

impl Plan {
    /// Makes the tests of `entries`, in any order.
    ///
    /// # Errors
    /// Every mistake of every test; first what the environment says wrongly for them, once.
    pub(crate) fn new(
        mut entries: Vec<&'static TestEntry>,
        settings: &Settings,
        machine: &Machine,
    ) -> Result<Self, Vec<Mistake>> {
        // Neither the linker nor inventory promises an order.
        entries.sort_by_key(|entry| (entry.module, entry.name, entry.file, entry.line));
        let mut plan = Self {
            cases: Vec::new(),
            tables: Vec::new(),
            warnings: Vec::new(),
        };
        let mut mistakes = Vec::new();
        for entry in entries {
            plan.expand(entry, settings, machine, &mut mistakes);
        }
        plan.find_twins(&mut mistakes);
        plan.find_twins_of_tables(&mut mistakes);
        plan.cases.sort_by(|left, right| left.name.cmp(&right.name));
        if mistakes.is_empty() {
            return Ok(plan);
        }
        mistakes.sort_by_key(|mistake| mistake.entry.is_some());
        Err(mistakes)
    }

    fn expand(
        &mut self,
        entry: &'static TestEntry,
        settings: &Settings,
        machine: &Machine,
        mistakes: &mut Vec<Mistake>,
    ) {
        let mut mistake = |error| {
            mistakes.push(Mistake {
                entry: Some(entry),
                error,
            });
        };
        let (own_policies, wrong) = own_policies(entry);
        wrong.into_iter().for_each(&mut mistake);
        // A list stays a list of one under `GPUMEM_POLICY`: the part of the name that filters and
        // snapshots go by is then that of the policy in force, which is called as in the list if
        // it stands there.
        let listed = own_policies.len() > 1;
        let policies = match &settings.policy {
            Some(policy) => vec![policy.clone()],
            None => own_policies.clone(),
        };
        let named_among = match policies.iter().all(|policy| own_policies.contains(policy)) {
            true => &own_policies,
            false => &policies,
        };
        let mut sound = Vec::new();
        for policy in &policies {
            // That of the environment was checked where it was read.
            if settings.policy.is_none() {
                match facts::check_policy(policy) {
                    Ok(warnings) => self.warnings.extend(
                        warnings
                            .iter()
                            .map(|warning| messages::warning_of_policy(entry, policy, warning)),
                    ),
                    Err(error) => {
                        mistake(error);
                        continue;
                    }
                }
            }
            sound.push(policy);
        }
        let mut neighbours = Vec::new();
        for text in entry.options.neighbours {
            match facts::neighbour(text) {
                Ok((neighbour, warnings)) => {
                    self.warnings.extend(
                        (warnings.iter())
                            .map(|text| messages::warning_of_neighbour(entry, &neighbour, text)),
                    );
                    neighbours.push(neighbour);
                }
                Err(error) => mistake(error),
            }
        }
        let own_device = match entry.options.device.map(str::parse).transpose() {
            Ok(device) => device,
            Err(error) => return mistake(error),
        };
        let device = settings.device.clone().or(own_device.clone());
        let device = device.unwrap_or_default().resolved(|| machine.gpus().count);
        let budget = settings.budget.or(entry.options.budget);
        let facts::Device { name, total, .. } = match facts::device(&device) {
            Ok(device) => device,
            Err(error) => return mistake(error),
        };
        if let (Some(budget), Some(total)) = (budget, total)
            && budget.on(total) > total
        {
            let bytes = budget.on(total);
            let error = messages::budget_above_device(bytes, &name, total, settings);
            return match settings.budget {
                Some(_) => once(error, mistakes),
                None => mistake(error),
            };
        }
        let is_missing = match device {
            DeviceSpec::Cuda { ordinal } => usize::from(ordinal) >= machine.gpus().count,
            _ => false,
        };
        if is_missing && settings.device.is_some() {
            return once(messages::no_gpu_for_all(&device, machine.gpus()), mistakes);
        }
        let not_run = match device {
            DeviceSpec::Cuda { .. } => {
                is_missing.then(|| messages::needs_gpu(&device, machine.gpus()))
            }
            _ => (entry.options.max_process_memory).map(|_| messages::needs_nvml(&name)),
        };
        let module = entry.module.split_once("::").map(|(_, module)| module);
        let head = module.map_or(String::new(), |module| format!("{module}::"));
        let mut table = Vec::new();
        for policy in sound {
            let part = listed.then(|| policy_part(policy, named_among));
            let case = Case {
                entry,
                name: String::new(),
                snapshot: None,
                arg: 0,
                policy: policy.clone(),
                device: device.clone(),
                device_named: own_device.is_some(),
                budget,
                neighbours: neighbours.clone(),
                loosened: loosened(entry, budget, total),
                incomparable: entry.options.snapshot.and_then(|_| {
                    let own = own_policies.contains(policy);
                    incomparable(entry, own, own_device.as_ref(), total, settings)
                }),
                not_run: not_run.clone(),
            };
            let args = entry.args.iter().map(|arg| Some(*arg));
            let no_args = entry.args.is_empty().then_some(None);
            for (index, arg) in no_args.into_iter().chain(args).enumerate() {
                let tail = tail(part.as_deref(), arg);
                let case = Case {
                    name: format!("{head}{}{tail}", entry.name),
                    snapshot: entry.options.snapshot.map(|SnapshotOption { name }| {
                        format!("{}{tail}", name.unwrap_or(entry.name)).replace("::", "__")
                    }),
                    arg: index,
                    ..case.clone()
                };
                table.extend(part.clone().map(|part| TableCase {
                    case: case.clone(),
                    part,
                }));
                self.cases.push(case);
            }
        }
        let test = format!("{head}{}", entry.name);
        self.tables
            .extend(TablePlan::of(test, table, settings.policy.is_some()));
    }

    /// Finds tests that would write the same files: reports, or snapshots.
    fn find_twins(&self, mistakes: &mut Vec<Mistake>) {
        let mut names: BTreeMap<String, &Case> = BTreeMap::new();
        let mut snapshots: BTreeMap<String, &Case> = BTreeMap::new();
        for case in &self.cases {
            if let Some(first) = names.insert(case.file_name(), case) {
                mistakes.push(Mistake {
                    entry: Some(case.entry),
                    error: messages::same_name(case, first),
                });
                continue;
            }
            let too_long = |name: &str| name.len() > LONGEST_NAME;
            if too_long(&case.file_name()) {
                mistakes.push(Mistake {
                    entry: Some(case.entry),
                    error: messages::name_too_long(&case.file_name(), LONGEST_NAME),
                });
                continue;
            }
            let Some(snapshot) = &case.snapshot else {
                continue;
            };
            let folder = Path::new(case.entry.file).parent().unwrap_or(Path::new(""));
            let module = case.entry.module.replace("::", "__");
            let name = format!("{module}__{snapshot}");
            if too_long(&name) {
                mistakes.push(Mistake {
                    entry: Some(case.entry),
                    error: messages::name_too_long(&name, LONGEST_NAME),
                });
                continue;
            }
            let file = folder.join(format!("snapshots/{name}.snap"));
            let file = file.to_string_lossy().into_owned();
            if let Some(first) = snapshots.insert(file.clone(), case) {
                mistakes.push(Mistake {
                    entry: Some(case.entry),
                    error: messages::same_snapshot(&file, first),
                });
            }
        }
    }
}

/// The policies that the attribute names, and what is wrong with the others.
fn own_policies(entry: &TestEntry) -> (Vec<PolicySpec>, Vec<Error>) {
    if entry.options.policies.is_empty() {
        return (vec![PolicySpec::default()], Vec::new());
    }
    let mut policies = Vec::new();
    let mut errors = Vec::new();
    for text in entry.options.policies {
        match text.parse() {
            Ok(policy) => policies.push(policy),
            Err(error) => errors.push(error),
        }
    }
    (policies, errors)
}

fn policy_part(policy: &PolicySpec, policies: &[PolicySpec]) -> String {
    let alike = policies.iter().filter(|other| other.kind == policy.kind);
    if alike.count() > 1 {
        policy.slug()
    } else {
        policy.kind.name().to_owned()
    }
}

fn tail(policy: Option<&str>, arg: Option<&str>) -> String {
    let mut tail = String::new();
    for part in [policy, arg].into_iter().flatten() {
        tail.push_str("::");
        tail.push_str(part);
    }
    tail
}

/// Adds a mistake of the environment, which every test on the same device would repeat.
fn once(error: Error, mistakes: &mut Vec<Mistake>) {
    let text = error.to_string();
    let is_known = |known: &Mistake| known.entry.is_none() && known.error.to_string() == text;
    if !mistakes.iter().any(is_known) {
        mistakes.push(Mistake { entry: None, error });
    }
}

fn loosened(entry: &TestEntry, budget: Option<Budget>, total: Option<u64>) -> Vec<String> {
    let (Some(own), Some(now)) = (entry.options.budget, budget) else {
        return Vec::new();
    };
    let is_higher = match (own, now, total) {
        (Budget::Share(own), Budget::Share(now), _) => now > own,
        (Budget::Bytes(own), Budget::Bytes(now), _) => now > own,
        (own, now, Some(total)) => now.on(total) > own.on(total),
        // Bytes and a share of a GPU that nobody has asked yet: better said once too often.
        (_, _, None) => true,
    };
    match is_higher {
        true => vec![messages::budget_loosened(own, now, total)],
        false => Vec::new(),
    }
}

/// The accepted text holds policy, budget and (if the test names one) device: where the
/// environment changed one of them, the texts could not be equal.
fn incomparable(
    entry: &TestEntry,
    own_policy: bool,
    own_device: Option<&DeviceSpec>,
    total: Option<u64>,
    settings: &Settings,
) -> Option<String> {
    if !own_policy {
        return Some(messages::not_compared_under("GPUMEM_POLICY"));
    }
    if settings.budget.is_some() && settings.budget != entry.options.budget {
        return Some(messages::not_compared_under("GPUMEM_BUDGET"));
    }
    let replaced = settings.device.as_ref();
    let named = own_device.is_some() && replaced.is_some() && replaced != own_device;
    // A share is other bytes on another device, and so is what neighbours leave. On a GPU the difference says whether it was.
    let own_total = facts::device(own_device.unwrap_or(&DeviceSpec::Auto))
        .ok()
        .and_then(|device| device.total);
    let share = matches!(entry.options.budget, Some(Budget::Share(_)))
        || !entry.options.neighbours.is_empty();
    let other = total.is_some() && own_total.is_some() && own_total != total;
    if named || share && other {
        return Some(messages::not_compared_under("GPUMEM_DEVICE"));
    }
    None
}
