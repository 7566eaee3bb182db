//! Random values of every kind of message, with the request that its reply needs. Values that the
//! documentation of the types excludes are left out, for example bits beyond a field's width and
//! names of more than 255 bytes.

mod zoning;

use proptest::collection::vec;
use proptest::prelude::*;
use sanloom_wire::bls::{BaAcc, BaRjt, Bls};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, FS_ACC, FS_RJT, Service};
use sanloom_wire::els::*;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual};
use sanloom_wire::fdmi::{self, FdmiAccept, FdmiRequest};
use sanloom_wire::link_control::{LinkControl, Reject};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::ns::{self, NsAccept, NsObject, NsRequest};
use sanloom_wire::sw_ils::{
    self, ClassF, Efp, EfpRecord, Elp, ElpClass, Esc, EscAcc, EscProtocol, Ess, EssCapability, FlowControl, Rdi, SwAcc,
    SwIls,
};
use sanloom_wire::{FcId, Message, ReplyTo, Wwnn, Wwpn};

pub type Sample = (Message, Option<ReplyTo>);

pub fn messages() -> impl Strategy<Value = Sample> {
    let reply = |(request, els): (u8, Els)| (els.into(), Some(ReplyTo::Els(request)));
    prop_oneof![
        4 => els_requests().prop_map(|els| (els.into(), None)),
        4 => els_replies().prop_map(reply),
        6 => (preamble(), ns_requests()).prop_map(|(ct, request)| {
            (Ct { service: Service::NAME_SERVER, body: CtBody::Ns(request), ..ct }.into(), None)
        }),
        4 => (preamble(), ns_accepts()).prop_map(|(ct, (request, accept))| {
            let ct = Ct { service: Service::NAME_SERVER, body: CtBody::NsAccept(accept), ..ct };
            (ct.into(), Some(ReplyTo::Ct(Service::NAME_SERVER, request)))
        }),
        2 => fdmi().prop_map(|(body, reply_to)| {
            let reply_to = reply_to.map(|command| ReplyTo::Ct(Service::FDMI, command));
            (Ct::request(Service::FDMI, body).into(), reply_to)
        }),
        2 => (preamble(), zoning::requests()).prop_map(|(ct, request)| {
            (Ct { service: Service::FABRIC_ZONE_SERVER, body: CtBody::Fzs(request), ..ct }.into(), None)
        }),
        2 => (preamble(), zoning::accepts()).prop_map(|(ct, (request, accept))| {
            let ct = Ct { service: Service::FABRIC_ZONE_SERVER, body: CtBody::FzsAccept(accept), ..ct };
            (ct.into(), Some(ReplyTo::Ct(Service::FABRIC_ZONE_SERVER, request)))
        }),
        4 => zoning::link_services().prop_map(|(ils, request)| (ils.into(), request.map(ReplyTo::SwIls))),
        2 => other_ct().prop_map(|ct| (ct.into(), None)),
        4 => sw_ils(),
        2 => bls().prop_map(|bls| (Message::Bls(bls), None)),
        2 => link_control().prop_map(|link_control| (Message::LinkControl(link_control), None)),
        4 => fcp().prop_map(|message| (message, None)),
    ]
}

pub fn id() -> impl Strategy<Value = FcId> {
    any::<[u8; 3]>().prop_map(FcId::from_bytes)
}

fn wwpn() -> impl Strategy<Value = Wwpn> {
    any::<u64>().prop_map(Wwpn)
}

fn wwnn() -> impl Strategy<Value = Wwnn> {
    any::<u64>().prop_map(Wwnn)
}

fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Box<[u8]>> {
    vec(any::<u8>(), len).prop_map(Vec::into_boxed_slice)
}

fn symbolic_name() -> impl Strategy<Value = Box<[u8]>> {
    bytes(0..256)
}

