//! Assignment of local identifiers to end ports.

use super::discovery::Discovered;
use super::fabric::{Fabric, PortId};
use std::collections::{BTreeMap, BTreeSet};

/// Local identifier.
pub type Lid = u16;

/// Highest unicast LID (IBA volume 1, 4.1.3).
pub const MAX_UNICAST: Lid = 0xBFFF;

/// LIDs of all end ports of a subnet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lids {
    /// End ports in ascending order of their base LIDs.
    ports: Vec<(PortId, Range)>,
    index: BTreeMap<PortId, usize>,
}

/// LIDs of one end port: `base` and the LIDs after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Base LID.
    pub base: Lid,
    /// Number of LIDs: 2 to the power of the LMC, and 1 for a switch.
    pub count: Lid,
}

impl Range {
    /// All LIDs of the port.
    pub fn lids(self) -> impl Iterator<Item = Lid> {
        self.base..self.base + self.count
    }

    /// LID of the port for flows with this number: each of its LIDs in turn.
    pub fn of_flow(self, flow: u32) -> Lid {
        self.base + (flow % u32::from(self.count)) as Lid
    }
}

/// The subnet has more end ports than unicast LIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{ports} end ports with LMC {lmc} need more than {MAX_UNICAST} LIDs; use a smaller LMC")]
pub struct OutOfLids {
    /// Number of end ports.
    pub ports: usize,
    /// Requested LMC.
    pub lmc: u8,
}

impl Lids {
    /// Assigns LIDs to the end ports of the discovered nodes as OpenSM does in a new subnet.
    ///
    /// The port of the manager comes first, then the end ports by
    /// [`sort_key`](super::fabric::Guid::sort_key) of
    /// their GUIDs. A port of an adapter has `2^lmc` LIDs, aligned to that number, and a switch has
    /// one. LIDs that an alignment skips stay free.
    ///
    /// # Errors
    /// The subnet has more end ports than LIDs.
    pub fn assign(fabric: &Fabric, found: &[Discovered], manager: PortId, lmc: u8) -> Result<Lids, OutOfLids> {
        let mut ends: Vec<PortId> = found.iter().flat_map(|found| end_ports(fabric, found)).collect();
        let manager = if fabric.node(manager.node).is_switch() { PortId { port: 0, ..manager } } else { manager };
        ends.sort_by_key(|end| (*end != manager, fabric.node(end.node).port_guid(end.port).sort_key()));
        let ports = ends.len();
        let error = OutOfLids { ports, lmc };
        let mut lids = Lids::default();
        let mut next: u32 = 1;
        for end in ends {
            let count = if fabric.node(end.node).is_switch() { 1 } else { 1 << lmc.min(7) };
            let base = next.next_multiple_of(count);
            next = base + count;
            if next - 1 > u32::from(MAX_UNICAST) {
                return Err(error);
            }
            lids.index.insert(end, lids.ports.len());
            lids.ports.push((end, Range { base: base as Lid, count: count as Lid }));
        }
        Ok(lids)
    }

    /// The same LIDs, of the discovered nodes only.
    pub fn only(&self, found: &[Discovered]) -> Lids {
        let nodes: BTreeSet<usize> = found.iter().map(|found| found.node).collect();
        let ports: Vec<(PortId, Range)> =
            self.ports.iter().copied().filter(|(port, _)| nodes.contains(&port.node)).collect();
        let index = ports.iter().enumerate().map(|(index, (port, _))| (*port, index)).collect();
        Lids { ports, index }
    }

    /// LIDs of an end port; `None` if the manager does not reach it.
    pub fn of(&self, end: PortId) -> Option<Range> {
        self.index.get(&end).map(|index| self.ports[*index].1)
    }

    /// End ports with their LIDs, in ascending order of LIDs.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, Range)> + '_ {
        self.ports.iter().copied()
    }

    /// End port that has a LID.
    pub fn port(&self, lid: Lid) -> Option<PortId> {
        let after = self.ports.partition_point(|(_, range)| range.base <= lid);
        let (port, range) = self.ports.get(after.checked_sub(1)?)?;
        (lid - range.base < range.count).then_some(*port)
    }

    /// Highest LID in use, or 0.
    pub fn highest(&self) -> Lid {
        self.ports.last().map_or(0, |(_, range)| range.base + range.count - 1)
    }
}

/// End ports of a node that the manager sees: port 0 of a switch, and the ports of an adapter that
/// have a cable. Directed routes reach each of them.
fn end_ports(fabric: &Fabric, found: &Discovered) -> Vec<PortId> {
    let node = fabric.node(found.node);
    if node.is_switch() {
        return vec![PortId { node: found.node, port: 0 }];
    }
    node.links().map(|(port, _)| PortId { node: found.node, port }).collect()
}
