//! FCF against a Linux host: bytes of its captures, and further cases of the standard.

use crate::fip::net::{Net, Station, fcf_config, fcf_mac, switch_config};
use sanloom_fc::fip::fcf::{Event, FcfConfig, Input, LinkEnd};
use sanloom_fc::fip::{Advertisement, Discard, Ingress};
use sanloom_scsi::time::Span;
use sanloom_wire::els::{Els, Logo, LsAcc, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};

pub const HOST: MacAddr = MacAddr([0x02, 0xfc, 0, 0, 0, 1]);
pub const HOST_NODE: Wwnn = Wwnn(0x1000_02fc_0000_0001);
pub const HOST_PORT: Wwpn = Wwpn(0x2000_02fc_0000_0001);
/// FIP bodies of a Linux 6.1 host.
pub const SOLICITATION: &str = "10000001000100068000020202fc0000000104030000100002fc000000010601086e";
const FLOGI: &str = "100000020001002680000724000022fffffe0000000001290000000000000001ffff00000000040000002020000a80000840\
    0000000000000000200002fc00000001100002fc0000000100000000000000000000000000000000000000000000000000000000000000008800\
    000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000202000000000000";
const KEEP_ALIVE: &str = "10000003000100028000020202fc00000001";

pub fn unhex(digits: &str) -> Vec<u8> {
    let digits: String = digits.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// Switch with a domain, and a probe that acts as several hosts.
struct Bed {
    net: Net,
    switch: usize,
    probe: usize,
}

impl Bed {
    fn new() -> Bed {
        Bed::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut FcfConfig)) -> Bed {
        let mut net = Net::new(1);
        let mut config = fcf_config(1);
        change(&mut config);
        let switch = net.add_switch(switch_config(1), config);
        let probe = net.add_probe();
        net.run(Span::from_secs(20));
        net.received(probe);
        Bed { net, switch, probe }
    }

    fn ms(&mut self, ms: u64) -> &mut Bed {
        self.net.run(Span::from_ms(ms));
        self
    }

    /// Sends a FIP frame of a host and returns the answers that arrive within a moment.
    fn fip(&mut self, to: MacAddr, from: MacAddr, packet: Fip) -> Vec<Fip> {
        self.net.received(self.probe);
        self.net.send_fip(self.probe, &FipFrame { to, from, padded_bytes: 0, packet });
        self.ms(1);
        self.net
            .received_fip(self.probe)
            .into_iter()
            .filter(|(h, ..)| !h.to.is_group())
            .map(|(_, fip, _)| fip)
            .collect()
    }

    fn send_hex(&mut self, to: MacAddr, from: MacAddr, body: &str) -> Vec<Fip> {
        self.fip(to, from, Fip::parse(&unhex(body)).expect("a packet"))
    }

    fn log_in(&mut self, mac: MacAddr, port: Wwpn) -> FcId {
        let answer = self.fip(fcf_mac(1), mac, flogi(port, 7, flag::FPMA));
        granted(&answer).expect("a login")
    }

    fn discarded(&self, reason: Discard) -> u64 {
        self.net.switch(self.switch).fcf.discards().of(reason)
    }

    fn ids(&self) -> Vec<FcId> {
        self.net.switch(self.switch).switch.logins().map(|(id, _)| id).collect()
    }

    /// Returns whether frames with this S_ID may enter from this address.
    fn ingress(&self, from: MacAddr, s_id: FcId) -> Ingress {
        self.net.switch(self.switch).bindings.ingress(fcf_mac(1), from, s_id)
    }
}

pub fn login(name: Wwpn) -> Login {
    let class_3 = ClassParameters { flags: ClassParameters::VALID, ..ClassParameters::default() };
    Login {
        common: CommonParameters { receive_size_bytes: 2112, ..CommonParameters::default() },
        port_name: name,
        node_name: HOST_NODE,
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3,
    }
}

pub fn request(service: LinkService, els: Els, s_id: FcId, ox_id: u16, flags: u16) -> Fip {
    let message = Message::from(els);
    let header = message.header(s_id, FcId::F_PORT, ox_id, 0xffff);
    let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
    let descriptors = vec![Descriptor::LinkService { service, frame }, Descriptor::Mac(MacAddr::ZERO)];
    Fip { operation: Operation::LINK_SERVICE_REQUEST, flags, descriptors }
}

