//! One message of every kind, with the request that its reply needs. All fields have different
//! values.

mod ils;
mod management;
mod zoning;

use sanloom_wire::bls::{BaAcc, BaRjt, Bls};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::*;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual};
use sanloom_wire::link_control::{LinkControl, Reject};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::ns::{
    Entries, Entry, EntryFc4, IpAddress, NsAccept, NsObject, NsRequest, ZoneName, command as ns, one_type,
};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use sanloom_wire::{FcId, Message, ReplyTo, Wwnn, Wwpn};

pub const HOST: FcId = FcId::from_parts(1, 2, 3);
pub const STORAGE: FcId = FcId::from_parts(2, 0x10, 0);
pub const HOST_PORT: Wwpn = Wwpn(0x2100_0024_ff00_0001);
pub const HOST_NODE: Wwnn = Wwnn(0x2000_0024_ff00_0001);
pub const NODE_IP: IpAddress = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
pub const STORAGE_PORT: Wwpn = Wwpn(0x5000_0972_0800_0001);

/// One message of every kind.
pub fn messages() -> Vec<(Message, Option<ReplyTo>)> {
    let mut all = Vec::new();
    all.extend(els_requests().into_iter().map(|els| (els.into(), None)));
    all.extend(els_replies().into_iter().map(|(request, els)| (els.into(), Some(ReplyTo::Els(request)))));
    all.extend(ns_requests().into_iter().map(|request| (Ct::ns_request(request).into(), None)));
    all.extend(
        ct_replies().into_iter().map(|(request, ct)| (ct.into(), Some(ReplyTo::Ct(Service::NAME_SERVER, request)))),
    );
    all.extend(management::messages());
    all.extend(ils::messages().into_iter().map(|(ils, request)| (ils.into(), request.map(ReplyTo::SwIls))));
    all.extend(zoning::requests().into_iter().map(|request| (Ct::fzs_request(request).into(), None)));
    let zone_request = Ct::fzs_request(sanloom_wire::fzs::FzsRequest::Gzc);
    all.extend(zoning::accepts().into_iter().map(|(request, accept)| {
        let reply = zone_request.reply(CtBody::FzsAccept(accept)).into();
        (reply, Some(ReplyTo::Ct(Service::FABRIC_ZONE_SERVER, request)))
    }));
    all.extend(others().into_iter().map(|message| (message, None)));
    all
}

pub fn login(features: u16) -> Login {
    Login {
        common: CommonParameters {
            highest_version: 0x20,
            lowest_version: 0x20,
            bb_credit: 16,
            features,
            bb_sc_n: 3,
            receive_size_bytes: 2112,
            word_8: 0x00ff_001f,
            e_d_tov: 2000,
        },
        port_name: HOST_PORT,
        node_name: HOST_NODE,
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3: ClassParameters {
            flags: ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY,
            initiator_control: 0,
            recipient_control: 0,
            receive_size_bytes: 2112,
            concurrent_sequences: 255,
            end_to_end_credit: 0,
            open_sequences: 1,
        },
    }
}

pub fn prli_page(parameters: u32, response: u8) -> PrliPage {
    PrliPage {
        fc4_type: 8,
        type_extension: 0,
        flags: prli::ESTABLISH_IMAGE_PAIR | response,
        originator_pa: 0,
        responder_pa: 0,
        parameters,
    }
}

fn adisc() -> Adisc {
    Adisc { hard_address: FcId::ZERO, port_name: HOST_PORT, node_name: HOST_NODE, port_id: HOST }
}

