//! ENode, with the rules by which Linux hosts accept or ignore advertisements of FCFs.

use crate::fip::fcf::unhex;
use crate::fip::host::host_mac;
use sanloom_fc::fip::enode::{Enode, EnodeConfig, Input, Output};
use sanloom_fc::fip::{Advertisement, Discard};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};

const HOST: MacAddr = MacAddr([0x02, 0xfc, 0, 0, 0, 1]);
const NODE: Wwnn = Wwnn(0x1000_02fc_0000_0001);
pub const PORT: Wwpn = Wwpn(0x2000_02fc_0000_0001);
pub const FCF: MacAddr = MacAddr([0x02, 0xfc, 0xf0, 0, 0, 1]);
pub const ID: FcId = FcId::from_parts(1, 2, 0);

/// ENode with its link up.
pub struct Bed {
    pub enode: Enode,
    now: Instant,
}

impl Bed {
    pub fn new() -> (Bed, Vec<Output>) {
        let mut bed = Bed { enode: Enode::new(EnodeConfig::new(HOST, NODE)), now: Instant::ZERO };
        let outputs = bed.input(Input::LinkUp);
        (bed, outputs)
    }

    pub fn input(&mut self, input: Input) -> Vec<Output> {
        self.enode.handle(self.now, input);
        std::iter::from_fn(|| self.enode.poll_output()).collect()
    }

    pub fn fip_to(&mut self, to: MacAddr, from: MacAddr, packet: &Fip) -> Vec<Output> {
        let mut pdu = Vec::new();
        packet.emit(&mut pdu);
        self.input(Input::Fip { to, from, pdu: pdu.into() })
    }

    pub fn fip(&mut self, packet: &Fip) -> Vec<Output> {
        self.fip_to(HOST, FCF, packet)
    }

    /// Advances the clock and fires all timers.
    pub fn ms(&mut self, ms: u64) -> Vec<Output> {
        let end = self.now + Span::from_ms(ms);
        let mut outputs = Vec::new();
        while let Some(at) = self.enode.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    fn discarded(&self, reason: Discard) -> u64 {
        self.enode.discards().of(reason)
    }

    /// ENode that has chosen an FCF.
    pub fn chosen() -> Bed {
        let (mut bed, _) = Bed::new();
        bed.fip(&full_advertisement().packet());
        let outputs = bed.ms(2_000);
        assert!(matches!(outputs[..], [Output::FcfUp(_)]), "{outputs:?}");
        bed
    }

    /// ENode that has chosen an FCF and received its accept of FLOGI.
    pub fn logged_in() -> Bed {
        let mut bed = Bed::chosen();
        bed.input(Input::Send(flogi(1)));
        let outputs = bed.fip(&accept(LinkService::Flogi, 1, ID));
        assert!(matches!(outputs[..], [Output::Deliver(_)]), "{outputs:?}");
        bed
    }

    /// Like [`logged_in`](Bed::logged_in), with a virtual port that has the next address.
    fn with_virtual_port() -> Bed {
        let mut bed = Bed::logged_in();
        bed.input(Input::Send(request(Els::Fdisc(login(VIRTUAL)), FcId::ZERO, 9)));
        bed.fip(&accept(LinkService::Fdisc, 9, VIRTUAL_ID));
        assert_eq!(bed.enode.vn_ports().count(), 2);
        bed
    }
}

const VIRTUAL: Wwpn = Wwpn(77);
const VIRTUAL_ID: FcId = FcId::from_parts(1, 2, 1);

pub fn full_advertisement() -> Advertisement {
    Advertisement {
        mac: FCF,
        switch_name: Wwnn(0x1000_0000_c0ff_ee02),
        fabric_name: Wwnn(0x1000_0000_c0ff_ee01),
        fc_map: FcMap::DEFAULT,
        vf_id: 0,
        priority: 128,
        period: Span::from_ms(8_000),
        keep_alives: true,
        available: true,
        solicited: true,
    }
}

/// Advertisement of another FCF of the same fabric.
fn other(number: u8, priority: u8) -> Advertisement {
    Advertisement {
        mac: MacAddr([2, 0, 0, 0, 0, number]),
        switch_name: Wwnn(0x1000_0000_0000_0000 + u64::from(number)),
        priority,
        ..full_advertisement()
    }
}

fn login(port_name: Wwpn) -> Login {
    Login {
        common: CommonParameters { receive_size_bytes: 2112, ..CommonParameters::default() },
        port_name,
        node_name: NODE,
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3: ClassParameters { flags: ClassParameters::VALID, ..ClassParameters::default() },
    }
}

fn request(els: Els, s_id: FcId, ox_id: u16) -> Frame {
    let message = Message::from(els);
    Frame { header: message.header(s_id, FcId::F_PORT, ox_id, 0xffff), payload: Payload::Typed(message) }
}

pub fn flogi(ox_id: u16) -> Frame {
    request(Els::Flogi(login(PORT)), FcId::ZERO, ox_id)
}

fn answer(service: LinkService, els: Els, ox_id: u16, d_id: FcId, rest: Vec<Descriptor>) -> Fip {
    let message = Message::from(els);
    let header = message.header(FcId::F_PORT, d_id, ox_id, 0x8001);
    let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
    let first = Descriptor::LinkService { service, frame };
    let descriptors = std::iter::once(first).chain(rest).collect();
    Fip { operation: Operation::LINK_SERVICE_REPLY, flags: flag::FPMA | flag::FCF, descriptors }
}

pub fn accept(service: LinkService, ox_id: u16, id: FcId) -> Fip {
    let mac = Descriptor::Mac(MacAddr::fpma(FcMap::DEFAULT, id));
    answer(service, Els::LsAcc(LsAcc::Login(login(Wwpn(1)))), ox_id, id, vec![mac])
}

pub fn reject(ox_id: u16) -> Fip {
    let reject = LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES);
    answer(LinkService::Flogi, Els::LsRjt(reject), ox_id, FcId::ZERO, vec![])
}

