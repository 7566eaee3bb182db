//! Units of measurement: [`Picos`], [`LineRate`], [`Rate`].

use std::fmt;

/// Length of simulated time in picoseconds; 2^64 ps are 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Picos(pub u64);

impl Picos {
    /// Zero length.
    pub const ZERO: Picos = Picos(0);
    /// One second.
    pub const SECOND: Picos = Picos(1_000_000_000_000);

    /// Converts nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Picos {
        Picos(ns.saturating_mul(1_000))
    }
    /// Converts microseconds; saturates.
    pub const fn from_us(us: u64) -> Picos {
        Picos(us.saturating_mul(1_000_000))
    }
    /// Converts milliseconds; saturates.
    pub const fn from_ms(ms: u64) -> Picos {
        Picos(ms.saturating_mul(1_000_000_000))
    }
    /// Converts seconds; saturates.
    pub const fn from_secs(s: u64) -> Picos {
        Picos(s.saturating_mul(1_000_000_000_000))
    }
    /// Length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// Length as a span of the control machines, rounded up to nanoseconds.
    pub const fn to_span(self) -> sanloom_scsi::time::Span {
        sanloom_scsi::time::Span::from_ns(self.0.div_ceil(1_000))
    }
}

impl fmt::Display for Picos {
    /// Formats the length in the largest unit that keeps the number at or above 1, with at most
    /// three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0;
        let (unit, name) = match ps {
            0 => return f.write_str("0s"),
            1_000_000_000_000.. => (1_000_000_000_000, "s"),
            1_000_000_000.. => (1_000_000_000, "ms"),
            1_000_000.. => (1_000_000, "us"),
            1_000.. => (1_000, "ns"),
            _ => (1, "ps"),
        };
        let thousandths = (ps % unit) as u128 * 1000 / unit as u128;
        if thousandths == 0 {
            write!(f, "{}{name}", ps / unit)
        } else {
            let text = format!("{}.{thousandths:03}", ps / unit);
            write!(f, "{}{name}", text.trim_end_matches('0'))
        }
    }
}

named_variants! {
    /// Fibre Channel line rate (FC-PI, FC-FS): the rate after line coding and forward error
    /// correction. Rates ascend.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum LineRate {
        /// 1.0625 GBd, 8b/10b.
        Fc1 => "1GFC",
        /// 2.125 GBd, 8b/10b.
        Fc2 => "2GFC",
        /// 4.25 GBd, 8b/10b.
        Fc4 => "4GFC",
        /// 8.5 GBd, 8b/10b.
        Fc8 => "8GFC",
        /// 10.51875 GBd, 64b/66b.
        Fc10 => "10GFC",
        /// 14.025 GBd, 64b/66b.
        Fc16 => "16GFC",
        /// 28.05 GBd NRZ, 256b/257b and RS(528,514) (FC-PI-6).
        Fc32 => "32GFC",
        /// 28.9 GBd PAM4, 256b/257b and RS(544,514) (FC-PI-7).
        Fc64 => "64GFC",
        /// 56.1 GBd PAM4, 256b/257b and RS(544,514) (FC-PI-8).
        Fc128 => "128GFC",
        /// Four lanes of 28.05 GBd NRZ, 256b/257b and RS(528,514): 128GFC-SW4 (FC-PI-6P).
        Fc128Parallel => "128GFCp",
        /// Four lanes of 28.9 GBd PAM4, 256b/257b and RS(544,514): 256GFC-SW4 (FC-PI-7P). No
        /// published standard defines a 256GFC of one lane.
        Fc256Parallel => "256GFC",
    }
}

impl LineRate {
    /// Data rate in bytes per second, after line coding.
    pub const fn bytes_per_s(self) -> u64 {
        match self {
            LineRate::Fc1 => 106_250_000,
            LineRate::Fc2 => 212_500_000,
            LineRate::Fc4 => 425_000_000,
            LineRate::Fc8 => 850_000_000,
            LineRate::Fc10 => 1_275_000_000,
            LineRate::Fc16 => 1_700_000_000,
            LineRate::Fc32 => 3_400_000_000,
            LineRate::Fc64 => 6_800_000_000,
            LineRate::Fc128 => 13_200_000_000,
            LineRate::Fc128Parallel => 13_600_000_000,
            LineRate::Fc256Parallel => 27_200_000_000,
        }
    }