pub fn flogi(name: Wwpn, ox_id: u16, flags: u16) -> Fip {
    request(LinkService::Flogi, Els::Flogi(login(name)), FcId::ZERO, ox_id, flags)
}

pub fn fdisc(name: Wwpn, ox_id: u16) -> Fip {
    request(LinkService::Fdisc, Els::Fdisc(login(name)), FcId::ZERO, ox_id, flag::FPMA)
}

pub fn logo(port_id: FcId, port_name: Wwpn, ox_id: u16) -> Fip {
    request(LinkService::Logo, Els::Logo(Logo { port_id, port_name }), port_id, ox_id, flag::FPMA)
}

pub fn keep_alive(mac: MacAddr, vx_port: Option<(MacAddr, FcId, Wwpn)>) -> Fip {
    let vx_port = vx_port.map(|(mac, port_id, port_name)| Descriptor::VxPort { mac, port_id, port_name });
    let descriptors = [Descriptor::Mac(mac)].into_iter().chain(vx_port).collect();
    Fip { operation: Operation::KEEP_ALIVE, flags: flag::FPMA, descriptors }
}

fn reply(answers: &[Fip]) -> Option<(LinkService, &Frame)> {
    let mut replies = answers.iter().filter(|fip| fip.operation == Operation::LINK_SERVICE_REPLY);
    let reply = replies.next()?;
    assert!(replies.next().is_none(), "one reply");
    reply.link_service()
}

/// Address granted by an accepted login, which the second descriptor also contains.
fn granted(answers: &[Fip]) -> Option<FcId> {
    let (_, frame) = reply(answers)?;
    let Payload::Typed(Message::Els(els)) = &frame.payload else { return None };
    let Els::LsAcc(LsAcc::Login(_)) = **els else { return None };
    let mac = MacAddr::fpma(FcMap::DEFAULT, frame.header.d_id);
    let fip = answers.iter().find(|fip| fip.operation == Operation::LINK_SERVICE_REPLY)?;
    assert!(matches!(fip.descriptors[..], [Descriptor::LinkService { .. }, Descriptor::Mac(of)] if of == mac));
    Some(frame.header.d_id)
}

fn rejected(answers: &[Fip]) -> Option<(LsRjtReason, LsRjtExplanation)> {
    let (_, frame) = reply(answers)?;
    let Payload::Typed(Message::Els(els)) = &frame.payload else { return None };
    let Els::LsRjt(reject) = &**els else { return None };
    Some((reject.reason, reject.explanation))
}

fn clears(answers: &[Fip]) -> Vec<Vec<FcId>> {
    let clears = answers.iter().filter(|fip| fip.operation == Operation::CLEAR_VIRTUAL_LINKS);
    clears.map(|fip| fip.vx_ports().map(|(_, id, _)| id).collect()).collect()
}

#[test]
fn a_linux_host_logs_in() {
    let mut bed = Bed::new();
    let (all, fcf) = (MacAddr::ALL_FCFS, fcf_mac(1));
    let answers = bed.send_hex(all, HOST, SOLICITATION);
    let advertisement = Advertisement::read(&answers[0]).expect("an advertisement");
    assert!(advertisement.solicited && advertisement.available && advertisement.keep_alives);
    assert_eq!((advertisement.mac, advertisement.fc_map), (fcf, FcMap::DEFAULT));
    assert_eq!(advertisement.fabric_name, advertisement.switch_name, "the only switch is the principal one");

    let answers = bed.send_hex(fcf, HOST, FLOGI);
    let id = granted(&answers).expect("an accept");
    assert_eq!((id.domain(), id.area(), id.port()), (2, 10, 0));
    let (service, frame) = reply(&answers).expect("a reply");
    assert_eq!((service, frame.header.s_id, frame.header.ox_id), (LinkService::Flogi, FcId::F_PORT, 1));
    let vn_port = MacAddr::fpma(FcMap::DEFAULT, id);
    assert_eq!(bed.ingress(vn_port, id), Ingress::Port(10));
    let links: Vec<_> = bed.net.switch(bed.switch).fcf.links().collect();
    assert_eq!((links[0].port, links[0].mac, links[0].end), (10, HOST, LinkEnd::Enode { vn_ports: 1 }));

    // The name server is reached in FCoE and answers to the granted address.
    let plogi = Message::from(Els::Plogi(login(HOST_PORT)));
    let header = plogi.header(id, FcId::NAME_SERVER, 2, 0xffff);
    bed.net.send_fcoe(bed.probe, fcf, vn_port, &Frame { header, payload: Payload::Typed(plogi) });
    bed.ms(1);
    let answers = bed.net.received_fcoe(bed.probe);
    let (header, frame) = answers.first().expect("an answer");
    assert_eq!((header.to, header.from, answers.len()), (vn_port, fcf, 1));
    assert_eq!((frame.header.s_id, frame.header.d_id), (FcId::NAME_SERVER, id));
}

