//! Small Ethernet fabrics for tests.

use sanloom_sim::net::ethernet::{
    EthernetLinkPlan, EthernetPlan, EthernetPlane, EthernetSwitchPlan, MemoryPlan, PRIORITIES, Packet, Station,
};
use sanloom_sim::net::line::ByteTime;
use sanloom_sim::net::{Net, NetEvent, NetPlan};

/// Time of a byte at 1 Gb/s, in ps.
pub const GIGABIT: u32 = 8_000;
/// The lossless priority.
pub const LINK: u8 = 3;

/// A running fabric and the frames that it has delivered: time, interface and frame.
pub struct Fabric {
    pub net: Net,
    pub delivered: Vec<(u64, u16, Packet)>,
    /// False if delivered frames are counted only.
    pub keeps: bool,
}

/// Returns a frame of the lossless priority.
pub fn frame(from: u16, to: u16, position: u32, bytes: u16) -> Packet {
    Packet::new(from, to, u32::from(from) << 16 | u32::from(to), position, bytes).with_priority(LINK)
}

/// Returns a store-and-forward switch with 12 MB, a latency of 1 us and one lossless priority.
pub fn switch(ports: usize) -> EthernetSwitchPlan {
    EthernetSwitchPlan {
        memory: MemoryPlan {
            bytes: 12_000_000,
            cell_bytes: 1,
            reserve_bytes: 4_096,
            headroom_bytes: vec![40_000; ports],
            alpha_256: 32,
            lossy_alpha_256: 256,
            resume_bytes: 3_072,
        },
        lossless: 1 << LINK,
        pauses_links: false,
        latency_ps: 1_000_000,
        cut_through: false,
        ecn: [None; PRIORITIES],
        longest_bytes: 9_238,
        vlans: vec![u32::MAX; ports],
    }
}

/// Returns a link of 10 m.
pub fn link(ends: [Station; 2], gbits: u32) -> EthernetLinkPlan {
    EthernetLinkPlan {
        ends,
        byte: ByteTime::new(GIGABIT / gbits, 1),
        propagation_ps: 50_000,
        reaction_ps: 118 * 51_200,
        shares: [[0; PRIORITIES]; 2],
    }
}

impl Fabric {
    /// Returns one switch with `hosts` interfaces, one at each port.
    pub fn star(hosts: usize, gbits: u32) -> EthernetPlan {
        let ends = |host: u16| [Station::Interface(host), Station::Switch { switch: 0, port: host }];
        EthernetPlan {
            switches: vec![switch(hosts)],
            links: (0..hosts as u16).map(|host| link(ends(host), gbits)).collect(),
            interfaces: hosts as u16,
            seed: 1,
        }
    }

    pub fn new(plan: EthernetPlan) -> Fabric {
        Fabric::with_timers(plan, 0)
    }

    /// Returns a fabric with timers for the layers above.
    pub fn with_timers(plan: EthernetPlan, timers: u32) -> Fabric {
        let plane = EthernetPlane::new(plan).expect("enough memory");
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
        Fabric { net: Net::with_ethernet(none, plane), delivered: Vec::new(), keeps: true }
    }

    pub fn send(&mut self, packet: Packet) {
        self.net.send_packet(packet);
    }

    /// Runs to a time and checks that frames and memory are conserved.
    pub fn run_to(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            let NetEvent::Packet { interface, packet } = event else { panic!("{event:?}") };
            if self.keeps {
                self.delivered.push((self.net.now(), interface, packet));
            }
        }
        self.net.ethernet.check().expect("conserved");
    }
}
