//! The subnet manager of the plane: sweeps, LIDs and forwarding tables, and links that change.

use super::line::{LANES, Station};
use super::{InfinibandPlan, InfinibandPlane, ObservedKind, PacketLoss};
use crate::net::events::Events;
use crate::net::queue::NEVER;
use sanloom_transport::infiniband::credit::{CreditSender, CreditUpdate};
use sanloom_transport::infiniband::fabric::{Fabric, FabricError, Guid, PortId};
use sanloom_transport::infiniband::lids::{Lids, OutOfLids, Range};
use sanloom_transport::infiniband::manager::{self, Config};
use sanloom_transport::infiniband::routing::{Engine, ForwardingTable, Refusal};

/// Mistake of an [`InfinibandPlan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// The graph is wrong.
    Fabric(FabricError),
    /// The subnet has too many end ports.
    Lids(OutOfLids),
    /// The interface with this number has no link.
    NoLink(u16),
}

/// The subnet manager.
#[derive(Default)]
pub(super) struct Manager {
    /// Nodes without links: switches, then interfaces.
    nodes: Fabric,
    config: Config,
    at: usize,
    /// Time from a change to the new tables, in ps.
    sweep_ps: u64,
    pub lids: Lids,
    switches: usize,
    /// Routing engine of the last sweep, and the reason why it is not the configured one.
    pub routing: (Engine, Option<Refusal>),
}

impl Manager {
    pub fn new(plan: &InfinibandPlan) -> Result<Manager, PlanError> {
        let mut nodes = Fabric::default();
        for switch in &plan.switches {
            nodes.switch(Guid(switch.guid), switch.ports.into()).map_err(PlanError::Fabric)?;
        }
        for &guid in &plan.interfaces {
            nodes.adapter(Guid(guid), 1).map_err(PlanError::Fabric)?;
        }
        let switches = plan.switches.len();
        let at = switches + usize::from(plan.manager);
        Ok(Manager {
            nodes,
            config: plan.config.clone(),
            at,
            sweep_ps: plan.sweep_ps,
            lids: Lids::default(),
            switches,
            ..Manager::default()
        })
    }

    fn port(&self, station: Station) -> PortId {
        match station {
            Station::Switch { switch, port } => PortId { node: switch.into(), port: port.saturating_add(1) },
            Station::Interface(interface) => PortId { node: self.switches + usize::from(interface), port: 1 },
        }
    }

    /// Returns the tables of the switches. The first sweep assigns LIDs. Every interface has a
    /// manager in standby, so each part of a split subnet has one.
    pub fn sweep(
        &mut self,
        links: impl Iterator<Item = [Station; 2]>,
    ) -> Result<Vec<(usize, ForwardingTable)>, PlanError> {
        let mut fabric = self.nodes.clone();
        for ends in links {
            fabric.connect(self.port(ends[0]), self.port(ends[1])).map_err(PlanError::Fabric)?;
        }
        let at = PortId { node: self.at, port: 1 };
        if self.lids == Lids::default() {
            self.lids = manager::assign(&fabric, at, &self.config).map_err(PlanError::Lids)?;
        }
        let standby = (self.switches..fabric.nodes().len()).map(|node| PortId { node, port: 1 });
        let managers = std::iter::once(at).chain(standby);
        let Some(subnet) = manager::sweep_parts(&fabric, managers, &self.config, &self.lids) else {
            return Ok(Vec::new());
        };
        self.routing = (subnet.engine, subnet.refusal);
        Ok(subnet.tables.into_iter().collect())
    }

    /// Returns the base LID of an interface.
    pub fn lid(&self, interface: u16) -> Option<u16> {
        self.lids_of(interface).map(|range| range.base)
    }

    /// Returns the LID of a switch: that of its port 0.
    pub fn switch_lid(&self, switch: u16) -> Option<u16> {
        self.lids.of(PortId { node: switch.into(), port: 0 }).map(|range| range.base)
    }

