//! Ethernet of a lab: switches, links and their rates.
//!
//! Interfaces of hosts and storage systems (NICs) are the ends of Ethernet links; they are numbered
//! apart from HBAs and Fibre Channel ports.

use super::units::Picos;
use std::collections::BTreeMap;

/// Number of priorities (IEEE 802.1Q).
pub const PRIORITIES: usize = 8;
/// Largest VLAN ID (IEEE 802.1Q).
pub const MAX_VLAN: u16 = 4094;
/// Maximum number of different VLANs in a lab.
pub const MAX_VLANS: usize = 31;
/// Bytes of a frame beside its payload: addresses and type 14, tag 4, FCS 4.
pub const FRAME_OVERHEAD_BYTES: u16 = 22;

named_variants! {
    /// Ethernet line rate (IEEE 802.3): the rate after line coding. Rates ascend.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum EthernetRate {
        /// 1 Gb/s.
        G1 => "1GbE",
        /// 2.5 Gb/s.
        G2 => "2.5GbE",
        /// 5 Gb/s.
        G5 => "5GbE",
        /// 10 Gb/s.
        G10 => "10GbE",
        /// 25 Gb/s.
        G25 => "25GbE",
        /// 40 Gb/s.
        G40 => "40GbE",
        /// 50 Gb/s.
        G50 => "50GbE",
        /// 100 Gb/s.
        G100 => "100GbE",
        /// 200 Gb/s.
        G200 => "200GbE",
        /// 400 Gb/s.
        G400 => "400GbE",
    }
}

impl EthernetRate {
    /// Time of a byte in picoseconds: a whole number at every rate.
    pub const fn ps_per_byte(self) -> u64 {
        match self {
            EthernetRate::G1 => 8_000,
            EthernetRate::G2 => 3_200,
            EthernetRate::G5 => 1_600,
            EthernetRate::G10 => 800,
            EthernetRate::G25 => 320,
            EthernetRate::G40 => 200,
            EthernetRate::G50 => 160,
            EthernetRate::G100 => 80,
            EthernetRate::G200 => 40,
            EthernetRate::G400 => 20,
        }
    }

    /// Data rate in bytes per second.
    pub const fn bytes_per_s(self) -> u64 {
        1_000_000_000_000 / self.ps_per_byte()
    }

    /// Quanta of 64 bytes within which a paused sender may still begin a frame: the worst case of
    /// the standard (IEEE 802.3, 31B.3.7) at 10, 40, 100 and 400 Gb/s, and that of the next faster
    /// of them at other rates.
    pub const fn reaction_quanta(self) -> u64 {
        match self {
            EthernetRate::G1 | EthernetRate::G2 | EthernetRate::G5 | EthernetRate::G10 => 60,
            EthernetRate::G25 | EthernetRate::G40 => 118,
            EthernetRate::G50 | EthernetRate::G100 => 394,
            EthernetRate::G200 | EthernetRate::G400 => 905,
        }
    }
}

impl std::fmt::Display for EthernetRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Node at the end of an Ethernet link, by index into [`Lab`](crate::san::Lab).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EthernetNode {
    /// Index into `ethernet_switches`.
    Switch(u16),
    /// Index into `hosts`.
    Host(u16),
    /// Index into `storage`.
    Storage(u16),
    /// Fibre Channel switch as an FCoE forwarder (FCF), by index into `switches`.
    Forwarder(u16),
}

