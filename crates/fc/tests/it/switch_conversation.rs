//! Login of a Linux host: every message of the conversation, as values and compared with frames
//! that a kernel accepted or sent.

use crate::switch_util::*;
use sanloom_fc::fabric::Decision;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwnn, Wwpn};

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// FLOGI of a Linux 6.1 host: header and payload.
const FLOGI: &str = "22fffffe 00000000 01290000 00000000 0001ffff 00000000
    04000000 2020000a 80000840 00000000 00000000 200002fc00000001 100002fc00000001
    00000000000000000000000000000000 00000000000000000000000000000000
    88000000000000000000000000000000 00000000000000000000000000000000
    00000000000000000000000000000000";
/// Accept that the host took, from a switch named 10:00:00:00:c0:ff:ee:02 without buffer credits.
const FLOGI_ACCEPT: &str = "23010200 00fffffe 01990000 00000000 00018000 00000000
    02000000 20200000 30000840 00002710 000007d0 20000000c0ffee02 10000000c0ffee01
    00000000000000000000000000000000 00000000000000000000000000000000
    88000000000000000000000000000000 00000000000000000000000000000000
    00000000000000000000000000000000";
const PLOGI: &str = "22fffffc 00010200 01290000 00000000 0001ffff 00000000
    03000000 2020000a 80000840 00ff001f 000007d0 200002fc00000001 100002fc00000001
    00000000000000000000000000000000 00000000000000000000000000000000
    88000000 00000840 00ff0000 00010000 00000000000000000000000000000000
    00000000000000000000000000000000";
const PLOGI_ACCEPT: &str = "23010200 00fffffc 01990000 00000000 00018001 00000000
    02000000 2020000a 80000840 00ff001f 000007d0 10000000c0ffee02 10000000c0ffee02
    00000000000000000000000000000000 00000000000000000000000000000000
    88000000 00000840 00ff0000 00010000 00000000000000000000000000000000
    00000000000000000000000000000000";
const RNN_ID: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 02130000 00000000 00010200 100002fc00000001";
const CT_ACCEPT: &str = "03010200 00fffffc 20990000 00000000 00018002 00000000
    01000000 fc020000 80020000 00000000";
const RSNN_NN: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 02390000 00000000 100002fc00000001 13 66636f652076302e31206f7665722065746830";
const RSPN_ID: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 02180000 00000000 00010200 13 66636f652076302e31206f7665722065746830";
const RFT_ID: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 02170000 00000000 00010200 00000100 00000001
    000000000000000000000000000000000000000000000000";
const RFF_ID: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 021f0000 00000000 00010200 00000308";
const SCR: &str = "22fffffd 00010200 01290000 00000000 0001ffff 00000000 62000000 00000003";
const SCR_ACCEPT: &str = "23010200 00fffffd 01990000 00000000 0001ffff 00000000 02000000";
const GPN_FT: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 01720000 00000000 00000008";
const GPN_FT_ACCEPT: &str = "03010200 00fffffc 20990000 00000000 0001ffff 00000000
    01000000 fc020000 80020000 00000000 80010200 00000000 200002fc00000001";
const RSCN: &str = "22010200 00fffffd 01290000 00000000 8010ffff 00000000 61040008 00010100";
const RSCN_ACCEPT: &str = "23fffffd 00010200 01990000 00000000 8010ffff 00000000 02000000";
const GPN_ID: &str = "02fffffc 00010200 20290000 00000000 0001ffff 00000000
    01000000 fc020000 01120000 00000000 00010100";

fn frame(hex: &str) -> Frame {
    Frame::parse(&padded(hex), None).unwrap()
}

fn padded(hex: &str) -> Vec<u8> {
    let mut bytes = bytes(hex);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.emit(&mut out);
    out
}

/// Answer of the switch to these bytes at port 2. The RX_ID is masked because every responder
/// chooses its own.
fn reply(rig: &mut Rig, request: &str, expected: &str) -> (Vec<u8>, Vec<u8>) {
    rig.sent.clear();
    assert_eq!(rig.offer_frame(2, frame(request)), Decision::Local);
    let [(2, sent)] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
    let (mut ours, mut golden) = (encoded(sent), padded(expected));
    ours[18..20].fill(0);
    golden[18..20].fill(0);
    (ours, golden)
}

