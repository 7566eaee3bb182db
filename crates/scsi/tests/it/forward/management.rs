//! Task management for a forwarded task in each state, as a snapshot table like that of a target's
//! own tasks.
//!
//! While a PDU of the host is incomplete, nothing else can arrive on its connection. So only
//! functions of other hosts meet that state.

use crate::forward::bed::{Bed, Shapes};
use crate::forward::cases::{bed, bed_of, ended, read, shapes, write};
use crate::forward::cut_through;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::Conn;
use sanloom_scsi::scsi::TaskManagement;
use sanloom_wire::iscsi::code::{flag, function, task_response};
use sanloom_wire::iscsi::{Head, Header, TaskRequest};
use std::collections::BTreeMap;

/// Number of the affected command of the host.
const TASK: u64 = 1;
/// Initiator task tag of the request.
const REQUEST: u32 = 0x7777;
/// Two blocks before the second LUN.
const ACROSS: u64 = 46;

/// Initiator task tag and number of a command.
type Command = (u32, u32);

/// Name of a state, a function that brings a task into it, and whether the host can send a PDU
/// then.
type State = (&'static str, fn() -> (Bed, Command), bool);

/// Delivers the host's PDUs to the switch.
fn sent(mut bed: Bed) -> (Bed, Command) {
    let command = bed.last_command();
    bed.host_alone();
    (bed, command)
}

/// Lets the back end complete its commands, and delivers its PDUs to the switch.
fn done(bed: &mut Bed, back: u8) {
    bed.back_does(back);
    bed.back_alone(back);
}

/// Bed in which all data are solicited and segments have two blocks.
fn bed_with_solicited_data() -> Bed {
    let both = Parameters {
        initial_r2t: true,
        immediate_data: false,
        send_bytes: 1024,
        receive_bytes: 1024,
        ..Parameters::default()
    };
    bed_of(Shapes { front: both, back: both, ..shapes() })
}

/// Runs a command of 16 blocks in segments of this length until a PDU of it is half sent to `to`.
/// The random generator determines where it is cut.
fn half_sent(submit: fn(&mut Bed, u64, u64, u32), segment_bytes: u32, to: Conn) -> (Bed, Command) {
    let mut beds = (0..100).filter_map(|seed| {
        let front = Parameters { send_bytes: segment_bytes, receive_bytes: segment_bytes, ..shapes().front };
        let mut bed = cut_through::bed(front, seed);
        submit(&mut bed, TASK, 0, 16);
        let command = bed.last_command();
        cut_through::until_open(&mut bed, to).map(|_| (bed, command))
    });
    beds.next().expect("one of a hundred is cut")
}

const STATES: [State; 15] = [
    (
        "a read is at its back end",
        || {
            let mut bed = bed();
            read(&mut bed, TASK, 0, 4);
            sent(bed)
        },
        true,
    ),
    (
        "a write is at its back end with all its data",
        || {
            let mut bed = bed();
            write(&mut bed, TASK, 0, 4);
            sent(bed)
        },
        true,
    ),
    (
        "a write awaits an R2T of its back end",
        || {
            let mut bed = bed_with_solicited_data();
            write(&mut bed, TASK, 0, 4);
            sent(bed)
        },
        true,
    ),
    (
        "a write awaits the data of an R2T",
        || {
            let mut bed = bed_with_solicited_data();
            write(&mut bed, TASK, 0, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            (bed, command)
        },
        true,
    ),
    (
        "the first of two Data-Out has passed",
        || {
            let mut bed = bed_with_solicited_data();
            write(&mut bed, TASK, 0, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            bed.deliver_all_to_host();
            bed.host_once();
            (bed, command)
        },
        true,
    ),
    (
        "the first of two Data-In has passed",
        || {
            let mut bed = bed_with_solicited_data();
            read(&mut bed, TASK, 0, 4);
            let (mut bed, command) = sent(bed);
            bed.back_does(0);
            bed.back_once(0);
            (bed, command)
        },
        true,
    ),
    ("the first of two Data-In is half sent to the host", || half_sent(read, 4096, Conn::Host), true),
    ("its only Data-In is half sent to the host, with the status", || half_sent(read, 8192, Conn::Host), true),
    ("its data are half sent to the back end", || half_sent(write, 8192, Conn::Back(0)), false),
    (
        "a split read, nothing of it done",
        || {
            let mut bed = bed();
            read(&mut bed, TASK, ACROSS, 4);
            sent(bed)
        },
        true,
    ),
    (
        "a split read with one part done",
        || {
            let mut bed = bed();
            read(&mut bed, TASK, ACROSS, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            (bed, command)
        },
        true,
    ),
    (
        "a split write with one part done",
        || {
            let mut bed = bed();
            write(&mut bed, TASK, ACROSS, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            (bed, command)
        },
        true,
    ),
    (
        "a split write with one part done, whose other part awaits the data of an R2T",
        || {
            let mut bed = bed_with_solicited_data();
            write(&mut bed, TASK, ACROSS, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            bed.deliver_all_to_host();
            bed.host_alone();
            done(&mut bed, 0);
            done(&mut bed, 1);
            (bed, command)
        },
        true,
    ),
    (
        "its response is queued",
        || {
            let mut bed = bed();
            write(&mut bed, TASK, 0, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            (bed, command)
        },
        true,
    ),
    (
        "its response, merged of two, is queued",
        || {
            let mut bed = bed();
            write(&mut bed, TASK, ACROSS, 4);
            let (mut bed, command) = sent(bed);
            done(&mut bed, 0);
            done(&mut bed, 1);
            (bed, command)
        },
        true,
    ),
];

const OWN: [u8; 6] = [
    function::ABORT_TASK,
    function::ABORT_TASK_SET,
    function::CLEAR_TASK_SET,
    function::LUN_RESET,
    function::WARM_RESET,
    function::COLD_RESET,
];

/// Functions of another host that end tasks of this one.
const OTHERS: [u8; 4] = [function::CLEAR_TASK_SET, function::LUN_RESET, function::WARM_RESET, function::COLD_RESET];

fn request_function(bed: &mut Bed, function: u8, (referenced_tag, cmd_sn): Command) {
    bed.host_sends(Head {
        immediate: true,
        ..Head::new(TaskRequest {
            function,
            lun: [0; 8],
            initiator_tag: REQUEST,
            referenced_tag,
            cmd_sn: cmd_sn + 1,
            exp_stat_sn: 1,
            ref_cmd_sn: cmd_sn,
            exp_data_sn: 0,
        })
    });
}

fn another_host(bed: &mut Bed, function: u8) {
    bed.another_host(match function {
        function::CLEAR_TASK_SET => TaskManagement::ClearTaskSet,
        function::LUN_RESET => TaskManagement::LunReset,
        _ => TaskManagement::TargetReset,
    });
}

fn name(function: u8) -> &'static str {
    sanloom_wire::iscsi::code::function::name(function).unwrap_or("?")
}

/// PDUs that the function causes to back ends.
fn to_back_ends(bed: &Bed) -> String {
    let mut text = String::new();
    for back in 0..2 {
        for head in bed.in_transit(back) {
            if let Header::TaskRequest(request) = head.header {
                text += &format!("      to back end {back}: {}\n", name(request.function));
            }
        }
    }
    text
}

/// PDUs that the host receives for its task and for the function, in order; data are summed in one
/// line.
fn received(bed: &Bed, (task, _): Command) -> String {
    let mut text = String::new();
    let mut data: BTreeMap<u32, u32> = BTreeMap::new();
    for head in &bed.received {
        let line = match head.header {
            Header::DataIn(one) if one.initiator_tag == task => {
                *data.entry(task).or_default() += head.data_bytes;
                match one.flags & flag::STATUS {
                    0 => continue,
                    _ => format!("SCSI status {:02x}, with the last data", one.status),
                }
            }
            Header::R2t(r2t) if r2t.initiator_tag == task => format!("R2T {}+{}", r2t.offset, r2t.desired_bytes),
            Header::ScsiResponse(one) if one.initiator_tag == task => format!("SCSI status {:02x}", one.status),
            Header::TaskResponse(one) if one.initiator_tag == REQUEST => {
                format!("Task Response: {}", task_response::name(one.response).unwrap_or("?"))
            }
            Header::Reject(reject) => format!("Reject: {}", reject.reason),
            _ => continue,
        };
        let before = data.remove(&task).map(|bytes| format!("{bytes} bytes of data, ")).unwrap_or_default();
        text += &format!("      host hears {before}{line}\n");
    }
    text + &data.values().map(|bytes| format!("      host hears {bytes} bytes of data\n")).collect::<String>()
}

/// Lets everything in flight arrive, and checks that only state of the host itself is left.
fn aftermath(bed: &mut Bed, command: Command, closes: bool) -> String {
    let mut text = to_back_ends(bed);
    if closes {
        finish_pdu(bed);
        bed.close();
        let behind: Vec<u8> = (0..2).filter(|back| bed.forward.has_lost_writes(*back)).collect();
        let behind = match behind.is_empty() {
            true => String::new(),
            false => format!(", a login in its place at back ends {behind:?} ends what is left"),
        };
        behind_is_ended(bed);
        return text + &received(bed, command) + &format!("      the session is closed{behind}\n");
    }
    bed.run_until_idle();
    text += &received(bed, command);
    let [of_session, forwarded] = bed.tasks();
    text += &format!("      {of_session} tasks left\n");
    assert_eq!((of_session, forwarded, bed.volumes.is_idle()), (0, 0, true), "{text}");
    assert!(bed.closed.is_empty(), "{:?}", bed.closed);
    text
}

/// Completes a PDU that is half sent to the host, which has to happen before anything else on its
/// connection.
fn finish_pdu(bed: &mut Bed) {
    let is_open = |bed: &Bed| bed.streams.as_ref().is_some_and(|streams| streams.mover.is_open(Conn::Host).is_some());
    while is_open(bed) {
        assert!(bed.step());
    }
}

fn behind_is_ended(bed: &mut Bed) {
    (0..2).for_each(|back| bed.forward.end_lost_writes(back, &mut bed.volumes));
    assert!(bed.forward.tasks() == 0 && bed.volumes.is_idle());
}

#[test]
fn every_function_meets_a_forwarded_task_in_every_state() {
    let mut text = String::new();
    for (state, enter, can_send) in STATES {
        text += &format!("{state}\n");
        for function in OWN.iter().copied().filter(|_| can_send) {
            let (mut bed, command) = enter();
            bed.received.clear();
            request_function(&mut bed, function, command);
            text += &format!("    {}\n", name(function));
            let closes = function == function::COLD_RESET;
            finish_pdu(&mut bed);
            assert_eq!(!bed.to_be_closed().is_empty(), closes, "{state}");
            text += &aftermath(&mut bed, command, closes);
        }
        for function in OTHERS {
            let (mut bed, command) = enter();
            bed.received.clear();
            another_host(&mut bed, function);
            text += &format!("    {} of another host\n", name(function));
            // After this kind of reset the driver closes all sessions of the target.
            text += &aftermath(&mut bed, command, function == function::COLD_RESET);
        }
    }
    insta::assert_snapshot!(text);
}

/// After every function that leaves the session alive, the next command is forwarded again.
#[test]
fn after_every_function_commands_are_forwarded_again() {
    for (state, enter, can_send) in STATES {
        let own = OWN.iter().map(|function| (*function, true)).filter(|_| can_send);
        for (function, is_own) in own.chain(OTHERS.map(|function| (function, false))) {
            if function == function::COLD_RESET {
                continue;
            }
            let (mut bed, command) = enter();
            match is_own {
                true => request_function(&mut bed, function, command),
                false => another_host(&mut bed, function),
            }
            bed.run_until_idle();
            // A unit attention may be reported first.
            for id in 50..53 {
                read(&mut bed, id, ACROSS, 4);
                bed.run_until_idle();
            }
            assert_eq!(ended(&mut bed, 52), (0, 0, 0), "{state}, {function}, {is_own}");
            let before = bed.counters().forwarded;
            write(&mut bed, 60, 0, 8);
            bed.run_until_idle();
            assert_eq!(ended(&mut bed, 60), (0, 0, 0), "{state}, {function}, {is_own}");
            assert_eq!(bed.counters().forwarded, before + 1, "{state}, {function}, {is_own}");
        }
    }
}
