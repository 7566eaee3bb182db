//! Task management for a task in each state, as a snapshot table. `forward/management.rs` does the
//! same for forwarded tasks.
//!
//! While a PDU of the initiator is incomplete, nothing else can arrive on its connection. So only
//! functions of other initiators meet a task with partly transferred data. A half-sent Data-In is
//! visible to the connection only: for the session it has left.

use crate::iscsi::bed::*;
use sanloom_scsi::iscsi::target::{Input, Output};
use sanloom_scsi::scsi::{IoStatus, Managed, Notice, TaskManagement};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{attribute, flag, function, task_response};
use sanloom_wire::iscsi::{Head, Header, TaskRequest};
use sanloom_wire::scsi::transport_id::TransportId;

/// Initiator task tag of the affected task.
const TASK: u32 = 7;
/// Initiator task tag of another task.
const OTHER: u32 = 8;

/// Name of a state, a function that brings a task into it, and the PDUs that the initiator still
/// sends for it.
type State = (&'static str, fn(&mut Bed), Option<fn(&mut Bed) -> Vec<Output>>);

const STATES: [State; 9] = [
    (
        "held: a command before it is missing",
        |bed| {
            bed.cmd_sn += 1;
            bed.read(TASK, 0, 1);
        },
        None,
    ),
    (
        "waits for an ordered task before it",
        |bed| {
            let flags = flag::FINAL | flag::READ | attribute::ORDERED;
            let head = bed.command(OTHER, flags, Cdb::Read { lba: 9, blocks: 1, fua: false }, BLOCK);
            bed.pdu(head, &[]);
            bed.read(TASK, 0, 1);
        },
        None,
    ),
    (
        "its immediate data half moved",
        |bed| {
            let head = bed.command(TASK, WRITE, write_cdb(0, 4), 4 * BLOCK);
            bed.input(Input::Header(Head { data_bytes: 512, ..head }));
        },
        Some(|bed| bed.segment(&[1; 512], true)),
    ),
    (
        "unsolicited data to come",
        |bed| {
            let head = bed.command(TASK, WRITE_ON, write_cdb(0, 4), 4 * BLOCK);
            bed.pdu(head, &[1; 512]);
        },
        Some(|bed| bed.pdu(data_out(TASK, UNSOLICITED, 0, 512, true), &[1; 1536])),
    ),
    (
        "awaits the data of an R2T",
        |bed| {
            let head = bed.command(TASK, WRITE, write_cdb(0, 4), 4 * BLOCK);
            bed.pdu(head, &[1; 512]);
        },
        Some(|bed| bed.pdu(data_out(TASK, 0x1_0000, 0, 512, true), &[1; 1536])),
    ),
    (
        "a PDU of its data half moved",
        |bed| {
            let head = bed.command(TASK, WRITE, write_cdb(0, 4), 4 * BLOCK);
            bed.pdu(head, &[1; 512]);
            let head = Head { data_bytes: 1536, ..data_out(TASK, 0x1_0000, 0, 512, true) };
            bed.input(Input::Header(head));
        },
        Some(|bed| bed.segment(&[1; 1536], true)),
    ),
    (
        "its read is under way",
        |bed| {
            bed.read(TASK, 0, 1);
        },
        None,
    ),
    (
        "its write is under way",
        |bed| {
            let head = bed.command(TASK, WRITE, write_cdb(0, 1), BLOCK);
            bed.pdu(head, &[1; 512]);
        },
        None,
    ),
    (
        "its response is queued",
        |bed| {
            bed.read(TASK, 0, 1);
            bed.work();
        },
        None,
    ),
];

const FUNCTIONS: [u8; 8] = [
    function::ABORT_TASK,
    function::ABORT_TASK_SET,
    function::CLEAR_ACA,
    function::CLEAR_TASK_SET,
    function::LUN_RESET,
    function::WARM_RESET,
    function::COLD_RESET,
    function::QUERY_TASK,
];

fn request(bed: &Bed, function: u8, referenced_tag: u32) -> Head {
    let request = TaskRequest {
        function,
        lun: [0; 8],
        initiator_tag: 100,
        referenced_tag,
        cmd_sn: bed.cmd_sn,
        exp_stat_sn: 1,
        ref_cmd_sn: bed.cmd_sn - 1,
        exp_data_sn: 0,
    };
    Head { immediate: true, ..Head::new(request) }
}

/// Functions of another initiator that end tasks of this one. A cold reset differs from a warm one
/// only in the driver, which closes all sessions.
const OTHERS: [(&str, TaskManagement); 3] = [
    ("CLEAR TASK SET", TaskManagement::ClearTaskSet),
    ("LOGICAL UNIT RESET", TaskManagement::LunReset),
    ("TARGET WARM RESET or COLD RESET", TaskManagement::TargetReset),
];

/// Executes a function for another initiator that is logged in to the same port.
fn another(bed: &mut Bed, function: TaskManagement) -> Vec<Output> {
    let other = TransportId::iscsi("iqn.2026-11.net.example:other", Some([9; 6]));
    let nexus = bed.device.connect(0, other);
    let Managed::Complete(Some(ends)) = bed.device.manage(nexus, Some(0), function) else { panic!("it ends tasks") };
    bed.notice(Notice::End(ends))
}

/// No function can arrive on a connection in the middle of a PDU.
fn functions(state: &str) -> &'static [u8] {
    if state.contains("half moved") { &[] } else { &FUNCTIONS }
}