#[test]
fn a_linux_host_is_answered_byte_by_byte_as_it_was_by_the_switch_that_it_accepted() {
    let mut rig = Rig::new(sanloom_fc::switch::SwitchConfig { bb_credit: vec![], ..config(1, open()) });
    rig.up(2);

    let (ours, golden) = reply(&mut rig, FLOGI, FLOGI_ACCEPT);
    // The switch chooses the F_Port's name; all other bytes are those that the host accepted.
    let (name, rest) = (44..52, 52..);
    assert_eq!(ours[..name.start], golden[..name.start]);
    assert_eq!(ours[name.clone()], 0x2002_0000_c0ff_ee02u64.to_be_bytes());
    assert_eq!(ours[rest.clone()], golden[rest]);

    let (ours, golden) = reply(&mut rig, PLOGI, PLOGI_ACCEPT);
    assert_eq!(ours[..44], golden[..44]);
    assert_eq!(ours[name.clone()], 0x2ffc_0000_c0ff_ee02u64.to_be_bytes());
    assert_eq!(ours[name.end..], golden[name.end..]);

    for registration in [RNN_ID, RSNN_NN, RSPN_ID, RFT_ID, RFF_ID] {
        let (ours, golden) = reply(&mut rig, registration, CT_ACCEPT);
        assert_eq!(ours, golden, "{registration}");
    }
    let (ours, golden) = reply(&mut rig, SCR, SCR_ACCEPT);
    assert_eq!(ours, golden);
    let (ours, golden) = reply(&mut rig, GPN_FT, GPN_FT_ACCEPT);
    assert_eq!(ours, golden);

    // Another port logs in: the host gets an RSCN and queries the port's name.
    rig.flogi(1, 0x2000_02fc_0000_0002);
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let [(2, sent)] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
    let mut ours = encoded(sent);
    let golden = padded(RSCN);
    let ox_id: [u8; 2] = ours[16..18].try_into().unwrap();
    ours[16..18].copy_from_slice(&golden[16..18]);
    assert_eq!(ours, golden);

    let mut accept = frame(RSCN_ACCEPT);
    accept.header.ox_id = u16::from_be_bytes(ox_id);
    assert_eq!(rig.offer_frame(2, accept), Decision::Local);
    assert_eq!(rig.switch.poll_timeout(), None, "nothing more to wait for");
    let expected = "03010200 00fffffc 20990000 00000000 0001ffff 00000000
        01000000 fc020000 80020000 00000000 200002fc00000002";
    let (ours, golden) = reply(&mut rig, GPN_ID, expected);
    assert_eq!(ours, golden);
}

#[test]
fn the_same_conversation_as_values() {
    let mut rig = Rig::new(config(1, open()));
    let (wwpn, wwnn) = (Wwpn(0x2000_02fc_0000_0001), node_of(0x2000_02fc_0000_0001));
    rig.up(2);
    let (id, accept) = rig.exchange_login(2, FcId::ZERO, Els::Flogi(login(wwpn.0))).unwrap();
    assert_eq!(id, FcId::new(0x01_0200));
    assert_eq!(
        accept,
        Login {
            common: CommonParameters {
                highest_version: 0x20,
                lowest_version: 0x20,
                bb_credit: 16,
                features: 0x3000,
                bb_sc_n: 0,
                receive_size_bytes: 2112,
                word_8: 10_000,
                e_d_tov: 2_000,
            },
            port_name: Wwpn(0x2002_0000_c0ff_ee02),
            node_name: FABRIC_NAME,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: 0x8800, ..ClassParameters::default() },
        }
    );
    let name = |text: &str| text.as_bytes().into();
    rig.plogi(id);
    let mut types = [0; 8];
    (types[0], types[1]) = (0x100, 1);
    for request in [
        NsRequest::RnnId { port_id: id, node_name: wwnn },
        NsRequest::RsnnNn { node_name: wwnn, symbolic_name: name("a host") },
        NsRequest::RspnId { port_id: id, symbolic_name: name("its port") },
        NsRequest::RftId { port_id: id, types },
        NsRequest::RffId { port_id: id, features: 2, fc4_type: 8 },
    ] {
        assert_eq!(rig.ns(id, request), Ok(NsAccept::Empty));
    }
    let scr = rig.exchange_els(2, id, FcId::FABRIC_CONTROLLER, Els::Scr { function: 3 });
    assert_eq!(scr, Ok(LsAcc::Empty));
    let all = rig.ns(id, NsRequest::GpnFt { domain: 0, area: 0, fc4_type: 8 });
    assert_eq!(all, Ok(NsAccept::PortNames(vec![(id, wwpn)])));
    assert_eq!(rig.switch.counters().ct_accepted, 6);
    assert_eq!(rig.switch.counters().els_accepted, 2);
    assert_eq!(rig.switch.counters().fabric_logins, 1);
}

