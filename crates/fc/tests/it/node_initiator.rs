//! FCP initiator, message by message: one outcome for every command, with any behaviour of the
//! target.

use sanloom_fc::exchange::Accepted;
use sanloom_fc::fcp::initiator::{
    AbortReason, Command, FcpInitiator, FcpInitiatorConfig, Input, MAX_EXCHANGES, Manage, Outcome, Output,
    RecoveryLimits,
};
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::{BaAcc, BaRjt, Bls};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::fcp::{FcpRsp, FcpXferRdy, Residual};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use sanloom_wire::{FcId, Frame, Message, Payload};

const HOST: FcId = FcId::new(0x010100);
const TARGET: FcId = FcId::new(0x010200);
const OTHER: FcId = FcId::new(0x010300);
const E_D_TOV: Span = Span::from_secs(2);
const R_A_TOV: Span = Span::from_secs(10);
const COMMAND_TIMEOUT: Span = Span::from_secs(30);
const RX_ID: u16 = 0x55;
/// Maximum number of commands in flight. It is a power of two, and therefore also the distance
/// between the OX_IDs of a slot.
const STRIDE: u16 = 4;

const CONFIG: FcpInitiatorConfig = FcpInitiatorConfig {
    e_d_tov: E_D_TOV,
    r_a_tov: R_A_TOV,
    command_timeout: COMMAND_TIMEOUT,
    recovery: None,
    max_exchanges: STRIDE,
    in_order: true,
};
const LIMITS: RecoveryLimits = RecoveryLimits { abort_timeout: Span::from_secs(10), reset_timeout: Span::from_secs(6) };

fn initiator(in_order: bool) -> FcpInitiator {
    let mut initiator = FcpInitiator::new(FcpInitiatorConfig { in_order, ..CONFIG });
    initiator.handle(Instant::ZERO, Input::LocalId(HOST));
    initiator
}

fn submit(initiator: &mut FcpInitiator, now: Instant, tag: u64, direction: DataDirection) -> Vec<Output> {
    let command = Command {
        tag,
        d_id: TARGET,
        lun: [0; 8],
        cdb: Cdb::TestUnitReady.to_bytes(),
        data_len: if direction == DataDirection::None { 0 } else { 8192 },
        direction,
        frame_size_bytes: 2048,
    };
    handle(initiator, now, Input::Submit(command))
}

fn handle(initiator: &mut FcpInitiator, now: Instant, input: Input) -> Vec<Output> {
    initiator.handle(now, input);
    std::iter::from_fn(|| initiator.poll_output()).collect()
}

fn from_target(ox_id: u16, message: Message) -> Input {
    from(TARGET, ox_id, message)
}

fn from(s_id: FcId, ox_id: u16, message: Message) -> Input {
    let header = message.header(s_id, HOST, ox_id, RX_ID);
    Input::Frame(Frame { header, payload: Payload::Typed(message) })
}

fn response(status: u8, residual: Residual) -> Message {
    Message::FcpRsp(FcpRsp { status, retry_delay: 0, residual, confirm: false, response_code: None, sense: None })
}

/// Delivers data frames of 2 KiB with these SEQ_CNTs.
fn receive(initiator: &mut FcpInitiator, now: Instant, ox_id: u16, seq_cnts: &[u16]) -> Vec<Output> {
    let mut emitted = Vec::new();
    for &seq_cnt in seq_cnts {
        let accepted = initiator.data(ox_id).expect("takes data").accept(seq_cnt, 2048);
        if matches!(accepted, Accepted::Complete | Accepted::Gap) {
            emitted.extend(handle(initiator, now, Input::Data { ox_id, accepted }));
        }
    }
    emitted
}

fn outcomes(emitted: &[Output]) -> Vec<(u64, Outcome)> {
    emitted
        .iter()
        .filter_map(|output| match output {
            Output::Done { tag, outcome, .. } => Some((*tag, *outcome)),
            _ => None,
        })
        .collect()
}

fn sends_abts(emitted: &[Output]) -> bool {
    emitted
        .iter()
        .any(|output| matches!(output, Output::Send(Frame { payload: Payload::Typed(Message::Bls(Bls::Abts)), .. })))
}

/// Returns the OX_ID of a command that was sent.
fn number(emitted: &[Output]) -> u16 {
    let [Output::Send(Frame { header, .. })] = emitted else { unreachable!("{emitted:?}") };
    header.ox_id
}