#[test]
fn a_solicited_advertisement_is_as_long_as_the_longest_frame_that_both_ends_accept() {
    let mut bed = Bed::new();
    let longest = |bed: &mut Bed| bed.net.received_fip(bed.probe).iter().map(|(.., len)| *len).max();
    bed.net.send_fip(
        bed.probe,
        &FipFrame {
            to: MacAddr::ALL_FCFS,
            from: HOST,
            padded_bytes: 0,
            packet: Fip::parse(&unhex(SOLICITATION)).expect("a packet"),
        },
    );
    bed.ms(1);
    assert_eq!(longest(&mut bed), Some(2172));
    let mut small = Fip::parse(&unhex(SOLICITATION)).expect("a packet");
    small.descriptors[2] = Descriptor::MaxFcoeBytes(1498);
    bed.net.send_fip(bed.probe, &FipFrame { to: fcf_mac(1), from: HOST, padded_bytes: 0, packet: small });
    bed.ms(1);
    assert_eq!(longest(&mut bed), Some(1512));
}

#[test]
fn advertisements_are_sent_every_period_with_jitter_and_contain_the_period() {
    let mut net = Net::new(1);
    net.add_switch(switch_config(1), fcf_config(1));
    let probe = net.add_probe();
    net.run(Span::from_secs(100));
    let Station::Probe(received) = &net.stations[probe] else { panic!("a probe") };
    let to_enodes = received.iter().filter(|(_, bytes)| bytes[..6] == MacAddr::ALL_ENODES.0);
    let times: Vec<u64> = to_enodes.map(|(at, _)| at.as_ns() / 1_000_000).filter(|ms| *ms > 20_000).collect();
    assert!((9..=10).contains(&times.len()), "{times:?}");
    for pair in times.windows(2) {
        assert!((8_000..=8_100).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert!(times.windows(3).any(|t| t[1] - t[0] != t[2] - t[1]), "{times:?}");
    for (header, fip, len) in net.received_fip(probe).into_iter().filter(|(h, ..)| h.to == MacAddr::ALL_ENODES).skip(3)
    {
        let emitted = Advertisement::read(&fip).expect("an advertisement");
        assert!(!emitted.solicited && len < 100 && header.from == fcf_mac(1));
        assert_eq!(emitted.period, Span::from_ms(8_000));
    }
}

#[test]
fn an_fcf_without_a_domain_advertises_that_it_accepts_no_logins() {
    let mut bed = Bed::new();
    for available in [false, true] {
        let name = crate::fip::net::switch_name(1);
        bed.net.fcf(bed.switch, Input::Fabric { name, available });
        bed.ms(1);
        let emitted = bed.net.received_fip(bed.probe);
        let (header, fip, _) = emitted.first().expect("an advertisement at once");
        assert_eq!((header.to, fip.has(flag::AVAILABLE)), (MacAddr::ALL_ENODES, available));
        let answers = bed.send_hex(MacAddr::ALL_FCFS, HOST, SOLICITATION);
        assert!(answers[0].has(flag::SOLICITED));
        assert_eq!(answers[0].has(flag::AVAILABLE), available);
    }
}

#[test]
fn a_vlan_request_is_answered_to_the_address_in_it() {
    let mut bed = Bed::with(|config| config.vlans = vec![100, 200]);
    let packet = Fip { operation: Operation::VLAN_REQUEST, flags: 0, descriptors: vec![Descriptor::Mac(HOST)] };
    let answers = bed.fip(MacAddr::ALL_FCFS, HOST, packet.clone());
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].operation, Operation::VLAN_NOTIFICATION);
    assert_eq!((answers[0].mac(), answers[0].vlans().collect()), (Some(fcf_mac(1)), vec![100, 200]));
    let mut silent = Bed::new();
    assert_eq!(silent.fip(MacAddr::ALL_FCFS, HOST, packet), []);
}

