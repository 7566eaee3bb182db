//! Construction of the plain engine, its subnet, and interfaces that stop.

use super::{Engine, NEVER, PlainLane, PlainLine, PlainSwitch, Table};
use sanloom_scsi::random::{SplitMix64, mix};
use sanloom_sim::net::infiniband::{Arbitration, InfinibandPlan, Station};
use sanloom_transport::infiniband::fabric::{Fabric, Guid, PortId};
use sanloom_transport::infiniband::lids::Lids;
use sanloom_transport::infiniband::manager;
use std::collections::BTreeMap;

impl Engine {
    pub fn new(plan: &InfinibandPlan) -> Engine {
        let mut lines = Vec::new();
        for link in &plan.links {
            for [near, far] in [[0, 1], [1, 0]] {
                let number = lines.len() as u64;
                let (from, to) = (link.ends[near], link.ends[far]);
                let (latency_ps, early, management) = match to {
                    Station::Switch { switch, .. } => {
                        let switch = &plan.switches[usize::from(switch)];
                        (switch.latency_ps, switch.cut_through, switch.management_blocks)
                    }
                    Station::Interface(_) => (0, false, 0),
                };
                let (life_ps, inputs) = match from {
                    Station::Switch { switch, .. } => {
                        let switch = &plan.switches[usize::from(switch)];
                        (switch.life_ps[usize::from(matches!(to, Station::Interface(_)))], switch.ports)
                    }
                    Station::Interface(_) => (NEVER, 1),
                };
                let free = u32::from(link.blocks[far]);
                let lane = PlainLane { limit: free, free, last_input: usize::from(inputs) - 1, ..PlainLane::default() };
                let mut lanes = [lane; 16];
                lanes[15].free = management.into();
                let Arbitration { high, low, limit } = &link.arbitration[near];
                lines.push(PlainLine {
                    from,
                    to,
                    ps_per_byte: u64::from(link.byte.fraction().0) / u64::from(link.byte.fraction().1),
                    cable_ps: link.propagation_ps,
                    latency_ps,
                    early,
                    data_lanes: link.lanes,
                    life_ps,
                    refresh_every_ps: link.refresh_ps,
                    up: true,
                    free_ps: 0,
                    lanes,
                    waiting: Vec::new(),
                    flying: Vec::new(),
                    flows: Vec::new(),
                    due: Vec::new(),
                    blocked: Vec::new(),
                    leaving: None,
                    high: Table::new(high),
                    low: Table::new(low),
                    limit: (*limit).into(),
                    high_units: 0,
                    refresh_ps: NEVER,
                    chances: [0; 3],
                    dice: SplitMix64(mix(plan.seed ^ mix(number))),
                    packets: 0,
                    bytes: 0,
                    flow_packets: 0,
                    stalls: 0,
                });
            }
        }
        let switches = plan.switches.iter().map(|switch| PlainSwitch {
            levels: switch.levels.clone(),
            ports: switch.ports.into(),
            outputs: BTreeMap::new(),
        });
        let mut engine = Engine {
            now: 0,
            plan: plan.clone(),
            lines,
            switches: switches.collect(),
            lids: Lids::default(),
            holds: vec![false; plan.interfaces.len()],
            held: vec![[0; 16]; plan.interfaces.len()],
            sweep_ps: NEVER,
            delivered: Vec::new(),
            lost: BTreeMap::new(),
        };
        engine.sweep();
        engine
    }

    /// Builds the subnet of all links that are up.
    pub(super) fn sweep(&mut self) {
        let mut fabric = Fabric::default();
        let count = self.plan.switches.len();
        for switch in &self.plan.switches {
            fabric.switch(Guid(switch.guid), switch.ports.into()).expect("a switch");
        }
        for &guid in &self.plan.interfaces {
            fabric.adapter(Guid(guid), 1).expect("an adapter");
        }
        let port = |station| match station {
            Station::Switch { switch, port } => PortId { node: usize::from(switch), port: port + 1 },
            Station::Interface(interface) => PortId { node: count + usize::from(interface), port: 1 },
        };
        for line in self.lines.iter().step_by(2).filter(|line| line.up) {
            fabric.connect(port(line.from), port(line.to)).expect("free ports");
        }
        let at = port(Station::Interface(self.plan.manager));
        if self.lids == Lids::default() {
            self.lids = manager::bring_up(&fabric, at, &self.plan.config).expect("enough LIDs").lids;
        }
        // Each part of a split subnet is found from its first interface.
        let mut found = Vec::new();
        let interfaces = (0..self.plan.interfaces.len() as u16).map(|interface| port(Station::Interface(interface)));
        for manager in std::iter::once(at).chain(interfaces) {
            if found.contains(&manager.node) || self.lids.of(manager).is_none() {
                continue;
            }
            let subnet = manager::sweep(&fabric, manager, &self.plan.config, &self.lids);
            found.extend(subnet.discovered.iter().map(|discovered| discovered.node));
            for (switch, table) in subnet.tables {
                let outputs = table.iter().filter(|entry| entry.1 > 0).map(|(lid, port)| (lid, port - 1));
                self.switches[switch].outputs = outputs.collect();
            }
        }
    }

    pub fn hold(&mut self, interface: u16, holds: bool) {
        self.holds[usize::from(interface)] = holds;
        let number = self.line_of(Station::Interface(interface)) ^ 1;
        for lane in 0..16u8 {
            if !holds && self.held[usize::from(interface)][usize::from(lane)] > 0 {
                let blocks = std::mem::take(&mut self.held[usize::from(interface)][usize::from(lane)]);
                self.release(number, lane, blocks);
            }
        }
    }
}
