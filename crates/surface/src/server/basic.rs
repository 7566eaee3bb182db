//! Passwords that clients send with a request (RFC 7617): [`basic`].

use super::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Name and password of the header `Authorization`, if it has one of these schemes.
pub(crate) fn basic(headers: &HeaderMap, schemes: &[&str]) -> Option<(String, String)> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
