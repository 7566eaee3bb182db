//! The timeline of an Ethernet link: a line for each frame of both directions, for each pause that
//! stops or resumes the sender, and for each loss.
//!
//! A line of a frame has the text of what begins in it; then addresses and numbers, the length with
//! FCS, the tag, and the time of the last bit. Numbers of TCP count from the SYN of each direction.

use super::frames::{self, FrameTexts};
use super::segments::{self, SegmentTexts};
use super::{Columns, Lines, Pending, at_ns, light};
use crate::capture::ethernet::{self, Contents};
use crate::capture::{fcoe, fip};
use crate::fcip::Unit;
use crate::net::ethernet::{ObservedKind, PRIORITIES, Packet};
use crate::net::fcoe::SeenFrame;
use crate::world::World;
use sanloom_fc::config::VlanNumbers;
use sanloom_fc::san::Lab;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fcip::KeepAlive;
use sanloom_wire::lldp::{Lldpdu, Tlv};

/// State of the timeline.
pub(super) struct Timeline {
    link: u16,
    vlans: VlanNumbers,
    pub lines: Lines,
    frames: FrameTexts,
    segments: SegmentTexts,
}

/// A frame in words.
#[derive(Default)]
struct Told {
    what: String,
    ids: String,
    tag: String,
    marks: String,
}

impl Timeline {
    /// Starts the timeline of a link and appends its first lines to `out`.
    pub fn new(lab: &Lab, link: u16, out: &mut String) -> Timeline {
        let config = lab.ethernet_links.get(usize::from(link));
        let columns = Columns::new(config.map(|link| link.ends.map(|end| end.name(lab))).unwrap_or_default());
        if let Some(config) = config {
            columns.title(out, &config.name, config.rate.name());
            let ids = "addresses (FCoE: S_ID, D_ID, OX_ID; TCP: numbers since the SYN, window field, payload)";
            columns.legend(out, &format!("then what, {ids}, length with FCS, priority and VLAN, end"));
        }
        Timeline {
            link,
            vlans: lab.vlan_numbers(),
            lines: Lines { columns, pending: Pending::default() },
            frames: FrameTexts::default(),
            segments: SegmentTexts::default(),
        }
    }

    /// Adds the records since the last call.
    pub fn add(&mut self, world: &World) {
        let link = u32::from(self.link);
        for item in world.net.ethernet.observed().iter().filter(|item| item.line / 2 == link) {
            let text = match &item.kind {
                ObservedKind::Frame { packet, end_ps } => {
                    let Told { what, ids, tag, marks } = self.tell(world, packet);
                    let bad = if packet.is_corrupt() { "  BAD FCS" } else { "" };
                    let end = at_ns(*end_ps);
                    format!("{what:<40} {ids}{:>5} B  {tag}  until {end}{marks}{bad}", packet.bytes)
                }
                ObservedKind::Lost { packet, loss } => {
                    let what = format!("LOST {}", loss.name());
                    let ids = identify(world, packet);
                    format!("{what:<40} {ids}{:>5} B", packet.bytes)
                }
                ObservedKind::PauseLost => "LOST pause frame".to_owned(),
                ObservedKind::Stopped { priority, from_ps, until_ps } => {
                    let what = self.paused(world, item.line, *priority);
                    format!("{what} stopped from {} until {}", at_ns(*from_ps), at_ns(*until_ps))
                }
                ObservedKind::Resumed { priority } => {
                    format!("{} resumed", self.paused(world, item.line, *priority))
                }
                ObservedKind::Light { up } => light(*up).to_owned(),
            };
            self.lines.push(item.at_ps, item.line, text);
        }
    }

    /// Returns the name of that which a pause stops at the sender of a line.
    fn paused(&self, world: &World, line: u32, priority: u8) -> String {
        match world.net.ethernet.lines()[line as usize].pauses_link {
            true => "link".to_owned(),
            false => format!("priority {priority}"),
        }
    }

