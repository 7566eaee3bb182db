//! The system bus of a host.

use super::server::FifoServer;
use sanloom_fc::config;

/// A parallel bus that moves one word per clock for one HBA at a time (the SANSim paper, section
/// 2.2: a system bus and DMA). Arbitration and set-up cycles are not modelled.
///
/// The usual clock periods are not whole numbers of picoseconds. The model therefore counts words
/// since the bus became busy and divides once: four transfers of 2 KiB take exactly as long as one
/// of 8 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    word_bits: u64,
    clock_hz: u64,
    busy_since_ps: u64,
    words: u64,
    server: FifoServer,
}

impl Bus {
    /// Returns an idle bus. A width or clock of 0, which a validated lab never has, is treated as
    /// 1.
    pub fn new(config: &config::Bus) -> Bus {
        Bus {
            word_bits: u64::from(config.bits.max(1)),
            clock_hz: config.clock_hz.max(1),
            busy_since_ps: 0,
            words: 0,
            server: FifoServer::default(),
        }
    }

    /// Returns the index of the bus of HBA `hba`, counted from 0. Successive HBAs share a bus.
    pub fn index_of(config: &config::Bus, hba: u16) -> u16 {
        hba / config.shared_by.max(1)
    }

    /// Moves `bytes` after all earlier transfers and returns the time of completion. `now_ps` must
    /// not decrease.
    pub fn occupy(&mut self, now_ps: u64, bytes: u64) -> u64 {
        if now_ps >= self.server.free_at_ps() {
            self.busy_since_ps = now_ps;
            self.words = 0;
        }
        self.words += (bytes * 8).div_ceil(self.word_bits);
        let busy_ps = u128::from(self.words) * 1_000_000_000_000 / u128::from(self.clock_hz);
        let done_ps = self.busy_since_ps.saturating_add(busy_ps as u64);
        self.server.occupy_until(now_ps, done_ps)
    }

    /// Returns the busy share of the time since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.server.utilisation(now_ps)
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.server.restart(now_ps);
    }
}
