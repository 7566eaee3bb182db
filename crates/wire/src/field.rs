//! Fields of CT request bodies: [`Field`], the [`Cursor`] that reads them in order, and
//! [`requests!`], which defines the request type of a service from a table of fields.

use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{
    Fc4Descriptors, Fc4Types, IpAddress, MAX_SYMBOLIC_NAME_BYTES, ProcessAssociator, clip, emit_symbolic_name,
    has_type, one_type, types_at,
};

/// Defines the request type of a service from one table. A row has command, name and the fields of
/// the body in order. Numbers give the reserved bytes before a field and after the last one.
macro_rules! requests {
    (
        $(#[$type_doc:meta])*
        $type:ident of $service:literal
        $(
            $(#[$doc:meta])*
            $command:ident $name:ident { $($(+ $before:literal,)? $field:ident: $field_type:ty),* $(; + $behind:literal)? }
        )*
    ) => {
        $(#[$type_doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)] // each field is named after the object that the standard names
        pub enum $type {
            $($(#[$doc])* $name { $($field: $field_type),* },)*
        }

        impl $type {
            /// Reads the bytes after the CT preamble. An unknown command is
            /// [`ParseError::Unsupported`].
            pub fn parse(command: u16, body: &[u8]) -> Result<$type, ParseError> {
                let structure = command::name(command).unwrap_or(concat!($service, " request"));
                let mut from = Cursor { structure, data: body, at: 0 };
                let request = match command {
                    $(command::$command => {
                        let request = $type::$name { $($field: from.field(0 $(+ $before)?)?),* };
                        from.take(0 $(+ $behind)?)?;
                        request
                    })*
                    other => {
                        return Err(ParseError::Unsupported { field: concat!($service, " command"), got: other.into() });
                    }
                };
                Ok(request)
            }

            /// Appends the bytes after the CT preamble. Texts with a length byte are cut at 255
            /// bytes.
            pub fn emit(&self, out: &mut dyn $crate::Put) {
                match self {
                    $($type::$name { $($field),* } => {
                        $(
                            $(out.put_zeros($before);)?
                            $field.write(out);
                        )*
                        $(out.put_zeros($behind);)?
                    })*
                }
            }

            /// Number of bytes that [`emit`](Self::emit) appends.
            pub fn encoded_len(&self) -> usize {
                $crate::bytes::counted(|_, out| self.emit(out))
            }

            /// The command code (see [`command`]).
            pub const fn command(&self) -> u16 {
                match self {
                    $($type::$name { .. } => command::$command,)*
                }
            }
        }
    };
}

pub(crate) use requests;

/// Read position in the body of a request.
pub(crate) struct Cursor<'a> {
    /// Name of the structure, for error messages.
    pub(crate) structure: &'static str,
    pub(crate) data: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Result<&'a [u8], ParseError> {
        let taken = slice(self.structure, self.data, self.at, bytes)?;
        self.at += bytes;
        Ok(taken)
    }

    /// Skips `reserved` bytes and reads a field.
    pub(crate) fn field<F: Field>(&mut self, reserved: usize) -> Result<F, ParseError> {
        self.take(reserved)?;
        F::read(self)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let structure = self.structure;
        self.take(N).and_then(|bytes| fixed::<N>(structure, bytes)).copied()
    }
}

/// A field of a request.
pub(crate) trait Field: Sized {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError>;
    fn write(&self, out: &mut dyn Put);
}

/// Implements [`Field`] for types of constant length. Columns: type, length in bytes, reader,
/// writer.
macro_rules! plain {
    ($($type:ty, $len:literal, |$b:ident| $read:expr, |$value:ident, $out:ident| $write:expr;)*) => {$(
        impl Field for $type {
            fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
                let $b = &from.array::<$len>()?;
                Ok($read)
            }
            fn write(&self, $out: &mut dyn Put) {
                let $value = self;
                $write
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
    IpAddress, 16, |b| *b, |address, out| out.put_slice(address);
    ProcessAssociator, 8, |b| *b, |associator, out| out.put_slice(associator);
    Fc4Types, 32, |b| types_at(b, 0), |types, out| types.iter().for_each(|word| out.put_u32(*word));
}

/// Symbolic name: a length byte and the text.
impl Field for Box<[u8]> {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let [len] = from.array()?;
        Ok(from.take(len.into())?.into())
    }
    fn write(&self, out: &mut dyn Put) {
        emit_symbolic_name(self, out);
    }
}

/// List of names: a 32-bit count and the names.
impl Field for Vec<Wwpn> {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let count: u32 = from.field(0)?;
        (0..count).map(|_| from.field(0)).collect()
    }
    fn write(&self, out: &mut dyn Put) {
        out.put_len32(self.len());
        self.iter().for_each(|name| name.write(out));
    }
}

/// Bitmap of the FC-4 types, then one descriptor for each type.
impl Field for Fc4Descriptors {
    fn read(from: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let types: Fc4Types = from.field(0)?;
        let wanted = (0..=255).filter(|fc4_type| has_type(&types, *fc4_type));
        wanted.map(|fc4_type| Ok((fc4_type, read_descriptor(from.take(DESCRIPTOR_BYTES)?)?))).collect()
    }
    fn write(&self, out: &mut dyn Put) {
        let mut types = [0; 8];
        for (fc4_type, _) in self {
            types.iter_mut().zip(one_type(*fc4_type)).for_each(|(all, one)| *all |= one);
        }
        types.write(out);
        self.iter().for_each(|(_, descriptor)| write_descriptor(descriptor, out));
    }
}

/// Length of an FC-4 descriptor, in bytes: a length byte and space for the longest name.
pub(crate) const DESCRIPTOR_BYTES: usize = 1 + MAX_SYMBOLIC_NAME_BYTES;

/// Reads a descriptor of [`DESCRIPTOR_BYTES`].
pub(crate) fn read_descriptor(data: &[u8]) -> Result<Box<[u8]>, ParseError> {
    let b = fixed::<DESCRIPTOR_BYTES>("FC-4 descriptor", data)?;
    Ok(b[1..=usize::from(b[0])].into())
}

/// Appends a descriptor, cut at 255 bytes.
pub(crate) fn write_descriptor(descriptor: &[u8], out: &mut dyn Put) {
    emit_symbolic_name(descriptor, out);
    out.put_zeros(MAX_SYMBOLIC_NAME_BYTES - clip(descriptor).len());
}
