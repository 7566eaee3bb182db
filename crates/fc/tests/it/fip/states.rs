//! Every state of an FCF's virtual links and of an ENode with every event, as snapshot tables.

use crate::fip::enode::{self, Bed};
use crate::fip::fcf::{HOST, HOST_NODE, HOST_PORT, fdisc, flogi, keep_alive, login, logo};
use crate::fip::net::{fcf_config, fcf_mac, switch_name};
use sanloom_fc::fip::fcf::{Fcf, FcfConfig, Input, Output};
use sanloom_fc::fip::{Advertisement, enode as host};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::sw_ils::{ClassF, Elp, ElpClass, FlowControl, SwAcc, SwIls};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwpn};

const ID: FcId = FcId::from_parts(2, 10, 0);
const VIRTUAL_ID: FcId = FcId::from_parts(2, 10, 1);
const VIRTUAL: Wwpn = Wwpn(9);
const PORT: u16 = 10;

/// Name of a state, and a function that brings an FCF into it.
type State = (&'static str, fn(&mut Bench));
/// Name of an event, and a function that returns the outputs of an FCF.
type Event = (&'static str, fn(&mut Bench) -> Vec<Output>);
/// The same for an ENode.
type HostState = (&'static str, fn() -> Bed);
type HostEvent = (&'static str, fn(&mut Bed) -> Vec<host::Output>);

/// FCF without a switch; the tests act as its switch.
struct Bench {
    fcf: Fcf,
    now: Instant,
}

impl Bench {
    fn new() -> Bench {
        let config = FcfConfig { ports: vec![PORT, PORT + 1], vlans: vec![7], ..fcf_config(1) };
        let mut bench = Bench { fcf: Fcf::new(config), now: Instant::ZERO };
        bench.input(Input::Fabric { name: switch_name(1), available: true });
        bench.input(Input::LinkUp);
        bench
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.fcf.handle(self.now, input);
        std::iter::from_fn(|| self.fcf.poll_output()).collect()
    }

    fn receive(&mut self, to: MacAddr, from: MacAddr, packet: &Fip) -> Vec<Output> {
        let mut pdu = Vec::new();
        packet.emit(&mut pdu);
        self.input(Input::Fip { to, from, pdu: pdu.into() })
    }

    /// Advances the clock and returns the outputs, without advertisements.
    fn secs(&mut self, secs: u64) -> Vec<Output> {
        let end = self.now + Span::from_secs(secs);
        let mut outputs = Vec::new();
        while let Some(at) = self.fcf.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        let advertises = |output: &Output| match output {
            Output::Fip(frame) => frame.packet.operation == Operation::ADVERTISEMENT && frame.to.is_group(),
            _ => false,
        };
        outputs.retain(|output| !advertises(output));
        outputs
    }

    /// Answers as the F_Port of the switch.
    fn answer(&mut self, els: Els, ox_id: u16, d_id: FcId) -> Vec<Output> {
        let message = Message::from(els);
        let header = message.header(FcId::F_PORT, d_id, ox_id, 0xffff);
        self.input(Input::Send { port: PORT, frame: Frame { header, payload: Payload::Typed(message) } })
    }

    fn accept(&mut self, ox_id: u16, id: FcId) -> Vec<Output> {
        self.answer(Els::LsAcc(LsAcc::Login(login(Wwpn(1)))), ox_id, id)
    }
}

fn state(bench: &Bench) -> String {
    let links: Vec<String> =
        bench.fcf.links().map(|link| format!("{} {} {:?}", link.port, link.mac, link.end)).collect();
    format!("{links:?}, {} discarded", bench.fcf.discards().total())
}

/// One line per output.
fn lines(outputs: &[Output]) -> String {
    let line = |output: &Output| match output {
        Output::Fip(frame) => {
            let service = frame.packet.link_service().map(|(_, frame)| format!(" {}", name(&frame.payload)));
            let ports: Vec<FcId> = frame.packet.vx_ports().map(|(_, id, _)| id).collect();
            let padded = if frame.padded_bytes > 0 { format!(", {} bytes", frame.padded_bytes) } else { String::new() };
            let ports = if ports.is_empty() { String::new() } else { format!(" {ports:?}") };
            format!("FIP {}{}{ports} to {}{padded}", frame.packet.operation, service.unwrap_or_default(), frame.to)
        }
        Output::Fcoe { to, frame } => format!("FCoE {} to {to}", name(&frame.payload)),
        Output::Switch(sanloom_fc::fabric_switch::Input::Frame { port, frame }) => {
            format!("switch: port {port}, {}", name(&frame.payload))
        }
        Output::Switch(input) => format!("switch: {input:?}"),
        Output::Bind(change) => format!("{change:?}"),
        Output::Event(event) => format!("{event:?}"),
    };
    outputs.iter().map(|output| format!("      {}\n", line(output))).collect()
}

fn name(payload: &Payload) -> String {
    match payload {
        Payload::Typed(message) => message.to_string(),
        other => format!("{} bytes", other.len()),
    }
}

fn clear(mac: MacAddr, name: u64) -> Fip {
    let descriptors = vec![Descriptor::Mac(mac), Descriptor::Name(sanloom_wire::Wwnn(name))];
    Fip { operation: Operation::CLEAR_VIRTUAL_LINKS, flags: 0, descriptors }
}

#[test]
fn every_state_of_an_enode_link_has_an_answer_to_every_event() {
    let states: [State; 4] = [
        ("nobody", |_| {}),
        ("asked: FLOGI is at the switch", |bench| {
            bench.receive(fcf_mac(1), HOST, &flogi(HOST_PORT, 1, flag::FPMA));
        }),
        ("logged in", |bench| {
            bench.receive(fcf_mac(1), HOST, &flogi(HOST_PORT, 1, flag::FPMA));
            bench.accept(1, ID);
        }),
        ("logged in, with a virtual port", |bench| {
            bench.receive(fcf_mac(1), HOST, &flogi(HOST_PORT, 1, flag::FPMA));
            bench.accept(1, ID);
            bench.receive(fcf_mac(1), HOST, &fdisc(VIRTUAL, 2));
            bench.accept(2, VIRTUAL_ID);
        }),
    ];
    let events: [Event; 16] = [
        ("solicitation", |bench| {
            let body = crate::fip::fcf::unhex(crate::fip::fcf::SOLICITATION);
            bench.receive(MacAddr::ALL_FCFS, HOST, &Fip::parse(&body).expect("a packet"))
        }),
        ("FLOGI again", |bench| bench.receive(fcf_mac(1), HOST, &flogi(HOST_PORT, 1, flag::FPMA))),
        ("FLOGI anew", |bench| bench.receive(fcf_mac(1), HOST, &flogi(HOST_PORT, 5, flag::FPMA))),
        ("FDISC", |bench| bench.receive(fcf_mac(1), HOST, &fdisc(Wwpn(77), 6))),
        ("LOGO", |bench| bench.receive(fcf_mac(1), HOST, &logo(ID, HOST_PORT, 7))),
        ("LOGO, and the switch accepts it", |bench| {
            let mut outputs = bench.receive(fcf_mac(1), HOST, &logo(ID, HOST_PORT, 7));
            outputs.extend(bench.input(Input::Removed { port_id: ID }));
            outputs.extend(bench.answer(Els::LsAcc(LsAcc::Empty), 7, ID));
            outputs
        }),
        ("keep-alive", |bench| bench.receive(fcf_mac(1), HOST, &keep_alive(HOST, None))),
        ("keep-alive of the VN_Port", |bench| {
            let mac = MacAddr::fpma(FcMap::DEFAULT, ID);
            bench.receive(fcf_mac(1), mac, &keep_alive(HOST, Some((mac, ID, HOST_PORT))))
        }),
        ("the ENode clears its links", |bench| bench.receive(fcf_mac(1), HOST, &clear(HOST, HOST_NODE.0))),
        ("the switch accepts FLOGI", |bench| bench.accept(1, ID)),
        ("the switch rejects FLOGI", |bench| {
            let reject = LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES);
            bench.answer(Els::LsRjt(reject), 1, FcId::ZERO)
        }),
        ("the switch takes the address back", |bench| bench.input(Input::Removed { port_id: ID })),
        ("the operator clears the link", |bench| bench.input(Input::Clear { port: PORT })),
        ("21 s without a word", |bench| bench.secs(21)),
        ("the Ethernet port goes down", |bench| bench.input(Input::LinkDown)),
        ("the switch goes down", |bench| bench.input(Input::Shutdown)),
    ];
    let mut table = String::new();
    for (before, prepare) in states {
        table += &format!("{before}\n");
        for (event, happen) in events {
            let mut bench = Bench::new();
            prepare(&mut bench);
            let outputs = happen(&mut bench);
            table += &format!("  {event}\n{}      -> {}\n", lines(&outputs), state(&bench));
        }
    }
    insta::assert_snapshot!("fcf_enode_link", table);
}

fn elp() -> Box<Elp> {
    Box::new(Elp {
        revision: 3,
        flags: 0,
        bb_sc_n: 0,
        r_a_tov_ms: 10_000,
        e_d_tov_ms: 2_000,
        port_name: Wwpn(5),
        switch_name: switch_name(2),
        class_f: ClassF::default(),
        classes: [ElpClass::default(); 3],
        flow_control: FlowControl::R_RDY,
        bb_credit: 16,
        flow_parameters: [0; 16].into(),
    })
}

fn elp_packet(ils: SwIls, operation: Operation) -> Fip {
    let message = Message::from(ils);
    let header = message.header(FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER, 3, 0xffff);
    let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
    let descriptors = vec![Descriptor::LinkService { service: LinkService::Elp, frame }, Descriptor::Mac(fcf_mac(2))];
    Fip { operation, flags: flag::FPMA | flag::FCF, descriptors }
}

/// Advertisement of another FCF.
fn neighbour(solicited: bool) -> Fip {
    let emitted = Advertisement {
        mac: fcf_mac(2),
        switch_name: switch_name(2),
        fabric_name: switch_name(2),
        fc_map: FcMap::DEFAULT,
        vf_id: 0,
        priority: 128,
        period: Span::from_secs(8),
        keep_alives: true,
        available: true,
        solicited,
    };
    emitted.packet()
}

fn fcf_solicitation() -> Fip {
    let descriptors = vec![
        Descriptor::Mac(fcf_mac(2)),
        Descriptor::FcMap(FcMap::DEFAULT),
        Descriptor::Name(switch_name(2)),
        Descriptor::MaxFcoeBytes(2158),
    ];
    Fip { operation: Operation::SOLICITATION, flags: flag::FPMA | flag::FCF, descriptors }
}

#[test]
fn every_state_of_a_link_to_another_fcf_has_an_answer_to_every_event() {
    let states: [State; 3] = [
        ("unknown", |_| {}),
        ("heard", |bench| {
            bench.receive(MacAddr::ALL_FCFS, fcf_mac(2), &neighbour(false));
        }),
        ("open", |bench| {
            bench.receive(fcf_mac(1), fcf_mac(2), &neighbour(true));
        }),
    ];
    let events: [Event; 10] = [
        ("asks everybody", |bench| bench.receive(MacAddr::ALL_FCFS, fcf_mac(2), &fcf_solicitation())),
        ("asks us", |bench| bench.receive(fcf_mac(1), fcf_mac(2), &fcf_solicitation())),
        ("advertises", |bench| bench.receive(MacAddr::ALL_FCFS, fcf_mac(2), &neighbour(false))),
        ("answers our solicitation", |bench| bench.receive(fcf_mac(1), fcf_mac(2), &neighbour(true))),
        ("sends ELP, and the switch accepts it", |bench| {
            let elp_request = elp_packet(SwIls::Elp(elp()), Operation::LINK_SERVICE_REQUEST);
            let mut outputs = bench.receive(fcf_mac(1), fcf_mac(2), &elp_request);
            let message = Message::from(SwIls::SwAcc(SwAcc::Elp(elp())));
            let header = message.header(FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER, 3, 0xffff);
            outputs.extend(bench.input(Input::Send { port: PORT, frame: Frame { header, payload: message.into() } }));
            outputs
        }),
        ("accepts our ELP", |bench| {
            let message = Message::from(SwIls::Elp(elp()));
            let header = message.header(FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER, 3, 0xffff);
            let mut outputs = bench.input(Input::Send { port: PORT, frame: Frame { header, payload: message.into() } });
            let accept = elp_packet(SwIls::SwAcc(SwAcc::Elp(elp())), Operation::LINK_SERVICE_REPLY);
            outputs.extend(bench.receive(fcf_mac(1), fcf_mac(2), &accept));
            outputs
        }),
        ("the switch sends something else", |bench| {
            let message = Message::from(SwIls::Bf);
            let header = message.header(FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER, 4, 0xffff);
            bench.input(Input::Send { port: PORT, frame: Frame { header, payload: message.into() } })
        }),
        ("clears the link", |bench| {
            let packet = Fip { flags: flag::FCF, ..clear(fcf_mac(2), switch_name(2).0) };
            bench.receive(fcf_mac(1), fcf_mac(2), &packet)
        }),
        ("21 s without a word", |bench| bench.secs(21)),
        ("the switch goes down", |bench| bench.input(Input::Shutdown)),
    ];
    let mut table = String::new();
    for (before, prepare) in states {
        table += &format!("{before}\n");
        for (event, happen) in events {
            let mut bench = Bench::new();
            prepare(&mut bench);
            let outputs = happen(&mut bench);
            table += &format!("  {event}\n{}      -> {}\n", lines(&outputs), state(&bench));
        }
    }
    insta::assert_snapshot!("fcf_neighbour", table);
}

#[test]
fn every_state_of_an_enode_has_an_answer_to_every_event() {
    let states: [HostState; 5] = [
        ("down", || {
            let mut bed = Bed::new().0;
            bed.input(host::Input::LinkDown);
            bed
        }),
        ("asking", || Bed::new().0),
        ("choosing", || {
            let mut bed = Bed::new().0;
            bed.fip(&enode::full_advertisement().packet());
            bed
        }),
        ("chosen", || {
            let mut bed = Bed::chosen();
            bed.input(host::Input::Send(enode::flogi(1)));
            bed
        }),
        ("logged in", Bed::logged_in),
    ];
    let events: [HostEvent; 11] = [
        ("link up", |bed| bed.input(host::Input::LinkUp)),
        ("link down", |bed| bed.input(host::Input::LinkDown)),
        ("multicast advertisement", |bed| {
            let multicast = Advertisement { solicited: false, ..enode::full_advertisement() }.packet();
            bed.fip_to(MacAddr::ALL_ENODES, enode::FCF, &multicast)
        }),
        ("solicited advertisement", |bed| bed.fip(&enode::full_advertisement().packet())),
        ("FLOGI of the N_Port", |bed| bed.input(host::Input::Send(enode::flogi(2)))),
        ("accept", |bed| bed.fip(&enode::accept(LinkService::Flogi, 1, enode::ID))),
        ("reject", |bed| bed.fip(&enode::reject(1))),
        ("clear", |bed| bed.fip(&enode::clear(&[]))),
        ("clear of the port", |bed| bed.fip(&enode::clear(&[(enode::ID, enode::PORT)]))),
        ("2 s pass", |bed| bed.ms(2_000)),
        ("20 s pass", |bed| bed.ms(20_000)),
    ];
    let mut table = String::new();
    for (before, prepare) in states {
        table += &format!("{before}\n");
        for (event, happen) in &events {
            let mut bed = prepare();
            let outputs = happen(&mut bed);
            let line = |output: &host::Output| match output {
                host::Output::Fip(frame) => format!("FIP {} to {}", frame.packet.operation, frame.to),
                host::Output::Fcoe { to, frame, .. } => format!("FCoE {} to {to}", name(&frame.payload)),
                host::Output::Deliver(frame) => format!("deliver {}", name(&frame.payload)),
                host::Output::FcfUp(fcf) => format!("FcfUp {}", fcf.mac),
                other => format!("{other:?}"),
            };
            let lines: Vec<String> = outputs.iter().map(line).collect();
            let usable = bed.enode.fcfs().filter(|(_, usable)| *usable).count();
            let after = match (bed.enode.fcf(), bed.enode.vn_ports().count()) {
                (Some(_), 0) => "chosen",
                (Some(_), _) => "logged in",
                (None, _) if usable > 0 => "choosing",
                (None, _) if bed.enode.poll_timeout().is_some() => "asking",
                (None, _) => "down",
            };
            let discarded = bed.enode.discards().total();
            table += &format!("  {event} -> {after}, {discarded} discarded: {lines:?}\n");
        }
    }
    insta::assert_snapshot!("enode", table);
}