#[test]
fn virtual_ports_come_and_go_beside_the_first_login() {
    let mut bed = Bed::new();
    let base = bed.log_in(HOST, HOST_PORT);
    let names: Vec<Wwpn> = (1..=40).map(|n| Wwpn(HOST_PORT.0 + (n << 16))).collect();
    let ids: Vec<FcId> = names
        .iter()
        .enumerate()
        .map(|(n, name)| granted(&bed.fip(fcf_mac(1), HOST, fdisc(*name, 100 + n as u16))).expect("an accept"))
        .collect();
    assert_eq!(bed.ids().len(), 41);
    for id in &ids {
        assert_eq!(bed.ingress(MacAddr::fpma(FcMap::DEFAULT, *id), *id), Ingress::Port(10));
    }
    for (id, name) in ids.iter().zip(&names) {
        let answers = bed.fip(fcf_mac(1), HOST, logo(*id, *name, 900));
        assert_eq!(reply(&answers).map(|(service, _)| service), Some(LinkService::Logo));
        assert_eq!((clears(&answers).len(), rejected(&answers)), (0, None));
        assert_eq!(bed.ingress(MacAddr::fpma(FcMap::DEFAULT, *id), *id), Ingress::Spoofed);
    }
    assert_eq!(bed.ids(), [base]);
    bed.fip(fcf_mac(1), HOST, logo(base, HOST_PORT, 901));
    assert_eq!((bed.ids().len(), bed.net.switch(bed.switch).fcf.links().count()), (0, 0));
    assert_eq!(bed.net.switch(bed.switch).fcf.free_ports(), 30);
}

#[test]
fn fdisc_and_logo_need_a_login() {
    let mut bed = Bed::new();
    let answers = bed.fip(fcf_mac(1), HOST, fdisc(HOST_PORT, 1));
    assert_eq!(rejected(&answers), Some((LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED)));
    let answers = bed.fip(fcf_mac(1), HOST, logo(FcId::new(0x020a00), HOST_PORT, 1));
    assert_eq!(rejected(&answers), Some((LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_N_PORT_ID)));
    assert_eq!(bed.discarded(Discard::NotLoggedIn), 2);
}

#[test]
fn only_addresses_of_the_fabric_are_granted() {
    let mut bed = Bed::new();
    let refused = Some((LsRjtReason::FIP_ERROR, LsRjtExplanation::MAC_ADDRESSING_MODE));
    let answers = bed.fip(fcf_mac(1), HOST, flogi(HOST_PORT, 1, flag::SPMA));
    assert_eq!(rejected(&answers), refused);
    assert_eq!(bed.net.switch(bed.switch).fcf.links().count(), 0);
    let answers = bed.fip(fcf_mac(1), HOST, flogi(HOST_PORT, 2, flag::SPMA | flag::FPMA));
    assert!(granted(&answers).is_some());
}

#[test]
fn a_repeated_login_is_answered_again_and_executed_once() {
    let mut bed = Bed::new();
    let first = bed.log_in(HOST, HOST_PORT);
    let logins = |bed: &Bed| bed.net.switch(bed.switch).switch.counters().fabric_logins;
    let again = bed.fip(fcf_mac(1), HOST, flogi(HOST_PORT, 7, flag::FPMA));
    assert_eq!((granted(&again), logins(&bed)), (Some(first), 1));
    // A host that solicits again starts a new login, and so does one that repeats its FLOGI later.
    bed.send_hex(MacAddr::ALL_FCFS, HOST, SOLICITATION);
    let again = bed.fip(fcf_mac(1), HOST, flogi(HOST_PORT, 7, flag::FPMA));
    assert_eq!((granted(&again), logins(&bed), clears(&again).len()), (Some(first), 2, 0));
    bed.ms(2_100);
    let again = bed.fip(fcf_mac(1), HOST, flogi(HOST_PORT, 7, flag::FPMA));
    assert_eq!((granted(&again), logins(&bed), clears(&again).len()), (Some(first), 3, 0));
}

