//! Data of reads and writes under every combination of parameters, and data that violate them.

use crate::iscsi::bed::*;
use proptest::prelude::*;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::target::{Input, Limits, Output};
use sanloom_scsi::scsi::{Ends, NexusId, Notice};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{flag, function};
use sanloom_wire::iscsi::{Head, Header, TaskRequest};

fn pattern(seed: u32, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n.wrapping_add(seed).wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
}

/// Sends a write as a conforming initiator does, in PDUs of at most `segment` bytes.
fn write(bed: &mut Bed, tag: u32, lba: u64, data: &[u8], segment: u32, unsolicited_data: bool) -> Vec<Output> {
    let p = *bed.session.parameters();
    let total = data.len() as u32;
    let immediate = if p.immediate_data { segment.min(p.first_burst_bytes).min(total) } else { 0 };
    let unsolicited = if p.initial_r2t || !unsolicited_data { immediate } else { p.first_burst_bytes.min(total) };
    let flags = if unsolicited > immediate { WRITE_ON } else { WRITE };
    let head = bed.command(tag, flags, write_cdb(lba, total / BLOCK), total);
    let mut outputs = bed.pdu(head, &data[..immediate as usize]);
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    if unsolicited > immediate {
        open.push((UNSOLICITED, immediate, unsolicited - immediate));
    }
    open.extend(r2ts(&outputs));
    while !open.is_empty() {
        assert!(open.len() <= usize::from(p.max_outstanding_r2t) + 1, "{open:?}");
        let (target_tag, offset, len) = open.remove(0);
        assert!(target_tag == UNSOLICITED || len <= p.max_burst_bytes);
        let mut at = 0;
        let mut data_sn = 0;
        while at < len {
            let piece = segment.min(len - at);
            let from = (offset + at) as usize;
            let head = data_out(tag, target_tag, data_sn, offset + at, at + piece == len);
            let more = bed.pdu(head, &data[from..from + piece as usize]);
            open.extend(r2ts(&more));
            outputs.extend(more);
            at += piece;
            data_sn += 1;
        }
    }
    outputs
}

fn cases() -> impl Strategy<Value = (Parameters, u32, bool, u32, u64)> {
    let length = prop_oneof![Just(512_u32), Just(1024), Just(4096), Just(8192), Just(65_536), 512_u32..70_000];
    let agreed = (any::<bool>(), any::<bool>(), length.clone(), length.clone(), length.clone(), 1_u16..5);
    (agreed, length, any::<bool>(), 1_u32..300, 0_u64..3000).prop_map(
        |((initial_r2t, immediate_data, max_burst, first_burst, send, r2t), segment, unsolicited_data, blocks, lba)| {
            let parameters = Parameters {
                initial_r2t,
                immediate_data,
                max_burst_bytes: max_burst,
                first_burst_bytes: first_burst.min(max_burst),
                send_bytes: send,
                max_outstanding_r2t: r2t,
                ..Parameters::default()
            };
            (parameters, segment, unsolicited_data, blocks, lba)
        },
    )
}