fn bed() -> Bed {
    Bed { prompt: false, ..Bed::new(parameters()) }
}

/// Remaining tasks, and the outputs after everything in flight has arrived.
fn aftermath(bed: &mut Bed, rest: Option<fn(&mut Bed) -> Vec<Output>>) -> String {
    let mut text = format!("      {} tasks left\n", bed.session.tasks());
    let mut late = rest.map(|rest| rest(bed)).unwrap_or_default();
    for io in std::mem::take(&mut bed.ios) {
        bed.buffers.entry(io.tag).or_insert_with(|| vec![0; io.bytes as usize]);
        late.extend(bed.input(Input::IoDone { tag: io.tag, status: IoStatus::Good }));
    }
    if !late.is_empty() {
        text += "    then what was under way arrives\n";
        text += &lines(&late);
    }
    text
}

#[test]
fn every_function_meets_a_task_in_every_state() {
    let mut text = String::new();
    for (state, enter, rest) in STATES {
        text += &format!("{state}\n");
        for function in functions(state).iter().copied() {
            let mut bed = bed();
            enter(&mut bed);
            let name = sanloom_wire::iscsi::code::function::name(function).unwrap_or("?");
            text += &format!("    {name}\n");
            let request = request(&bed, function, TASK);
            text += &lines(&bed.pdu(request, &[]));
            text += &aftermath(&mut bed, rest);
        }
        for (name, function) in OTHERS {
            text += &format!("    {name} of another initiator\n");
            let mut bed = bed();
            enter(&mut bed);
            text += &lines(&another(&mut bed, function));
            text += &aftermath(&mut bed, rest);
        }
    }
    insta::assert_snapshot!(text);
}

/// After any function the session continues: the next command is answered, and the window has its
/// old size.
#[test]
fn after_every_function_the_session_continues() {
    for (state, enter, rest) in STATES {
        let own = functions(state).iter().filter(|function| **function != function::COLD_RESET);
        let others = OTHERS.iter().map(|(_, function)| Err(*function));
        for function in own.map(|function| Ok(*function)).chain(others) {
            let mut bed = bed();
            enter(&mut bed);
            match function {
                Ok(function) => bed.pdu(request(&bed, function, TASK), &[]),
                Err(function) => another(&mut bed, function),
            };
            aftermath(&mut bed, rest);
            bed.prompt = true;
            // The missing command arrives, so that every held command gets its turn.
            let missing = command(50, 1, READ, Cdb::Read { lba: 1, blocks: 1, fua: false }, BLOCK);
            bed.pdu(missing, &[]);
            bed.work();
            let outputs = bed.read(51, 2, 1);
            assert_eq!(status(&outputs), Some((51, 0)), "{state}, {function:?}: {outputs:?}");
            assert_eq!(bed.session.tasks(), 0, "{state}, {function:?}");
            let window = outputs.iter().find_map(|output| match output {
                Output::Send { head: Head { header: Header::DataIn(data), .. }, .. } => {
                    Some(data.max_cmd_sn.wrapping_sub(data.exp_cmd_sn) + 1)
                }
                _ => None,
            });
            assert_eq!(window, Some(128), "{state}, {function:?}");
        }
    }
}

