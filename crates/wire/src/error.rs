//! Why bytes are not a value: [`ParseError`].

/// What is wrong with bytes that do not parse.
///
/// A machine turns it into the reject of the protocol: [`Truncated`](Self::Truncated) and [`Length`](Self::Length) into
/// "invalid payload length" or "invalid size", [`Value`](Self::Value) into "protocol error",
/// [`Unsupported`](Self::Unsupported) into "not supported".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ParseError {
    /// The bytes end before the structure does.
    #[error("{field} needs {needed_bytes} bytes, but only {got_bytes} are there")]
    Truncated {
        /// The structure or field.
        field: &'static str,
        /// Bytes that it needs.
        needed_bytes: usize,
        /// Bytes that are there.
        got_bytes: usize,
    },
    /// A length field contradicts the structure.
    #[error("{field} is {got_bytes} bytes, but must be {rule}")]
    Length {
        /// The length field.
        field: &'static str,
        /// Its value, in bytes.
        got_bytes: usize,
        /// What it must be.
        rule: &'static str,
    },
    /// A field has a value that the standard rules out.
    #[error("{field} is {got:#x}, but must be {rule}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        got: u32,
        /// What it must be.
        rule: &'static str,
    },
    /// Legal, or at least possible, but outside of what the values of this crate hold. Such a payload stays bytes.
    #[error("{field} {got:#x} has no value here")]
    Unsupported {
        /// The field that says so.
        field: &'static str,
        /// Its value.
        got: u32,
    },
}
