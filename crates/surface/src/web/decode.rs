//! Frames as lists of fields, for the packets view: `POST /api/v1/decode`.

use sanloom_api::inject::{self, Direction, Matcher, Seen};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::ether::{EtherHeader, EtherType};
use sanloom_wire::fcoe::{Fcoe, HEAD_BYTES};
use sanloom_wire::fcp::{FcpCmnd, FcpRsp};
use sanloom_wire::fip::{self, Fip};
use sanloom_wire::frame::{Frame, Payload};
use sanloom_wire::header::{HEADER_BYTES, Header};
use sanloom_wire::iscsi::{BHS_BYTES, Head};
use sanloom_wire::message::Message;
use sanloom_wire::pause::PriorityPause;
use sanloom_wire::pcapng::{LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS};
use sanloom_wire::tcp::TcpPacket;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum number of frames of a request.
const MAX_FRAMES: usize = 500;
/// Number of bytes of a start or end delimiter, and of a CRC.
const WORD: usize = 4;
/// EtherType of IPv4.
const IPV4: EtherType = EtherType(0x0800);
/// Port of iSCSI targets (RFC 7143, 14).
const ISCSI: u16 = 3260;

/// Frames of a capture.
#[derive(Deserialize)]
pub struct Captured {
    /// Link type of the capture file.
    link_type: u16,
    /// Bytes of each frame as hexadecimal digits.
    frames: Vec<String>,
    /// Expression of [`sanloom_api::inject`] that the frames are compared with.
    #[serde(default)]
    filter: Option<String>,
}

/// The frames with their fields, in the same order.
#[derive(Serialize, Default, PartialEq, Debug)]
pub struct Decoded {
    frames: Vec<DecodedFrame>,
}

/// A frame.
#[derive(Serialize, Default, PartialEq, Debug)]
struct DecodedFrame {
    /// One line.
    summary: String,
    fields: Vec<Field>,
    /// True if the frame matches the filter; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<bool>,
    /// Bytes of its frame of Fibre Channel, from the header to the payload; `None` without one.
    #[serde(skip)]
    frame: Option<Range<usize>>,
}

/// A field with the positions of its bytes.
#[derive(Serialize, PartialEq, Debug)]
struct Field {
    name: &'static str,
    value: String,
    /// Index of its first byte.
    from: usize,
    /// Index after its last byte.
    until: usize,
}

/// Decodes the frames.
///
/// # Errors
/// There are too many frames, or the filter is not valid.
pub fn decode(captured: &Captured) -> Result<Decoded, String> {
    if captured.frames.len() > MAX_FRAMES {
        return Err(format!("the request has more than {MAX_FRAMES} frames; split it"));
    }
    let filter =
        captured.filter.as_deref().map(str::parse::<Matcher>).transpose().map_err(|error| error.to_string())?;
    if filter.as_ref().is_some_and(names_direction) {
        return Err("the direction of a captured frame is not known; compare s_id or d_id instead".to_owned());
    }
    let frames = captured.frames.iter().map(|text| bytes(text).unwrap_or_default());
    let decoded = frames.map(|frame| {
        let mut decoded = one(captured.link_type, &frame);
        let inner = decoded.frame.clone().and_then(|place| frame.get(place));
        decoded.matches = filter.as_ref().map(|filter| inner.is_some_and(|inner| matches(inner, filter)));
        decoded
    });
    Ok(Decoded { frames: decoded.collect() })
}

fn names_direction(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::All(list) | Matcher::Any(list) => list.iter().any(names_direction),
        Matcher::Not(one) => names_direction(one),
        Matcher::Is(comparison) => comparison.field == inject::Field::Direction,
    }
}

