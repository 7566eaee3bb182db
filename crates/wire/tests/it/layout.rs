//! Offsets and sizes, byte by byte as in the tables of the standards, for the messages that the
//! captured frames do not contain. The bytes were written by hand, so a mistake common to `parse`
//! and `emit` fails here.

use sanloom_wire::bls::{BaAcc, BaRjt, Bls};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::*;
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, Residual};
use sanloom_wire::fcs::{FcsAccept, PortEntry};
use sanloom_wire::fdmi::{Attribute, FdmiRequest};
use sanloom_wire::link_control::{LinkControl, Reject};
use sanloom_wire::ns::{self, NsAccept, NsObject, NsRequest};
use sanloom_wire::{FcId, FcType, Message, RCtl, Wwnn, Wwpn};

const HOST: FcId = FcId::from_parts(1, 2, 3);
const STORAGE: FcId = FcId::from_parts(2, 0x10, 0);
const HOST_PORT: Wwpn = Wwpn(0x2100_0024_ff00_0001);
const HOST_NODE: Wwnn = Wwnn(0x2000_0024_ff00_0001);
const STORAGE_PORT: Wwpn = Wwpn(0x5000_0972_0800_0001);

#[track_caller]
fn assert_bytes(message: impl Into<Message>, expected: &str) {
    let mut bytes = Vec::new();
    message.into().emit(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected.replace(' ', ""));
}

#[test]
fn link_services_of_one_port() {
    assert_bytes(Els::Logo(Logo { port_id: HOST, port_name: HOST_PORT }), "05000000 00 010203 21000024ff000001");
    let adisc = Adisc { hard_address: FcId::new(0xabcdef), port_name: HOST_PORT, node_name: HOST_NODE, port_id: HOST };
    assert_bytes(Els::Adisc(adisc), "52000000 00abcdef 21000024ff000001 20000024ff000001 00 010203");
    assert_bytes(Els::LsAcc(LsAcc::Adisc(adisc)), "02000000 00abcdef 21000024ff000001 20000024ff000001 00 010203");
    let fan =
        Fan { loop_fabric_address: FcId::from_parts(1, 2, 0), fabric_port_name: STORAGE_PORT, fabric_name: HOST_NODE };
    assert_bytes(Els::Fan(fan), "60000000 00 010200 5000097208000001 20000024ff000001");
    assert_bytes(Els::Lirr { function: 1, format: 0x18 }, "7a000000 01 18 0000");
    assert_bytes(Els::Echo(Box::new([1, 2, 3])), "10000000 010203");
    assert_bytes(Els::Test(Box::new([1, 2, 3])), "11000000 010203");
}

#[test]
fn link_services_about_exchanges() {
    let exchange = ExchangeRef { originator: HOST, ox_id: 0x1234, rx_id: 0x8765 };
    assert_bytes(Els::Rrq(exchange), "12000000 00 010203 1234 8765");
    assert_bytes(Els::Rec(exchange), "13000000 00 010203 1234 8765");
    let accept = RecAcc {
        ox_id: 0x1234,
        rx_id: 0x8765,
        originator: HOST,
        responder: STORAGE,
        fc4_value: 0x1000,
        e_stat: 0x4000_0000,
    };
    assert_bytes(Els::LsAcc(LsAcc::Rec(accept)), "02000000 1234 8765 00 010203 00 021000 00001000 40000000");
}

#[test]
fn link_services_about_links() {
    assert_bytes(Els::Rls { port_id: HOST }, "0f000000 00 010203");
    let counters = LinkErrorStatus {
        link_failure: 1,
        loss_of_sync: 2,
        loss_of_signal: 3,
        primitive_sequence_error: 4,
        invalid_word: 5,
        invalid_crc: 6,
    };
    assert_bytes(Els::LsAcc(LsAcc::Rls(counters)), "02000000 00000001 00000002 00000003 00000004 00000005 00000006");
    let rtv = Rtv { r_a_tov_ms: 10_000, e_d_tov: 2_000_000_000, qualifier: Rtv::E_D_TOV_NS };
    assert_bytes(Els::LsAcc(LsAcc::Rtv(rtv)), "02000000 00002710 77359400 04000000");
}

