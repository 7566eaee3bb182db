//! Exit codes, which scripts may rely on, and [`Failure`], which carries one to the end of the
//! program.

use crate::report::file::WriteError;
use sanloom_lab::Diagnostics;
use std::fmt;

/// Success. A closed pipe on standard output does not change the code.
pub const OK: u8 = 0;
/// The work was done, and a checked expectation failed: a bound of the lab, or a number of a
/// reproduction.
pub const EXPECTATION_FAILED: u8 = 1;
/// The command line or the lab file is wrong; nothing was simulated.
pub const USAGE: u8 = 2;
/// A peer misbehaved or a protocol failed. No command that only simulates ends with it.
pub const PROTOCOL: u8 = 3;
/// The environment prevents the work: a missing permission, a full disk, a missing folder, no
/// memory for threads.
pub const ENVIRONMENT: u8 = 4;
/// A mistake of sanloom itself.
pub const BUG: u8 = 70;
/// Interrupted by Ctrl-C before the work was complete; what was measured is kept and written.
pub const INTERRUPTED: u8 = 130;

/// Reason why a command did not end with [`OK`].
#[derive(Debug)]
pub struct Failure {
    /// One of the codes of this module.
    pub code: u8,
    /// The event and its remedy, without an end of line; empty if everything has been printed.
    pub message: String,
    /// The message with terminal colours, if it has some.
    pub coloured: Option<String>,
}

impl Failure {
    fn new(code: u8, message: impl fmt::Display) -> Failure {
        Failure { code, message: format!("error: {message}"), coloured: None }
    }

    /// The command line or the lab file is wrong.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(USAGE, message)
    }

    /// The environment prevents the work.
    pub fn environment(message: impl fmt::Display) -> Failure {
        Failure::new(ENVIRONMENT, message)
    }

    /// A peer misbehaved or a protocol failed.
    pub fn protocol(message: impl fmt::Display) -> Failure {
        Failure::new(PROTOCOL, message)
    }

    /// A mistake of sanloom itself, found by one of its own checks.
    pub fn bug(message: impl fmt::Display) -> Failure {
        Failure::new(BUG, format_args!("{message}\n{REPORT_IT}"))
    }

    /// The work was interrupted.
    pub fn interrupted(message: impl fmt::Display) -> Failure {
        Failure { code: INTERRUPTED, message: format!("interrupted: {message}"), coloured: None }
    }

    /// An expectation failed; it has been printed already.
    pub fn expectation() -> Failure {
        Failure { code: EXPECTATION_FAILED, message: String::new(), coloured: None }
    }
}

/// Request to report a bug, for users.
pub const REPORT_IT: &str = concat!(
    "This is a bug in sanloom ",
    env!("CARGO_PKG_VERSION"),
    ". Please report it, with the command and the lab file, at ",
    env!("CARGO_PKG_REPOSITORY"),
    "/issues"
);

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure::environment(error)
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        Failure {
            code: USAGE,
            message: diagnostics.render(false).trim_end().to_owned(),
            coloured: Some(diagnostics.render(true).trim_end().to_owned()),
        }
    }
}
