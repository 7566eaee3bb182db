//! The system bus of a host.

use super::server::FifoServer;
use sanloom_core::config;

/// A parallel bus that moves one word per clock for one HBA after the other (document 001, section 2.2: a system bus
/// and DMA). Arbitration and set-up cycles are not modelled.
///
/// No usual clock has a whole number of picoseconds, so words are counted since the bus became busy and divided once:
/// four transfers of 2 KiB take exactly as long as one of 8 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    word_bits: u64,
    clock_hz: u64,
    busy_since_ps: u64,
    words: u64,
    server: FifoServer,
}

impl Bus {
    /// An idle bus. A width or clock of 0, which no checked lab has, is taken as 1.
    pub fn new(config: &config::Bus) -> Bus {
        Bus {
            word_bits: u64::from(config.bits.max(1)),
            clock_hz: config.clock_hz.max(1),
            busy_since_ps: 0,
            words: 0,
            server: FifoServer::default(),
        }
    }

    /// The bus of HBA `hba` of a host, counted from 0: HBAs are grouped in their order.
    pub fn index_of(config: &config::Bus, hba: u16) -> u16 {
        hba / config.shared_by.max(1)
    }

    /// Moves `bytes` when everything before is moved; returns when that is done. `now_ps` must not decrease.
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

    /// Busy share of the time since the start of the measurement, 0 to 1.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.server.utilisation(now_ps)
    }

    /// Starts the measurement anew at `now_ps`: the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.server.restart(now_ps);
    }
}
