//! TransportID: identifier of an initiator port in persistent reservations (SPC-4, 7.6.4).

use crate::Wwpn;
use crate::bytes::{Put, fixed, put_with_len16, slice, u16_at, u64_at};
use crate::error::ParseError;
use std::fmt;

/// Identifier of an initiator port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TransportId {
    /// Fibre Channel: the port name.
    Fcp(Wwpn),
    /// SRP: the initiator port identifier.
    Srp(Box<[u8; 16]>),
    /// iSCSI: name and optional session identifier.
    Iscsi(Box<IscsiPort>),
}

/// Initiator end of an iSCSI session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IscsiPort {
    /// iSCSI name, at most 223 bytes of UTF-8.
    pub name: Box<str>,
    /// Initiator session identifier; `None` means all ports of the initiator.
    pub isid: Option<[u8; 6]>,
}

/// Protocol identifiers, the low half of byte 0.
const FCP: u8 = 0;
const SRP: u8 = 4;
const ISCSI: u8 = 5;
/// Byte 0, bits 7 and 6 for iSCSI: the ISID follows the name.
const WITH_ISID: u8 = 0x40;
/// Shortest text, padded.
const MIN_TEXT_BYTES: usize = 20;
/// Longest text: name, separator, ISID and terminating NUL, padded.
const MAX_TEXT_BYTES: usize = 244;
/// Text between name and ISID.
const SEPARATOR: &str = ",i,0x";

impl TransportId {
    /// An iSCSI initiator port.
    pub fn iscsi(name: &str, isid: Option<[u8; 6]>) -> TransportId {
        TransportId::Iscsi(Box::new(IscsiPort { name: name.into(), isid }))
    }

    /// Length of the shortest TransportID, and of every one that is not iSCSI, in bytes.
    pub const BYTES: usize = 24;

    /// Reads one TransportID. Also returns its length. An unsupported protocol is
    /// [`ParseError::Unsupported`].
    pub fn parse(data: &[u8]) -> Result<(TransportId, usize), ParseError> {
        let b = fixed::<{ Self::BYTES }>("TransportID", data)?;
        match (b[0] & 0x0f, b[0] >> 6) {
            (FCP, 0) => Ok((TransportId::Fcp(Wwpn(u64_at(b, 8))), Self::BYTES)),
            (SRP, 0) => Ok((TransportId::Srp(Box::new(array16(b))), Self::BYTES)),
            (ISCSI, format @ (0 | 1)) => {
                let len = usize::from(u16_at(b, 2));
                let text = slice("iSCSI TransportID", data, 4, len)?;
                if len > MAX_TEXT_BYTES {
                    let rule = "at most 244 bytes";
                    return Err(ParseError::Length { field: "iSCSI TransportID", got_bytes: len, rule });
                }
                let id = parse_iscsi(text, format == 1).ok_or(ParseError::Value {
                    field: "iSCSI TransportID",
                    got: u32::from(b[0]),
                    rule: "a name of UTF-8 that ends with NUL, with \",i,0x\" and 12 digits before it in format 01b",
                })?;
                Ok((id, 4 + len))
            }
            _ => Err(ParseError::Unsupported { field: "TransportID format and protocol", got: b[0].into() }),
        }
    }

    /// Appends the TransportID. iSCSI names are padded with NUL to a multiple of four bytes, at
    /// least 24 in total.
    pub fn emit(&self, out: &mut dyn Put) {
        match self {
            TransportId::Fcp(name) => {
                out.put_u8(FCP);
                out.put_zeros(7);
                out.put_u64(name.0);
                out.put_zeros(8);
            }
            TransportId::Srp(port) => {
                out.put_u8(SRP);
                out.put_zeros(7);
                out.put_slice(port.as_slice());
            }
            TransportId::Iscsi(port) => {
                let text = self.to_string();
                out.put_u8(ISCSI | if port.isid.is_some() { WITH_ISID } else { 0 });
                out.put_u8(0);
                put_with_len16(out, |out| {
                    out.put_slice(text.as_bytes());
                    out.put_zeros(padded(text.len()) - text.len());
                });
            }
        }
    }
}

