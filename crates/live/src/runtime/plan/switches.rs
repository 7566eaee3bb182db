//! The switches of a runtime, and the attachments of their ports.

use super::fcip;
use super::hosts::host_port;
use super::state::Kept;
use super::{Builder, LabPaths, served};
use crate::driven::Driven;
use crate::lldp::Agent;
use crate::ports::{Datagram, Driver, EthernetPort, Packet, PortError, Stream, Tap};
use crate::record::{Machine, SwitchHead};
use crate::runtime::UpError;
use crate::runtime::fabric::segment::Segment;
use crate::runtime::fabric::switch::{Attachment, LiveSwitch};
use crate::runtime::instance::Instance;
use crate::runtime::operations::zones::SwitchZones;
use crate::runtime::ports::LivePort;
use sanloom_fc::config::{Carrier, Ethernet, FcipAddresses, Link, Node};
use sanloom_fc::fabric::{Fib, ZoneSet};
use sanloom_fc::fabric_switch::{FabricSwitch, FabricSwitchConfig};
use sanloom_fc::fip::fcf::FcfConfig;
use sanloom_fc::fip::vlan::VlanResponder;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::Zones;
use sanloom_wire::ether::FcMap;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// End of a link at a switch of this process.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct End<'l> {
    /// The switch, by index in the lab.
    pub(in crate::runtime) switch: u16,
    /// Its port.
    pub(in crate::runtime) port: u16,
    pub(in crate::runtime) number: usize,
    pub(in crate::runtime) link: &'l Link,
    /// 0 at the end that the link names first.
    pub(in crate::runtime) side: usize,
}

/// Plan of a switch, before anything is opened.
#[derive(Debug)]
pub(crate) struct SwitchPlan<'l> {
    /// Configuration of its machines.
    pub(crate) machine: FabricSwitchConfig,
    /// Attachments of its ports. Segment indices continue from the earlier switches.
    attachments: Vec<Attachment>,
    bundles: BTreeMap<u16, Vec<u16>>,
    /// Ethernet segments.
    pub(crate) segments: Vec<SegmentPlan<'l>>,
    /// Ends of FCIP links. Their attachments follow when their ports are open.
    tunnels: Vec<(End<'l>, &'l FcipAddresses)>,
}

/// Plan of a segment of a switch.
#[derive(Debug)]
pub(crate) struct SegmentPlan<'l> {
    end: End<'l>,
    ethernet: &'l Ethernet,
    /// Configuration of its FIP controller.
    pub(crate) config: FcfConfig,
}

/// Plans a switch of a lab, by index, with its initial state. `here`: the switches of the process;
/// `first_segment`: the number of segments of earlier switches.
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
    let mut tunnels = Vec::new();
    for end in ends_of(lab, number) {
        if let Some(addresses) = lab.live.fcip.get(&end.number) {
            tunnels.push((end, addresses));
            continue;
        }
        if let Some(bundle) = end.link.bundle {
            bundles.entry(bundle).or_default().push(end.port);
        }
        attachments[usize::from(end.port)] = match lab.live.ethernet.get(&end.number) {
            None => inside_end(lab, here, end),
            Some(ethernet) => {
                // Ports for further virtual links are numbered after those of the lab.
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
    SwitchPlan { machine, attachments, bundles, segments, tunnels }
}

/// Attachment at the other end of a link without Ethernet.
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
        // Loops exist in simulations only.
        Node::Loop(_) => None,
    };
    found.unwrap_or(Attachment::Nothing)
}

/// Returns the configuration of the FCF at an Ethernet port. `ports`: ports of its switch for
/// virtual links.
pub(in crate::runtime) fn fcf(
    lab: &Lab,
    end: End<'_>,
    ethernet: &Ethernet,
    switch_name: Wwnn,
    ports: Vec<u16>,
) -> FcfConfig {
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

impl Builder<'_> {
    /// Creates the switches with their initial states. Returns both, with the times of creation.
    pub(super) fn make_switches(&mut self, kept: Vec<Kept>) -> Result<Vec<SwitchHead>, UpError> {
        let instance = &mut self.instance;
        let lab = instance.lab.clone();
        let mut heads = Vec::new();
        for (number, kept) in instance.lab_switches.clone().into_iter().zip(kept) {
            let config = &lab.switches[usize::from(number)];
            let zones = SwitchZones::new(kept.database.clone(), kept.previous.clone());
            let address = |(name, id): (&Wwpn, &FcId)| (name.to_string(), id.to_string());
            let (begun, addresses) = ((&kept.database).into(), kept.addresses.iter().map(address).collect());
            let here = instance.fabric.switches.len();
            let plan = plan_switch(&lab, &instance.lab_switches, number, kept, instance.fabric.segments.len());
            for SegmentPlan { end, ethernet, config } in plan.segments {
                let port = open_port(instance, self.lab_paths, end, ethernet, None)?;
                let segment = instance.fabric.segments.len();
                let at = ((port, ethernet.vlan), (here, end.port));
                instance.fabric.segments.push(Segment::new(segment, at.0, at.1, config, &instance.recording));
                instance.ports[port].segments.push(segment);
            }
            let mut attachments = plan.attachments;
            for (end, addresses) in plan.tunnels {
                let port = fcip::open(instance, end, addresses, plan.machine.services.name, here)?;
                attachments[usize::from(end.port)] = Attachment::Tunnel(port);
            }
            let ports = plan.machine.services.ports;
            let mut fib = Fib::new(0, ports, config.isl_choice).with_salt(config.isl_salt());
            for (bundle, members) in &plan.bundles {
                members.iter().for_each(|port| fib.join_bundle(*port, members[0], *bundle));
            }
            let made = self.clock.now();
            heads.push(SwitchHead { name: config.name.clone(), made_ns: made.as_ns(), zones: begun, addresses });
            let machine = FabricSwitch::new(made, plan.machine);
            let machine = Driven::new(machine, Machine::Switch(here), &instance.recording);
            let mut switch = LiveSwitch::new(&config.name, machine, fib, attachments, plan.bundles);
            switch.zones = zones;
            instance.fabric.switches.push(switch);
        }
        update_vlans(instance);
        Ok(heads)
    }
}