#[test]
fn hosts_share_the_ports_and_get_their_previous_port_again() {
    let mut bed = Bed::with(|config| config.ports = vec![20, 21]);
    let other = MacAddr([2, 0, 0, 0, 0, 2]);
    let third = MacAddr([2, 0, 0, 0, 0, 3]);
    let (one, two) = (bed.log_in(HOST, HOST_PORT), bed.log_in(other, Wwpn(2)));
    assert_eq!((one.area(), two.area()), (20, 21));
    let answers = bed.fip(fcf_mac(1), third, flogi(Wwpn(3), 1, flag::FPMA));
    assert_eq!(rejected(&answers), Some((LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES)));
    assert_eq!(bed.discarded(Discard::NoRoom), 1);
    bed.fip(fcf_mac(1), HOST, logo(one, HOST_PORT, 2));
    bed.fip(fcf_mac(1), other, logo(two, Wwpn(2), 2));
    assert_eq!(bed.log_in(other, Wwpn(2)), two);
    assert_eq!(bed.log_in(third, Wwpn(3)).area(), 20);
}

#[test]
fn a_host_without_keep_alives_for_two_and_a_half_periods_is_logged_out() {
    let mut bed = Bed::new();
    bed.log_in(HOST, HOST_PORT);
    for _ in 0..4 {
        bed.ms(19_900);
        assert_eq!(bed.ids().len(), 1);
        assert_eq!(bed.send_hex(fcf_mac(1), HOST, KEEP_ALIVE), []);
    }
    bed.net.received(bed.probe);
    bed.ms(20_001);
    assert_eq!(bed.ids().len(), 0);
    let reported = bed.net.received_fip(bed.probe);
    let clear =
        reported.iter().find(|(_, fip, _)| fip.operation == Operation::CLEAR_VIRTUAL_LINKS).expect("a notification");
    assert_eq!((clear.0.to, clear.1.mac(), clear.1.vx_port()), (HOST, Some(fcf_mac(1)), None));
    assert_eq!(clear.1.name(), Some(crate::fip::net::switch_name(1)));
}

#[test]
fn without_keep_alives_no_station_expires() {
    let mut bed = Bed::with(|config| config.keep_alives = false);
    bed.log_in(HOST, HOST_PORT);
    bed.ms(1_000_000);
    assert_eq!(bed.ids().len(), 1);
    assert!(bed.net.received_fip(bed.probe).iter().any(|(_, fip, _)| {
        fip.descriptors.contains(&Descriptor::AdvertisementPeriod { no_keep_alives: true, period_ms: 8_000 })
    }));
}

#[test]
fn only_the_virtual_port_without_keep_alives_is_logged_out() {
    let mut bed = Bed::new();
    let base = bed.log_in(HOST, HOST_PORT);
    let quiet = granted(&bed.fip(fcf_mac(1), HOST, fdisc(Wwpn(9), 3))).expect("an accept");
    let alive = (MacAddr::fpma(FcMap::DEFAULT, base), base, HOST_PORT);
    let mut reported = Vec::new();
    for second in 0..230 {
        if second % 8 == 0 {
            bed.send_hex(fcf_mac(1), HOST, KEEP_ALIVE);
        }
        if second % 90 == 0 {
            bed.fip(fcf_mac(1), alive.0, keep_alive(HOST, Some(alive)));
        }
        bed.ms(1_000);
        reported.extend(bed.net.received_fip(bed.probe).into_iter().map(|(_, fip, _)| fip));
        assert_eq!(bed.ids().len(), if second < 224 { 2 } else { 1 }, "after {second} s");
    }
    assert_eq!((bed.ids(), clears(&reported)), (vec![base], vec![vec![quiet]]));
}

