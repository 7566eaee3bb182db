//! Ethernet of a lab: the plan of its plane, and the TCP settings of its hosts and storage.

use super::{World, fcoe};
use crate::net::Net;
use crate::net::ethernet::{
    Ecn, EthernetLinkPlan, EthernetPlan, EthernetPlane, EthernetSwitchPlan, Line, LineCount, MemoryPlan, PRIORITIES,
    PacketLoss, Station,
};
use crate::net::line::ByteTime;
use sanloom_fc::config::{Congestion, EthernetEnd, EthernetLink, EthernetNode, EthernetSwitch, Tcp, VlanNumbers};
use sanloom_fc::san::Lab;
use sanloom_transport::tcp::{Algorithm, Buffer, Config, Pacing};
use std::collections::BTreeMap;

/// Counters of the lines of the Ethernet plane.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By number of the line.
    pub lines: Vec<LineCounts>,
    /// Lost frames by line and reason.
    pub losses: BTreeMap<(u32, PacketLoss), u64>,
}

/// Counters of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineCounts {
    pub count: LineCount,
    /// Time for which each priority of the sender was paused, in ps.
    pub paused_ps: [u64; PRIORITIES],
}

impl Counts {
    /// Reads the counters since the start of the simulation.
    pub fn read(net: &Net) -> Counts {
        let line = |line: &Line| LineCounts {
            count: line.count(),
            paused_ps: std::array::from_fn(|priority| line.paused_ps(priority, net.now())),
        };
        let losses = net.ethernet.losses().map(|(line, why, frames)| ((line, why), frames));
        Counts { lines: net.ethernet.lines().iter().map(line).collect(), losses: losses.collect() }
    }

    /// Returns the counters as differences to an earlier reading.
    pub(super) fn since(mut self, before: &Counts) -> Counts {
        for (now, before) in self.lines.iter_mut().zip(&before.lines) {
            now.count.packets -= before.count.packets;
            now.count.bytes -= before.count.bytes;
            now.count.pauses -= before.count.pauses;
            now.count.marked -= before.count.marked;
            now.count.refused -= before.count.refused;
            now.count.refused_fcoe -= before.count.refused_fcoe;
            for (now, before) in now.paused_ps.iter_mut().zip(before.paused_ps) {
                // A pause that begins within the reaction time counts from its begin.
                *now = now.saturating_sub(before);
            }
        }
        for (key, before) in &before.losses {
            if let Some(frames) = self.losses.get_mut(key) {
                *frames -= before;
            }
        }
        self
    }

    /// Returns the frames lost on a line or at its end, for the chosen reasons.
    pub fn lost(&self, line: u32, chosen: impl Fn(PacketLoss) -> bool) -> u64 {
        let of_line = self.losses.range((line, PacketLoss::Congestion)..(line + 1, PacketLoss::Congestion));
        of_line.filter(|((_, why), _)| chosen(*why)).map(|(_, frames)| frames).sum()
    }
}

/// Starts recording a link; [`EthernetPlane::observed`] has the frames. Call it before
/// [`World::log_in`].
pub fn watch(world: &mut World, link: u16) {
    world.net.ethernet.watch(link, true);
    fcoe::watch(world);
    world.iscsi.iter_mut().for_each(|iscsi| iscsi.watch());
    world.fcip.iter_mut().for_each(|fcip| fcip.watch());
}

/// Returns the Ethernet plane of a lab that has passed `Lab::validate`. Links have the indices of
/// `Lab::ethernet_links`, interfaces those of `Lab::ethernet_interfaces`.
pub fn plane(lab: &Lab) -> EthernetPlane {
    let plane = EthernetPlane::new(plan(lab));
    let mut plane = plane
        .expect("the memory of every Ethernet switch holds its reserves, as the validation of the lab has checked");
    fcoe::disable_pauses(lab, &mut plane);
    plane
}

