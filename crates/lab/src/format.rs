//! The canonical layout of a lab file: key order, spaces and blank lines. Comments are kept.

use crate::Diagnostics;
use crate::diagnostic::{Sink, Sources};
use crate::schema;
use crate::syntax;
use crate::{Severity, pattern};
use std::fmt::Write;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns a lab file in its canonical layout.
///
/// - The keys of a section stand in the order of the reference page. A blank line between keys is
///   kept, and keys do not move across it.
/// - A comment stays with the key or section below it. Comments behind keys that follow each other
///   stand in one column.
/// - One blank stands on each side of an equals sign, and one blank line before a section.
///   Sections without keys may follow each other without one.
/// - The order of the sections is kept, because it numbers the nodes.
///
/// # Errors
/// Returns the syntax errors of the file. Semantic errors are not reported.
pub fn format(path_label: &str, text: &str) -> Result<String, Diagnostics> {
    let mut sink = Sink::default();
    let before = content(&syntax::parse(text, &mut sink));
    if sink.has_errors() {
        return Err(sink.finish(Severity::Error, &Sources::new(path_label, text, Vec::new())));
    }
    let formatted = blocks(&items(text)).iter().enumerate().fold(String::new(), |mut out, (index, block)| {
        block.write(index == 0, &mut out);
        out
    });
    // If the scanner below has changed the content, the file is left unchanged.
    let after = content(&syntax::parse(&formatted, &mut sink));
    Ok(if after == before && !sink.has_errors() { formatted } else { text.to_owned() })
}

/// Lines of a file that belong together.
#[derive(Clone, Debug)]
enum Item<'t> {
    Blank,
    Comment(&'t str),
    Header(&'t str),
    /// A key with its value, which may extend over several lines.
    Entry(Vec<&'t str>),
}

/// A section with the comments above it.
#[derive(Default)]
struct Block<'t> {
    /// True if a blank line separates the block from the one before it.
    apart: bool,
    lead: Vec<&'t str>,
    header: Option<&'t str>,
    body: Vec<Item<'t>>,
    /// True if the block before this one has no keys.
    behind_empty: bool,
}

impl Block<'_> {
    fn write(&self, first: bool, out: &mut String) {
        if !first && (self.apart || !self.behind_empty) {
            out.push('\n');
        }
        for comment in &self.lead {
            let _ = writeln!(out, "{comment}");
        }
        if let Some(header) = self.header {
            let (name, comment) = cut_comment(header);
            let _ = writeln!(out, "{}", with_comment(name.trim(), comment));
        }
        let section = self.header.and_then(|header| schema::section(section_name(header)));
        for (index, group) in self.body.split(|item| matches!(item, Item::Blank)).enumerate() {
            if index > 0 {
                out.push('\n');
            }
            write_group(group, section, out);
        }
    }
}

/// A key with its value, as it is written.
struct Entry {
    /// Position of the key in the section; keys that the section does not have are last.
    place: usize,
    /// Comments above the key, each with a newline.
    lead: String,
    /// Key and value; of a value with several lines, the first one.
    first: String,
    /// Comment behind the value; empty without one.
    comment: String,
    /// Further lines, each with a newline.
    rest: String,
}

