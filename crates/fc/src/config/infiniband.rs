//! InfiniBand of a lab: switches, links and their rates, the subnet, and SRP.
//!
//! Interfaces of hosts and storage systems (channel adapters) are the ends of InfiniBand links. An
//! interface has a number apart from those of HBAs, Fibre Channel ports and Ethernet interfaces.

use super::ipoib::{DEFAULT_PARTITION, IpoibOfLab};
use super::lanes::LaneSettings;
use super::units::Picos;
use std::collections::BTreeMap;

/// Bytes of a block, the unit of credit (IBA volume 1, 7.9.4).
pub const BLOCK_BYTES: u64 = 64;
/// Most blocks that a receiver can announce for a lane (IBA volume 1, 7.9.4.4).
pub const MAX_BLOCKS: u16 = 2_048;
/// Maximum number of data lanes.
pub const MAX_DATA_LANES: u8 = 15;
/// Bytes of a middle packet of a message beside its payload: LRH 8, BTH 12, ICRC 4, VCRC 2.
pub const PACKET_OVERHEAD_BYTES: u64 = 26;
/// Start and end symbols of a packet.
const DELIMITER_BYTES: u64 = 2;
/// Blocks of the short packets between full ones in a round trip.
const SMALL_BLOCKS: u64 = 8;
/// Largest LID mask control (IBA volume 1, 4.1.3).
pub const MAX_LMC: u8 = 7;
/// Most ports of a switch.
pub const MAX_INFINIBAND_PORTS: u16 = 254;

named_variants! {
    /// InfiniBand line rate: width and speed, after line coding and error correction.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum InfinibandRate {
        /// One lane of 2.5 Gb/s, 8b/10b.
        Sdr1 => "1xSDR",
        /// Four lanes of 2.5 Gb/s.
        Sdr4 => "4xSDR",
        /// Twelve lanes of 2.5 Gb/s.
        Sdr12 => "12xSDR",
        /// One lane of 5 Gb/s, 8b/10b.
        Ddr1 => "1xDDR",
        /// Four lanes of 5 Gb/s.
        Ddr4 => "4xDDR",
        /// Twelve lanes of 5 Gb/s.
        Ddr12 => "12xDDR",
        /// One lane of 10 Gb/s, 8b/10b.
        Qdr1 => "1xQDR",
        /// Four lanes of 10 Gb/s.
        Qdr4 => "4xQDR",
        /// Twelve lanes of 10 Gb/s.
        Qdr12 => "12xQDR",
        /// One lane of 10.3125 Gb/s, 64b/66b.
        Fdr10x1 => "1xFDR10",
        /// Four lanes of 10.3125 Gb/s.
        Fdr10x4 => "4xFDR10",
        /// Twelve lanes of 10.3125 Gb/s.
        Fdr10x12 => "12xFDR10",
        /// One lane of 14.0625 Gb/s, 64b/66b.
        Fdr1 => "1xFDR",
        /// Four lanes of 14.0625 Gb/s.
        Fdr4 => "4xFDR",
        /// Twelve lanes of 14.0625 Gb/s.
        Fdr12 => "12xFDR",
        /// One lane of 25.78125 Gb/s, 64b/66b.
        Edr1 => "1xEDR",
        /// Four lanes of 25.78125 Gb/s.
        Edr4 => "4xEDR",
        /// Twelve lanes of 25.78125 Gb/s.
        Edr12 => "12xEDR",
        /// One lane of 53.125 Gb/s with forward error correction, which leaves 50 Gb/s.
        Hdr1 => "1xHDR",
        /// Four lanes of 53.125 Gb/s.
        Hdr4 => "4xHDR",
        /// Twelve lanes of 53.125 Gb/s.
        Hdr12 => "12xHDR",
        /// One lane of 106.25 Gb/s with forward error correction, which leaves 100 Gb/s.
        Ndr1 => "1xNDR",
        /// Four lanes of 106.25 Gb/s.
        Ndr4 => "4xNDR",
    }
}

/// Time of a byte on one lane of each speed, in ps as a fraction, in the order of the rates.
const LANE_PS_PER_BYTE: [(u64, u64); 8] =
    [(4_000, 1), (2_000, 1), (1_000, 1), (800, 1), (1_760, 3), (320, 1), (160, 1), (80, 1)];
/// Lanes of each width, in the order of the rates.
const LANES: [u64; 3] = [1, 4, 12];

impl InfinibandRate {
    /// Time of a byte on one lane of the cable, in ps as a fraction.
    pub const fn lane_ps_per_byte(self) -> (u64, u64) {
        LANE_PS_PER_BYTE[self as usize / LANES.len()]
    }