prop_compose! {
    fn class()(words in any::<[u16; 7]>()) -> ClassParameters {
        let [flags, initiator_control, recipient_control, receive_size_bytes, rest @ ..] = words;
        let [concurrent_sequences, end_to_end_credit, open_sequences] = rest;
        ClassParameters {
            flags,
            initiator_control,
            recipient_control,
            receive_size_bytes,
            concurrent_sequences,
            end_to_end_credit,
            open_sequences,
        }
    }
}

prop_compose! {
    fn login()(
        (highest_version, lowest_version, bb_credit, features) in any::<(u8, u8, u16, u16)>(),
        bb_sc_n in 0..16_u8,
        receive_size_bytes in 0..0x1000_u16,
        (word_8, e_d_tov) in any::<(u32, u32)>(),
        port_name in wwpn(),
        node_name in wwnn(),
        (class_1, class_2, class_3) in (class(), class(), class()),
    ) -> Login {
        let common = CommonParameters {
            highest_version,
            lowest_version,
            bb_credit,
            features,
            bb_sc_n,
            receive_size_bytes,
            word_8,
            e_d_tov,
        };
        Login { common, port_name, node_name, class_1, class_2, class_3 }
    }
}

prop_compose! {
    fn page()((fc4_type, type_extension, flags) in any::<(u8, u8, u8)>(), words in any::<[u32; 3]>()) -> PrliPage {
        let [originator_pa, responder_pa, parameters] = words;
        PrliPage { fc4_type, type_extension, flags, originator_pa, responder_pa, parameters }
    }
}

fn prli() -> impl Strategy<Value = Prli> {
    vec(page(), 0..5).prop_map(|pages| Prli { pages })
}

fn prlo() -> impl Strategy<Value = Prlo> {
    vec(page(), 0..5).prop_map(|pages| Prlo { pages })
}

prop_compose! {
    fn adisc()(hard_address in id(), port_name in wwpn(), node_name in wwnn(), port_id in id()) -> Adisc {
        Adisc { hard_address, port_name, node_name, port_id }
    }
}

fn exchange() -> impl Strategy<Value = ExchangeRef> {
    (id(), any::<(u16, u16)>()).prop_map(|(originator, (ox_id, rx_id))| ExchangeRef { originator, ox_id, rx_id })
}

fn rscn() -> impl Strategy<Value = Rscn> {
    let page = (0..16_u8, 0..4_u8, id()).prop_map(|(qualifier, format, address)| RscnPage {
        qualifier,
        format: AddressFormat::from_code(format),
        address,
    });
    vec(page, 0..256).prop_map(|pages| Rscn { pages })
}

prop_compose! {
    fn link_incident()(
        (format, port_type, qualifier, code, time_format, isl_port) in any::<(u8, u8, u8, u8, u8, u16)>(),
        (port_name, attached_port_name, port_id) in (wwpn(), wwpn(), id()),
        (node_name, attached_node_name, fabric_name) in (wwnn(), wwnn(), wwnn()),
        (physical_port, transaction, time) in any::<(u32, u32, u64)>(),
    ) -> LinkIncident {
        LinkIncident {
            format,
            port_name,
            node_name,
            port_type,
            port_id,
            attached_port_name,
            attached_node_name,
            fabric_name,
            physical_port,
            transaction,
            time_format,
            time,
            qualifier,
            code,
            isl_port,
        }
    }
}

fn fdmi() -> impl Strategy<Value = (CtBody, Option<u16>)> {
    use fdmi::command::*;
    let attributes = || {
        let attribute =
            (any::<u16>(), bytes(0..60)).prop_map(|(attribute, value)| fdmi::Attribute { attribute, value });
        vec(attribute, 0..5)
    };
    let ports = || vec(wwpn(), 0..5);
    prop_oneof![
        (wwpn(), ports(), attributes())
            .prop_map(|(hba, ports, attributes)| (CtBody::Fdmi(FdmiRequest::Rhba { hba, ports, attributes }), None)),
        (wwpn(), attributes())
            .prop_map(|(port, attributes)| (CtBody::Fdmi(FdmiRequest::Rpa { port, attributes }), None)),
        (ports(), attributes()).prop_map(|(ports, attributes)| {
            (CtBody::FdmiAccept(FdmiAccept::Hba { ports, attributes }), Some(GHAT))
        }),
        (prop_oneof![Just(GRHL), Just(GRPL)], ports())
            .prop_map(|(command, names)| (CtBody::FdmiAccept(FdmiAccept::Names(names)), Some(command))),
    ]
}

