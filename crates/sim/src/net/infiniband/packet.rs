//! The reference of a packet that the plane moves.

use sanloom_transport::infiniband::arbitration::{Lane, MANAGEMENT};
use sanloom_transport::infiniband::packet::{DELIMITERS, blocks};

/// A packet on InfiniBand, without its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// LID that the packet is for.
    pub to: u16,
    /// LID that has sent the packet.
    pub from: u16,
    /// Number of the destination queue pair: 24 bits. Above them the service level and the lane.
    pair: u32,
    /// For the owner of the packet: PSN and operation.
    pub position: u32,
    /// For the owner of the packet: length of a READ, or the meaning of an acknowledgement.
    pub argument: u32,
    /// Length from the LRH to the VCRC.
    pub bytes: u16,
    flags: u8,
}

const _: () = assert!(size_of::<Packet>() == 20);

const CORRUPT: u8 = 1;
const MANAGED: u8 = 2;

impl Packet {
    /// Returns a packet for a queue pair, of which the low 24 bits count, at service level 0.
    pub fn new(from: u16, to: u16, pair: u32, position: u32, bytes: u16) -> Packet {
        Packet { to, from, pair: pair & 0xff_ffff, position, argument: 0, bytes, flags: 0 }
    }

    /// Sets the low 24 bits of the position.
    pub fn named(mut self, name: u32) -> Packet {
        self.position = (self.position & 0xff00_0000) | (name & 0xff_ffff);
        self
    }

    /// Sets the service level, from 0 to 15.
    pub fn with_level(mut self, level: u8) -> Packet {
        self.pair = (self.pair & 0xf0ff_ffff) | u32::from(level & 15) << 24;
        self
    }

    /// Moves the packet to the lane of management, which has no credit.
    pub fn of_management(mut self) -> Packet {
        self.flags |= MANAGED;
        self
    }

    /// Returns the number of the destination queue pair.
    #[inline]
    pub fn pair(&self) -> u32 {
        self.pair & 0xff_ffff
    }

    /// Returns the service level.
    #[inline]
    pub fn level(&self) -> u8 {
        (self.pair >> 24) as u8 & 15
    }

    /// Returns the lane on the line that the packet is on or has left last.
    #[inline]
    pub fn lane(&self) -> Lane {
        (self.pair >> 28) as Lane
    }

    pub(super) fn set_lane(&mut self, lane: Lane) {
        self.pair = (self.pair & 0x0fff_ffff) | u32::from(lane) << 28;
    }

    /// Returns whether the packet uses the lane of management.
    #[inline]
    pub fn is_management(&self) -> bool {
        self.flags & MANAGED != 0
    }

    /// Returns whether a CRC of the packet is bad.
    #[inline]
    pub fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }

    pub(super) fn corrupt(&mut self) {
        self.flags |= CORRUPT;
    }

    /// Returns the bytes on the line, with the start and end symbols.
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.bytes) + u64::from(DELIMITERS)
    }

    /// Returns the credit blocks that the packet occupies.
    #[inline]
    pub fn blocks(&self) -> u16 {
        blocks(self.bytes.into()) as u16
    }
}

/// Returns whether packets of a lane need credit.
#[inline]
pub(super) fn has_credit(lane: Lane) -> bool {
    lane < MANAGEMENT
}
