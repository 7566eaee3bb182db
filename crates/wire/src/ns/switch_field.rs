//! Fields that only requests between switches have: [`ZoneName`], [`FeatureMap`].

use crate::bytes::Put;
use crate::error::ParseError;
use crate::field::{Cursor, Field};
use crate::ns::clip;

/// FC-4 features, one nibble for each type.
pub type FeatureMap = Box<[u8; 128]>;

impl Field for FeatureMap {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        from.array().map(Box::new)
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self[..]);
    }
    fn encoded_len(&self) -> usize {
        self.len()
    }
}

/// Name of a zone: a length byte, three reserved ones, and the text, filled up to whole words.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ZoneName(pub Box<[u8]>);

impl Field for ZoneName {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let [len, ..] = from.array::<4>()?;
        let name = from.take(len.into())?.into();
        from.take(usize::from(len).wrapping_neg() & 3)?;
        Ok(ZoneName(name))
    }
    fn write(&self, out: &mut Vec<u8>) {
        let name = clip(&self.0);
        out.extend_from_slice(&[name.len() as u8, 0, 0, 0]);
        out.extend_from_slice(name);
        out.put_zeros(name.len().wrapping_neg() & 3);
    }
    fn encoded_len(&self) -> usize {
        4 + clip(&self.0).len().next_multiple_of(4)
    }
}
