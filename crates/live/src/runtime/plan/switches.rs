//! The switches of a runtime, and what their ports are attached to.

use super::hosts::host_port;
use super::state::Kept;
use super::{Places, served};
use crate::lldp::Agent;
use crate::ports::{Datagram, Driver, EthernetPort, Packet, PortError, Stream, Tap};
use crate::record::SwitchHead;
use crate::runtime::{Attachment, LivePort, LiveSwitch, Runtime, Segment, SwitchZones, UpError};
use sanloom_core::config::{Carrier, Ethernet, Lab, Link, Node};
use sanloom_core::fabric::{Fib, ZoneSet};
use sanloom_core::fabric_switch::{FabricSwitch, FabricSwitchConfig};
use sanloom_core::fip::fcf::FcfConfig;
use sanloom_core::fip::vlan::VlanResponder;
use sanloom_core::zoning::Zones;
use sanloom_wire::ether::FcMap;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The end of a link at a switch that runs here.
#[derive(Clone, Copy, Debug)]
pub(super) struct End<'l> {
    /// The switch, by index in the lab.
    pub(super) switch: u16,
    /// Its port.
    pub(super) port: u16,
    pub(super) number: usize,
    pub(super) link: &'l Link,
    /// 0 for the end that the link names first.
    pub(super) side: usize,
}

/// A switch as it will be, before anything of it is opened.
#[derive(Debug)]
pub(crate) struct SwitchPlan<'l> {
    /// Its machines.
    pub(crate) machine: FabricSwitchConfig,
    /// What is at its ports; segments are counted from those before.
    attachments: Vec<Attachment>,
    bundles: BTreeMap<u16, Vec<u16>>,
    /// Its Ethernet ports.
    pub(crate) segments: Vec<SegmentPlan<'l>>,
}

/// A place where a switch will hear FIP and FCoE.
#[derive(Debug)]
pub(crate) struct SegmentPlan<'l> {
    end: End<'l>,
    ethernet: &'l Ethernet,
    /// Its controller.
    pub(crate) config: FcfConfig,
}

/// A switch of a lab, by index, with what it begins with. `here`: the switches of the process; `first_segment`: the number of
/// segments of those before.
pub(crate) fn plan_switch<'l>(
    lab: &'l Lab,
    here: &[u16],
    number: u16,
    kept: Kept,
    first_segment: usize,
) -> SwitchPlan<'l> {
    let config = &lab.switches[usize::from(number)];
    let zones = Arc::new(ZoneSet::new(&kept.database.zoning()));
    let mut machine = FabricSwitchConfig::of_lab(lab, number, zones, Zones::new(kept.database));
    machine.services.policy.persistent.extend(kept.addresses);
    let mut attachments = vec![Attachment::Nothing; usize::from(config.ports)];
    let mut bundles: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    let mut segments = Vec::new();
    for end in ends_of(lab, number) {
        if let Some(bundle) = end.link.bundle {
            bundles.entry(bundle).or_default().push(end.port);
        }
        attachments[usize::from(end.port)] = match lab.live.ethernet.get(&end.number) {
            None => inside_end(lab, here, end),
            Some(ethernet) => {
                // Further virtual links have ports behind those of the lab.
                let more = attachments.len() as u16..attachments.len() as u16 + (ethernet.enodes - 1);
                let ports = std::iter::once(end.port).chain(more.clone()).collect();
                let segment = first_segment + segments.len();
                segments.push(SegmentPlan {
                    end,
                    ethernet,
                    config: fcf(lab, end, ethernet, machine.services.name, ports),
                });
                attachments.extend(more.map(|_| Attachment::Segment(segment)));
                Attachment::Segment(segment)
            }
        };
    }
    machine.services.ports = attachments.len() as u16;
    SwitchPlan { machine, attachments, bundles, segments }
}

/// What is at the other end of a link that is no Ethernet.
fn inside_end(lab: &Lab, here: &[u16], end: End<'_>) -> Attachment {
    let other = end.link.ends[1 - end.side];
    let found = match other.node {
        Node::Storage(system) => served(lab, here)
            .iter()
            .position(|served| *served == system)
            .map(|system| Attachment::Storage { system, port: other.port }),
        Node::Switch(switch) => {
            let number = here.iter().position(|here| *here == switch);
            number.map(|switch| Attachment::Cable { switch, port: other.port })
        }
        // Any other host without Ethernet exists in simulations only.
        Node::Host(_) => host_port(lab, here, other.node, other.port).map(Attachment::Host),
    };
    found.unwrap_or(Attachment::Nothing)
}

/// The controller at an Ethernet port, with these ports of its switch for virtual links.
pub(super) fn fcf(lab: &Lab, end: End<'_>, ethernet: &Ethernet, switch_name: Wwnn, ports: Vec<u16>) -> FcfConfig {
    let fcoe = lab.live.fcoe(end.switch);
    let between_switches = end.link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    let timers = &lab.timers;
    FcfConfig {
        fc_map: FcMap([0x0e, 0xfc, fcoe.fc_map]),
        vf_id: lab.vf_id(end.switch).unwrap_or(0),
        priority: fcoe.priority,
        period: fcoe.keep_alive.to_span(),
        enodes: !between_switches,
        neighbours: between_switches,
        e_d_tov: timers.e_d_tov.to_span(),
        r_a_tov: timers.r_a_tov.to_span(),
        vlans: ethernet.vlan.into_iter().collect(),
        ..FcfConfig::new(lab.switches[usize::from(end.switch)].fcf_mac(end.port), switch_name, ports)
    }
}