    /// Number of lanes of the cable.
    pub const fn width(self) -> u64 {
        LANES[self as usize % LANES.len()]
    }

    /// Time of a byte, in ps as a reduced fraction.
    pub const fn ps_per_byte(self) -> (u64, u64) {
        let (numerator, denominator) = self.lane_ps_per_byte();
        let denominator = denominator * self.width();
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (numerator / a, denominator / a)
    }

    /// Data rate in bytes per second, rounded down.
    pub const fn bytes_per_s(self) -> u64 {
        let (numerator, denominator) = self.ps_per_byte();
        1_000_000_000_000 * denominator / numerator
    }

    /// Time of 65,536 symbols of a lane, within which a receiver repeats its credit (IBA volume 1,
    /// 7.9.4).
    pub const fn refresh(self) -> Picos {
        let (numerator, denominator) = self.lane_ps_per_byte();
        Picos((65_536 * numerator).div_ceil(denominator))
    }

    /// Blocks that the line carries in one round trip of the propagation delay, rounded up.
    pub const fn blocks_in_flight(self, propagation: Picos) -> u64 {
        let (numerator, denominator) = self.ps_per_byte();
        (2 * propagation.0 as u128 * denominator as u128).div_ceil(numerator as u128 * BLOCK_BYTES as u128) as u64
    }
}

impl std::fmt::Display for InfinibandRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// InfiniBand of a whole lab.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Infiniband {
    /// Switches; links refer to them by index.
    pub switches: Vec<InfinibandSwitch>,
    /// Links of switches, hosts and storage. All of them form one subnet.
    pub links: Vec<InfinibandLink>,
    /// Settings of the subnet and of its manager.
    pub subnet: Subnet,
    /// SRP targets, by index of the storage system.
    pub targets: BTreeMap<u16, SrpTarget>,
    /// IP over InfiniBand.
    pub ipoib: IpoibOfLab,
}

/// Node at the end of an InfiniBand link, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InfinibandNode {
    /// Index into [`Infiniband::switches`].
    Switch(u16),
    /// Index into `hosts` of [`Lab`](crate::san::Lab).
    Host(u16),
    /// Index into `storage` of [`Lab`](crate::san::Lab).
    Storage(u16),
}

/// End of an InfiniBand link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InfinibandEnd {
    /// Node at this end.
    pub node: InfinibandNode,
    /// Port number of the switch, or interface number of the host or storage system, from 0 on.
    pub port: u16,
}

/// InfiniBand switch of a lab.
#[derive(Clone, PartialEq, Debug)]
pub struct InfinibandSwitch {
    /// Name, unique in the lab.
    pub name: String,
    /// Blocks of 64 bytes that each port holds for each lane.
    pub blocks: u16,
    /// Time from the arrival of a packet until it may leave.
    pub latency: Picos,
    /// True if a packet may leave before its end has arrived.
    pub cut_through: bool,
    /// Lifetime of a packet at the head of its queue, as the exponent n of 4.096 us × 2^n, towards
    /// switches and towards interfaces; from 20 on it never ends (IBA volume 1, 14.2.5.6).
    pub lifetime: [u8; 2],
    /// Lanes of its ports, where they differ from those of the subnet.
    pub lanes: LaneSettings,
}

/// InfiniBand link of a lab.
#[derive(Clone, PartialEq, Debug)]
pub struct InfinibandLink {
    /// Name, unique among all links of the lab.
    pub name: String,
    /// First and second end.
    pub ends: [InfinibandEnd; 2],
    /// Rate of both directions.
    pub rate: InfinibandRate,
    /// Propagation delay from end to end.
    pub propagation: Picos,
    /// Blocks that both ends hold for each lane; `None`: those of their nodes.
    pub blocks: Option<u16>,
}

named_variants! {
    /// Routing engine of the subnet manager.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub enum SubnetRouting {
        /// Fewest hops; among equals the port with the fewest routes.
        #[default]
        MinHop => "minhop",
        /// Fewest hops among the paths that never turn up after a step down.
        UpDown => "updn",
        /// Balanced patterns in a pure fat tree.
        FatTree => "ftree",
    }
}