pub fn clear(vx_ports: &[(FcId, Wwpn)]) -> Fip {
    let vx_port = |(id, name): &(FcId, Wwpn)| Descriptor::VxPort {
        mac: MacAddr::fpma(FcMap::DEFAULT, *id),
        port_id: *id,
        port_name: *name,
    };
    let own = [Descriptor::Mac(FCF), Descriptor::Name(full_advertisement().switch_name)];
    let descriptors = own.into_iter().chain(vx_ports.iter().map(vx_port)).collect();
    Fip { operation: Operation::CLEAR_VIRTUAL_LINKS, flags: flag::FCF, descriptors }
}

fn sent(outputs: &[Output]) -> Vec<&FipFrame> {
    let mut frames = Vec::new();
    for output in outputs {
        if let Output::Fip(frame) = output {
            frames.push(frame);
        }
    }
    frames
}

fn is_solicitation(outputs: &[Output], to: MacAddr) -> bool {
    matches!(sent(outputs)[..], [frame] if frame.to == to && frame.packet.operation == Operation::SOLICITATION)
}

#[test]
fn requests_equal_those_of_a_linux_host_byte_by_byte() {
    let (mut bed, outputs) = Bed::new();
    let [solicitation] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    let mut bytes = Vec::new();
    solicitation.packet.emit(&mut bytes);
    assert_eq!(bytes, unhex("10000001000100068000020202fc0000000104030000100002fc000000010601086e"));
    assert_eq!((solicitation.to, solicitation.from), (MacAddr::ALL_FCFS, HOST));
    let advertisement = "100000010002000c800701010080020202fcf00000010403000010000000c0ffee0205040000000efc0010000000c0ffee01\
                         0c02000000001f40";
    let pdu = unhex(advertisement).into();
    assert_eq!(bed.input(Input::Fip { to: HOST, from: FCF, pdu }), []);
    assert_eq!(bed.ms(2_000), [Output::FcfUp(full_advertisement())]);
    let outputs = bed.input(Input::Send(flogi(1)));
    let [request] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((request.to, request.from, request.packet.flags), (FCF, HOST, flag::FPMA));
    let shape = |packet: &Fip| {
        matches!(
            packet.descriptors[..],
            [Descriptor::LinkService { service: LinkService::Flogi, .. }, Descriptor::Mac(MacAddr::ZERO)]
        )
    };
    assert!(shape(&request.packet));
    bed.fip(&accept(LinkService::Flogi, 1, ID));
    let outputs = bed.ms(8_000);
    let [alive] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    let mut bytes = Vec::new();
    alive.packet.emit(&mut bytes);
    assert_eq!(bytes, unhex("10000003000100028000020202fc00000001"));
    assert_eq!((alive.to, alive.from), (FCF, HOST));
}

