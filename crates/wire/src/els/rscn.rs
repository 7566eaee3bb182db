//! RSCN (FC-LS, registered state change notification).

use crate::bytes::{Put, fixed, id_at, put_counted, slice, u16_at};
use crate::els::command;
use crate::error::ParseError;
use crate::id::FcId;
use std::fmt;

/// RSCN payload with at most 255 pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rscn {
    /// The affected addresses.
    pub pages: Vec<RscnPage>,
}

/// One page of an RSCN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RscnPage {
    /// Event qualifier, 0 to 15 (see [`qualifier`]); only the low four bits are sent.
    pub qualifier: u8,
    /// Significant part of the address.
    pub format: AddressFormat,
    /// The affected address; the parts below `format` are zero.
    pub address: FcId,
}

/// Scope of an RSCN page: how many ports its address covers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressFormat {
    /// One port.
    Port,
    /// An area.
    Area,
    /// A domain.
    Domain,
    /// The whole fabric.
    Fabric,
}

/// Length of the word before the pages, in bytes.
const HEAD_BYTES: usize = 4;
/// Length of a page, in bytes.
pub const PAGE_BYTES: usize = 4;
/// Largest number of pages of one RSCN, because the payload has at most 1024 bytes.
pub const MAX_PAGES: usize = 255;

impl Rscn {
    /// Reads the payload, the command word included.
    pub fn parse(payload: &[u8]) -> Result<Rscn, ParseError> {
        let head = fixed::<HEAD_BYTES>("RSCN", payload)?;
        if usize::from(head[1]) != PAGE_BYTES {
            return Err(ParseError::Length { field: "RSCN page", got_bytes: head[1].into(), rule: "4 bytes" });
        }
        let total = usize::from(u16_at(head, 2));
        if !(HEAD_BYTES..=HEAD_BYTES + PAGE_BYTES * MAX_PAGES).contains(&total) || !total.is_multiple_of(PAGE_BYTES) {
            return Err(ParseError::Length {
                field: "RSCN payload length",
                got_bytes: total,
                rule: "4 to 1024 bytes, a whole number of pages of 4",
            });
        }
        let pages = slice("RSCN pages", payload, HEAD_BYTES, total - HEAD_BYTES)?;
        Ok(Rscn { pages: pages.chunks_exact(PAGE_BYTES).map(RscnPage::read).collect() })
    }

    /// Appends the payload; pages beyond [`MAX_PAGES`] are left out.
    pub fn emit(&self, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(len, out));
    }

    fn put(&self, len: usize, out: &mut dyn Put) {
        out.put_u8(command::RSCN);
        out.put_len8(PAGE_BYTES);
        out.put_len16(len);
        for page in self.pages.iter().take(MAX_PAGES) {
            out.put_word((page.qualifier & 0x0f) << 2 | page.format.code(), page.address);
        }
    }
}

impl RscnPage {
    fn read(b: &[u8]) -> RscnPage {
        RscnPage { qualifier: b[0] >> 2 & 0x0f, format: AddressFormat::from_code(b[0]), address: id_at(b, 1) }
    }

    /// True if the page may affect the port with address `id`.
    pub fn covers(&self, id: FcId) -> bool {
        match self.format {
            AddressFormat::Port => id == self.address,
            AddressFormat::Area => id.domain() == self.address.domain() && id.area() == self.address.area(),
            AddressFormat::Domain => id.domain() == self.address.domain(),
            AddressFormat::Fabric => true,
        }
    }
}

impl AddressFormat {
    /// The two format bits on the wire.
    pub const fn code(self) -> u8 {
        match self {
            AddressFormat::Port => 0,
            AddressFormat::Area => 1,
            AddressFormat::Domain => 2,
            AddressFormat::Fabric => 3,
        }
    }

    /// Format from the low two bits of `code`.
    pub const fn from_code(code: u8) -> AddressFormat {
        match code & 3 {
            0 => AddressFormat::Port,
            1 => AddressFormat::Area,
            2 => AddressFormat::Domain,
            _ => AddressFormat::Fabric,
        }
    }
}

impl fmt::Display for AddressFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AddressFormat::Port => "port",
            AddressFormat::Area => "area",
            AddressFormat::Domain => "domain",
            AddressFormat::Fabric => "fabric",
        })
    }
}

/// Event qualifiers of an [`RscnPage`].
pub mod qualifier {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0, "event not specified";
        NAME_SERVER_OBJECT = 1, "changed name server object";
        PORT_ATTRIBUTE = 2, "changed port attribute";
        SERVICE_OBJECT = 3, "changed service object";
        SWITCH_CONFIGURATION = 4, "changed switch configuration";
        REMOVED_OBJECT = 5, "removed object";
    });
}
