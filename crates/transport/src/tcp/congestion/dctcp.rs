//! The estimate of DCTCP: the share of marked bytes (RFC 8257, section 3.3).

/// One, in the units of the estimate.
const ONE: u32 = 1 << 20;
/// Weight of a new window: g = 2^-4.
const WEIGHT: u32 = 4;

/// State of DCTCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dctcp {
    /// The window of observation ends when this position is acknowledged.
    window_end: u64,
    /// Estimated share of marked bytes, in units of 2^-20.
    alpha: u32,
    /// Bytes acknowledged in this window, saturating.
    acked: u32,
    /// Bytes of them with an echoed mark.
    marked: u32,
}

impl Default for Dctcp {
    /// The estimate begins at one (section 3.3, first step).
    fn default() -> Dctcp {
        Dctcp { window_end: 0, alpha: ONE, acked: 0, marked: 0 }
    }
}

impl Dctcp {
    pub(super) fn alpha(&self) -> u32 {
        self.alpha
    }

    /// Counts acknowledged bytes. When a window is complete, alpha = (1 - g) alpha + g M.
    pub(super) fn count(&mut self, bytes: u64, is_marked: bool, una: u64, nxt: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.acked = self.acked.saturating_add(bytes);
        if is_marked {
            self.marked = self.marked.saturating_add(bytes);
        }
        if una <= self.window_end {
            return;
        }
        if self.acked > 0 {
            let share = u64::from(self.marked) * u64::from(ONE) / u64::from(self.acked);
            let share = u32::try_from(share).unwrap_or(ONE);
            self.alpha = (self.alpha - (self.alpha >> WEIGHT) + (share >> WEIGHT)).min(ONE);
        }
        (self.window_end, self.acked, self.marked) = (nxt, 0, 0);
    }

    /// Window x (1 - alpha / 2).
    pub(super) fn reduced(&self, window: u32) -> u32 {
        let cut = u64::from(window) * u64::from(self.alpha) / u64::from(2 * ONE);
        window - u32::try_from(cut).unwrap_or(window).min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8257 by hand: alpha 1, then windows with a quarter of their bytes marked.
    #[test]
    fn alpha_approaches_the_share_of_marked_bytes() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.reduced(100_000), 50_000);
        dctcp.count(1_000, true, 1, 4_000);
        assert_eq!(dctcp.alpha(), ONE);
        dctcp.count(1_000, true, 1_001, 4_000);
        dctcp.count(3_000, false, 4_001, 8_000);
        assert_eq!(dctcp.alpha(), ONE - ONE / 16 + ONE / 64);
        for window in 1..200u64 {
            let end = window * 10_000;
            dctcp.count(0, false, end - 1_999, end);
            dctcp.count(1_000, true, end - 1_000, 0);
            dctcp.count(3_000, false, end + 1, end + 8_000);
        }
        let share = f64::from(dctcp.alpha()) / f64::from(ONE);
        assert!((share - 0.25).abs() < 0.05, "{share}");
    }
}