#[test]
fn services_reply_to_every_link_service_that_has_a_reply() {
    use sanloom_wire::els::{Adisc, ExchangeRef, Logo, Rtv};
    let mut rig = Rig::new(config(1, open()));
    let id = rig.flogi(2, 0x21);
    let ns = FcId::NAME_SERVER;
    let echo: Box<[u8]> = Box::from(*b"echo");
    for to in [FcId::F_PORT, FcId::FABRIC_CONTROLLER, ns] {
        let rtv = Rtv { r_a_tov_ms: 10_000, e_d_tov: 2_000, qualifier: 0 };
        assert_eq!(rig.exchange_els(2, id, to, Els::Rtv), Ok(LsAcc::Rtv(rtv)));
        assert_eq!(rig.exchange_els(2, id, to, Els::Echo(echo.clone())), Ok(LsAcc::Echo(echo.clone())));
        let exchange = ExchangeRef { originator: id, ox_id: 1, rx_id: 2 };
        assert_eq!(rig.exchange_els(2, id, to, Els::Rrq(exchange)), Ok(LsAcc::Empty));
        rig.sent.clear();
        rig.offer(2, id, to, els(Els::Test(echo.clone())));
        assert_eq!(rig.sent, []);
    }
    rig.plogi(id);
    let exchange = Adisc { hard_address: FcId::ZERO, port_name: Wwpn(0x21), node_name: Wwnn(0), port_id: id };
    let answer =
        Adisc { hard_address: FcId::ZERO, port_name: Wwpn(0x2ffc_0000_c0ff_ee02), node_name: SWITCH_NAME, port_id: ns };
    assert_eq!(rig.exchange_els(2, id, ns, Els::Adisc(exchange)), Ok(LsAcc::Adisc(answer)));
    let pdisc = rig.exchange_els(2, id, ns, Els::Pdisc(login(0x21)));
    assert_eq!(pdisc, rig.exchange_els(2, id, ns, Els::Plogi(login(0x21))));
    // Logout from the service, not from the fabric.
    let logo = Els::Logo(Logo { port_id: id, port_name: Wwpn(0x21) });
    assert_eq!(rig.exchange_els(2, id, ns, logo), Ok(LsAcc::Empty));
    assert_eq!(rig.fib.port_of(id), Some(2));
    assert_eq!(rig.ns(id, NsRequest::GpnId { port_id: id }), Err((0x09, 0x10)));
}

#[test]
fn an_abort_ends_the_exchange_with_a_service() {
    use sanloom_wire::bls::{BaAcc, Bls};
    let mut rig = Rig::new(config(1, open()));
    let id = rig.flogi(2, 0x21);
    let accept = BaAcc { seq_id: None, ox_id: 1, rx_id: 0xffff, low_seq_cnt: 0, high_seq_cnt: 0xffff };
    let reply = rig.exchange(2, id, FcId::NAME_SERVER, Message::Bls(Bls::Abts));
    assert_eq!(reply, Message::Bls(Bls::BaAcc(accept)));
}

#[test]
fn bytes_that_are_whole_messages_are_answered_like_values() {
    let mut rig = Rig::new(config(1, open()));
    rig.up(2);
    let parsed = frame(FLOGI);
    let raw = Frame { header: parsed.header, payload: Payload::Bytes(bytes(FLOGI)[24..].into()) };
    rig.offer_frame(2, raw);
    let [(2, reply)] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
    assert_eq!(reply.header.d_id, FcId::new(0x01_0200));
}