impl Runtime {
    /// `kept`: of each switch that runs here, what it begins with. Says it, and when each was made.
    pub(super) fn make_switches(&mut self, places: &Places, kept: Vec<Kept>) -> Result<Vec<SwitchHead>, UpError> {
        let lab = self.lab.clone();
        let mut heads = Vec::new();
        for (number, kept) in self.lab_switches.clone().into_iter().zip(kept) {
            let config = &lab.switches[usize::from(number)];
            let zones = SwitchZones::new(kept.database.clone(), kept.previous.clone());
            let address = |(name, id): (&Wwpn, &FcId)| (name.to_string(), id.to_string());
            let (begun, addresses) = ((&kept.database).into(), kept.addresses.iter().map(address).collect());
            let plan = plan_switch(&lab, &self.lab_switches, number, kept, self.segments.len());
            for SegmentPlan { end, ethernet, config } in plan.segments {
                let port = self.open(places, end, ethernet, None)?;
                self.segments.push(Segment::new(port, ethernet.vlan, self.switches.len(), end.port, config));
                self.ports[port].segments.push(self.segments.len() - 1);
            }
            let mut fib = Fib::new(0, plan.machine.services.ports, config.isl_choice);
            for (bundle, members) in &plan.bundles {
                members.iter().for_each(|port| fib.join_bundle(*port, members[0], *bundle));
            }
            let made = self.clock.now();
            heads.push(SwitchHead { name: config.name.clone(), made_ns: made.as_ns(), zones: begun, addresses });
            let machine = FabricSwitch::new(made, plan.machine);
            let mut switch = LiveSwitch::new(&config.name, machine, fib, plan.attachments, plan.bundles);
            switch.zones = zones;
            self.switches.push(switch);
        }
        self.answer_for_vlans();
        Ok(heads)
    }

    /// Hosts that ask where all segments of a port have a VLAN are told of them.
    pub(super) fn answer_for_vlans(&mut self) {
        for port in &mut self.ports {
            let vlans: Vec<u16> = port.segments.iter().filter_map(|segment| self.segments[*segment].vlan).collect();
            let first = port.segments.first().filter(|_| vlans.len() == port.segments.len());
            port.vlans = first.map(|first| VlanResponder::new(self.segments[*first].mac(), vlans));
        }
    }

    /// The Ethernet port of a link, with what was opened for it if that is done already. Links with the same address share one.
    pub(super) fn open(
        &mut self,
        places: &Places,
        end: End<'_>,
        ethernet: &Ethernet,
        driver: Option<Driver>,
    ) -> Result<usize, PortError> {
        let same = |port: &LivePort| {
            let other = port.link.and_then(|link| self.lab.live.ethernet.get(&link));
            other.is_some_and(|other| {
                other.address.is_some() && (other.carrier, &other.address) == (ethernet.carrier, &ethernet.address)
            })
        };
        // Both ends of a link between two switches of this process are ports of their own.
        if let Some(found) = self.ports.iter().position(|port| port.link != Some(end.number) && same(port)) {
            return Ok(found);
        }
        let second = end.side == 1 && matches!(end.link.ends[0].node, Node::Switch(_));
        let driver = driver.map_or_else(|| open(places, &end.link.name, ethernet, second), Ok)?;
        let mut port = LivePort::new(EthernetPort::new(&end.link.name, driver), Some(end.number));
        let mac = self.lab.switches[usize::from(end.switch)].fcf_mac(end.port);
        port.agent = ethernet.dcbx.then(|| Agent::new(mac, &end.link.name, false));
        let is_closed = |port: &LivePort| matches!(port.ethernet.driver, Driver::Closed);
        let number = self.ports.iter().position(is_closed).unwrap_or(self.ports.len());
        match self.ports.get_mut(number) {
            // Full queues of others may still hold back who was here.
            Some(place) => *place = LivePort { held: place.held, ..port },
            None => self.ports.push(port),
        }
        Ok(number)
    }
}

/// What carries the frames of a port that is called `name`. `second`: another sanloom is at the first end of the link.
pub(super) fn open(places: &Places, name: &str, ethernet: &Ethernet, second: bool) -> Result<Driver, PortError> {
    let (own, peer) = places.sockets(name, ethernet, second);
    let interface = ethernet.address.as_deref().unwrap_or_default();
    Ok(match ethernet.carrier {
        Carrier::Datagram => Driver::Datagram(Datagram::bind(&own, &peer)?),
        Carrier::Stream if second || ethernet.peer.is_some() => Driver::Stream(Stream::connect(&peer)),
        Carrier::Stream => Driver::Stream(Stream::listen(&own)?),
        Carrier::Tap => Driver::Tap(Tap::open(interface)?),
        Carrier::Packet => Driver::Packet(Packet::open(interface)?),
        Carrier::Descriptor => {
            let number = interface
                .parse()
                .map_err(|_| PortError::Descriptor { number: -1, error: std::io::ErrorKind::InvalidInput.into() })?;
            Driver::Datagram(Datagram::inherit(number)?)
        }
    })
}

/// The ends of links at a switch, in the order of the lab.
fn ends_of(lab: &Lab, switch: u16) -> impl Iterator<Item = End<'_>> {
    lab.links.iter().enumerate().flat_map(move |(number, link)| {
        let ends = link.ends.iter().enumerate().filter(move |(_, end)| end.node == Node::Switch(switch));
        ends.map(move |(side, end)| End { switch, port: end.port, number, link, side })
    })
}