/// Returns whether the filter matches a frame of Fibre Channel.
fn matches(frame: &[u8], filter: &Matcher) -> bool {
    let payload = frame.get(HEADER_BYTES..).unwrap_or_default();
    Header::parse(frame).is_ok_and(|header| filter.holds(&Seen { direction: Direction::In, header: &header, payload }))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

fn one(link_type: u16, bytes: &[u8]) -> DecodedFrame {
    let mut decoded = DecodedFrame::default();
    match link_type {
        LINKTYPE_ETHERNET => ethernet(&mut decoded, bytes),
        LINKTYPE_FC_2_WITH_FRAME_DELIMS => {
            let end = bytes.len().saturating_sub(2 * WORD);
            decoded.add("SOF", hex(bytes.get(..WORD).unwrap_or_default()), 0, WORD);
            fibre_channel(&mut decoded, bytes.get(WORD..end).unwrap_or_default(), WORD);
            if bytes.len() >= end + 2 * WORD && end > WORD {
                decoded.add("CRC", hex(&bytes[end..end + WORD]), end, end + WORD);
                decoded.add("EOF", hex(&bytes[end + WORD..]), end + WORD, bytes.len());
            }
        }
        other => decoded.summary = format!("link type {other} is not decoded"),
    }
    decoded
}

fn ethernet(decoded: &mut DecodedFrame, bytes: &[u8]) {
    let (header, rest) = match EtherHeader::parse(bytes) {
        Ok(parsed) => parsed,
        Err(error) => return decoded.summary = format!("no Ethernet frame: {error}"),
    };
    let length = bytes.len() - rest.len();
    decoded.add("Destination", header.to.to_string(), 0, 6);
    decoded.add("Source", header.from.to_string(), 6, 12);
    if let Some(tag) = header.tag {
        decoded.add("802.1Q tag", format!("VLAN {}, priority {}", tag.vlan, tag.priority), 12, length - 2);
    }
    decoded.add("EtherType", format!("{:#06x}", header.ether_type.0), length - 2, length);
    let way = format!("{} → {}", header.from, header.to);
    match header.ether_type {
        EtherType::FCOE => {}
        EtherType::FIP => return discovery(decoded, &way, rest, length),
        EtherType::MAC_CONTROL => return pause(decoded, &way, bytes, length),
        IPV4 => return internet(decoded, rest, length),
        other => return decoded.summary = format!("{way}, EtherType {:#06x}", other.0),
    }
    match Fcoe::parse(rest) {
        Ok(pdu) => {
            decoded.add("FCoE SOF", format!("{:#04x}", pdu.sof_code), length + HEAD_BYTES - 1, length + HEAD_BYTES);
            fibre_channel(decoded, pdu.frame, length + HEAD_BYTES);
            let end = length + HEAD_BYTES + pdu.frame.len();
            decoded.add("CRC", hex(&pdu.crc), end, end + WORD);
            decoded.add("FCoE EOF", format!("{:#04x}", pdu.eof_code), end + WORD, end + WORD + 1);
        }
        Err(error) => decoded.summary = format!("no FCoE frame: {error}"),
    }
}

/// FIP (FC-BB-6, 7.8).
fn discovery(decoded: &mut DecodedFrame, way: &str, bytes: &[u8], at: usize) {
    let packet = match Fip::parse(bytes) {
        Ok(packet) => packet,
        Err(error) => return decoded.summary = format!("{way}: no FIP packet: {error}"),
    };
    decoded.summary = format!("{way} FIP {}", packet.operation);
    decoded.add("FIP operation", packet.operation.to_string(), at + 2, at + 6);
    decoded.add("FIP flags", format!("{:#06x}", packet.flags), at + 8, at + fip::HEAD_BYTES);
    let mut rest = &bytes[fip::HEAD_BYTES..];
    let mut from = at + fip::HEAD_BYTES;
    while let Ok((descriptor, after)) = fip::Descriptor::parse(rest) {
        let until = from + rest.len() - after.len();
        if until > at + packet.encoded_len() {
            break;
        }
        decoded.add("FIP descriptor", format!("{descriptor:?}"), from, until);
        if let fip::Descriptor::LinkService { frame, .. } = &descriptor
            && let Payload::Typed(message) = &frame.payload
        {
            decoded.summary = format!("{way} FIP {message}");
        }
        (rest, from) = (after, until);
    }
}

/// Priority-based flow control (IEEE 802.1Q, 36).
fn pause(decoded: &mut DecodedFrame, way: &str, bytes: &[u8], at: usize) {
    let pause = match PriorityPause::parse(bytes) {
        Ok(pause) => pause,
        Err(error) => return decoded.summary = format!("{way}: no pause: {error}"),
    };
    let named = (0..8).filter(|priority| pause.named & 1 << priority != 0);
    let words: Vec<String> = named
        .map(|priority| match pause.quanta[priority] {
            0 => format!("priority {priority} goes on"),
            quanta => format!("priority {priority} pauses for {quanta} quanta"),
        })
        .collect();
    decoded.summary = format!("{way} PFC: {}", words.join(", "));
    decoded.add("Opcode", hex(&bytes[at..at + 2]), at, at + 2);
    decoded.add("Priorities", format!("{:#04x}", pause.named), at + 2, at + 4);
    for (priority, quanta) in pause.quanta.into_iter().enumerate() {
        decoded.add("Quanta", format!("priority {priority}: {quanta}"), at + 4 + 2 * priority, at + 6 + 2 * priority);
    }
}

/// TCP over IPv4, and iSCSI in it if a header begins with the segment.
fn internet(decoded: &mut DecodedFrame, bytes: &[u8], at: usize) {
    let packet = match TcpPacket::parse(bytes) {
        Ok(packet) => packet,
        Err(error) => return decoded.summary = format!("IPv4: {error}"),
    };
    let dotted = |address: [u8; 4]| std::net::Ipv4Addr::from(address).to_string();
    let (ip, tcp) = (&packet.ip, &packet.tcp);
    let (source, destination) = (dotted(ip.source), dotted(ip.destination));
    let flags = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
    let flags = flags.into_iter().enumerate().filter(|(bit, _)| tcp.flags & 1 << bit != 0);
    let flags: Vec<&str> = flags.map(|(_, name)| name).collect();
    decoded.add("Source address", source.clone(), at + 12, at + 16);
    decoded.add("Destination address", destination.clone(), at + 16, at + 20);
    let head = at + usize::from(bytes[0] & 15) * 4;
    for (name, value, from, until) in [
        ("Source port", tcp.source_port.to_string(), 0, 2),
        ("Destination port", tcp.destination_port.to_string(), 2, 4),
        ("Sequence number", tcp.sequence.to_string(), 4, 8),
        ("Acknowledgement", tcp.acknowledgement.to_string(), 8, 12),
        ("Flags", flags.join(" "), 13, 14),
        ("Window", tcp.window.to_string(), 14, 16),
    ] {
        decoded.add(name, value, head + from, head + until);
    }
    decoded.summary = format!(
        "{source}:{} → {destination}:{} TCP {}, {} bytes",
        tcp.source_port,
        tcp.destination_port,
        flags.join(" "),
        packet.payload.len()
    );
    // The length of the payload was checked against that of the packet.
    let payload = head + usize::from(bytes[head - at + 12] >> 4) * 4;
    let is_iscsi = tcp.source_port == ISCSI || tcp.destination_port == ISCSI;
    match packet.payload.first_chunk::<BHS_BYTES>().filter(|_| is_iscsi) {
        Some(head) => {
            let text = Head::parse(head).to_string();
            decoded.summary = format!("{source} → {destination} iSCSI {text}");
            decoded.add("iSCSI header, if one begins here", text, payload, payload + BHS_BYTES);
        }
        None if packet.payload.is_empty() => {}
        None => {
            let length = packet.payload.len();
            decoded.add("Payload", format!("{length} bytes"), payload, payload + length);
        }
    }
}

/// Fields of the information units of FCP (FCP-4, 9).
fn fcp(decoded: &mut DecodedFrame, message: &Message, unit: &[u8], at: usize) {
    match message {
        Message::FcpCmnd(command) => {
            decoded.add("FCP_LUN", hex(&command.lun), at, at + 8);
            if command.task_management != 0 {
                let value = format!("{:#04x}", command.task_management);
                decoded.add("Task management", value, at + 10, at + 11);
            }
            let cdb = Cdb::parse(&command.cdb).to_string();
            write!(decoded.summary, " {cdb}").expect("a string grows");
            decoded.add("CDB", cdb, at + 12, at + 28);
            decoded.add("FCP_DL", command.data_len.to_string(), at + 28, at + FcpCmnd::BYTES);
        }
        Message::FcpXferRdy(ready) => {
            decoded.add("FCP_DATA_RO", ready.offset.to_string(), at, at + 4);
            decoded.add("FCP_BURST_LEN", ready.burst_len.to_string(), at + 4, at + 8);
        }
        Message::FcpRsp(response) => {
            decoded.add("SCSI status", format!("{:#04x}", response.status), at + 11, at + 12);
            decoded.add("Residual", format!("{:?}", response.residual), at + 12, at + 16);
            if let Some(sense) = &response.sense {
                // FCP_RSP_INFO has 0, 4 or 8 bytes.
                let length = unit.get(20..24).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes);
                let information = if response.response_code.is_some() { length as usize } else { 0 };
                let from = at + FcpRsp::BYTES + information;
                decoded.add("Sense data", hex(sense), from, from + sense.len());
            }
        }
        _ => {}
    }
}