/// Builds an ABORT TASK for a task.
fn abort(tag: u32, cmd_sn: u32) -> Head {
    Head::new(TaskRequest {
        function: function::ABORT_TASK,
        lun: [0; 8],
        initiator_tag: tag,
        referenced_tag: tag,
        cmd_sn,
        exp_stat_sn: 1,
        ref_cmd_sn: cmd_sn,
        exp_data_sn: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Written data reach the disk, and reads return them in pieces that respect the parameters.
    #[test]
    fn all_combinations_move_the_same_data((parameters, segment, unsolicited_data, blocks, lba) in cases()) {
        let mut bed = Bed::new(parameters);
        let data = pattern(blocks, blocks * BLOCK);
        let outputs = write(&mut bed, 5, lba, &data, segment, unsolicited_data);
        prop_assert_eq!(status(&outputs), Some((5, 0)));
        let from = (lba * u64::from(BLOCK)) as usize;
        prop_assert!(bed.disk[from..from + data.len()] == data[..]);
        let mut back = Vec::new();
        let mut sequence = 0;
        for output in bed.read(6, lba, blocks) {
            let Output::Send { head: Head { header: Header::DataIn(piece), data_bytes, .. }, data } = output else {
                continue;
            };
            prop_assert_eq!(piece.offset as usize, back.len());
            prop_assert!(data_bytes <= parameters.send_bytes && data_bytes > 0);
            sequence += data_bytes;
            prop_assert!(sequence <= parameters.max_burst_bytes);
            if piece.flags & flag::FINAL != 0 {
                sequence = 0;
            }
            back.extend_from_slice(&data);
            prop_assert_eq!(piece.flags & flag::STATUS != 0, back.len() == (blocks * BLOCK) as usize);
        }
        prop_assert!(back == data);
        prop_assert_eq!(bed.session.tasks(), 0);
        prop_assert!(bed.buffers.is_empty());
    }

    /// Any PDU in any order is answered or ignored, without a panic and with no more tasks than the
    /// window has slots.
    #[test]
    fn random_pdus_leave_the_session_consistent(
        pdus in proptest::collection::vec((proptest::array::uniform16(any::<u8>()), 0_u8..11, 0_u32..6, 0_u32..8, 0_u32..3), 1..60),
        prompt in any::<bool>(),
    ) {
        let limits = Limits { depth: 4, max_immediate: 2, max_bytes: 4096, ..Limits::default() };
        let mut bed = Bed { prompt, ..Bed::with_limits(parameters(), limits) };
        for (noise, kind, tag, ahead, len) in pdus {
            let data = vec![9; (len * 512) as usize];
            match kind {
                8 => {
                    bed.work();
                    continue;
                }
                9 => {
                    bed.notice(Notice::End(Ends { unit: Some(0), nexus: None, by: NexusId(9) }));
                    continue;
                }
                _ => {}
            }
            let mut head = match kind {
                0 => command(tag, bed.cmd_sn + ahead, noise[0], Cdb::Read { lba: 0, blocks: 2, fua: false }, 1024),
                1 => command(tag, bed.cmd_sn + ahead, noise[0], write_cdb(0, 4), 2048),
                2 => data_out(tag, UNSOLICITED, ahead / 4, ahead * 512, noise[0] & 1 == 0),
                3 => data_out(tag, u32::from(noise[1] & 3) << 16 | ahead, 0, ahead * 512, noise[0] & 1 == 0),
                10 => abort(tag, bed.cmd_sn + ahead),
                _ => {
                    let bytes: Vec<u8> = noise.iter().cycle().take(48).copied().collect();
                    Head::parse(bytes.first_chunk().expect("48 bytes"))
                }
            };
            head.immediate = noise[2] & 7 == 0;
            head.data_bytes = data.len() as u32;
            let mut outputs = bed.input(Input::Header(head));
            if !data.is_empty() {
                outputs.extend(bed.segment(&data, noise[3] > 8));
            }
            if outputs.iter().any(|output| matches!(output, Output::Close(_))) {
                break;
            }
            prop_assert!(bed.session.tasks() <= 4 + 2, "{}", bed.session.tasks());
        }
        // After the medium has finished, task management is answered.
        if bed.session.poll_timeout().is_some() {
            bed.work();
            let answer = bed.pdu(Head { immediate: true, ..abort(77, 0) }, &[]);
            prop_assert!(lines(&answer).contains("Task Response to 77"), "{:?}", answer);
        }
        let Bed { mut session, mut device, .. } = bed;
        session.close(Some(&mut device));
        prop_assert_eq!(session.tasks(), 0);
        prop_assert_eq!(device.active(0), 0);
    }
}

#[test]
fn data_that_break_the_rules_end_their_task_and_nothing_else() {
    type Broken = (&'static str, fn(&mut Bed) -> Vec<Output>);
    let cases: [Broken; 5] = [
        ("a number that is skipped", |bed| bed.pdu(data_out(5, 0x1_0000, 1, 512, true), &[1; 1536])),
        ("an offset that is skipped", |bed| bed.pdu(data_out(5, 0x1_0000, 0, 1024, true), &[1; 1024])),
        ("more than was solicited", |bed| bed.pdu(data_out(5, 0x1_0000, 0, 512, true), &[1; 2048])),
        ("an end before the end", |bed| bed.pdu(data_out(5, 0x1_0000, 0, 512, true), &[1; 512])),
        ("unsolicited data that nobody announced", |bed| bed.pdu(data_out(5, UNSOLICITED, 0, 512, true), &[1; 512])),
    ];
    for (what, send) in cases {
        let mut bed = Bed::new(parameters());
        let head = bed.command(5, WRITE, write_cdb(0, 4), 4 * BLOCK);
        assert_eq!(r2ts(&bed.pdu(head, &[1; 512])), [(0x1_0000, 512, 1536)]);
        let outputs = send(&mut bed);
        assert_eq!(
            lines(&outputs[..2]),
            "      Reject: protocol error\n      SCSI Response to 5 status 02 sense b 4b00 under 1536\n",
            "{what}"
        );
        assert!(bed.disk.iter().all(|byte| *byte == 0), "{what}");
        assert_eq!(status(&bed.read(6, 0, 1)), Some((6, 0)), "{what}");
    }
}

#[test]
fn a_wrong_digest_ends_a_write_after_all_its_data() {
    let mut bed = Bed::new(parameters());
    let head = bed.command(5, WRITE, write_cdb(0, 4), 4 * BLOCK);
    bed.pdu(head, &[1; 512]);
    let head = Head { data_bytes: 512, ..data_out(5, 0x1_0000, 0, 512, false) };
    bed.input(Input::Header(head));
    assert_eq!(lines(&bed.segment(&[2; 512], false)), "      Reject: data digest error\n");
    let outputs = bed.pdu(data_out(5, 0x1_0000, 1, 1024, true), &[3; 1024]);
    assert_eq!(lines(&outputs), "      SCSI Response to 5 status 02 sense b 4705\n");
    assert!(bed.disk.iter().all(|byte| *byte == 0));
    // The same for immediate data.
    let head = Head { data_bytes: 512, ..bed.command(6, WRITE, write_cdb(0, 1), BLOCK) };
    bed.input(Input::Header(head));
    let outputs = bed.segment(&[2; 512], false);
    assert_eq!(lines(&outputs), "      Reject: data digest error\n      SCSI Response to 6 status 02 sense b 4705\n");
}

#[test]
fn data_wait_for_buffer_space_and_all_arrive() {
    let limits = Limits { max_bytes: 4096, ..Limits::default() };
    let none = Parameters { immediate_data: false, initial_r2t: true, ..Parameters::default() };
    let mut bed = Bed::with_limits(none, limits);
    let mut open = Vec::new();
    for tag in 0..4 {
        let head = bed.command(tag, WRITE, write_cdb(u64::from(tag) * 8, 4), 4 * BLOCK);
        open.extend(r2ts(&bed.pdu(head, &[])).into_iter().map(|r2t| (tag, r2t)));
    }
    assert_eq!(open.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [0, 1]);
    let mut done = Vec::new();
    while let Some((tag, (target_tag, ..))) = open.pop() {
        let outputs = bed.pdu(data_out(tag, target_tag, 0, 0, true), &[tag as u8 + 1; 2048]);
        done.extend(status(&outputs));
        for output in &outputs {
            if let Output::Send { head: Head { header: Header::R2t(r2t), .. }, .. } = output {
                open.push((r2t.initiator_tag, (r2t.target_tag, r2t.offset, r2t.desired_bytes)));
            }
        }
    }
    done.sort_unstable();
    assert_eq!(done, [(0, 0), (1, 0), (2, 0), (3, 0)]);
}
