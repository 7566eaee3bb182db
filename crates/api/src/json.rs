//! JSON of requests, results and rows: [`from_slice`].

use serde::de::{DeserializeOwned, Error};

/// Reads a value from JSON in UTF-8.
///
/// `serde_json` compiles the reader of a type once for text and once more for bytes. This function
/// reads text, as the other readers of large types do.
///
/// # Errors
/// If the bytes are not UTF-8, not JSON, or not of the type.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}
