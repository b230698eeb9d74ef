//! What differs between operating systems: signals, process groups, orphans.
//!
//! On Linux a child leads a process group of its own, so that a timeout reaches what the test
//! itself started, and dies with its supervisor. On other systems it stays in the supervisor's
//! group, where Ctrl-C reaches it; a timeout then ends the child alone.

use std::process::{Child, Command, ExitStatus};

/// Prepares the start of a child.
pub(super) fn prepare(command: &mut Command) {
    #[cfg(target_os = "linux")]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// In a child: die with the supervisor.
pub(super) fn follow_supervisor() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Ends a child that runs, and (on Linux) what it started.
pub(super) fn kill(child: &mut Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
    let _ = child.kill();
}

/// The number and name of the signal that ended a process.
#[cfg(unix)]
pub(super) fn signal(status: ExitStatus) -> Option<(i32, String)> {
    use rustix::process::Signal;
    const NAMES: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let number = std::os::unix::process::ExitStatusExt::signal(&status)?;
    let name = NAMES
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(
            || format!("signal {number}"),
            |(_, name)| (*name).to_owned(),
        );
    Some((number, name))
}

/// There are no signals here.
#[cfg(not(unix))]
pub(super) fn signal(_status: ExitStatus) -> Option<(i32, String)> {
    None
}
