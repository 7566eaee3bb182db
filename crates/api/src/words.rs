//! Words of messages.

use std::fmt::Display;

/// Returns a number with its noun: "1 host", "2 hosts".
pub fn plural<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