#[test]
fn an_advertisement_has_exactly_one_of_each_descriptor() {
    let good = full_advertisement().packet();
    for missing in 0..good.descriptors.len() {
        let (mut bed, _) = Bed::new();
        let mut packet = good.clone();
        packet.descriptors.remove(missing);
        bed.fip(&packet);
        assert_eq!((bed.enode.fcfs().count(), bed.discarded(Discard::Descriptors)), (0, 1), "without {missing}");
        let mut packet = good.clone();
        packet.descriptors.push(good.descriptors[missing].clone());
        bed.fip(&packet);
        assert_eq!((bed.enode.fcfs().count(), bed.discarded(Discard::Descriptors)), (0, 2), "{missing} twice");
    }
}

#[test]
fn an_advertisement_has_no_other_critical_descriptor() {
    for (extra, reason) in [
        (Descriptor::Vlan(100), Discard::Descriptors),
        (Descriptor::Other { kind: 16, body: [0, 0].into() }, Discard::UnknownCritical),
        (Descriptor::Other { kind: 127, body: [0, 0].into() }, Discard::UnknownCritical),
    ] {
        let (mut bed, _) = Bed::new();
        let mut packet = full_advertisement().packet();
        packet.descriptors.push(extra);
        bed.fip(&packet);
        assert_eq!((bed.enode.fcfs().count(), bed.discarded(reason)), (0, 1));
    }
    for kind in [128, 241, 255] {
        let (mut bed, _) = Bed::new();
        let mut packet = full_advertisement().packet();
        packet.descriptors.insert(2, Descriptor::Other { kind, body: [0, 0].into() });
        bed.fip(&packet);
        assert_eq!(bed.enode.fcfs().count(), 1);
    }
}

#[test]
fn an_advertisement_with_contradictory_fields_is_discarded() {
    for bad in [
        Advertisement { mac: MacAddr::ZERO, ..full_advertisement() },
        Advertisement { mac: MacAddr::ALL_FCFS, ..full_advertisement() },
        Advertisement { fc_map: FcMap([0, 0, 0]), ..full_advertisement() },
        Advertisement { fc_map: FcMap([0x0f, 0xfc, 0]), ..full_advertisement() },
        Advertisement { switch_name: Wwnn(0), ..full_advertisement() },
    ] {
        let (mut bed, _) = Bed::new();
        bed.fip(&bad.packet());
        assert_eq!((bed.enode.fcfs().count(), bed.discarded(Discard::Descriptors)), (0, 1), "{bad:?}");
    }
    let (mut bed, _) = Bed::new();
    bed.fip(&Advertisement { period: Span::from_ms(499), ..full_advertisement() }.packet());
    assert_eq!(bed.enode.fcfs().next().expect("an FCF").0.period, Span::from_ms(8_000));
}