#[test]
fn link_incidents_and_nodes() {
    let incident = LinkIncident {
        format: 0,
        port_name: Wwpn(0x2004_00c0_ffee_0001),
        node_name: Wwnn(0x1000_00c0_ffee_0001),
        port_type: 0x81,
        port_id: HOST,
        attached_port_name: HOST_PORT,
        attached_node_name: HOST_NODE,
        fabric_name: Wwnn(0x1000_00c0_ffee_0002),
        physical_port: 4,
        transaction: 5,
        time_format: 1,
        time: 6,
        qualifier: link_incident::qualifier::SWITCH,
        code: link_incident::code::LOSS_OF_SIGNAL,
        isl_port: 0x0708,
    };
    let record = "200400c0ffee0001 100000c0ffee0001 81 010203 21000024ff000001 20000024ff000001 100000c0ffee0002 \
                  00000004 00000005 000000 01 0000000000000006";
    assert_bytes(Els::Rlir(incident), &format!("79000000 00 40 04 00 {record} 20 03 0708"));
    assert_bytes(Els::Rnid { format: 0xdf }, "78000000 df 000000");
    assert_bytes(Els::Rpsc, "7d000000");
    let speeds = vec![PortSpeed { capabilities: 0xe800, operating: speed::bits::GBPS_8 }];
    assert_bytes(Els::LsAcc(LsAcc::Rpsc(speeds)), "02000001 e800 0800");
    let data = node_id::TopologyData { associated_type: 4, physical_port: 3, ip_port: 80, ..Default::default() };
    let specific = node_id::SpecificData::Topology(data);
    let node = Rnid { format: 0xdf, common: Some((HOST_PORT, HOST_NODE)), specific };
    let zeros = |bytes: usize| "00".repeat(bytes);
    let data = format!("{} 00000004 00000003 00000000 00 00 0050 {}", zeros(16), zeros(16 + 4));
    assert_bytes(
        Els::LsAcc(LsAcc::Rnid(node)),
        &format!("02000000 df 10 00 34 21000024ff000001 20000024ff000001 {data}"),
    );
}

#[test]
fn management_requests() {
    let preamble = |service: &str, command: &str| format!("01 000000 {service} 00 00 {command} 0000 00000000 ");
    let attributes = vec![Attribute { attribute: 0x0004, value: (*b"m\0\0\0").into() }];
    let rhba = FdmiRequest::Rhba { hba: HOST_PORT, ports: vec![HOST_PORT], attributes };
    assert_bytes(
        Ct::request(Service::FDMI, CtBody::Fdmi(rhba)),
        &(preamble("fa10", "0200") + "21000024ff000001 00000001 21000024ff000001 00000001 0004 0008 6d000000"),
    );
    let fcs = |body| Ct::request(Service::FABRIC_CONFIGURATION, CtBody::FcsAccept(body));
    let head = preamble("fa01", "8002");
    let port = PortEntry { name: HOST_PORT, module: 2, transmitter: 3, port_type: 0x81 };
    assert_bytes(fcs(FcsAccept::Ports(vec![port])), &(head.clone() + "00000001 21000024ff000001 00 02 03 81"));
    assert_bytes(fcs(FcsAccept::DomainId(7)), &(head.clone() + "00 07 0000"));
    assert_bytes(fcs(FcsAccept::PortState { port_type: 0x81, state: 1 }), &(head.clone() + "00000081 00000001"));
    let texts = ["v", "m", "r"].map(|text| text.as_bytes().into()).into();
    assert_bytes(fcs(FcsAccept::Information(texts)), &(head + "000000 06 7600 6d00 7200"));
}

