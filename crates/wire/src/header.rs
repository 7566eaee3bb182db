//! The 24-byte frame header (FC-FS, frame header).

use crate::bytes::{fixed, id_at, u16_at, u32_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::id::FcId;
use std::fmt;

/// Routing control: high nibble routing, low nibble information category.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RCtl(pub u8);

codes!(RCtl, u8, "R_CTL" {
    UNCATEGORIZED = 0x00, "FC-4 uncategorized";
    SOLICITED_DATA = 0x01, "solicited data";
    UNSOLICITED_CONTROL = 0x02, "unsolicited control";
    SOLICITED_CONTROL = 0x03, "solicited control";
    UNSOLICITED_DATA = 0x04, "unsolicited data";
    DATA_DESCRIPTOR = 0x05, "data descriptor";
    UNSOLICITED_COMMAND = 0x06, "unsolicited command";
    COMMAND_STATUS = 0x07, "command status";
    ELS_REQUEST = 0x22, "ELS request";
    ELS_REPLY = 0x23, "ELS reply";
    FC4_LS_REQUEST = 0x32, "FC-4 link service request";
    FC4_LS_REPLY = 0x33, "FC-4 link service reply";
    VFT = 0x50, "VFT header";
    INTER_FABRIC = 0x51, "inter-fabric routing header";
    ENCAPSULATION = 0x52, "encapsulation header";
    BLS_NOP = 0x80, "NOP";
    BLS_ABTS = 0x81, "ABTS";
    BLS_RMC = 0x82, "RMC";
    BLS_BA_ACC = 0x84, "BA_ACC";
    BLS_BA_RJT = 0x85, "BA_RJT";
    BLS_PRMT = 0x86, "PRMT";
    ACK_1 = 0xc0, "ACK_1";
    ACK_0 = 0xc1, "ACK_0";
    P_RJT = 0xc2, "P_RJT";
    F_RJT = 0xc3, "F_RJT";
    P_BSY = 0xc4, "P_BSY";
    F_BSY_DATA = 0xc5, "F_BSY of a data frame";
    F_BSY_LINK = 0xc6, "F_BSY of a link control frame";
    LCR = 0xc7, "LCR";
    NTY = 0xc8, "NTY";
    END = 0xc9, "END";
});

impl RCtl {
    /// True for ACK, reject, busy and other link control frames (C0 to CF), which have no data
    /// field, and whose TYPE names no protocol.
    pub const fn is_link_control(self) -> bool {
        self.0 >> 4 == 0xc
    }
}

/// TYPE: protocol of the payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FcType(pub u8);

codes!(FcType, u8, "TYPE" {
    BLS = 0x00, "BLS";
    ELS = 0x01, "ELS";
    LLC_SNAP = 0x04, "LLC/SNAP";
    IP = 0x05, "IP";
    FCP = 0x08, "FCP";
    SB_CHANNEL = 0x1b, "SB channel";
    SB_CONTROL_UNIT = 0x1c, "SB control unit";
    CT = 0x20, "FC-CT";
    SW_ILS = 0x22, "SW_ILS";
    AL = 0x23, "AL";
    SNMP = 0x24, "SNMP";
    NVME = 0x28, "NVMe";
});

/// Frame control, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FCtl(pub [u8; 3]);

impl FCtl {
    /// Sent by the exchange responder.
    pub const EXCHANGE_RESPONDER: u32 = 1 << 23;
    /// Sent by the sequence recipient.
    pub const SEQUENCE_RECIPIENT: u32 = 1 << 22;
    /// First sequence of the exchange.
    pub const FIRST_SEQUENCE: u32 = 1 << 21;
    /// Last sequence of the exchange.
    pub const LAST_SEQUENCE: u32 = 1 << 20;
    /// Last frame of the sequence.
    pub const END_SEQUENCE: u32 = 1 << 19;
    /// The sequence initiative passes to the other side.
    pub const TRANSFER_INITIATIVE: u32 = 1 << 16;
    /// The parameter field is a relative offset.
    pub const RELATIVE_OFFSET: u32 = 1 << 3;

    /// A single-frame request that hands over the initiative.
    pub const REQUEST: FCtl = FCtl::new(0x29_0000);
    /// A single-frame reply that ends the exchange.
    pub const REPLY: FCtl = FCtl::new(0x99_0000);
    /// FCP_DATA of a read, not the last frame of its sequence; the parameter is the relative
    /// offset.
    pub const READ_DATA: FCtl = FCtl::new(0x80_0008);
    /// FCP_DATA of a read, last frame of its sequence.
    pub const READ_DATA_END: FCtl = FCtl::new(0x88_0008);
    /// FCP_DATA of a write, not the last frame of its sequence.
    pub const WRITE_DATA: FCtl = FCtl::new(0x00_0008);
    /// FCP_DATA of a write, last frame of its sequence; the initiative passes back to the target.
    pub const WRITE_DATA_END: FCtl = FCtl::new(0x09_0008);

    /// The low 24 bits of `bits`.
    pub const fn new(bits: u32) -> FCtl {
        let [_, first, second, third] = bits.to_be_bytes();
        FCtl([first, second, third])
    }
    /// The 24 bits as a number.
    pub const fn bits(self) -> u32 {
        (self.0[0] as u32) << 16 | (self.0[1] as u32) << 8 | self.0[2] as u32
    }
    /// All bits of `mask` are set.
    pub const fn has(self, mask: u32) -> bool {
        self.bits() & mask == mask
    }
    /// Number of fill bytes at the end of the data field, 0 to 3.
    pub const fn fill_bytes(self) -> usize {
        (self.0[2] & 3) as usize
    }
    /// Returns F_CTL with the fill count that makes a data field of `payload_bytes` end on a word
    /// boundary.
    pub const fn with_fill_for(self, payload_bytes: usize) -> FCtl {
        let fill = match payload_bytes % 4 {
            0 => 0,
            1 => 3,
            2 => 2,
            _ => 1,
        };
        FCtl([self.0[0], self.0[1], self.0[2] & !3 | fill])
    }
}

impl fmt::Debug for FCtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FCtl({:06x})", self.bits())
    }
}