fn fibre_channel(decoded: &mut DecodedFrame, bytes: &[u8], at: usize) {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => return decoded.summary = format!("no Fibre Channel frame: {error}"),
    };
    decoded.frame = Some(at..at + bytes.len());
    let number = |range: Range<usize>| hex(&bytes[range]);
    let fields: [(&'static str, usize, usize); 12] = [
        ("R_CTL", 0, 1),
        ("D_ID", 1, 4),
        ("CS_CTL", 4, 5),
        ("S_ID", 5, 8),
        ("TYPE", 8, 9),
        ("F_CTL", 9, 12),
        ("SEQ_ID", 12, 13),
        ("DF_CTL", 13, 14),
        ("SEQ_CNT", 14, 16),
        ("OX_ID", 16, 18),
        ("RX_ID", 18, 20),
        ("Parameter", 20, HEADER_BYTES),
    ];
    for (name, from, until) in fields {
        decoded.add(name, number(from..until), at + from, at + until);
    }
    decoded.summary = header.to_string();
    if let Ok(Frame { payload: Payload::Typed(message), .. }) = Frame::parse(bytes, None) {
        let text = message.to_string();
        decoded.summary = format!("{} → {} {text}", header.s_id, header.d_id);
        if bytes.len() > HEADER_BYTES {
            decoded.add("Payload", text, at + HEADER_BYTES, at + bytes.len());
            fcp(decoded, &message, &bytes[HEADER_BYTES..], at + HEADER_BYTES);
        }
    } else if bytes.len() > HEADER_BYTES {
        let length = bytes.len() - HEADER_BYTES;
        decoded.add("Payload", format!("{length} bytes"), at + HEADER_BYTES, at + bytes.len());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl DecodedFrame {
    fn add(&mut self, name: &'static str, value: String, from: usize, until: usize) {
        self.fields.push(Field { name, value, from, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_names_its_value_and_its_bytes() {
        // SOFi3, an FCP command without its payload, CRC, EOFt.
        let text = "bcb55656 06010200 00010100 08290000 01000000 8001ffff 00000000 00000000 bc957575".replace(' ', "");
        let captured = Captured { link_type: LINKTYPE_FC_2_WITH_FRAME_DELIMS, frames: vec![text], filter: None };
        let decoded = decode(&captured).unwrap();
        let field = |name: &str| decoded.frames[0].fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!((field("D_ID").value.as_str(), field("D_ID").from, field("D_ID").until), ("010200", 5, 8));
        assert_eq!((field("OX_ID").value.as_str(), field("OX_ID").from), ("8001", 20));
        assert_eq!((field("EOF").from, field("EOF").until), (32, 36));
        assert!(decoded.frames[0].summary.contains("010100"), "{}", decoded.frames[0].summary);
    }

    /// Returns the summary of a frame, and its fields as texts.
    fn read(link_type: u16, text: &str) -> (String, Vec<(&'static str, String)>) {
        let captured = Captured { link_type, frames: vec![text.replace(' ', "")], filter: None };
        let DecodedFrame { summary, fields, .. } = decode(&captured).unwrap().frames.remove(0);
        (summary, fields.into_iter().map(|field| (field.name, field.value)).collect())
    }

    /// A keep-alive of an ENode with its MAC address.
    const FIP: &str = "0efd00010202 0efd00010101 8914 1000 0003 0001 0002 8000 0202 0efd00010101";
    /// Priority 3 pauses for 65,535 quanta.
    const PFC: &str = "0180c2000001 0efd00010101 8808 0101 0008 0000 0000 0000 ffff 0000 0000 0000 0000";
    /// An iSCSI READ(10) in a segment of TCP.
    const READ: &str = "0efd00010202 0efd00010101 0800 4500 0058 0000 4000 4006 0000 0a000001 0a000002 \
                        c000 0cbc 00000001 00000002 5018 0200 0000 0000 \
                        01c1 0000 00 000000 0000000000000000 00000001 00001000 00000001 00000001 \
                        2800 0000 0000 0000 0800 0000 0000 0000";
    /// FCP_CMND with READ(10), between delimiters.
    const FCP: &str = "bcb55656 06010200 00010100 08290000 01000000 8001ffff 00000000 \
                       0000000000000000 00000002 2800000000000000 0800000000000000 00001000 00000000 bc957575";

    #[test]
    fn discovery_pauses_tcp_and_commands_are_named() {
        let has = |fields: &[(&str, String)], name: &str, text: &str| {
            let found = fields.iter().any(|(field, value)| *field == name && value.contains(text));
            assert!(found, "{name} without {text}: {fields:?}");
        };
        let (summary, fields) = read(LINKTYPE_ETHERNET, FIP);
        assert!(summary.ends_with("FIP keep-alive"), "{summary}");
        has(&fields, "FIP descriptor", "0e:fd:00:01:01:01");
        let (summary, fields) = read(LINKTYPE_ETHERNET, PFC);
        assert!(summary.ends_with("PFC: priority 3 pauses for 65535 quanta"), "{summary}");
        has(&fields, "Quanta", "priority 3: 65535");
        let (summary, fields) = read(LINKTYPE_ETHERNET, READ);
        assert!(summary.starts_with("10.0.0.1 → 10.0.0.2 iSCSI"), "{summary}");
        has(&fields, "Flags", "PSH ACK");
        let (summary, fields) = read(LINKTYPE_FC_2_WITH_FRAME_DELIMS, FCP);
        assert!(summary.contains("FCP_CMND READ(10)"), "{summary}");
        has(&fields, "FCP_DL", "4096");
    }

    #[test]
    fn a_filter_is_an_expression_of_injected_faults() {
        let found = |link_type, text: &str, filter: &str| {
            let captured = Captured { link_type, frames: vec![text.replace(' ', "")], filter: Some(filter.to_owned()) };
            decode(&captured).map(|decoded| decoded.frames[0].matches)
        };
        let fc = LINKTYPE_FC_2_WITH_FRAME_DELIMS;
        assert_eq!(found(fc, FCP, "fcp == CMND && d_id == 010200"), Ok(Some(true)));
        assert_eq!(found(fc, FCP, "fcp == CMND && d_id == 010201"), Ok(Some(false)));
        assert_eq!(found(LINKTYPE_ETHERNET, READ, "!(fcp == CMND)"), Ok(Some(false)), "no frame of Fibre Channel");
        // FCoE: version and SOFi3 before the frame; CRC, EOFt and reserved bytes after it.
        let frame = FCP.replace(' ', "");
        let frame = &frame[8..frame.len() - 8];
        let fcoe = format!("0efd00010202 0efd00010101 8906 00000000000000000000000000 2e {frame} 42000000");
        assert_eq!(found(LINKTYPE_ETHERNET, &fcoe, "fcp == CMND && s_id == 010100"), Ok(Some(true)));
        assert_eq!(found(LINKTYPE_ETHERNET, &fcoe, "s_id == 010200"), Ok(Some(false)));
        assert!(found(fc, FCP, "fcp = CMND").is_err_and(|error| error.contains("operator")));
        assert!(found(fc, FCP, "!(direction == in)").is_err_and(|error| error.contains("s_id")));
    }

    #[test]
    fn every_prefix_of_a_frame_is_decoded_without_a_panic() {
        let fcoe = "0efd00010202 0efd00010101 8906 00000000000000000000000000 2e".to_owned() + &"06".repeat(60);
        for text in [&fcoe, FIP, PFC, READ, FCP].map(|text| text.replace(' ', "")) {
            for length in 0..text.len() {
                for link_type in [0, LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS] {
                    let captured = Captured {
                        link_type,
                        frames: vec![text[..length].to_owned()],
                        filter: Some("fcp == CMND".to_owned()),
                    };
                    assert_eq!(decode(&captured).unwrap().frames.len(), 1);
                }
            }
        }
    }
}
