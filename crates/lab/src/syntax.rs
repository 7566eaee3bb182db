//! The first step: parsing TOML text into tables with locations, and explaining syntax errors.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::diagnostic::{Origin, Sink};
use toml::de::DeTable;

/// Code of a text that is not TOML.
pub(crate) const SYNTAX: &str = "syntax";
/// Code of a file that is too long for a lab file.
pub(crate) const TOO_LONG: &str = "too-long";

/// Limit on the file length: about 100,000 lines. Ranges make longer files unnecessary.
pub const MAX_BYTES: usize = 8 << 20;
/// Limit on the restarts of the parser after syntax errors.
const MAX_RESTARTS: usize = 100;

/// Returns the tables of `text`, as far as they can be read, and reports every error to `sink`.
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
    let mut last = report(text, 0, errors, sink);
    // The parser stops after some errors; parsing then continues at the next section.
    for _ in 0..MAX_RESTARTS {
        let Some(start) = last.and_then(|at| next_section(text, at)) else {
            break;
        };
        let (_, errors) = DeTable::parse_recoverable(&text[start..]);
        last = report(text, start, errors, sink);
    }
    table.into_inner()
}

/// Reports the errors of the text from `start` on, one for each line. Returns the location of the
/// last one.
fn report(text: &str, start: usize, errors: Vec<toml::de::Error>, sink: &mut Sink) -> Option<usize> {
    let mut last_line = None;
    let mut last = None;
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let at = floor(text, start + span.start);
        last = last.max(Some(at));
        // Later errors on a line are usually consequences of the first one.
        let line = text[..at].rfind('\n');
        if last_line == Some(line) {
            continue;
        }
        last_line = Some(line);
        let (reason, remedy) = explain(error.message(), text, at);
        sink.error(SYNTAX, &Origin::File(at, start + span.end), reason, remedy);
    }
    last
}

/// Returns the beginning of the first line after `at` that starts with a bracket.
fn next_section(text: &str, at: usize) -> Option<usize> {
    text[at..].find("\n[").map(|i| at + i + 1)
}

/// Returns the parser's message and, for common errors, advice about the probable intention.
fn explain(message: &str, text: &str, at: usize) -> (String, String) {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = text[start..].lines().next().unwrap_or("").trim();
    let reason = message.replace('\n', " ");
    let before_comment = |value: &'_ str| value.split('#').next().unwrap_or("").trim().to_owned();
    let parts = line.split_once('=').map(|(key, value)| (key.trim(), before_comment(value)));
    let quoted = |value: &str| value.starts_with(['"', '\'']);
    let remedy = match parts {
        _ if message.contains("duplicate key") => {
            "give a key or table once; a further element of a list is a table with two brackets, such as [[link]]"
                .to_owned()
        }
        _ if message.contains("unexpected key or value") => "write each key on a line of its own".to_owned(),
        _ if line.starts_with('[') => {
            "write section names as [run], [host.server1], [host.\"server{1..8}\"] or [[link]]".to_owned()
        }
        Some((_, value)) if value.is_empty() => "write a value behind the equals sign".to_owned(),
        Some((_, value)) if quoted(&value) => "check that every quote has its partner on the same line".to_owned(),
        Some((key, value)) if !value.starts_with(['[', '{']) => {
            format!("put the value in quotes: {key} = \"{value}\"")
        }
        Some(_) => "check brackets, braces, commas and quotes".to_owned(),
        None => "write each line as key = value, or a section name in brackets".to_owned(),
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