    /// Returns a frame in words.
    fn tell(&mut self, world: &World, packet: &Packet) -> Told {
        let Some(contents) = ethernet::contents(world, packet) else {
            return Told { what: "contents are not kept".to_owned(), ..Told::default() };
        };
        let tag = match ethernet::tag(world, &self.vlans, packet, &contents) {
            Some(tag) => format!("priority {} VLAN {}", tag.priority, tag.vlan),
            None => "untagged".to_owned(),
        };
        let told = match &contents {
            Contents::Pause { stop: 0, whole_link: true, .. } => Told { what: "resume".to_owned(), ..Told::default() },
            Contents::Pause { stop, whole_link: true, .. } => {
                Told { what: format!("pause for {} quanta", ethernet::quanta(*stop)[0]), ..Told::default() }
            }
            Contents::Pause { named, stop, .. } => Told { what: pause(*named, *stop), ..Told::default() },
            Contents::Fcoe(seen) => Told {
                what: format!("{} {}", carrier(seen), self.frame(world, seen)),
                ids: identify(world, packet),
                ..Told::default()
            },
            Contents::Lldp(_, pdu) => Told { what: lldp(pdu), ids: identify(world, packet), ..Told::default() },
            Contents::Fip(message) => {
                Told { what: format!("FIP {}", fip::text(*message)), ids: identify(world, packet), ..Told::default() }
            }
            Contents::Tunnel(seen) => {
                let [what, ids, marks] = self.segments.of(packet, &ethernet::of_tunnel(seen));
                let units: Vec<String> = seen.begun.iter().map(|unit| self.unit(world, unit)).collect();
                let what = if units.is_empty() { what } else { units.join(" + ") };
                Told { what, ids: ids + " ", marks, ..Told::default() }
            }
            Contents::Session(seen) => {
                let [what, ids, marks] = self.segments.of(packet, &ethernet::of_session(seen));
                Told { what: segments::pdus(&seen.begun).unwrap_or(what), ids: ids + " ", marks, ..Told::default() }
            }
        };
        Told { tag, ..told }
    }

    /// Returns the text of a unit of an FCIP link.
    fn unit(&mut self, world: &World, unit: &Unit) -> String {
        match unit {
            Unit::Special { .. } => "FCIP special frame".to_owned(),
            Unit::KeepAlive { kind: KeepAlive::Request, .. } => "FCIP LKA".to_owned(),
            Unit::KeepAlive { kind: KeepAlive::Accept, .. } => "FCIP LKA: LS_ACC".to_owned(),
            Unit::Frame { seen, .. } => {
                format!("FCIP {} {} len {}", self.frame(world, seen), frames::ids(&seen.frame), seen.frame.len_bytes())
            }
        }
    }

    fn frame(&mut self, world: &World, seen: &SeenFrame) -> String {
        let message = seen.message.as_ref().map(|(whole, bytes, parts)| (&whole.header, bytes.as_slice(), *parts));
        self.frames.what(world, seen.lane, &seen.frame, message)
    }
}

fn carrier(seen: &SeenFrame) -> &'static str {
    if fcoe::is_fip(seen) { "FIP" } else { "FCoE" }
}

/// Returns addresses and numbers of a frame, with a space behind them; empty for a pause frame.
fn identify(world: &World, packet: &Packet) -> String {
    let ids = match ethernet::contents(world, packet) {
        Some(Contents::Fcoe(seen)) => frames::ids(&seen.frame),
        Some(Contents::Lldp(from, _)) => format!("{from} > {}", MacAddr::NEAREST_BRIDGE),
        Some(Contents::Fip(message)) => fip::addresses(world, packet, message),
        Some(Contents::Tunnel(seen)) => segments::ids(&ethernet::of_tunnel(&seen)),
        Some(Contents::Session(seen)) => segments::ids(&ethernet::of_session(&seen)),
        Some(Contents::Pause { .. }) | None => return String::new(),
    };
    ids + " "
}

/// Returns the text of an LLDPDU: the lossless priorities, and whether its sender is willing.
fn lldp(pdu: &Lldpdu) -> String {
    let pfc = pdu.tlvs.iter().find_map(|tlv| match tlv {
        Tlv::Pfc(pfc) => Some(pfc),
        _ => None,
    });
    let Some(pfc) = pfc else { return "LLDP".to_owned() };
    let lossless = (0..PRIORITIES).filter(|priority| pfc.priorities & 1 << priority != 0);
    let lossless: Vec<String> = lossless.map(|priority| priority.to_string()).collect();
    let lossless = if lossless.is_empty() { "off".to_owned() } else { lossless.join(",") };
    format!("LLDP DCBX PFC {lossless}{}", if pfc.willing { " willing" } else { "" })
}

/// Returns the text of a pause frame.
fn pause(named: u8, stop: u8) -> String {
    let quanta = ethernet::quanta(stop);
    let each = (0..PRIORITIES).filter(|priority| named & 1 << priority != 0);
    let each = each.map(|priority| match quanta[priority] {
        0 => format!("resume {priority}"),
        quanta => format!("pause {priority} for {quanta} quanta"),
    });
    format!("PFC {}", each.collect::<Vec<_>>().join(", "))
}
