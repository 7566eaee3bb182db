//! Name server requests and accepts (FC-GS, name server).

mod accept;
pub mod command;
mod entry;
mod object;
mod record;
mod request;
mod switch_field;

pub use accept::NsAccept;
pub use entry::{Entries, Entry, EntryFc4};
pub use object::NsObject;
pub use record::{NsExtra, NsRare, NsRecord};
pub use request::NsRequest;
pub use switch_field::{FeatureMap, ZoneName};

use crate::bytes::{Put, slice, u32_at};
use crate::error::ParseError;

/// FC-4 TYPE bitmap, 256 bits; word = type / 32, bit = type % 32.
pub type Fc4Types = [u32; 8];
/// An IPv6 address, or an IPv4 address in the last four bytes; all zero if none is registered.
pub type IpAddress = [u8; 16];
/// Initial process associator of a node; all zero if none is registered.
pub type ProcessAssociator = [u8; 8];
/// FC-4 descriptors by type, sorted by type, each at most 255 bytes.
pub type Fc4Descriptors = Vec<(u8, Box<[u8]>)>;

/// Length of a TYPE bitmap, in bytes.
const TYPES_BYTES: usize = 32;
/// Longest symbolic name, in bytes, because its length field is one byte.
pub const MAX_SYMBOLIC_NAME_BYTES: usize = 255;

/// Bitmap with a single type.
pub const fn one_type(fc4_type: u8) -> Fc4Types {
    let mut types = [0; 8];
    types[fc4_type as usize / 32] = 1 << (fc4_type % 32);
    types
}

/// True if the bitmap contains the type.
pub const fn has_type(types: &Fc4Types, fc4_type: u8) -> bool {
    types[fc4_type as usize / 32] >> (fc4_type % 32) & 1 != 0
}

/// Feature nibble of a type in the 128 bytes of [`NsAccept::Features`].
pub const fn feature(features: &[u8; 128], fc4_type: u8) -> u8 {
    features[feature_byte(fc4_type)] >> (4 * (fc4_type & 1)) & 0x0f
}

/// Sets the feature nibble of a type to the low four bits of `bits`.
pub const fn set_feature(features: &mut [u8; 128], fc4_type: u8, bits: u8) {
    let shift = 4 * (fc4_type & 1);
    let byte = &mut features[feature_byte(fc4_type)];
    *byte = *byte & !(0x0f << shift) | (bits & 0x0f) << shift;
}

/// Eight types share a big-endian word. The lowest type has the lowest nibble.
const fn feature_byte(fc4_type: u8) -> usize {
    let (word, nibble) = (fc4_type as usize / 8, fc4_type as usize % 8);
    4 * word + 3 - nibble / 2
}

pub(crate) fn types_at(data: &[u8], at: usize) -> Fc4Types {
    std::array::from_fn(|word| u32_at(data, at + 4 * word))
}

/// The part of a symbolic name that fits the length byte.
pub(crate) fn clip(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_SYMBOLIC_NAME_BYTES)]
}

pub(crate) fn emit_symbolic_name(name: &[u8], out: &mut dyn Put) {
    let name = clip(name);
    out.put_len8(name.len());
    out.put_slice(name);
}

/// Reads a length byte at offset `at` and the text after it.
fn parse_symbolic_name(data: &[u8], at: usize) -> Result<Box<[u8]>, ParseError> {
    let len = slice("symbolic name length", data, at, 1)?[0];
    Ok(slice("symbolic name", data, at + 1, len.into())?.into())
}

/// FC-4 feature bits of FCP, one nibble.
pub mod fcp_feature {
    /// The port is a target.
    pub const TARGET: u8 = 0x01;
    /// The port is an initiator.
    pub const INITIATOR: u8 = 0x02;
}

/// Port types.
pub mod port_type {
    use crate::codes::code_constants;

    code_constants!(u8 {
        UNKNOWN = 0x00, "unknown port type";
        N_PORT = 0x01, "N_Port";
        NL_PORT = 0x02, "NL_Port";
        F_NL_PORT = 0x03, "F/NL_Port";
        NX_PORT = 0x7f, "Nx_Port";
        F_PORT = 0x81, "F_Port";
        FL_PORT = 0x82, "FL_Port";
        E_PORT = 0x84, "E_Port";
        B_PORT = 0x85, "B_Port";
    });
}

/// Reject explanations of the name server.
pub mod explanation {
    use crate::codes::code_constants;

    code_constants!(u8 {
        NONE = 0x00, "no additional explanation";
        PORT_ID_NOT_REGISTERED = 0x01, "port identifier not registered";
        PORT_NAME_NOT_REGISTERED = 0x02, "port name not registered";
        NODE_NAME_NOT_REGISTERED = 0x03, "node name not registered";
        CLASS_NOT_REGISTERED = 0x04, "class of service not registered";
        NODE_IP_NOT_REGISTERED = 0x05, "node IP address not registered";
        IPA_NOT_REGISTERED = 0x06, "initial process associator not registered";
        FC4_TYPES_NOT_REGISTERED = 0x07, "FC-4 types not registered";
        SYMBOLIC_PORT_NAME_NOT_REGISTERED = 0x08, "symbolic port name not registered";
        SYMBOLIC_NODE_NAME_NOT_REGISTERED = 0x09, "symbolic node name not registered";
        PORT_TYPE_NOT_REGISTERED = 0x0a, "port type not registered";
        PORT_IP_NOT_REGISTERED = 0x0b, "port IP address not registered";
        FABRIC_PORT_NAME_NOT_REGISTERED = 0x0c, "fabric port name not registered";
        HARD_ADDRESS_NOT_REGISTERED = 0x0d, "hard address not registered";
        FC4_DESCRIPTORS_NOT_REGISTERED = 0x0e, "FC-4 descriptors not registered";
        FC4_FEATURES_NOT_REGISTERED = 0x0f, "FC-4 features not registered";
        ACCESS_DENIED = 0x10, "access denied";
        UNACCEPTABLE_PORT_ID = 0x11, "unacceptable port identifier";
        DATABASE_EMPTY = 0x12, "database empty";
        NO_OBJECT_IN_SCOPE = 0x13, "no object registered in the scope";
        APPLICATION_ID_NOT_AVAILABLE = 0x40, "application identifier not available";
        AUTHORIZATION = 0xf0, "authorization exception";
        AUTHENTICATION = 0xf1, "authentication exception";
        DATABASE_FULL = 0xf2, "database full";
        NO_DATABASE = 0xf3, "database is empty";
    });
}
