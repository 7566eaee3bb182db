//! The line model of all planes: a rate as a rational number, and bytes counted per busy period.
//!
//! No whole number of picoseconds per byte exists for the rates of Fibre Channel. The end of a unit
//! is therefore computed from the bytes since the line became busy, so that rounding never adds up.

/// Time of a byte on a line: `ps_per_bytes / bytes_per_ps` ps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteTime {
    ps_per_bytes: u32,
    bytes_per_ps: u16,
    /// 2^64 / `bytes_per_ps`, rounded up, because a multiplication is faster than a division.
    reciprocal: u64,
}

/// The times of a unit on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupied {
    /// The last byte leaves.
    pub end_ps: u64,
    /// The next unit may begin.
    pub free_ps: u64,
    /// Remainder of `free_ps`, which is rounded down, in units of 1 / `bytes_per_ps` ps.
    pub rest: u8,
}

/// The busy period of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BusyPeriod {
    /// Earliest start of the next unit, in ps.
    pub free_at_ps: u64,
    rest: u8,
}

impl ByteTime {
    /// Returns the time of a byte from a fraction: ps and the bytes they belong to, at most 255.
    pub fn new(ps_per_bytes: u32, bytes_per_ps: u16) -> ByteTime {
        debug_assert!((1..=255).contains(&bytes_per_ps), "{bytes_per_ps}");
        // The reciprocal of 1 does not fit.
        let (ps_per_bytes, bytes_per_ps) =
            if bytes_per_ps == 1 { (2 * ps_per_bytes, 2) } else { (ps_per_bytes, bytes_per_ps) };
        let reciprocal = u64::MAX / u64::from(bytes_per_ps) + 1;
        ByteTime { ps_per_bytes, bytes_per_ps, reciprocal }
    }

    /// Returns the fraction: ps and the bytes they belong to, not necessarily in lowest terms.
    pub fn fraction(&self) -> (u32, u16) {
        (self.ps_per_bytes, self.bytes_per_ps)
    }

    /// Returns the time on the line of `bytes`, in ps, rounded down.
    #[inline]
    pub fn time_of(&self, bytes: u64) -> u64 {
        bytes * u64::from(self.ps_per_bytes) / u64::from(self.bytes_per_ps)
    }

    /// Returns the times of a unit of `bytes`, with a gap after it, that begins at `start_ps`.
    /// `rest` is that of the unit before in the busy period, 0 for the first one: each division
    /// passes its remainder to the next one, so the result equals a single division of the whole
    /// period.
    #[inline(always)]
    pub fn occupy(&self, start_ps: u64, rest: u8, bytes: u64, gap_bytes: u64) -> Occupied {
        let end_parts = u64::from(rest) + bytes * u64::from(self.ps_per_bytes);
        let end_ps = start_ps + self.whole(end_parts);
        let free_parts = end_parts + gap_bytes * u64::from(self.ps_per_bytes);
        let busy_ps = self.whole(free_parts);
        let rest = (free_parts - busy_ps * u64::from(self.bytes_per_ps)) as u8;
        Occupied { end_ps, free_ps: start_ps + busy_ps, rest }
    }

    /// Returns `parts / bytes_per_ps`, rounded down. `parts` is below 2^48.
    #[inline(always)]
    fn whole(&self, parts: u64) -> u64 {
        ((u128::from(parts) * u128::from(self.reciprocal)) >> 64) as u64
    }
}

impl BusyPeriod {
    /// Occupies the line from `start_ps` for `bytes` and a gap after them. Returns the time at
    /// which the last byte before the gap has left. `start_ps` is not before `free_at_ps`.
    #[inline]
    pub fn occupy(&mut self, byte: &ByteTime, start_ps: u64, bytes: u64, gap_bytes: u64) -> u64 {
        let rest = if start_ps == self.free_at_ps { self.rest } else { 0 };
        let Occupied { end_ps, free_ps, rest } = byte.occupy(start_ps, rest, bytes, gap_bytes);
        (self.free_at_ps, self.rest) = (free_ps, rest);
        end_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_does_not_add_up_in_a_busy_period() {
        // 8GFC: 850 MB/s, so 17 bytes take 20,000 ps.
        let (byte, mut line) = (ByteTime::new(20_000, 17), BusyPeriod::default());
        for unit in 1..=1_000_000u64 {
            let start = line.free_at_ps;
            line.occupy(&byte, start, 2_100, 24);
            assert_eq!(line.free_at_ps, unit * 2_124 * 20_000 / 17);
        }
    }

    #[test]
    fn a_pause_begins_a_new_busy_period() {
        let (byte, mut line) = (ByteTime::new(20_000, 17), BusyPeriod::default());
        line.occupy(&byte, 0, 1, 0);
        assert_eq!(line.free_at_ps, 1_176);
        line.occupy(&byte, 2_000, 1, 0);
        assert_eq!(line.free_at_ps, 3_176);
    }
}