/// Settings of the subnet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// Routing engine.
    pub routing: SubnetRouting,
    /// Root switches of `updn` and `ftree`; empty: the engine finds them.
    pub roots: Vec<u16>,
    /// LID mask control: each interface has 2 to the power of this number of LIDs, at most
    /// [`MAX_LMC`].
    pub lmc: u8,
    /// Time from a change of a link to new forwarding tables.
    pub sweep: Picos,
    /// Largest payload of a packet, in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Data lanes of each link, from 1 to [`MAX_DATA_LANES`].
    pub lanes: u8,
    /// Arbitration of the lanes, and the lane of each service level.
    pub lane_settings: LaneSettings,
    /// Acknowledgement time-out of reliable connections, as the exponent n of 4.096 us × 2^n.
    pub ack_timeout: u8,
    /// Repetitions without progress before a connection fails: at most 7.
    pub retries: u8,
}

impl Default for Subnet {
    fn default() -> Subnet {
        Subnet {
            routing: SubnetRouting::default(),
            roots: Vec::new(),
            lmc: 0,
            sweep: Picos::from_ms(10),
            mtu: 2_048,
            lanes: 1,
            lane_settings: LaneSettings::default(),
            ack_timeout: 14,
            retries: 7,
        }
    }
}

named_variants! {
    /// Membership of an interface in a partition: bit 15 of its P_Key (IBA volume 1, 10.9.3).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub enum Membership {
        /// Communicates with all members.
        #[default]
        Full => "full",
        /// Communicates with full members only.
        Limited => "limited",
    }
}

/// SRP initiator of a host at its InfiniBand interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrpHost {
    /// Maximum number of commands in flight at a channel.
    pub queue_depth: u16,
    /// Service level of the packets of both directions.
    pub level: u8,
    /// Partition of the channels: the low 15 bits of the P_Key.
    pub partition: u16,
    /// Membership of the interfaces in it.
    pub membership: Membership,
    /// Blocks of 64 bytes that each interface holds for each lane.
    pub blocks: u16,
}

impl Default for SrpHost {
    /// The initiator of Linux has a queue of 64 requests, 62 of them for commands.
    fn default() -> SrpHost {
        SrpHost { queue_depth: 62, level: 0, partition: DEFAULT_PARTITION, membership: Membership::Full, blocks: 256 }
    }
}

/// SRP target of a storage system at its InfiniBand interfaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SrpTarget {
    /// Requests that an initiator may have outstanding at a channel (request limit).
    pub request_limit: u16,
    /// Partitions of the interfaces, in ascending order.
    pub partitions: Vec<u16>,
    /// Membership of the interfaces in them.
    pub membership: Membership,
    /// Blocks of 64 bytes that each interface holds for each lane.
    pub blocks: u16,
}

impl Default for SrpTarget {
    fn default() -> SrpTarget {
        SrpTarget { request_limit: 128, partitions: vec![DEFAULT_PARTITION], membership: Membership::Full, blocks: 256 }
    }
}

impl Infiniband {
    /// Share of the time, in percent, for which the blocks of one end keep the line busy with
    /// packets of the MTU.
    pub fn busy_percent(&self, link: &InfinibandLink, side: usize, blocks: u16) -> u64 {
        link.busy_percent(self.subnet.mtu, self.hold(link, side), blocks)
    }

    /// Blocks that one end of a link needs to keep the line busy with packets of the MTU. A switch
    /// holds a packet until its last byte has left.
    pub fn blocks_needed(&self, link: &InfinibandLink, side: usize) -> u64 {
        link.blocks_needed(self.subnet.mtu, self.hold(link, side))
    }

    /// Time for which one end of a link holds a packet that has arrived.
    pub fn hold(&self, link: &InfinibandLink, side: usize) -> PacketHold {
        let InfinibandNode::Switch(switch) = link.ends[side].node else { return PacketHold::default() };
        let switch = self.switches.get(usize::from(switch));
        switch.map_or(PacketHold::default(), |own| PacketHold { latency: own.latency, whole: !own.cut_through })
    }
}

/// Time for which the end of a link holds a packet after its last byte has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketHold {
    /// Latency of a switch.
    pub latency: Picos,
    /// True if a switch begins to forward a packet only when it has arrived whole.
    pub whole: bool,
}

impl InfinibandLink {
    /// Switches at the ends, each with the number of its end.
    pub fn switches(&self) -> impl Iterator<Item = (usize, u16)> {
        self.ends.iter().enumerate().filter_map(|(side, end)| match end.node {
            InfinibandNode::Switch(switch) => Some((side, switch)),
            InfinibandNode::Host(_) | InfinibandNode::Storage(_) => None,
        })
    }