#[test]
fn twenty_fcfs_are_stored_and_distinguished_by_names_map_and_address() {
    let (mut bed, _) = Bed::new();
    for number in 0..22 {
        bed.fip(&other(number + 1, 1).packet());
        bed.fip(&other(number + 1, 2).packet());
    }
    assert_eq!((bed.enode.fcfs().count(), bed.discarded(Discard::NoRoom)), (20, 4));
    let (mut bed, _) = Bed::new();
    bed.fip(&full_advertisement().packet());
    bed.fip(&Advertisement { fabric_name: Wwnn(5), ..full_advertisement() }.packet());
    bed.fip(&Advertisement { switch_name: Wwnn(5), ..full_advertisement() }.packet());
    bed.fip(&Advertisement { fc_map: FcMap([0x0e, 0xfc, 1]), ..full_advertisement() }.packet());
    bed.fip(&Advertisement { mac: MacAddr([2; 6]), ..full_advertisement() }.packet());
    assert_eq!(bed.enode.fcfs().count(), 5);
}

#[test]
fn an_fcf_is_usable_after_a_solicited_advertisement_if_it_accepts_logins() {
    let (mut bed, _) = Bed::new();
    let multicast = Advertisement { solicited: false, ..full_advertisement() };
    let outputs = bed.fip_to(MacAddr::ALL_ENODES, FCF, &multicast.packet());
    assert!(is_solicitation(&outputs, FCF), "{outputs:?}");
    let outputs = bed.fip_to(MacAddr::ALL_ENODES, FCF, &multicast.packet());
    assert!(is_solicitation(&outputs, FCF), "each time: {outputs:?}");
    bed.fip(&Advertisement { available: false, ..full_advertisement() }.packet());
    bed.ms(3_000);
    assert_eq!(bed.enode.fcf(), None);
    bed.fip(&full_advertisement().packet());
    assert_eq!(bed.ms(2_000), [Output::FcfUp(full_advertisement())]);
    // From then on only the D bit and the period are evaluated.
    let outputs = bed.fip_to(MacAddr::ALL_ENODES, FCF, &Advertisement { available: false, ..multicast }.packet());
    assert_eq!(outputs, []);
    let faster = Advertisement { priority: 9, period: Span::from_ms(4_000), keep_alives: false, ..multicast };
    bed.fip_to(MacAddr::ALL_ENODES, FCF, &faster.packet());
    let now = bed.enode.fcf().expect("still chosen");
    assert_eq!((now.priority, now.period, now.keep_alives), (128, Span::from_ms(4_000), false));
    assert_eq!(bed.ms(5_000), [], "no keep-alives");
}

#[test]
fn the_fcf_with_the_lowest_priority_number_is_chosen_two_seconds_after_the_first_usable_one() {
    let (mut bed, _) = Bed::new();
    bed.fip(&full_advertisement().packet());
    bed.ms(1_000);
    bed.fip(&other(1, 3).packet());
    bed.fip(&other(2, 7).packet());
    assert_eq!(bed.ms(999), []);
    assert_eq!(bed.ms(1), [Output::FcfUp(other(1, 3))]);
}

#[test]
fn no_fcf_is_chosen_if_the_fabrics_differ() {
    for different in [
        Advertisement { fabric_name: Wwnn(5), ..other(1, 3) },
        Advertisement { vf_id: 7, ..other(1, 3) },
        Advertisement { fc_map: FcMap([0x0e, 0xfc, 1]), ..other(1, 3) },
    ] {
        let (mut bed, _) = Bed::new();
        bed.fip(&full_advertisement().packet());
        bed.fip(&different.packet());
        assert_eq!(bed.ms(7_900), []);
        assert_eq!((bed.enode.fcf(), bed.enode.counters().conflicts), (None, 3));
        // An FCF that only sends multicast advertisements does not count, nor does one that has
        // disappeared.
        bed.fip(&full_advertisement().packet());
        bed.ms(14_000);
        assert_eq!(bed.enode.fcf(), Some(&full_advertisement()));
    }
}

#[test]
fn a_repeated_login_goes_to_the_next_fcf() {
    let (mut bed, _) = Bed::new();
    bed.fip(&full_advertisement().packet());
    bed.fip(&other(1, 200).packet());
    bed.ms(2_000);
    let to = |outputs: &[Output]| sent(outputs)[0].to;
    for fcf in [FCF, other(1, 200).mac, FCF, other(1, 200).mac] {
        assert_eq!(to(&bed.input(Input::Send(flogi(1)))), fcf);
    }
}

