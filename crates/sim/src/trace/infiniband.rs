//! The timeline of an InfiniBand link: a line for each packet and flow-control packet of both
//! directions, and for each loss.
//!
//! A line of a packet has the information unit of SRP, the segment of IPoIB or the operation; then
//! LIDs, queue pair and PSN, service level and virtual lane, the length from the LRH to the VCRC,
//! the time of the last symbol, and the blocks of credit that are left.

use super::frames::status_text;
use super::segments::{self, SegmentTexts};
use super::{Columns, Lines, Pending, at_ns, light};
use crate::capture::ethernet::of_session;
use crate::capture::infiniband::{self, Contents};
use crate::net::infiniband::{ObservedKind, Packet};
use crate::world::World;
use sanloom_fc::san::Lab;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::infiniband::{Packet as Decoded, opcode};
use sanloom_wire::srp::Iu;

/// State of the timeline.
pub(super) struct Timeline {
    link: u16,
    pub lines: Lines,
    segments: SegmentTexts,
}

impl Timeline {
    /// Starts the timeline of a link and appends its first lines to `out`.
    pub fn new(lab: &Lab, link: u16, out: &mut String) -> Timeline {
        let config = lab.infiniband.links.get(usize::from(link));
        let columns = Columns::new(config.map(|link| link.ends.map(|end| end.name(lab))).unwrap_or_default());
        if let Some(config) = config {
            columns.title(out, &config.name, config.rate.name());
            let then = "then what, LIDs, queue pair, PSN, service level, lane, length, end, credit in blocks";
            columns.legend(out, then);
        }
        let lines = Lines { columns, pending: Pending::default() };
        Timeline { link, lines, segments: SegmentTexts::default() }
    }

    /// Adds the records since the last call.
    pub fn add(&mut self, world: &World) {
        let link = u32::from(self.link);
        for item in world.net.infiniband.observed().iter().filter(|item| item.line / 2 == link) {
            let text = match &item.kind {
                ObservedKind::Packet { packet, end_ps, credits } => {
                    let [what, ids, marks] = self.tell(world, packet);
                    let bad = if packet.is_corrupt() { "  BAD CRC" } else { "" };
                    let end = at_ns(*end_ps);
                    format!("{what:<40} {ids} {:>5} B  until {end}  credits {credits}{marks}{bad}", packet.bytes)
                }
                ObservedKind::Lost { packet, loss } => {
                    let what = format!("LOST {}", loss.name());
                    format!("{what:<40} {} {:>5} B", ids(packet, decode(world, packet)), packet.bytes)
                }
                ObservedKind::Flow { lane, update, end_ps, is_lost } => {
                    let what = format!("flow control FCTBS {} FCCL {}", update.fctbs, update.fccl);
                    let lost = if *is_lost { "  LOST" } else { "" };
                    format!("{what:<40} VL {lane}  until {}{lost}", at_ns(*end_ps))
                }
                ObservedKind::Light { up } => light(*up).to_owned(),
            };
            self.lines.push(item.at_ps, item.line, text);
        }
    }

    /// Returns the text of a packet, its identification and its marks.
    fn tell(&mut self, world: &World, packet: &Packet) -> [String; 3] {
        let name = opcode::name(crate::infiniband::Form::opcode(packet)).unwrap_or("unknown");
        let Some(contents) = infiniband::contents(world, packet) else {
            return [name.to_owned(), ids(packet, None), String::new()];
        };
        let bytes = infiniband::bytes(world, packet, &contents).unwrap_or_default();
        let Ok(decoded) = Decoded::parse(&bytes) else { return [name.to_owned(), ids(packet, None), String::new()] };
        let mut marks = if decoded.bth.ack { "  AckReq".to_owned() } else { String::new() };
        let what = match &contents {
            Contents::Ipoib(carried) => {
                // Only the first packet of a message has the header of TCP.
                let begins = carried.part.as_ref().is_none_or(|(seen, start)| *start == 0 && seen.ip.is_some());
                let seen = world.iscsi.as_ref().filter(|_| begins);
                let seen = seen.and_then(|iscsi| iscsi.seen_with(&carried.frame, &carried.segment));
                seen.map(|seen| {
                    let shown = of_session(&seen);
                    let [what, ids, of_segment] = self.segments.of(&carried.frame, &shown);
                    marks = format!("  {ids}{of_segment}{marks}");
                    format!("IPoIB {}", segments::pdus(&seen.begun).unwrap_or(what))
                })
            }
            Contents::Srp(_) => unit(&decoded),
        };
        let what = what.unwrap_or_else(|| operation(name, &decoded));
        let number = (decoded.bth.pair, decoded.bth.psn);
        [what, ids(packet, Some(number)), marks]
    }
}