#[test]
fn keep_alives_without_a_login_are_answered_after_the_time_that_a_login_takes() {
    let mut bed = Bed::new();
    let id = FcId::new(0x020a00);
    let mac = MacAddr::fpma(FcMap::DEFAULT, id);
    let answers = bed.fip(fcf_mac(1), mac, keep_alive(HOST, Some((mac, id, HOST_PORT))));
    assert_eq!(clears(&answers), [[id]]);
    // A host sends keep-alives as soon as it has chosen the FCF; its FLOGI may follow seconds
    // later.
    let mut cleared = Vec::new();
    for second in 0..9 {
        cleared.extend(clears(&bed.send_hex(fcf_mac(1), HOST, KEEP_ALIVE)));
        assert_eq!(cleared.len(), usize::from(second >= 8), "after {second} s");
        bed.ms(1_000);
    }
    assert_eq!(cleared, [Vec::<FcId>::new()]);
}

#[test]
fn frames_with_inconsistent_addresses_are_dropped_and_counted() {
    let mut bed = Bed::new();
    let id = bed.log_in(HOST, HOST_PORT);
    let other = MacAddr([2, 0, 0, 0, 0, 2]);
    let mac = MacAddr::fpma(FcMap::DEFAULT, id);
    let spoofs = [
        (other, keep_alive(HOST, None)),
        (other, keep_alive(HOST, Some((mac, id, HOST_PORT)))),
        (mac, keep_alive(other, Some((mac, id, HOST_PORT)))),
        (mac, keep_alive(HOST, Some((mac, id, Wwpn(5))))),
        (other, logo(id, HOST_PORT, 5)),
        (other, Fip::parse(&unhex(SOLICITATION)).expect("a packet")),
    ];
    for (number, (from, packet)) in spoofs.into_iter().enumerate() {
        assert_eq!(bed.fip(fcf_mac(1), from, packet), [], "{number}");
        assert_eq!(bed.discarded(Discard::Spoofed), number as u64 + 1);
    }
    assert_eq!(bed.ids(), [id]);
    let unrelated = FcId::new(0x020b00);
    assert_eq!(bed.ingress(other, id), Ingress::UnknownSource);
    assert_eq!(bed.ingress(mac, unrelated), Ingress::Spoofed);
    assert_eq!(bed.ingress(MacAddr::fpma(FcMap::DEFAULT, unrelated), unrelated), Ingress::Spoofed);
    let bindings = &bed.net.switch(bed.switch).bindings;
    assert_eq!(bindings.ingress(MacAddr::PRE_FIP_FCF, other, FcId::ZERO), Ingress::PreFip);
    assert_eq!(bindings.ingress(other, mac, id), Ingress::NotForUs);
}

#[test]
fn packets_with_wrong_descriptors_are_dropped_by_reason() {
    let mut bed = Bed::new();
    let mut unknown = flogi(HOST_PORT, 1, flag::FPMA);
    unknown.descriptors.push(Descriptor::Other { kind: 99, body: [0, 0].into() });
    let mut vendor = flogi(HOST_PORT, 2, flag::FPMA);
    vendor.descriptors.push(Descriptor::Other { kind: 241, body: [0, 0].into() });
    let mut twice = flogi(HOST_PORT, 3, flag::FPMA);
    twice.descriptors.push(twice.descriptors[0].clone());
    let mut without = flogi(HOST_PORT, 4, flag::FPMA);
    without.descriptors.pop();
    let other_service = request(LinkService::Fdisc, Els::Flogi(login(HOST_PORT)), FcId::ZERO, 5, flag::FPMA);
    for (packet, reason) in [
        (unknown, Discard::UnknownCritical),
        (twice, Discard::Descriptors),
        (without, Discard::Descriptors),
        (other_service, Discard::Descriptors),
        (Fip { operation: Operation::BEACON, flags: 0, descriptors: vec![] }, Discard::UnexpectedOperation),
        (Fip { operation: Operation::KEEP_ALIVE, flags: 0, descriptors: vec![] }, Discard::Descriptors),
    ] {
        let before = bed.discarded(reason);
        assert_eq!(bed.fip(fcf_mac(1), HOST, packet.clone()), [], "{packet:?}");
        assert_eq!(bed.discarded(reason), before + 1, "{packet:?}");
    }
    let input = Input::Fip { to: fcf_mac(1), from: HOST, pdu: [0x10, 0, 0].into() };
    bed.net.fcf(bed.switch, input);
    assert_eq!(bed.discarded(Discard::Malformed), 1);
    assert!(granted(&bed.fip(fcf_mac(1), HOST, vendor)).is_some());
}

