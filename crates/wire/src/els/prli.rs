//! PRLI and PRLO (FC-LS, process login and logout): service parameter pages, and their bits for FCP
//! (FCP, process login).

use crate::bytes::{Put, fixed, put_counted, slice, u16_at, u32_at};
use crate::error::ParseError;

/// PRLI and its accept: service parameter pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prli {
    /// One page per FC-4 type.
    pub pages: Vec<PrliPage>,
}

/// One service parameter page of 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrliPage {
    /// FC-4 type, 08 for FCP.
    pub fc4_type: u8,
    /// Type extension.
    pub type_extension: u8,
    /// 80 and 40: process associators valid; 20: establish image pair; low nibble of an accept:
    /// response code.
    pub flags: u8,
    /// Originator's process associator.
    pub originator_pa: u32,
    /// Responder's process associator.
    pub responder_pa: u32,
    /// Service parameters (see [`crate::els::prli`]).
    pub parameters: u32,
}

/// PRLO and its accept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prlo {
    /// One page per FC-4 type; `parameters` is not used.
    pub pages: Vec<PrliPage>,
}

/// Flags: establish image pair.
pub const ESTABLISH_IMAGE_PAIR: u8 = 0x20;
/// Response code: request executed.
pub const RESPONSE_EXECUTED: u8 = 1;
/// Parameter: command retry.
pub const RETRY: u32 = 0x0100;
/// Parameter: confirmed completion.
pub const CONFIRM: u32 = 0x0080;
/// Parameter: initiator function.
pub const INITIATOR: u32 = 0x0020;
/// Parameter: target function.
pub const TARGET: u32 = 0x0010;
/// Parameter: no XFER_RDY before read data.
pub const READ_XFER_RDY_DISABLED: u32 = 0x0002;
/// Parameter: no XFER_RDY before the first write data.
pub const WRITE_XFER_RDY_DISABLED: u32 = 0x0001;

/// Length of the word before the pages, in bytes.
const HEAD_BYTES: usize = 4;
/// Length of a page, in bytes.
pub const PAGE_BYTES: usize = 16;
/// Largest number of pages that the 16-bit length can count.
pub const MAX_PAGES: usize = (u16::MAX as usize - HEAD_BYTES) / PAGE_BYTES;

impl Prli {
    /// Reads a request or an accept. The command byte is not checked.
    pub fn parse(payload: &[u8]) -> Result<Prli, ParseError> {
        Ok(Prli { pages: parse_pages(payload)? })
    }

    /// Appends the payload; pages beyond [`MAX_PAGES`] are left out.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| put_pages(command, &self.pages, len, out));
    }
}

impl Prlo {
    /// Reads a request or an accept. The command byte is not checked.
    pub fn parse(payload: &[u8]) -> Result<Prlo, ParseError> {
        Ok(Prlo { pages: parse_pages(payload)? })
    }

    /// Appends the payload; pages beyond [`MAX_PAGES`] are left out.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| put_pages(command, &self.pages, len, out));
    }
}

impl PrliPage {
    /// Response code of an accept, the low nibble of the flags.
    pub const fn response_code(&self) -> u8 {
        self.flags & 0x0f
    }
}

fn parse_pages(payload: &[u8]) -> Result<Vec<PrliPage>, ParseError> {
    let head = fixed::<HEAD_BYTES>("PRLI or PRLO", payload)?;
    if usize::from(head[1]) != PAGE_BYTES {
        return Err(ParseError::Length {
            field: "service parameter page",
            got_bytes: head[1].into(),
            rule: "16 bytes",
        });
    }
    let total = usize::from(u16_at(head, 2));
    if total < HEAD_BYTES || !(total - HEAD_BYTES).is_multiple_of(PAGE_BYTES) {
        return Err(ParseError::Length {
            field: "PRLI or PRLO payload length",
            got_bytes: total,
            rule: "4 bytes and a whole number of pages of 16",
        });
    }
    let pages = slice("PRLI or PRLO pages", payload, HEAD_BYTES, total - HEAD_BYTES)?;
    Ok(pages
        .chunks_exact(PAGE_BYTES)
        .map(|b| PrliPage {
            fc4_type: b[0],
            type_extension: b[1],
            flags: b[2],
            originator_pa: u32_at(b, 4),
            responder_pa: u32_at(b, 8),
            parameters: u32_at(b, 12),
        })
        .collect())
}

fn put_pages(command: u8, pages: &[PrliPage], len: usize, out: &mut dyn Put) {
    out.put_u8(command);
    out.put_len8(PAGE_BYTES);
    out.put_len16(len);
    for page in pages.iter().take(MAX_PAGES) {
        out.put_slice(&[page.fc4_type, page.type_extension, page.flags, 0]);
        out.put_u32(page.originator_pa);
        out.put_u32(page.responder_pa);
        out.put_u32(page.parameters);
    }
}

/// Response codes of an accept (FC-LS, PRLI accept).
pub mod response {
    use crate::codes::code_constants;

    code_constants!(u8 {
        EXECUTED = 1, "request executed";
        NO_RESOURCES = 2, "no resources";
        INITIALISING = 3, "initialisation not complete";
        UNKNOWN_PA = 4, "unknown process associator";
        PRECLUDED = 5, "configuration precludes the request";
        CONDITIONAL = 6, "executed conditionally";
        MULTIPLE_PAGES = 7, "multiple pages not handled";
        INVALID_PAGE = 8, "invalid page";
    });
}
