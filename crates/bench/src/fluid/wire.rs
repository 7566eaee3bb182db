//! Bytes of requests on the line, and the capacities of lines, from the standards alone.
//!
//! Nothing here calls the simulator. Sources:
//!
//! - FC-FS-5, frame format: SOF 4, header 24, CRC 4 and EOF 4 bytes; a data field of at most 2112
//!   bytes; at least six primitive signals of four bytes after each frame.
//! - FCP-4: FCP_CMND IU with 32 bytes (16 bytes of CDB, no additional CDB), FCP_XFER_RDY IU with
//!   12, FCP_RSP IU with 24 bytes (no sense data).
//! - FC-PI: signalling rates. 8b/10b carries 8 bits in 10; 64b/66b carries 64 in 66; 256b/257b with
//!   the FEC of FC-FS-4 carries the data rates that FC-PI-6 and FC-PI-7 list.

use sanloom_fc::config::LineRate;

/// Start and end of a frame, header and CRC.
const ENVELOPE: u64 = 4 + 24 + 4 + 4;
/// The shortest distance between frames.
pub(super) const GAP: u64 = 6 * 4;
const FCP_CMND: u64 = 32;
const FCP_XFER_RDY: u64 = 12;
const FCP_RSP: u64 = 24;
/// Largest data field of a frame.
const LARGEST_FIELD: u32 = 2112;
/// Bytes of the frame with FCP_XFER_RDY, with the gap after it.
pub(super) const READY_FRAME: f64 = (FCP_XFER_RDY + ENVELOPE + GAP) as f64;

/// Frames, and their bytes with the gap after each, in one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    pub frames: f64,
    pub bytes: f64,
}

impl Traffic {
    fn of(frames: u64, payload: u64) -> Traffic {
        Traffic { frames: frames as f64, bytes: (payload + frames * (ENVELOPE + GAP)) as f64 }
    }

    fn and(self, other: Traffic) -> Traffic {
        Traffic { frames: self.frames + other.frames, bytes: self.bytes + other.bytes }
    }
}

/// Traffic of one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// From the host to the storage system.
    pub out: Traffic,
    /// From the storage system to the host.
    pub back: Traffic,
    /// Data frames.
    pub data_frames: f64,
}

impl Request {
    /// Returns the traffic of a read or a write of `bytes`, with data fields of `field` bytes and
    /// bursts of `burst` bytes.
    pub fn new(write: bool, bytes: u32, field: u16, burst: u32) -> Request {
        let (bytes, field) = (u64::from(bytes), u64::from(field));
        let bursts = bytes.div_ceil(u64::from(burst));
        let last = bytes - (bursts - 1) * u64::from(burst);
        let frames = (bursts - 1) * u64::from(burst).div_ceil(field) + last.div_ceil(field);
        let read_frames = bytes.div_ceil(field);
        let (command, response) = (Traffic::of(1, FCP_CMND), Traffic::of(1, FCP_RSP));
        if write {
            let ready = Traffic::of(bursts, bursts * FCP_XFER_RDY);
            let data = Traffic::of(frames, bytes);
            Request { out: command.and(data), back: ready.and(response), data_frames: frames as f64 }
        } else {
            let data = Traffic::of(read_frames, bytes);
            Request { out: command, back: data.and(response), data_frames: read_frames as f64 }
        }
    }
}

/// Returns the bytes of the longest frame of a request of `bytes`, with the gap after it.
pub(super) fn longest_frame(bytes: u32) -> f64 {
    f64::from(bytes.min(LARGEST_FIELD)) + (ENVELOPE + GAP) as f64
}

/// Returns the bytes per second of a line: 10^6 times the throughput that FC-PI derives from the
/// signalling rate and the coding.
pub fn capacity(rate: LineRate) -> f64 {
    match rate {
        LineRate::Fc1 => 1.0625e9 / 10.0,
        LineRate::Fc2 => 2.125e9 / 10.0,
        LineRate::Fc4 => 4.25e9 / 10.0,
        LineRate::Fc8 => 8.5e9 / 10.0,
        LineRate::Fc10 => 10.51875e9 * 64.0 / 66.0 / 8.0,
        LineRate::Fc16 => 14.025e9 * 64.0 / 66.0 / 8.0,
        // The rates after transcoding and FEC are twice those of the generation before.
        LineRate::Fc32 => 3.4e9,
        LineRate::Fc64 => 6.8e9,
        LineRate::Fc128 => 13.2e9,
        LineRate::Fc128Parallel => 13.6e9,
        LineRate::Fc256Parallel => 27.2e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_two_kibibytes_needs_2192_bytes_of_the_line() {
        let read = Request::new(false, 2048, 2048, 1 << 18);
        assert_eq!(read.back, Traffic { frames: 2.0, bytes: 2048.0 + 24.0 + 2.0 * 60.0 });
        assert_eq!(read.out, Traffic { frames: 1.0, bytes: 92.0 });
    }

    #[test]
    fn a_write_asks_for_each_burst() {
        let write = Request::new(true, 8192, 2048, 4096);
        assert_eq!(write.back, Traffic { frames: 3.0, bytes: 24.0 + 24.0 + 3.0 * 60.0 });
        assert_eq!(write.out, Traffic { frames: 5.0, bytes: 32.0 + 8192.0 + 5.0 * 60.0 });
    }

    #[test]
    fn a_16gfc_line_carries_1700_million_bytes() {
        assert_eq!(capacity(LineRate::Fc16).round(), 1_700_000_000.0);
        assert_eq!(capacity(LineRate::Fc10).round(), 1_275_000_000.0);
    }
}