    /// Returns all LIDs of an interface.
    pub fn lids_of(&self, interface: u16) -> Option<Range> {
        self.lids.of(self.port(Station::Interface(interface)))
    }
}

impl InfinibandPlane {
    /// Applies the tables of a sweep.
    pub(super) fn apply_sweep(&mut self) -> Result<(), PlanError> {
        let links = self.lines.iter().step_by(2).filter(|line| line.up).map(|line| [line.from, line.to]);
        let highest = usize::from(self.manager.lids.highest());
        for (switch, table) in self.manager.sweep(links)? {
            let outputs = &mut self.switches[switch].outputs;
            outputs.clear();
            outputs.resize(highest + 1, u8::MAX);
            for (lid, port) in table.iter().filter(|(_, port)| *port > 0) {
                if outputs.len() <= usize::from(lid) {
                    outputs.resize(usize::from(lid) + 1, u8::MAX);
                }
                outputs[usize::from(lid)] = port - 1;
            }
        }
        Ok(())
    }

    /// The manager has swept the subnet after a change.
    #[cold]
    pub(in crate::net) fn swept(&mut self) {
        self.fate.sweeps += 1;
        // The graph was valid with all links, and LIDs are assigned.
        let _ = self.apply_sweep();
    }

    /// Takes a link down or brings it up. Packets on it and packets queued for it are lost.
    pub(super) fn set_link(&mut self, events: &mut Events, link: u32, up: bool) {
        if self.lines[2 * link as usize].up == up {
            return;
        }
        let both = [2 * link, 2 * link + 1];
        for number in both {
            self.lines[number as usize].up = up;
            self.record(number, events.now, ObservedKind::Light { up });
        }
        if up {
            for number in both {
                // Both ends begin with totals of zero, and announce their free blocks.
                self.lines[number as usize].lanes.iter_mut().for_each(|lane| {
                    lane.sender = CreditSender::default();
                    lane.lost = 0;
                    lane.receiver.receive(CreditUpdate { fctbs: 0, fccl: 0 });
                });
            }
            both.iter().for_each(|&number| self.refresh(events, number));
        } else {
            both.iter().for_each(|&number| _ = self.apply(number, events.now));
            both.iter().for_each(|&number| self.clear(events, number));
        }
        let at_ps = events.now + self.manager.sweep_ps;
        events.queue.schedule_earlier(events.sources.infiniband_sweep(), at_ps);
    }

    fn clear(&mut self, events: &mut Events, number: u32) {
        let line = &mut self.lines[number as usize];
        let on_line = std::mem::take(&mut line.flight);
        line.updates.clear();
        line.due = 0;
        line.blocked = 0;
        if line.starved_ps != NEVER {
            line.set_starved(events.now, false);
        }
        let leaving = line.leaving.take();
        for source in [
            events.sources.infiniband_arrival(number),
            events.sources.infiniband_credit(number),
            events.sources.infiniband_refresh(number),
        ] {
            events.queue.schedule(source, NEVER);
        }
        self.wake_at(events, number, NEVER);
        on_line.into_iter().for_each(|on_line| self.lose(events.now, number, on_line.packet, PacketLoss::LinkDown));
        if let Some(leaving) = leaving {
            self.release(events, leaving.from, leaving.lane, leaving.blocks);
        }
        for lane in 0..LANES as u8 {
            if self.lines[number as usize].used & 1 << lane != 0 {
                while self.discard(events, number, lane, PacketLoss::LinkDown) {}
            }
        }
    }

    /// Lets an interface keep the blocks of arrived packets, or free them all.
    pub(super) fn hold(&mut self, events: &mut Events, interface: u16, holds: bool) {
        self.holds[usize::from(interface)] = holds;
        let number = self.interface_tx[usize::from(interface)] ^ 1;
        if !holds {
            for lane in 0..LANES as u8 {
                let blocks = std::mem::take(&mut self.held[usize::from(interface)][usize::from(lane)]);
                if blocks > 0 {
                    self.release(events, number, lane, blocks);
                }
            }
        }
    }
}
