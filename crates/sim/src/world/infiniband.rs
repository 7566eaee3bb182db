//! InfiniBand of a lab: the plan of its plane, and the counters of its lines.

use super::World;
use crate::net::Net;
use crate::net::infiniband::{
    Arbitration, InfinibandLinkPlan, InfinibandPlan, InfinibandPlane, InfinibandSwitchPlan, Line, LineCount,
    PacketLoss, Station, life_ps,
};
use crate::net::line::ByteTime;
use sanloom_fc::config::{InfinibandEnd, InfinibandLink, InfinibandNode, InfinibandSwitch, LaneWeight};
use sanloom_fc::san::{Lab, infiniband_adapter_guid, infiniband_switch_guid, subnet_config};
use sanloom_transport::infiniband::arbitration::{Entry, SlToVl};
use std::collections::BTreeMap;

/// Blocks of management packets that an input holds. No lab sends any.
const MANAGEMENT_BLOCKS: u16 = 64;

/// Counters of the lines of the InfiniBand plane.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By number of the line.
    pub lines: Vec<LineCounts>,
    /// Lost packets by line and reason.
    pub losses: BTreeMap<(u32, PacketLoss), u64>,
    /// Sweeps of the subnet manager after changes.
    pub sweeps: u64,
}

/// Counters of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineCounts {
    pub count: LineCount,
    /// Times that the line was idle because no packet had credit.
    pub waits: u64,
    /// Total time of these, in ps.
    pub waits_ps: u64,
}

impl Counts {
    /// Reads the counters since the start of the simulation.
    pub fn read(net: &Net) -> Counts {
        let line = |line: &Line| {
            let (waits, waits_ps) = line.credit_waits(net.now());
            LineCounts { count: line.count(), waits, waits_ps }
        };
        let losses = net.infiniband.losses().map(|(line, why, packets)| ((line, why), packets));
        Counts {
            lines: net.infiniband.lines().iter().map(line).collect(),
            losses: losses.collect(),
            sweeps: net.infiniband.fate.sweeps,
        }
    }

    /// Returns the counters as differences to an earlier reading.
    pub(super) fn since(mut self, before: &Counts) -> Counts {
        for (now, before) in self.lines.iter_mut().zip(&before.lines) {
            now.count.packets -= before.count.packets;
            now.count.bytes -= before.count.bytes;
            now.count.flow -= before.count.flow;
            now.count.stalls -= before.count.stalls;
            now.waits -= before.waits;
            now.waits_ps -= before.waits_ps;
        }
        for (key, before) in &before.losses {
            if let Some(packets) = self.losses.get_mut(key) {
                *packets -= before;
            }
        }
        self.sweeps -= before.sweeps;
        self
    }

    /// Returns the packets lost on a line or at its end, by reason.
    pub fn lost(&self, line: u32) -> impl Iterator<Item = (PacketLoss, u64)> {
        let of_line = self.losses.range((line, PacketLoss::Lifetime)..(line + 1, PacketLoss::Lifetime));
        of_line.map(|((_, why), packets)| (*why, *packets)).filter(|(_, packets)| *packets > 0)
    }
}

/// Returns the GUIDs of the interfaces of the SRP target of a storage system.
pub(super) fn guids_of(lab: &Lab, storage: u16) -> Vec<u64> {
    match lab.infiniband.targets.contains_key(&storage) {
        true => {
            lab.srp_paths().target_ports(storage).iter().map(|interface| infiniband_adapter_guid(*interface)).collect()
        }
        false => Vec::new(),
    }
}

/// Starts to record the packets of an InfiniBand link. Call it before the first login.
pub fn watch(world: &mut World, link: u16) {
    world.net.infiniband.watch(link);
    world.srp.iter_mut().for_each(|srp| srp.watch());
    world.iscsi.iter_mut().for_each(|iscsi| iscsi.watch());
}

/// Returns the InfiniBand plane of a lab that has passed `Lab::validate`. Links have the indices of
/// the lab, interfaces those of `Lab::infiniband_interfaces`.
pub fn plane(lab: &Lab) -> InfinibandPlane {
    if lab.infiniband.links.is_empty() {
        return InfinibandPlane::default();
    }
    let plane = InfinibandPlane::new(plan(lab));
    plane.expect("ports and LIDs of the InfiniBand subnet suffice, as the validation of the lab has checked")
}

/// Returns the plan of the InfiniBand plane of a lab.
pub fn plan(lab: &Lab) -> InfinibandPlan {
    let (infiniband, subnet) = (&lab.infiniband, &lab.infiniband.subnet);
    let interfaces = lab.infiniband_interfaces();
    let numbers: BTreeMap<InfinibandEnd, u16> = interfaces.iter().map(|interface| interface.end).zip(0..).collect();
    let station = |end: InfinibandEnd| match end.node {
        InfinibandNode::Switch(switch) => Station::Switch { switch, port: end.port as u8 },
        InfinibandNode::Host(_) | InfinibandNode::Storage(_) => Station::Interface(numbers[&end]),
    };
    let link = |link: &InfinibandLink| InfinibandLinkPlan {
        ends: link.ends.map(station),
        byte: byte_time(link),
        propagation_ps: link.propagation.0,
        lanes: subnet.lanes,
        blocks: [0, 1].map(|side| lab.infiniband_blocks(link, side)),
        refresh_ps: link.rate.refresh().0,
        arbitration: link.ends.map(|end| arbitration(lab, end.node)),
    };
    InfinibandPlan {
        switches: (0..).zip(&infiniband.switches).map(|(number, switch)| switch_plan(lab, number, switch)).collect(),
        links: infiniband.links.iter().map(link).collect(),
        interfaces: (0..interfaces.len() as u16).map(infiniband_adapter_guid).collect(),
        manager: 0,
        config: subnet_config(lab),
        sweep_ps: subnet.sweep.0,
        levels: SlToVl(infiniband.lanes_of_levels(None)),
        seed: lab.run.seed,
    }
}

/// Returns the arbitration at the ports of a node.
fn arbitration(lab: &Lab, node: InfinibandNode) -> Arbitration {
    let switch = match node {
        InfinibandNode::Switch(switch) => Some(switch),
        InfinibandNode::Host(_) | InfinibandNode::Storage(_) => None,
    };
    let tables = lab.infiniband.arbitration(switch);
    let entries = |table: &[LaneWeight]| {
        table.iter().map(|&LaneWeight { lane, weight }| Entry { lane, weight }).collect::<Vec<Entry>>()
    };
    let low = entries(&tables.low_table(lab.infiniband.subnet.lanes));
    Arbitration { high: entries(&tables.high), low, limit: tables.limit }
}

fn byte_time(link: &InfinibandLink) -> ByteTime {
    let (numerator, denominator) = link.rate.ps_per_byte();
    ByteTime::new(numerator as u32, denominator as u16)
}

fn switch_plan(lab: &Lab, number: u16, switch: &InfinibandSwitch) -> InfinibandSwitchPlan {
    let ends = lab.infiniband.links.iter().flat_map(|link| link.ends);
    let own = ends.filter(|end| end.node == InfinibandNode::Switch(number));
    let ports = own.map(|end| end.port + 1).max().unwrap_or(1);
    InfinibandSwitchPlan {
        guid: infiniband_switch_guid(number),
        ports: ports as u8,
        latency_ps: switch.latency.0,
        cut_through: switch.cut_through,
        levels: vec![SlToVl(lab.infiniband.lanes_of_levels(Some(number)))],
        life_ps: switch.lifetime.map(life_ps),
        management_blocks: MANAGEMENT_BLOCKS,
    }
}