/// Returns queue pair and PSN of a packet; `None` if its contents are not kept.
fn decode(world: &World, packet: &Packet) -> Option<(u32, u32)> {
    let bytes = infiniband::bytes(world, packet, &infiniband::contents(world, packet)?)?;
    let decoded = Decoded::parse(&bytes).ok()?;
    Some((decoded.bth.pair, decoded.bth.psn))
}

fn ids(packet: &Packet, number: Option<(u32, u32)>) -> String {
    let (pair, psn) = number
        .map_or_else(<(String, String)>::default, |(pair, psn)| (format!(" QP {pair:06x}"), format!(" PSN {psn}")));
    format!("LID {} > {}{pair}{psn} SL {} VL {}", packet.from, packet.to, packet.level(), packet.lane())
}

/// Returns the text of an operation with its extended headers.
fn operation(name: &str, packet: &Decoded<'_>) -> String {
    let extended = &packet.extended;
    match (packet.bth.opcode, extended.aeth, extended.reth) {
        (opcode::ACK, Some((syndrome, number)), _) => {
            // Syndromes (IBA volume 1, 9.7.5.1.1 and 9.7.5.2.8).
            let name = match (syndrome >> 5, syndrome & 0x1f) {
                (0, _) => "ACK",
                (1, _) => "RNR NAK",
                (3, 0) => "NAK PSN sequence error",
                (3, 1) => "NAK invalid request",
                (3, 2) => "NAK remote access error",
                (3, 3) => "NAK remote operational error",
                _ => "NAK",
            };
            format!("{name} syndrome {syndrome:02x} MSN {number}")
        }
        (_, _, Some((_, _, length))) => format!("{name} len {length}"),
        _ => name.to_owned(),
    }
}

/// Returns the information unit of SRP in a packet; `None` if there is none.
fn unit(packet: &Decoded<'_>) -> Option<String> {
    if packet.bth.opcode != opcode::SEND_ONLY {
        return None;
    }
    Some(match Iu::parse(packet.payload).ok()? {
        Iu::LoginReq(_) => "SRP_LOGIN_REQ".to_owned(),
        Iu::LoginRsp { delta, .. } => format!("SRP_LOGIN_RSP limit {delta}"),
        Iu::LoginRej { reason, .. } => format!("SRP_LOGIN_REJ reason {reason:05x}"),
        Iu::Cmd(command) => {
            let length = command.out.total().max(command.input.total());
            format!("SRP_CMD {} len {length}", Cdb::parse(&command.cdb))
        }
        Iu::Rsp(response) => format!("SRP_RSP {}", status_text(response.status)),
        Iu::TskMgmt(request) => format!("SRP_TSK_MGMT function {:02x}", request.function),
        Iu::InitiatorLogout { .. } => "SRP_I_LOGOUT".to_owned(),
        Iu::TargetLogout { reason, .. } => format!("SRP_T_LOGOUT reason {reason:05x}"),
        Iu::CredReq { delta, .. } => format!("SRP_CRED_REQ delta {delta}"),
        Iu::CredRsp { .. } => "SRP_CRED_RSP".to_owned(),
        Iu::AerReq { .. } => "SRP_AER_REQ".to_owned(),
        Iu::AerRsp { .. } => "SRP_AER_RSP".to_owned(),
    })
}
