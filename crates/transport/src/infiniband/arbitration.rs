//! Arbitration of virtual lanes, and the map from service levels to lanes (IBA volume 1, 7.6.6 and
//! 7.6.9).

use super::packet::BLOCK;

/// Virtual lane: 0 to 14 for data, 15 for management.
pub type Lane = u8;

/// Lane of management, which precedes all data.
pub const MANAGEMENT: Lane = 15;

/// Limit of the high table that never yields.
pub const UNLIMITED: u8 = 255;

/// Units of 64 bytes in one of the limit of the high table.
const LIMIT_UNITS: u32 = 4_096 / BLOCK;

/// Entry of an arbitration table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Data lane.
    pub lane: Lane,
    /// Units of 64 bytes that the lane may send in a turn. 0 skips the entry.
    pub weight: u8,
}

/// Table with the state of its turn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    current: usize,
    /// Units that the current entry may still send.
    left: u32,
}

/// Arbiter of one egress port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arbiter {
    high: Table,
    low: Table,
    limit: u8,
    /// Units of 64 bytes of high priority since the last packet of low priority. The limit counts
    /// as the weights do (IBA volume 1, 7.6.9.2).
    high_units: u32,
    /// Table that sent the last packet chosen.
    chosen_high: bool,
}

impl Table {
    fn new(entries: Vec<Entry>) -> Table {
        let entries: Vec<Entry> = entries.into_iter().filter(|entry| entry.lane < MANAGEMENT).collect();
        let left = entries.first().map_or(0, |entry| u32::from(entry.weight));
        Table { entries, current: 0, left }
    }

    /// Moves to the entry of the next packet.
    fn next(&mut self, ready: u16) -> Option<Lane> {
        for _ in 0..=self.entries.len() {
            let entry = self.entries.get(self.current)?;
            if self.left > 0 && ready & (1 << entry.lane) != 0 {
                return Some(entry.lane);
            }
            self.current = (self.current + 1) % self.entries.len();
            self.left = u32::from(self.entries[self.current].weight);
        }
        None
    }

    /// True if an entry with a weight has a packet.
    fn is_ready(&self, ready: u16) -> bool {
        self.entries.iter().any(|entry| entry.weight > 0 && ready & (1 << entry.lane) != 0)
    }
}

impl Arbiter {
    /// Arbiter with a high and a low table. `limit` bounds the bytes of high priority while low
    /// priority waits: units of 4096 bytes, 0 for one packet, [`UNLIMITED`] for no bound.
    pub fn new(high: Vec<Entry>, low: Vec<Entry>, limit: u8) -> Arbiter {
        Arbiter { high: Table::new(high), low: Table::new(low), limit, high_units: 0, chosen_high: false }
    }

    /// Lane of the next packet. Bit n of `ready` is set if lane n has a packet and its credit.
    /// Management has no credit and precedes the tables.
    pub fn next(&mut self, ready: u16) -> Option<Lane> {
        if ready & (1 << MANAGEMENT) != 0 {
            return Some(MANAGEMENT);
        }
        let may_high = self.limit == UNLIMITED
            || (self.limit == 0 && self.high_units == 0)
            || self.high_units < u32::from(self.limit) * LIMIT_UNITS
            || !self.low.is_ready(ready);
        let high = if may_high { self.high.next(ready) } else { None };
        self.chosen_high = high.is_some();
        high.or_else(|| self.low.next(ready))
    }

    /// Accounts for the packet of the last [`next`](Arbiter::next). A packet may exceed the weight;
    /// the excess is not carried over.
    pub fn sent(&mut self, lane: Lane, bytes: u32) {
        if lane == MANAGEMENT {
            return;
        }
        let table = if self.chosen_high { &mut self.high } else { &mut self.low };
        let units = bytes.div_ceil(BLOCK);
        table.left = table.left.saturating_sub(units);
        self.high_units = if self.chosen_high { self.high_units.saturating_add(units) } else { 0 };
    }
}

/// Lane of each service level on the way from one port to another. Lane 15 discards the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlToVl(pub [Lane; 16]);

impl SlToVl {
    /// Map onto `lanes` data lanes, 1 to 15: service level n uses lane n modulo `lanes`.
    pub fn spread(lanes: u8) -> SlToVl {
        let lanes = lanes.clamp(1, MANAGEMENT);
        let mut map = [0; 16];
        for (level, lane) in (0u8..).zip(&mut map) {
            *lane = level % lanes;
        }
        SlToVl(map)
    }

    /// Lane of a service level; `None` discards the packet.
    pub fn lane(&self, level: u8) -> Option<Lane> {
        let lane = self.0[usize::from(level & 15)];
        (lane < MANAGEMENT).then_some(lane)
    }
}
