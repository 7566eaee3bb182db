//! Independent check: Wireshark's dissectors read our captures.

use sanloom_test_support::samples;
use sanloom_test_support::samples::{HOST, HOST_NODE, HOST_PORT, STORAGE, STORAGE_PORT, login, prli_page};
use sanloom_test_support::{needs, tshark};
use sanloom_wire::bls::{BaAcc, Bls};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::els::{AddressFormat, Els, LsAcc, Prli, Rscn, RscnPage, prli, scr};
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual};
use sanloom_wire::fzs::FzsRequest;
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::login::feature;
use sanloom_wire::ns::{NsAccept, NsRequest, one_type};
use sanloom_wire::pcapng::{
    Direction, Interface, LINKTYPE_FC_2_WITH_FRAME_DELIMS, Packet, Resolution, Section, fc_with_delimiters,
};
use sanloom_wire::sw_ils::{SwAcc, SwIls};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl};

/// Value of the field `fc.crc.status` for a correct CRC.
const CRC_GOOD: &str = "1";
const CRC_STATUS: &[&str] = &["-T", "fields", "-e", "fc.crc.status"];

#[needs("tshark")]
#[test]
fn a_session_has_no_malformed_field_and_every_crc_is_good() {
    let frames = session();
    let file = capture(&frames, Resolution::Picoseconds);
    let text = tshark::read_bytes(&file, &["-V"]);
    assert_well_formed(&text);
    for expected in [
        "FLOGI",
        "PLOGI",
        "PRLI",
        "SCR",
        "RSCN",
        "RFT_ID",
        "RFF_ID",
        "RSPN_ID",
        "RSNN_NN",
        "GPN_FT",
        "GID_PN",
        "Read(10)",
        "Write(16)",
        "XFER_RDY",
        "ABTS",
        "BA_ACC",
        "sanloom host1 p1",
        "50:00:09:72:08:00:00:01",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    let crcs = tshark::read_bytes(&file, CRC_STATUS);
    assert_eq!(crcs.lines().collect::<Vec<_>>(), vec![CRC_GOOD; frames.len()]);
}

#[needs("tshark")]
#[test]
fn no_kind_of_message_is_malformed() {
    let mut frames = Vec::new();
    let mut messages = samples::messages();
    messages.retain(|(message, _)| !is_misread(message));
    for (number, (message, reply_to)) in messages.iter().enumerate() {
        let server = match message {
            Message::Ct(ct) if ct.service == Service::NAME_SERVER => FcId::NAME_SERVER,
            Message::Ct(_) => FcId::MANAGEMENT_SERVER,
            _ => STORAGE,
        };
        let mut send = |message: &Message, s_id, d_id| {
            let header = message.header(s_id, d_id, number as u16, RX_ID_UNASSIGNED);
            frames.push(Frame { header, payload: message.clone().into() });
        };
        // Like ours, the dissector of a reply depends on the request.
        let request = messages.iter().find(|(request, _)| reply_to.is_some() && request.reply_key() == *reply_to);
        match request {
            Some((request, _)) => {
                send(request, HOST, server);
                send(message, server, HOST);
            }
            None => send(message, HOST, server),
        }
    }
    let file = capture(&frames, Resolution::Picoseconds);
    let text = tshark::read_bytes(&file, &["-V"]);
    assert_well_formed(&text);
    for expected in [
        "Active Zoneset Name: nightly1",
        "Zone Object Name: zone_two",
        "Member Identifier: db_array",
        "Member Identifier: 0x00010102",
        "Operation Request: Deactivate Zone Set",
        "Domain ID 2: 239",
        "Zone Command Status: Failed",
        "Zone Command Reason Code: Cannot Merge",
        "MRRA Response: 2",
        "Capabilities: 0xc0, Hard Zones, Soft Zones",
        "Opcode: Activate Zone Set Direct",
        "Zone Set Name: nights",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    let crcs = tshark::read_bytes(&file, CRC_STATUS);
    assert_eq!(crcs.lines().collect::<Vec<_>>(), vec![CRC_GOOD; frames.len()]);
}

#[needs("tshark")]
#[test]
fn tshark_decodes_paths_and_state_changes_between_switches_to_their_meaning() {
    let is_meant = |message: &&(Message, _)| match &message.0 {
        Message::SwIls(ils) => {
            matches!(**ils, SwIls::Hlo(_) | SwIls::Lsu(_) | SwIls::Lsa(_) | SwIls::SwRscn(_))
        }
        _ => false,
    };
    let messages = samples::messages();
    let frame = |(message, _): &(Message, _)| {
        let header = message.header(FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER, 1, RX_ID_UNASSIGNED);
        Frame { header, payload: message.clone().into() }
    };
    let frames: Vec<Frame> = messages.iter().filter(is_meant).map(frame).collect();
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    let fields = "fspf.origdomid hlo.hloint hlo.deadint hlo.rcvdomid hlo.origpidx lsupdate.flags \
                  lsr.age lsr.advdomid lsr.incid lsr.length ldr.linkid ldr.out_portidx ldr.nbr_portidx ldr.linkcost \
                  rscn.evtype rscn.affectedport rscn.portstate rscn.portid rscn.pwwn rscn.nwwn";
    let fields: Vec<String> = fields.split_whitespace().map(|field| format!("swils.{field}")).collect();
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = tshark::read_bytes(&capture(&frames, Resolution::Picoseconds), &arguments);
    let expected = [
        "5|20|80|6|0x000011|||||||||||||||",
        "5|||||0x03|3,4|5,6|2147483649,2147483655|60,44|00.00.06,00.00.07,00.00.05|0x000012,0x000012,0x000012|\
         0x000034,0x000034,0x000034|500,250,500||||||",
        "6||||||3,4|5,6|2147483649,2147483655|60,44||||||||||",
        "||||||||||||||0|01.02.03|0x01,0x02|01.02.03,01.02.03|\
         21:00:00:24:ff:00:00:01,21:00:00:24:ff:00:00:01|20:00:00:24:ff:00:00:01,20:00:00:24:ff:00:00:01",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

/// Messages that Wireshark 4.4 decodes wrongly. It reads every field of ELP four bytes too late,
/// compared with captured frames. It gives a name server descriptor the length of all data after
/// it, and advances by 255 bytes for each 256. In zone server requests with two names it expects
/// the second name four bytes too early.
fn is_misread(message: &Message) -> bool {
    match message {
        Message::SwIls(ils) => matches!(**ils, SwIls::Elp(_) | SwIls::SwAcc(SwAcc::Elp(_))),
        Message::Ct(ct) => matches!(
            ct.body,
            CtBody::Ns(NsRequest::RfdId { .. })
                | CtBody::NsAccept(NsAccept::Descriptors(_))
                | CtBody::Fzs(FzsRequest::Azd { .. } | FzsRequest::Rzd { .. })
        ),
        _ => false,
    }
}

#[needs("tshark")]
#[test]
fn tshark_finds_the_fields_of_switch_messages_at_their_offsets() {
    let mut frames = Vec::new();
    for (number, (message, reply_to)) in samples::messages().into_iter().enumerate() {
        if matches!(message, Message::SwIls(_)) && reply_to.is_none() && !is_misread(&message) {
            let (s_id, d_id) = (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER);
            let header = message.header(s_id, d_id, number as u16, RX_ID_UNASSIGNED);
            frames.push(Frame { header, payload: message.into() });
        }
    }
    let text = tshark::read_bytes(&capture(&frames, Resolution::Picoseconds), &["-V"]);
    assert_well_formed(&text);
    for expected in [
        "Principal Switch Priority: 2",
        "Domain ID: 0x62",
        "(10:00:00:05:01:02:03:07)",
        "Cmd Code: DIA (0x12)",
        "Requested Domain ID: 98",
        "Protocol ID: FSPF Protocol (0x0002)",
        "Switch Vendor ID: SANLOOM",
        "Vendor Name: sanloom",
        "Model Name: loom 48",
        "Release Code: 0.1",
        "Enhanced Zoning Enabled: True",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

fn assert_well_formed(text: &str) {
    for bad in ["Malformed", "Bad", "[incorrect", "unverified", "Dissector bug"] {
        assert!(!text.contains(bad), "{bad:?} in\n{text}");
    }
}

#[needs("tshark")]
#[test]
fn tshark_shows_times_names_directions_and_comments() {
    let frames = session();
    for resolution in [Resolution::Picoseconds, Resolution::Nanoseconds] {
        let text = tshark::read_bytes(
            &capture(&frames, resolution),
            &[
                "-T",
                "fields",
                "-e",
                "frame.time_epoch",
                "-e",
                "frame.interface_name",
                "-e",
                "frame.packet_flags",
                "-e",
                "frame.comment",
            ],
        );
        assert_eq!(text.lines().next(), Some("1.000000001\thost1-p1\t0x00000002\tframe 0"), "{resolution:?}");
        assert_eq!(text.lines().count(), frames.len());
    }
}

#[needs("tshark")]
#[test]
fn tshark_reports_a_wrong_crc() {
    let frames = vec![session().swap_remove(0)];
    let mut file = capture(&frames, Resolution::Picoseconds);
    let at = file.windows(4).rposition(|set| set == [0xbc, 0x95, 0x75, 0x75]).expect("an EOF");
    file[at - 1] ^= 1;
    let crcs = tshark::read_bytes(&file, CRC_STATUS);
    assert_eq!(crcs.lines().collect::<Vec<_>>(), ["0"]);
}

/// A login, the discovery, a read, a write and an abort, in the view of host and storage.
fn session() -> Vec<Frame> {
    let mut session = Session { frames: Vec::new(), ox_id: 0 };
    let host_login = |features| login(features);
    let accept = |features| Els::LsAcc(LsAcc::Login(login(features)));
    session.els(
        FcId::ZERO,
        FcId::F_PORT,
        Els::Flogi(host_login(feature::MULTIPLE_N_PORT_ID)),
        |reply| {
            reply.d_id = HOST;
        },
        accept(feature::F_PORT),
    );
    session.els(HOST, FcId::NAME_SERVER, Els::Plogi(host_login(feature::CONTINUOUS_OFFSET)), |_| {}, accept(0));
    for request in [
        NsRequest::RpnId { port_id: HOST, port_name: HOST_PORT },
        NsRequest::RnnId { port_id: HOST, node_name: HOST_NODE },
        NsRequest::RcsId { port_id: HOST, classes: 8 },
        NsRequest::RftId { port_id: HOST, types: one_type(8) },
        NsRequest::RffId { port_id: HOST, features: 2, fc4_type: 8 },
        NsRequest::RspnId { port_id: HOST, symbolic_name: Box::new(*b"sanloom host1 p1") },
        NsRequest::RsnnNn { node_name: HOST_NODE, symbolic_name: Box::new(*b"sanloom host1") },
        NsRequest::RptId { port_id: HOST, port_type: 1 },
    ] {
        session.ns(request, NsAccept::Empty);
    }
    session.els(HOST, FcId::FABRIC_CONTROLLER, Els::Scr { function: scr::FULL }, |_| {}, Els::LsAcc(LsAcc::Empty));
    session.ns(
        NsRequest::GpnFt { domain: 0, area: 0, fc4_type: 8 },
        NsAccept::PortNames(vec![(HOST, HOST_PORT), (STORAGE, STORAGE_PORT)]),
    );
    session.ns(NsRequest::GidPn { port_name: STORAGE_PORT }, NsAccept::PortId(STORAGE));
    let page = RscnPage { qualifier: 0, format: AddressFormat::Port, address: STORAGE };
    session.els(FcId::FABRIC_CONTROLLER, HOST, Els::Rscn(Rscn { pages: vec![page] }), |_| {}, Els::LsAcc(LsAcc::Empty));
    session.els(HOST, STORAGE, Els::Plogi(host_login(0)), |_| {}, accept(0));
    let initiator = Prli { pages: vec![prli_page(prli::INITIATOR | prli::READ_XFER_RDY_DISABLED, 0)] };
    let target = Prli { pages: vec![prli_page(prli::TARGET | prli::READ_XFER_RDY_DISABLED, prli::RESPONSE_EXECUTED)] };
    session.els(HOST, STORAGE, Els::Prli(initiator), |_| {}, Els::LsAcc(LsAcc::Prli(target)));
    session.read();
    session.write();
    session.abort();
    session.frames
}

struct Session {
    frames: Vec<Frame>,
    ox_id: u16,
}

impl Session {
    fn els(&mut self, s_id: FcId, d_id: FcId, request: Els, fix: impl Fn(&mut Header), reply: Els) {
        self.ox_id += 1;
        self.send(request.into(), s_id, d_id, RX_ID_UNASSIGNED);
        self.send(reply.into(), d_id, s_id, 0x8000 + self.ox_id);
        fix(&mut self.frames.last_mut().expect("the reply").header);
    }

    fn ns(&mut self, request: NsRequest, accept: NsAccept) {
        self.ox_id += 1;
        let request = Ct::ns_request(request);
        let reply = request.reply(CtBody::NsAccept(accept));
        self.send(request.into(), HOST, FcId::NAME_SERVER, RX_ID_UNASSIGNED);
        self.send(reply.into(), FcId::NAME_SERVER, HOST, 0x8000 + self.ox_id);
    }

    fn read(&mut self) {
        self.command(Cdb::Read { lba: 64, blocks: 8, fua: false }, FcpCmnd::READ);
        self.data(STORAGE, HOST, [FCtl::READ_DATA, FCtl::READ_DATA_END]);
        self.send(Message::FcpRsp(FcpRsp::GOOD), STORAGE, HOST, 0x8000 + self.ox_id);
    }

    fn write(&mut self) {
        self.command(Cdb::Write { lba: 1 << 33, blocks: 8, fua: true }, FcpCmnd::WRITE);
        let ready = FcpXferRdy { offset: 0, burst_len: 4096 };
        self.send(Message::FcpXferRdy(ready), STORAGE, HOST, 0x8000 + self.ox_id);
        self.data(HOST, STORAGE, [FCtl::WRITE_DATA, FCtl::WRITE_DATA_END]);
        let response = FcpRsp { residual: Residual::Under(512), ..FcpRsp::GOOD };
        self.send(Message::FcpRsp(response), STORAGE, HOST, 0x8000 + self.ox_id);
    }

    fn abort(&mut self) {
        self.command(Cdb::Read { lba: 0, blocks: 8, fua: false }, FcpCmnd::READ);
        self.send(Message::Bls(Bls::Abts), HOST, STORAGE, RX_ID_UNASSIGNED);
        let accept = BaAcc::whole_exchange(self.ox_id, 0x8000 + self.ox_id);
        self.send(Message::Bls(Bls::BaAcc(accept)), STORAGE, HOST, 0x8000 + self.ox_id);
    }

    fn command(&mut self, cdb: Cdb, flags: u8) {
        self.ox_id += 1;
        let command = FcpCmnd {
            lun: [0; 8],
            crn: 0,
            attribute: 0,
            task_management: 0,
            flags,
            cdb: cdb.to_bytes(),
            data_len: 4096,
        };
        self.send(Message::FcpCmnd(command), HOST, STORAGE, RX_ID_UNASSIGNED);
    }

    /// 4096 bytes in two frames.
    fn data(&mut self, s_id: FcId, d_id: FcId, f_ctl: [FCtl; 2]) {
        for (seq_cnt, (f_ctl, offset, len)) in [(f_ctl[0], 0, 2112), (f_ctl[1], 2112, 1984)].into_iter().enumerate() {
            let header = Header {
                r_ctl: RCtl::SOLICITED_DATA,
                fc_type: FcType::FCP,
                f_ctl,
                seq_cnt: seq_cnt as u16,
                parameter: offset,
                ..Message::FcpConf.header(s_id, d_id, self.ox_id, 0x8000 + self.ox_id)
            };
            let payload = Payload::Pattern { seed: 1, offset: offset.into(), len };
            self.frames.push(Frame { header, payload });
        }
    }

    fn send(&mut self, message: Message, s_id: FcId, d_id: FcId, rx_id: u16) {
        let header = message.header(s_id, d_id, self.ox_id, rx_id);
        self.frames.push(Frame { header, payload: message.into() });
    }
}

fn capture(frames: &[Frame], resolution: Resolution) -> Vec<u8> {
    let mut file = Vec::new();
    Section { application: "sanloom test", comment: Some("a session") }.emit(&mut file);
    Interface { name: "host1-p1", description: Some("a link"), link_type: LINKTYPE_FC_2_WITH_FRAME_DELIMS, resolution }
        .emit(&mut file);
    let nanosecond = match resolution {
        Resolution::Picoseconds => 1000,
        Resolution::Nanoseconds => 1,
    };
    for (number, frame) in frames.iter().enumerate() {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        let sof = Sof::class_3(frame.header.seq_cnt == 0);
        let eof = Eof::class_3(frame.header.f_ctl.has(FCtl::END_SEQUENCE));
        Packet {
            interface: 0,
            time: (1_000_000_001 + 1000 * number as u64) * nanosecond,
            direction: Some(Direction::Outbound),
            crc_error: false,
            comment: Some(&format!("frame {number}")),
            data: &fc_with_delimiters(&bytes, sof, eof),
        }
        .emit(&mut file);
    }
    file
}