/// The frame header, 24 bytes, in the order of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// R_CTL: routing control.
    pub r_ctl: RCtl,
    /// D_ID: destination address.
    pub d_id: FcId,
    /// Class-specific control, or the priority.
    pub cs_ctl: u8,
    /// S_ID: source address.
    pub s_id: FcId,
    /// Type of the data structure.
    pub fc_type: FcType,
    /// F_CTL: frame control.
    pub f_ctl: FCtl,
    /// SEQ_ID: identifier of the sequence within the exchange.
    pub seq_id: u8,
    /// DF_CTL: flags of the optional headers that are present.
    pub df_ctl: u8,
    /// SEQ_CNT: number of the frame within the sequence.
    pub seq_cnt: u16,
    /// Exchange identifier assigned by the originator.
    pub ox_id: u16,
    /// Exchange identifier assigned by the responder; FFFF: not assigned.
    pub rx_id: u16,
    /// Relative offset in bytes, if [`FCtl::RELATIVE_OFFSET`] is set.
    pub parameter: u32,
}

impl Header {
    /// Reads the first 24 bytes of a frame. Only a shorter input fails, because every bit pattern
    /// is a valid header.
    pub fn parse(bytes: &[u8]) -> Result<Header, ParseError> {
        let b = fixed::<HEADER_BYTES>("frame header", bytes)?;
        Ok(Header {
            r_ctl: RCtl(b[0]),
            d_id: id_at(b, 1),
            cs_ctl: b[4],
            s_id: id_at(b, 5),
            fc_type: FcType(b[8]),
            f_ctl: FCtl([b[9], b[10], b[11]]),
            seq_id: b[12],
            df_ctl: b[13],
            seq_cnt: u16_at(b, 14),
            ox_id: u16_at(b, 16),
            rx_id: u16_at(b, 18),
            parameter: u32_at(b, 20),
        })
    }

    /// Writes all 24 bytes.
    pub fn emit(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0] = self.r_ctl.0;
        out[1..4].copy_from_slice(&self.d_id.to_bytes());
        out[4] = self.cs_ctl;
        out[5..8].copy_from_slice(&self.s_id.to_bytes());
        out[8] = self.fc_type.0;
        out[9..12].copy_from_slice(&self.f_ctl.0);
        out[12] = self.seq_id;
        out[13] = self.df_ctl;
        out[14..16].copy_from_slice(&self.seq_cnt.to_be_bytes());
        out[16..18].copy_from_slice(&self.ox_id.to_be_bytes());
        out[18..20].copy_from_slice(&self.rx_id.to_be_bytes());
        out[20..24].copy_from_slice(&self.parameter.to_be_bytes());
    }

    /// The 24 bytes of the wire.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        self.emit(&mut out);
        out
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} -> {} {} / {}, ox_id {:04x} rx_id {:04x}, f_ctl {:06x}, seq_id {:02x} seq_cnt {}, parameter {:08x}",
            self.s_id,
            self.d_id,
            self.r_ctl,
            self.fc_type,
            self.ox_id,
            self.rx_id,
            self.f_ctl.bits(),
            self.seq_id,
            self.seq_cnt,
            self.parameter
        )
    }
}

/// RX_ID before the responder has chosen one.
pub const RX_ID_UNASSIGNED: u16 = 0xffff;
/// Length of a frame header, in bytes.
pub const HEADER_BYTES: usize = 24;
const _: () = assert!(size_of::<Header>() == HEADER_BYTES);
/// Largest data field of a frame, in bytes.
pub const MAX_DATA_FIELD_BYTES: usize = 2112;