/// Updates the answers to VLAN requests of ports where all segments have a VLAN.
pub(in crate::runtime) fn update_vlans(instance: &mut Instance) {
    let segments = &instance.fabric.segments;
    for port in instance.ports.iter_mut() {
        let vlans: Vec<u16> = port.segments.iter().filter_map(|segment| segments[*segment].vlan).collect();
        let first = port.segments.first().filter(|_| vlans.len() == port.segments.len());
        port.vlans = first.map(|first| VlanResponder::new(segments[*first].mac(), vlans));
    }
}

/// Returns the index of the Ethernet port of a link. Links with the same address share one.
/// Otherwise it is opened with `driver` or a new driver.
pub(in crate::runtime) fn open_port(
    instance: &mut Instance,
    lab_paths: &LabPaths,
    end: End<'_>,
    ethernet: &Ethernet,
    driver: Option<Driver>,
) -> Result<usize, PortError> {
    let Instance { lab, ports, recording, .. } = instance;
    let same = |port: &LivePort| {
        let other = port.link.and_then(|link| lab.live.ethernet.get(&link));
        other.is_some_and(|other| {
            other.address.is_some() && (other.carrier, &other.address) == (ethernet.carrier, &ethernet.address)
        })
    };
    // Both ends of a link between two switches of this process have their own port.
    if let Some(found) = ports.iter().position(|port| port.link != Some(end.number) && same(port)) {
        return Ok(found);
    }
    let second = end.side == 1 && matches!(end.link.ends[0].node, Node::Switch(_));
    let driver = driver.map_or_else(|| open(lab_paths, &end.link.name, ethernet, second), Ok)?;
    let number = ports.add(LivePort::new(EthernetPort::new(&end.link.name, driver), Some(end.number)));
    let mac = lab.switches[usize::from(end.switch)].fcf_mac(end.port);
    let agent = || Agent::recorded(mac, &end.link.name, false, Machine::Agent(number), recording);
    ports[number].agent = ethernet.dcbx.then(agent);
    Ok(number)
}

/// Opens the driver of a port. `name` is that of its link; `second`: another sanloom has the first
/// end of the link.
pub(in crate::runtime) fn open(
    lab_paths: &LabPaths,
    name: &str,
    ethernet: &Ethernet,
    second: bool,
) -> Result<Driver, PortError> {
    let (own, peer) = lab_paths.sockets(name, ethernet, second);
    let interface = match ethernet.carrier {
        Carrier::Packet if second => ethernet.peer.as_ref().or(ethernet.address.as_ref()),
        _ => ethernet.address.as_ref(),
    };
    let interface = interface.map_or("", String::as_str);
    Ok(match ethernet.carrier {
        Carrier::Datagram => Driver::Datagram(Datagram::bind(&own, &peer)?),
        Carrier::Stream if second || ethernet.peer.is_some() => Driver::Stream(Stream::connect(&peer)),
        Carrier::Stream => Driver::Stream(Stream::listen(&own)?),
        Carrier::Tap if !second => Driver::Tap(Tap::open(interface)?),
        // A process that does not own the tap uses it as an interface.
        Carrier::Tap | Carrier::Packet => Driver::Packet(Packet::open(interface)?),
        Carrier::Descriptor => {
            let number = interface
                .parse()
                .map_err(|_| PortError::Descriptor { number: -1, error: std::io::ErrorKind::InvalidInput.into() })?;
            Driver::Datagram(Datagram::inherit(number)?)
        }
    })
}

/// Ends of links at a switch, in the order of the lab.
fn ends_of(lab: &Lab, switch: u16) -> impl Iterator<Item = End<'_>> {
    lab.links.iter().enumerate().flat_map(move |(number, link)| {
        let ends = link.ends.iter().enumerate().filter(move |(_, end)| end.node == Node::Switch(switch));
        ends.map(move |(side, end)| End { switch, port: end.port, number, link, side })
    })
}