    /// Blocks that one end needs so that packets of this payload never wait for credit: those of
    /// the packets that the line carries in a round trip of the cable and in the time for which the
    /// end holds a packet after its arrival, and one packet more, because credit returns when a
    /// packet has left. A packet occupies whole blocks. Some more are for acknowledgements and
    /// responses between them.
    pub fn blocks_needed(&self, mtu: u16, held: PacketHold) -> u64 {
        let cycle = self.cycle(mtu, held);
        let packets = cycle.loop_units.div_ceil(cycle.packet_units) as u64;
        (packets + 1) * cycle.packet_blocks + SMALL_BLOCKS
    }

    /// Share of the time, in percent, for which one lane keeps the line busy if one end has these
    /// blocks: each whole packet that has a place is sent once in a round trip and its own time.
    pub fn busy_percent(&self, mtu: u16, held: PacketHold, blocks: u16) -> u64 {
        let cycle = self.cycle(mtu, held);
        let packets = u64::from(blocks) / cycle.packet_blocks;
        let busy = u128::from(packets) * cycle.packet_units;
        (100 * busy / (cycle.packet_units + cycle.loop_units)).min(100) as u64
    }

    fn cycle(&self, mtu: u16, held: PacketHold) -> Cycle {
        let bytes = mtu as u64 + PACKET_OVERHEAD_BYTES;
        let (numerator, denominator) = self.rate.ps_per_byte();
        let on_line = (bytes + DELIMITER_BYTES) as u128 * numerator as u128;
        let stored = if held.whole { on_line } else { 0 };
        let loop_ps = 2 * u128::from(self.propagation.0) + u128::from(held.latency.0);
        Cycle {
            packet_units: on_line,
            loop_units: loop_ps * denominator as u128 + stored,
            packet_blocks: bytes.div_ceil(BLOCK_BYTES),
        }
    }
}

/// Times after which the credit of a packet returns, in fractions of a picosecond that the rate of
/// the line defines.
struct Cycle {
    /// Time of one packet on the line.
    packet_units: u128,
    /// Round trip of the cable, and the time for which the end holds a packet after its arrival.
    loop_units: u128,
    /// Blocks of one packet.
    packet_blocks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_that_of_its_lanes() {
        let megabytes = |rate: InfinibandRate| rate.bytes_per_s() as f64 / 1e6;
        let table = [
            ("SDR", 250.0),
            ("DDR", 500.0),
            ("QDR", 1_000.0),
            ("FDR10", 1_250.0),
            ("FDR", 1_704.545),
            ("EDR", 3_125.0),
            ("HDR", 6_250.0),
            ("NDR", 12_500.0),
        ];
        for rate in InfinibandRate::ALL {
            let (width, speed) = rate.name().split_once('x').unwrap();
            let (_, lane) = table.iter().find(|(name, _)| *name == speed).unwrap();
            let wanted = lane * width.parse::<f64>().unwrap();
            assert!((megabytes(rate) - wanted).abs() < 1e-4 * wanted, "{rate}: {} MB/s", megabytes(rate));
        }
    }

    #[test]
    fn a_cable_holds_the_blocks_of_published_tables() {
        let metres = |metres: u64| Picos::from_ns(5 * metres);
        assert_eq!(InfinibandRate::Sdr4.blocks_in_flight(metres(100)), 16);
        assert_eq!(InfinibandRate::Qdr4.blocks_in_flight(metres(100)), 63);
        assert_eq!(InfinibandRate::Edr4.blocks_in_flight(metres(100)), 196);
        assert_eq!(InfinibandRate::Ndr4.blocks_in_flight(metres(100)), 782);
    }

    #[test]
    fn a_link_needs_the_blocks_of_whole_packets() {
        let end = |port| InfinibandEnd { node: InfinibandNode::Switch(0), port };
        let link = |metres: u64| InfinibandLink {
            name: "a".into(),
            ends: [end(0), end(1)],
            rate: InfinibandRate::Qdr4,
            propagation: Picos::from_ns(5 * metres),
            blocks: None,
        };
        // A packet has 2,076 bytes on the line, 519 ns, and 33 blocks: 39 in a round trip of 20 us.
        let at_interface = PacketHold::default();
        assert_eq!(link(2_000).blocks_needed(2_048, at_interface), 40 * 33 + 8);
        assert_eq!(link(10).blocks_needed(2_048, at_interface), 2 * 33 + 8);
        // 100 ns of the cable and 500 ns are two packets; a switch that stores them needs one more.
        let at_switch = |whole| PacketHold { latency: Picos::from_ns(500), whole };
        assert_eq!(link(10).blocks_needed(2_048, at_switch(false)), 3 * 33 + 8);
        assert_eq!(link(10).blocks_needed(2_048, at_switch(true)), 4 * 33 + 8);
    }
}