fn els_requests() -> impl Strategy<Value = Els> {
    prop_oneof![
        login().prop_map(Els::Plogi),
        login().prop_map(Els::Flogi),
        login().prop_map(Els::Fdisc),
        login().prop_map(Els::Pdisc),
        (id(), wwpn()).prop_map(|(port_id, port_name)| Els::Logo(Logo { port_id, port_name })),
        Just(Els::Rtv),
        id().prop_map(|port_id| Els::Rls { port_id }),
        bytes(0..2000).prop_map(Els::Echo),
        bytes(0..2000).prop_map(Els::Test),
        exchange().prop_map(Els::Rrq),
        exchange().prop_map(Els::Rec),
        prli().prop_map(Els::Prli),
        prlo().prop_map(Els::Prlo),
        adisc().prop_map(Els::Adisc),
        (id(), wwpn(), wwnn()).prop_map(|(loop_fabric_address, fabric_port_name, fabric_name)| {
            Els::Fan(Fan { loop_fabric_address, fabric_port_name, fabric_name })
        }),
        rscn().prop_map(Els::Rscn),
        any::<u8>().prop_map(|function| Els::Scr { function }),
        any::<u8>().prop_map(|format| Els::Rnid { format }),
        Just(Els::Rpsc),
        link_incident().prop_map(Els::Rlir),
        any::<(u8, u8)>().prop_map(|(function, format)| Els::Lirr { function, format }),
        (prop_oneof![Just(command::FPIN), Just(command::RPL), Just(0xee)], bytes(3..300))
            .prop_map(|(command, body)| Els::Other { command, body }),
    ]
}

fn els_replies() -> impl Strategy<Value = (u8, Els)> {
    use command::*;
    let words = any::<[u32; 6]>();
    prop_oneof![
        any::<(u8, u8, u8, u8)>().prop_map(|(request, reason, explanation, vendor)| {
            let (reason, explanation) = (LsRjtReason(reason), LsRjtExplanation(explanation));
            (request, Els::LsRjt(LsRjt { reason, explanation, vendor }))
        }),
        prop_oneof![
            (prop_oneof![Just(PLOGI), Just(FLOGI), Just(FDISC), Just(PDISC)], login().prop_map(LsAcc::Login)),
            (Just(PRLI), prli().prop_map(LsAcc::Prli)),
            (Just(PRLO), prlo().prop_map(LsAcc::Prlo)),
            (Just(ADISC), adisc().prop_map(LsAcc::Adisc)),
            (Just(ECHO), bytes(0..2000).prop_map(LsAcc::Echo)),
            (Just(RPL), bytes(3..300).prop_map(LsAcc::Other)),
            (prop_oneof![Just(LOGO), Just(RSCN), Just(SCR), Just(RRQ), Just(LIRR)], Just(LsAcc::Empty)),
        ]
        .prop_map(|(request, accept)| (request, Els::LsAcc(accept))),
        words.prop_map(|[r_a_tov_ms, e_d_tov, qualifier, ..]| {
            (RTV, Els::LsAcc(LsAcc::Rtv(Rtv { r_a_tov_ms, e_d_tov, qualifier })))
        }),
        words.prop_map(|words| {
            let [link_failure, loss_of_sync, loss_of_signal, primitive_sequence_error, invalid_word, invalid_crc] =
                words;
            let counters = LinkErrorStatus {
                link_failure,
                loss_of_sync,
                loss_of_signal,
                primitive_sequence_error,
                invalid_word,
                invalid_crc,
            };
            (RLS, Els::LsAcc(LsAcc::Rls(counters)))
        }),
        (any::<(u16, u16)>(), id(), id(), words).prop_map(|((ox_id, rx_id), originator, responder, words)| {
            let [fc4_value, e_stat, ..] = words;
            (REC, Els::LsAcc(LsAcc::Rec(RecAcc { ox_id, rx_id, originator, responder, fc4_value, e_stat })))
        }),
    ]
}

