//! Sessions between hosts and one storage system whose medium takes no time.

use crate::ethernet::fabric::Fabric;
use sanloom_scsi::iscsi::initiator::{Command, LoginConfig, SessionConfig};
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::iscsi::target::{Limits, Node, Portal, Target};
use sanloom_scsi::scsi::{
    DataDirection, Device, DeviceConfig, Io, IoOp, IoStatus, IoTag, Notice, PortConfig, PortName, UnitConfig,
};
use sanloom_scsi::time::Span;
use sanloom_sim::iscsi::{AdapterPlan, Around, Event, Iscsi, IscsiPlan, Load, Machine, Order, SessionPlan, TargetPlan};
use sanloom_sim::net::ethernet::EthernetPlan;
use sanloom_sim::net::{Net, NetEvent};
use sanloom_transport::tcp::Config;
use sanloom_wire::cdb::Cdb;
use std::sync::Arc;

const ADDRESS: &str = "192.0.2.1:3260";
pub const TARGET: &str = "iqn.2026-11.example.sanloom:disk";

/// The storage system.
pub struct Medium {
    pub device: Device,
    /// Block I/O in the order of its begin.
    pub ios: Vec<(IoOp, u32)>,
    /// Work of processors.
    pub loads: Vec<(Machine, Load)>,
    /// Processor time of a frame of the host in ps.
    pub frame_ps: u64,
    free_ps: u64,
}

impl Around for Medium {
    fn device(&mut self, _: u16) -> &mut Device {
        &mut self.device
    }
    fn submit(&mut self, _: &mut Net, _: u16, _: u16, io: &Io) -> Option<IoStatus> {
        self.ios.push((io.op, io.bytes));
        Some(IoStatus::Good)
    }
    fn cancel(&mut self, _: &mut Net, _: u16, _: u16, _: IoTag) -> bool {
        false
    }
    fn notify(&mut self, _: &mut Net, _: u16, _: u16, notice: Notice) {
        panic!("no Fibre Channel port: {notice:?}");
    }
    fn work(&mut self, owner: Machine, now_ps: u64, _interface: u16, load: Load) -> u64 {
        self.loads.push((owner, load));
        if matches!(owner, Machine::Storage(_)) || self.frame_ps == 0 {
            return now_ps;
        }
        self.free_ps = self.free_ps.max(now_ps) + self.frame_ps * u64::from(load.segments);
        self.free_ps
    }
}

/// Hosts at the interfaces before the last one, and the storage system at the last.
pub struct Bed {
    pub net: Net,
    pub iscsi: Iscsi,
    pub medium: Medium,
    pub events: Vec<(u64, Event)>,
}

pub fn offers(digests: Digests) -> Offers {
    Offers { header_digest: digests, data_digest: digests, ..Offers::default() }
}

/// Returns TCP settings with buffers for 10 GbE.
pub fn tcp(mtu: u16) -> Config {
    Config { send_buffer: sanloom_transport::tcp::Buffer::fixed(4 << 20), ..Config::linux(mtu) }
}

impl Bed {
    pub fn new(plan: EthernetPlan, mtu: u16, digests: Digests) -> Bed {
        let storage = plan.interfaces - 1;
        let config = Arc::new(tcp(mtu));
        let portals = vec![Portal { address: ADDRESS.into(), group: 1 }];
        let target = Target { offers: offers(digests), portals, ..Target::new(TARGET) };
        let session = |host: u16| SessionPlan {
            initiator: Machine::Host(host),
            host,
            hba: 0,
            storage: 0,
            port: 0,
            interfaces: [host, storage],
            tag: None,
            tcp: [config.clone(), config.clone()],
            login: LoginConfig {
                initiator: format!("iqn.2026-11.example.sanloom:host{host}"),
                target: Some(TARGET.into()),
                isid: [0x80, 0, 0, 0, 0, host as u8],
                offers: offers(digests),
                own: None,
                target_proof: None,
                challenge: [0; 16],
                timeout: Span::from_secs(15),
            },
            timeouts: SessionConfig::default(),
            depth: 128,
            address: ADDRESS.into(),
            reconnect: Span::from_secs(2),
            front: None,
            via: None,
        };
        let adapters = (0..storage).map(Machine::Host).chain([Machine::Storage(0)]);
        let plan_of = IscsiPlan {
            sessions: (0..storage).map(session).collect(),
            targets: vec![Some(TargetPlan {
                node: Arc::new(Node { targets: vec![target], ..Node::default() }),
                fc_ports: 0,
                portals: 1,
                limits: Limits::default(),
                frame_bytes: None,
            })],
            adapters: adapters.map(AdapterPlan::immediate).collect(),
            ..IscsiPlan::default()
        };
        let mut net = Fabric::with_timers(plan, Iscsi::TIMERS).net;
        let mut iscsi = Iscsi::new(plan_of, 0);
        iscsi.start(&mut net);
        let name = PortName::Iscsi { target: TARGET.into(), portal_group: 1 };
        let device = Device::new(DeviceConfig {
            ports: vec![PortConfig { name, group: 1 }],
            units: vec![UnitConfig::new(1 << 20, 512)],
            ..DeviceConfig::default()
        });
        let medium = Medium { device, ios: Vec::new(), loads: Vec::new(), frame_ps: 0, free_ps: 0 };
        Bed { net, iscsi, medium, events: Vec::new() }
    }

    /// Runs to a time. Returns false if `stop` ended it before.
    pub fn run(&mut self, until_ps: u64, mut stop: impl FnMut(&Event) -> bool) -> bool {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Packet { packet, .. } => self.iscsi.packet(&mut self.net, &mut self.medium, &packet),
                NetEvent::Timer(timer) => self.iscsi.timer_expired(&mut self.net, &mut self.medium, timer),
                other => panic!("{other:?}"),
            }
            let mut stops = false;
            while let Some(event) = self.iscsi.poll_event() {
                stops |= stop(&event);
                self.events.push((self.net.now(), event));
            }
            if stops {
                return false;
            }
        }
        self.net.ethernet.check().expect("conserved");
        true
    }

    pub fn log_in(&mut self) {
        self.run(100_000_000_000, |_| false);
        assert!((0..self.iscsi.plans().len() as u32).all(|session| self.iscsi.is_up(session)));
    }

    pub fn submit(&mut self, session: u32, tag: u64, write: bool, bytes: u32) {
        let blocks = bytes / 512;
        let (lba, fua) = (0, false);
        let (cdb, direction) = match write {
            true => (Cdb::Write { lba, blocks, fua }, DataDirection::Write),
            false => (Cdb::Read { lba, blocks, fua }, DataDirection::Read),
        };
        let order = Order::Submit(Command { id: tag, lun: [0; 8], cdb: cdb.to_bytes(), direction, bytes });
        self.iscsi.order(&mut self.net, &mut self.medium, session, order);
    }
}