#[test]
fn a_login_removed_by_the_switch_is_cleared_at_the_host() {
    let mut bed = Bed::new();
    let base = bed.log_in(HOST, HOST_PORT);
    let id = granted(&bed.fip(fcf_mac(1), HOST, fdisc(Wwpn(9), 3))).expect("an accept");
    // The name of the virtual port logs in elsewhere, so the old login ends.
    let other = MacAddr([2, 0, 0, 0, 0, 2]);
    let answers = bed.fip(fcf_mac(1), other, flogi(Wwpn(9), 4, flag::FPMA));
    assert_eq!(clears(&answers), [[id]]);
    assert!(granted(&answers).is_some());
    assert_eq!(bed.ids().len(), 2);
    bed.net.fcf(bed.switch, Input::Clear { port: 10 });
    bed.ms(1);
    let reported: Vec<Fip> = bed.net.received_fip(bed.probe).into_iter().map(|(_, fip, _)| fip).collect();
    assert_eq!(clears(&reported), [Vec::<FcId>::new()]);
    assert!(!bed.ids().contains(&base));
}

#[test]
fn an_enode_may_clear_its_own_links() {
    let mut bed = Bed::new();
    let base = bed.log_in(HOST, HOST_PORT);
    let id = granted(&bed.fip(fcf_mac(1), HOST, fdisc(Wwpn(9), 3))).expect("an accept");
    let mac = MacAddr::fpma(FcMap::DEFAULT, id);
    let clear = |vx_port: Option<Descriptor>| Fip {
        operation: Operation::CLEAR_VIRTUAL_LINKS,
        flags: 0,
        descriptors: [Descriptor::Mac(HOST), Descriptor::Name(HOST_NODE)].into_iter().chain(vx_port).collect(),
    };
    let other = MacAddr([2, 0, 0, 0, 0, 2]);
    bed.fip(fcf_mac(1), other, clear(None));
    assert_eq!((bed.ids().len(), bed.discarded(Discard::NotLoggedIn)), (2, 1));
    bed.fip(fcf_mac(1), HOST, clear(Some(Descriptor::VxPort { mac, port_id: id, port_name: Wwpn(9) })));
    assert_eq!(bed.ids(), [base]);
    bed.fip(fcf_mac(1), HOST, clear(None));
    assert_eq!(bed.ids(), []);
}

#[test]
fn start_and_shutdown_are_announced_to_all_stations() {
    let mut bed = Bed::new();
    let id = bed.log_in(HOST, HOST_PORT);
    bed.net.fcf(bed.switch, Input::Shutdown);
    bed.ms(1);
    let reported = bed.net.received_fip(bed.probe);
    let (header, clear, _) =
        reported.iter().find(|(_, fip, _)| fip.operation == Operation::CLEAR_VIRTUAL_LINKS).unwrap();
    assert_eq!((header.to, clear.vx_port(), bed.ids().len()), (MacAddr::ALL_ENODES, None, 0));
    let down = Event::VnPortDown { port_id: id, port_name: HOST_PORT };
    assert!(bed.net.switch(bed.switch).events.contains(&down));
    bed.net.fcf(bed.switch, Input::LinkUp);
    bed.ms(1);
    let reported: Vec<Operation> = bed
        .net
        .received_fip(bed.probe)
        .into_iter()
        .filter(|(header, ..)| header.to == MacAddr::ALL_ENODES)
        .map(|(_, fip, _)| fip.operation)
        .collect();
    assert_eq!(reported, [Operation::CLEAR_VIRTUAL_LINKS, Operation::ADVERTISEMENT]);
}