/// All fields of a CT unit except service and body.
fn preamble() -> impl Strategy<Value = Ct> {
    (0..0x100_0000_u32, any::<(u8, u16)>()).prop_map(|(in_id, (options, max_or_residual_words))| Ct {
        in_id,
        service: Service::new(0, 0),
        options,
        max_or_residual_words,
        body: CtBody::Other { command: 0, body: Box::new([]) },
    })
}

fn other_ct() -> impl Strategy<Value = Ct> {
    let reject = any::<(u8, u8, u8)>().prop_map(|(reason, explanation, vendor)| {
        CtBody::Reject(CtReject { reason: CtReason(reason), explanation, vendor })
    });
    let other = (any::<u16>().prop_filter("a reject is typed", |&command| command != FS_RJT), bytes(0..100))
        .prop_map(|(command, body)| CtBody::Other { command, body });
    let of_other_service = (prop_oneof![Just(Service::TIME), Just(Service::APPLICATION_SERVER)], other);
    let of_name_server = (
        Just(Service::NAME_SERVER),
        bytes(0..100).prop_flat_map(|body| {
            let command = prop_oneof![Just(FS_ACC), Just(0x0499), Just(0x04f0), Just(0xbeef)];
            command.prop_map(move |command| CtBody::Other { command, body: body.clone() })
        }),
    );
    let rejected = (any::<(u8, u8)>().prop_map(|(t, s)| Service::new(t, s)), reject);
    (preamble(), prop_oneof![of_other_service, of_name_server, rejected]).prop_map(|(ct, (service, body))| Ct {
        service,
        body,
        ..ct
    })
}

fn descriptors() -> impl Strategy<Value = ns::Fc4Descriptors> {
    proptest::collection::btree_map(any::<u8>(), symbolic_name(), 0..4).prop_map(|all| all.into_iter().collect())
}

