//! Tables of the links of all planes, of Ethernet and of InfiniBand. Counters are those since the
//! first login.

use crate::net::ethernet::{self, PRIORITIES};
use crate::net::infiniband;
use crate::world::World;
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::view::{
    ChannelRow, ChannelsView, ConnectionRow, ConnectionsView, EthernetPortRow, EthernetSwitchRow, EthernetView,
    InfinibandPortRow, InfinibandSwitchRow, InfinibandView, LinkRow, LinksView, Plane, PlaneWhich, Table,
};
use sanloom_fc::config::{InfinibandEnd, InfinibandNode};
use sanloom_fc::san::{Lab, forwarder_mismatch, infiniband_adapter_guid, infiniband_switch_guid, rate_names};
use sanloom_transport::tcp::Connection;
use std::array::from_fn;
use std::collections::BTreeMap;

/// Returns a table of the planes.
pub(super) fn table(world: &World, which: PlaneWhich) -> Table {
    match which {
        PlaneWhich::Links => Table::Links(links(world)),
        PlaneWhich::Ethernet => Table::Ethernet(ethernet(world)),
        PlaneWhich::Connections => Table::Connections(connections(world)),
        PlaneWhich::Infiniband => Table::Infiniband(infiniband(world)),
        PlaneWhich::Channels => Table::Channels(channels(world)),
    }
}

fn links(world: &World) -> LinksView {
    let (lab, net) = (&world.lab, &world.net);
    let (names, rates) = (crate::results::Names::new(lab), rate_names(lab));
    let fibre_channel = (0..).zip(&lab.links).map(|(number, link)| LinkRow {
        link: link.name.clone(),
        plane: if link.fcoe.is_some() { Plane::Virtual } else { Plane::FibreChannel },
        ends: link.ends.map(|end| names.port(&end)),
        rate: rates[usize::from(number)].clone(),
        up: net.fc.link_is_up(number),
        reason: forwarder_mismatch(lab, link).map_or(String::new(), |mismatch| format!("the {mismatch}")),
    });
    let ethernet = lab.ethernet_links.iter().zip(net.ethernet.lines().iter().step_by(2)).map(|(link, line)| LinkRow {
        link: link.name.clone(),
        plane: Plane::Ethernet,
        ends: link.ends.map(|end| end.name(lab)),
        rate: link.rate.name().to_owned(),
        up: line.up,
        reason: String::new(),
    });
    let infiniband = lab.infiniband.links.iter().zip(net.infiniband.lines().iter().step_by(2));
    let infiniband = infiniband.map(|(link, line)| LinkRow {
        link: link.name.clone(),
        plane: Plane::Infiniband,
        ends: link.ends.map(|end| end.name(lab)),
        rate: link.rate.name().to_owned(),
        up: line.up,
        reason: String::new(),
    });
    LinksView { links: fibre_channel.chain(ethernet).chain(infiniband).collect() }
}

