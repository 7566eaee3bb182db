//! Statuses with which a gateway ends commands on the LUNs of an array.

use sanloom_fc::fcp::initiator::{AbortReason, Outcome};
use sanloom_scsi::scsi::IoStatus;
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{SenseCode, SenseKey};

/// Returns the status for the host of a command on a LUN of an array. `was_sent`: the command had a
/// path.
///
/// BUSY ends a command that the array has not begun, so that the host repeats it later. ABORTED
/// COMMAND ends one of which the array may have executed a part: the host repeats it at once.
pub(super) fn status_through(outcome: Outcome, was_sent: bool) -> IoStatus {
    let aborted = |code| IoStatus::Failed { key: SenseKey::ABORTED_COMMAND, code };
    match outcome {
        Outcome::Completed { status: status::GOOD, .. } => IoStatus::Good,
        Outcome::Completed { status: status::TASK_SET_FULL, .. } => IoStatus::TaskSetFull,
        Outcome::Completed { status: status::BUSY | status::TASK_ABORTED, .. } => IoStatus::Busy,
        Outcome::Completed { condition: Some(condition), .. } => {
            IoStatus::Failed { key: condition.key, code: condition.code }
        }
        Outcome::Completed { .. } => IoStatus::MediumError,
        // All exchange numbers rest, or the host has aborted the command itself.
        Outcome::Aborted(AbortReason::NoExchange | AbortReason::Recalled) => IoStatus::Busy,
        Outcome::Aborted(AbortReason::Timeout | AbortReason::Unanswered) => aborted(SenseCode::COMMUNICATION_TIMEOUT),
        Outcome::Aborted(_) => aborted(SenseCode::COMMUNICATION_FAILURE),
        Outcome::PortGone if was_sent => aborted(SenseCode::COMMUNICATION_FAILURE),
        Outcome::PortGone => IoStatus::Busy,
    }
}

/// Returns whether a status is ABORTED COMMAND.
pub(super) fn is_aborted(status: IoStatus) -> bool {
    matches!(status, IoStatus::Failed { key: SenseKey::ABORTED_COMMAND, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::fcp::Residual;
    use sanloom_wire::sense::Condition;

    fn completed(status: u8, condition: Option<Condition>) -> Outcome {
        Outcome::Completed { status, residual: Residual::None, transferred: 0, condition }
    }

    #[test]
    fn a_command_that_was_sent_is_aborted_and_one_that_was_not_is_busy() {
        let aborted = IoStatus::Failed { key: SenseKey(0x0b), code: SenseCode(0x0800) };
        assert_eq!(status_through(Outcome::PortGone, true), aborted);
        assert_eq!(status_through(Outcome::PortGone, false), IoStatus::Busy);
        assert_eq!(status_through(Outcome::Aborted(AbortReason::LostFrame), true), aborted);
        let late = IoStatus::Failed { key: SenseKey(0x0b), code: SenseCode(0x0801) };
        assert_eq!(status_through(Outcome::Aborted(AbortReason::Unanswered), true), late);
        assert_eq!(status_through(Outcome::Aborted(AbortReason::NoExchange), true), IoStatus::Busy);
        assert!(is_aborted(aborted) && !is_aborted(IoStatus::Busy));
    }

    #[test]
    fn statuses_of_the_array_reach_the_host() {
        let reserved = Condition { deferred: false, key: SenseKey(0x5), code: SenseCode(0x2100) };
        assert_eq!(status_through(completed(status::GOOD, None), true), IoStatus::Good);
        assert_eq!(status_through(completed(status::TASK_SET_FULL, None), true), IoStatus::TaskSetFull);
        assert_eq!(status_through(completed(status::BUSY, None), true), IoStatus::Busy);
        let failed = IoStatus::Failed { key: SenseKey(0x5), code: SenseCode(0x2100) };
        assert_eq!(status_through(completed(status::CHECK_CONDITION, Some(reserved)), true), failed);
        assert_eq!(status_through(completed(status::CHECK_CONDITION, None), true), IoStatus::MediumError);
    }
}
