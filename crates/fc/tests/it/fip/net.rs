//! Ethernet segment with stations: whole switches behind an FCF, hosts, and probes that send
//! scripted frames. Every frame is encoded and parsed.

use crate::fip::host::HostStation;
use crate::fip::peer::PeerStation;
use sanloom_fc::config::CostRule;
use sanloom_fc::config::{IslChoice, ZoneDefault, Zoning};
use sanloom_fc::domain::DomainConfig;
use sanloom_fc::fabric::{Decision, Egress, Fib, FibDelta, ZoneSet};
use sanloom_fc::fabric_switch::{self, FabricSwitch, FabricSwitchConfig, IslConfig};
use sanloom_fc::fip::fcf::{self, Fcf, FcfConfig};
use sanloom_fc::fip::{Bindings, Ingress};
use sanloom_fc::fip::{enode, vn2vn};
use sanloom_fc::fspf::FspfConfig;
use sanloom_fc::names::NamesConfig;
use sanloom_fc::nport::{self, NPort};
use sanloom_fc::switch::{Policy, SwitchConfig};
use sanloom_fc::zoning::server::ZoneServerConfig;
use sanloom_fc::zoning::{ZoneDatabase, Zones};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fip::{Fip, FipFrame};
use sanloom_wire::sw_ils::FlowControl;
use sanloom_wire::{Frame, Payload, Wwnn};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Delay of the segment.
const DELAY: Span = Span::from_us(20);
pub const PORTS: u16 = 64;

/// Faults of the segment, in percent of the frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentFaults {
    pub lost: u64,
    pub repeated: u64,
    pub late: u64,
}

pub enum Station {
    Switch(Box<SwitchStation>),
    Host(Box<HostStation>),
    Peer(Box<PeerStation>),
    Probe(Vec<(Instant, Vec<u8>)>),
}

/// Switch with one FCF.
pub struct SwitchStation {
    pub switch: FabricSwitch,
    pub fcf: Fcf,
    pub fib: Fib,
    pub bindings: Bindings,
    pub events: Vec<fcf::Event>,
    pub refused: BTreeMap<Ingress, u64>,
    fabric_name: Wwnn,
}

pub struct Net {
    pub now: Instant,
    pub stations: Vec<Station>,
    pub faults: SegmentFaults,
    dice: SplitMix64,
    flight: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: BTreeMap<u64, (usize, Vec<u8>)>,
    sent: u64,
    /// Stations that are unplugged from the segment.
    pub unplugged: Vec<usize>,
}

pub fn switch_name(number: usize) -> Wwnn {
    Wwnn(0x1000_0000_0000_0100 + number as u64)
}

pub fn fcf_mac(number: usize) -> MacAddr {
    MacAddr([0x02, 0xfc, 0xf0, 0, 0, number as u8])
}

pub fn fcf_config(number: usize) -> FcfConfig {
    FcfConfig::new(fcf_mac(number), switch_name(number), (10..40).collect())
}

pub fn switch_config(number: usize) -> FabricSwitchConfig {
    let name = switch_name(number);
    let zoning = Zoning { zones: Vec::new(), default: ZoneDefault::Open };
    FabricSwitchConfig {
        services: SwitchConfig {
            domain: None,
            name,
            fabric_name: name,
            ports: PORTS,
            e_d_tov: Span::from_secs(2),
            r_a_tov: Span::from_secs(10),
            rscn_delay: Span::from_ms(5),
            bb_credit: vec![16; usize::from(PORTS)],
            bb_sc_n: Vec::new(),
            receive_size_bytes: 2112,
            zoning: Arc::new(ZoneSet::new(&zoning)),
            policy: Policy::default(),
        },
        domain: DomainConfig {
            switch_name: name,
            priority: 128,
            preferred: Some(number as u8 + 1),
            insistent: false,
            allow_rcf: false,
            auto_reconfigure: false,
            f_s_tov: Span::from_secs(5),
        },
        zones: ZoneServerConfig::default(),
        database: Zones::new(ZoneDatabase::of_zoning(&zoning, "test")),
        fspf: FspfConfig::default(),
        cost_rule: CostRule::Standard,
        names: NamesConfig::default(),
        flow_control: vec![FlowControl::R_RDY],
        isls: vec![
            IslConfig { bytes_per_s: 1_250_000_000, bb_credit: 16, bb_sc_n: 0, bundle: None };
            usize::from(PORTS)
        ],
    }
}

