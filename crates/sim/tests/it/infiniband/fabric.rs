//! Small InfiniBand fabrics for tests.

use sanloom_sim::net::ethernet::EthernetPlane;
use sanloom_sim::net::infiniband::{
    self, InfinibandLinkPlan, InfinibandPlan, InfinibandPlane, InfinibandSwitchPlan, Packet, Station, byte_time,
    life_ps, refresh_ps,
};
use sanloom_sim::net::{Net, NetEvent, NetPlan};
use sanloom_transport::infiniband::arbitration::SlToVl;
use sanloom_transport::infiniband::manager::Config;
use sanloom_transport::infiniband::rate::{Rate, Speed, Width};

/// 4x SDR: 1 ns per byte.
pub const SDR4: Rate = Rate { speed: Speed::Sdr, width: Width::X4 };

/// A running fabric and the packets that it has delivered: time, interface and packet.
pub struct Fabric {
    pub net: Net,
    pub delivered: Vec<(u64, u16, Packet)>,
}

/// Returns a switch with cut-through and a latency of 100 ns.
pub fn switch(number: u64, ports: u8) -> InfinibandSwitchPlan {
    InfinibandSwitchPlan {
        guid: 0x1000 + number,
        ports,
        latency_ps: 100_000,
        cut_through: true,
        levels: vec![SlToVl::spread(1)],
        life_ps: [life_ps(18), life_ps(16)],
        management_blocks: 64,
    }
}

/// Returns a link of 10 m with one lane and 200 blocks.
pub fn link(ends: [Station; 2], rate: Rate) -> InfinibandLinkPlan {
    InfinibandLinkPlan {
        ends,
        byte: byte_time(rate),
        propagation_ps: 50_000,
        lanes: 1,
        blocks: [200; 2],
        refresh_ps: refresh_ps(rate.speed),
        arbitration: Default::default(),
    }
}

/// Returns GUIDs of adapters, whose ports have GUIDs too.
pub fn guids(count: u16) -> Vec<u64> {
    (0..u64::from(count)).map(|number| 0x10_0000 + 16 * number).collect()
}

/// Returns one switch with `hosts` interfaces, one at each port.
pub fn star(hosts: u8, rate: Rate) -> InfinibandPlan {
    let ends = |host: u8| [Station::Interface(host.into()), Station::Switch { switch: 0, port: host }];
    InfinibandPlan {
        switches: vec![switch(0, hosts)],
        links: (0..hosts).map(|host| link(ends(host), rate)).collect(),
        interfaces: guids(hosts.into()),
        manager: 0,
        config: Config::default(),
        sweep_ps: 10_000_000_000,
        levels: SlToVl::spread(1),
        seed: 1,
    }
}

/// Returns a network of the plane alone.
pub fn network(plan: InfinibandPlan, timers: u32) -> Net {
    let plane = InfinibandPlane::new(plan).expect("a valid plan");
    let none = NetPlan {
        switches: Vec::new(),
        lanes: Vec::new(),
        channels: Vec::new(),
        nports: Vec::new(),
        timers,
        bundles: 0,
        loops: 0,
        fcoe: Default::default(),
        e_d_tov_ps: 2_000_000_000_000,
        hold_time_ps: 500_000_000_000,
    };
    infiniband::network(none, EthernetPlane::default(), plane)
}

impl Fabric {
    pub fn new(plan: InfinibandPlan) -> Fabric {
        Fabric { net: network(plan, 0), delivered: Vec::new() }
    }

    /// Returns a packet from one interface to another.
    pub fn packet(&self, from: u16, to: u16, position: u32, bytes: u16) -> Packet {
        let [from, to] = [from, to].map(|interface| self.net.infiniband.lid(interface).expect("a LID"));
        Packet::new(from, to, 1, position, bytes)
    }

    pub fn send(&mut self, from: u16, packet: Packet) {
        infiniband::send(&mut self.net, from, packet);
    }

    /// Runs to a time and checks that packets are conserved.
    pub fn run_to(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            let NetEvent::Infiniband { interface, packet } = event else { panic!("{event:?}") };
            self.delivered.push((self.net.now(), interface, packet));
        }
        self.net.infiniband.check().expect("conserved");
    }
}