/// OX_IDs of as many consecutive commands as a slot has OX_IDs.
fn numbers_of_a_round(initiator: &mut FcpInitiator, now: Instant) -> Vec<u16> {
    let mut numbers = Vec::new();
    for tag in 0..MAX_EXCHANGES / STRIDE {
        let ox_id = number(&submit(initiator, now, u64::from(tag), DataDirection::None));
        handle(initiator, now, from_target(ox_id, response(0, Residual::None)));
        numbers.push(ox_id);
    }
    numbers
}

const DONE: Outcome =
    Outcome::Completed { status: status::GOOD, residual: Residual::None, transferred: 8192, condition: None };

#[test]
fn a_read_ends_when_data_and_response_have_arrived_in_either_order() {
    let mut initiator = initiator(false);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    assert_eq!(receive(&mut initiator, Instant::ZERO, 0, &[0, 1, 2, 3]), []);
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::None)));
    assert_eq!(outcomes(&emitted), [(1, DONE)]);

    submit(&mut initiator, Instant::ZERO, 2, DataDirection::Read);
    receive(&mut initiator, Instant::ZERO, STRIDE, &[3, 1]);
    assert_eq!(handle(&mut initiator, Instant::ZERO, from_target(STRIDE, response(0, Residual::None))), []);
    let emitted = receive(&mut initiator, Instant::ZERO, STRIDE, &[0, 2]);
    assert_eq!(outcomes(&emitted), [(2, DONE)]);
    assert_eq!(initiator.counters().early_responses, 1);
    assert_eq!((initiator.in_flight(), initiator.poll_timeout()), (0, None));
}

#[test]
fn an_early_response_is_held_for_e_d_tov_and_no_longer() {
    let mut initiator = initiator(false);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::None)));
    let deadline = Instant::ZERO + E_D_TOV;
    assert_eq!(initiator.poll_timeout(), Some(deadline));
    assert_eq!(handle(&mut initiator, deadline - Span::from_ns(1), Input::Timeout), []);
    assert!(sends_abts(&handle(&mut initiator, deadline, Input::Timeout)));
    let accept = BaAcc::whole_exchange(0, RX_ID);
    let emitted = handle(&mut initiator, deadline, from_target(0, Message::Bls(Bls::BaAcc(accept))));
    assert_eq!(outcomes(&emitted), [(1, Outcome::Aborted(AbortReason::LostFrame))]);
}

#[test]
fn the_response_contains_the_residual() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    receive(&mut initiator, Instant::ZERO, 0, &[0, 1]);
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::Under(4096))));
    let outcome = Outcome::Completed { status: 0, residual: Residual::Under(4096), transferred: 4096, condition: None };
    assert_eq!(outcomes(&emitted), [(1, outcome)]);
}

#[test]
fn the_outcome_contains_the_condition_of_the_sense_data() {
    let mut initiator = initiator(true);
    let attention = Sense::new(SenseKey::UNIT_ATTENTION, SenseCode::I_T_NEXUS_LOSS);
    for (sense, condition) in [(attention.to_bytes(), Some(attention.condition())), ([0; 4].into(), None)] {
        let ox_id = number(&submit(&mut initiator, Instant::ZERO, 1, DataDirection::None));
        let Message::FcpRsp(answer) = response(status::CHECK_CONDITION, Residual::None) else { unreachable!() };
        let answer = Message::FcpRsp(FcpRsp { sense: Some(sense), ..answer });
        let emitted = handle(&mut initiator, Instant::ZERO, from_target(ox_id, answer));
        let (status, residual) = (status::CHECK_CONDITION, Residual::None);
        assert_eq!(outcomes(&emitted), [(1, Outcome::Completed { status, residual, transferred: 0, condition })]);
    }
}

#[test]
fn a_refusal_without_data_needs_no_residual() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(0, response(status::BUSY, Residual::None)));
    let outcome =
        Outcome::Completed { status: status::BUSY, residual: Residual::None, transferred: 0, condition: None };
    assert_eq!(outcomes(&emitted), [(1, outcome)]);
}

#[test]
fn a_gap_on_an_ordered_fabric_aborts_at_once() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    assert!(sends_abts(&receive(&mut initiator, Instant::ZERO, 0, &[0, 2])));
    assert!(initiator.data(0).is_none(), "the rest of the data is stale");
}

#[test]
fn bursts_of_a_write_follow_each_other() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Write);
    for offset in [0, 4096] {
        let ready = FcpXferRdy { offset, burst_len: 4096 };
        let emitted = handle(&mut initiator, Instant::ZERO, from_target(0, Message::FcpXferRdy(ready)));
        let [Output::Transmit(sequence)] = emitted.as_slice() else { unreachable!("{emitted:?}") };
        let mut sequence = *sequence;
        let frame = sequence.next_frame().expect("a frame");
        assert_eq!((frame.offset, u32::from(frame.seq_cnt) * 2048, sequence.rx_id), (offset, offset, RX_ID));
    }
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::None)));
    assert_eq!(outcomes(&emitted), [(1, DONE)]);
}

