//! Virtual lanes of InfiniBand ports: arbitration, and the lane of each service level.

use super::infiniband::{Infiniband, MAX_DATA_LANES};

/// Number of service levels.
pub const SERVICE_LEVELS: usize = 16;
/// Most entries of an arbitration table (IBA volume 1, 7.6.9.2).
pub const MAX_LANE_WEIGHTS: usize = 64;
/// Weight of each lane of a port without tables, in units of 64 bytes.
pub const DEFAULT_LANE_WEIGHT: u8 = 64;
/// Lane of a service level whose packets are discarded (IBA volume 1, 7.6.6).
pub const DISCARDED_LANE: u8 = 15;

/// Entry of an arbitration table (IBA volume 1, 7.6.9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneWeight {
    /// Data lane.
    pub lane: u8,
    /// Units of 64 bytes that the lane may send in a turn; 0 skips the entry.
    pub weight: u8,
}

/// Arbitration tables of a port (IBA volume 1, 7.6.9).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneArbitration {
    /// Table of high priority.
    pub high: Vec<LaneWeight>,
    /// Table of low priority; `None`: every data lane with the same weight.
    pub low: Option<Vec<LaneWeight>>,
    /// Units of 4,096 bytes that the table of high priority may send while low priority waits: 0
    /// for one packet, 255 for no limit.
    pub limit: u8,
}

/// Lanes of the ports of a switch, or of the whole subnet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneSettings {
    /// Arbitration; `None`: that of the subnet, and there equal shares.
    pub arbitration: Option<LaneArbitration>,
    /// Lane of each service level that has one here. The others have that of the subnet, and there
    /// their number modulo the number of lanes.
    pub levels: [Option<u8>; SERVICE_LEVELS],
}

impl LaneArbitration {
    /// Table of low priority of a port with this number of data lanes.
    pub fn low_table(&self, lanes: u8) -> Vec<LaneWeight> {
        let equal = || (0..lanes).map(|lane| LaneWeight { lane, weight: DEFAULT_LANE_WEIGHT }).collect();
        self.low.clone().unwrap_or_else(equal)
    }

    /// Returns whether packets of a lane ever leave: an entry of it has a weight.
    pub fn serves(&self, lane: u8, lanes: u8) -> bool {
        let low = self.low_table(lanes);
        self.high.iter().chain(&low).any(|entry| entry.lane == lane && entry.weight > 0)
    }
}

impl Infiniband {
    fn own_lanes(&self, switch: Option<u16>) -> Option<&LaneSettings> {
        Some(&self.switches.get(usize::from(switch?))?.lanes)
    }

    /// Arbitration of the ports of a switch; `None`: of the interfaces of hosts and storage.
    pub fn arbitration(&self, switch: Option<u16>) -> LaneArbitration {
        let own = self.own_lanes(switch).and_then(|lanes| lanes.arbitration.as_ref());
        own.or(self.subnet.lane_settings.arbitration.as_ref()).cloned().unwrap_or_default()
    }

    /// Lane of each service level on the way out of a switch; `None`: out of an interface.
    pub fn lanes_of_levels(&self, switch: Option<u16>) -> [u8; SERVICE_LEVELS] {
        let (own, subnet) = (self.own_lanes(switch), &self.subnet);
        let lanes = subnet.lanes.clamp(1, MAX_DATA_LANES);
        std::array::from_fn(|level| {
            let given = own.and_then(|own| own.levels[level]).or(subnet.lane_settings.levels[level]);
            given.unwrap_or(level as u8 % lanes)
        })
    }
}