#[test]
fn a_rejected_login_goes_to_the_next_fcf_and_the_last_reject_to_the_port() {
    let (mut bed, _) = Bed::new();
    bed.fip(&full_advertisement().packet());
    bed.fip(&other(1, 200).packet());
    bed.ms(2_000);
    bed.input(Input::Send(flogi(1)));
    let outputs = bed.fip(&reject(1));
    assert_eq!(sent(&outputs)[0].to, other(1, 200).mac);
    let outputs = bed.fip_to(HOST, other(1, 200).mac, &reject(1));
    assert!(matches!(outputs[..], [Output::Deliver(_)]), "{outputs:?}");
}

#[test]
fn an_fcf_is_missed_after_one_and_a_half_periods_and_removed_after_two_and_a_half() {
    let mut bed = Bed::logged_in();
    bed.ms(9_999);
    assert_eq!(bed.enode.counters().missed_advertisements, 0);
    bed.ms(1);
    assert_eq!(bed.enode.counters().missed_advertisements, 1);
    let outputs = bed.ms(7_999);
    assert!(!outputs.contains(&Output::FcfDown));
    let outputs = bed.ms(1);
    assert_eq!(outputs[0], Output::FcfDown);
    assert!(is_solicitation(&outputs, MacAddr::ALL_FCFS));
    assert_eq!((bed.enode.vn_ports().count(), bed.enode.fcfs().count()), (0, 0));
}

#[test]
fn a_reply_contains_the_link_service_and_then_the_address() {
    let good = accept(LinkService::Flogi, 1, ID);
    let mac = good.descriptors[1].clone();
    let extra = Descriptor::Other { kind: 128, body: [0, 0].into() };
    let zero = Descriptor::Mac(MacAddr::ZERO);
    let name = Descriptor::Name(NODE);
    let service = good.descriptors[0].clone();
    for (descriptors, taken) in [
        (vec![service.clone(), mac.clone()], true),
        (vec![service.clone(), mac.clone(), extra.clone()], true),
        (vec![mac.clone(), service.clone()], false),
        (vec![service.clone(), extra.clone(), mac.clone()], false),
        (vec![service.clone()], false),
        (vec![service.clone(), zero], false),
        (vec![service.clone(), Descriptor::Mac(MacAddr::ALL_FCFS)], false),
        (vec![service.clone(), mac.clone(), name], false),
        (vec![service.clone(), service, mac], false),
    ] {
        let mut bed = Bed::chosen();
        bed.input(Input::Send(flogi(1)));
        let outputs = bed.fip(&Fip { descriptors, ..good.clone() });
        assert_eq!(matches!(outputs[..], [Output::Deliver(_)]), taken, "{outputs:?}");
        assert_eq!(bed.enode.vn_ports().count(), usize::from(taken));
    }
}

#[test]
fn frames_are_sent_to_a_third_address_in_the_reply() {
    let mut bed = Bed::chosen();
    bed.input(Input::Send(flogi(1)));
    let elsewhere = MacAddr([2, 9, 9, 9, 9, 9]);
    let mut split = accept(LinkService::Flogi, 1, ID);
    split.descriptors.push(Descriptor::Mac(elsewhere));
    bed.fip(&split);
    let own = MacAddr::fpma(FcMap::DEFAULT, ID);
    assert_eq!(bed.enode.path(ID), Some((elsewhere, own)));
    assert_eq!(bed.enode.ingress(own, elsewhere, FcId::NAME_SERVER, ID), Ok(()));
    assert_eq!(bed.enode.ingress(own, FCF, FcId::NAME_SERVER, ID), Err(Discard::Spoofed));
}