/// Ethernet switch of a lab, with memory that its ports share.
#[derive(Clone, PartialEq, Debug)]
pub struct EthernetSwitch {
    /// Name, unique in the lab.
    pub name: String,
    /// Memory for frames, in bytes.
    pub memory_bytes: u64,
    /// Memory is given to frames in cells of this size, in bytes.
    pub cell_bytes: u32,
    /// Part of the memory that belongs to each port and lossless priority, in bytes.
    pub reserve_bytes: u64,
    /// Extra memory of each port and lossless priority for frames that arrive after a pause, in
    /// bytes. `None`: as the link of the port needs, see
    /// [`Lab::headroom_bytes`](crate::san::Lab::headroom_bytes).
    pub headroom_bytes: Option<u64>,
    /// Most that a port and lossless priority may hold of the shared memory, as a share of the free
    /// part of it, in 1/256.
    pub alpha_256: u32,
    /// The same for the queue of another priority at a port.
    pub lossy_alpha_256: u32,
    /// A pause ends when the port is this far below its threshold, in bytes.
    pub resume_bytes: u64,
    /// Lossless priorities (IEEE 802.1Qbb), as a mask.
    pub lossless: u8,
    /// True if the ports pause whole links instead (IEEE 802.3, annex 31B). A port is then one
    /// group of memory with reserve and headroom, whatever the priorities of its frames.
    pub pauses_links: bool,
    /// Shares of the priorities at its ports in percent (IEEE 802.1Qaz). A priority without a share
    /// is strict and comes before those with one. The interfaces at its ports have the same shares,
    /// as after an agreement by DCBX.
    pub shares: [u8; PRIORITIES],
    /// Marks of egress queues; `None`: no marks.
    pub ecn: Option<EcnMarks>,
    /// Largest payload of a frame, in bytes.
    pub mtu: u16,
    /// Time from the arrival of a frame until it may leave.
    pub latency: Picos,
    /// True if a frame may leave before its end has arrived.
    pub cut_through: bool,
    /// True if the lab file does not have it: see
    /// [`Lab::implied_ethernet`](crate::san::Lab::implied_ethernet).
    pub is_implied: bool,
}

impl EthernetSwitch {
    /// Returns the priorities whose frames are paused instead of dropped, as a mask.
    pub fn lossless_priorities(&self) -> u8 {
        if self.pauses_links { u8::MAX } else { self.lossless }
    }

    /// Returns the number of groups with reserve and headroom at each port.
    pub fn lossless_groups(&self) -> u32 {
        if self.pauses_links { 1 } else { self.lossless.count_ones() }
    }
}

/// Marks of egress queues (ECN, RFC 3168), when a frame enters the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnMarks {
    /// Bytes in the queue from which on frames are marked.
    pub from_bytes: u64,
    /// Bytes from which on every frame is marked. Equal to `from_bytes` for a step (RFC 8257).
    pub to_bytes: u64,
    /// Chance just below `to_bytes`, in millionths.
    pub chance_ppm: u32,
    /// Priorities whose queues mark, as a mask.
    pub priorities: u8,
}

/// Ethernet link of a lab. Links between the same two switches form a bundle (IEEE 802.1AX); a hash
/// of the connection chooses one of them.
#[derive(Clone, PartialEq, Debug)]
pub struct EthernetLink {
    /// Name, unique among all links of the lab.
    pub name: String,
    /// First and second end; the direction of a fault refers to this order.
    pub ends: [EthernetEnd; 2],
    /// Rate of both directions.
    pub rate: EthernetRate,
    /// Propagation delay from end to end.
    pub propagation: Picos,
    /// Largest payload of a frame that the interfaces at its ends send and receive, in bytes.
    pub mtu: u16,
    /// Time within which a paused sender may still begin a frame. `None`: the worst case of the
    /// standard, see [`EthernetLink::reaction`].
    pub pause_reaction: Option<Picos>,
    /// VLANs whose frames the ports of switches at its ends accept; empty: all. Frames without a
    /// tag always pass.
    pub vlans: Vec<u16>,
}

/// End of an Ethernet link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EthernetEnd {
    /// Node at this end.
    pub node: EthernetNode,
    /// Port number of the switch, or interface number of the host or storage system.
    pub port: u16,
}

impl EthernetLink {
    /// Time within which a paused sender may still begin a frame.
    pub fn reaction(&self) -> Picos {
        self.pause_reaction.unwrap_or(Picos(self.rate.reaction_quanta() * 64 * self.rate.ps_per_byte()))
    }