#[test]
fn malformed_messages_are_rejected_and_malformed_replies_are_not_answered() {
    // Name of the case, destination, payload, and the reject: the payload of an LS_RJT, or reason
    // and explanation of an FS_RJT.
    type Case = (&'static str, FcId, &'static [u8], &'static [u8]);
    let cases: [Case; 6] = [
        // A FLOGI of 8 bytes, an unknown ELS, an RSCN with pages of 3 bytes.
        ("short FLOGI", FcId::F_PORT, &[4, 0, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0x03, 0x2d, 0]),
        ("unknown", FcId::F_PORT, &[0x0c, 0, 0, 0], &[1, 0, 0, 0, 0, 0x0b, 0x2c, 0]),
        ("RSCN", FcId::FABRIC_CONTROLLER, &[0x61, 3, 0, 8, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 3, 0x2d, 0]),
        // CT: truncated in the preamble, and a body that is too short.
        ("CT preamble", FcId::NAME_SERVER, &[1, 0, 0, 0, 0xfc, 2], &[4, 0]),
        ("GPN_ID without an id", FcId::NAME_SERVER, &[1, 0, 0, 0, 0xfc, 2, 0, 0, 1, 0x12, 0, 0, 0, 0, 0, 0], &[4, 0]),
        ("CT revision", FcId::NAME_SERVER, &[9; 20], &[2, 0]),
    ];
    for (what, to, payload, expected) in cases {
        let mut rig = Rig::new(config(1, open()));
        let id = rig.flogi(2, 0x21);
        rig.plogi(id);
        let message = match to {
            FcId::NAME_SERVER => ct(NsRequest::GpnId { port_id: id }),
            _ => els(Els::Rtv),
        };
        let h = header(id, to, &message);
        let raw = Frame { header: h, payload: Payload::Bytes(payload.into()) };
        rig.offer_frame(2, raw.clone());
        let [(2, reply)] = &rig.sent[..] else { panic!("{what}: {:?}", rig.sent) };
        let bytes = encoded(reply);
        let got = if to == FcId::NAME_SERVER { &bytes[24 + 13..24 + 15] } else { &bytes[24..32] };
        assert_eq!(got, expected, "{what}");
        // The same bytes as a reply match no request of the switch.
        rig.sent.clear();
        let before = rig.switch.counters().frames_discarded;
        let r_ctl = if to == FcId::NAME_SERVER { 0x03 } else { 0x23 };
        let reply = Frame { header: Header { r_ctl: sanloom_wire::RCtl(r_ctl), ..h }, ..raw };
        rig.offer_frame(2, reply);
        assert_eq!(rig.sent, [], "{what}");
        assert_eq!(rig.switch.counters().frames_discarded, before + 1, "{what}");
    }
}

#[test]
fn other_services_and_types_are_rejected_or_discarded() {
    use sanloom_wire::ct::{Ct, CtBody, CtReason, Service};
    let mut rig = Rig::new(config(1, open()));
    let id = rig.flogi(2, 0x21);
    rig.plogi(id);
    rig.plogi_to(id, FcId::MANAGEMENT_SERVER);
    let other = |service| Ct {
        service,
        body: CtBody::Other { command: 0x0777, body: Box::default() },
        ..Ct::ns_request(NsRequest::GpnId { port_id: id })
    };
    for (to, service) in [
        (FcId::MANAGEMENT_SERVER, Service::FDMI),
        (FcId::NAME_SERVER, Service::FDMI),
        (FcId::NAME_SERVER, Service::NAME_SERVER),
        (FcId::new(0xff_fffb), Service::TIME),
    ] {
        let reply = rig.exchange(2, id, to, Message::Ct(Box::new(other(service))));
        let Message::Ct(ct) = reply else { panic!("{reply:?}") };
        let CtBody::Reject(reject) = &ct.body else { panic!("{ct:?}") };
        assert_eq!((ct.service, reject.reason, reject.explanation), (service, CtReason::NOT_SUPPORTED, 0));
    }
    rig.sent.clear();
    let before = rig.switch.counters().frames_discarded;
    let mut fcp = frame(SCR);
    fcp.header.fc_type = sanloom_wire::FcType::FCP;
    fcp.header.r_ctl = sanloom_wire::RCtl::UNSOLICITED_COMMAND;
    fcp.payload = Payload::Pattern { seed: 0, offset: 0, len: 32 };
    rig.offer_frame(2, fcp);
    assert_eq!(rig.sent, []);
    assert_eq!(rig.switch.counters().frames_discarded, before + 1);
}
