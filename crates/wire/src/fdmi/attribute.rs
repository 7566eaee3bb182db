//! Attribute blocks of FDMI (FC-GS, HBA and port attributes).

use crate::bytes::{Put, put_counted};
use crate::error::ParseError;
use crate::field::{Cursor, Field};

/// The attributes of an HBA or of a port, in the order they were given.
pub type Attributes = Vec<Attribute>;

/// One attribute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attribute {
    /// Attribute type (see [`hba_attribute`] and [`port_attribute`]).
    pub attribute: u16,
    /// Value with its fill bytes, at most [`Attribute::MAX_BYTES`]. Texts end with a zero byte.
    pub value: Box<[u8]>,
}

/// Length of type and length field, in bytes. The length field includes it.
const HEAD_BYTES: usize = 4;

impl Attribute {
    /// Longest value, in bytes, because the 16-bit length includes its head.
    pub const MAX_BYTES: usize = u16::MAX as usize - HEAD_BYTES;

    /// Longest text with its zero byte, in bytes.
    const MAX_TEXT_BYTES: usize = 256;

    /// Returns an attribute with a text, which ends with a zero byte and is filled to whole words.
    /// A longer text is cut. `None` if the text is empty.
    pub fn of_text(attribute: u16, text: &str) -> Option<Attribute> {
        let mut end = text.len().min(Attribute::MAX_TEXT_BYTES - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut value = text.as_bytes()[..end].to_vec();
        value.resize((end + 1).next_multiple_of(4), 0);
        (end > 0).then(|| Attribute { attribute, value: value.into() })
    }

    /// Returns an attribute with a number.
    pub fn of_number(attribute: u16, number: u32) -> Attribute {
        Attribute { attribute, value: number.to_be_bytes().into() }
    }

    /// Returns an attribute with a world-wide name.
    pub fn of_name(attribute: u16, name: u64) -> Attribute {
        Attribute { attribute, value: name.to_be_bytes().into() }
    }

    /// Returns the value as a text up to its first zero byte, without blanks at its ends.
    pub fn text(&self) -> String {
        let end = self.value.iter().position(|byte| *byte == 0).unwrap_or(self.value.len());
        String::from_utf8_lossy(&self.value[..end]).trim().to_owned()
    }

    /// Returns the value as a number; `None` if it has another length than four bytes.
    pub fn number(&self) -> Option<u32> {
        Some(u32::from_be_bytes((*self.value).try_into().ok()?))
    }

    /// Returns the value as a world-wide name; `None` if it has another length than eight bytes.
    pub fn name(&self) -> Option<u64> {
        Some(u64::from_be_bytes((*self.value).try_into().ok()?))
    }

    fn put(&self, len: usize, out: &mut dyn Put) {
        out.put_u16(self.attribute);
        out.put_len16(len);
        out.put_slice(&self.value[..self.value.len().min(Attribute::MAX_BYTES)]);
    }
}

/// Returns the first attribute of a type.
pub fn find(attributes: &[Attribute], attribute: u16) -> Option<&Attribute> {
    attributes.iter().find(|own| own.attribute == attribute)
}

/// On the wire: the number of attributes, then type, length (head included) and value of each.
impl Field for Attributes {
    fn read(from: &mut Cursor<'_>) -> Result<Attributes, ParseError> {
        let count: u32 = from.field(0)?;
        let one = |_| {
            let head: u32 = from.field(0)?;
            let len = (head & 0xffff) as usize;
            match len.checked_sub(HEAD_BYTES) {
                Some(bytes) => Ok(Attribute { attribute: (head >> 16) as u16, value: from.take(bytes)?.into() }),
                None => Err(ParseError::Length { field: "FDMI attribute", got_bytes: len, rule: "at least 4 bytes" }),
            }
        };
        (0..count).map(one).collect()
    }

    fn write(&self, out: &mut dyn Put) {
        out.put_len32(self.len());
        for attribute in self {
            put_counted(out, |len, out| attribute.put(len, out));
        }
    }
}

/// Attributes of an HBA.
pub mod hba_attribute {
    use crate::codes::code_constants;

    code_constants!(u16 {
        NODE_NAME = 0x0001, "node name";
        MANUFACTURER = 0x0002, "manufacturer";
        SERIAL_NUMBER = 0x0003, "serial number";
        MODEL = 0x0004, "model";
        MODEL_DESCRIPTION = 0x0005, "model description";
        HARDWARE_VERSION = 0x0006, "hardware version";
        DRIVER_VERSION = 0x0007, "driver version";
        OPTION_ROM_VERSION = 0x0008, "option ROM version";
        FIRMWARE_VERSION = 0x0009, "firmware version";
        OS = 0x000a, "operating system";
        MAX_CT_PAYLOAD = 0x000b, "maximum CT payload";
        SYMBOLIC_NODE_NAME = 0x000c, "symbolic node name";
        VENDOR_INFORMATION = 0x000d, "vendor-specific information";
        PORTS = 0x000e, "number of ports";
        FABRIC_NAME = 0x000f, "fabric name";
        BOOT_BIOS_VERSION = 0x0010, "boot BIOS version";
        BOOT_BIOS_STATE = 0x0011, "boot BIOS state";
        VENDOR_ID = 0x00e0, "vendor identifier";
    });
}

/// Attributes of a port.
pub mod port_attribute {
    use crate::codes::code_constants;

