//! The system bus of a host or storage system.

use super::server::FifoServer;
use sanloom_fc::config::{self, Duplex};

/// Direction of the data that an adapter moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the network to the memory.
    Receive,
    /// From the memory to the network.
    Send,
}

/// A bus that moves one word per clock (the SANSim paper, section 2.2: a system bus and DMA). The
/// adapters of a parallel bus take turns. A bus of [`Duplex::Full`] has one server for each
/// direction. Arbitration, set-up cycles and packet headers are not modelled.
///
/// The usual clock periods are not whole numbers of picoseconds. The model therefore counts words
/// since a server became busy and divides once: four transfers of 2 KiB take exactly as long as one
/// of 8 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    word_bits: u64,
    clock_hz: u64,
    duplex: Duplex,
    /// Servers of [`Direction::Receive`] and [`Direction::Send`]; the first one has all the work of
    /// a bus of [`Duplex::Half`].
    servers: [Server; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Server {
    busy_since_ps: u64,
    /// Words since then.
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
            duplex: config.duplex,
            servers: [Server::default(); 2],
        }
    }

    /// Returns the idle buses of a node that has `adapters` of the kind of which it has most.
    pub fn of_node(config: Option<&config::Bus>, adapters: u16) -> Vec<Bus> {
        let Some(config) = config else { return Vec::new() };
        vec![Bus::new(config); usize::from(adapters.div_ceil(config.shared_by.max(1)).max(1))]
    }

    /// Returns the index of the bus of an adapter, counted from 0. Successive adapters share a bus.
    pub fn index_of(config: &config::Bus, adapter: u16) -> u16 {
        adapter / config.shared_by.max(1)
    }

    /// Moves `bytes` after all earlier transfers of the same server and returns the time of
    /// completion. `now_ps` must not decrease.
    pub fn occupy(&mut self, now_ps: u64, direction: Direction, bytes: u64) -> u64 {
        let server = match (self.duplex, direction) {
            (Duplex::Full, Direction::Send) => &mut self.servers[1],
            (Duplex::Half, _) | (_, Direction::Receive) => &mut self.servers[0],
        };
        if now_ps >= server.server.free_at_ps() {
            server.busy_since_ps = now_ps;
            server.words = 0;
        }
        server.words += (bytes * 8).div_ceil(self.word_bits);
        let busy_ps = u128::from(server.words) * 1_000_000_000_000 / u128::from(self.clock_hz);
        let done_ps = server.busy_since_ps.saturating_add(busy_ps as u64);
        server.server.occupy_until(now_ps, done_ps)
    }

    /// Returns the busy share of the time since the start of the measurement, 0 to 1: that of the
    /// busier direction.
    pub fn utilisation(&self, now_ps: u64) -> f64 {
        self.servers.iter().map(|server| server.server.utilisation(now_ps)).fold(0.0, f64::max)
    }

    /// Restarts the measurement at `now_ps`, the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.servers.iter_mut().for_each(|server| server.server.restart(now_ps));
    }
}
