//! Frames of discovery and keep-alives of FIP as bytes. An ENode has the address of its interface,
//! a forwarder an FCF-MAC for each virtual link.

use super::ethernet::mac;
use super::fcoe::{fc_map, port_mac};
use crate::fip::Message;
use crate::net::End;
use crate::net::ethernet::Packet;
use crate::world::{Owner, World};
use sanloom_fc::config::FCOE_MTU;
use sanloom_fc::fip::Advertisement;
use sanloom_scsi::time::Span;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, flag};
use sanloom_wire::{FcId, Wwnn, Wwpn};

/// Returns whether a frame has a tag.
pub(super) fn has_tag(world: &World, packet: &Packet, message: Message) -> bool {
    let config = world.lab.links[packet.flow as usize / 2].fcoe;
    !message.is_of_vlan_discovery() && config.is_some_and(|config| config.has_tag())
}

/// Returns a message in words.
pub(crate) fn text(message: Message) -> String {
    match message {
        Message::SolicitedAdvertisement => "solicited discovery advertisement".to_owned(),
        Message::VnPortKeepAlive(port_id) => format!("keep-alive of VN_Port {port_id}"),
        other => other.operation().name().unwrap_or("frame").to_owned(),
    }
}

/// Returns the addresses of a frame.
pub(crate) fn addresses(world: &World, packet: &Packet, message: Message) -> String {
    frame(world, packet, message).map_or(String::new(), |frame| format!("{} > {}", frame.from, frame.to))
}

/// Returns the frame of a packet. `None` for a packet of an unknown lane.
pub(crate) fn frame(world: &World, packet: &Packet, message: Message) -> Option<FipFrame> {
    let lane = world.net.fc.lanes().get(packet.flow as usize)?;
    let link = &world.lab.links[packet.flow as usize / 2];
    let map = fc_map(world, [lane.from, lane.to]);
    let own = port_mac(world, lane.from).unwrap_or_else(|| mac(packet.from));
    let peer = port_mac(world, lane.to).unwrap_or_else(|| mac(packet.to));
    let is_forwarder = matches!(lane.from, End::Switch { .. });
    let to_switch = matches!(lane.to, End::Switch { .. });
    let group = if to_switch { MacAddr::ALL_FCFS } else { MacAddr::ALL_ENODES };
    let flags = flag::FPMA | if is_forwarder { flag::FCF } else { 0 };
    let mut sent = FipFrame {
        to: peer,
        from: own,
        padded_bytes: 0,
        packet: Fip { operation: message.operation(), flags, descriptors: vec![Descriptor::Mac(own)] },
    };
    let descriptors = &mut sent.packet.descriptors;
    match message {
        Message::VlanRequest => (sent.to, sent.packet.flags) = (MacAddr::ALL_FCFS, 0),
        Message::VlanNotification => descriptors.extend(link.fcoe?.vlan.map(Descriptor::Vlan)),
        Message::Solicitation | Message::UnicastSolicitation => {
            if is_forwarder {
                descriptors.push(Descriptor::FcMap(map));
            }
            descriptors.extend([Descriptor::Name(node_name(world, lane.from)), Descriptor::MaxFcoeBytes(FCOE_MTU)]);
            if message == Message::Solicitation {
                sent.to = MacAddr::ALL_FCFS;
            }
        }
        Message::Advertisement | Message::SolicitedAdvertisement => {
            let End::Switch { switch, .. } = lane.from else { return None };
            let (config, name) = (world.lab.live.fcoe(switch), node_name(world, lane.from));
            let machine = &world.control.switches[usize::from(switch)].machine;
            let solicited = message == Message::SolicitedAdvertisement;
            let advertisement = Advertisement {
                mac: own,
                switch_name: name,
                fabric_name: machine.principal().unwrap_or(name),
                fc_map: map,
                vf_id: world.lab.vf_id(switch).unwrap_or(0),
                priority: config.priority,
                period: Span::from_ns(config.keep_alive.0 / 1_000),
                keep_alives: true,
                available: true,
                solicited,
            };
            sent.packet = advertisement.packet();
            match solicited {
                true => sent.padded_bytes = FCOE_MTU,
                false => sent.to = group,
            }
        }
        Message::KeepAlive => {}
        Message::VnPortKeepAlive(port_id) => {
            sent.from = MacAddr::fpma(map, port_id);
            descriptors.push(Descriptor::VxPort { mac: sent.from, port_id, port_name: port_name(world, port_id) });
        }
        Message::ClearVirtualLinks => descriptors.push(Descriptor::Name(node_name(world, lane.from))),
        Message::ClearAll => {
            descriptors.push(Descriptor::Name(node_name(world, lane.from)));
            sent.to = group;
        }
    }
    Some(sent)
}

/// Returns the name of a node or switch.
fn node_name(world: &World, end: End) -> Wwnn {
    match end {
        End::Switch { switch, .. } => world.lab.switches[usize::from(switch)].wwn,
        End::NPort(nport) => match world.nports.nodes[usize::from(nport)].owner {
            Owner::Host { host, .. } => world.lab.hosts[usize::from(host)].wwnn,
            Owner::Storage { storage, .. } => world.lab.storage[usize::from(storage)].wwnn,
        },
        End::Loop { .. } => Wwnn(0),
    }
}

/// Returns the name of the N_Port with an address.
fn port_name(world: &World, port_id: FcId) -> Wwpn {
    let node = world.nports.nodes.iter().find(|node| node.port_id == port_id);
    node.map_or(Wwpn::default(), |node| match node.owner {
        Owner::Host { host, hba } => world.lab.hosts[usize::from(host)].hbas[usize::from(hba)].wwpn,
        Owner::Storage { storage, port } => world.lab.storage[usize::from(storage)].ports[usize::from(port)].wwpn,
    })
}