/// Writes keys without a blank line between them, each with the comments above it.
fn write_group(group: &[Item<'_>], section: Option<&schema::SectionDef>, out: &mut String) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut comments = String::new();
    for item in group {
        match item {
            Item::Comment(text) => {
                let _ = writeln!(comments, "{text}");
            }
            Item::Entry(lines) => {
                let (key, first, comment) = entry(lines);
                let place = section.and_then(|section| section.keys.iter().position(|known| known.path == key));
                let rest = lines[1..].iter().flat_map(|line| [*line, "\n"]).collect();
                let (place, lead) = (place.unwrap_or(usize::MAX), std::mem::take(&mut comments));
                entries.push(Entry { place, lead, first, comment, rest });
            }
            Item::Blank | Item::Header(_) => {}
        }
    }
    entries.sort_by_key(|entry| entry.place);
    let mut left = &entries[..];
    while let Some(first) = left.first() {
        // Comments behind keys that follow each other stand in one column.
        let joins = |entry: &&Entry| !entry.comment.is_empty() && entry.lead.is_empty();
        let joined = if first.comment.is_empty() { 0 } else { left[1..].iter().take_while(joins).count() };
        let (column, behind) = left.split_at(1 + joined);
        let width = column.iter().map(|entry| entry.first.chars().count()).max().unwrap_or(0);
        for Entry { lead, first, comment, rest, .. } in column {
            out.push_str(lead);
            let _ = match comment.is_empty() {
                true => writeln!(out, "{first}"),
                false => writeln!(out, "{first:width$} {comment}"),
            };
            out.push_str(rest);
        }
        left = behind;
    }
    out.push_str(&comments);
}

/// The key of an entry, its first line with single blanks, and the comment behind that line. Of a
/// value with several lines, the comment is part of the line.
fn entry(lines: &[&str]) -> (String, String, String) {
    let line = lines[0];
    let Some(equals) = outside_quotes(line, '=') else { return (String::new(), line.to_owned(), String::new()) };
    let (key, value) = (line[..equals].trim(), line[equals + 1..].trim_start());
    let (value, comment) = match lines.len() {
        1 => cut_comment(value),
        // A value may continue in a text with several lines, whose blanks count.
        _ => return (key.to_owned(), format!("{key} = {value}"), String::new()),
    };
    (key.to_owned(), format!("{key} = {}", value.trim_end()), comment.to_owned())
}

fn with_comment(text: &str, comment: &str) -> String {
    if comment.is_empty() { text.to_owned() } else { format!("{text} {comment}") }
}

/// Cuts the comment off a line.
fn cut_comment(line: &str) -> (&str, &str) {
    let at = outside_quotes(line, '#').unwrap_or(line.len());
    (&line[..at], line[at..].trim_end())
}

/// Position of the first `wanted` outside of strings.
fn outside_quotes(line: &str, wanted: char) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match quote {
            None if c == wanted => return Some(at),
            None if c == '"' || c == '\'' => quote = Some(c),
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns the name of a section, such as `host` for `[host."server{1..8}"]`.
fn section_name(header: &str) -> &str {
    let inner = header.trim().trim_start_matches('[');
    let end = inner.find(['.', ']', ' ']).unwrap_or(inner.len());
    &inner[..end]
}

fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut scanner = Scanner::default();
    for line in text.lines() {
        if scanner.is_open() {
            if let Some(Item::Entry(lines)) = items.last_mut() {
                lines.push(line);
            }
            scanner.scan(line);
            continue;
        }
        let trimmed = line.trim();
        items.push(match trimmed.chars().next() {
            None => Item::Blank,
            Some('#') => Item::Comment(trimmed),
            Some('[') => Item::Header(trimmed),
            Some(_) => {
                scanner.scan(line);
                Item::Entry(vec![if scanner.is_open() { line.trim_start() } else { trimmed }])
            }
        });
    }
    items
}

/// Determines whether a value continues on the next line.
#[derive(Default)]
struct Scanner {
    /// Brackets and braces that are open.
    depth: usize,
    /// Delimiter of the text with several lines that is open.
    text: Option<&'static str>,
}

impl Scanner {
    fn is_open(&self) -> bool {
        self.depth > 0 || self.text.is_some()
    }

    fn scan(&mut self, line: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            if let Some(delimiter) = self.text {
                let Some(end) = end_of_text(rest, delimiter) else { return };
                self.text = None;
                rest = &rest[end..];
                continue;
            }
            if let Some(delimiter) = ["\"\"\"", "'''"].into_iter().find(|delimiter| rest.starts_with(delimiter)) {
                self.text = Some(delimiter);
                rest = &rest[delimiter.len()..];
                continue;
            }
            let c = rest.chars().next().unwrap_or_default();
            rest = &rest[c.len_utf8()..];
            match c {
                '#' => return,
                '[' | '{' => self.depth += 1,
                ']' | '}' => self.depth = self.depth.saturating_sub(1),
                '"' => rest = end_of_text(rest, "\"").map_or("", |end| &rest[end..]),
                '\'' => rest = end_of_text(rest, "'").map_or("", |end| &rest[end..]),
                _ => {}
            }
        }
    }
}