#[test]
fn only_the_fcf_of_an_open_request_can_answer_it() {
    let mut bed = Bed::chosen();
    bed.input(Input::Send(flogi(1)));
    let good = accept(LinkService::Flogi, 1, ID);
    assert_eq!(bed.fip_to(HOST, other(1, 1).mac, &good), []);
    assert_eq!(bed.discarded(Discard::Spoofed), 1);
    assert_eq!(bed.fip(&accept(LinkService::Flogi, 2, ID)), []);
    assert_eq!(bed.fip(&accept(LinkService::Fdisc, 1, ID)), []);
    assert_eq!(bed.discarded(Discard::Stale), 2);
    assert_eq!(bed.fip(&good).len(), 1);
    assert_eq!(bed.fip(&good), []);
    assert_eq!(bed.discarded(Discard::Stale), 3);
}

#[test]
fn only_logouts_from_the_fabric_are_sent_over_fip() {
    let mut bed = Bed::with_virtual_port();
    let elsewhere = Message::from(Els::Logo(Logo { port_id: ID, port_name: PORT }));
    let header = elsewhere.header(ID, FcId::NAME_SERVER, 4, 0xffff);
    let outputs = bed.input(Input::Send(Frame { header, payload: Payload::Typed(elsewhere) }));
    assert!(matches!(outputs[..], [Output::Fcoe { to: FCF, .. }]), "{outputs:?}");
    let logo = Els::Logo(Logo { port_id: VIRTUAL_ID, port_name: VIRTUAL });
    let outputs = bed.input(Input::Send(request(logo, VIRTUAL_ID, 5)));
    let [logo] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    let own = MacAddr::fpma(FcMap::DEFAULT, VIRTUAL_ID);
    assert_eq!((logo.packet.mac(), bed.enode.vn_ports().count()), (Some(own), 1));
    let reply = answer(LinkService::Logo, Els::LsAcc(LsAcc::Empty), 5, VIRTUAL_ID, vec![Descriptor::Mac(own)]);
    assert_eq!(bed.fip(&reply).len(), 1);
    let vn_port = MacAddr::fpma(FcMap::DEFAULT, ID);
    assert_eq!(bed.enode.ingress(vn_port, FCF, FcId::F_PORT, ID), Err(Discard::NotForUs));
}

#[test]
fn frames_come_from_the_fcf_and_to_an_address_that_belongs_to_their_d_id() {
    let bed = Bed::with_virtual_port();
    let (own, other_port) = (MacAddr::fpma(FcMap::DEFAULT, ID), MacAddr::fpma(FcMap::DEFAULT, VIRTUAL_ID));
    let peer = FcId::new(0x020000);
    assert_eq!(bed.enode.ingress(own, FCF, peer, ID), Ok(()));
    assert_eq!(bed.enode.ingress(own, HOST, peer, ID), Err(Discard::Spoofed));
    assert_eq!(bed.enode.ingress(other_port, FCF, peer, ID), Err(Discard::NotForUs));
    assert_eq!(bed.enode.ingress(HOST, FCF, peer, ID), Err(Discard::NotForUs));
    assert_eq!(bed.enode.ingress(own, FCF, peer, peer), Err(Discard::NotLoggedIn));
}

#[test]
fn a_clear_without_ports_ends_all_logins_and_restarts_discovery() {
    let mut bed = Bed::with_virtual_port();
    let outputs = bed.fip(&clear(&[]));
    assert_eq!(outputs[0], Output::FcfDown);
    assert!(is_solicitation(&outputs, MacAddr::ALL_FCFS));
    assert_eq!((bed.enode.vn_ports().count(), bed.enode.fcfs().count()), (0, 0));
    assert_eq!(bed.enode.counters().virtual_link_failures, 1);
}

#[test]
fn a_clear_of_the_first_port_ends_the_virtual_ones_too() {
    let mut bed = Bed::with_virtual_port();
    assert_eq!(bed.fip(&clear(&[(ID, PORT)]))[0], Output::FcfDown);
}

