//! Congestion control: the window, and the three algorithms that change it.
//!
//! Windows count bytes. An algorithm is a variant of an enum, so each call is direct.

mod cubic;
mod dctcp;

use super::config::{Algorithm, Config};
use cubic::Cubic;
use dctcp::Dctcp;
use sanloom_scsi::time::{Instant, Span};

/// Largest congestion window in bytes: no peer offers more (RFC 7323, section 2.3).
const MAX_WINDOW: u64 = 1 << 30;

/// Congestion window of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Congestion {
    /// Congestion window in bytes.
    window: u32,
    /// Slow start ends at this window.
    threshold: u32,
    /// Acknowledged bytes that have not enlarged the window yet; CUBIC: in bytes x window.
    credit: u64,
    law: Law,
}

/// State of the algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Law {
    Reno,
    Cubic(Cubic),
    Dctcp(Dctcp),
}

/// Facts about an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Instant,
    /// Bytes that were acknowledged or selectively acknowledged for the first time.
    pub(super) bytes: u64,
    /// Smoothed round-trip time.
    pub(super) rtt: Span,
    /// Largest payload of a segment.
    pub(super) unit: u32,
}

impl Congestion {
    pub(super) fn new(config: &Config) -> Congestion {
        let law = match config.algorithm {
            Algorithm::Reno => Law::Reno,
            Algorithm::Cubic { fast_convergence } => Law::Cubic(Cubic::new(fast_convergence)),
            Algorithm::Dctcp => Law::Dctcp(Dctcp::default()),
        };
        Congestion { window: initial(config, u32::from(config.mss)), threshold: u32::MAX, credit: 0, law }
    }

    /// Begins with segments of `unit` bytes, when the handshake has agreed on it. After a lost SYN
    /// the window is one segment (RFC 5681, section 3.1).
    pub(super) fn begin(&mut self, config: &Config, unit: u32, is_syn_lost: bool) {
        self.window = if is_syn_lost { unit } else { initial(config, unit) };
    }

    /// Congestion window in bytes.
    pub(super) fn window(&self) -> u32 {
        self.window
    }
    /// Slow-start threshold in bytes; `u32::MAX` before the first loss.
    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }
    pub(super) fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Estimate of DCTCP in units of 2^-20.
    pub(super) fn alpha(&self) -> Option<u32> {
        match &self.law {
            Law::Dctcp(dctcp) => Some(dctcp.alpha()),
            _ => None,
        }
    }

    /// Counts acknowledged bytes, echoed marks included, before the window changes (DCTCP).
    pub(super) fn count_marks(&mut self, bytes: u64, is_marked: bool, una: u64, nxt: u64) {
        if let Law::Dctcp(dctcp) = &mut self.law {
            dctcp.count(bytes, is_marked, una, nxt);
        }
    }

    /// Enlarges the window after an acknowledgement outside of fast recovery.
    pub(super) fn grow(&mut self, acked: Acked) {
        let mut bytes = acked.bytes;
        if self.in_slow_start() {
            let room = u64::from(self.threshold - self.window);
            let step = bytes.min(room);
            self.enlarge(step);
            bytes -= step;
            if bytes == 0 {
                return;
            }
        }
        match &mut self.law {
            Law::Reno | Law::Dctcp(_) => {
                // One segment for each window of acknowledged bytes (RFC 5681, equation 3).
                self.credit += bytes;
                while self.credit >= u64::from(self.window) {
                    self.credit -= u64::from(self.window);
                    self.enlarge(u64::from(acked.unit));
                }
            }
            Law::Cubic(cubic) => {
                let window = cubic.grow(self.window, bytes, &mut self.credit, acked);
                self.enlarge(u64::from(window.saturating_sub(self.window)));
            }
        }
    }

    fn enlarge(&mut self, bytes: u64) {
        let window = (u64::from(self.window) + bytes).min(MAX_WINDOW);
        self.window = u32::try_from(window).unwrap_or(u32::MAX);
    }

    /// Reduces the window at the beginning of fast recovery. `flight` is the number of bytes in
    /// flight.
    pub(super) fn lose(&mut self, flight: u64, unit: u32) {
        self.reduce(flight, unit);
        self.window = self.threshold;
    }

    /// Reduces the window to one segment (RFC 5681, section 3.1). The threshold changes with the
    /// first time-out of a segment only.
    pub(super) fn time_out(&mut self, flight: u64, unit: u32, is_first: bool) {
        if is_first {
            self.reduce(flight, unit);
        }
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.time_out();
        }
        self.window = unit;
        self.credit = 0;
    }

    /// Sets the threshold after a loss.
    fn reduce(&mut self, flight: u64, unit: u32) {
        let flight = u32::try_from(flight).unwrap_or(u32::MAX).min(self.window);
        let threshold = match &mut self.law {
            Law::Reno | Law::Dctcp(_) => flight / 2,
            Law::Cubic(cubic) => cubic.lose(self.window, flight),
        };
        self.threshold = threshold.max(2 * unit);
        self.credit = 0;
    }

    /// Reduces the window after an echoed mark. The caller does this once for each window.
    pub(super) fn mark(&mut self, flight: u64, unit: u32) {
        if let Law::Dctcp(dctcp) = &self.law {
            self.window = dctcp.reduced(self.window).max(2 * unit);
            self.threshold = self.window;
            self.credit = 0;
        } else {
            self.lose(flight, unit);
        }
    }

    /// Continues after `silence` without data in flight. `is_restart`: the silence was longer than
    /// a time-out, so the window returns to its initial value (RFC 5681, section 4.1).
    pub(super) fn wake(&mut self, silence: Span, is_restart: bool, config: &Config, unit: u32) {
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.skip(silence);
        }
        if is_restart {
            // The threshold keeps the memory of the path, as in Linux.
            self.threshold =
                if self.threshold == u32::MAX { self.threshold } else { self.threshold.max(self.window / 4 * 3) };
            self.window = self.window.min(initial(config, unit));
            self.credit = 0;
        }
    }
}

/// Initial window in bytes.
fn initial(config: &Config, unit: u32) -> u32 {
    u32::from(config.initial_window.max(1)) * unit
}