#[test]
fn state_changes_and_rejects() {
    let page = |qualifier, format, address| RscnPage { qualifier, format, address };
    let pages = vec![
        page(0, AddressFormat::Port, HOST),
        page(1, AddressFormat::Area, FcId::from_parts(1, 2, 0)),
        page(4, AddressFormat::Domain, FcId::from_parts(1, 0, 0)),
        page(0, AddressFormat::Fabric, FcId::ZERO),
    ];
    assert_bytes(Els::Rscn(Rscn { pages }), "61 04 0014 00010203 05010200 12010000 03000000");
    let reject = LsRjt { vendor: 0x17, ..LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES) };
    assert_bytes(Els::LsRjt(reject), "01000000 00 09 29 17");
    let pages = vec![PrliPage {
        fc4_type: 8,
        type_extension: 0,
        flags: prli::ESTABLISH_IMAGE_PAIR | prli::RESPONSE_EXECUTED,
        originator_pa: 0,
        responder_pa: 0,
        parameters: 0,
    }];
    assert_bytes(Els::LsAcc(LsAcc::Prlo(Prlo { pages })), "02 10 0014 08 00 21 00 00000000 00000000 00000000");
}

#[test]
fn basic_link_services() {
    let accept = BaAcc { seq_id: Some(7), ox_id: 0x1234, rx_id: 0x8765, low_seq_cnt: 1, high_seq_cnt: 9 };
    assert_bytes(Message::Bls(Bls::BaAcc(accept)), "80 07 0000 1234 8765 0001 0009");
    let accept = BaAcc::whole_exchange(0x1234, 0x8765);
    assert_bytes(Message::Bls(Bls::BaAcc(accept)), "00 00 0000 1234 8765 0000 ffff");
    let reject = BaRjt { reason: 3, explanation: 5, vendor: 1 };
    assert_bytes(Message::Bls(Bls::BaRjt(reject)), "00 03 05 01");
}

#[test]
fn abts_is_sent_as_a_linux_host_sends_it() {
    let header = Message::Bls(Bls::Abts).header(HOST, STORAGE, 0x1234, 0xffff);
    let hex: String = header.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "810210000001020300090000000000001234ffff00000000");
}

#[test]
fn link_control_frames_consist_of_the_header() {
    let header = |link_control| Message::LinkControl(link_control).header(HOST, STORAGE, 1, 2);
    let reject = Reject { action: 1, reason: 0x16, vendor: 0x99 };
    let p_rjt = header(LinkControl::PRjt(reject));
    assert_eq!((p_rjt.r_ctl, p_rjt.fc_type, p_rjt.parameter), (RCtl::P_RJT, FcType(0), 0x0116_0099));
    let f_bsy = header(LinkControl::FBsy(Reject { action: 0, reason: 3, vendor: 0 }));
    assert_eq!((f_bsy.r_ctl, f_bsy.fc_type, f_bsy.parameter), (RCtl::F_BSY_DATA, FcType(0x30), 0));
    assert_eq!(header(LinkControl::Ack1).parameter, 1);
}

#[test]
fn name_server_lists_mark_their_last_record() {
    let ct = Ct::ns_request(NsRequest::GaNxt { port_id: HOST });
    let accept = |accept| ct.reply(CtBody::NsAccept(accept));
    const PREAMBLE: &str = "01000000 fc020000 8002 0000 00000000 ";
    assert_bytes(accept(NsAccept::PortIds(vec![HOST, STORAGE])), &format!("{PREAMBLE} 00 010203 80 021000"));
    assert_bytes(
        accept(NsAccept::PortNames(vec![(HOST, HOST_PORT), (STORAGE, STORAGE_PORT)])),
        &format!("{PREAMBLE} 00 010203 00000000 21000024ff000001 80 021000 00000000 5000097208000001"),
    );
    assert_bytes(
        accept(NsAccept::NodeNames(vec![(HOST, HOST_NODE)])),
        &format!("{PREAMBLE} 80 010203 00000000 20000024ff000001"),
    );
}