fn ns_requests() -> impl Strategy<Value = NsRequest> {
    let by_id = (0..15_usize, id(), any::<u32>()).prop_map(|(kind, port_id, classes)| match kind {
        0 => NsRequest::GaNxt { port_id },
        1 => NsRequest::GpnId { port_id },
        2 => NsRequest::GnnId { port_id },
        3 => NsRequest::GcsId { port_id },
        4 => NsRequest::GftId { port_id },
        5 => NsRequest::GspnId { port_id },
        6 => NsRequest::GptId { port_id },
        7 => NsRequest::GfpnId { port_id },
        8 => NsRequest::GffId { port_id },
        9 => NsRequest::DaId { port_id },
        10 => NsRequest::GippId { port_id },
        11 => NsRequest::GhaId { port_id },
        12 => NsRequest::GfdId { port_id, types: [classes; 8] },
        13 => NsRequest::RhaId { port_id, hard_address: FcId::new(classes) },
        _ => NsRequest::RcsId { port_id, classes },
    });
    let by_scope = any::<(u8, u8, u8, u8)>().prop_flat_map(|(domain, area, features, fc4_type)| {
        prop_oneof![
            Just(NsRequest::GidFt { domain, area, fc4_type }),
            Just(NsRequest::GpnFt { domain, area, fc4_type }),
            Just(NsRequest::GnnFt { domain, area, fc4_type }),
            Just(NsRequest::GidPt { port_type: features, domain, area }),
            Just(NsRequest::GidFf { domain, area, features, fc4_type }),
        ]
    });
    let by_ip = (0..5_u8, any::<[u8; 16]>(), id()).prop_map(|(kind, ip, port_id)| match kind {
        0 => NsRequest::GnnIp { ip },
        1 => NsRequest::GipaIp { ip },
        2 => NsRequest::GidIpp { ip },
        3 => NsRequest::GpnIpp { ip },
        _ => NsRequest::RippId { port_id, ip },
    });
    let by_node =
        (0..5_u8, wwnn(), any::<[u8; 16]>(), any::<[u8; 8]>()).prop_map(|(kind, node_name, ip, process_associator)| {
            match kind {
                0 => NsRequest::GpnNn { node_name },
                1 => NsRequest::GipNn { node_name },
                2 => NsRequest::GipaNn { node_name },
                3 => NsRequest::RipNn { node_name, ip },
                _ => NsRequest::RipaNn { node_name, process_associator },
            }
        });
    prop_oneof![
        by_id,
        by_scope,
        by_ip,
        by_node,
        any::<u8>().prop_map(|domain| NsRequest::GidA { domain }),
        wwpn().prop_map(|port_name| NsRequest::GippPn { port_name }),
        (id(), descriptors()).prop_map(|(port_id, descriptors)| NsRequest::RfdId { port_id, descriptors }),
        wwpn().prop_map(|port_name| NsRequest::GidPn { port_name }),
        wwnn().prop_map(|node_name| NsRequest::GidNn { node_name }),
        wwnn().prop_map(|node_name| NsRequest::GsnnNn { node_name }),
        (id(), wwpn()).prop_map(|(port_id, port_name)| NsRequest::RpnId { port_id, port_name }),
        (id(), wwnn()).prop_map(|(port_id, node_name)| NsRequest::RnnId { port_id, node_name }),
        (id(), any::<[u32; 8]>()).prop_map(|(port_id, types)| NsRequest::RftId { port_id, types }),
        (id(), symbolic_name()).prop_map(|(port_id, symbolic_name)| NsRequest::RspnId { port_id, symbolic_name }),
        (id(), any::<u8>()).prop_map(|(port_id, port_type)| NsRequest::RptId { port_id, port_type }),
        (id(), any::<(u8, u8)>()).prop_map(|(port_id, (features, fc4_type))| NsRequest::RffId {
            port_id,
            features,
            fc4_type
        }),
        (wwnn(), symbolic_name()).prop_map(|(node_name, symbolic_name)| NsRequest::RsnnNn { node_name, symbolic_name }),
    ]
}

prop_compose! {
    fn object()(
        (port_type, classes, types) in any::<(u8, u32, [u32; 8])>(),
        (port_id, hard_address) in (id(), id()),
        (port_name, node_name, fabric_port_name) in (wwpn(), wwnn(), wwpn()),
        (symbolic_port_name, symbolic_node_name) in (symbolic_name(), symbolic_name()),
        (process_associator, node_ip, port_ip) in any::<([u8; 8], [u8; 16], [u8; 16])>(),
    ) -> NsObject {
        NsObject {
            port_type,
            port_id,
            port_name,
            symbolic_port_name,
            node_name,
            symbolic_node_name,
            process_associator,
            node_ip,
            classes,
            types,
            port_ip,
            fabric_port_name,
            hard_address,
        }
    }
}

