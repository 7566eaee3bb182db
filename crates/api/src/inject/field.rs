//! Fields of a frame that a rule can test: [`Field`], and the frame itself: [`Seen`].

use sanloom_wire::{FCtl, FcType, Header, RCtl, cdb, els, fcs, fdmi, fzs, ns, sw_ils};
use std::fmt;

/// Direction in which a frame passes a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Into the switch.
    In,
    /// Out of the switch.
    Out,
}

/// A frame that passes a port of a switch.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'f> {
    /// Direction of the frame.
    pub direction: Direction,
    /// Header of the frame.
    pub header: &'f Header,
    /// Data field of the frame; for a message of several frames, that of the first.
    pub payload: &'f [u8],
}

/// Declares [`Field`], the table of all fields, and the row of each field.
macro_rules! fields {
    ($($field:ident: $name:literal, $bits:literal, $description:literal;)+) => {
        /// A field that a rule can test.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Field {
            $(#[doc = $description] $field,)+
        }

        /// All fields with their names.
        pub(super) const FIELDS: [(Field, &str); [$($name,)+].len()] = [$((Field::$field, $name),)+];

        impl Field {
            /// Name, and width in bits.
            fn row(self) -> (&'static str, u8) {
                match self {
                    $(Field::$field => ($name, $bits),)+
                }
            }
        }
    };
}

fields! {
    SId: "s_id", 24, "address of the sender";
    DId: "d_id", 24, "address of the receiver";
    OxId: "ox_id", 16, "exchange identifier of the originator";
    RxId: "rx_id", 16, "exchange identifier of the responder";
    RCtl: "r_ctl", 8, "routing control";
    Type: "type", 8, "protocol";
    SeqId: "seq_id", 8, "number of the sequence";
    SeqCnt: "seq_cnt", 16, "number of the frame within its sequence";
    Parameter: "parameter", 32, "parameter or relative offset";
    Direction: "direction", 1, "in: into the switch; out: out of it";
    Length: "length", 16, "bytes of the data field";
    Els: "els", 8, "extended link service, request or reply";
    Ct: "ct", 16, "command of a common transport unit";
    SwIls: "sw_ils", 8, "link service between switches";
    Bls: "bls", 8, "basic link service";
    Fcp: "fcp", 8, "information unit of FCP";
    Scsi: "scsi", 8, "operation code of the command in an FCP_CMND";
    Lun: "lun", 16, "logical unit of an FCP_CMND";
}

const FCP_UNITS: [(&str, u8); 5] = [("CMND", 6), ("XFER_RDY", 5), ("DATA", 1), ("RSP", 7), ("CONF", 3)];

impl Field {
    pub(super) fn named(name: &str) -> Option<Field> {
        FIELDS.iter().find(|(_, known)| *known == name).map(|(field, _)| *field)
    }

    /// Largest value of the field.
    pub(super) fn max(self) -> u64 {
        (1 << self.row().1) - 1
    }

    /// True if values are written as six hexadecimal digits.
    pub(super) fn is_address(self) -> bool {
        matches!(self, Field::SId | Field::DId)
    }

    /// Value of a name. Only letters and digits are compared, without regard to case.
    pub(super) fn value_of(self, name: &str) -> Option<u64> {
        let plain = |text: &str| -> String {
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
        };
        let wanted = plain(name);
        let of_u8 = |name: fn(u8) -> Option<&'static str>| {
            (0..=u8::MAX).find(|code| name(*code).is_some_and(|name| plain(name) == wanted)).map(u64::from)
        };
        match self {
            Field::Els => of_u8(els::command::name),
            Field::SwIls => of_u8(sw_ils::command::name),
            Field::Scsi => of_u8(cdb::operation::name),
            Field::Bls => of_u8(|code| RCtl(code).name().filter(|_| (0x80..=0x8f).contains(&code))),
            Field::Ct => {
                let tables = [ns::command::name, fdmi::command::name, fcs::command::name, fzs::command::name];
                let has = |code: &u16| tables.iter().any(|name| name(*code).is_some_and(|name| plain(name) == wanted));
                (0..=u16::MAX).find(has).map(u64::from)
            }
            Field::Fcp => FCP_UNITS
                .iter()
                .find(|(name, _)| wanted.trim_start_matches("FCP") == plain(name))
                .map(|(_, r)| u64::from(*r)),
            Field::Direction => match &*wanted {
                "IN" => Some(0),
                "OUT" => Some(1),
                _ => None,
            },
            _ => None,
        }
    }

    /// Value of the field in a frame; `None` if the frame does not have the field.
    pub(super) fn of(self, seen: &Seen<'_>) -> Option<u64> {
        let Seen { direction, header, payload } = *seen;
        let byte = |at: usize| payload.get(at).copied().map(u64::from);
        let word = |at: usize| payload.get(at..at + 2).map(|b| u64::from(u16::from_be_bytes([b[0], b[1]])));
        let first = header.seq_cnt == 0;
        let protocol = |fc_type: FcType, r_ctls: &[RCtl]| {
            Some(()).filter(|()| first && header.fc_type == fc_type && r_ctls.contains(&header.r_ctl))
        };
        let control = [RCtl::UNSOLICITED_CONTROL, RCtl::SOLICITED_CONTROL];
        match self {
            Field::SId => Some(header.s_id.to_u32().into()),
            Field::DId => Some(header.d_id.to_u32().into()),
            Field::OxId => Some(header.ox_id.into()),
            Field::RxId => Some(header.rx_id.into()),
            Field::RCtl => Some(header.r_ctl.0.into()),
            Field::Type => Some(header.fc_type.0.into()),
            Field::SeqId => Some(header.seq_id.into()),
            Field::SeqCnt => Some(header.seq_cnt.into()),
            Field::Parameter => Some(header.parameter.into()),
            Field::Direction => Some(u64::from(direction == Direction::Out)),
            Field::Length => {
                let fill = if header.f_ctl.has(FCtl::END_SEQUENCE) { header.f_ctl.fill_bytes() } else { 0 };
                Some(payload.len().saturating_sub(fill) as u64)
            }
            Field::Els => protocol(FcType::ELS, &[RCtl::ELS_REQUEST, RCtl::ELS_REPLY]).and_then(|()| byte(0)),
            Field::Ct => protocol(FcType::CT, &control).and_then(|()| word(8)),
            Field::SwIls => protocol(FcType::SW_ILS, &control).and_then(|()| byte(0)),
            Field::Bls => Some(header.r_ctl.0)
                .filter(|r| (0x80..=0x8f).contains(r) && header.fc_type == FcType::BLS)
                .map(u64::from),
            Field::Fcp => Some(header.r_ctl.0).filter(|_| header.fc_type == FcType::FCP).map(u64::from),
            Field::Scsi => protocol(FcType::FCP, &[RCtl::UNSOLICITED_COMMAND]).and_then(|()| byte(12)),
            Field::Lun => {
                let lun = || payload.get(..8).and_then(|b| sanloom_wire::lun::from_bytes(b.try_into().ok()?));
                protocol(FcType::FCP, &[RCtl::UNSOLICITED_COMMAND]).and_then(|()| lun()).map(u64::from)
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().0)
    }
}