fn els_requests() -> Vec<Els> {
    let exchange = ExchangeRef { originator: HOST, ox_id: 0x1234, rx_id: 0x8765 };
    vec![
        Els::Plogi(login(feature::CONTINUOUS_OFFSET)),
        Els::Flogi(login(feature::MULTIPLE_N_PORT_ID)),
        Els::Fdisc(login(0)),
        Els::Pdisc(login(0)),
        Els::Logo(Logo { port_id: HOST, port_name: HOST_PORT }),
        Els::Rtv,
        Els::Rls { port_id: HOST },
        Els::Echo(Box::new([1, 2, 3, 4, 5])),
        Els::Test(Box::new([6, 7, 8])),
        Els::Rrq(exchange),
        Els::Rec(exchange),
        Els::Prli(Prli { pages: vec![prli_page(prli::INITIATOR | prli::READ_XFER_RDY_DISABLED, 0)] }),
        Els::Prlo(Prlo { pages: vec![prli_page(0, 0), prli_page(0, 0)] }),
        Els::Adisc(adisc()),
        Els::Fan(Fan {
            loop_fabric_address: FcId::from_parts(1, 2, 0),
            fabric_port_name: Wwpn(0x2004_00c0_ffee_0001),
            fabric_name: Wwnn(0x1000_00c0_ffee_0002),
        }),
        Els::Rscn(Rscn {
            pages: vec![
                RscnPage { qualifier: 2, format: AddressFormat::Port, address: HOST },
                RscnPage { qualifier: 0, format: AddressFormat::Domain, address: FcId::from_parts(7, 0, 0) },
            ],
        }),
        Els::Scr { function: scr::FULL },
        Els::Lirr { function: 1, format: 0x18 },
        Els::Rlir(LinkIncident {
            format: 0,
            port_name: Wwpn(0x2004_00c0_ffee_0001),
            node_name: HOST_NODE,
            port_type: 0x81,
            port_id: HOST,
            attached_port_name: HOST_PORT,
            attached_node_name: Wwnn(0x2000_0024_ff00_0009),
            fabric_name: Wwnn(0x1000_00c0_ffee_0001),
            physical_port: 4,
            transaction: 77,
            time_format: 1,
            time: 0x1122_3344_5566_7788,
            qualifier: link_incident::qualifier::SWITCH,
            code: link_incident::code::LOSS_OF_SIGNAL,
            isl_port: 0x0102,
        }),
        Els::Rnid { format: node_id::TOPOLOGY_FORMAT },
        Els::Rpsc,
        Els::Other { command: command::LKA, body: Box::new([0, 0, 0, 0xdf, 0, 0, 0]) },
    ]
}

fn els_replies() -> Vec<(u8, Els)> {
    let acc = Els::LsAcc;
    vec![
        (command::PLOGI, acc(LsAcc::Login(login(feature::CONTINUOUS_OFFSET)))),
        (command::FLOGI, acc(LsAcc::Login(login(feature::F_PORT)))),
        (command::PRLI, acc(LsAcc::Prli(Prli { pages: vec![prli_page(prli::TARGET, prli::RESPONSE_EXECUTED)] }))),
        (command::PRLO, acc(LsAcc::Prlo(Prlo { pages: vec![prli_page(0, prli::RESPONSE_EXECUTED)] }))),
        (command::ADISC, acc(LsAcc::Adisc(adisc()))),
        (command::RTV, acc(LsAcc::Rtv(Rtv { r_a_tov_ms: 10_000, e_d_tov: 2000, qualifier: 0 }))),
        (
            command::RLS,
            acc(LsAcc::Rls(LinkErrorStatus {
                link_failure: 1,
                loss_of_sync: 2,
                loss_of_signal: 3,
                primitive_sequence_error: 4,
                invalid_word: 5,
                invalid_crc: 6,
            })),
        ),
        (command::ECHO, acc(LsAcc::Echo(Box::new([1, 2, 3, 4, 5])))),
        (
            command::REC,
            acc(LsAcc::Rec(RecAcc {
                ox_id: 0x1234,
                rx_id: 0x8765,
                originator: HOST,
                responder: STORAGE,
                fc4_value: 4096,
                e_stat: 0x4000_0000,
            })),
        ),
        (
            command::RNID,
            acc(LsAcc::Rnid(Rnid {
                format: node_id::TOPOLOGY_FORMAT,
                common: Some((HOST_PORT, HOST_NODE)),
                specific: node_id::SpecificData::Topology(node_id::TopologyData {
                    vendor: *b"vendor unique...",
                    associated_type: node_id::associated_type::SWITCH,
                    physical_port: 4,
                    attached_nodes: 1,
                    management: 2,
                    ip_version: 3,
                    ip_port: 161,
                    ip: NODE_IP,
                    vendor_specific: 5,
                }),
            })),
        ),
        (
            command::RNID,
            acc(LsAcc::Rnid(Rnid {
                format: node_id::COMMON_FORMAT,
                common: Some((HOST_PORT, HOST_NODE)),
                specific: node_id::SpecificData::Other(Box::default()),
            })),
        ),
        (command::RPSC, acc(LsAcc::Rpsc(vec![PortSpeed { capabilities: 0xe800, operating: 0x0800 }]))),
        (command::RLIR, acc(LsAcc::Empty)),
        (command::SCR, acc(LsAcc::Empty)),
        (command::LKA, acc(LsAcc::Other(Box::new([0, 0, 0, 9, 8, 7])))),
        (
            command::PLOGI,
            Els::LsRjt(LsRjt {
                reason: LsRjtReason::UNABLE,
                explanation: LsRjtExplanation::INSUFFICIENT_RESOURCES,
                vendor: 0x17,
            }),
        ),
    ]
}