/// Functions of error recovery level 2 and of RFC 7144, which the session has not negotiated, and
/// an undefined one.
#[test]
fn unsupported_functions_are_refused_and_end_no_task() {
    for (function, expected) in [
        (function::TASK_REASSIGN, task_response::NO_REASSIGNMENT),
        (function::QUERY_TASK, task_response::NOT_SUPPORTED),
        (function::QUERY_TASK_SET, task_response::NOT_SUPPORTED),
        (function::NEXUS_RESET, task_response::NOT_SUPPORTED),
        (function::QUERY_ASYNCHRONOUS_EVENT, task_response::NOT_SUPPORTED),
        (0x7f, task_response::NOT_SUPPORTED),
    ] {
        let mut bed = bed();
        bed.read(TASK, 0, 1);
        let request = request(&bed, function, TASK);
        let outputs = bed.pdu(request, &[]);
        let [Output::Send { head: Head { header: Header::TaskResponse(answer), .. }, .. }] = outputs[..] else {
            panic!("{function}: {outputs:?}")
        };
        assert_eq!((answer.response, bed.session.tasks()), (expected, 1), "{function}");
    }
}

#[test]
fn a_reset_response_waits_for_tasks_of_other_sessions_and_an_abort_response_does_not() {
    for (function, waits) in
        [(function::LUN_RESET, true), (function::CLEAR_TASK_SET, true), (function::ABORT_TASK_SET, false)]
    {
        let mut bed = bed();
        let answered = |bed: &mut Bed| {
            let outputs = std::iter::from_fn(|| bed.session.poll_output());
            let answers = |output: &Output| {
                matches!(output, Output::Send { head: Head { header: Header::TaskResponse(_), .. }, .. })
            };
            outputs.filter(answers).count()
        };
        let request = request(&bed, function, TASK);
        bed.session.handle(bed.now, Input::Header(request), Some(&mut bed.device));
        assert_eq!(answered(&mut bed), usize::from(!waits), "{function}");
        bed.session.handle(bed.now, Input::OthersEnded, Some(&mut bed.device));
        assert_eq!(answered(&mut bed), usize::from(waits), "{function}");
    }
}

#[test]
fn a_closed_session_returns_the_writes_in_progress() {
    for (state, enter, _) in STATES {
        let mut bed = bed();
        enter(&mut bed);
        let writes: Vec<_> = bed.ios.iter().filter(|io| io.op.changes_medium()).map(|io| io.tag).collect();
        assert_eq!(bed.session.close(Some(&mut bed.device)), writes, "{state}");
        assert_eq!(writes.len(), usize::from(state == "its write is under way"), "{state}");
    }
}

#[test]
fn a_task_is_aborted_before_it_arrives() {
    let mut bed = bed();
    bed.cmd_sn += 1;
    bed.read(OTHER, 0, 1);
    assert_eq!(bed.ios.len(), 0);
    // Command 1 is missing; its abort fills the gap.
    let Header::TaskRequest(abort) = request(&bed, function::ABORT_TASK, TASK).header else { return };
    let head = Head { immediate: true, ..Head::new(TaskRequest { ref_cmd_sn: 1, ..abort }) };
    let outputs = bed.pdu(head, &[]);
    let complete = |output: &Output| matches!(output, Output::Send { head: Head { header: Header::TaskResponse(response), .. }, .. } if response.response == task_response::COMPLETE);
    assert!(outputs.iter().any(complete), "{outputs:?}");
    assert_eq!(bed.ios.len(), 1);
    let late = command(TASK, 1, READ, Cdb::Read { lba: 0, blocks: 1, fua: false }, BLOCK);
    assert_eq!(bed.pdu(late, &[]), []);
}
