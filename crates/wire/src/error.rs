//! [`ParseError`]: the reasons why bytes do not parse.

/// Reason why bytes do not parse.
///
/// Protocol machines map it to the reject of their protocol. [`Truncated`](Self::Truncated) and
/// [`Length`](Self::Length) become "invalid payload length" or "invalid size".
/// [`Value`](Self::Value) becomes "protocol error", and [`Unsupported`](Self::Unsupported) becomes
/// "not supported".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ParseError {
    /// The bytes end before the structure does.
    #[error("{field} needs {needed_bytes} bytes, but has only {got_bytes}")]
    Truncated {
        /// Name of the structure or field.
        field: &'static str,
        /// Required number of bytes.
        needed_bytes: usize,
        /// Available number of bytes.
        got_bytes: usize,
    },
    /// A length field contradicts the layout of the structure.
    #[error("{field} is {got_bytes} bytes, but must be {rule}")]
    Length {
        /// Name of the length field.
        field: &'static str,
        /// Value of the length field, in bytes.
        got_bytes: usize,
        /// Text that describes the permitted values.
        rule: &'static str,
    },
    /// A field has a value that the standard forbids.
    #[error("{field} is {got:#x}, but must be {rule}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        got: u32,
        /// Text that describes the permitted values.
        rule: &'static str,
    },
    /// The bytes may be legal, but this crate cannot represent them. The caller keeps the payload
    /// as bytes.
    #[error("{field} {got:#x} is not supported")]
    Unsupported {
        /// Name of the field with the unsupported value.
        field: &'static str,
        /// Value of the field.
        got: u32,
    },
}