fn ethernet(world: &World) -> EthernetView {
    let (lab, plane) = (&world.lab, &world.net.ethernet);
    let mut lost = BTreeMap::<u32, BTreeMap<String, u64>>::new();
    for (line, why, frames) in plane.losses() {
        *lost.entry(line).or_default().entry(why.name().to_owned()).or_default() += frames;
    }
    let ends = (0u32..).zip(&lab.ethernet_links).flat_map(|(number, link)| [0, 1].map(|side| (number, link, side)));
    let ports = ends.map(|(number, link, side)| {
        // Line 2n + side leaves from the end `side` of link n.
        let (tx, rx) = (2 * number + side as u32, 2 * number + 1 - side as u32);
        let [line, reverse] = [tx, rx].map(|line| &plane.lines()[line as usize]);
        let count = line.count();
        let paused = line.pauses_by_name(from_fn(|priority| line.paused_ps(priority, world.net.now())));
        let headroom_max_bytes = match line.from {
            ethernet::Station::Switch { switch, port } => {
                let memory = plane.memory(switch);
                (0..PRIORITIES).map(|p| memory.group(port.into(), p).headroom_max_bytes).max().unwrap_or(0)
            }
            ethernet::Station::Interface(_) => 0,
        };
        EthernetPortRow {
            port: link.ends[side].name(lab),
            attached: link.ends[1 - side].name(lab),
            link: link.name.clone(),
            rate: link.rate.name().to_owned(),
            light: line.up,
            frames_sent: count.packets,
            bytes_sent: count.bytes,
            pauses_sent: count.pauses,
            pauses_received: reverse.count().pauses,
            paused_s: paused.filter(|(_, ps)| *ps > 0).map(|(name, ps)| (name, s_of_ps(ps))).collect(),
            marked_frames: count.marked,
            queued_bytes: (0..PRIORITIES).map(|priority| line.queued_bytes(priority)).sum(),
            queue_max_bytes: line.queue_max_bytes(),
            headroom_max_bytes,
            discards: lost.get(&rx).cloned().unwrap_or_default(),
        }
    });
    let ports: Vec<EthernetPortRow> = ports.collect();
    let switches = (0u16..).zip(&lab.ethernet_switches).map(|(number, switch)| {
        let memory = plane.memory(number);
        let is_own =
            |line: &ethernet::Line| matches!(line.from, ethernet::Station::Switch { switch, .. } if switch == number);
        // The rows have the order of the lines.
        let own = || plane.lines().iter().zip(&ports).filter(|(line, _)| is_own(line)).map(|(_, row)| row);
        let mut discards = BTreeMap::new();
        for (why, frames) in own().flat_map(|row| &row.discards) {
            *discards.entry(why.clone()).or_default() += frames;
        }
        EthernetSwitchRow {
            switch: switch.name.clone(),
            ports: own().count() as u32,
            memory_bytes: switch.memory_bytes,
            memory_held_bytes: memory.held_bytes(),
            memory_max_bytes: memory.max_bytes(),
            pauses_sent: own().map(|row| row.pauses_sent).sum(),
            marked_frames: own().map(|row| row.marked_frames).sum(),
            discards,
        }
    });
    EthernetView { switches: switches.collect(), ports }
}

/// Returns the name of an interface of IP: one of Ethernet, or behind these one of InfiniBand.
fn interface_name(lab: &Lab, interface: u16) -> String {
    let ethernet = lab.ethernet_interfaces();
    match ethernet.get(usize::from(interface)) {
        Some(own) => own.end.name(lab),
        None => {
            let number = usize::from(interface) - ethernet.len();
            lab.infiniband_interfaces().get(number).map_or_else(String::new, |own| own.end.name(lab))
        }
    }
}

fn connections(world: &World) -> ConnectionsView {
    let row = |[end, peer]: [&String; 2], carries: &str, connection: &Connection| {
        let counters = connection.counters();
        ConnectionRow {
            end: end.clone(),
            peer: peer.clone(),
            carries: carries.to_owned(),
            state: connection.state().name().to_owned(),
            window_bytes: connection.congestion_window().into(),
            threshold_bytes: connection.threshold().map(u64::from),
            round_trip_us: connection.round_trip().map(|span| span.as_ns() as f64 / 1e3),
            receive_buffer_bytes: connection.receive_buffer().into(),
            // The first byte has position 1.
            acknowledged_bytes: connection.acknowledged().saturating_sub(1),
            received_bytes: connection.received().saturating_sub(1),
            retransmissions: counters.retransmissions,
            timeouts: counters.timeouts.into(),
            recoveries: counters.recoveries.into(),
            marks: counters.marks.into(),
        }
    };
    let name = |interface| interface_name(&world.lab, interface);
    let sessions = world.iscsi.iter().flat_map(|iscsi| {
        (0..).zip(iscsi.plans()).flat_map(move |(number, plan)| {
            let [host, portal] = plan.interfaces.map(name);
            let ends = [0, 1].map(|side| iscsi.connection(number, side));
            let rows = ends.into_iter().zip([[&host, &portal], [&portal, &host]]);
            let rows = rows.filter_map(|(connection, names)| Some(row(names, "iscsi", connection?)));
            rows.collect::<Vec<ConnectionRow>>()
        })
    });
    let tunnels = (0u16..).zip(&world.lab.links).flat_map(|(number, link)| {
        let names = crate::results::Names::new(&world.lab);
        let [listens, opens] = link.ends.map(|end| names.port(&end));
        let ends = world.fcip.as_ref().and_then(|fcip| fcip.connections(number));
        ends.into_iter().flat_map(move |[listener, opener]| {
            [row([&opens, &listens], "fcip", opener), row([&listens, &opens], "fcip", listener)]
        })
    });
    ConnectionsView { connections: sessions.chain(tunnels).collect() }
}

