//! Segments of TCP and the PDUs of iSCSI that begin in them, in the words of a timeline.

use super::frames::status_text;
use crate::capture::ethernet::{self, Shown};
use crate::net::ethernet::Packet;
use sanloom_transport::tcp::{Flags, Segment};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{flag, function, task_response};
use sanloom_wire::iscsi::{Bhs, Head, Header};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Directions of connections whose positions are kept, more than a lab has at a time. The oldest
/// connections are forgotten first.
const MAX_DIRECTIONS: usize = 1 << 16;

/// Texts of segments, with the highest position of each direction of a connection.
#[derive(Default)]
pub(super) struct SegmentTexts {
    /// By the number of the connection; true for the end that has opened it.
    highest: BTreeMap<(u64, bool), u64>,
}

impl SegmentTexts {
    /// Returns the text of a segment that begins nothing, its identification, and its marks. A
    /// segment with a position that the link has carried before is a retransmission.
    pub fn of(&mut self, packet: &Packet, shown: &Shown<'_>) -> [String; 3] {
        let segment = shown.segment;
        let what = format!("TCP {}{}", flags(segment), if segment.length > 0 { " data" } else { "" });
        [what, ids(shown), self.marks(packet, shown)]
    }

    fn marks(&mut self, packet: &Packet, shown: &Shown<'_>) -> String {
        let segment = shown.segment;
        let mut marks = String::new();
        for block in segment.sack.blocks() {
            let _ = write!(marks, "  SACK {}-{}", block.start, block.end);
        }
        match ethernet::ecn(packet, segment) {
            0 => {}
            2 => marks.push_str("  ECT"),
            _ => marks.push_str("  CE"),
        }
        if segment.span() > 0 {
            let key = (shown.connection, shown.from_opener);
            if self.highest.len() >= MAX_DIRECTIONS && !self.highest.contains_key(&key) {
                self.highest.pop_first();
            }
            let highest = self.highest.entry(key).or_default();
            if segment.position < *highest {
                marks.push_str("  retransmission");
            }
            *highest = segment.end().max(*highest);
        }
        marks
    }
}

/// Returns the flags by their names, separated by commas.
fn flags(segment: &Segment) -> String {
    let names = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ];
    let set = names.into_iter().filter(|(bit, _)| segment.flags.has(*bit));
    set.map(|(_, name)| name).collect::<Vec<_>>().join(",")
}

/// Returns addresses, numbers relative to the SYN, window field and length of a segment.
pub(super) fn ids(shown: &Shown<'_>) -> String {
    let ([from, to], segment) = (shown.way(), shown.segment);
    let &Segment { position, ack, window, length, .. } = segment;
    let ack = if segment.flags.has(Flags::ACK) { ack } else { 0 };
    format!("{from} > {to} seq {position} ack {ack} win {window} len {length}")
}

/// Returns the texts of all PDUs that begin in a segment; `None` if there is none.
pub(super) fn pdus(begun: &[Bhs]) -> Option<String> {
    let texts: Vec<String> = begun.iter().map(pdu).collect();
    (!texts.is_empty()).then(|| texts.join(" + "))
}

fn pdu(bhs: &Bhs) -> String {
    let head = Head::parse(&bhs.0);
    let data_bytes = head.data_bytes;
    let opcode = head.header.opcode();
    match head.header {
        Header::ScsiCommand(command) => {
            format!("{opcode} {} len {}", Cdb::parse(&command.cdb), command.expected_bytes)
        }
        Header::ScsiResponse(response) => format!("{opcode} {}", status_text(response.status)),
        Header::DataIn(data) => {
            let status = data.flags & flag::STATUS != 0;
            let status = if status { format!(" {}", status_text(data.status)) } else { String::new() };
            format!("{opcode} offset {} len {data_bytes}{status}", data.offset)
        }
        Header::DataOut(data) => format!("{opcode} offset {} len {data_bytes}", data.offset),
        Header::R2t(r2t) => format!("R2T offset {} len {}", r2t.offset, r2t.desired_bytes),
        Header::TaskRequest(request) => named(opcode, function::name(request.function), request.function),
        Header::TaskResponse(response) => named(opcode, task_response::name(response.response), response.response),
        Header::LoginResponse(response) => format!("{opcode} {}", response.status),
        _ => opcode.to_string(),
    }
}

fn named(opcode: impl std::fmt::Display, name: Option<&str>, code: u8) -> String {
    match name {
        Some(name) => format!("{opcode} {name}"),
        None => format!("{opcode} code {code:02x}"),
    }
}
