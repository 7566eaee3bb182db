//! The fields that bodies of requests are made of: [`Field`], and [`Cursor`] that walks over them.

use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{
    Fc4Descriptors, Fc4Types, IpAddress, MAX_SYMBOLIC_NAME_BYTES, ProcessAssociator, clip, emit_symbolic_name,
    has_type, one_type, types_at,
};

/// Bytes being read.
pub(super) struct Cursor<'a> {
    /// What the bytes are, for errors.
    pub(super) structure: &'static str,
    pub(super) data: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], ParseError> {
        let taken = slice(self.structure, self.data, self.at, bytes)?;
        self.at += bytes;
        Ok(taken)
    }

    /// A field, behind `reserved` bytes without meaning.
    pub(super) fn field<F: Field>(&mut self, reserved: usize) -> Result<F, ParseError> {
        self.take(reserved)?;
        F::read(self)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let structure = self.structure;
        self.take(N).and_then(|bytes| fixed::<N>(structure, bytes)).copied()
    }
}

/// A field of a request.
pub(super) trait Field: Sized {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError>;
    fn write(&self, out: &mut Vec<u8>);
    fn encoded_len(&self) -> usize;
}

/// Fields of constant length: type, bytes, from bytes, to bytes.
macro_rules! plain {
    ($($type:ty, $len:literal, |$b:ident| $read:expr, |$value:ident, $out:ident| $write:expr;)*) => {$(
        impl Field for $type {
            fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
                let $b = &from.array::<$len>()?;
                Ok($read)
            }
            fn write(&self, $out: &mut Vec<u8>) {
                let $value = self;
                $write
            }
            fn encoded_len(&self) -> usize {
                $len
            }
        }
    )*};
}

plain! {
    FcId, 4, |b| id_at(b, 1), |id, out| out.put_word(0, *id);
    u8, 1, |b| b[0], |byte, out| out.put_u8(*byte);
    u32, 4, |b| u32_at(b, 0), |word, out| out.put_u32(*word);
    Wwpn, 8, |b| Wwpn(u64_at(b, 0)), |name, out| out.put_u64(name.0);
    Wwnn, 8, |b| Wwnn(u64_at(b, 0)), |name, out| out.put_u64(name.0);
    IpAddress, 16, |b| *b, |address, out| out.extend_from_slice(address);
    ProcessAssociator, 8, |b| *b, |associator, out| out.extend_from_slice(associator);
    Fc4Types, 32, |b| types_at(b, 0), |types, out| types.iter().for_each(|word| out.put_u32(*word));
}

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

/// A symbolic name: a length byte and the text.
impl Field for Box<[u8]> {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let [len] = from.array()?;
        Ok(from.take(len.into())?.into())
    }
    fn write(&self, out: &mut Vec<u8>) {
        emit_symbolic_name(self, out);
    }
    fn encoded_len(&self) -> usize {
        1 + clip(self).len()
    }
}

/// The bitmap of the types, then a descriptor for each of them.
impl Field for Fc4Descriptors {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let types: Fc4Types = from.field(0)?;
        let wanted = (0..=255).filter(|fc4_type| has_type(&types, *fc4_type));
        wanted.map(|fc4_type| Ok((fc4_type, read_descriptor(from.take(DESCRIPTOR_BYTES)?)?))).collect()
    }
    fn write(&self, out: &mut Vec<u8>) {
        let mut types = [0; 8];
        for (fc4_type, _) in self {
            types.iter_mut().zip(one_type(*fc4_type)).for_each(|(all, one)| *all |= one);
        }
        types.write(out);
        self.iter().for_each(|(_, descriptor)| write_descriptor(descriptor, out));
    }
    fn encoded_len(&self) -> usize {
        size_of::<Fc4Types>() + self.len() * DESCRIPTOR_BYTES
    }
}

/// Bytes of an FC-4 descriptor: its length, and room for the longest.
pub(super) const DESCRIPTOR_BYTES: usize = 1 + MAX_SYMBOLIC_NAME_BYTES;

/// Reads a descriptor of [`DESCRIPTOR_BYTES`].
pub(super) fn read_descriptor(data: &[u8]) -> Result<Box<[u8]>, ParseError> {
    let b = fixed::<DESCRIPTOR_BYTES>("FC-4 descriptor", data)?;
    Ok(b[1..=usize::from(b[0])].into())
}

/// Appends a descriptor, cut at 255 bytes.
pub(super) fn write_descriptor(descriptor: &[u8], out: &mut Vec<u8>) {
    emit_symbolic_name(descriptor, out);
    out.put_zeros(MAX_SYMBOLIC_NAME_BYTES - clip(descriptor).len());
}
