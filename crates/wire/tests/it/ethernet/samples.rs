//! One FIP packet and LLDPDU of every kind; all fields have different values.

use sanloom_wire::els::{Els, Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{EtherType, FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::lldp::{
    AppPriority, Application, EtsConfiguration, EtsRecommendation, Id, Lldpdu, Pfc, Tlv, TrafficClasses,
};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::sw_ils::{ClassF, Elp, ElpClass, FlowControl, SwAcc, SwIls};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};

pub const HOST: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
pub const FCF: MacAddr = MacAddr([0x02, 0xfc, 0xf0, 0, 0, 1]);
pub const ID: FcId = FcId::from_parts(1, 2, 3);
const NODE: Wwnn = Wwnn(0x1000_5254_0000_0001);
const SWITCH: Wwnn = Wwnn(0x1000_0000_c0ff_ee02);
const PORT: Wwpn = Wwpn(0x2000_5254_0000_0001);

pub fn login() -> Login {
    Login {
        common: CommonParameters {
            highest_version: 0x20,
            lowest_version: 0x20,
            bb_credit: 10,
            features: 0x8000,
            bb_sc_n: 0,
            receive_size_bytes: 2112,
            word_8: 0,
            e_d_tov: 0,
        },
        port_name: PORT,
        node_name: NODE,
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3: ClassParameters { flags: 0x8800, ..ClassParameters::default() },
    }
}

fn elp() -> Box<Elp> {
    Box::new(Elp {
        revision: 3,
        flags: 0,
        bb_sc_n: 0,
        r_a_tov_ms: 10_000,
        e_d_tov_ms: 2_000,
        port_name: PORT,
        switch_name: SWITCH,
        class_f: ClassF { flags: [0x80, 0, 0, 0, 0, 0], receive_size_bytes: 2112, ..ClassF::default() },
        classes: [ElpClass::default(), ElpClass::default(), ElpClass { flags: 0x8800, receive_size_bytes: 2112 }],
        flow_control: FlowControl::R_RDY,
        bb_credit: 16,
        flow_parameters: [0; 16].into(),
    })
}

fn carried(service: LinkService, message: Message, s_id: FcId, d_id: FcId) -> Descriptor {
    let header = message.header(s_id, d_id, 0x1234, 0xffff);
    Descriptor::LinkService { service, frame: Box::new(Frame { header, payload: Payload::Typed(message) }) }
}

/// One packet for every operation, with its destination and source addresses.
pub fn packets() -> Vec<(MacAddr, MacAddr, Fip)> {
    let els = |els: Els| Message::from(els);
    let zero = Descriptor::Mac(MacAddr::ZERO);
    let granted = Descriptor::Mac(MacAddr::fpma(FcMap::DEFAULT, ID));
    let (f_port, none) = (FcId::F_PORT, FcId::ZERO);
    let mac = |mac| Descriptor::Mac(mac);
    let vx_port = || Descriptor::VxPort { mac: MacAddr::fpma(FcMap::VN2VN, ID), port_id: ID, port_name: PORT };
    let fabric = Descriptor::Fabric { vf_id: 7, fc_map: FcMap::DEFAULT, name: SWITCH };
    let reject = LsRjt::new(LsRjtReason::FIP_ERROR, LsRjtExplanation::MAC_ADDRESSING_MODE);
    let switch = FcId::FABRIC_CONTROLLER;
    let mut types = [0; 8];
    types[0] = 1 << 8;
    types[1] = 1;
    let mut features = [0; 32];
    features[1] = 3;
    let attributes = Descriptor::Fc4Attributes { types, features: Box::new(features) };
    let request = Operation::LINK_SERVICE_REQUEST;
    let reply = Operation::LINK_SERVICE_REPLY;
    let fp = flag::FPMA;
    let fcf = flag::FPMA | flag::FCF;
    let vn2vn = || vec![mac(HOST), Descriptor::Name(NODE), vx_port()];
    let claim = || {
        let more = [attributes.clone(), Descriptor::MaxFcoeBytes(2158)];
        vn2vn().into_iter().chain(more).collect::<Vec<_>>()
    };
    let all = MacAddr::ALL_VN2VN_ENODES;
    let packet = |operation, flags, descriptors| Fip { operation, flags, descriptors };
    vec![
        (MacAddr::ALL_FCFS, HOST, packet(Operation::VLAN_REQUEST, 0, vec![mac(HOST)])),
        (
            HOST,
            FCF,
            packet(
                Operation::VLAN_NOTIFICATION,
                flag::FCF,
                vec![mac(FCF), Descriptor::Vlan(100), Descriptor::Vlan(4094)],
            ),
        ),
        (HOST, FCF, packet(Operation::VN2VN_VLAN_NOTIFICATION, 0, vec![mac(FCF), Descriptor::Vlan(100)])),
        (
            MacAddr::ALL_FCFS,
            HOST,
            packet(
                Operation::SOLICITATION,
                fp,
                vec![mac(HOST), Descriptor::Name(NODE), Descriptor::MaxFcoeBytes(2158)],
            ),
        ),
        (
            MacAddr::ALL_FCFS,
            FCF,
            packet(
                Operation::SOLICITATION,
                fcf,
                vec![
                    mac(FCF),
                    Descriptor::FcMap(FcMap::DEFAULT),
                    Descriptor::Name(SWITCH),
                    Descriptor::MaxFcoeBytes(2158),
                ],
            ),
        ),
        (
            HOST,
            FCF,
            packet(
                Operation::ADVERTISEMENT,
                fcf | flag::AVAILABLE | flag::SOLICITED,
                vec![
                    Descriptor::Priority(128),
                    mac(FCF),
                    Descriptor::Name(SWITCH),
                    fabric,
                    Descriptor::AdvertisementPeriod { no_keep_alives: true, period_ms: 8_000 },
                ],
            ),
        ),
        (
            FCF,
            HOST,
            packet(
                request,
                fp,
                vec![carried(LinkService::Flogi, els(Els::Flogi(login())), none, f_port), zero.clone()],
            ),
        ),
        (
            HOST,
            FCF,
            packet(
                reply,
                fcf,
                vec![carried(LinkService::Flogi, els(Els::LsAcc(LsAcc::Login(login()))), f_port, ID), granted.clone()],
            ),
        ),
        (
            FCF,
            HOST,
            packet(request, fp, vec![carried(LinkService::Fdisc, els(Els::Fdisc(login())), none, f_port), zero]),
        ),
        (HOST, FCF, packet(reply, fcf, vec![carried(LinkService::Fdisc, els(Els::LsRjt(reject)), f_port, none)])),
        (
            FCF,
            HOST,
            packet(
                request,
                fp,
                vec![
                    carried(LinkService::Logo, els(Els::Logo(Logo { port_id: ID, port_name: PORT })), ID, f_port),
                    granted.clone(),
                ],
            ),
        ),
        (
            HOST,
            FCF,
            packet(reply, fcf, vec![carried(LinkService::Logo, els(Els::LsAcc(LsAcc::Empty)), f_port, ID), granted]),
        ),
        (
            FCF,
            HOST,
            packet(request, fcf, vec![carried(LinkService::Elp, SwIls::Elp(elp()).into(), switch, switch), mac(FCF)]),
        ),
        (
            FCF,
            HOST,
            packet(
                reply,
                fcf,
                vec![carried(LinkService::Elp, SwIls::SwAcc(SwAcc::Elp(elp())).into(), switch, switch), mac(FCF)],
            ),
        ),
        (FCF, HOST, packet(Operation::KEEP_ALIVE, fp, vec![mac(HOST)])),
        (FCF, MacAddr::fpma(FcMap::DEFAULT, ID), packet(Operation::KEEP_ALIVE, fp, vec![mac(HOST), vx_port()])),
        (HOST, FCF, packet(Operation::CLEAR_VIRTUAL_LINKS, fcf, vec![mac(FCF), Descriptor::Name(SWITCH), vx_port()])),
        (all, HOST, packet(Operation::PROBE_REQUEST, 0, vn2vn())),
        (HOST, FCF, packet(Operation::PROBE_REPLY, 0, vn2vn())),
        (all, HOST, packet(Operation::CLAIM_NOTIFICATION, 0, claim())),
        (HOST, FCF, packet(Operation::CLAIM_RESPONSE, 0, claim())),
        (all, HOST, packet(Operation::BEACON, 0, vn2vn())),
        (
            FCF,
            HOST,
            packet(
                Operation::new(0xfff8, 9),
                0,
                vec![
                    Descriptor::VendorId(*b"sanloom "),
                    Descriptor::Other { kind: 200, body: [1, 2, 3, 4, 5, 6].into() },
                    Descriptor::Other { kind: 99, body: [7, 8].into() },
                ],
            ),
        ),
    ]
}

/// The LLDPDU of the switches of a lab: FCoE on priority 3, lossless, with half of the bandwidth.
pub fn lldpdu() -> Lldpdu {
    let traffic = TrafficClasses {
        classes: [0, 0, 0, 1, 0, 0, 0, 2],
        bandwidth_percent: [40, 50, 10, 0, 0, 0, 0, 0],
        algorithms: [2, 2, 0, 0, 0, 0, 0, 255],
    };
    let entries = [(EtherType::FCOE, 3), (EtherType::FIP, 3)].map(|(t, priority)| AppPriority::ether_type(t, priority));
    Lldpdu {
        tlvs: vec![
            Tlv::ChassisId(Id::chassis_mac(FCF)),
            Tlv::PortId(Id::interface("eth0")),
            Tlv::TimeToLive(120),
            Tlv::PortDescription((*b"port 1").into()),
            Tlv::SystemName((*b"loom").into()),
            Tlv::SystemDescription((*b"sanloom").into()),
            Tlv::SystemCapabilities { capable: 0x0014, enabled: 0x0004 },
            Tlv::EtsConfiguration(EtsConfiguration { willing: true, credit_shaper: false, max_classes: 3, traffic }),
            Tlv::EtsRecommendation(EtsRecommendation { traffic }),
            Tlv::Pfc(Pfc { willing: true, macsec_bypass: false, max_priorities: 8, priorities: 0x08 }),
            Tlv::Application(Application { entries: entries.into() }),
            Tlv::Organisation { oui: [0, 0x12, 0x0f], subtype: 4, body: [9, 220].into() },
            Tlv::Other { kind: 8, body: [5, 1, 10, 0, 0, 1, 2, 0, 0, 0, 1, 0].into() },
        ],
    }
}