    code_constants!(u16 {
        FC4_TYPES = 0x0001, "supported FC-4 types";
        SUPPORTED_SPEEDS = 0x0002, "supported speeds";
        SPEED = 0x0003, "current speed";
        MAX_FRAME_SIZE = 0x0004, "maximum frame size";
        OS_DEVICE_NAME = 0x0005, "operating system device name";
        HOST_NAME = 0x0006, "host name";
        NODE_NAME = 0x0007, "node name";
        PORT_NAME = 0x0008, "port name";
        SYMBOLIC_NAME = 0x0009, "symbolic port name";
        PORT_TYPE = 0x000a, "port type";
        CLASSES = 0x000b, "supported classes of service";
        FABRIC_NAME = 0x000c, "fabric name";
        ACTIVE_FC4_TYPES = 0x000d, "active FC-4 types";
        STATE = 0x0101, "port state";
        DISCOVERED_PORTS = 0x0102, "discovered ports";
        PORT_ID = 0x0103, "port identifier";
    });
}

/// Speeds of a port, one bit each (FC-GS, port speed codes).
pub mod port_speed {
    /// Names of the bits in ascending order of speed.
    const NAMES: [(u32, &str); 17] = [
        (0x0000_0001, "1G"),
        (0x0000_0002, "2G"),
        (0x0000_0008, "4G"),
        (0x0000_0010, "8G"),
        (0x0000_0004, "10G"),
        (0x0001_0000, "10GE"),
        (0x0000_0020, "16G"),
        (0x0000_0080, "20G"),
        (0x0008_0000, "25GE"),
        (0x0000_0040, "32G"),
        (0x0000_0100, "40G"),
        (0x0002_0000, "40GE"),
        (0x0010_0000, "50GE"),
        (0x0000_0400, "64G"),
        (0x0004_0000, "100GE"),
        (0x0000_0200, "128G"),
        (0x0000_0800, "256G"),
    ];

    /// Bits of the rates of Ethernet, in Mb/s. A rate without a bit of its own has that of the same
    /// rate of Fibre Channel.
    const ETHERNET: [(u32, u32); 6] = [
        (1_000, 0x0000_0001),
        (10_000, 0x0001_0000),
        (25_000, 0x0008_0000),
        (40_000, 0x0002_0000),
        (50_000, 0x0010_0000),
        (100_000, 0x0004_0000),
    ];

    /// Returns the bit of an Ethernet rate in Mb/s; 0 for a rate without one.
    pub fn of_ethernet(mbit_per_s: u32) -> u32 {
        ETHERNET.into_iter().find(|(rate, _)| *rate == mbit_per_s).map_or(0, |(_, bit)| bit)
    }

    /// Names of the speeds in a set.
    pub fn names(speeds: u32) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(bit, _)| speeds & bit != 0).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_ethernet_has_the_bit_of_its_name() {
        for (rate, name) in [(1_000, "1G"), (10_000, "10GE"), (25_000, "25GE"), (40_000, "40GE"), (100_000, "100GE")] {
            assert_eq!(port_speed::names(port_speed::of_ethernet(rate)).collect::<Vec<_>>(), [name]);
        }
        assert_eq!(port_speed::of_ethernet(10), 0);
    }

    #[test]
    fn values_of_attributes_are_read_as_they_were_written() {
        let long = "x".repeat(300);
        for (text, bytes, read) in [("abc", 4, "abc"), ("abcd", 8, "abcd"), (" e ", 4, "e"), (&long, 256, &long[..255])]
        {
            let attribute = Attribute::of_text(hba_attribute::MODEL, text).expect("a text");
            assert_eq!((attribute.value.len(), attribute.text().as_str()), (bytes, read));
        }
        assert_eq!(Attribute::of_text(hba_attribute::MODEL, ""), None);
        let number = Attribute::of_number(hba_attribute::PORTS, 0x0102_0304);
        assert_eq!((&*number.value, number.number(), number.name()), (&[1, 2, 3, 4][..], Some(0x0102_0304), None));
        let name = Attribute::of_name(hba_attribute::NODE_NAME, 0x1000_0000_c9aa_bb01);
        assert_eq!((name.name(), name.number()), (Some(0x1000_0000_c9aa_bb01), None));
        let both = [number, name.clone()];
        assert_eq!(find(&both, hba_attribute::NODE_NAME), Some(&name));
        assert_eq!(find(&both, hba_attribute::MODEL), None);
    }
}
