//! Arbitrated loop physical addresses (FC-AL-2, table of AL_PA values).

use std::fmt;

/// Arbitrated loop physical address of a participating port. A lower value has a higher priority
/// in arbitration; 00 belongs to the FL_Port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlPa(u8);

/// Number of addresses: one for the FL_Port and 126 for NL_Ports.
pub const AL_PA_COUNT: usize = 127;

/// All addresses in rising order: the bytes up to EF whose 8b/10b characters have as many ones as
/// zeros, so that they keep the running disparity.
const VALUES: [u8; AL_PA_COUNT] = [
    0x00, 0x01, 0x02, 0x04, 0x08, 0x0f, 0x10, 0x17, 0x18, 0x1b, 0x1d, 0x1e, 0x1f, 0x23, 0x25, 0x26, 0x27, 0x29, 0x2a,
    0x2b, 0x2c, 0x2d, 0x2e, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x39, 0x3a, 0x3c, 0x43, 0x45, 0x46, 0x47, 0x49, 0x4a,
    0x4b, 0x4c, 0x4d, 0x4e, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x59, 0x5a, 0x5c, 0x63, 0x65, 0x66, 0x67, 0x69, 0x6a,
    0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x79, 0x7a, 0x7c, 0x80, 0x81, 0x82, 0x84, 0x88, 0x8f,
    0x90, 0x97, 0x98, 0x9b, 0x9d, 0x9e, 0x9f, 0xa3, 0xa5, 0xa6, 0xa7, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xb1, 0xb2,
    0xb3, 0xb4, 0xb5, 0xb6, 0xb9, 0xba, 0xbc, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xd1, 0xd2,
    0xd3, 0xd4, 0xd5, 0xd6, 0xd9, 0xda, 0xdc, 0xe0, 0xe1, 0xe2, 0xe4, 0xe8, 0xef,
];

impl AlPa {
    /// Address of the FL_Port, with the highest priority.
    pub const FL_PORT: AlPa = AlPa(0);

    /// Address with the given value; `None` if it is not one of the 127 values.
    pub fn new(value: u8) -> Option<AlPa> {
        VALUES.binary_search(&value).is_ok().then_some(AlPa(value))
    }
    /// Value on the wire.
    pub const fn value(self) -> u8 {
        self.0
    }
    /// All 127 addresses, from the highest priority to the lowest.
    pub fn all() -> impl DoubleEndedIterator<Item = AlPa> + ExactSizeIterator {
        VALUES.into_iter().map(AlPa)
    }
    /// Rank in arbitration, 0 (FL_Port, first) to 126 (EF, last).
    pub fn priority(self) -> u8 {
        // The index is at most 126. Every value of this type is in the table.
        VALUES.binary_search(&self.0).map_or(0, |at| u8::try_from(at).unwrap_or(u8::MAX))
    }
    /// Address of the given rank; `None` above 126.
    pub fn from_priority(priority: u8) -> Option<AlPa> {
        VALUES.get(usize::from(priority)).map(|value| AlPa(*value))
    }
    /// Byte and mask of the address in the 16-byte map of [`AddressMap`]. The L_bit comes first, so
    /// AL_PA 00 has the second most significant bit of byte 0.
    pub fn map_bit(self) -> (usize, u8) {
        let bit = usize::from(self.priority()) + 1;
        (bit / 8, 0x80 >> (bit % 8))
    }
}

impl fmt::Display for AlPa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

impl fmt::Debug for AlPa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlPa({self})")
    }
}

/// Bit map of addresses in LIFA, LIPA, LIHA and LISA: the L_bit, then one bit for each address in
/// rising order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AddressMap(pub [u8; 16]);

impl AddressMap {
    /// Mask of the L_bit in byte 0. A set bit requires every port to log in with the fabric anew.
    const L_BIT: u8 = 0x80;

    /// True if the L_bit is set.
    pub const fn login_required(&self) -> bool {
        self.0[0] & Self::L_BIT != 0
    }
    /// Sets the L_bit.
    pub fn require_login(&mut self) {
        self.0[0] |= Self::L_BIT;
    }
    /// True if a port has taken the address.
    pub fn has(&self, address: AlPa) -> bool {
        let (byte, mask) = address.map_bit();
        self.0[byte] & mask != 0
    }
    /// Takes the address. Returns false if it was taken before.
    pub fn take(&mut self, address: AlPa) -> bool {
        let is_free = !self.has(address);
        let (byte, mask) = address.map_bit();
        self.0[byte] |= mask;
        is_free
    }
    /// Lowest free address above 00, which NL_Ports never take; `None` if all 126 are taken.
    pub fn lowest_free(&self) -> Option<AlPa> {
        AlPa::all().skip(1).find(|address| !self.has(*address))
    }
}
