//! RPSC (FC-LS, report port speed capabilities).

use crate::bytes::{Put, fixed, len32, slice, u16_at};
use crate::els::command;
use crate::error::ParseError;
use crate::id::FcId;

/// Speeds of a port, as bits of [`bits`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortSpeed {
    /// Supported speeds.
    pub capabilities: u16,
    /// Current speed.
    pub operating: u16,
}

/// Bits of a speed.
pub mod bits {
    use crate::codes::code_constants;

    code_constants!(u16 {
        GBPS_1 = 0x8000, "1 Gb/s";
        GBPS_2 = 0x4000, "2 Gb/s";
        GBPS_4 = 0x2000, "4 Gb/s";
        GBPS_10 = 0x1000, "10 Gb/s";
        GBPS_8 = 0x0800, "8 Gb/s";
        GBPS_16 = 0x0400, "16 Gb/s";
        GBPS_32 = 0x0200, "32 Gb/s";
        GBPS_64 = 0x0100, "64 Gb/s";
        UNKNOWN = 0x0002, "unknown";
        NOT_ESTABLISHED = 0x0001, "not established";
    });
}

/// Reads the entries after the command word, whose second half is their count.
pub(super) fn parse(payload: &[u8]) -> Result<Vec<PortSpeed>, ParseError> {
    let count = usize::from(u16_at(fixed::<4>("RPSC accept", payload)?, 2));
    let entries = slice("RPSC entries", payload, 4, 4 * count)?;
    let speed = |b: &[u8]| PortSpeed { capabilities: u16_at(b, 0), operating: u16_at(b, 2) };
    Ok(entries.chunks_exact(4).map(speed).collect())
}

/// Appends the payload, the command word included; at most 65535 entries.
pub(super) fn emit(speeds: &[PortSpeed], out: &mut dyn Put) {
    let speeds = clipped(speeds);
    out.put_word(command::LS_ACC, FcId::new(len32(speeds.len())));
    for speed in speeds {
        out.put_u16(speed.capabilities);
        out.put_u16(speed.operating);
    }
}

fn clipped(speeds: &[PortSpeed]) -> &[PortSpeed] {
    &speeds[..speeds.len().min(u16::MAX.into())]
}
