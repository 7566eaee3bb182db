//! TLVs of DCBX (IEEE 802.1Qaz, annex D): enhanced transmission selection, priority-based flow
//! control, application priorities.

use super::Tlv;
use crate::bytes::{Put, fixed, u16_at};
use crate::error::ParseError;
use crate::ether::EtherType;

/// OUI of IEEE 802.1, the organisation that defines these TLVs.
pub const OUI: [u8; 3] = [0x00, 0x80, 0xc2];

mod subtype {
    pub(super) const ETS_CONFIGURATION: u8 = 9;
    pub(super) const ETS_RECOMMENDATION: u8 = 10;
    pub(super) const PFC: u8 = 11;
    pub(super) const APPLICATION: u8 = 12;
}

/// Traffic class of each priority; four bits each on the wire.
pub type PriorityMap = [u8; 8];

/// Division of a link among traffic classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TrafficClasses {
    /// Traffic class of each priority, 0 to 15.
    pub classes: PriorityMap,
    /// ETS bandwidth of each class, in percent.
    pub bandwidth_percent: [u8; 8],
    /// Transmission selection algorithm of each class (see [`algorithm`]).
    pub algorithms: [u8; 8],
}

/// Algorithms of [`TrafficClasses::algorithms`].
pub mod algorithm {
    use crate::codes::code_constants;

    code_constants!(u8 {
        STRICT = 0, "strict priority";
        CREDIT_SHAPER = 1, "credit-based shaper";
        ETS = 2, "enhanced transmission selection";
        VENDOR = 255, "vendor specific";
    });
}

/// ETS configuration: the current settings of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EtsConfiguration {
    /// The sender accepts the recommendation of the other end.
    pub willing: bool,
    /// The sender supports the credit-based shaper.
    pub credit_shaper: bool,
    /// Number of traffic classes that the sender supports, three bits; 0 means 8.
    pub max_classes: u8,
    /// Current settings.
    pub traffic: TrafficClasses,
}

/// ETS recommendation: settings that the sender proposes to the other end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EtsRecommendation {
    /// Proposed settings.
    pub traffic: TrafficClasses,
}

/// Priority-based flow control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pfc {
    /// The sender accepts the configuration of the other end.
    pub willing: bool,
    /// MBC: the sender needs no additional buffer for MACsec.
    pub macsec_bypass: bool,
    /// Largest number of priorities that can be lossless at the same time, 0 to 15.
    pub max_priorities: u8,
    /// Bitmap of lossless priorities.
    pub priorities: u8,
}

/// Application priorities.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Application {
    /// Entries of the table; at most 168 are sent.
    pub entries: Vec<AppPriority>,
}

/// Priority of the frames of one application.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppPriority {
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Meaning of `protocol`, three bits (see [`selector`]).
    pub selector: u8,
    /// EtherType or port number, depending on `selector`.
    pub protocol: u16,
}

/// Selectors of [`AppPriority::selector`].
pub mod selector {
    use crate::codes::code_constants;

    code_constants!(u8 {
        ETHER_TYPE = 1, "EtherType";
        TCP_PORT = 2, "TCP or SCTP port";
        UDP_PORT = 3, "UDP or DCCP port";
        ANY_PORT = 4, "port of any of these";
        DSCP = 5, "differentiated services code point";
    });
}

impl AppPriority {
    /// Entry for all frames of an EtherType.
    pub const fn ether_type(ether_type: EtherType, priority: u8) -> AppPriority {
        AppPriority { priority, selector: selector::ETHER_TYPE, protocol: ether_type.0 }
    }
}

impl TrafficClasses {
    const BYTES: usize = 20;

