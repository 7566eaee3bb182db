//! Entry points of the fuzzers. Each takes any bytes and must not panic. If the bytes parse,
//! emitting the value must give bytes that parse to the same value. The targets under `fuzz/` and
//! the test `fuzz_smoke` share these functions.

use sanloom_wire::arbitrated_loop::LoopInit;
use sanloom_wire::cdb::{CDB_BYTES, Cdb};
use sanloom_wire::ct::Service;
use sanloom_wire::ether::EtherHeader;
use sanloom_wire::fcip::{self, Encapsulated, KeepAlive, Special};
use sanloom_wire::fcoe::Fcoe;
use sanloom_wire::fip::Fip;
use sanloom_wire::header::{HEADER_BYTES, Header};
use sanloom_wire::infiniband::Packet;
use sanloom_wire::infiniband::cm::RdmaCm;
use sanloom_wire::infiniband::mad::{CmMessage, Smp};
use sanloom_wire::infiniband::roce::{self, RocePacket};
use sanloom_wire::iscsi::{self, Ahs, BHS_BYTES, Bhs, Head, SenseSegment};
use sanloom_wire::lldp::Lldpdu;
use sanloom_wire::nbd::{Chunk, ClientOption, Greeting, OptionHeader, OptionReply, Request, SimpleReply};
use sanloom_wire::scsi::capacity::{ReadCapacity10, ReadCapacity16};
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::mode::ModeParameters;
use sanloom_wire::scsi::operations::{self, OneCommand};
use sanloom_wire::scsi::port_groups::PortGroups;
use sanloom_wire::scsi::reservation::{FullStatus, Keys, MoveParameters, OutParameters, Reservation};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::scsi::vpd::{self, BlockLimits, Designator};
use sanloom_wire::scsi::{lba_status, luns, port_groups, unmap};
use sanloom_wire::sense::Sense;
use sanloom_wire::srp::{Iu, LoginReq};
use sanloom_wire::{FCtl, FcType, Frame, Message, ParseError, RCtl, ReplyTo, lun};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Name of a fuzz target, and its parser.
pub type EntryPoint = (&'static str, fn(&[u8]));

/// All entry points.
#[allow(dead_code)] // a fuzz target takes one
pub const ALL: &[EntryPoint] = &[
    ("header", header),
    ("els", els),
    ("ct", ct),
    ("fcp", fcp),
    ("link_service", link_service),
    ("scsi", scsi),
    ("sw_ils", sw_ils),
    ("fcoe", fcoe),
    ("fcip", fcip),
    ("fip", fip),
    ("lldp", lldp),
    ("nbd", nbd),
    ("iscsi", iscsi),
    ("srp", srp),
    ("infiniband", infiniband),
];

/// Any frame, with any header.
pub fn header(data: &[u8]) {
    let Ok(header) = Header::parse(data) else {
        assert!(data.len() < HEADER_BYTES);
        return;
    };
    assert_eq!(header.to_bytes()[..], data[..HEADER_BYTES]);
    let _ = header.to_string();
    if let Ok(frame) = Frame::parse(data, None) {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        assert_eq!(bytes.len(), frame.encoded_len());
        assert_eq!(Frame::parse(&bytes, None).map(|again| again.payload), Ok(frame.payload));
    }
}

/// First byte: command code of the request that an accept answers.
pub fn els(data: &[u8]) {
    let Some((&request, payload)) = data.split_first() else {
        return;
    };
    for r_ctl in [RCtl::ELS_REQUEST, RCtl::ELS_REPLY] {
        for reply_to in [None, Some(ReplyTo::Els(request))] {
            message(r_ctl, FcType::ELS, 0, payload, reply_to);
        }
    }
    if let Ok(init) = LoopInit::parse(payload) {
        let mut bytes = Vec::new();
        init.emit(&mut bytes);
        assert_eq!(LoopInit::parse(&bytes), Ok(init));
    }
}

/// First byte: command code of the request that an accept answers.
pub fn sw_ils(data: &[u8]) {
    let Some((&request, payload)) = data.split_first() else {
        return;
    };
    for reply_to in [None, Some(ReplyTo::SwIls(request))] {
        message(RCtl::SOLICITED_CONTROL, FcType::SW_ILS, 0, payload, reply_to);
    }
}

/// First two bytes: command code of the request that an accept answers.
pub fn ct(data: &[u8]) {
    let Some((request, payload)) = data.split_first_chunk() else {
        return;
    };
    let request = u16::from_be_bytes(*request);
    let services = [Service::NAME_SERVER, Service::FDMI, Service::FABRIC_CONFIGURATION, Service::FABRIC_ZONE_SERVER];
    let requests = services.map(|service| Some(ReplyTo::Ct(service, request)));
    for reply_to in [None].into_iter().chain(requests) {
        message(RCtl::SOLICITED_CONTROL, FcType::CT, 0, payload, reply_to);
    }
}

/// Parses the same bytes as every FCP information unit.
pub fn fcp(data: &[u8]) {
    let units = [
        RCtl::UNSOLICITED_COMMAND,
        RCtl::DATA_DESCRIPTOR,
        RCtl::COMMAND_STATUS,
        RCtl::SOLICITED_CONTROL,
        RCtl::SOLICITED_DATA,
    ];
    for r_ctl in units {
        message(r_ctl, FcType::FCP, 0, data, None);
    }
}

/// Basic link services and link control: R_CTL, TYPE, four bytes of parameter, payload.
pub fn link_service(data: &[u8]) {
    let Some(([r_ctl, fc_type, parameter @ ..], payload)) = data.split_first_chunk::<6>() else {
        return;
    };
    message(RCtl(*r_ctl), FcType(*fc_type), u32::from_be_bytes(*parameter), payload, None);
    message(RCtl(*r_ctl), FcType::BLS, 0, payload, None);
}

/// CDBs, sense data, logical unit numbers.
pub fn scsi(data: &[u8]) {
    if let Some(bytes) = data.first_chunk::<CDB_BYTES>() {
        let cdb = Cdb::parse(bytes);
        let _ = cdb.to_string();
        let mut dirty = [0xa5; CDB_BYTES];
        cdb.emit(&mut dirty);
        assert_eq!(Cdb::parse(&dirty), cdb);
    }
    if let Ok(sense) = Sense::parse(data) {
        let _ = sense.to_string();
        assert_eq!(Sense::parse(&sense.to_bytes()), Ok(sense));
    }
    parameter_data(data);
    if let Some(number) = data.first_chunk().and_then(|bytes| lun::from_bytes(*bytes)) {
        assert_eq!(lun::to_bytes(number).and_then(lun::from_bytes), Some(number));
    }
}

/// Parses the same bytes as every NBD message.
pub fn nbd(data: &[u8]) {
    if let Ok(greeting) = Greeting::parse(data) {
        assert_eq!(greeting.to_bytes(), data[..Greeting::BYTES]);
    }
    if let Ok(header) = OptionHeader::parse(data)
        && let Ok(option) = ClientOption::parse(header.option, &data[OptionHeader::BYTES..])
    {
        assert_eq!(option.code(), header.option);
        let mut bytes = Vec::new();
        option.emit(&mut bytes);
        assert_eq!(ClientOption::parse(header.option, &bytes[OptionHeader::BYTES..]), Ok(option));
    }
    if let Ok((reply, used)) = OptionReply::parse(data) {
        let mut bytes = Vec::new();
        reply.emit(&mut bytes);
        assert_eq!(bytes, data[..used]);
    }
    if let Ok(request) = Request::parse(data) {
        assert_eq!(request.to_bytes(), data[..Request::BYTES]);
        let _ = request.to_string();
    }
    if let Ok(reply) = SimpleReply::parse(data) {
        assert_eq!(reply.to_bytes(), data[..SimpleReply::BYTES]);
    }
    if let Ok((chunk, used)) = Chunk::parse(data) {
        let mut bytes = Vec::new();
        chunk.emit(&mut bytes);
        assert_eq!(bytes, data[..used]);
    }
}

/// SCSI parameter data: runs every parser on the same bytes.
fn parameter_data(data: &[u8]) {
    fn check<T: PartialEq + std::fmt::Debug>(
        value: Result<T, ParseError>,
        emit: impl Fn(&T, &mut Vec<u8>),
        parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    ) {
        if let Ok(value) = value {
            let mut bytes = Vec::new();
            emit(&value, &mut bytes);
            assert_eq!(parse(&bytes), Ok(value));
        }
    }
    macro_rules! same {
        ($($type:ty),*) => {$(
            check(<$type>::parse(data), |value, out| value.emit(out), <$type>::parse);
        )*};
    }
    same!(
        ReadCapacity10,
        ReadCapacity16,
        StandardInquiry,
        BlockLimits,
        Keys,
        Reservation,
        OutParameters,
        MoveParameters
    );
    check(
        TransportId::parse(data).map(|(id, _)| id),
        |id, out| id.emit(out),
        |data| TransportId::parse(data).map(|(id, _)| id),
    );
    check(luns::parse(data), |luns, out| luns::emit(luns, out), luns::parse);
    check(unmap::parse(data), |ranges, out| unmap::emit(ranges, out), unmap::parse);
    check(lba_status::parse(data), |list, out| lba_status::emit(list, out), lba_status::parse);
    check(PortGroups::parse(data), PortGroups::emit, PortGroups::parse);
    check(port_groups::parse_set(data), |set, out| port_groups::emit_set(set, out), port_groups::parse_set);
    check(operations::parse_all(data), |all, out| operations::emit_all(all, false, out), operations::parse_all);
    check(FullStatus::parse_list(data), |(n, list), out| FullStatus::emit_list(*n, list, out), FullStatus::parse_list);
    let designators = |list: &Vec<Designator>, out: &mut Vec<u8>| list.iter().for_each(|one| one.emit(out));
    check(Designator::parse_list(data), designators, Designator::parse_list);
    let _ = vpd::parse(data);
    let _ = OneCommand::parse(data);
    for long in [false, true] {
        let _ = ModeParameters::parse(data, long);
    }
}

/// Parses an Ethernet frame as FCoE.
pub fn fcoe(data: &[u8]) {
    let Ok((header, pdu)) = EtherHeader::parse(data) else {
        return;
    };
    let mut again = Vec::new();
    header.emit(&mut again);
    assert_eq!(again.len(), header.encoded_len());
    assert_eq!(EtherHeader::parse(&again).map(|(again, _)| again), Ok(header));
    if let Ok(fcoe) = Fcoe::parse(pdu) {
        let _ = (fcoe.sof(), fcoe.eof(), fcoe.crc_is_right(), Frame::parse(fcoe.frame, None));
        let mut again = Vec::new();
        fcoe.emit(&mut again);
        assert_eq!(again.len(), pdu.len());
        assert_eq!(Fcoe::parse(&again), Ok(fcoe));
    }
}

/// A frame or a special frame of an FCIP connection.
pub fn fcip(data: &[u8]) {
    let Ok(head) = fcip::Head::parse(data) else {
        assert!(Encapsulated::parse(data).is_err() && Special::parse(data).is_err());
        return;
    };
    assert_eq!(fcip::Head::parse(&head.to_bytes()), Ok(head));
    let mut again = Vec::new();
    if let Ok(frame) = Encapsulated::parse(data) {
        assert!(!head.is_special() && frame.encoded_len() == head.bytes());
        let _ = (frame.crc_is_right(), KeepAlive::of(frame.frame), Frame::parse(frame.frame, None));
        frame.emit(&mut again);
        assert_eq!(Encapsulated::parse(&again), Ok(frame));
        assert_eq!(again[fcip::HEADER_BYTES..], data[fcip::HEADER_BYTES..head.bytes()]);
    } else if let Ok(special) = Special::parse(data) {
        special.emit(&mut again);
        assert_eq!((Special::parse(&again), again.len()), (Ok(special), fcip::SPECIAL_BYTES));
    }
}

/// A FIP packet.
pub fn fip(data: &[u8]) {
    let Ok(packet) = Fip::parse(data) else {
        return;
    };
    let _ = (packet.operation.to_string(), packet.unknown_critical(), packet.vx_ports().count());
    let mut bytes = Vec::new();
    packet.emit(&mut bytes);
    assert_eq!(bytes.len(), packet.encoded_len());
    // `again` may differ from `packet`: emitting fills an encapsulated frame up to whole words and
    // sets its fill count. Therefore the test compares bytes.
    let again = Fip::parse(&bytes).expect("emitted bytes parse");
    let mut twice = Vec::new();
    again.emit(&mut twice);
    assert_eq!(twice, bytes);
}

/// An LLDPDU.
pub fn lldp(data: &[u8]) {
    if let Ok(pdu) = Lldpdu::parse(data) {
        let mut bytes = Vec::new();
        pdu.emit(&mut bytes);
        assert_eq!(Lldpdu::parse(&bytes), Ok(pdu));
    }
}

fn message(r_ctl: RCtl, fc_type: FcType, parameter: u32, payload: &[u8], reply_to: Option<ReplyTo>) {
    let header = Header { r_ctl, fc_type, parameter, f_ctl: FCtl::REQUEST, ..blank() };
    let Ok(message) = Message::parse(&header, payload, reply_to) else {
        return;
    };
    let _ = message.to_string();
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    assert_eq!(bytes.len(), message.encoded_len());
    let header = message.header(header.s_id, header.d_id, header.ox_id, header.rx_id);
    assert_eq!(Message::parse(&header, &bytes, reply_to), Ok(message));
}

fn blank() -> Header {
    Message::FcpConf.header(sanloom_wire::FcId::ZERO, sanloom_wire::FcId::ZERO, 1, 0xffff)
}

/// Parses the same bytes as a basic header segment and as every other iSCSI structure.
pub fn iscsi(data: &[u8]) {
    if let Some(header) = data.first_chunk() {
        let head = Head::parse(header);
        let bytes = head.to_bytes();
        assert_eq!(Head::parse(&bytes), head);
        let bhs = Bhs(bytes);
        assert_eq!((bhs.opcode(), bhs.data_bytes()), (head.header.opcode(), head.data_bytes));
        let _ = head.to_string();
    }
    for from in [0, BHS_BYTES.min(data.len())] {
        if let Ok(all) = Ahs::parse_all(&data[from..]) {
            let mut bytes = Vec::new();
            all.iter().for_each(|ahs| ahs.emit(&mut bytes));
            assert_eq!(Ahs::parse_all(&bytes), Ok(all));
        }
        if let Ok(segment) = SenseSegment::parse(&data[from..]) {
            assert!(segment.sense.len() + segment.response.len() <= data.len());
        }
        if let Ok(pairs) = iscsi::text::parse(&data[from..]) {
            let mut bytes = Vec::new();
            pairs.iter().for_each(|(key, value)| iscsi::text::emit(key, value, &mut bytes));
            assert_eq!(iscsi::text::parse(&bytes), Ok(pairs.clone()));
            for (_, value) in pairs {
                let _ = (iscsi::text::number(value), iscsi::name::is_valid(value));
                if let Some(bytes) = iscsi::text::binary(value) {
                    assert_eq!(iscsi::text::binary(&iscsi::text::to_binary(&bytes)), Some(bytes));
                }
            }
        }
    }
}

/// Information units of SRP, and its login in the data of the connection manager.
pub fn srp(data: &[u8]) {
    if let Ok(unit) = Iu::parse(data) {
        let mut bytes = Vec::new();
        unit.emit(&mut bytes);
        assert_eq!(Iu::parse(&bytes), Ok(unit));
    }
    if let Ok(login) = LoginReq::parse_cm(data) {
        let mut bytes = Vec::new();
        login.emit_cm(&mut bytes);
        assert_eq!(LoginReq::parse_cm(&bytes), Ok(login));
    }
}

/// Packets of InfiniBand, and management datagrams.
pub fn infiniband(data: &[u8]) {
    let mut bytes = Vec::new();
    if let Ok(packet) = Packet::parse(data) {
        packet.emit(&mut bytes);
        assert_eq!(Packet::parse(&bytes).map(|again| again.payload), Ok(packet.payload));
    }
    if let Ok(smp) = Smp::parse(data) {
        bytes.clear();
        smp.emit(&mut bytes);
        assert_eq!(Smp::parse(&bytes), Ok(smp));
    }
    if let Ok(message) = CmMessage::parse(data) {
        bytes.clear();
        message.emit(&mut bytes);
        assert_eq!(CmMessage::parse(&bytes), Ok(message));
        let mut copy = message;
        copy.set_req(&message.req());
        copy.set_rep(&copy.rep());
        copy.set_req_path(&copy.req_path());
        copy.set_rej(&copy.rej());
        assert_eq!(copy, message);
        if let Ok((header, _)) = RdmaCm::parse(message.private()) {
            assert_eq!(RdmaCm::parse(&header.to_bytes()), Ok((header, &[][..])));
        }
    }
    let ends = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, last), roce::UDP_PORT));
    let path = roce::Path { from: ends[0], to: ends[1] };
    // Few inputs have a valid ICRC, so one is appended to each.
    let whole = [data, &path.icrc(data)].concat();
    if let Ok(packet) = RocePacket::parse(&path, &whole) {
        bytes.clear();
        packet.emit(&path, &mut bytes);
        assert_eq!(RocePacket::parse(&path, &bytes).map(|again| again.payload), Ok(packet.payload));
    }
}
