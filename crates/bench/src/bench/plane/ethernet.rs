//! The plane of Ethernet with TCP.

use super::{ANSWER_BYTES, Counts, DEPTH, DEVICES, Place, REQUEST_BYTES, Sample, cabling, no_fc};
use sanloom_bare::Shape;
use sanloom_console::machine::thread_cpu;
use sanloom_sim::net::ethernet::{
    Ecn, EthernetLinkPlan, EthernetPlan, EthernetPlane, EthernetSwitchPlan, MemoryPlan, PRIORITIES, PacketFate, Station,
};
use sanloom_sim::net::line::ByteTime;
use sanloom_sim::net::{Net, NetEvent};
use sanloom_sim::tcp::{Endpoint, Stacks};
use sanloom_transport::tcp::{Algorithm, Buffer, Config};
use std::sync::Arc;

/// 10 Gb/s in ps per byte.
pub(super) const PS_PER_BYTE: u32 = 800;
/// Bytes in a queue from which on DCTCP is told: 65 frames, as in the paper of DCTCP.
pub(super) const MARK_BYTES: u64 = 65 * 1518;

/// Runs the hosts.
pub(super) fn sample(shape: Shape, duration_ps: u64) -> Sample {
    let mut hosts = Hosts::new(shape);
    let start = thread_cpu();
    hosts.run(duration_ps);
    let cpu_s = (thread_cpu() - start).as_secs_f64();
    let PacketFate { sent, delivered, packet_hops, .. } = hosts.net.ethernet.fate;
    Sample { counts: Counts { ios: hosts.ios, packet_hops, sent, delivered, events: hosts.net.events() }, cpu_s }
}

/// Hosts and devices that exchange requests and answers over TCP.
struct Hosts {
    net: Net,
    stacks: Stacks,
    /// Bytes that each end has consumed, and those that belong to complete messages.
    consumed: Vec<[u64; 2]>,
    ios: u64,
}

impl Hosts {
    fn new(shape: Shape) -> Hosts {
        let plane = EthernetPlane::new(plan(shape)).expect("the memory suffices");
        let mut hosts =
            Hosts { net: Net::with_ethernet(no_fc(), plane), stacks: Stacks::new(0), consumed: Vec::new(), ios: 0 };
        let config = Arc::new(config());
        for ends in connections(shape) {
            let ends = ends.map(|node| Endpoint { config: config.clone(), interface: node as u16 });
            let end = hosts.stacks.connect(&mut hosts.net, ends, None, None);
            hosts.consumed.extend([[0; 2]; 2]);
            hosts.write(end, DEPTH * REQUEST_BYTES);
        }
        hosts
    }

    fn write(&mut self, end: u32, bytes: u64) {
        let taken = self.stacks.with(&mut self.net, end, |connection, _| connection.send(bytes));
        debug_assert_eq!(taken, bytes, "the send buffer holds all requests in flight");
    }

    fn run(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Packet { packet, .. } => {
                    let end = self.stacks.receive(&mut self.net, &packet);
                    self.read(end);
                }
                NetEvent::Timer(_) => {
                    self.stacks.forget_lost(&mut self.net);
                    self.stacks.timer_expired(&mut self.net);
                }
                _ => {}
            }
        }
    }

    /// Consumes what has arrived, and answers complete messages.
    fn read(&mut self, end: u32) {
        let bytes = self.stacks.connection(end).readable();
        if bytes == 0 {
            return;
        }
        let [message, answer] =
            if end.is_multiple_of(2) { [ANSWER_BYTES, REQUEST_BYTES] } else { [REQUEST_BYTES, ANSWER_BYTES] };
        let [consumed, complete] = &mut self.consumed[end as usize];
        *consumed += bytes;
        let messages = (*consumed - *complete) / message;
        *complete += messages * message;
        if end.is_multiple_of(2) {
            self.ios += messages;
        }
        self.stacks.with(&mut self.net, end, |connection, now| {
            connection.consume(now, bytes);
            connection.send(messages * answer);
        });
    }
}

/// Returns the settings of TCP.
pub(super) fn config() -> Config {
    Config {
        algorithm: Algorithm::Dctcp,
        send_buffer: Buffer::fixed(1 << 20),
        receive_buffer: Buffer::fixed(1 << 20),
        ..Config::linux(1500)
    }
}

/// Returns the host and the device of each connection, in the order of their flows.
pub(super) fn connections(shape: Shape) -> impl Iterator<Item = [u32; 2]> {
    let count = shape.hosts();
    let devices = move |host| (0..DEVICES.min(count)).map(move |device| [host, count + (host + device) % count]);
    (0..count).flat_map(devices)
}

/// Returns the cabling of the core/edge fabric at 10 Gb/s.
pub(super) fn plan(shape: Shape) -> EthernetPlan {
    let switch = |ports: usize| EthernetSwitchPlan {
        memory: MemoryPlan {
            bytes: 16 << 20,
            cell_bytes: 1,
            reserve_bytes: 0,
            headroom_bytes: vec![0; ports],
            alpha_256: 256,
            lossy_alpha_256: 256,
            resume_bytes: 0,
        },
        lossless: 0,
        pauses_links: false,
        latency_ps: 700_000,
        cut_through: false,
        ecn: [Some(Ecn { from_bytes: MARK_BYTES, all_bytes: MARK_BYTES, chance: 0 }); PRIORITIES],
        longest_bytes: 1522,
        vlans: vec![u32::MAX; ports],
    };
    let link = |ends: [Station; 2]| EthernetLinkPlan {
        ends,
        byte: ByteTime::new(PS_PER_BYTE, 1),
        propagation_ps: 50_000,
        reaction_ps: 0,
        shares: [[0; PRIORITIES]; 2],
    };
    let (cables, ports) = cabling(shape);
    let station = |place| match place {
        Place::Node(node) => Station::Interface(node as u16),
        Place::Port(switch, port) => Station::Switch { switch: switch as u16, port: port as u16 },
    };
    EthernetPlan {
        switches: ports.into_iter().map(|ports| switch(ports as usize)).collect(),
        links: cables.into_iter().map(|ends| link(ends.map(station))).collect(),
        interfaces: shape.nodes() as u16,
        seed: 1,
    }
}
