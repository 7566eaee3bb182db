//! Table of the results of a command and the resulting actions.

use super::{End, Error, ErrorKind};
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{Condition, SenseCode, SenseKey};

/// Action after a command has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The command succeeded.
    Good,
    /// A condition at the target has changed: repeat at once.
    UnitAttention(SenseCode),
    /// Repeat at once. If the repetitions are exhausted, fail with this error.
    Retry(Error),
    /// Repeat after a delay. After the time limit, fail with `error`. `full` means that the target
    /// has too many commands.
    Delay { error: Error, full: bool },
    /// Repeat once it is certain that the target no longer executes the command.
    Unaborted,
    /// The path is lost: repeat on the next one.
    PathGone,
    /// Fail, because a repetition cannot succeed.
    Fail(Error),
}

const fn error(kind: ErrorKind) -> Error {
    Error { kind, sense: None }
}

/// Evaluates the table (SAM-5, 5.3.1 for statuses; SPC-4, 4.5.6 for sense keys).
pub(super) fn verdict(end: &End) -> Verdict {
    let (status, sense) = match end {
        End::Status { status, sense, .. } => (*status, sense),
        End::TimedOut { aborted: true } => return Verdict::Retry(error(ErrorKind::TimedOut)),
        End::TimedOut { aborted: false } => return Verdict::Unaborted,
        End::Transport => return Verdict::Retry(error(ErrorKind::Transport)),
        End::PathGone => return Verdict::PathGone,
    };
    match status {
        status::GOOD | status::CONDITION_MET => Verdict::Good,
        status::CHECK_CONDITION => match Condition::parse(sense) {
            Some(condition) => of_sense(condition),
            None => Verdict::Retry(error(ErrorKind::Target)),
        },
        status::BUSY => Verdict::Delay { error: error(ErrorKind::Busy), full: false },
        status::TASK_SET_FULL => Verdict::Delay { error: error(ErrorKind::Busy), full: true },
        status::RESERVATION_CONFLICT => Verdict::Fail(error(ErrorKind::ReservationConflict)),
        status::TASK_ABORTED => Verdict::Retry(error(ErrorKind::Target)),
        _ => Verdict::Fail(error(ErrorKind::Target)),
    }
}

fn of_sense(condition: Condition) -> Verdict {
    let Condition { deferred, key, code } = condition;
    let error = |kind| Error { kind, sense: Some((key, code)) };
    if deferred {
        // A deferred error concerns an earlier command; this one was not executed.
        return Verdict::Retry(error(ErrorKind::Medium));
    }
    match (key, code) {
        (SenseKey::NO_SENSE | SenseKey::RECOVERED_ERROR | SenseKey::COMPLETED, _) => Verdict::Good,
        (SenseKey::UNIT_ATTENTION, _) => Verdict::UnitAttention(code),
        (SenseKey::NOT_READY, _) if code == SenseCode::BECOMING_READY || condition.refuses_port() => {
            Verdict::Delay { error: error(ErrorKind::NotReady), full: false }
        }
        (SenseKey::NOT_READY, _) => Verdict::Fail(error(ErrorKind::NotReady)),
        (SenseKey::MEDIUM_ERROR, _) => Verdict::Fail(error(ErrorKind::Medium)),
        (SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE) => Verdict::Fail(error(ErrorKind::OutOfRange)),
        (SenseKey::ILLEGAL_REQUEST, SenseCode::LUN_NOT_SUPPORTED) => Verdict::Fail(error(ErrorKind::NotADisk)),
        (
            SenseKey::ILLEGAL_REQUEST,
            SenseCode::INVALID_OPERATION
            | SenseCode::INVALID_FIELD_IN_CDB
            | SenseCode::INVALID_FIELD_IN_LIST
            | SenseCode::PARAMETER_LIST_LENGTH,
        ) => Verdict::Fail(error(ErrorKind::NotSupported)),
        (SenseKey::DATA_PROTECT, SenseCode::SPACE_EXHAUSTED) => Verdict::Fail(error(ErrorKind::NoSpace)),
        (SenseKey::DATA_PROTECT, _) => Verdict::Fail(error(ErrorKind::WriteProtected)),
        (SenseKey::ABORTED_COMMAND | SenseKey::HARDWARE_ERROR, _) => Verdict::Retry(error(ErrorKind::Target)),
        _ => Verdict::Fail(error(ErrorKind::Target)),
    }
}

/// Returns whether the result reports a change of port states, or that this port is not active.
pub(super) fn reports_access_change(end: &End) -> bool {
    let End::Status { status: status::CHECK_CONDITION, sense, .. } = end else { return false };
    Condition::parse(sense).is_some_and(|condition| condition.refuses_port() || condition.changes_ports())
}