    /// Returns whether an end is at a switch.
    pub fn switches(&self) -> impl Iterator<Item = (usize, u16)> {
        self.ends.iter().enumerate().filter_map(|(side, end)| match end.node {
            EthernetNode::Switch(switch) => Some((side, switch)),
            EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
        })
    }

    /// Returns whether the link accepts frames of a VLAN. Frames of no VLAN always pass.
    pub fn accepts(&self, vlan: Option<u16>) -> bool {
        vlan.is_none_or(|vlan| self.vlans.is_empty() || self.vlans.contains(&vlan))
    }

    /// Headroom that a lossless priority needs at either end, in bytes, if frames have a payload of
    /// up to `mtu` bytes: bytes on the line in both directions, those that the sender still sends
    /// within its reaction time, one frame that the pause frame waits for, one that has begun, and
    /// the pause frame itself.
    pub fn headroom_bytes(&self, mtu: u16) -> u64 {
        let ps_per_byte = self.rate.ps_per_byte();
        let on_line = 2 * self.propagation.0 / ps_per_byte;
        let in_reaction = self.reaction().0.div_ceil(ps_per_byte);
        let frame = u64::from(mtu) + u64::from(FRAME_OVERHEAD_BYTES) + 20;
        on_line + in_reaction + 2 * frame + 84
    }
}

/// Numbers of VLANs of a lab, as packets of the simulator carry them: 0 for frames without a tag or
/// with a priority tag only, then the VLANs in ascending order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VlanNumbers(pub BTreeMap<u16, u8>);

impl VlanNumbers {
    /// Number of a VLAN; 0 for `None` and for a VLAN that the lab does not have.
    pub fn number(&self, vlan: Option<u16>) -> u8 {
        vlan.and_then(|vlan| self.0.get(&vlan).copied()).unwrap_or(0)
    }

    /// VLAN with a number.
    pub fn vlan(&self, number: u8) -> Option<u16> {
        self.0.iter().find(|(_, own)| **own == number).map(|(vlan, _)| *vlan)
    }

    /// Mask of the numbers that a port with these VLANs accepts; all of them if `vlans` is empty.
    /// Frames of no VLAN always pass, and no frame has a number that the lab does not use.
    pub fn mask(&self, vlans: &[u16]) -> u32 {
        let others = |(vlan, _): &(&u16, &u8)| !vlans.is_empty() && !vlans.contains(vlan);
        self.0.iter().filter(others).fold(u32::MAX, |mask, (_, number)| mask & !(1 << number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate: EthernetRate, metres: u64) -> EthernetLink {
        let end = |port| EthernetEnd { node: EthernetNode::Switch(0), port };
        EthernetLink {
            name: "a".into(),
            ends: [end(0), end(1)],
            rate,
            propagation: Picos::from_ns(5 * metres),
            mtu: 1500,
            pause_reaction: None,
            vlans: Vec::new(),
        }
    }

    #[test]
    fn every_rate_is_the_number_in_its_name() {
        for rate in EthernetRate::ALL {
            let gigabits: f64 = rate.name().trim_end_matches("GbE").parse().unwrap();
            assert_eq!(rate.bytes_per_s() as f64 * 8.0, gigabits * 1e9, "{rate}");
            assert_eq!(rate.ps_per_byte() * rate.bytes_per_s(), 1_000_000_000_000, "{rate}");
        }
    }

    #[test]
    fn the_headroom_is_that_of_the_standard() {
        // Frames of 2,180 and 9,216 bytes with tag and FCS, as in published tables.
        let headroom = |rate, metres, frame: u16| link(rate, metres).headroom_bytes(frame - FRAME_OVERHEAD_BYTES);
        assert_eq!(headroom(EthernetRate::G10, 10, 2_180), 8_449);
        assert_eq!(headroom(EthernetRate::G10, 100, 2_180), 9_574);
        assert_eq!(headroom(EthernetRate::G40, 100, 9_216), 31_108);
        assert_eq!(headroom(EthernetRate::G100, 300, 9_216), 81_272);
    }
}