#[test]
fn a_list_without_last_record_needs_a_residual() {
    let record = [0, 1, 2, 3];
    let cut = NsAccept::PortIds(vec![HOST]);
    assert_eq!(NsAccept::parse(ns::command::GID_FT, 7, &record), Ok(cut));
    assert!(NsAccept::parse(ns::command::GID_FT, 0, &record).is_err());
    assert!(NsAccept::parse(ns::command::GID_FT, 7, &[]).is_err());
}

#[test]
fn name_server_requests() {
    const PREAMBLE: &str = "01000000 fc020000";
    let of = Ct::ns_request;
    let gid_ff = NsRequest::GidFf { domain: 1, area: 2, features: 3, fc4_type: 8 };
    assert_bytes(of(gid_ff), &format!("{PREAMBLE} 01f1 0000 00000000 00 01 02 00 00 00 03 08"));
    let gid_pt = NsRequest::GidPt { port_type: 0x7f, domain: 1, area: 2 };
    assert_bytes(of(gid_pt), &format!("{PREAMBLE} 01a1 0000 00000000 7f 01 02 00"));
    let rpt_id = NsRequest::RptId { port_id: HOST, port_type: 1 };
    assert_bytes(of(rpt_id), &format!("{PREAMBLE} 021a 0000 00000000 00 010203 01 000000"));
    let rcs_id = NsRequest::RcsId { port_id: HOST, classes: 8 };
    assert_bytes(of(rcs_id), &format!("{PREAMBLE} 0214 0000 00000000 00 010203 00000008"));
    let rpn_id = NsRequest::RpnId { port_id: HOST, port_name: HOST_PORT };
    assert_bytes(of(rpn_id), &format!("{PREAMBLE} 0212 0000 00000000 00 010203 21000024ff000001"));
    let gid_pn = NsRequest::GidPn { port_name: HOST_PORT };
    assert_bytes(of(gid_pn), &format!("{PREAMBLE} 0121 0000 00000000 21000024ff000001"));
}

#[test]
fn ct_rejects_and_preamble_fields() {
    let ct = Ct {
        in_id: 0xfffc01,
        service: Service::FDMI,
        options: 0x80,
        max_or_residual_words: 0x1234,
        body: CtBody::Reject(CtReject { reason: CtReason::UNABLE, explanation: 7, vendor: 0x55 }),
    };
    assert_bytes(ct, "01 fffc01 fa 10 80 00 8001 1234 00 09 07 55");
}

#[test]
fn rare_name_server_requests() {
    let mut bytes = Vec::new();
    let descriptors = vec![(8, (*b"fcp").into()), (0x28, Box::default())];
    NsRequest::RfdId { port_id: HOST, descriptors }.emit(&mut bytes);
    assert_eq!(bytes.len(), 4 + 32 + 2 * 256);
    assert_eq!(bytes[..12], [0, 1, 2, 3, 0, 0, 1, 0, 0, 0, 1, 0]);
    assert_eq!((&bytes[36..41], bytes[36 + 256]), (&b"\x03fcp\0"[..], 0));
    let preamble = |command: &str| format!("01 000000 fc 02 00 00 {command} 0000 00000000 ");
    let assert_request = |request, command, body| assert_bytes(Ct::ns_request(request), &(preamble(command) + body));
    assert_request(NsRequest::GidA { domain: 7 }, "0101", "00 07 0000");
    assert_request(NsRequest::RhaId { port_id: HOST, hard_address: STORAGE }, "021d", "00 010203 00 021000");
    let names = NsRequest::RipaNn { node_name: HOST_NODE, process_associator: [1; 8] };
    assert_request(names, "0236", "20000024ff000001 0101010101010101");
    assert_request(
        NsRequest::GidFf { domain: 1, area: 2, features: 3, fc4_type: 8 },
        "01f1",
        "00 01 02 00 00 00 03 08",
    );
    assert_request(NsRequest::GidPt { port_type: 0x7f, domain: 1, area: 2 }, "01a1", "7f 01 02 00");
}