/// Returns the plan of the Ethernet plane of a lab.
pub fn plan(lab: &Lab) -> EthernetPlan {
    let interfaces = lab.ethernet_interfaces();
    let numbers: BTreeMap<EthernetEnd, u16> = interfaces.iter().map(|interface| interface.end).zip(0..).collect();
    let station = |end: EthernetEnd| match end.node {
        EthernetNode::Switch(switch) => Station::Switch { switch, port: end.port },
        EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => {
            Station::Interface(numbers[&end])
        }
    };
    let vlans = lab.vlan_numbers();
    let switches = (0..).zip(&lab.ethernet_switches).map(|(number, switch)| switch_plan(lab, number, switch, &vlans));
    let link = |link: &EthernetLink| EthernetLinkPlan {
        ends: link.ends.map(station),
        byte: ByteTime::new(link.rate.ps_per_byte() as u32, 1),
        propagation_ps: link.propagation.0,
        reaction_ps: link.reaction().0,
        shares: [0, 1].map(|side| shares(lab, link, side)),
    };
    EthernetPlan {
        switches: switches.collect(),
        links: lab.ethernet_links.iter().map(link).collect(),
        interfaces: interfaces.len() as u16,
        seed: lab.run.seed,
    }
}

/// Returns the shares of the sender at one end of a link: those of its switch, or of the switch at
/// the other end, whose shares an interface takes over by DCBX.
fn shares(lab: &Lab, link: &EthernetLink, side: usize) -> [u8; PRIORITIES] {
    let of_switch = |side: usize| match link.ends[side].node {
        EthernetNode::Switch(switch) => Some(lab.ethernet_switches[usize::from(switch)].shares),
        EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
    };
    of_switch(side).or_else(|| of_switch(1 - side)).unwrap_or([0; PRIORITIES])
}

fn switch_plan(lab: &Lab, number: u16, switch: &EthernetSwitch, vlans: &VlanNumbers) -> EthernetSwitchPlan {
    let mut ports: BTreeMap<u16, &EthernetLink> = BTreeMap::new();
    for link in &lab.ethernet_links {
        let own = link.ends.iter().filter(|end| end.node == EthernetNode::Switch(number));
        ports.extend(own.map(|end| (end.port, link)));
    }
    let count = ports.last_key_value().map_or(0, |(port, _)| port + 1);
    let at = |port: u16| ports.get(&port).copied();
    EthernetSwitchPlan {
        memory: MemoryPlan {
            bytes: switch.memory_bytes,
            cell_bytes: switch.cell_bytes,
            reserve_bytes: switch.reserve_bytes,
            headroom_bytes: (0..count)
                .map(|port| at(port).map_or(0, |link| lab.headroom_bytes(number, link)))
                .collect(),
            alpha_256: switch.alpha_256,
            lossy_alpha_256: switch.lossy_alpha_256,
            resume_bytes: switch.resume_bytes,
        },
        lossless: switch.lossless,
        pauses_links: switch.pauses_links,
        latency_ps: switch.latency.0,
        cut_through: switch.cut_through,
        ecn: std::array::from_fn(|priority| {
            let marks = switch.ecn.filter(|marks| marks.priorities & 1 << priority != 0)?;
            let chance = (u64::from(marks.chance_ppm) << 32) / 1_000_000;
            Some(Ecn {
                from_bytes: marks.from_bytes,
                all_bytes: marks.to_bytes,
                chance: chance.min(u64::from(u32::MAX)) as u32,
            })
        }),
        longest_bytes: switch.longest_bytes(),
        vlans: (0..count).map(|port| at(port).map_or(u32::MAX, |link| vlans.mask(&link.vlans))).collect(),
    }
}

/// Returns the settings of TCP connections through an interface whose frames have a payload of up
/// to `mtu` bytes.
pub fn tcp_config(tcp: &Tcp, mtu: u16) -> Config {
    let span = |time: sanloom_fc::config::Picos| time.to_span();
    let linux = Config::linux(mtu);
    Config {
        algorithm: match tcp.congestion {
            Congestion::Reno => Algorithm::Reno,
            Congestion::Cubic => Algorithm::Cubic { fast_convergence: true },
            Congestion::Dctcp => Algorithm::Dctcp,
        },
        initial_window: tcp.initial_window,
        sack: tcp.sack,
        timestamps: tcp.timestamps,
        window_scaling: tcp.window_scaling,
        ecn: tcp.ecn,
        send_buffer: tcp.send_buffer_bytes.map_or(linux.send_buffer, Buffer::fixed),
        receive_buffer: tcp.window_bytes.map_or(linux.receive_buffer, Buffer::fixed),
        rto_initial: span(tcp.rto_initial),
        rto_min: span(tcp.rto_min),
        rto_max: span(tcp.rto_max),
        delayed_ack: span(tcp.delayed_ack),
        nagle: tcp.nagle,
        idle_restart: tcp.idle_restart,
        pacing: tcp.pacing.then_some(Pacing::LINUX),
        batch: tcp.batch_bytes,
        ..linux
    }
}