    /// Picoseconds per byte as a reduced fraction, because no Fibre Channel rate gives a whole
    /// number.
    pub const fn ps_per_byte(self) -> (u64, u64) {
        match self {
            LineRate::Fc1 => (160_000, 17),
            LineRate::Fc2 => (80_000, 17),
            LineRate::Fc4 => (40_000, 17),
            LineRate::Fc8 => (20_000, 17),
            LineRate::Fc10 => (40_000, 51),
            LineRate::Fc16 => (10_000, 17),
            LineRate::Fc32 => (5_000, 17),
            LineRate::Fc64 => (2_500, 17),
            LineRate::Fc128 => (2_500, 33),
            LineRate::Fc128Parallel => (1_250, 17),
            LineRate::Fc256Parallel => (625, 17),
        }
    }

    /// Transmission time of `bytes`, rounded down to picoseconds. Count the bytes since the line
    /// became busy and call this once, because sums of rounded times drift.
    pub const fn time_of(self, bytes: u64) -> Picos {
        let (ps, per_bytes) = self.ps_per_byte();
        Picos(bytes * ps / per_bytes)
    }
}

impl fmt::Display for LineRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rate in events per second.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Rate(pub f64);

impl Rate {
    /// Mean time between two events, rounded to picoseconds.
    pub fn period(self) -> Picos {
        Picos((1e12 / self.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_every_rate_is_its_bytes_per_second() {
        for rate in LineRate::ALL {
            let (ps, bytes) = rate.ps_per_byte();
            assert_eq!(rate.bytes_per_s() as u128 * ps as u128, bytes as u128 * 1_000_000_000_000);
        }
    }

    #[test]
    fn every_rate_is_that_of_its_lanes_and_its_coding() {
        /// Data bits of line bits, code by code.
        type Coding = &'static [(u64, u64)];
        const PLAIN: Coding = &[(8, 10)];
        const SCRAMBLED: Coding = &[(64, 66)];
        const NRZ: Coding = &[(256, 257), (514, 528)];
        const PAM4: Coding = &[(256, 257), (514, 544)];
        // Lanes, thousands of symbols per second and lane, bits per symbol.
        let standards: [(&str, u64, u64, u64, Coding); 11] = [
            ("1GFC", 1, 1_062_500, 1, PLAIN),
            ("2GFC", 1, 2_125_000, 1, PLAIN),
            ("4GFC", 1, 4_250_000, 1, PLAIN),
            ("8GFC", 1, 8_500_000, 1, PLAIN),
            ("10GFC", 1, 10_518_750, 1, SCRAMBLED),
            ("16GFC", 1, 14_025_000, 1, SCRAMBLED),
            ("32GFC", 1, 28_050_000, 1, NRZ),
            ("64GFC", 1, 28_900_000, 2, PAM4),
            ("128GFC", 1, 56_100_000, 2, PAM4),
            ("128GFCp", 4, 28_050_000, 1, NRZ),
            ("256GFC", 4, 28_900_000, 2, PAM4),
        ];
        assert_eq!(standards.map(|(name, ..)| name), LineRate::ALL.map(|rate| rate.name()));
        for ((name, lanes, kilobaud, bits, coding), rate) in standards.into_iter().zip(LineRate::ALL) {
            let (data, line) = coding.iter().fold((1, 1), |(data, line), (d, l)| (data * d, line * l));
            assert_eq!(rate.bytes_per_s() * 8 * line, lanes * kilobaud * 1_000 * bits * data, "{name}");
        }
    }

    #[test]
    fn a_2048_byte_payload_takes_9920_ns_at_2gfc_with_gap() {
        assert_eq!(LineRate::Fc2.time_of(2048 + 36 + 24), Picos::from_ns(9_920));
    }

    #[test]
    fn picos_are_shown_in_the_largest_unit() {
        assert_eq!(Picos(44_444_444).to_string(), "44.444us");
        assert_eq!(Picos::from_ms(1500).to_string(), "1.5s");
        assert_eq!(Picos::ZERO.to_string(), "0s");
    }
}