pub fn ns_requests() -> Vec<NsRequest> {
    let (port_id, port_name, node_name) = (HOST, HOST_PORT, HOST_NODE);
    let symbolic_name = || Box::from(&b"sanloom 0.1 fcp host1"[..]);
    let (domain, area, fc4_type) = (0, 0, 8);
    let (ip, process_associator) = (NODE_IP, *b"ipa-node");
    vec![
        NsRequest::GaNxt { port_id },
        NsRequest::GidA { domain: 7 },
        NsRequest::GippId { port_id },
        NsRequest::GhaId { port_id },
        NsRequest::GfdId { port_id, types: one_type(8) },
        NsRequest::GippPn { port_name },
        NsRequest::GpnNn { node_name },
        NsRequest::GipNn { node_name },
        NsRequest::GipaNn { node_name },
        NsRequest::GnnIp { ip },
        NsRequest::GipaIp { ip },
        NsRequest::GidIpp { ip },
        NsRequest::GpnIpp { ip },
        NsRequest::RippId { port_id, ip },
        NsRequest::RhaId { port_id, hard_address: FcId::new(0x0000ef) },
        NsRequest::RfdId { port_id, descriptors: vec![(8, (*b"fcp").into()), (0x28, [b'n'; 255].into())] },
        NsRequest::RipNn { node_name, ip },
        NsRequest::RipaNn { node_name, process_associator },
        NsRequest::GpnId { port_id },
        NsRequest::GnnId { port_id },
        NsRequest::GcsId { port_id },
        NsRequest::GftId { port_id },
        NsRequest::GspnId { port_id },
        NsRequest::GptId { port_id },
        NsRequest::GfpnId { port_id },
        NsRequest::GffId { port_id },
        NsRequest::GidPn { port_name },
        NsRequest::GidNn { node_name },
        NsRequest::GsnnNn { node_name },
        NsRequest::GidFt { domain, area, fc4_type },
        NsRequest::GpnFt { domain, area, fc4_type },
        NsRequest::GnnFt { domain, area, fc4_type },
        NsRequest::GidPt { port_type: 0x7f, domain: 1, area: 2 },
        NsRequest::GidFf { domain: 1, area: 2, features: 3, fc4_type },
        NsRequest::RpnId { port_id, port_name },
        NsRequest::RnnId { port_id, node_name },
        NsRequest::RcsId { port_id, classes: 8 },
        NsRequest::RftId { port_id, types: one_type(8) },
        NsRequest::RspnId { port_id, symbolic_name: symbolic_name() },
        NsRequest::RptId { port_id, port_type: 1 },
        NsRequest::RffId { port_id, features: 2, fc4_type },
        NsRequest::RsnnNn { node_name, symbolic_name: symbolic_name() },
        NsRequest::DaId { port_id },
        NsRequest::GeId { port_id },
        NsRequest::GePn { port_name },
        NsRequest::GeNn { node_name },
        NsRequest::GeIp { ip: NODE_IP },
        NsRequest::GeFt { types: one_type(8) },
        NsRequest::GePt { port_type: 0x7f },
        NsRequest::GeZm { kind: 1, flags: 0, id: Box::new([7; 8]) },
        NsRequest::GeZn { name: ZoneName(Box::new(*b"backup")) },
        NsRequest::GeIpp { ip: NODE_IP },
        NsRequest::GeFf { features: Box::new(std::array::from_fn(|i| i as u8)) },
    ]
}

