//! The two checksums of a packet (IBA volume 1, 7.8).

use super::{GRH_BYTES, LRH_BYTES};
use crate::crc::frame_crc;

/// Polynomial of the VCRC, x^16 + x^12 + x^3 + x + 1, with its bits reversed.
const VARIANT: u16 = 0xd008;

/// Returns the invariant checksum, in wire order, of a packet from the LRH on, without checksums.
/// Fields that change on the way count as ones: the lane, traffic class, flow label and hop limit,
/// and the byte of the BTH with the notices of congestion.
pub fn icrc(packet: &[u8], has_grh: bool) -> [u8; 4] {
    let mut masked = packet.to_vec();
    let mut ones = |at: usize, mask: u8| {
        if let Some(byte) = masked.get_mut(at) {
            *byte |= mask;
        }
    };
    ones(0, 0xf0);
    let mut at = LRH_BYTES;
    if has_grh {
        ones(at, 0x0f);
        (1..4).for_each(|byte| ones(at + byte, 0xff));
        ones(at + 7, 0xff);
        at += GRH_BYTES;
    }
    ones(at + 4, 0xff);
    frame_crc(&masked).to_le_bytes()
}

/// Returns the variant checksum, in wire order, of a packet from the LRH to the ICRC.
pub fn vcrc(packet: &[u8]) -> [u8; 2] {
    let step = |crc: u16, byte: &u8| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 != 0 { crc >> 1 ^ VARIANT } else { crc >> 1 })
    };
    (!packet.iter().fold(u16::MAX, step)).to_le_bytes()
}
