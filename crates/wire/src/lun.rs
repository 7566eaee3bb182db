//! Single-level logical unit numbers (SAM, LUN structure): conversion between the eight bytes and
//! the usual number.

/// The eight LUN bytes of SAM.
pub type LunBytes = [u8; 8];

/// Largest LUN in peripheral device addressing.
const MAX_PERIPHERAL: u16 = 0xff;
/// Largest LUN in flat space addressing.
pub const MAX_LUN: u16 = 0x3fff;
/// Address method in the top two bits: flat space.
const FLAT: u16 = 0x4000;

/// Encodes a LUN: peripheral device addressing up to 255, as Linux does, and flat space addressing
/// above. Returns `None` beyond [`MAX_LUN`].
pub const fn to_bytes(lun: u16) -> Option<LunBytes> {
    let word = match lun {
        0..=MAX_PERIPHERAL => lun,
        0x100..=MAX_LUN => FLAT | lun,
        _ => return None,
    };
    let [high, low] = word.to_be_bytes();
    Some([high, low, 0, 0, 0, 0, 0, 0])
}

/// Decodes a LUN. Returns `None` unless the bytes are a single level in one of the two methods.
pub const fn from_bytes(bytes: LunBytes) -> Option<u16> {
    let [high, low, 0, 0, 0, 0, 0, 0] = bytes else {
        return None;
    };
    let word = u16::from_be_bytes([high, low]);
    match word {
        0..=MAX_PERIPHERAL => Some(word),
        FLAT..=0x7fff => Some(word & MAX_LUN),
        _ => None,
    }
}

/// The eight bytes as one number, for tables ordered by LUN.
pub const fn to_u64(bytes: LunBytes) -> u64 {
    u64::from_be_bytes(bytes)
}

/// Inverse of [`to_u64`].
pub const fn from_u64(value: u64) -> LunBytes {
    value.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_bytes_that_lead_back_to_it() {
        for lun in 0..=MAX_LUN {
            assert_eq!(to_bytes(lun).and_then(from_bytes), Some(lun));
        }
        assert_eq!(to_bytes(MAX_LUN + 1), None);
    }

    #[test]
    fn small_numbers_use_peripheral_addressing_and_large_ones_flat_space() {
        assert_eq!(to_bytes(5), Some([0, 5, 0, 0, 0, 0, 0, 0]));
        assert_eq!(to_bytes(0x1234), Some([0x52, 0x34, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn other_addressing_methods_and_levels_have_no_number() {
        assert_eq!(from_bytes([0x80, 1, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(from_bytes([0x01, 1, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(from_bytes([0, 1, 0, 1, 0, 0, 0, 0]), None);
        assert_eq!(from_bytes([0x40, 5, 0, 0, 0, 0, 0, 0]), Some(5));
        assert_eq!(from_u64(to_u64([1, 2, 3, 4, 5, 6, 7, 8])), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
