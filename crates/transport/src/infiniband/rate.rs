//! Rates of links and the time of packets on them, without rounding.

use super::packet::Mtu;

/// Signalling rate of a lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Speed {
    /// 2.5 Gb/s, 8b/10b.
    Sdr,
    /// 5 Gb/s, 8b/10b.
    Ddr,
    /// 10 Gb/s, 8b/10b.
    Qdr,
    /// 10.3125 Gb/s, 64b/66b.
    Fdr10,
    /// 14.0625 Gb/s, 64b/66b.
    Fdr,
    /// 25.78125 Gb/s, 64b/66b.
    Edr,
    /// 53.125 Gb/s with forward error correction, which leaves 50 Gb/s of data.
    Hdr,
    /// 106.25 Gb/s with forward error correction, which leaves 100 Gb/s of data.
    Ndr,
}

/// Number of lanes of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// One lane.
    X1,
    /// Four lanes.
    X4,
    /// Twelve lanes.
    X12,
}

/// Exact time: picoseconds as a reduced fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Picoseconds {
    /// Numerator in ps.
    pub numerator: u128,
    /// Denominator, not zero.
    pub denominator: u128,
}

/// Rate of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate {
    /// Speed of each lane.
    pub speed: Speed,
    /// Number of lanes.
    pub width: Width,
}

impl Speed {
    /// Data rate of a lane in bits per second as a fraction, after line coding and error correction
    /// (IBA volume 2; FDR: 14.0625 Gb/s times 64/66).
    const fn bits_per_second(self) -> (u128, u128) {
        match self {
            Speed::Sdr => (2_000_000_000, 1),
            Speed::Ddr => (4_000_000_000, 1),
            Speed::Qdr => (8_000_000_000, 1),
            Speed::Fdr10 => (10_000_000_000, 1),
            Speed::Fdr => (14_062_500_000 * 64, 66),
            Speed::Edr => (25_000_000_000, 1),
            Speed::Hdr => (50_000_000_000, 1),
            Speed::Ndr => (100_000_000_000, 1),
        }
    }
}

impl Width {
    /// Number of lanes.
    pub const fn lanes(self) -> u8 {
        match self {
            Width::X1 => 1,
            Width::X4 => 4,
            Width::X12 => 12,
        }
    }
}

impl Picoseconds {
    const fn reduced(numerator: u128, denominator: u128) -> Picoseconds {
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = if a == 0 { 1 } else { a };
        Picoseconds { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// Whole picoseconds, rounded up.
    pub const fn ceil(self) -> u128 {
        self.numerator.div_ceil(self.denominator)
    }
}

impl Rate {
    /// Data rate in bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        let (bits, per) = self.speed.bits_per_second();
        (bits * self.width.lanes() as u128 / (8 * per)) as u64
    }

    /// Time of a number of bytes on the line.
    pub const fn time(self, bytes: u64) -> Picoseconds {
        let (bits, per) = self.speed.bits_per_second();
        Picoseconds::reduced(bytes as u128 * 8 * per * 1_000_000_000_000, bits * self.width.lanes() as u128)
    }

    /// Blocks of 64 bytes that a cable needs so that packets of one MTU never wait for credit.
    ///
    /// The credit of a packet returns after the propagation both ways, at 5 ns per metre. Data that
    /// the line carries in that time, plus one packet of `mtu` and its headers, must fit.
    pub const fn blocks_for(self, metres: u64, mtu: Mtu) -> u64 {
        self.blocks_in_flight(metres) + mtu.blocks()
    }

    /// Blocks of 64 bytes that the line carries in one round trip of a cable, at 5 ns per metre.
    pub const fn blocks_in_flight(self, metres: u64) -> u64 {
        let (bits, per) = self.speed.bits_per_second();
        let round_trip_ns = metres as u128 * 10;
        let divisor = 8 * per * 1_000_000_000 * 64;
        (bits * self.width.lanes() as u128 * round_trip_ns).div_ceil(divisor) as u64
    }
}
