//! Frames of a node port, byte by byte. Messages that a Linux host also sent in a capture must have
//! the same bytes.

use sanloom_fc::nport::{Input, NPort, NPortConfig, Output};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::ns::NsAccept;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwnn, Wwpn};

/// Header and data field of frames from Linux 6.1, without FCoE encapsulation and CRC, in the order
/// of the capture.
const CAPTURED: [(&str, &str); 7] = [
    (
        "PLOGI",
        "22fffffc0001020001290000000000000001ffff00000000030000002020000a8000084000ff001f000007d0\
         200002fc00000001100002fc00000001\
         0000000000000000000000000000000000000000000000000000000000000000\
         880000000000084000ff000000010000\
         0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "RNN_ID",
        "02fffffc0001020020290000000000000001ffff0000000001000000fc02000002130000000000000001020\
         0100002fc00000001",
    ),
    (
        "RSNN_NN",
        "02fffffc0001020020290000000000000001ffff0000000001000000fc0200000239000000000000\
         100002fc000000011366636f652076302e31206f7665722065746830",
    ),
    (
        "RSPN_ID",
        "02fffffc0001020020290000000000000001ffff0000000001000000fc0200000218000000000000\
         000102001366636f652076302e31206f7665722065746830",
    ),
    (
        "RFT_ID",
        "02fffffc0001020020290000000000000001ffff0000000001000000fc0200000217000000000000\
         000102000000010000000001000000000000000000000000000000000000000000000000",
    ),
    (
        "RFF_ID",
        "02fffffc0001020020290000000000000001ffff0000000001000000fc020000021f000000000000\
         0001020000000308",
    ),
    ("SCR", "22fffffd0001020001290000000000000001ffff000000006200000000000003"),
];

/// Next query of a Linux host. This node port sends it only if the name server does not support
/// GID_FF.
const GPN_FT: &str = "02fffffc0001020020290000000000000001ffff0000000001000000fc0200000172000000000000 00000008";

#[test]
fn logs_in_and_registers_with_the_bytes_of_a_linux_host() {
    let mut port = NPort::new(NPortConfig {
        wwpn: Wwpn(0x2000_02fc_0000_0001),
        wwnn: Wwnn(0x1000_02fc_0000_0001),
        receive_size_bytes: 2112,
        bb_credit: 10,
        bb_sc_n: 0,
        initiator: true,
        target: true,
        symbolic_name: "fcoe v0.1 over eth0".to_owned(),
        e_d_tov: Span::from_secs(2),
        r_a_tov: Span::from_secs(10),
        seed: 0,
        virtual_port: None,
    });
    port.handle(Instant::ZERO, Input::LinkUp);
    let flogi = sent(&mut port);
    assert_eq!(hex(&flogi)[..48], *"22fffffe0000000001290000000000008000ffff00000000");
    let accept = accept_of(&flogi);
    answer(&mut port, &flogi, accept);
    for (name, captured) in CAPTURED {
        let request = sent(&mut port);
        assert_eq!(with_captured_ox_id(&request), joined(captured), "{name}");
        let accept = accept_of(&request);
        answer(&mut port, &request, accept);
    }
    let features = sent(&mut port);
    assert_eq!(hex(&features)[48..], *"01000000fc02000001f10000000000000000000000000108");
    let reject = CtReject { reason: CtReason::NOT_SUPPORTED, explanation: 0, vendor: 0 };
    answer(&mut port, &features, name_server(CtBody::Reject(reject)));
    assert_eq!(with_captured_ox_id(&sent(&mut port)), joined(GPN_FT));
}

/// Returns the frame with the OX_ID of the captured ones, because each host chooses its own OX_IDs.
fn with_captured_ox_id(frame: &Frame) -> String {
    let header = Header { ox_id: 1, ..frame.header };
    hex(&Frame { header, payload: frame.payload.clone() })
}

fn joined(lines: &str) -> String {
    lines.split_whitespace().collect()
}

/// Returns the only frame that the port sends; reports to its driver are skipped.
fn sent(port: &mut NPort) -> Frame {
    let mut frames = std::iter::from_fn(|| port.poll_output()).filter_map(|output| match output {
        Output::Send(frame) => Some(frame),
        _ => None,
    });
    let frame = frames.next().expect("a request");
    assert_eq!(frames.next(), None);
    frame
}

fn answer(port: &mut NPort, request: &Frame, reply: Message) {
    let header = reply.header(request.header.d_id, FcId::new(0x010200), request.header.ox_id, 1);
    port.handle(Instant::ZERO, Input::Frame(Frame { header, payload: Payload::Typed(reply) }));
}

fn name_server(body: CtBody) -> Message {
    Message::from(Ct { in_id: 0, service: Service::NAME_SERVER, options: 0, max_or_residual_words: 0, body })
}

fn accept_of(request: &Frame) -> Message {
    let Payload::Typed(message) = &request.payload else { unreachable!("control messages are typed") };
    match message {
        Message::Ct(_) => name_server(CtBody::NsAccept(NsAccept::Empty)),
        Message::Els(els) if matches!(**els, Els::Scr { .. }) => Message::from(Els::LsAcc(LsAcc::Empty)),
        _ => Message::from(Els::LsAcc(LsAcc::Login(Login {
            common: CommonParameters {
                features: feature::F_PORT,
                receive_size_bytes: 2112,
                word_8: 10_000,
                e_d_tov: 2_000,
                ..CommonParameters::default()
            },
            port_name: Wwpn(0x1000_0000_c0ff_ee02),
            node_name: Wwnn(0x1000_0000_c0ff_ee01),
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: ClassParameters::VALID, ..ClassParameters::default() },
        }))),
    }
}

fn hex(frame: &Frame) -> String {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