#[test]
fn a_burst_that_does_not_follow_aborts_the_command() {
    for ready in [
        FcpXferRdy { offset: 4096, burst_len: 4096 },
        FcpXferRdy { offset: 0, burst_len: 8193 },
        FcpXferRdy { offset: u32::MAX, burst_len: 2 },
        FcpXferRdy { offset: 0, burst_len: 0 },
    ] {
        let mut initiator = initiator(true);
        submit(&mut initiator, Instant::ZERO, 1, DataDirection::Write);
        assert!(
            sends_abts(&handle(&mut initiator, Instant::ZERO, from_target(0, Message::FcpXferRdy(ready)))),
            "{ready:?}"
        );
    }
}

#[test]
fn an_aborted_number_rests_and_is_reinstated_before_it_is_used_again() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::None);
    let mut now = Instant::ZERO + COMMAND_TIMEOUT;
    assert!(sends_abts(&handle(&mut initiator, now, Input::Timeout)));
    let accept = BaAcc::whole_exchange(0, RX_ID);
    let emitted = handle(&mut initiator, now, from_target(0, Message::Bls(Bls::BaAcc(accept))));
    assert_eq!(outcomes(&emitted), [(1, Outcome::Aborted(AbortReason::Timeout))]);
    for tag in 0..3 * MAX_EXCHANGES / STRIDE {
        let ox_id = number(&submit(&mut initiator, now, u64::from(tag), DataDirection::None));
        assert_ne!(ox_id, 0, "the number rests");
        handle(&mut initiator, now, from_target(ox_id, response(0, Residual::None)));
    }
    now += R_A_TOV;
    let emitted = handle(&mut initiator, now, Input::Timeout);
    let [Output::Send(Frame { header, payload: Payload::Typed(Message::Els(els)) })] = emitted.as_slice() else {
        unreachable!("{emitted:?}")
    };
    assert!(matches!(**els, Els::Rrq(exchange) if (exchange.ox_id, exchange.rx_id) == (0, RX_ID)));
    assert_eq!(header.ox_id, MAX_EXCHANGES);
    assert!(!numbers_of_a_round(&mut initiator, now).contains(&0), "the number is being reinstated");
    handle(&mut initiator, now, from_target(header.ox_id, Message::from(Els::LsAcc(LsAcc::Empty))));
    assert!(numbers_of_a_round(&mut initiator, now).contains(&0));
    assert_eq!(initiator.poll_timeout(), None);
}

#[test]
fn a_slot_whose_numbers_all_rest_waits_for_one_of_them() {
    let mut initiator = initiator(true);
    let reject = BaRjt { reason: 3, explanation: 3, vendor: 0 };
    let now = Instant::ZERO + COMMAND_TIMEOUT;
    let mut used = std::collections::BTreeSet::new();
    for tag in 0..u64::from(MAX_EXCHANGES) {
        assert!(initiator.has_free_exchange());
        let ox_id = number(&submit(&mut initiator, Instant::ZERO, tag, DataDirection::None));
        assert!(used.insert(ox_id), "{ox_id} rests");
        handle(&mut initiator, now, Input::Timeout);
        handle(&mut initiator, now, from_target(ox_id, Message::Bls(Bls::BaRjt(reject))));
    }
    assert!(!initiator.has_free_exchange());
    let emitted = submit(&mut initiator, now, 9, DataDirection::None);
    assert_eq!(outcomes(&emitted), [(9, Outcome::Aborted(AbortReason::NoExchange))]);
    handle(&mut initiator, now + R_A_TOV, Input::Timeout);
    assert!(initiator.has_free_exchange());
}

#[test]
fn frames_that_name_an_earlier_use_of_a_slot_are_stale() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::None);
    handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::None)));
    assert_eq!(number(&submit(&mut initiator, Instant::ZERO, 2, DataDirection::Read)), STRIDE);
    assert!(initiator.data(0).is_none());
    assert_eq!(handle(&mut initiator, Instant::ZERO, Input::Data { ox_id: 0, accepted: Accepted::Gap }), []);
    assert_eq!(handle(&mut initiator, Instant::ZERO, from_target(0, response(0, Residual::None))), []);
    assert_eq!((initiator.counters().stale_frames, initiator.in_flight()), (1, 1));
    assert!(initiator.data(STRIDE).is_some());
}

