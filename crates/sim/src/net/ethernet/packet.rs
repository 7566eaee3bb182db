//! The reference of a packet that the plane moves.

/// Preamble, start delimiter and the smallest gap between two frames, in bytes (IEEE 802.3).
pub const PREAMBLE_BYTES: u64 = 8;
/// Smallest gap between two frames, in bytes.
pub const GAP_BYTES: u64 = 12;
/// Shortest frame, from the destination address to the FCS, in bytes.
pub const SHORTEST_BYTES: u16 = 64;
/// Longest frame of an interface: a payload of 9,216 bytes with a tag.
pub(super) const LONGEST_BYTES: u16 = 9_238;
/// Number of priorities (IEEE 802.1Q).
pub const PRIORITIES: usize = 8;
/// Numbers of VLANs in packets.
pub(super) const VLANS: usize = 32;

/// A frame on Ethernet, without its contents. The owner of the packet finds them by `flow` and
/// `position`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Interface that the frame is for.
    pub to: u16,
    /// Interface that has sent the frame.
    pub from: u16,
    /// Number of the connection, in one direction. Bundles and paths are chosen by its hash.
    pub flow: u32,
    /// For the owner of the packet. In a pause frame, the named priorities and those to stop.
    pub position: u32,
    /// Length from the destination address to the FCS.
    pub bytes: u16,
    /// Priority in the lower 3 bits, number of the VLAN in the upper 5 bits.
    priority_vlan: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Packet>() == 16);

const PAUSE: u8 = 1;
const CORRUPT: u8 = 2;
const ECN_CAPABLE: u8 = 4;
const CONGESTION: u8 = 8;
const FCOE: u8 = 16;
const WHOLE_LINK: u8 = 32;
const FIP: u8 = 64;
const LLDP: u8 = 128;

impl Packet {
    /// Returns a frame. Shorter lengths than [`SHORTEST_BYTES`] are padded.
    pub fn new(from: u16, to: u16, flow: u32, position: u32, bytes: u16) -> Packet {
        let bytes = bytes.max(SHORTEST_BYTES);
        Packet { to, from, flow, position, bytes, priority_vlan: 0, flags: 0 }
    }

    /// Sets the priority, from 0 to 7.
    pub fn with_priority(mut self, priority: u8) -> Packet {
        self.priority_vlan = (self.priority_vlan & !7) | (priority & 7);
        self
    }

    /// Sets the number of the VLAN in the lab, from 0 to 31.
    pub fn with_vlan(mut self, vlan: u8) -> Packet {
        self.priority_vlan = (self.priority_vlan & 7) | (vlan << 3);
        self
    }

    /// Marks the frame as one of a transport that understands ECN (ECT, RFC 3168 section 5).
    pub fn with_ecn(mut self) -> Packet {
        self.flags |= ECN_CAPABLE;
        self
    }

    /// Marks the frame as one of FCoE.
    pub fn with_fcoe(mut self) -> Packet {
        self.flags |= FCOE;
        self
    }

    /// Returns whether this is a frame of FCoE.
    #[inline]
    pub fn is_fcoe(&self) -> bool {
        self.flags & FCOE != 0
    }

    /// Marks the frame as one of the discovery and keep-alives of FIP.
    pub fn with_fip(mut self) -> Packet {
        self.flags |= FIP;
        self
    }

    /// Returns whether this is a frame of [`Packet::with_fip`].
    #[inline]
    pub fn is_fip(&self) -> bool {
        self.flags & FIP != 0
    }

    /// Marks the frame as one of LLDP, which is for the other end of the line. Its flow is the
    /// number of the line.
    pub fn with_lldp(mut self) -> Packet {
        self.flags |= LLDP;
        self
    }

    /// Returns whether this is a frame of LLDP.
    #[inline]
    pub fn is_lldp(&self) -> bool {
        self.flags & LLDP != 0
    }

    /// Returns a pause frame (IEEE 802.1Qbb): the sender of the line stops the priorities in `stop`
    /// and resumes the other ones of `named`.
    pub(super) fn pause(named: u8, stop: u8) -> Packet {
        let position = u32::from(named) << 8 | u32::from(stop & named);
        Packet { bytes: SHORTEST_BYTES, position, flags: PAUSE, ..Packet::default() }
    }

    /// Returns a pause frame of the whole link (IEEE 802.3, annex 31B): the sender of the line
    /// stops or resumes.
    pub(super) fn link_pause(stops: bool) -> Packet {
        let packet = Packet::pause(u8::MAX, if stops { u8::MAX } else { 0 });
        Packet { flags: packet.flags | WHOLE_LINK, ..packet }
    }

    /// Returns whether a pause frame is one of the whole link.
    pub fn pauses_link(&self) -> bool {
        self.flags & WHOLE_LINK != 0
    }

    /// Returns the priorities that a pause frame names and those that it stops; `None` for other
    /// frames.
    pub fn paused(&self) -> Option<(u8, u8)> {
        (self.flags & PAUSE != 0).then_some(((self.position >> 8) as u8, self.position as u8))
    }

    /// Returns the priority.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.priority_vlan & 7
    }

    /// Returns the number of the VLAN in the lab.
    #[inline]
    pub fn vlan(&self) -> u8 {
        self.priority_vlan >> 3
    }

    /// Returns whether the frame has a bad FCS.
    pub fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }

    pub(super) fn corrupt(&mut self) {
        self.flags |= CORRUPT;
    }

    /// Returns whether the transport understands ECN.
    pub fn is_ecn_capable(&self) -> bool {
        self.flags & ECN_CAPABLE != 0
    }

    /// Returns whether a switch has reported congestion (CE, RFC 3168 section 5).
    pub fn has_congestion(&self) -> bool {
        self.flags & CONGESTION != 0
    }

    /// Marks the frame with CE.
    pub fn with_congestion(mut self) -> Packet {
        self.flags |= CONGESTION;
        self
    }

    /// Returns the bytes on the line, without the gap after the frame.
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.bytes) + PREAMBLE_BYTES
    }
}
