//! What the end of a command means.

use super::{End, Error, ErrorKind};
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{Condition, SenseCode, SenseKey};

/// What to do after a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It did what it should.
    Good,
    /// Something changed at the target: again, at once.
    UnitAttention(SenseCode),
    /// Again, at once; this is the error if that was often enough.
    Retry(Error),
    /// Again after a while; this is the error if that took too long. `full`: the target has too many commands.
    Delay { error: Error, full: bool },
    /// Again, once it is sure that the target does not go on with it.
    Unaborted,
    /// The path is gone: again on the next one.
    PathGone,
    /// No use in trying again.
    Fail(Error),
}

const fn error(kind: ErrorKind) -> Error {
    Error { kind, sense: None }
}

/// The table (SAM-5, 5.3.1 for statuses; SPC-4, 4.5.6 for sense keys).
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
        // It tells of an earlier command; this one was not executed.
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

/// It says that ports serve otherwise than before, or that this one does not.
pub(super) fn tells_of_access(end: &End) -> bool {
    let End::Status { status: status::CHECK_CONDITION, sense, .. } = end else { return false };
    Condition::parse(sense).is_some_and(|condition| condition.refuses_port() || condition.changes_ports())
}