#[test]
fn an_abort_of_an_exchange_unknown_to_the_target_needs_no_rrq() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::None);
    let now = Instant::ZERO + COMMAND_TIMEOUT;
    handle(&mut initiator, now, Input::Timeout);
    let reject = BaRjt { reason: 3, explanation: 3, vendor: 0 };
    let emitted = handle(&mut initiator, now, from_target(0, Message::Bls(Bls::BaRjt(reject))));
    assert_eq!(outcomes(&emitted), [(1, Outcome::Aborted(AbortReason::Timeout))]);
    assert_eq!(handle(&mut initiator, now + R_A_TOV, Input::Timeout), []);
    assert_eq!((initiator.poll_timeout(), initiator.counters().rrq_sent), (None, 0));
}

#[test]
fn a_command_ends_even_if_the_target_never_replies() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    let mut emitted = Vec::new();
    while let Some(at) = initiator.poll_timeout() {
        emitted.extend(handle(&mut initiator, at, Input::Timeout));
    }
    assert_eq!(outcomes(&emitted), [(1, Outcome::Aborted(AbortReason::Unanswered))]);
    assert_eq!(initiator.counters().abts_sent, 3);
}

#[test]
fn a_port_that_is_gone_ends_its_commands_and_no_others() {
    let mut initiator = initiator(true);
    for tag in 0..3 {
        submit(&mut initiator, Instant::ZERO, tag, DataDirection::Read);
    }
    handle(&mut initiator, Instant::ZERO + COMMAND_TIMEOUT, Input::Timeout);
    let now = Instant::ZERO + COMMAND_TIMEOUT;
    assert_eq!(outcomes(&handle(&mut initiator, now, Input::RemoteDown { port_id: OTHER })), []);
    let emitted = handle(&mut initiator, now, Input::RemoteDown { port_id: TARGET });
    assert_eq!(outcomes(&emitted), [(0, Outcome::PortGone), (1, Outcome::PortGone), (2, Outcome::PortGone)]);
    let late = handle(&mut initiator, now, from_target(1, response(0, Residual::None)));
    assert_eq!((outcomes(&late), initiator.in_flight()), (vec![], 0));
}

#[test]
fn commands_without_a_fabric_or_an_exchange_end_at_once() {
    let mut initiator = initiator(true);
    for tag in 0..4 {
        submit(&mut initiator, Instant::ZERO, tag, DataDirection::None);
    }
    assert!(!initiator.has_free_exchange());
    let emitted = submit(&mut initiator, Instant::ZERO, 4, DataDirection::None);
    assert_eq!(outcomes(&emitted), [(4, Outcome::Aborted(AbortReason::NoExchange))]);
    assert_eq!(outcomes(&handle(&mut initiator, Instant::ZERO, Input::LocalId(FcId::ZERO))).len(), 4);
    let emitted = submit(&mut initiator, Instant::ZERO, 5, DataDirection::None);
    assert_eq!(outcomes(&emitted), [(5, Outcome::PortGone)]);
}

#[test]
fn frames_of_unknown_stations_change_nothing() {
    let mut initiator = initiator(true);
    submit(&mut initiator, Instant::ZERO, 1, DataDirection::Read);
    let accept = Message::Bls(Bls::BaAcc(BaAcc::whole_exchange(0, RX_ID)));
    let inputs = [
        from(OTHER, 0, response(0, Residual::None)),
        from(OTHER, 0, accept.clone()),
        from_target(0, accept),
        from_target(9, response(0, Residual::None)),
        from_target(0xffff, response(0, Residual::None)),
        from_target(0xffff, Message::from(Els::LsAcc(LsAcc::Empty))),
        from_target(MAX_EXCHANGES, Message::from(Els::LsAcc(LsAcc::Empty))),
        Input::Data { ox_id: 9, accepted: Accepted::Gap },
    ];
    for input in inputs {
        assert_eq!(handle(&mut initiator, Instant::ZERO, input), []);
    }
    assert_eq!(initiator.counters().stale_frames, 7);
    assert_eq!(initiator.in_flight(), 1);
}

#[test]
fn exchange_numbers_are_reused_only_after_all_others() {
    let mut initiator = initiator(true);
    let expected: Vec<u16> = (0..MAX_EXCHANGES / STRIDE).map(|generation| generation * STRIDE).collect();
    for _ in 0..3 {
        assert_eq!(numbers_of_a_round(&mut initiator, Instant::ZERO), expected, "one command at a time has one slot");
    }
}

