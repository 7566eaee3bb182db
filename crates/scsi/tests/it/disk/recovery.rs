//! Failed commands, and paths that come and go.

use crate::disk::target::{BLOCK, Bed, Target, attention, bare, check, good};
use proptest::prelude::*;
use sanloom_scsi::disk::{DiskConfig, Done, End, Error, ErrorKind, Input, Op, Output};
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{SenseCode, SenseKey};

fn kind(bed: &Bed, tag: u64) -> Option<ErrorKind> {
    bed.done.get(&tag).and_then(|result| result.as_ref().err()).map(|error| error.kind)
}

#[test]
fn retryable_failures_are_retried_up_to_the_limit() {
    let ends = [
        (check(SenseKey::ABORTED_COMMAND, SenseCode::DATA_PHASE_ERROR), ErrorKind::Target),
        (bare(status::TASK_ABORTED), ErrorKind::Target),
        (End::TimedOut { aborted: true }, ErrorKind::TimedOut),
        (End::Transport, ErrorKind::Transport),
        // GOOD with only half of the data.
        (good(vec![], BLOCK / 2), ErrorKind::Transport),
        // CHECK CONDITION without sense data.
        (bare(status::CHECK_CONDITION), ErrorKind::Target),
    ];
    for (end, error) in ends {
        let mut bed = Bed::ready(Target::new());
        bed.target.script.extend([end.clone(), end.clone()]);
        bed.read(1, 0, 1);
        assert_eq!((bed.done[&1].clone(), bed.sent.len()), (Ok(Done::All), 3), "{end:?}");
        bed.target.script.extend((0..100).map(|_| end.clone()));
        bed.read(2, 0, 1);
        assert_eq!((kind(&bed, 2), bed.sent.len()), (Some(error), 3 + 6), "{end:?}");
    }
}

#[test]
fn permanent_failures_are_not_retried() {
    let ends = [
        (check(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR), ErrorKind::Medium),
        (check(SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE), ErrorKind::OutOfRange),
        (check(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_CDB), ErrorKind::NotSupported),
        (check(SenseKey::DATA_PROTECT, SenseCode::WRITE_PROTECTED), ErrorKind::WriteProtected),
        (check(SenseKey::DATA_PROTECT, SenseCode(0x2707)), ErrorKind::NoSpace),
        (check(SenseKey::NOT_READY, SenseCode::NOT_READY_MANUAL), ErrorKind::NotReady),
        (bare(status::RESERVATION_CONFLICT), ErrorKind::ReservationConflict),
        (bare(status::ACA_ACTIVE), ErrorKind::Target),
    ];
    for (end, error) in ends {
        let mut bed = Bed::ready(Target::new());
        bed.target.script.push_back(end);
        bed.write(1, 0, 1, 5);
        assert_eq!((kind(&bed, 1), bed.sent.len()), (Some(error), 1));
        let text = bed.done[&1].clone().expect_err("it failed").to_string();
        assert!(!text.is_empty());
        assert_eq!(bed.disk.counters().failed, 1);
    }
    // A recovered error counts as success.
    let mut bed = Bed::ready(Target::new());
    let End::Status { sense, .. } = check(SenseKey::RECOVERED_ERROR, SenseCode::NONE) else { unreachable!() };
    let recovered =
        End::Status { status: status::CHECK_CONDITION, sense, transferred: BLOCK as u32, data: Box::default() };
    bed.target.script.push_back(recovered);
    bed.write(1, 0, 1, 5);
    assert_eq!(bed.done[&1], Ok(Done::All));
}

#[test]
fn commands_to_a_busy_target_are_retried_within_bounds() {
    let mut bed = Bed::ready(Target::new());
    bed.target.script.extend((0..5).map(|_| bare(status::BUSY)));
    bed.read(1, 0, 1);
    assert!(bed.done.is_empty());
    bed.pass(Span::from_secs(1));
    assert_eq!(bed.done[&1], Ok(Done::All));
    assert_eq!(bed.disk.counters().delays, 5);

    bed.target.script.extend((0..1000).map(|_| bare(status::BUSY)));
    bed.read(2, 0, 1);
    bed.pass(Span::from_secs(59));
    assert!(kind(&bed, 2).is_none());
    bed.pass(Span::from_secs(3));
    assert_eq!(kind(&bed, 2), Some(ErrorKind::Busy));
    assert!(bed.sent.len() < 100, "{} commands in a minute", bed.sent.len());
    assert_eq!(bed.disk.poll_timeout(), None);
}