fn ct_replies() -> Vec<(u16, Ct)> {
    let object = NsObject {
        port_type: 1,
        port_id: HOST,
        port_name: HOST_PORT,
        symbolic_port_name: Box::new(*b"port"),
        node_name: HOST_NODE,
        symbolic_node_name: Box::new([b'n'; 255]),
        process_associator: *b"ipa-node",
        node_ip: NODE_IP,
        classes: 8,
        types: one_type(8),
        port_ip: [9; 16],
        fabric_port_name: Wwpn(0x2004_00c0_ffee_0001),
        hard_address: FcId::ZERO,
    };
    let short = NsObject { symbolic_port_name: [].into(), symbolic_node_name: [].into(), ..object.clone() };
    let fc4 = EntryFc4 { features: [0x12; 128], fc4_type: 8, descriptors: 1, descriptor: Box::new(*b"fcp") };
    let owner = FcId::domain_controller(HOST.domain());
    let entries = vec![
        Entry { owner, object: short, fc4: Some(Box::new(fc4)) },
        Entry { owner, object: object.clone(), fc4: None },
    ];
    let mut replies: Vec<_> = [
        (ns::GE_PT, NsAccept::Entries(Entries::Parsed(entries.into()))),
        (ns::GA_NXT, NsAccept::Object(Box::new(object))),
        (ns::GPN_ID, NsAccept::PortName(HOST_PORT)),
        (ns::GNN_ID, NsAccept::NodeName(HOST_NODE)),
        (ns::GCS_ID, NsAccept::Classes(8)),
        (ns::GFT_ID, NsAccept::Types(one_type(0x28))),
        (ns::GSPN_ID, NsAccept::SymbolicName(Box::new(*b"port"))),
        (ns::GPT_ID, NsAccept::PortType(1)),
        (ns::GFPN_ID, NsAccept::FabricPortName(Wwpn(0x2004_00c0_ffee_0001))),
        (ns::GFF_ID, NsAccept::Features(Box::new(std::array::from_fn(|i| i as u8)))),
        (ns::GID_PN, NsAccept::PortId(STORAGE)),
        (ns::GIPP_ID, NsAccept::Ip(NODE_IP)),
        (ns::GIPA_NN, NsAccept::ProcessAssociator(*b"ipa-node")),
        (ns::GHA_ID, NsAccept::HardAddress(STORAGE)),
        (ns::GFD_ID, NsAccept::Descriptors(vec![(*b"fcp").into(), Box::default()])),
        (ns::GNN_IP, NsAccept::NodeName(HOST_NODE)),
        (ns::GID_A, NsAccept::PortIds(vec![FcId::from_parts(1, 0, 0), FcId::from_parts(2, 0, 0)])),
        (ns::GPN_NN, NsAccept::PortNames(vec![(HOST, HOST_PORT)])),
        (ns::GID_FT, NsAccept::PortIds(vec![HOST, STORAGE])),
        (ns::GPN_FT, NsAccept::PortNames(vec![(HOST, HOST_PORT), (STORAGE, STORAGE_PORT)])),
        (ns::GNN_FT, NsAccept::NodeNames(vec![(HOST, HOST_NODE)])),
        (ns::RNN_ID, NsAccept::Empty),
    ]
    .into_iter()
    .map(|(request, accept)| (request, CtBody::NsAccept(accept)))
    .collect();
    replies.push((
        ns::GPN_FT,
        CtBody::Reject(CtReject {
            reason: CtReason::UNABLE,
            explanation: sanloom_wire::ns::explanation::FC4_TYPES_NOT_REGISTERED,
            vendor: 0,
        }),
    ));
    replies.push((0x0499, CtBody::Other { command: 0x8002, body: Box::new([0x80, 1, 0, 0]) }));
    let request = Ct::ns_request(NsRequest::GaNxt { port_id: HOST });
    replies.into_iter().map(|(command, body)| (command, request.reply(body))).collect()
}

fn others() -> Vec<Message> {
    let reject = Reject { action: 2, reason: 0x16, vendor: 9 };
    vec![
        Message::Bls(Bls::Nop),
        Message::Bls(Bls::Abts),
        Message::Bls(Bls::BaAcc(BaAcc::whole_exchange(0x1234, 0x8765))),
        Message::Bls(Bls::BaAcc(BaAcc { seq_id: Some(7), ox_id: 1, rx_id: 2, low_seq_cnt: 3, high_seq_cnt: 4 })),
        Message::Bls(Bls::BaRjt(BaRjt { reason: 3, explanation: 3, vendor: 1 })),
        Message::LinkControl(LinkControl::Ack1),
        Message::LinkControl(LinkControl::Ack0),
        Message::LinkControl(LinkControl::PRjt(reject)),
        Message::LinkControl(LinkControl::FRjt(reject)),
        Message::LinkControl(LinkControl::PBsy(reject)),
        Message::LinkControl(LinkControl::FBsy(Reject { action: 0, reason: 3, vendor: 0 })),
        Message::FcpCmnd(FcpCmnd {
            lun: [0, 1, 0, 0, 0, 0, 0, 0],
            crn: 0,
            attribute: 1,
            task_management: 0,
            flags: FcpCmnd::READ,
            cdb: Cdb::Read { lba: 0x1122, blocks: 8, fua: false }.to_bytes(),
            data_len: 4096,
        }),
        Message::FcpXferRdy(FcpXferRdy { offset: 0, burst_len: 4096 }),
        Message::FcpRsp(FcpRsp::GOOD),
        Message::FcpRsp(FcpRsp {
            status: sanloom_wire::cdb::status::CHECK_CONDITION,
            retry_delay: 0,
            residual: Residual::Under(4096),
            confirm: true,
            response_code: Some(0),
            sense: Some(Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE).to_bytes()),
        }),
        Message::FcpConf,
        Ct::request(Service::APPLICATION_SERVER, CtBody::Other { command: 0x0200, body: Box::new([1, 2, 3, 4]) })
            .into(),
    ]
}
