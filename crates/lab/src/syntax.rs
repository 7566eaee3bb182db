//! The first step: TOML text to tables with places, and what to say when it is no TOML.

use crate::diagnostic::{Origin, Sink};
use toml::de::DeTable;

/// Code of a text that is no TOML.
pub(crate) const SYNTAX: &str = "syntax";
/// Code of a file that is too long to be a lab file.
pub(crate) const TOO_LONG: &str = "too-long";

/// A hundred thousand lines; ranges make longer files needless.
const MAX_BYTES: usize = 8 << 20;

/// The tables of `text`, as far as it can be read; every mistake goes to `sink`.
pub(crate) fn parse<'t>(text: &'t str, sink: &mut Sink) -> DeTable<'t> {
    if text.len() > MAX_BYTES {
        sink.error(
            TOO_LONG,
            &Origin::File(0, 0),
            format!("the file has {} bytes", text.len()),
            "use ranges such as \"server{1..1000}\" instead of a table for each node",
        );
        return DeTable::new();
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut last_line = usize::MAX;
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        // What follows the first mistake on a line is mostly its consequence.
        let line = text[..floor(text, span.start)]
            .bytes()
            .filter(|&b| b == b'\n')
            .count();
        if line == last_line {
            continue;
        }
        last_line = line;
        let (reason, remedy) = explain(error.message(), text, span.start);
        sink.error(SYNTAX, &Origin::File(span.start, span.end), reason, remedy);
    }
    table.into_inner()
}

/// The parser's words and, for the usual mistakes, what the writer probably wanted.
fn explain(message: &str, text: &str, at: usize) -> (String, String) {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    let reason = message.replace('\n', " ");
    let value = line
        .split_once('=')
        .map(|(key, value)| (key.trim(), value.split('#').next().unwrap_or("").trim()));
    let remedy = if message.contains("duplicate key") {
        "give the key or table once; a second element of a list is a table with two brackets, such as [[link]]".to_owned()
    } else if let Some((key, value)) = value
        && !value.is_empty()
        && !value.starts_with(['"', '\'', '[', '{'])
    {
        format!(
            "put the value in quotes: {key} = \"{}\"",
            value.trim_matches(['"', '\''])
        )
    } else if value.is_some_and(|(_, value)| value.is_empty()) {
        "write a value behind the equals sign".to_owned()
    } else if value.is_some_and(|(_, value)| value.starts_with(['"', '\''])) {
        "check that every quote has its partner on the same line".to_owned()
    } else if value.is_some() {
        "check brackets, braces, commas and quotes".to_owned()
    } else if line.starts_with('[') {
        "write section names as [run], [host.server1], [host.\"server{1..8}\"] or [[link]]"
            .to_owned()
    } else {
        "write each line as key = value, or a section name in brackets".to_owned()
    };
    (reason, remedy)
}

fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
