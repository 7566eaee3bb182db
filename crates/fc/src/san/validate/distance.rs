//! Windows and buffers of TCP over a distance.

use crate::config::{EthernetRate, InfinibandRate, Picos};
use std::fmt;

/// Rate of a line of Ethernet or InfiniBand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    Ethernet(EthernetRate),
    Infiniband(InfinibandRate),
}

impl Line {
    /// Time of a byte, in ps as a fraction.
    pub fn ps_per_byte(self) -> (u64, u64) {
        match self {
            Line::Ethernet(rate) => (rate.ps_per_byte(), 1),
            Line::Infiniband(rate) => rate.ps_per_byte(),
        }
    }

    /// The slower one of two lines.
    pub fn slower(self, other: Line) -> Line {
        let ((ps, of), (other_ps, of_other)) = (self.ps_per_byte(), other.ps_per_byte());
        if other_ps * of > ps * of_other { other } else { self }
    }

    /// Time of `bytes` bytes.
    pub fn time_of(self, bytes: u64) -> u64 {
        let (ps, of_bytes) = self.ps_per_byte();
        bytes * ps / of_bytes
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Ethernet(rate) => rate.fmt(f),
            Line::Infiniband(rate) => rate.fmt(f),
        }
    }
}

/// Path of a TCP connection.
pub(super) struct Distance {
    /// Its slowest line.
    pub rate: Line,
    /// Round-trip time.
    pub round_trip: Picos,
}

impl Distance {
    /// Path over one part and then over another one.
    pub fn and(self, next: Distance) -> Distance {
        Distance { rate: self.rate.slower(next.rate), round_trip: Picos(self.round_trip.0 + next.round_trip.0) }
    }

    /// Bytes that the path holds in a round trip, and so the window that keeps it full.
    pub fn bytes(&self) -> u64 {
        let (ps, of_bytes) = self.rate.ps_per_byte();
        self.round_trip.0 * of_bytes / ps
    }

    /// Bytes of the send buffer that keeps the path full. TCP asks its application for more when a
    /// third of the buffer is free, so only two thirds of it are on the way at any time.
    pub fn buffer_bytes(&self) -> u64 {
        self.bytes().saturating_mul(3).div_ceil(2)
    }

    /// Rate at which a window fills the path, in MB/s.
    pub fn rate_of_window(&self, bytes: u64) -> f64 {
        bytes as f64 / self.round_trip.as_secs_f64() / 1e6
    }

    /// Rate at which a send buffer that is too small fills the path, in MB/s. Each third of it
    /// leaves at the rate of the line and is free when the acknowledgement of its last byte
    /// arrives.
    pub fn rate_of_buffer(&self, bytes: u64) -> f64 {
        let (ps, of_bytes) = self.rate.ps_per_byte();
        let third_s = bytes as f64 / 3.0 * ps as f64 / of_bytes as f64 / 1e12;
        bytes as f64 / (self.round_trip.as_secs_f64() + third_s) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_needs_its_bytes_as_window_and_half_more_as_buffer() {
        let path = Distance { rate: Line::Ethernet(EthernetRate::G1), round_trip: Picos::from_us(50_000) };
        assert_eq!((path.bytes(), path.buffer_bytes()), (6_250_000, 9_375_000));
        assert!((path.rate_of_window(6_250_000) - 125.0).abs() < 1e-9);
        assert!((path.rate_of_buffer(9_375_000) - 125.0).abs() < 1e-9);
        assert!((path.rate_of_buffer(6_250_000) - 93.75).abs() < 1e-9, "three quarters");
    }
}