fn guid(number: u64) -> String {
    format!("{number:#018x}")
}

fn infiniband(world: &World) -> InfinibandView {
    let (lab, plane, now) = (&world.lab, &world.net.infiniband, world.net.now());
    let interfaces = lab.infiniband_interfaces();
    let mut lost = BTreeMap::<u32, BTreeMap<String, u64>>::new();
    for (line, why, packets) in plane.losses() {
        *lost.entry(line).or_default().entry(why.name().to_owned()).or_default() += packets;
    }
    let numbers = 0..interfaces.len() as u16;
    let mut lids: Vec<u16> =
        numbers.filter_map(|number| plane.lids_of(number)).flat_map(|range| range.lids()).collect();
    lids.sort_unstable();
    let ends = (0u32..).zip(&lab.infiniband.links).flat_map(|(number, link)| [0, 1].map(|side| (number, link, side)));
    let ports = ends.map(|(number, link, side)| {
        let (tx, rx) = (2 * number + side as u32, 2 * number + 1 - side as u32);
        let [line, reverse] = [tx, rx].map(|line| &plane.lines()[line as usize]);
        let (count, (credit_waits, credit_wait_ps)) = (line.count(), line.credit_waits(now));
        let end = link.ends[side];
        let interface = match end.node {
            InfinibandNode::Switch(_) => None,
            InfinibandNode::Host(_) | InfinibandNode::Storage(_) => interfaces.iter().position(|own| own.end == end),
        };
        InfinibandPortRow {
            port: end.name(lab),
            guid: interface.map(|interface| guid(infiniband_adapter_guid(interface as u16))),
            lid: interface.and_then(|interface| plane.lid(interface as u16)),
            routes: match end.node {
                InfinibandNode::Switch(switch) => {
                    let leaves = |lid: &&u16| plane.output(switch, **lid).map(u16::from) == Some(end.port);
                    lids.iter().filter(leaves).copied().collect()
                }
                InfinibandNode::Host(_) | InfinibandNode::Storage(_) => Vec::new(),
            },
            attached: link.ends[1 - side].name(lab),
            link: link.name.clone(),
            rate: link.rate.name().to_owned(),
            light: line.up,
            packets_sent: count.packets,
            bytes_sent: count.bytes,
            flow_sent: count.flow,
            lane_credits: (0..line.data_lanes()).map(|lane| line.available(reverse, lane, now)).collect(),
            blocks: lab.infiniband_blocks(link, 1 - side),
            queued_packets: (0..infiniband::LANES as u8).map(|lane| u64::from(plane.queued(tx, lane))).sum(),
            credit_waits,
            credit_wait_s: s_of_ps(credit_wait_ps),
            lane_stalls: count.stalls,
            discards: lost.get(&rx).cloned().unwrap_or_default(),
        }
    });
    let ports: Vec<InfinibandPortRow> = ports.collect();
    let switches = (0u16..).zip(&lab.infiniband.switches).map(|(number, switch)| {
        let has_route = |lid: &&u16| plane.output(number, **lid).is_some();
        let is_own = |end: &&InfinibandEnd| end.node == InfinibandNode::Switch(number);
        InfinibandSwitchRow {
            switch: switch.name.clone(),
            guid: guid(infiniband_switch_guid(number)),
            lid: plane.switch_lid(number),
            ports: lab.infiniband.links.iter().flat_map(|link| &link.ends).filter(is_own).count() as u32,
            routes: lids.iter().filter(has_route).count() as u32,
        }
    });
    InfinibandView { switches: switches.collect(), ports }
}

fn channels(world: &World) -> ChannelsView {
    let lab = &world.lab;
    let interfaces = lab.infiniband_interfaces();
    let rows = world.srp.iter().flat_map(|srp| {
        let interfaces = &interfaces;
        (0..).zip(srp.plans()).map(move |(number, plan)| {
            let [initiator, target] = plan.interfaces.map(|own| interfaces[usize::from(own)].end.name(lab));
            let count = srp.count(number);
            ChannelRow {
                initiator,
                target,
                up: srp.is_up(number),
                connections: count.connections,
                requests: count.requests,
                responses: count.responses,
                credit_waits: count.credit_waits,
                rdma_written_bytes: count.rdma_bytes[0],
                rdma_read_bytes: count.rdma_bytes[1],
                repetitions: count.repetitions,
            }
        })
    });
    ChannelsView { channels: rows.collect() }
}