#[test]
fn a_clear_of_a_virtual_port_ends_only_that_port() {
    let mut bed = Bed::with_virtual_port();
    assert_eq!(bed.fip(&clear(&[(VIRTUAL_ID, VIRTUAL)])), [Output::Cleared { port_id: VIRTUAL_ID }]);
    assert_eq!(bed.enode.vn_ports().map(|(id, ..)| id).collect::<Vec<_>>(), [ID]);
}

#[test]
fn a_clear_with_a_wrong_fcf_or_port_is_discarded() {
    let mut wrong_mac = clear(&[]);
    wrong_mac.descriptors[0] = Descriptor::Mac(HOST);
    let mut wrong_name = clear(&[]);
    wrong_name.descriptors[1] = Descriptor::Name(NODE);
    let mut without_name = clear(&[]);
    without_name.descriptors.remove(1);
    let mut extra = clear(&[]);
    extra.descriptors.push(Descriptor::Priority(1));
    let mut bed = Bed::with_virtual_port();
    for packet in [wrong_mac, wrong_name, without_name, extra] {
        assert_eq!(bed.fip(&packet), []);
    }
    assert_eq!(bed.discarded(Discard::Descriptors), 4);
    assert_eq!(bed.fip_to(HOST, host_mac(9), &clear(&[])), []);
    assert_eq!(bed.discarded(Discard::Spoofed), 1);
    for vx_port in [(VIRTUAL_ID, PORT), (ID, VIRTUAL), (FcId::new(0x010203), VIRTUAL)] {
        assert_eq!(bed.fip(&clear(&[vx_port])), []);
    }
    assert_eq!((bed.discarded(Discard::NotLoggedIn), bed.enode.vn_ports().count()), (3, 2));
}

#[test]
fn a_clear_before_the_first_login_restarts_discovery() {
    let mut bed = Bed::chosen();
    let outputs = bed.fip_to(MacAddr::ALL_ENODES, FCF, &clear(&[]));
    assert_eq!(outputs[0], Output::FcfDown);
    assert!(is_solicitation(&outputs, MacAddr::ALL_FCFS));
}

#[test]
fn virtual_ports_send_keep_alives_every_ninety_seconds() {
    let mut bed = Bed::with_virtual_port();
    let mut alive = Vec::new();
    for _ in 0..95 {
        bed.fip(&full_advertisement().packet());
        alive.extend(bed.ms(1_000));
    }
    let of_vn_ports = sent(&alive).into_iter().filter(|frame| frame.packet.vx_port().is_some());
    let full_advertisement: Vec<_> =
        of_vn_ports.map(|frame| (frame.from, frame.packet.mac(), frame.packet.vx_port())).collect();
    let vx = |id, name| {
        let mac = MacAddr::fpma(FcMap::DEFAULT, id);
        (mac, Some(HOST), Some((mac, id, name)))
    };
    assert_eq!(full_advertisement, [vx(ID, PORT), vx(VIRTUAL_ID, VIRTUAL)]);
    assert_eq!(sent(&alive).len() - full_advertisement.len(), 11);
}

#[test]
fn vlan_requests_are_sent_three_times_or_until_a_reply() {
    let (mut bed, _) = Bed::new();
    let requested = |outputs: &[Output]| {
        sent(outputs).iter().filter(|frame| frame.packet.operation == Operation::VLAN_REQUEST).count()
    };
    assert_eq!(requested(&bed.input(Input::DiscoverVlans)), 1);
    assert_eq!(requested(&bed.ms(10_000)), 2);
    let named = Fip {
        operation: Operation::VLAN_NOTIFICATION,
        flags: flag::FCF,
        descriptors: vec![Descriptor::Mac(FCF), Descriptor::Vlan(100), Descriptor::Vlan(200)],
    };
    assert_eq!(bed.fip(&named), [], "no request is open");
    bed.input(Input::DiscoverVlans);
    let vlans = [Output::Vlans { fcf: FCF, vlans: vec![100, 200] }];
    assert_eq!(bed.fip(&named), vlans);
    assert_eq!(bed.fip(&named), vlans, "another FCF may answer, too");
    assert_eq!(requested(&bed.ms(10_000)), 0);
}
