//! Words of messages.

use std::fmt::Display;

/// Returns a number with its noun: "1 host", "2 hosts".
pub fn plural<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = ending(&count);
    format!("{count} {noun}{ending}")
}

/// Returns the ending of a noun behind a number.
pub fn ending<N: PartialEq + From<u8>>(count: &N) -> &'static str {
    if *count == N::from(1) { "" } else { "s" }
}