fn ns_accepts() -> impl Strategy<Value = (u16, NsAccept)> {
    use ns::command::*;
    let features = vec(any::<u8>(), 128).prop_map(|bytes| Box::new(std::array::from_fn(|i| bytes[i])));
    prop_oneof![
        (Just(GA_NXT), object().prop_map(|object| NsAccept::Object(Box::new(object)))),
        (Just(GPN_ID), wwpn().prop_map(NsAccept::PortName)),
        (Just(GNN_ID), wwnn().prop_map(NsAccept::NodeName)),
        (Just(GCS_ID), any::<u32>().prop_map(NsAccept::Classes)),
        (Just(GFT_ID), any::<[u32; 8]>().prop_map(NsAccept::Types)),
        (prop_oneof![Just(GSPN_ID), Just(GSNN_NN)], symbolic_name().prop_map(NsAccept::SymbolicName)),
        (Just(GPT_ID), any::<u8>().prop_map(NsAccept::PortType)),
        (Just(GFPN_ID), wwpn().prop_map(NsAccept::FabricPortName)),
        (Just(GFF_ID), features.prop_map(NsAccept::Features)),
        (prop_oneof![
            (Just(GID_PN), id().prop_map(NsAccept::PortId)),
            (
                prop_oneof![Just(GID_A), Just(GID_NN), Just(GID_FT), Just(GID_PT), Just(GID_IPP), Just(GID_FF)],
                vec(id(), 1..40).prop_map(NsAccept::PortIds)
            ),
            (Just(GHA_ID), id().prop_map(NsAccept::HardAddress)),
            (prop_oneof![Just(GIPP_ID), Just(GIPP_PN), Just(GIP_NN)], any::<[u8; 16]>().prop_map(NsAccept::Ip)),
            (prop_oneof![Just(GIPA_NN), Just(GIPA_IP)], any::<[u8; 8]>().prop_map(NsAccept::ProcessAssociator)),
            (Just(GFD_ID), vec(symbolic_name(), 1..4).prop_map(NsAccept::Descriptors)),
            (
                prop_oneof![Just(GPN_NN), Just(GPN_FT), Just(GPN_IPP)],
                vec((id(), wwpn()), 1..40).prop_map(NsAccept::PortNames)
            ),
            (Just(GNN_FT), vec((id(), wwnn()), 1..40).prop_map(NsAccept::NodeNames)),
            (prop_oneof![Just(RFT_ID), Just(RNN_ID), Just(DA_ID)], Just(NsAccept::Empty)),
        ]),
    ]
}

fn bls() -> impl Strategy<Value = Bls> {
    prop_oneof![
        Just(Bls::Nop),
        Just(Bls::Abts),
        any::<(Option<u8>, u16, u16, u16, u16)>().prop_map(|(seq_id, ox_id, rx_id, low_seq_cnt, high_seq_cnt)| {
            Bls::BaAcc(BaAcc { seq_id, ox_id, rx_id, low_seq_cnt, high_seq_cnt })
        }),
        any::<(u8, u8, u8)>().prop_map(|(reason, explanation, vendor)| Bls::BaRjt(BaRjt {
            reason,
            explanation,
            vendor
        })),
    ]
}

fn link_control() -> impl Strategy<Value = LinkControl> {
    let reject = any::<(u8, u8, u8)>().prop_map(|(action, reason, vendor)| Reject { action, reason, vendor });
    let busy = (0..16_u8).prop_map(|reason| Reject { action: 0, reason, vendor: 0 });
    prop_oneof![
        Just(LinkControl::Ack1),
        Just(LinkControl::Ack0),
        reject.clone().prop_map(LinkControl::PRjt),
        reject.clone().prop_map(LinkControl::FRjt),
        reject.prop_map(LinkControl::PBsy),
        busy.prop_map(LinkControl::FBsy),
    ]
}

fn fcp() -> impl Strategy<Value = Message> {
    let residual = prop_oneof![
        Just(Residual::None),
        any::<u32>().prop_map(Residual::Under),
        any::<u32>().prop_map(Residual::Over),
    ];
    prop_oneof![
        (any::<([u8; 8], u8, u8, u8)>(), 0..4_u8, any::<([u8; 16], u32)>()).prop_map(
            |((lun, crn, attribute, task_management), flags, (cdb, data_len))| {
                Message::FcpCmnd(FcpCmnd { lun, crn, attribute, task_management, flags, cdb, data_len })
            }
        ),
        any::<(u32, u32)>().prop_map(|(offset, burst_len)| Message::FcpXferRdy(FcpXferRdy { offset, burst_len })),
        (any::<(u8, u16, bool, Option<u8>)>(), residual, proptest::option::of(bytes(0..260))).prop_map(
            |((status, retry_delay, confirm, response_code), residual, sense)| {
                Message::FcpRsp(FcpRsp { status, retry_delay, residual, confirm, response_code, sense })
            }
        ),
        Just(Message::FcpConf),
    ]
}

