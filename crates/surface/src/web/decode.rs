//! Frames as lists of fields, for the packets view: `POST /api/v1/decode`.

use sanloom_wire::ether::{EtherHeader, EtherType};
use sanloom_wire::fcoe::{Fcoe, HEAD_BYTES};
use sanloom_wire::frame::{Frame, Payload};
use sanloom_wire::header::{HEADER_BYTES, Header};
use sanloom_wire::pcapng::{LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS};
use serde::{Deserialize, Serialize};

/// Maximum number of frames of a request.
const MAX_FRAMES: usize = 500;
/// Number of bytes of a start or end delimiter, and of a CRC.
const WORD: usize = 4;

/// Frames of a capture.
#[derive(Deserialize)]
pub struct Captured {
    /// Link type of the capture file.
    link_type: u16,
    /// Bytes of each frame as hexadecimal digits.
    frames: Vec<String>,
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

/// Decodes the frames. Returns `None` if there are too many.
pub fn decode(captured: &Captured) -> Option<Decoded> {
    let frames = || captured.frames.iter().map(|text| bytes(text).unwrap_or_default());
    let decoded = || frames().map(|frame| one(captured.link_type, &frame)).collect();
    (captured.frames.len() <= MAX_FRAMES).then(|| Decoded { frames: decoded() })
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
    if header.ether_type != EtherType::FCOE {
        return decoded.summary = format!("{} → {}, EtherType {:#06x}", header.from, header.to, header.ether_type.0);
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

fn fibre_channel(decoded: &mut DecodedFrame, bytes: &[u8], at: usize) {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => return decoded.summary = format!("no Fibre Channel frame: {error}"),
    };
    let number = |range: std::ops::Range<usize>| hex(&bytes[range]);
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
        let captured = Captured { link_type: LINKTYPE_FC_2_WITH_FRAME_DELIMS, frames: vec![text] };
        let decoded = decode(&captured).unwrap();
        let field = |name: &str| decoded.frames[0].fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!((field("D_ID").value.as_str(), field("D_ID").from, field("D_ID").until), ("010200", 5, 8));
        assert_eq!((field("OX_ID").value.as_str(), field("OX_ID").from), ("8001", 20));
        assert_eq!((field("EOF").from, field("EOF").until), (32, 36));
        assert!(decoded.frames[0].summary.contains("010100"), "{}", decoded.frames[0].summary);
    }

    #[test]
    fn every_prefix_of_a_frame_is_decoded_without_a_panic() {
        let text = "0efd00010202 0efd00010101 8906 00000000000000000000000000 2e".replace(' ', "") + &"06".repeat(60);
        for length in 0..text.len() {
            for link_type in [0, LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS] {
                let captured = Captured { link_type, frames: vec![text[..length].to_owned()] };
                assert_eq!(decode(&captured).unwrap().frames.len(), 1);
            }
        }
    }
}