#[test]
fn with_limits_an_unanswered_abts_is_not_repeated() {
    let mut initiator = FcpInitiator::new(FcpInitiatorConfig { recovery: Some(LIMITS), ..CONFIG });
    initiator.handle(Instant::ZERO, Input::LocalId(HOST));
    submit(&mut initiator, Instant::ZERO, 7, DataDirection::Read);
    let timeout = Instant::ZERO + COMMAND_TIMEOUT;
    assert_eq!(outcomes(&handle(&mut initiator, timeout, Input::Timeout)), []);
    let end = timeout + LIMITS.abort_timeout;
    assert_eq!(initiator.poll_timeout(), Some(end));
    let emitted = handle(&mut initiator, end, Input::Timeout);
    assert_eq!(outcomes(&emitted), [(7, Outcome::Aborted(AbortReason::Unanswered))]);
    assert_eq!(initiator.counters().abts_sent, 1);
}

#[test]
fn a_recalled_command_ends_by_abts_unless_its_response_is_first() {
    let mut initiator = FcpInitiator::new(FcpInitiatorConfig { recovery: Some(LIMITS), ..CONFIG });
    initiator.handle(Instant::ZERO, Input::LocalId(HOST));
    submit(&mut initiator, Instant::ZERO, 7, DataDirection::Read);
    assert_eq!((initiator.tag_of(0), initiator.tag_of(1)), (Some(7), None));
    assert!(!sends_abts(&handle(&mut initiator, Instant::ZERO, Input::Abort { tag: 8 })));
    assert!(sends_abts(&handle(&mut initiator, Instant::ZERO, Input::Abort { tag: 7 })));
    // A second one changes nothing.
    assert_eq!(handle(&mut initiator, Instant::ZERO, Input::Abort { tag: 7 }), []);
    let end = Instant::ZERO + LIMITS.abort_timeout;
    let emitted = handle(&mut initiator, end, Input::Timeout);
    assert_eq!(outcomes(&emitted), [(7, Outcome::Aborted(AbortReason::Unanswered))]);
    let ox_id = number(&submit(&mut initiator, end, 9, DataDirection::None));
    handle(&mut initiator, end, from_target(ox_id, response(0, Residual::None)));
    assert!(!sends_abts(&handle(&mut initiator, end, Input::Abort { tag: 9 })));
}

#[test]
fn with_limits_an_unanswered_reset_ends_without_abts() {
    let mut initiator = FcpInitiator::new(FcpInitiatorConfig { recovery: Some(LIMITS), ..CONFIG });
    initiator.handle(Instant::ZERO, Input::LocalId(HOST));
    let function = sanloom_wire::fcp::task_management::TARGET_RESET;
    handle(&mut initiator, Instant::ZERO, Input::Manage(Manage { tag: 9, d_id: TARGET, lun: [0; 8], function }));
    let end = Instant::ZERO + LIMITS.reset_timeout;
    assert_eq!(initiator.poll_timeout(), Some(end));
    let emitted = handle(&mut initiator, end, Input::Timeout);
    assert_eq!(emitted.len(), 1, "{emitted:?}");
    assert_eq!(outcomes(&emitted), [(9, Outcome::Aborted(AbortReason::Unanswered))]);
    assert_eq!(initiator.counters().abts_sent, 0);
}

#[test]
fn a_task_management_function_is_complete_when_the_target_responds() {
    let mut initiator = initiator(true);
    let mut manage = |now| {
        let function = sanloom_wire::fcp::task_management::LUN_RESET;
        let emitted = handle(
            &mut initiator,
            now,
            Input::Manage(Manage { tag: 9, d_id: TARGET, lun: [0, 5, 0, 0, 0, 0, 0, 0], function }),
        );
        let [Output::Send(Frame { header, payload: Payload::Typed(Message::FcpCmnd(command)) })] = &emitted[..] else {
            panic!("{emitted:?}");
        };
        assert_eq!((command.task_management, command.lun[1], command.flags, command.data_len), (function, 5, 0, 0));
        header.ox_id
    };
    let (first, second) = (manage(Instant::ZERO), manage(Instant::ZERO));
    let answer = |code| Message::FcpRsp(FcpRsp { response_code: Some(code), ..FcpRsp::GOOD });
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(first, answer(0)));
    assert!(matches!(outcomes(&emitted)[..], [(9, Outcome::Completed { status: status::GOOD, .. })]), "{emitted:?}");
    let emitted = handle(&mut initiator, Instant::ZERO, from_target(second, answer(5)));
    assert_eq!(outcomes(&emitted), [(9, Outcome::Aborted(AbortReason::Refused(5)))]);
}
