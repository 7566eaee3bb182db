//! Sense data in the fixed format (SPC).

/// Sense key, additional sense code and its qualifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

/// Bytes of sense data in the fixed format.
pub const SENSE_BYTES: usize = 18;

#[allow(missing_docs)] // the names are the standard's own
impl Sense {
    pub const NONE: Sense = Sense::new(0x0, 0x00, 0x00);
    pub const WRITE_ERROR: Sense = Sense::new(0x3, 0x0c, 0x00);
    pub const UNRECOVERED_READ_ERROR: Sense = Sense::new(0x3, 0x11, 0x00);
    pub const INVALID_FIELD_IN_COMMAND_IU: Sense = Sense::new(0x5, 0x0e, 0x03);
    pub const INVALID_OPCODE: Sense = Sense::new(0x5, 0x20, 0x00);
    pub const LBA_OUT_OF_RANGE: Sense = Sense::new(0x5, 0x21, 0x00);
    pub const INVALID_FIELD_IN_CDB: Sense = Sense::new(0x5, 0x24, 0x00);
    pub const NO_SUCH_LUN: Sense = Sense::new(0x5, 0x25, 0x00);

    const fn new(key: u8, asc: u8, ascq: u8) -> Sense {
        Sense { key, asc, ascq }
    }

    /// As current error in the fixed format.
    pub const fn to_bytes(self) -> [u8; SENSE_BYTES] {
        let mut bytes = [0; SENSE_BYTES];
        bytes[0] = 0x70;
        bytes[2] = self.key;
        bytes[7] = SENSE_BYTES as u8 - 8;
        bytes[12] = self.asc;
        bytes[13] = self.ascq;
        bytes
    }
}
