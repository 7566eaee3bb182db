//! Fields of requests between switches only: [`ZoneName`], [`FeatureMap`].

use crate::bytes::Put;
use crate::error::ParseError;
use crate::field::{Cursor, Field};
use crate::zone_name;

/// FC-4 features, one nibble per type.
pub type FeatureMap = Box<[u8; 128]>;

impl Field for FeatureMap {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        from.array().map(Box::new)
    }
    fn write(&self, out: &mut dyn Put) {
        out.put_slice(&self[..]);
    }
}

/// Name of a zone: a length byte, three reserved bytes, and the text, padded to whole words.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ZoneName(pub Box<[u8]>);

impl Field for ZoneName {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let [len, ..] = from.array::<4>()?;
        let name = from.take(len.into())?.into();
        from.take(usize::from(len).wrapping_neg() & 3)?;
        Ok(ZoneName(name))
    }
    fn write(&self, out: &mut dyn Put) {
        zone_name::emit(&self.0, out);
    }
}