#[test]
fn task_set_full_reduces_the_queue_depth_temporarily() {
    let mut bed = Bed::ready(Target::new());
    bed.hold = true;
    for tag in 0..32 {
        bed.read(tag, 0, 1);
    }
    assert_eq!(bed.open.len(), 32);
    // The target accepts only 8 commands.
    let full: Vec<u64> = bed.open.drain(8..).map(|command| command.id).collect();
    for id in full {
        bed.reply(id, bare(status::TASK_SET_FULL));
    }
    for tag in 32..64 {
        bed.read(tag, 0, 1);
    }
    assert_eq!(bed.open.len(), 8, "no more than were in its task set");
    bed.hold = false;
    bed.answer(0);
    bed.pass(Span::from_secs(1));
    assert_eq!(bed.done.len(), 64);
    assert!(bed.done.values().all(Result::is_ok));
}

#[test]
fn a_command_that_cannot_be_aborted_causes_a_reset() {
    let mut bed = Bed::ready(Target::new());
    bed.hold = true;
    bed.write(1, 0, 1, 1);
    let command = bed.open.remove(0);
    bed.reply(command.id, End::TimedOut { aborted: false });
    assert_eq!(bed.others, [Output::ResetUnit]);
    assert!(bed.open.is_empty(), "nothing is sent before the reset is over");
    bed.hold = false;
    bed.target.script.push_back(attention(SenseCode::POWER_ON_OR_RESET));
    bed.handle(Input::ResetDone { success: true });
    assert_eq!(bed.done[&1], Ok(Done::All));
    assert_eq!(bed.disk.counters().resets, 1);

    // If the target does not answer the reset either, the path is given up.
    bed.others.clear();
    bed.hold = true;
    bed.write(2, 0, 1, 2);
    let command = bed.open.remove(0);
    bed.reply(command.id, End::TimedOut { aborted: false });
    bed.handle(Input::ResetDone { success: false });
    assert_eq!(bed.others, [Output::ResetUnit, Output::DropPath]);
    bed.handle(Input::PathDown);
    bed.hold = false;
    bed.handle(Input::PathUp);
    assert_eq!(bed.done[&2], Ok(Done::All));
}

#[test]
fn a_request_ends_although_the_target_answers_neither_commands_nor_resets() {
    const WRITE: [u8; 2] = [0x2a, 0x8a];
    let mut bed = Bed::ready(Target::new());
    bed.hold = true;
    bed.write(1, 0, 1, 1);
    let mut attempts = 0;
    while !bed.done.contains_key(&1) && attempts < 300 {
        // The target answers all commands of a probe.
        while bed.open.first().is_some_and(|command| !WRITE.contains(&command.cdb[0])) {
            bed.answer(0);
        }
        let Some(command) = bed.open.pop() else { break };
        attempts += 1;
        bed.reply(command.id, End::TimedOut { aborted: false });
        assert!(!bed.done.contains_key(&1), "the target may still execute the command");
        bed.handle(Input::ResetDone { success: false });
        bed.handle(Input::PathDown);
        bed.handle(Input::PathUp);
    }
    assert_eq!((attempts, kind(&bed, 1)), (6, Some(ErrorKind::TimedOut)));
}

#[test]
fn requests_wait_for_a_lost_path_and_continue() {
    let mut bed = Bed::ready(Target::new());
    bed.hold = true;
    bed.write(1, 0, 200, 1);
    bed.write(2, 200, 1, 2);
    let stale = bed.open[0].id;
    bed.open.clear();
    bed.handle(Input::PathDown);
    bed.write(3, 300, 1, 3);
    bed.pass(Span::from_secs(30));
    assert!(bed.done.is_empty());
    bed.hold = false;
    bed.handle(Input::PathUp);
    assert_eq!(bed.done.len(), 3);
    assert!(bed.done.values().all(Result::is_ok));
    assert!(bed.target.medium[..200 * BLOCK].iter().all(|byte| *byte == 1));
    assert_eq!(bed.disk.poll_timeout(), None);
    // A late reply of the old path is ignored.
    bed.reply(stale, End::PathGone);
    assert_eq!(bed.disk.counters().stale_replies, 1);
    assert!(bed.disk.is_ready());
}

#[test]
fn requests_fail_while_the_path_stays_lost() {
    let mut bed = Bed::ready(Target::new());
    bed.hold = true;
    bed.write(1, 0, 8, 1);
    let id = bed.open.remove(0).id;
    bed.reply(id, End::PathGone);
    let lost = Error { kind: ErrorKind::PathLost, sense: None };
    bed.pass(Span::from_secs(61));
    assert_eq!(bed.done[&1], Err(lost));
    assert_eq!(bed.others, [Output::Unusable(lost)]);
    bed.write(2, 0, 8, 1);
    assert_eq!(bed.done[&2], Err(lost));
    bed.hold = false;
    bed.handle(Input::PathUp);
    bed.write(3, 0, 8, 1);
    assert_eq!(bed.done[&3], Ok(Done::All));
    assert!(matches!(bed.others[1..], [Output::Ready(_)]));
}

