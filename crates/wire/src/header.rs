//! The 24-byte frame header (FC-FS, frame header).

use crate::id::FcId;
use std::fmt;

/// Routing control: high nibble routing, low nibble information category.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RCtl(pub u8);

#[allow(missing_docs)] // the names are the standard's own
impl RCtl {
    pub const SOLICITED_DATA: RCtl = RCtl(0x01);
    pub const UNSOLICITED_CONTROL: RCtl = RCtl(0x02);
    pub const SOLICITED_CONTROL: RCtl = RCtl(0x03);
    pub const DATA_DESCRIPTOR: RCtl = RCtl(0x05);
    pub const UNSOLICITED_COMMAND: RCtl = RCtl(0x06);
    pub const COMMAND_STATUS: RCtl = RCtl(0x07);
    pub const ELS_REQUEST: RCtl = RCtl(0x22);
    pub const ELS_REPLY: RCtl = RCtl(0x23);
    pub const BLS_NOP: RCtl = RCtl(0x80);
    pub const BLS_ABTS: RCtl = RCtl(0x81);
    pub const BLS_BA_ACC: RCtl = RCtl(0x84);
    pub const BLS_BA_RJT: RCtl = RCtl(0x85);
    pub const ACK_1: RCtl = RCtl(0xc0);
    pub const ACK_0: RCtl = RCtl(0xc1);
    pub const P_RJT: RCtl = RCtl(0xc2);
    pub const F_RJT: RCtl = RCtl(0xc3);
    pub const P_BSY: RCtl = RCtl(0xc4);
    pub const F_BSY_DATA: RCtl = RCtl(0xc5);
    pub const F_BSY_LINK: RCtl = RCtl(0xc6);
}

/// Data structure type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FcType(pub u8);

#[allow(missing_docs)] // the names are the standard's own
impl FcType {
    pub const BLS: FcType = FcType(0x00);
    pub const ELS: FcType = FcType(0x01);
    pub const FCP: FcType = FcType(0x08);
    pub const CT: FcType = FcType(0x20);
    pub const SW_ILS: FcType = FcType(0x22);
    pub const NVME: FcType = FcType(0x28);
}

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
    /// Sequence initiative goes to the other side.
    pub const TRANSFER_INITIATIVE: u32 = 1 << 16;
    /// The parameter field is a relative offset.
    pub const RELATIVE_OFFSET: u32 = 1 << 3;

    /// A single-frame request that hands over the initiative.
    pub const REQUEST: FCtl = FCtl::new(0x29_0000);
    /// A single-frame reply that ends the exchange.
    pub const REPLY: FCtl = FCtl::new(0x99_0000);

    /// The low 24 bits of `bits`.
    pub const fn new(bits: u32) -> FCtl {
        FCtl([(bits >> 16) as u8, (bits >> 8) as u8, bits as u8])
    }
    /// As a number.
    pub const fn bits(self) -> u32 {
        (self.0[0] as u32) << 16 | (self.0[1] as u32) << 8 | self.0[2] as u32
    }
    /// All bits of `mask` are set.
    pub const fn has(self, mask: u32) -> bool {
        self.bits() & mask == mask
    }
    /// Bytes of fill at the end of the data field, 0 to 3.
    pub const fn fill_bytes(self) -> usize {
        (self.0[2] & 3) as usize
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
    /// Routing control.
    pub r_ctl: RCtl,
    /// Destination.
    pub d_id: FcId,
    /// Class-specific control, or the priority.
    pub cs_ctl: u8,
    /// Source.
    pub s_id: FcId,
    /// Type of the data structure.
    pub fc_type: FcType,
    /// Frame control.
    pub f_ctl: FCtl,
    /// Sequence within the exchange.
    pub seq_id: u8,
    /// Optional headers present.
    pub df_ctl: u8,
    /// Frame within the sequence.
    pub seq_cnt: u16,
    /// Exchange number given by the originator.
    pub ox_id: u16,
    /// Exchange number given by the responder; FFFF: not assigned.
    pub rx_id: u16,
    /// Relative offset in bytes when [`FCtl::RELATIVE_OFFSET`] is set.
    pub parameter: u32,
}

/// RX_ID before the responder has chosen one.
pub const RX_ID_UNASSIGNED: u16 = 0xffff;
/// Bytes of a frame header.
pub const HEADER_BYTES: usize = 24;
const _: () = assert!(size_of::<Header>() == HEADER_BYTES);
/// Largest data field of a frame, in bytes.
pub const MAX_DATA_FIELD_BYTES: usize = 2112;