prop_compose! {
    fn elp()(
        (revision, flags, bb_sc_n, r_a_tov_ms, e_d_tov_ms) in any::<(u8, u16, u8, u32, u32)>(),
        (port_name, switch_name) in (wwpn(), wwnn()),
        (f_flags, f, classes) in any::<([u8; 6], [u16; 4], [(u16, u16); 3])>(),
        (flow_control, bb_credit) in any::<(u16, u32)>(),
        flow_parameters in bytes(16..90),
    ) -> Box<Elp> {
        let [receive_size_bytes, concurrent_sequences, end_to_end_credit, open_sequences] = f;
        Box::new(Elp {
            revision,
            flags,
            bb_sc_n,
            r_a_tov_ms,
            e_d_tov_ms,
            port_name,
            switch_name,
            class_f: ClassF {
                flags: f_flags,
                receive_size_bytes,
                concurrent_sequences,
                end_to_end_credit,
                open_sequences,
            },
            classes: classes.map(|(flags, receive_size_bytes)| ElpClass { flags, receive_size_bytes }),
            flow_control: FlowControl(flow_control),
            bb_credit,
            flow_parameters,
        })
    }
}

fn efp() -> impl Strategy<Value = Efp> {
    let record = (any::<(u8, u8)>(), wwnn()).prop_map(|((kind, id), switch_name)| EfpRecord { kind, id, switch_name });
    (any::<u8>(), wwnn(), vec(record, 0..9)).prop_map(|(principal_priority, principal_name, records)| Efp {
        principal_priority,
        principal_name,
        records,
    })
}

fn rdi() -> impl Strategy<Value = Rdi> {
    (wwnn(), vec(any::<u8>(), 0..9)).prop_map(|(switch_name, domains)| Rdi { switch_name, domains })
}

fn esc_protocol() -> impl Strategy<Value = EscProtocol> {
    any::<([u8; 8], u16)>().prop_map(|(vendor, id)| EscProtocol { vendor, id })
}

fn ess() -> impl Strategy<Value = Ess> {
    let text = vec(1..=255_u8, 0..60).prop_map(Vec::into_boxed_slice);
    let capability = any::<(u8, u8, Vec<[u8; 8]>)>().prop_map(|(service, subtype, entries)| EssCapability {
        service,
        subtype,
        entries,
    });
    (any::<u32>(), vec(text, 0..5), vec(capability, 0..5)).prop_map(|(revision, info, capabilities)| Ess {
        revision,
        info,
        capabilities,
    })
}

fn sw_ils() -> impl Strategy<Value = Sample> {
    fn plain(ils: SwIls) -> Sample {
        (ils.into(), None)
    }
    let accept = |command| move |accept: SwAcc| (SwIls::SwAcc(accept).into(), Some(ReplyTo::SwIls(command)));
    prop_oneof![
        elp().prop_map(|elp| plain(SwIls::Elp(elp))),
        elp().prop_map(SwAcc::Elp).prop_map(accept(sw_ils::command::ELP)),
        efp().prop_map(|efp| plain(SwIls::Efp(efp))),
        efp().prop_map(SwAcc::Efp).prop_map(accept(sw_ils::command::EFP)),
        wwnn().prop_map(|switch_name| plain(SwIls::Dia { switch_name })),
        wwnn().prop_map(|switch_name| SwAcc::Dia { switch_name }).prop_map(accept(sw_ils::command::DIA)),
        rdi().prop_map(|rdi| plain(SwIls::Rdi(rdi))),
        rdi().prop_map(SwAcc::Rdi).prop_map(accept(sw_ils::command::RDI)),
        (any::<[u8; 8]>(), vec(esc_protocol(), 0..5))
            .prop_map(|(vendor, protocols)| plain(SwIls::Esc(Esc { vendor, protocols }))),
        (any::<[u8; 8]>(), esc_protocol())
            .prop_map(|(vendor, protocol)| SwAcc::Esc(EscAcc { vendor, protocol }))
            .prop_map(accept(sw_ils::command::ESC)),
        ess().prop_map(|ess| plain(SwIls::Ess(ess))),
        ess().prop_map(SwAcc::Ess).prop_map(accept(sw_ils::command::ESS)),
    ]
}
