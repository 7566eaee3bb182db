//! A switch with its forwarding table and N_Ports, without a network. Every message is parsed from
//! bytes and emitted as bytes.

use sanloom_fc::config::{IslChoice, Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::{Decision, Fib, ZoneSet};
use sanloom_fc::switch::{Addressing, HardZoning, Input, Output, Policy, PortKind, Switch, SwitchConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::Ct;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::ns::{NsRequest, one_type};
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, RCtl, Wwnn, Wwpn};
use std::collections::VecDeque;
use std::sync::Arc;

/// Ports of the switch. Consecutive logins use different ports, so that zone-mates do, too.
pub const PORTS: u16 = 256;

/// A switch with its outstanding requests.
pub struct Bench {
    switch: Switch,
    fib: Fib,
    now: Instant,
    rscns: VecDeque<(u16, FcId, u16)>,
    /// Bytes of the last message to an N_Port.
    bytes: Vec<u8>,
    /// Address that the last message was sent to.
    sent_to: FcId,
}

/// Creates zones of consecutive names with `members` in each, or with 2 to 16 in turn. With
/// `all_seeing`, one more port is principal of a zone of all.
pub fn zones(logins: u32, members: Option<u32>, all_seeing: bool) -> Arc<ZoneSet> {
    let mut zones = Vec::new();
    let mut next = 0;
    for size in (2..=16).cycle().map(|size| members.unwrap_or(size)) {
        if next >= logins {
            break;
        }
        let names = (next..logins.min(next + size)).map(name).map(ZoneMember::PortName).collect();
        zones.push(Zone { name: format!("zone{}", zones.len()), members: names, principals: Vec::new() });
        next += size;
    }
    if all_seeing {
        let members = (0..logins).map(name).map(ZoneMember::PortName).collect();
        let principals = vec![ZoneMember::PortName(name(logins))];
        zones.push(Zone { name: "all".into(), members, principals });
    }
    Arc::new(ZoneSet::new(&Zoning { zones, default: ZoneDefault::Closed }))
}

/// Returns the port name of a login.
pub fn name(login: u32) -> Wwpn {
    Wwpn(0x2100_0024_ff00_0000 + u64::from(login))
}

impl Bench {
    /// Creates a switch with all links up and no logins.
    pub fn new(zones: Arc<ZoneSet>, hard_zoning: HardZoning) -> Bench {
        let policy = Policy { addressing: Addressing::Flat, hard_zoning, ..Policy::default() };
        let switch = Switch::new(SwitchConfig {
            domain: Some(1),
            name: Wwnn(0x1000_0000_0000_0001),
            fabric_name: Wwnn(0x1000_0000_0000_0001),
            ports: PORTS,
            e_d_tov: Span::from_ms(2_000),
            r_a_tov: Span::from_ms(10_000),
            rscn_delay: Span::from_ms(5),
            bb_credit: vec![16; usize::from(PORTS)],
            bb_sc_n: Vec::new(),
            receive_size_bytes: 2112,
            zoning: zones,
            policy,
        });
        let mut bench = Bench {
            switch,
            fib: Fib::new(1, PORTS, IslChoice::Exchange),
            now: Instant::ZERO,
            rscns: VecDeque::new(),
            bytes: Vec::new(),
            sent_to: FcId::ZERO,
        };
        bench.drain();
        for port in 0..PORTS {
            bench.switch.handle(bench.now, Input::PortUp { port, kind: PortKind::F });
            bench.drain();
        }
        bench
    }

    /// Returns the message of a login: FLOGI for the first of a port, FDISC for the others. Each
    /// port is one node.
    pub fn login(login: u32) -> (u16, Vec<u8>) {
        let port = (login % u32::from(PORTS)) as u16;
        let parameters = Login::of_linux_host(name(login), Wwnn(0x2000_0024_ff00_0000 + u64::from(port)));
        let els = if login < u32::from(PORTS) { Els::Flogi(parameters) } else { Els::Fdisc(parameters) };
        (port, encoded(FcId::ZERO, FcId::F_PORT, Message::from(els)))
    }

    /// Returns the registration after a login: SCR, login at the name server, RFT_ID, RFF_ID.
    pub fn registration(id: FcId, login: u32) -> Vec<Vec<u8>> {
        let plogi = Login {
            common: CommonParameters { receive_size_bytes: 2112, ..CommonParameters::default() },
            port_name: name(login),
            node_name: Wwnn(1),
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: 0x8800, ..ClassParameters::default() },
        };
        let ns = |request| encoded(id, FcId::NAME_SERVER, Message::from(Ct::ns_request(request)));
        vec![
            encoded(id, FcId::FABRIC_CONTROLLER, Message::from(Els::Scr { function: 3 })),
            encoded(id, FcId::NAME_SERVER, Message::from(Els::Plogi(plogi))),
            ns(NsRequest::RftId { port_id: id, types: one_type(FcType::FCP.0) }),
            ns(NsRequest::RffId { port_id: id, features: 2, fc4_type: FcType::FCP.0 }),
        ]
    }

    /// Returns the query for all FCP ports.
    pub fn gpn_ft(id: FcId) -> Vec<u8> {
        let request = NsRequest::GpnFt { domain: 0, area: 0, fc4_type: FcType::FCP.0 };
        encoded(id, FcId::NAME_SERVER, Message::from(Ct::ns_request(request)))
    }

    /// Passes a message to a port of the switch; returns the destination address of the response.
    pub fn offer(&mut self, port: u16, bytes: &[u8]) -> FcId {
        let Ok(frame) = Frame::parse(bytes, None) else { return FcId::ZERO };
        let header = frame.header;
        if self.fib.decide(port, header.s_id, header.d_id, header.ox_id) == Decision::Local {
            self.switch.handle(self.now, Input::Frame { port, frame });
            self.drain();
        }
        self.sent_to
    }

    /// Advances the time; the switch sends RSCNs that are due, and they are accepted.
    pub fn pass(&mut self, span: Span) {
        self.now += span;
        while self.switch.poll_timeout().is_some_and(|at| at <= self.now) {
            self.switch.handle(self.now, Input::Timeout);
            self.drain();
        }
        while let Some((port, id, ox_id)) = self.rscns.pop_front() {
            let message = Message::from(Els::LsAcc(LsAcc::Empty));
            let header = message.header(id, FcId::FABRIC_CONTROLLER, ox_id, 0);
            self.switch
                .handle(self.now, Input::Frame { port, frame: Frame { header, payload: Payload::Typed(message) } });
            self.drain();
        }
    }

    /// Returns the port at which an address is logged in.
    pub fn port_of(&self, id: FcId) -> u16 {
        self.fib.port_of(id).unwrap_or(0)
    }

    /// Returns the machine of the switch.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Returns the forwarding table.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }

    /// Returns the bytes of the last message to an N_Port, header included.
    pub fn answer_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn drain(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            match output {
                Output::Fib(delta) => self.fib.apply(&delta),
                Output::Send { port, frame } => {
                    self.bytes.clear();
                    frame.emit(&mut self.bytes);
                    self.sent_to = frame.header.d_id;
                    if frame.header.r_ctl == RCtl::ELS_REQUEST {
                        self.rscns.push_back((port, frame.header.d_id, frame.header.ox_id));
                    }
                }
                _ => {}
            }
        }
    }
}

fn encoded(s_id: FcId, d_id: FcId, message: Message) -> Vec<u8> {
    let header = message.header(s_id, d_id, 1, 0xffff);
    let mut bytes = Vec::new();
    Frame { header, payload: Payload::Typed(message) }.emit(&mut bytes);
    bytes
}
