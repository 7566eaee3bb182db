//! The Fibre Channel machines of an instance: [`Fabric`] with its switches, their segments on
//! Ethernet, and stations.

pub mod inject;
pub mod segment;
pub mod station;
pub mod switch;

use super::forward::{reason, vlan_of};
use super::ports::LivePort;
use super::work::{Deadlines, Timer};
use crate::frame::FrameBuf;
use inject::Injector;
use sanloom_fc::fabric::{Decision, DropReason};
use sanloom_fc::fip::Ingress;
use sanloom_wire::FcId;
use sanloom_wire::ether::{ETHER_BYTES, EtherType, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use segment::Segment;
use station::Station;
use switch::{Attachment, LiveSwitch};

/// The next step of a frame in a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Leaves through this port.
    Leave(u16),
    /// Destined for a service of the switch.
    Local,
    /// Dropped for this reason.
    Drop(DropReason),
}

/// D_ID, S_ID and OX_ID of a frame.
pub type Addresses = (FcId, FcId, u16);

/// The way of a received frame, as far as the tables decide it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Through a switch and out of an Ethernet port, both by index. Its Ethernet addresses and tag
    /// are those of the egress.
    Out {
        /// The switch.
        switch: usize,
        /// The egress.
        ethernet: usize,
    },
    /// To the machines, which decide it, or to the counters of dropped frames.
    Machines,
    /// Nowhere, because it was counted as too long.
    Nowhere,
}

/// Switches, segments and stations, each by index. Indices stay valid for the life of the instance.
#[derive(Debug, Default)]
pub struct Fabric {
    /// Switches that run here.
    pub switches: Vec<LiveSwitch>,
    /// Ethernet ports in one VLAN, as used by switches.
    pub segments: Vec<Segment>,
    /// Storage ports on segments without a switch.
    pub stations: Vec<Station>,
    /// Faults that operators inject at ports of switches.
    pub injector: Injector,
}

impl Fabric {
    /// Counts the loss of the peer of an Ethernet port at the ports of switches that use it, unless
    /// an operator has disabled them.
    pub fn count_failure(&mut self, port: &LivePort) {
        for number in &port.segments {
            let segment = &self.segments[*number];
            if !segment.disabled {
                *self.switches[segment.switch].failures.entry(segment.lab_port).or_default() += 1;
            }
        }
        if let Some((switch, number)) = port.tunnel {
            let live = &mut self.switches[switch];
            if !live.holds(number) {
                *live.failures.entry(number).or_default() += 1;
            }
        }
    }

    /// Returns the next step of a frame with these addresses (D_ID, S_ID, OX_ID) from an ingress
    /// port.
    #[inline]
    pub fn decide(&mut self, (switch, ingress): (usize, u16), (d_id, s_id, ox_id): (FcId, FcId, u16)) -> Step {
        let live = &mut self.switches[switch];
        match live.fib.decide(ingress, s_id, d_id, ox_id) {
            Decision::Forward(egress) => {
                live.forwarded += 1;
                match live.port_of(ingress, egress, ox_id) {
                    Some(port) => Step::Leave(port),
                    None => Step::Drop(DropReason::NoRoute),
                }
            }
            Decision::Local => Step::Local,
            Decision::Drop(reason) => Step::Drop(reason),
        }
    }