#[test]
fn a_disk_that_never_had_a_path_fails_its_requests_in_time() {
    let mut bed = Bed::new(DiskConfig::default(), Target::new());
    bed.read(1, 0, 8);
    bed.pass(Span::from_secs(61));
    assert_eq!(kind(&bed, 1), Some(ErrorKind::PathLost));
}

#[test]
fn retries_after_unit_attentions_are_limited() {
    let mut bed = Bed::ready(Target::new());
    bed.target.script.extend((0..100).map(|_| attention(SenseCode::COMMANDS_CLEARED)));
    bed.read(1, 0, 1);
    assert_eq!(kind(&bed, 1), Some(ErrorKind::Target));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Under faults of every kind and path changes, every request ends exactly once. If all
    /// requests succeed, the medium has the written data.
    #[test]
    fn every_request_ends_once(
        faults in proptest::collection::vec((0..12_u8, 0..3_u8), 1..120),
        writes in proptest::collection::vec((0..10_u64, 1..180_u32), 1..12),
    ) {
        let long = Span::from_secs(10_000);
        let timeouts = DiskConfig { dev_loss: long, busy_timeout: long, ..DiskConfig::default() };
        let config = DiskConfig { queue_depth: 4, max_retries: 120, ..timeouts };
        let mut bed = Bed::ready_with(config, Target::new());
        bed.hold = true;
        for (tag, (area, blocks)) in writes.iter().enumerate() {
            bed.write(tag as u64, area * 180, *blocks, tag as u8);
        }
        for (fault, choice) in faults {
            let end = match fault {
                0 => Some(bare(status::BUSY)),
                1 => Some(bare(status::TASK_SET_FULL)),
                2 => Some(attention(SenseCode::POWER_ON_OR_RESET)),
                3 => Some(attention(SenseCode::CAPACITY_CHANGED)),
                4 => Some(End::TimedOut { aborted: true }),
                5 => Some(End::TimedOut { aborted: false }),
                6 => Some(check(SenseKey::ABORTED_COMMAND, SenseCode::NONE)),
                7 => Some(End::PathGone),
                _ => None,
            };
            if bed.open.is_empty() {
                bed.pass(Span::from_secs(1));
            }
            if let Some(end) = end
                && !bed.open.is_empty()
            {
                let command = bed.open.remove(usize::from(choice) % bed.open.len());
                bed.reply(command.id, end);
            } else if !bed.open.is_empty() {
                bed.answer(usize::from(choice) % bed.open.len());
            }
            for output in std::mem::take(&mut bed.others) {
                match output {
                    Output::ResetUnit => bed.handle(Input::ResetDone { success: choice > 0 }),
                    Output::DropPath => bed.handle(Input::PathDown),
                    _ => {}
                }
            }
            if fault == 8 {
                bed.handle(Input::PathDown);
                bed.open.clear();
            }
            if fault >= 8 {
                bed.handle(Input::PathUp);
            }
        }
        bed.hold = false;
        bed.handle(Input::PathUp);
        while !bed.open.is_empty() {
            bed.answer(0);
        }
        for _ in 0..5 {
            bed.pass(Span::from_secs(1));
            for output in std::mem::take(&mut bed.others) {
                if output == Output::ResetUnit {
                    bed.handle(Input::ResetDone { success: true });
                }
            }
            bed.handle(Input::PathUp);
        }
        prop_assert_eq!(bed.done.len(), writes.len());
        prop_assert!(bed.done.values().all(Result::is_ok), "{:?}", bed.done);
        prop_assert_eq!(bed.disk.open_requests(), 0);
        // An area that only one request wrote has exactly its bytes.
        for (tag, (area, blocks)) in writes.iter().enumerate() {
            if writes.iter().filter(|(other, _)| other == area).count() == 1 {
                let start = *area as usize * 180 * BLOCK;
                let written = &bed.target.medium[start..start + *blocks as usize * BLOCK];
                prop_assert!(written.iter().all(|byte| *byte == tag as u8));
            }
        }
    }

    /// A disk that answers with random bytes causes no panic.
    #[test]
    fn random_outcomes_are_survived(
        answers in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..80)), 1..80),
    ) {
        let mut bed = Bed::new(DiskConfig::default(), Target::new());
        bed.hold = true;
        bed.handle(Input::PathUp);
        bed.read(1, 0, 64);
        bed.submit(2, Op::Status, 0, 64, false);
        for (kind, data) in answers {
            if bed.open.is_empty() {
                bed.pass(Span::from_secs(2));
                continue;
            }
            let id = bed.open.remove(0).id;
            let status = if kind < 200 { status::GOOD } else { status::CHECK_CONDITION };
            let transferred = data.len() as u32;
            let data: Box<[u8]> = data.into();
            bed.reply(id, End::Status { status, sense: data.clone(), transferred, data });
        }
        bed.handle(Input::PathDown);
        bed.pass(Span::from_secs(200));
        prop_assert_eq!(bed.done.len(), 2);
    }
}