#[test]
fn get_all_next_has_620_bytes() {
    let object = NsObject {
        port_type: 1,
        port_id: HOST,
        port_name: HOST_PORT,
        symbolic_port_name: Box::new(*b"port"),
        node_name: HOST_NODE,
        symbolic_node_name: Box::new(*b"node"),
        process_associator: [0x1a; 8],
        node_ip: [0x2a; 16],
        classes: 8,
        types: ns::one_type(8),
        port_ip: [0x3a; 16],
        fabric_port_name: Wwpn(0x2004_00c0_ffee_0001),
        hard_address: STORAGE,
    };
    let mut bytes = Vec::new();
    object.emit(&mut bytes);
    assert_eq!(bytes.len(), 620);
    assert_eq!(bytes[..17], *b"\x01\x01\x02\x03\x21\x00\x00\x24\xff\x00\x00\x01\x04port");
    assert_eq!(bytes[268..281], *b"\x20\x00\x00\x24\xff\x00\x00\x01\x04node");
    assert_eq!(
        (&bytes[532..540], &bytes[540..556], &bytes[592..608]),
        (&[0x1a; 8][..], &[0x2a; 16][..], &[0x3a; 16][..])
    );
    assert_eq!(bytes[556..568], [0, 0, 0, 8, 0, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[608..], [0x20, 4, 0, 0xc0, 0xff, 0xee, 0, 1, 0, 2, 0x10, 0]);
}

#[test]
fn feature_nibbles_are_at_the_offset_that_hosts_read() {
    let mut features = [0; 128];
    ns::set_feature(&mut features, 8, 0x3);
    ns::set_feature(&mut features, 9, 0x5);
    assert_eq!(features[7], 0x53);
    assert_eq!((ns::feature(&features, 8), ns::feature(&features, 9), ns::feature(&features, 10)), (3, 5, 0));
    ns::set_feature(&mut features, 8, 0);
    assert_eq!(features[7], 0x50);
    assert!(ns::has_type(&ns::one_type(0x28), 0x28) && !ns::has_type(&ns::one_type(0x28), 8));
}

#[test]
fn fcp_units_with_every_part() {
    let command = FcpCmnd {
        lun: [0, 1, 2, 3, 4, 5, 6, 7],
        crn: 0x11,
        attribute: 0x22,
        task_management: 0x33,
        flags: FcpCmnd::WRITE,
        cdb: std::array::from_fn(|i| 0xc0 + i as u8),
        data_len: 0x0001_0002,
    };
    assert_bytes(Message::FcpCmnd(command), "0001020304050607 11 22 33 01 c0c1c2c3c4c5c6c7c8c9cacbcccdcecf 00010002");
    let response = FcpRsp {
        status: 2,
        retry_delay: 0x1234,
        residual: Residual::Over(0x99),
        confirm: true,
        response_code: Some(9),
        sense: Some(Box::new([0x70, 0, 5])),
    };
    assert_bytes(
        Message::FcpRsp(response),
        "0000000000000000 1234 17 02 00000099 00000003 00000008 00000009 00000000 700005",
    );
}

#[test]
fn short_response_information_is_read_too() {
    let mut bytes = vec![0; 24];
    bytes[10] = 0x01;
    bytes[23] = 4;
    bytes.extend([0, 0, 0, 5]);
    assert_eq!(FcpRsp::parse(&bytes).map(|response| response.response_code), Ok(Some(5)));
}

#[test]
fn too_long_lists_are_cut_and_stay_legal() {
    let page = RscnPage { qualifier: 0, format: AddressFormat::Port, address: HOST };
    let message = Els::Rscn(Rscn { pages: vec![page; 300] });
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    assert_eq!((bytes.len(), message.encoded_len()), (1024, 1024));
    assert_eq!(Els::parse(&bytes, None), Ok(Els::Rscn(Rscn { pages: vec![page; 255] })));
    let request = NsRequest::RspnId { port_id: HOST, symbolic_name: Box::new([b'x'; 300]) };
    let mut bytes = Vec::new();
    request.emit(&mut bytes);
    assert_eq!((bytes.len(), request.encoded_len(), bytes[4]), (260, 260, 255));
}