impl Net {
    pub fn new(seed: u64) -> Net {
        Net {
            now: Instant::ZERO,
            stations: Vec::new(),
            faults: SegmentFaults::default(),
            dice: SplitMix64(seed),
            flight: BinaryHeap::new(),
            frames: BTreeMap::new(),
            sent: 0,
            unplugged: Vec::new(),
        }
    }

    pub fn add_switch(&mut self, config: FabricSwitchConfig, fcf: FcfConfig) -> usize {
        let station = SwitchStation {
            switch: FabricSwitch::new(self.now, config),
            bindings: Bindings::new(fcf.mac, fcf.fc_map),
            fcf: Fcf::new(fcf),
            fib: Fib::new(0, PORTS, IslChoice::DevicePair),
            events: Vec::new(),
            refused: BTreeMap::new(),
            fabric_name: Wwnn(0),
        };
        self.stations.push(Station::Switch(Box::new(station)));
        let at = self.stations.len() - 1;
        self.drain_switch(at);
        self.fcf(at, fcf::Input::LinkUp);
        at
    }

    pub fn add_probe(&mut self) -> usize {
        self.stations.push(Station::Probe(Vec::new()));
        self.stations.len() - 1
    }

    pub fn switch(&self, at: usize) -> &SwitchStation {
        let Station::Switch(station) = &self.stations[at] else { panic!("station {at} is no switch") };
        station
    }

    fn switch_mut(&mut self, at: usize) -> &mut SwitchStation {
        let Station::Switch(station) = &mut self.stations[at] else { panic!("station {at} is no switch") };
        station
    }

