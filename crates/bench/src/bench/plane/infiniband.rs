//! The plane of InfiniBand with reliable connections.
//!
//! A read is a SEND of the host, RDMA WRITEs of the device and its SEND, as in SRP.

use super::{ANSWER_BYTES, Counts, DEPTH, DEVICES, Place, REQUEST_BYTES, Sample, cabling, no_fc};
use sanloom_bare::Shape;
use sanloom_console::machine::thread_cpu;
use sanloom_sim::infiniband::{Endpoint, Event, Pairs};
use sanloom_sim::net::ethernet::EthernetPlane;
use sanloom_sim::net::infiniband::{
    self, InfinibandLinkPlan, InfinibandPlan, InfinibandPlane, InfinibandSwitchPlan, PacketFate, Station, byte_time,
    life_ps, refresh_ps,
};
use sanloom_sim::net::{Net, NetEvent};
use sanloom_transport::infiniband::arbitration::SlToVl;
use sanloom_transport::infiniband::manager::Config as Subnet;
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::partition::PKey;
use sanloom_transport::infiniband::rate::{Rate, Speed, Width};
use sanloom_transport::infiniband::rc::Config;
use sanloom_transport::infiniband::rc::packet::Operation;
use sanloom_transport::infiniband::rc::requester::Work;

/// Rate of all links.
const RATE: Rate = Rate { speed: Speed::Sdr, width: Width::X4 };
/// Blocks of an input buffer, as in a maker's model.
const BLOCKS: u16 = 200;

/// Hosts and devices that exchange requests and answers.
struct Hosts {
    net: Net,
    pairs: Pairs,
    ios: u64,
}

/// Runs the hosts.
pub(super) fn sample(shape: Shape, duration_ps: u64) -> Sample {
    let mut hosts = Hosts::new(shape);
    let start = thread_cpu();
    hosts.run(duration_ps);
    let cpu_s = (thread_cpu() - start).as_secs_f64();
    let PacketFate { sent, delivered, packet_hops, .. } = hosts.net.infiniband.fate;
    Sample { counts: Counts { ios: hosts.ios, packet_hops, sent, delivered, events: hosts.net.events() }, cpu_s }
}

impl Hosts {
    fn new(shape: Shape) -> Hosts {
        let plane = InfinibandPlane::new(plan(shape)).expect("a valid fabric");
        let net = infiniband::network(no_fc(), EthernetPlane::default(), plane);
        let mut hosts = Hosts { net, pairs: Pairs::new(0), ios: 0 };
        let config = Config { mtu: Mtu::B2048, ..Config::SOFT_ROCE };
        let count = shape.hosts();
        for host in 0..count {
            for device in 0..DEVICES.min(count) {
                let device = count + (host + device) % count;
                let ends = [host, device].map(|node| Endpoint { interface: node as u16, key: PKey::DEFAULT, level: 0 });
                let end = hosts.pairs.connect(&hosts.net, ends, 0, config).expect("all nodes are known");
                hosts.pairs.post_receives(end, u32::MAX);
                hosts.pairs.post_receives(end + 1, u32::MAX);
                (0..DEPTH).for_each(|_| hosts.post(end, Operation::Send, REQUEST_BYTES));
            }
        }
        hosts
    }

    fn post(&mut self, end: u32, operation: Operation, length: u64) {
        self.pairs.post(&mut self.net, end, Work { id: 0, operation, length: length as u32 });
    }

    fn run(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Infiniband { packet, .. } => {
                    self.pairs.receive(&mut self.net, &packet);
                    while let Some((end, event)) = self.pairs.poll_event() {
                        if event == Event::Message(Operation::Send, REQUEST_BYTES as u32) {
                            self.answer(end);
                        }
                    }
                }
                NetEvent::Timer(_) => self.pairs.timer_expired(&mut self.net),
                _ => {}
            }
        }
    }

    /// Answers a request of a host, or begins the next read.
    fn answer(&mut self, end: u32) {
        if end.is_multiple_of(2) {
            self.ios += 1;
        } else {
            self.post(end, Operation::Write, ANSWER_BYTES);
        }
        self.post(end, Operation::Send, REQUEST_BYTES);
    }
}

/// Returns the cabling of the core/edge fabric at 4x SDR.
fn plan(shape: Shape) -> InfinibandPlan {
    let (cables, ports) = cabling(shape);
    let station = |place| match place {
        Place::Node(node) => Station::Interface(node as u16),
        Place::Port(switch, port) => Station::Switch { switch: switch as u16, port: port as u8 },
    };
    let switch = |(number, ports): (u64, u32)| InfinibandSwitchPlan {
        guid: number,
        ports: ports as u8,
        latency_ps: 100_000,
        cut_through: true,
        levels: vec![SlToVl::spread(1)],
        life_ps: [life_ps(18), life_ps(16)],
        management_blocks: BLOCKS,
    };
    let link = |ends: [Place; 2]| InfinibandLinkPlan {
        ends: ends.map(station),
        byte: byte_time(RATE),
        propagation_ps: 50_000,
        lanes: 1,
        blocks: [BLOCKS; 2],
        refresh_ps: refresh_ps(RATE.speed),
        arbitration: Default::default(),
    };
    InfinibandPlan {
        switches: (1..).zip(ports).map(switch).collect(),
        links: cables.into_iter().map(link).collect(),
        interfaces: (0..u64::from(shape.nodes())).map(|node| (1 << 32) + 16 * node).collect(),
        manager: 0,
        config: Subnet::default(),
        sweep_ps: 1_000_000_000,
        levels: SlToVl::spread(1),
        seed: 1,
    }
}