    fn read(b: &[u8; TrafficClasses::BYTES]) -> TrafficClasses {
        TrafficClasses {
            classes: std::array::from_fn(|priority| match priority % 2 {
                0 => b[priority / 2] >> 4,
                _ => b[priority / 2] & 0x0f,
            }),
            bandwidth_percent: std::array::from_fn(|class| b[4 + class]),
            algorithms: std::array::from_fn(|class| b[12 + class]),
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        for pair in self.classes.chunks_exact(2) {
            out.put_u8(pair[0] << 4 | pair[1] & 0x0f);
        }
        out.extend_from_slice(&self.bandwidth_percent);
        out.extend_from_slice(&self.algorithms);
    }
}

const WILLING: u8 = 0x80;
const CREDIT_SHAPER: u8 = 0x40;
const MACSEC_BYPASS: u8 = 0x40;

impl EtsConfiguration {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        head(subtype::ETS_CONFIGURATION, out);
        let willing = if self.willing { WILLING } else { 0 };
        let shaper = if self.credit_shaper { CREDIT_SHAPER } else { 0 };
        out.put_u8(willing | shaper | self.max_classes & 7);
        self.traffic.emit(out);
    }
}

impl EtsRecommendation {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        head(subtype::ETS_RECOMMENDATION, out);
        out.put_u8(0);
        self.traffic.emit(out);
    }
}

impl Pfc {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        head(subtype::PFC, out);
        let willing = if self.willing { WILLING } else { 0 };
        let bypass = if self.macsec_bypass { MACSEC_BYPASS } else { 0 };
        out.put_u8(willing | bypass | self.max_priorities & 0x0f);
        out.put_u8(self.priorities);
    }
}

impl Application {
    /// Largest number of entries in a TLV.
    const MAX_ENTRIES: usize = (511 - 5) / 3;

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        head(subtype::APPLICATION, out);
        out.put_u8(0);
        for entry in self.entries.iter().take(Self::MAX_ENTRIES) {
            out.put_u8(entry.priority << 5 | entry.selector & 7);
            out.put_u16(entry.protocol);
        }
    }
}

fn head(subtype: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&OUI);
    out.put_u8(subtype);
}

/// Reads a DCBX TLV; `None` for any other TLV.
pub(super) fn read(oui: [u8; 3], subtype: u8, body: &[u8]) -> Result<Option<Tlv>, ParseError> {
    if oui != OUI {
        return Ok(None);
    }
    let traffic = |field| {
        let b = fixed::<{ 1 + TrafficClasses::BYTES }>(field, body)?;
        let (head, rest) = b.split_at(1);
        fixed(field, rest).map(|rest| (head[0], TrafficClasses::read(rest)))
    };
    Ok(Some(match subtype {
        subtype::ETS_CONFIGURATION => {
            let (head, traffic) = traffic("ETS configuration")?;
            Tlv::EtsConfiguration(EtsConfiguration {
                willing: head & WILLING != 0,
                credit_shaper: head & CREDIT_SHAPER != 0,
                max_classes: head & 7,
                traffic,
            })
        }
        subtype::ETS_RECOMMENDATION => {
            Tlv::EtsRecommendation(EtsRecommendation { traffic: traffic("ETS recommendation")?.1 })
        }
        subtype::PFC => {
            let [head, priorities] = *fixed::<2>("PFC", body)?;
            Tlv::Pfc(Pfc {
                willing: head & WILLING != 0,
                macsec_bypass: head & MACSEC_BYPASS != 0,
                max_priorities: head & 0x0f,
                priorities,
            })
        }
        subtype::APPLICATION => {
            let [_reserved] = *fixed::<1>("application priorities", body)?;
            let (entries, rest) = body[1..].as_chunks::<3>();
            if !rest.is_empty() {
                let rule = "1 byte and 3 bytes for each entry";
                return Err(ParseError::Length { field: "application priorities", got_bytes: body.len(), rule });
            }
            let entry = |b: &[u8; 3]| AppPriority { priority: b[0] >> 5, selector: b[0] & 7, protocol: u16_at(b, 1) };
            Tlv::Application(Application { entries: entries.iter().map(entry).collect() })
        }
        _ => return Ok(None),
    }))
}