    /// Returns switch and port at which an FCoE frame of a VLAN enters through one of these
    /// segments, and its addresses.
    ///
    /// # Errors
    /// The reason for which the frame is dropped.
    #[inline]
    pub fn ingress(
        &self,
        segments: &[usize],
        vlan: Option<u16>,
        bytes: &[u8],
    ) -> Result<((usize, u16), Addresses), &'static str> {
        let addresses @ (_, s_id, _) = addresses_in(bytes)?;
        let (to, from) = (mac_at(bytes, 0), mac_at(bytes, 6));
        let mut refused = reason::UNKNOWN_VLAN;
        for number in segments.iter().copied() {
            let segment = &self.segments[number];
            if segment.vlan != vlan {
                continue;
            }
            if segment.disabled {
                refused = reason::DISABLED;
                continue;
            }
            match segment.bindings.ingress(to, from, s_id) {
                Ingress::Port(ingress) => return Ok(((segment.switch, ingress), addresses)),
                other => refused = other.name(),
            }
        }
        Err(refused)
    }

    /// Returns the way of a frame that was received through one of these segments, and prepares it
    /// for its egress. Changes nothing else, so that threads can decide at the same time.
    #[inline]
    pub fn way(&self, segments: &[usize], frame: &mut FrameBuf) -> Way {
        self.egress_of(segments, frame).unwrap_or(Way::Machines)
    }

    #[inline]
    fn egress_of(&self, segments: &[usize], frame: &mut FrameBuf) -> Option<Way> {
        if frame.ether_type() != Some(EtherType::FCOE) {
            return None;
        }
        let ((switch, ingress), (d_id, s_id, ox_id)) = self.ingress(segments, vlan_of(frame), frame.bytes()).ok()?;
        let live = &self.switches[switch];
        let Decision::Forward(egress) = live.fib.decide(ingress, s_id, d_id, ox_id) else { return None };
        let port = live.fixed_port_of(egress, ox_id)?;
        let Attachment::Segment(number) = live.attachment(port) else { return None };
        let segment = &self.segments[number];
        readdress(frame.bytes_mut(), segment.bindings.egress(port, d_id), segment.mac());
        frame.tag = segment.tag();
        Some(Way::Out { switch, ethernet: segment.port })
    }

    /// Index of a switch by name.
    pub fn switch_named(&self, name: &str) -> Option<usize> {
        self.switches.iter().position(|switch| switch.name == name)
    }

    /// Parses a port such as `sw1:0`.
    ///
    /// # Errors
    /// A port that does not exist, described in one sentence.
    pub fn port_named(&self, name: &str) -> Result<(usize, u16), String> {
        let found = name.rsplit_once(':').and_then(|(switch, port)| {
            let switch = self.switch_named(switch)?;
            let there = |port: &u16| usize::from(*port) < self.switches[switch].attachments.len();
            Some((switch, port.parse().ok().filter(there)?))
        });
        found.ok_or_else(|| {
            let example = self.switches.first().map_or("sw1", |switch| &switch.name);
            format!("there is no port `{name}` here; write switch and number, as in {example}:0")
        })
    }

    /// Segments of a switch, by index.
    pub fn segments_of(&self, switch: usize) -> Vec<usize> {
        (0..self.segments.len()).filter(|number| self.segments[*number].switch == switch).collect()
    }

    /// Returns switch and port to which a storage port or a host port of the instance is attached.
    pub fn attached_to(&self, wanted: Attachment) -> Option<(usize, u16)> {
        self.switches.iter().enumerate().find_map(|(switch, live)| {
            let port = live.attachments.iter().position(|attachment| *attachment == wanted)?;
            Some((switch, port as u16))
        })
    }

    /// Starts the timers of all machines.
    pub fn start_timers(&self, deadlines: &mut Deadlines) {
        for (number, switch) in self.switches.iter().enumerate() {
            deadlines.update(Timer::Switch(number), switch.machine.deadline());
        }
        for (number, segment) in self.segments.iter().enumerate() {
            deadlines.update(Timer::Fcf(number), segment.fcf.deadline());
        }
        for (number, station) in self.stations.iter().enumerate() {
            deadlines.update(Timer::Station(number), station.machine.deadline());
        }
    }
}

/// Returns the addresses of an FCoE frame that has both delimiters.
///
/// # Errors
/// The reason for which the frame is dropped.
#[inline]
pub fn addresses_in(bytes: &[u8]) -> Result<Addresses, &'static str> {
    let pdu = bytes.get(ETHER_BYTES..).ok_or(reason::MALFORMED)?;
    let has_delimiters = || Fcoe::parse(pdu).is_ok_and(|pdu| pdu.sof().zip(pdu.eof()).is_some());
    fcoe::addresses(pdu).filter(|_| has_delimiters()).ok_or(reason::MALFORMED)
}

#[inline]
fn mac_at(bytes: &[u8], at: usize) -> MacAddr {
    bytes.get(at..at + 6).and_then(|mac| mac.try_into().ok()).map_or(MacAddr::ZERO, MacAddr)
}