/// Position after the delimiter that ends a text.
fn end_of_text(text: &str, delimiter: &str) -> Option<usize> {
    let escapes = delimiter.starts_with('"');
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(delimiter) {
            // Up to two quotes may stand in front of the three that end a text.
            let quotes = rest.chars().take_while(|c| delimiter.starts_with(*c)).count();
            return Some(at + if delimiter.len() == 3 { quotes.min(5) } else { 1 });
        }
        let c = rest.chars().next()?;
        let skipped = if escapes && c == '\\' { rest.chars().nth(1).map_or(0, char::len_utf8) } else { 0 };
        at += c.len_utf8() + skipped;
    }
    None
}

fn blocks<'t>(items: &[Item<'t>]) -> Vec<Block<'t>> {
    let mut blocks = vec![Block::default()];
    for item in items {
        let last = blocks.last_mut().expect("there is always a block");
        match item {
            Item::Header(text) => {
                let lead = take_lead(&mut last.body);
                let apart = ends_with_blank(&last.body);
                let behind_empty = last.header.is_some() && !has_content(&last.body);
                trim(&mut last.body);
                blocks.push(Block { apart, lead, header: Some(text), body: Vec::new(), behind_empty });
            }
            Item::Blank if ends_with_blank(&last.body) => {}
            other => last.body.push(other.clone()),
        }
    }
    if let Some(last) = blocks.last_mut() {
        trim(&mut last.body);
    }
    blocks.retain(|block| block.header.is_some() || has_content(&block.body));
    blocks
}

/// Takes the comments directly above a header away from the section before it.
fn take_lead<'t>(body: &mut Vec<Item<'t>>) -> Vec<&'t str> {
    let start = body.iter().rposition(|item| !matches!(item, Item::Comment(_))).map_or(0, |at| at + 1);
    body.drain(start..).filter_map(|item| if let Item::Comment(text) = item { Some(text) } else { None }).collect()
}

