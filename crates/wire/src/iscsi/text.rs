//! Text of negotiations: `key=value` pairs, each terminated by a zero byte (section 6.1).

use crate::bytes::Put;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Longest key name, in bytes.
pub const MAX_KEY_BYTES: usize = 63;
/// Longest accepted value, in bytes: the longest text that every node must accept.
pub const MAX_VALUE_BYTES: usize = 8192;
/// Longest simple value, in bytes, unless the key permits more.
pub const MAX_SIMPLE_BYTES: usize = 255;
/// Longest binary value, in decoded bytes (section 12.1).
pub const MAX_BINARY_BYTES: usize = 1024;

/// Syntax error in a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum TextError {
    /// The last pair has no terminating zero byte.
    #[error("the last `key=value` pair has no terminating zero byte")]
    Unfinished,
    /// A pair without `=`.
    #[error("a pair has no `=`")]
    NoValue,
    /// A key name is empty, too long, or contains invalid characters.
    #[error("a key name is empty, is too long or has an invalid character")]
    BadKey,
    /// A value is too long or not UTF-8.
    #[error("a value is too long or not UTF-8")]
    BadValue,
}

/// Key and value.
pub type Pair<'a> = (&'a str, &'a str);

/// Reads the pairs of a text. Empty pairs, which some initiators append, are skipped.
pub fn parse(text: &[u8]) -> Result<Vec<Pair<'_>>, TextError> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let pair = &rest[..end];
        rest = &rest[end + 1..];
        if pair.is_empty() {
            continue;
        }
        let at = pair.iter().position(|&byte| byte == b'=').ok_or(TextError::NoValue)?;
        let (key, value) = (&pair[..at], &pair[at + 1..]);
        if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.iter().copied().all(is_key_byte) {
            return Err(TextError::BadKey);
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(TextError::BadValue);
        }
        let key = std::str::from_utf8(key).map_err(|_| TextError::BadKey)?;
        let value = std::str::from_utf8(value).map_err(|_| TextError::BadValue)?;
        pairs.push((key, value));
    }
    if rest.is_empty() { Ok(pairs) } else { Err(TextError::Unfinished) }
}

/// Appends a pair.
pub fn emit(key: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(key.as_bytes());
    out.put_u8(b'=');
    out.extend_from_slice(value.as_bytes());
    out.put_u8(0);
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'@' | b'_' | b'#' | b'/')
}

/// Parses a number: decimal, or hexadecimal after `0x`.
pub fn number(value: &str) -> Option<u32> {
    let (digits, radix) = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (value, 10),
    };
    // A sign is not a digit.
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

/// Parses a binary value of at most [`MAX_BINARY_BYTES`]: hexadecimal after `0x`, or base 64 after
/// `0b`.
pub fn binary(value: &str) -> Option<Vec<u8>> {
    let (kind, digits) = value.split_at_checked(2)?;
    let bytes = match kind {
        "0x" | "0X" => {
            let nibbles: Option<Vec<u8>> = digits.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
            let mut nibbles = nibbles?;
            // With an odd number of digits, the first digit is the low half of a byte.
            if nibbles.len() % 2 == 1 {
                nibbles.insert(0, 0);
            }
            nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
        "0b" | "0B" => STANDARD.decode(digits).ok()?,
        _ => return None,
    };
    (bytes.len() <= MAX_BINARY_BYTES).then_some(bytes)
}

/// Encodes a binary value in hexadecimal.
pub fn to_binary(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|nibble| char::from_digit(nibble.into(), 16).unwrap_or('0'));
    "0x".chars().chain(bytes.iter().flat_map(digits)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_returned_in_their_order() {
        assert_eq!(parse(b"A=1\0X-b.c=\0C=a=b\0"), Ok(vec![("A", "1"), ("X-b.c", ""), ("C", "a=b")]));
        assert_eq!(parse(b""), Ok(vec![]));
        assert_eq!(parse(b"\0\0A=1\0\0"), Ok(vec![("A", "1")]));
    }

    #[test]
    fn malformed_pairs_are_rejected() {
        assert_eq!(parse(b"A=1"), Err(TextError::Unfinished));
        assert_eq!(parse(b"A\0"), Err(TextError::NoValue));
        assert_eq!(parse(b"=1\0"), Err(TextError::BadKey));
        assert_eq!(parse(b"A b=1\0"), Err(TextError::BadKey));
        assert_eq!(parse(b"A=\xff\0"), Err(TextError::BadValue));
        let long_key = [&[b'k'; MAX_KEY_BYTES + 1][..], b"=1\0"].concat();
        assert_eq!(parse(&long_key), Err(TextError::BadKey));
        assert!(parse(&long_key[1..]).is_ok());
        let long_value = [b"A=", &[b'v'; MAX_VALUE_BYTES + 1][..], b"\0"].concat();
        assert_eq!(parse(&long_value), Err(TextError::BadValue));
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("262144"), Some(262_144));
        assert_eq!(number("0x40000"), Some(262_144));
        for none in ["", "0x", "+1", "-1", "1k", "4294967296", "0b1"] {
            assert_eq!(number(none), None, "{none}");
        }
    }

    #[test]
    fn binary_values_are_hexadecimal_or_base_64() {
        assert_eq!(binary("0x0102ff"), Some(vec![1, 2, 255]));
        assert_eq!(binary("0x102ff"), Some(vec![1, 2, 255]));
        assert_eq!(binary("0bAQL/"), Some(vec![1, 2, 255]));
        assert_eq!(binary(&to_binary(&[0, 9, 0xab])), Some(vec![0, 9, 0xab]));
        for none in ["", "01", "0xg0", "0b*", "0"] {
            assert_eq!(binary(none), None, "{none}");
        }
        assert_eq!(binary(&to_binary(&[0; MAX_BINARY_BYTES + 1])), None);
    }
}
