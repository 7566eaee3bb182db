//! Addresses and names: [`FcId`], [`Wwpn`], [`Wwnn`].

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A 24-bit address identifier, domain / area / port (FC-FS, address identifiers).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FcId([u8; 3]);

impl PartialOrd for FcId {
    #[inline]
    fn partial_cmp(&self, other: &FcId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares as numbers. Name servers search their tables by address often, and a comparison of byte
/// arrays compiles to a function call.
impl Ord for FcId {
    #[inline]
    fn cmp(&self, other: &FcId) -> Ordering {
        self.to_u32().cmp(&other.to_u32())
    }
}

impl FcId {
    /// Address that is not yet assigned (S_ID of a FLOGI).
    pub const ZERO: FcId = FcId([0, 0, 0]);
    /// FFFFFE: fabric login server (F_Port controller).
    pub const F_PORT: FcId = FcId([0xff, 0xff, 0xfe]);
    /// FFFFFD: fabric controller.
    pub const FABRIC_CONTROLLER: FcId = FcId([0xff, 0xff, 0xfd]);
    /// FFFFFC: directory (name) server.
    pub const NAME_SERVER: FcId = FcId([0xff, 0xff, 0xfc]);
    /// FFFFFA: management server.
    pub const MANAGEMENT_SERVER: FcId = FcId([0xff, 0xff, 0xfa]);
    /// FFFFFF: broadcast.
    pub const BROADCAST: FcId = FcId([0xff, 0xff, 0xff]);

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> FcId {
        let [_, domain, area, port] = value.to_be_bytes();
        FcId([domain, area, port])
    }
    /// Address from domain, area and port.
    pub const fn from_parts(domain: u8, area: u8, port: u8) -> FcId {
        FcId([domain, area, port])
    }
    /// The address as a number below 2^24.
    pub const fn to_u32(self) -> u32 {
        (self.0[0] as u32) << 16 | (self.0[1] as u32) << 8 | self.0[2] as u32
    }
    /// The three bytes in wire order.
    pub const fn to_bytes(self) -> [u8; 3] {
        self.0
    }
    /// Address from three bytes in wire order.
    pub const fn from_bytes(bytes: [u8; 3]) -> FcId {
        FcId(bytes)
    }
    /// The domain that owns the address.
    pub const fn domain(self) -> u8 {
        self.0[0]
    }
    /// The area within the domain.
    pub const fn area(self) -> u8 {
        self.0[1]
    }
    /// The port within the area.
    pub const fn port(self) -> u8 {
        self.0[2]
    }
    /// FFFCdd: address of the domain controller of domain dd.
    pub const fn domain_controller(domain: u8) -> FcId {
        FcId::from_parts(0xff, 0xfc, domain)
    }
    /// True for the addresses FFFCdd of domain controllers.
    pub const fn is_domain_controller(self) -> bool {
        self.0[0] == 0xff && self.0[1] == 0xfc
    }
    /// True for the addresses of services: FFFFF0 to FFFFFF and the domain controllers FFFCdd. No
    /// N_Port has such an address.
    pub const fn is_well_known(self) -> bool {
        self.is_domain_controller() || (self.0[0] == 0xff && self.0[1] == 0xff && self.0[2] >= 0xf0)
    }
}

impl fmt::Display for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.to_u32())
    }
}

impl fmt::Debug for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FcId({self})")
    }
}

macro_rules! world_wide_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let b = self.0.to_be_bytes();
                write!(
                    f,
                    "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
                    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]
                )
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            /// Parses sixteen hex digits, with or without colons between the bytes.
            fn from_str(text: &str) -> Result<Self, BadName> {
                let digits: String = match text.len() {
                    16 => text.to_owned(),
                    23 if text.bytes().skip(2).step_by(3).all(|b| b == b':') => {
                        text.split(':').collect()
                    }
                    _ => return Err(BadName),
                };
                if digits.len() != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(BadName);
                }
                u64::from_str_radix(&digits, 16).map($name).map_err(|_| BadName)
            }
        }
    };
}

world_wide_name!(
    /// A port name (FC-FS, name identifiers).
    Wwpn
);
world_wide_name!(
    /// A node name (FC-FS, name identifiers).
    Wwnn
);

/// Parse error of a name: the text is not sixteen hex digits, with or without colons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a world-wide name is sixteen hex digits, such as 21:00:00:24:ff:00:00:01")]
pub struct BadName;
