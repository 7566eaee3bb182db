//! Switch with its forwarding table, called as by a driver.
#![allow(dead_code)] // each test file uses its part

use sanloom_fc::config::{IslChoice, Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::fabric::{Decision, Fib, FibDelta, Leg, ZoneSet};
use sanloom_fc::switch::{Input, Output, PeerUpdate, Policy, PortKind, Switch, SwitchConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::els::{Els, LsAcc, LsRjt, Rscn};
use sanloom_wire::login::Login;
use sanloom_wire::ns::{NsAccept, NsRequest, one_type};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn, frame::ReplyTo};
use std::sync::Arc;

pub const RSCN_DELAY: Span = Span::from_ms(5);
pub const E_D_TOV: Span = Span::from_ms(2_000);
pub const SWITCH_NAME: Wwnn = Wwnn(0x1000_0000_c0ff_ee02);
pub const FABRIC_NAME: Wwnn = Wwnn(0x1000_0000_c0ff_ee01);

pub fn zone_set(zones: &[&[u64]], default: ZoneDefault) -> Arc<ZoneSet> {
    let zones = zones.iter().map(|members| zone(members.iter().copied())).collect();
    Arc::new(ZoneSet::new(&Zoning { zones, default }))
}

/// Zone of port names.
pub fn zone(names: impl IntoIterator<Item = u64>) -> Zone {
    let members = names.into_iter().map(|name| ZoneMember::PortName(Wwpn(name))).collect();
    Zone { name: "zone".into(), members, principals: Vec::new() }
}

/// Zone set in which all ports may communicate.
pub fn open() -> Arc<ZoneSet> {
    zone_set(&[], ZoneDefault::Open)
}

pub fn config(domain: u8, zoning: Arc<ZoneSet>) -> SwitchConfig {
    SwitchConfig {
        domain: Some(domain),
        name: SWITCH_NAME,
        fabric_name: FABRIC_NAME,
        ports: 300,
        e_d_tov: E_D_TOV,
        r_a_tov: Span::from_ms(10_000),
        rscn_delay: RSCN_DELAY,
        bb_credit: vec![16; 300],
        bb_sc_n: Vec::new(),
        receive_size_bytes: 2112,
        zoning,
        policy: Policy::default(),
    }
}

/// Node name of a port name: names that differ in the last byte are ports of one node.
pub fn node_of(port_name: u64) -> Wwnn {
    Wwnn(1 << 60 | port_name & !0xff)
}

/// Service parameters of FLOGI as sent by a Linux host.
pub fn login(port_name: u64) -> Login {
    Login::of_linux_host(Wwpn(port_name), node_of(port_name))
}

pub fn els(els: Els) -> Message {
    Message::Els(Box::new(els))
}

pub fn ct(request: NsRequest) -> Message {
    Message::Ct(Box::new(Ct::ns_request(request)))
}

pub fn header(s_id: FcId, d_id: FcId, message: &Message) -> Header {
    let (r_ctl, fc_type) = match message {
        Message::Ct(_) => (RCtl::UNSOLICITED_CONTROL, FcType::CT),
        Message::Bls(_) => (RCtl::BLS_ABTS, FcType::BLS),
        Message::Els(els) if els.is_reply() => (RCtl::ELS_REPLY, FcType::ELS),
        _ => (RCtl::ELS_REQUEST, FcType::ELS),
    };
    Header {
        r_ctl,
        d_id,
        cs_ctl: 0,
        s_id,
        fc_type,
        f_ctl: if r_ctl == RCtl::ELS_REPLY { FCtl::REPLY } else { FCtl::REQUEST },
        seq_id: 0,
        df_ctl: 0,
        seq_cnt: 0,
        ox_id: 1,
        rx_id: 0xffff,
        parameter: 0,
    }
}

/// Encodes and parses a frame and asserts that the result is equal.
pub fn assert_round_trip(frame: &Frame, reply_to: Option<ReplyTo>) {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    let mut parsed = Frame::parse(&bytes, reply_to).unwrap_or_else(|e| panic!("{e}: {frame:?}"));
    // The number of fill bytes is part of the encoding only.
    parsed.header.f_ctl = frame.header.f_ctl;
    assert_eq!(&parsed, frame);
}

pub struct Rig {
    pub switch: Switch,
    pub fib: Fib,
    pub now: Instant,
    /// Frames since the last call.
    pub sent: Vec<(u16, Frame)>,
    /// Messages to other switches since the last call.
    pub peers: Vec<PeerUpdate>,
    /// Addresses that became persistent.
    pub persisted: Vec<(Wwpn, FcId)>,
    /// All outputs in order, for tests of the order.
    pub log: Vec<Output>,
}

impl Rig {
    pub fn new(config: SwitchConfig) -> Rig {
        let fib = Fib::new(config.domain.unwrap_or(0), config.ports, IslChoice::Ingress);
        let switch = Switch::new(config);
        let mut rig =
            Rig { switch, fib, now: Instant::ZERO, sent: vec![], peers: vec![], persisted: vec![], log: vec![] };
        rig.drain();
        rig
    }

    pub fn handle(&mut self, input: Input) {
        self.switch.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            self.log.push(output.clone());
            match output {
                Output::Send { port, frame } => self.sent.push((port, frame)),
                Output::Fib(delta) => self.fib.apply(&delta),
                Output::Peer(update) => self.peers.push(update),
                Output::Persist { port_name, port_id } => self.persisted.push((port_name, port_id)),
                Output::ChangeZones { .. } => {}
            }
        }
    }

    /// Advances the clock and fires timers at their exact time.
    pub fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.switch.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.handle(Input::Timeout);
        }
        self.now = until;
    }

    pub fn up(&mut self, port: u16) {
        self.handle(Input::PortUp { port, kind: PortKind::F });
    }

    /// Brings a link up, unless it is up.
    pub fn up_if_down(&mut self, port: u16) {
        if self.fib.decide(port, FcId::ZERO, FcId::F_PORT, 0) != Decision::Local {
            self.up(port);
        }
    }

    pub fn down(&mut self, port: u16) {
        self.handle(Input::PortDown { port });
    }

    /// Adds a route to each of these domains.
    pub fn reach(&mut self, domains: &[u8]) {
        let routes = domains.iter().map(|domain| (*domain, vec![Leg::Port(299)])).collect();
        self.handle(Input::Routes(routes));
    }

    pub fn unreach(&mut self, domain: u8) {
        self.handle(Input::Routes(vec![(domain, vec![])]));
    }

    /// Sends a message as a port does; the forwarding table decides whether it reaches the service.
    pub fn offer(&mut self, port: u16, s_id: FcId, d_id: FcId, message: Message) -> Decision {
        let frame = Frame { header: header(s_id, d_id, &message), payload: Payload::Typed(message) };
        self.offer_frame(port, frame)
    }

    pub fn offer_frame(&mut self, port: u16, frame: Frame) -> Decision {
        let h = frame.header;
        let decision = self.fib.decide(port, h.s_id, h.d_id, h.ox_id);
        if decision == Decision::Local {
            self.handle(Input::Frame { port, frame });
        }
        decision
    }

    /// Sends a request and returns the only reply, which must be well-formed and correctly
    /// addressed.
    pub fn exchange(&mut self, port: u16, s_id: FcId, d_id: FcId, message: Message) -> Message {
        let reply_to = match &message {
            Message::Els(els) => Some(ReplyTo::Els(els.command())),
            Message::Ct(ct) => Some(ReplyTo::Ct(ct.service, ct.command())),
            _ => None,
        };
        self.sent.clear();
        assert_eq!(self.offer(port, s_id, d_id, message.clone()), Decision::Local, "{message:?}");
        let [(out, frame)] = &self.sent[..] else { panic!("{:?} to {message:?}", self.sent) };
        assert_eq!((*out, frame.header.s_id, frame.header.ox_id), (port, d_id, 1));
        assert_eq!(frame.header.f_ctl, FCtl::REPLY);
        assert_round_trip(frame, reply_to);
        match self.sent.remove(0).1.payload {
            Payload::Typed(message) => message,
            other => panic!("{other:?}"),
        }
    }

    pub fn exchange_els(&mut self, port: u16, s_id: FcId, d_id: FcId, request: Els) -> Result<LsAcc, LsRjt> {
        match self.exchange(port, s_id, d_id, els(request)) {
            Message::Els(els) => match *els {
                Els::LsAcc(accept) => Ok(accept),
                Els::LsRjt(reject) => Err(reject),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Queries the name server and returns the accept, or reason and explanation.
    pub fn ns(&mut self, id: FcId, request: NsRequest) -> Result<NsAccept, (u8, u8)> {
        let port = self.fib.port_of(id).expect("logged in");
        match self.exchange(port, id, FcId::NAME_SERVER, ct(request)) {
            Message::Ct(ct) => match ct.body {
                CtBody::NsAccept(accept) => Ok(accept),
                CtBody::Reject(reject) => Err((reject.reason.0, reject.explanation)),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Queries the management server and returns the accept, or reason and explanation.
    pub fn management(&mut self, id: FcId, service: Service, request: CtBody) -> Result<CtBody, (u8, u8)> {
        let port = self.fib.port_of(id).expect("logged in");
        match self.exchange(port, id, FcId::MANAGEMENT_SERVER, Message::Ct(Box::new(Ct::request(service, request)))) {
            Message::Ct(ct) => match ct.body {
                CtBody::Reject(reject) => Err((reject.reason.0, reject.explanation)),
                accept => Ok(accept),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Brings a port up and sends FLOGI.
    pub fn flogi(&mut self, port: u16, name: u64) -> FcId {
        self.up(port);
        self.flogi_again(port, name)
    }

    pub fn flogi_again(&mut self, port: u16, name: u64) -> FcId {
        let accept = self.exchange_login(port, FcId::ZERO, Els::Flogi(login(name)));
        accept.expect("FLOGI accepted").0
    }

    pub fn fdisc(&mut self, port: u16, name: u64) -> Result<FcId, LsRjt> {
        self.exchange_login(port, FcId::ZERO, Els::Fdisc(login(name))).map(|(id, _)| id)
    }

    /// Logs in and returns the address of the accept and its parameters.
    pub fn exchange_login(&mut self, port: u16, s_id: FcId, request: Els) -> Result<(FcId, Login), LsRjt> {
        let reply_to = Some(ReplyTo::Els(request.command()));
        self.sent.clear();
        assert_eq!(self.offer(port, s_id, FcId::F_PORT, els(request)), Decision::Local);
        let [(out, frame)] = &self.sent[..] else { panic!("{:?}", self.sent) };
        assert_eq!(*out, port);
        assert_round_trip(frame, reply_to);
        match &frame.payload {
            Payload::Typed(Message::Els(els)) => match &**els {
                Els::LsAcc(LsAcc::Login(login)) => Ok((frame.header.d_id, login.clone())),
                Els::LsRjt(reject) => Err(*reject),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Sends PLOGI to the name server.
    pub fn plogi(&mut self, id: FcId) {
        self.plogi_to(id, FcId::NAME_SERVER);
    }

    pub fn plogi_to(&mut self, id: FcId, service: FcId) {
        let port = self.fib.port_of(id).expect("logged in");
        let name = self.name_of(id);
        let accept = self.exchange_els(port, id, service, Els::Plogi(login(name)));
        assert!(matches!(accept, Ok(LsAcc::Login(_))), "{accept:?}");
    }

    pub fn name_of(&self, id: FcId) -> u64 {
        let entry = self.switch.name_server().find(|entry| entry.port_id == id);
        entry.expect("known").port_name.0
    }

    /// Logs in, registers for FCP with these features, and sends SCR.
    pub fn join(&mut self, port: u16, name: u64, features: u8) -> FcId {
        let id = self.flogi(port, name);
        self.take_part(id, features);
        id
    }

    pub fn take_part(&mut self, id: FcId, features: u8) {
        let port = self.fib.port_of(id).expect("logged in");
        self.plogi(id);
        assert_eq!(self.ns(id, NsRequest::RftId { port_id: id, types: one_type(8) }), Ok(NsAccept::Empty));
        let rff = NsRequest::RffId { port_id: id, features, fc4_type: 8 };
        assert_eq!(self.ns(id, rff), Ok(NsAccept::Empty));
        let scr = self.exchange_els(port, id, FcId::FABRIC_CONTROLLER, Els::Scr { function: 3 });
        assert_eq!(scr, Ok(LsAcc::Empty));
    }

    /// RSCNs sent since the last call, with recipient and OX_ID. Their format is checked; they are
    /// not answered.
    pub fn rscns(&mut self) -> Vec<(FcId, u16, Rscn)> {
        let frames = std::mem::take(&mut self.sent);
        let rscn = |(port, frame): (u16, Frame)| {
            assert_round_trip(&frame, None);
            assert_eq!(frame.header.s_id, FcId::FABRIC_CONTROLLER);
            assert_eq!(self.fib.port_of(frame.header.d_id), Some(port));
            match frame.payload {
                Payload::Typed(Message::Els(els)) => match *els {
                    Els::Rscn(rscn) => (frame.header.d_id, frame.header.ox_id, rscn),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        };
        frames.into_iter().map(rscn).collect()
    }

    /// RSCNs among the frames sent since the last call, which may include logins.
    pub fn rscns_among_logins(&mut self) -> Vec<(FcId, u16, Rscn)> {
        self.sent.retain(|(_, frame)| frame.header.s_id == FcId::FABRIC_CONTROLLER);
        self.rscns()
    }

    /// Answers an RSCN.
    pub fn answer(&mut self, id: FcId, ox_id: u16, reply: Els) {
        self.answer_to(id, FcId::FABRIC_CONTROLLER, ox_id, reply);
    }

    pub fn answer_to(&mut self, id: FcId, service: FcId, ox_id: u16, reply: Els) {
        let port = self.fib.port_of(id).expect("logged in");
        let message = els(reply);
        let mut h = header(id, service, &message);
        h.ox_id = ox_id;
        let frame = Frame { header: h, payload: Payload::Typed(message) };
        assert_eq!(self.offer_frame(port, frame), Decision::Local);
    }

    /// Lets all collection windows pass, answers every RSCN, and drops them.
    pub fn run_until_quiet(&mut self) {
        loop {
            self.wait(RSCN_DELAY);
            let all = self.rscns();
            if all.is_empty() {
                return;
            }
            for (id, ox_id, _) in all {
                self.answer(id, ox_id, Els::LsAcc(LsAcc::Empty));
            }
        }
    }
}

/// Address in domain 1.
pub fn id(area: u8, port: u8) -> FcId {
    FcId::from_parts(1, area, port)
}

pub fn deltas(log: &[Output]) -> Vec<FibDelta> {
    let fib = |output: &Output| match output {
        Output::Fib(delta) => Some(delta.clone()),
        _ => None,
    };
    log.iter().filter_map(fib).collect()
}