fn has_content(body: &[Item<'_>]) -> bool {
    body.iter().any(|item| !matches!(item, Item::Blank))
}

fn ends_with_blank(body: &[Item<'_>]) -> bool {
    matches!(body.last(), Some(Item::Blank))
}

/// Removes blank lines at both ends.
fn trim(body: &mut Vec<Item<'_>>) {
    while ends_with_blank(body) {
        body.pop();
    }
    while matches!(body.first(), Some(Item::Blank)) {
        body.remove(0);
    }
}

/// The content of a table without locations, to compare two texts. Sections with names keep the
/// order of the file.
fn content(table: &DeTable<'_>) -> String {
    let mut out = String::new();
    let mut sections: Vec<_> = table.iter().collect();
    sections.sort_by_key(|(name, _)| name.get_ref().to_string());
    for (name, value) in sections {
        let _ = write!(out, "{name:?}", name = name.get_ref());
        match value.get_ref() {
            DeValue::Table(named) => {
                let mut named: Vec<_> = named.iter().collect();
                match schema::section(name.get_ref()).map(|section| section.form) {
                    Some(schema::Form::Single) => named.sort_by_key(|(name, _)| name.get_ref().to_string()),
                    _ => named.sort_by_key(|(name, _)| name.span().start),
                }
                for (name, value) in named {
                    let is_section =
                        matches!(value.get_ref(), DeValue::Table(_)) && pattern::expand(name.get_ref()).is_ok();
                    let _ = write!(out, "{}{:?}", if is_section { "\n" } else { "" }, name.get_ref());
                    write_value(value, &mut out);
                }
            }
            _ => write_value(value, &mut out),
        }
    }
    out
}

fn write_value(value: &Spanned<DeValue<'_>>, out: &mut String) {
    let _ = match value.get_ref() {
        DeValue::String(text) => write!(out, "{text:?};"),
        DeValue::Integer(number) => write!(out, "{number};"),
        DeValue::Float(number) => write!(out, "{number};"),
        DeValue::Boolean(flag) => write!(out, "{flag};"),
        DeValue::Datetime(time) => write!(out, "{time};"),
        DeValue::Array(elements) => {
            elements.iter().for_each(|element| write_value(element, out));
            write!(out, "];")
        }
        DeValue::Table(table) => {
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_by_key(|(name, _)| name.get_ref().to_string());
            for (name, value) in keys {
                let _ = write!(out, "{:?}=", name.get_ref());
                write_value(value, out);
            }
            write!(out, "}};")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(text: &str) -> String {
        format("lab.toml", text).expect("valid TOML")
    }

    #[test]
    fn keys_stand_in_the_order_of_the_reference() {
        let text = "[[link]]\nto=\"sw1\" # both\nrate   =   \"8GFC\"\n# The hosts.\nfrom = \"h{1..2}\"\n";
        let wanted = "[[link]]\n# The hosts.\nfrom = \"h{1..2}\"\nto = \"sw1\" # both\nrate = \"8GFC\"\n";
        assert_eq!(formatted(text), wanted);
    }

    #[test]
    fn keys_of_a_section_without_a_name_are_ordered() {
        let wanted = "[run]\nduration = \"2s\"\nwarmup = \"1s\"\n";
        assert_eq!(formatted("[run]\nwarmup = \"1s\"\nduration = \"2s\"\n"), wanted);
    }

    #[test]
    fn comments_behind_keys_that_follow_each_other_stand_in_one_column() {
        let text = "[timers]\nf_s_tov = \"1s\"  # one\nrscn_delay = \"50ms\" # two\nhold_time = \"1s\"\n\n\
            e_d_tov = \"2s\"      # alone\n";
        let out = formatted(text);
        assert!(out.contains("f_s_tov = \"1s\"      # one\nrscn_delay = \"50ms\" # two\n"), "{out}");
        assert!(out.contains("e_d_tov = \"2s\" # alone\n"), "{out}");
        assert_eq!(formatted(&out), out, "a second time changes nothing");
    }

    #[test]
    fn comments_stay_with_the_section_below_them() {
        let text = "# The lab.\n\n\n[lab]\nname = \"x\"\n# Fabric A\n[switch.a]\n[switch.b]\n\n\n# The end.\n";
        let wanted = "# The lab.\n\n[lab]\nname = \"x\"\n\n# Fabric A\n[switch.a]\n[switch.b]\n# The end.\n";
        assert_eq!(formatted(text), wanted);
        assert_eq!(formatted(wanted), wanted, "a second time changes nothing");
    }

    #[test]
    fn values_with_several_lines_are_not_touched() {
        let text = "[lab]\ndescription = \"\"\"\na = [   \n# no comment\n\"\"\"\nname = \"b\"\n\n[host.a]\nx = [\n  1, # one\n\n  2,\n]\n";
        let out = formatted(text);
        assert!(out.contains("\"\"\"\na = [   \n# no comment\n\"\"\"\n"), "{out}");
        assert!(out.contains("x = [\n  1, # one\n\n  2,\n]\n"), "{out}");
    }

    #[test]
    fn quotes_hide_equals_signs_and_hashes() {
        assert_eq!(
            formatted("[host.\"a#b\"] # c\n\"k=#\"=\"v # \\\" w\"   #  d\n"),
            "[host.\"a#b\"] # c\n\"k=#\" = \"v # \\\" w\" #  d\n"
        );
    }

    #[test]
    fn text_that_is_not_toml_is_an_error() {
        assert!(format("lab.toml", "[run\n").is_err());
    }
}