    /// Frames received by a probe since the last call.
    pub fn received(&mut self, at: usize) -> Vec<Vec<u8>> {
        let Station::Probe(received) = &mut self.stations[at] else { panic!("station {at} is no probe") };
        std::mem::take(received).into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// FIP packets received by a probe since the last call, with the lengths of their frames.
    pub fn received_fip(&mut self, at: usize) -> Vec<(EtherHeader, Fip, usize)> {
        let fip = |bytes: Vec<u8>| {
            let (header, pdu) = EtherHeader::parse(&bytes).expect("a header");
            (header.ether_type == EtherType::FIP).then(|| (header, Fip::parse(pdu).expect("FIP"), bytes.len()))
        };
        self.received(at).into_iter().filter_map(fip).collect()
    }

    /// FCoE frames received by a probe since the last call.
    pub fn received_fcoe(&mut self, at: usize) -> Vec<(EtherHeader, Frame)> {
        let frame = |bytes: Vec<u8>| {
            let (header, pdu) = EtherHeader::parse(&bytes).expect("a header");
            (header.ether_type == EtherType::FCOE).then(|| {
                let fcoe = Fcoe::parse(pdu).expect("FCoE");
                assert!(fcoe.crc_is_right());
                (header, Frame::parse(fcoe.frame, None).expect("a frame"))
            })
        };
        self.received(at).into_iter().filter_map(frame).collect()
    }

    pub fn fcf(&mut self, at: usize, input: fcf::Input) {
        let now = self.now;
        self.switch_mut(at).fcf.handle(now, input);
        self.drain_fcf(at);
    }

    /// Requests a disruptive reconfiguration at a switch: all domains are assigned anew and all
    /// ports log in again.
    pub fn rebuild(&mut self, at: usize) {
        let now = self.now;
        self.switch_mut(at).switch.handle(now, fabric_switch::Input::Rebuild { disruptive: true });
        self.drain_switch(at);
    }

    /// Restarts the switch behind a station without any state.
    pub fn restart(&mut self, at: usize, config: FabricSwitchConfig, fcf: FcfConfig) {
        let spare = self.add_switch(config, fcf);
        self.stations.swap(at, spare);
        self.stations.pop();
    }

    /// Sends a frame from a station to all others.
    pub fn send(&mut self, from: usize, bytes: Vec<u8>) {
        if self.unplugged.contains(&from) {
            return;
        }
        for to in (0..self.stations.len()).filter(|to| *to != from) {
            if self.unplugged.contains(&to) || self.dice.chance(self.faults.lost) {
                continue;
            }
            let times = 1 + u64::from(self.dice.chance(self.faults.repeated));
            for _ in 0..times {
                let late = if self.dice.chance(self.faults.late) { self.dice.bits() % 3_000_000 } else { 0 };
                let at = self.now + DELAY + Span::from_ns(late);
                self.flight.push(Reverse((at, self.sent)));
                self.frames.insert(self.sent, (to, bytes.clone()));
                self.sent += 1;
            }
        }
    }

    /// Number of frames so far, counted at each receiver.
    pub fn frames(&self) -> u64 {
        self.sent
    }

    pub fn send_fip(&mut self, from: usize, frame: &FipFrame) {
        let mut bytes = Vec::new();
        frame.emit(None, &mut bytes);
        let (header, pdu) = EtherHeader::parse(&bytes).expect("a header");
        assert_eq!((header.to, header.from), (frame.to, frame.from));
        assert_eq!(Fip::parse(pdu).as_ref(), Ok(&frame.packet), "a sent packet survives encoding");
        self.send(from, bytes);
    }

    pub fn send_fcoe(&mut self, from: usize, to: MacAddr, source: MacAddr, frame: &Frame) {
        let mut bytes = Vec::new();
        fcoe::encapsulate(to, source, None, frame, &mut bytes);
        self.send(from, bytes);
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let arrival = self.flight.peek().map(|Reverse((at, _))| *at);
            let timer = (0..self.stations.len()).filter_map(|at| Some((self.timeout(at)?, at))).min();
            let Some(at) = arrival.into_iter().chain(timer.map(|(at, _)| at)).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let Some(Reverse((_, number))) = self.flight.pop() else { break };
                let Some((to, bytes)) = self.frames.remove(&number) else { continue };
                self.arrive(to, bytes);
            } else if let Some((_, station)) = timer {
                self.time_out(station);
            }
        }
        self.now = end;
    }

    fn timeout(&self, at: usize) -> Option<Instant> {
        match &self.stations[at] {
            Station::Switch(station) => {
                station.fcf.poll_timeout().into_iter().chain(station.switch.poll_timeout()).min()
            }
            Station::Host(host) => {
                let ports = host.nports.iter().map(NPort::poll_timeout);
                ports.chain([host.enode.poll_timeout()]).flatten().min()
            }
            Station::Peer(peer) => peer.vn2vn.poll_timeout().into_iter().chain(peer.nport.poll_timeout()).min(),
            Station::Probe(_) => None,
        }
    }

    fn time_out(&mut self, at: usize) {
        let now = self.now;
        match &mut self.stations[at] {
            Station::Switch(station) => {
                station.fcf.handle(now, fcf::Input::Timeout);
                station.switch.handle(now, fabric_switch::Input::Timeout);
                self.drain_switch(at);
            }
            Station::Host(host) => {
                host.enode.handle(now, enode::Input::Timeout);
                host.nports.iter_mut().for_each(|port| port.handle(now, nport::Input::Timeout));
                self.drain_host(at);
            }
            Station::Peer(peer) => {
                peer.vn2vn.handle(now, vn2vn::Input::Timeout);
                peer.nport.handle(now, nport::Input::Timeout);
                self.drain_peer(at);
            }
            Station::Probe(_) => {}
        }
    }

    fn arrive(&mut self, at: usize, bytes: Vec<u8>) {
        let now = self.now;
        if let Station::Probe(received) = &mut self.stations[at] {
            return received.push((now, bytes));
        }
        let Ok((header, pdu)) = EtherHeader::parse(&bytes) else { return };
        let own = match &self.stations[at] {
            Station::Switch(station) => station.bindings.mac(),
            Station::Host(host) => host.mac,
            Station::Peer(peer) => peer.mac,
            Station::Probe(_) => MacAddr::ZERO,
        };
        let for_us = header.to.is_group() || header.to == own;
        let (to, from) = (header.to, header.from);
        match (header.ether_type, &self.stations[at]) {
            (EtherType::FIP, Station::Switch(_)) if for_us => {
                self.fcf(at, fcf::Input::Fip { to, from, pdu: pdu.into() });
            }
            (EtherType::FIP, Station::Peer(_)) if for_us => {
                self.vn2vn(at, vn2vn::Input::Fip { to, from, pdu: pdu.into() });
            }
            (EtherType::FCOE, Station::Peer(_)) => self.fcoe_at_peer(at, header, pdu),
            (EtherType::FIP, _) if for_us => self.enode(at, enode::Input::Fip { to, from, pdu: pdu.into() }),
            (EtherType::FCOE, Station::Switch(_)) if for_us => self.fcoe_at_switch(at, header, pdu),
            (EtherType::FCOE, Station::Host(_)) => self.fcoe_at_host(at, header, pdu),
            _ => {}
        }
    }

    fn fcoe_at_switch(&mut self, at: usize, header: EtherHeader, pdu: &[u8]) {
        let Ok(fcoe) = Fcoe::parse(pdu) else { return };
        let Some((d_id, s_id, ox_id)) = fcoe::addresses(pdu) else { return };
        let now = self.now;
        let station = self.switch_mut(at);
        let ingress = station.bindings.ingress(header.to, header.from, s_id);
        let Ingress::Port(port) = ingress else {
            *station.refused.entry(ingress).or_default() += 1;
            return;
        };
        match station.fib.decide(port, s_id, d_id, ox_id) {
            Decision::Local => {
                let Ok(frame) = Frame::parse(fcoe.frame, None) else { return };
                // An accept can only be parsed with its request, so the switch parses replies
                // itself.
                let payload = Payload::Bytes(fcoe.frame[24..].into());
                let frame = Frame { payload, ..frame };
                station.switch.handle(now, fabric_switch::Input::Frame { port, frame });
                self.drain_switch(at);
            }
            Decision::Forward(Egress::Port(port)) => {
                let (to, from) = (station.bindings.egress(port, d_id), station.bindings.mac());
                let mut bytes = Vec::new();
                EtherHeader { to, from, tag: None, ether_type: EtherType::FCOE }.emit(&mut bytes);
                bytes.extend_from_slice(pdu);
                self.send(at, bytes);
            }
            _ => {}
        }
    }

    fn drain_fcf(&mut self, at: usize) {
        while let Some(output) = self.switch_mut(at).fcf.poll_output() {
            let now = self.now;
            match output {
                fcf::Output::Fip(frame) => self.send_fip(at, &frame),
                fcf::Output::Fcoe { to, frame } => {
                    let from = self.switch(at).bindings.mac();
                    self.send_fcoe(at, to, from, &frame);
                }
                fcf::Output::Switch(input) => {
                    self.switch_mut(at).switch.handle(now, input);
                    self.drain_switch(at);
                }
                fcf::Output::Bind(change) => self.switch_mut(at).bindings.apply(change),
                fcf::Output::Event(event) => self.switch_mut(at).events.push(event),
            }
        }
    }

    fn drain_switch(&mut self, at: usize) {
        let now = self.now;
        while let Some(output) = self.switch_mut(at).switch.poll_output() {
            let station = self.switch_mut(at);
            match output {
                fabric_switch::Output::Fib(delta) => {
                    station.fib.apply(&delta);
                    if let FibDelta::RemoveId { id } = delta {
                        station.fcf.handle(now, fcf::Input::Removed { port_id: id });
                    }
                }
                fabric_switch::Output::Send { port, frame } => {
                    station.fcf.handle(now, fcf::Input::Send { port, frame });
                }
                fabric_switch::Output::Event(event) => {
                    if let fabric_switch::Event::Principal(name) = event {
                        station.fabric_name = name;
                    }
                    let (name, available) = (station.fabric_name, station.switch.domain().is_some());
                    station.fcf.handle(now, fcf::Input::Fabric { name, available });
                }
                fabric_switch::Output::Persist { .. } | fabric_switch::Output::Zones { .. } => {}
            }
        }
        self.drain_fcf(at);
    }
}