/// Returns bytes 8 to 23.
fn array16(b: &[u8; TransportId::BYTES]) -> [u8; 16] {
    std::array::from_fn(|at| b[8 + at])
}

/// Length of the name field: at least one NUL, a multiple of four, at least 20.
fn padded(text: usize) -> usize {
    (text + 1).next_multiple_of(4).max(MIN_TEXT_BYTES)
}

fn parse_iscsi(text: &[u8], with_isid: bool) -> Option<TransportId> {
    let end = text.iter().position(|&byte| byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    if !with_isid {
        return Some(TransportId::iscsi(text, None));
    }
    let (name, digits) = text.rsplit_once(SEPARATOR)?;
    if digits.len() != 12 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(digits, 16).ok()?;
    let [0, 0, isid @ ..] = number.to_be_bytes() else { return None };
    Some(TransportId::iscsi(name, Some(isid)))
}

impl fmt::Display for TransportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportId::Fcp(name) => write!(f, "{name}"),
            TransportId::Srp(port) => write!(f, "0x{:032x}", u128::from_be_bytes(**port)),
            TransportId::Iscsi(port) => {
                f.write_str(&port.name)?;
                let Some(isid) = port.isid else { return Ok(()) };
                f.write_str(SEPARATOR)?;
                isid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(id: &TransportId) -> Vec<u8> {
        let mut out = Vec::new();
        id.emit(&mut out);
        out
    }

    #[test]
    fn fcp_is_24_bytes_with_the_port_name_at_8() {
        let id = TransportId::Fcp(Wwpn(0x2000_0000_c912_3456));
        let out = bytes(&id);
        assert_eq!(out[..16], [0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0xc9, 0x12, 0x34, 0x56]);
        assert_eq!(TransportId::parse(&out), Ok((id, 24)));
    }

    #[test]
    fn srp_is_24_bytes_with_the_port_identifier_at_8() {
        let id = TransportId::Srp(Box::new(std::array::from_fn(|at| at as u8 + 1)));
        let out = bytes(&id);
        assert_eq!(out[..10], [4, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(TransportId::parse(&out), Ok((id.clone(), 24)));
        assert_eq!(id.to_string(), "0x0102030405060708090a0b0c0d0e0f10");
    }

    #[test]
    fn iscsi_is_a_padded_name_with_or_without_isid() {
        let name = "iqn.2026-11.net.example:host";
        let id = TransportId::iscsi(name, Some([0x80, 0x12, 0x34, 0x56, 0, 1]));
        let out = bytes(&id);
        assert_eq!(out[..4], [0x45, 0, 0, 48]);
        assert_eq!(&out[4..49], b"iqn.2026-11.net.example:host,i,0x801234560001");
        assert_eq!(TransportId::parse(&out), Ok((id, 52)));
        let device = TransportId::iscsi("iqn.x", None);
        let out = bytes(&device);
        assert_eq!((out[0], out.len()), (5, 24));
        assert_eq!(TransportId::parse(&out), Ok((device, 24)));
    }

    #[test]
    fn every_truncation_and_every_other_protocol_is_rejected() {
        let out = bytes(&TransportId::iscsi("iqn.2026-11.net.example:host", None));
        for len in 0..out.len() {
            assert!(matches!(TransportId::parse(&out[..len]), Err(ParseError::Truncated { .. })), "{len}");
        }
        let mut sas = bytes(&TransportId::Fcp(Wwpn(1)));
        sas[0] = 6;
        assert!(matches!(TransportId::parse(&sas), Err(ParseError::Unsupported { got: 6, .. })));
    }

    #[test]
    fn a_name_without_end_or_with_bad_digits_is_refused() {
        let mut out = bytes(&TransportId::iscsi("iqn.x", Some([0; 6])));
        out[4 + "iqn.x,i,0x".len()] = b'g';
        assert!(matches!(TransportId::parse(&out), Err(ParseError::Value { .. })));
        let mut endless = vec![b'a'; 24];
        endless[..4].copy_from_slice(&[5, 0, 0, 20]);
        assert!(matches!(TransportId::parse(&endless), Err(ParseError::Value { .. })));
    }
}
