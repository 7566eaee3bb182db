//! The account of an import: every line of every file is used, decoration, or reported.

use std::collections::BTreeMap;
use std::fmt;

/// Lines of one input file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub file: String,
    /// First line, from 1.
    pub line: u32,
    /// Last line.
    pub last: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last > self.line {
            true => write!(f, "{}:{}-{}", self.file, self.line, self.last),
            false => write!(f, "{}:{}", self.file, self.line),
        }
    }
}

/// Kind of a note.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NoteKind {
    /// Two inputs disagree.
    Conflict,
    /// A line or object that has no place in the lab.
    Unplaced,
    /// A choice that the inputs do not determine.
    Decision,
    /// Lines that are recognised, but describe nothing that a lab has.
    Ignored,
}

impl NoteKind {
    /// Word for messages.
    pub fn name(self) -> &'static str {
        match self {
            NoteKind::Conflict => "conflict",
            NoteKind::Unplaced => "unplaced",
            NoteKind::Decision => "decision",
            NoteKind::Ignored => "ignored",
        }
    }
}

/// One entry of the account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    pub kind: NoteKind,
    /// Lines that the note is about; both places of a conflict.
    pub places: Vec<Place>,
    /// Text of the line, or name of the object.
    pub text: String,
    pub reason: String,
    pub remedy: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, place) in self.places.iter().enumerate() {
            write!(f, "{}{place}", if i > 0 { ", " } else { "" })?;
        }
        let separator = if self.places.is_empty() { "" } else { ": " };
        write!(f, "{separator}{}: `{}` {}", self.kind.name(), self.text, self.reason)?;
        match self.remedy.is_empty() {
            true => Ok(()),
            false => write!(f, "; {}", self.remedy),
        }
    }
}

/// The lines of one input file by their fate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileAccount {
    pub file: String,
    /// Commands and documents that the file contains, in order, each once.
    pub contents: Vec<&'static str>,
    pub lines: u32,
    pub used: u32,
    /// Headings, rules and blank lines.
    pub decoration: u32,
    /// Lines that are in a note.
    pub reported: u32,
}

/// The account of a whole import.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    pub files: Vec<FileAccount>,
    /// Conflicts first, then by place.
    pub notes: Vec<Note>,
}

/// Fate of one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Used,
    Decoration,
    /// Recognised and without use; all lines of a file with one topic share a note.
    Ignored(&'static str),
    /// Recognised, and without counterpart in a lab; all lines of a file with one topic share a
    /// note.
    Inexpressible(&'static str),
    /// Not recognised; adjacent lines share a note.
    Unknown,
    /// Recognised, but cannot be used.
    Bad {
        reason: String,
        remedy: String,
    },
    /// Contradicts line `first` of the file.
    Conflict {
        first: u32,
        reason: String,
        remedy: String,
    },
}

impl Fate {
    pub fn bad(reason: impl Into<String>, remedy: impl Into<String>) -> Fate {
        Fate::Bad { reason: reason.into(), remedy: remedy.into() }
    }
}

/// Collects the fates of the lines of one file.
pub(super) struct Ledger {
    pub account: FileAccount,
    /// Adjacent unknown lines that are not yet a note: the first, the last, and the first text.
    unknown: Option<(u32, u32, String)>,
    /// First line, last line and number of lines of each ignored topic.
    ignored: BTreeMap<&'static str, (u32, u32, u32)>,
    /// The same of each topic that a lab cannot express.
    inexpressible: BTreeMap<&'static str, (u32, u32, u32)>,
}

const UNKNOWN_REASON: &str = "is in no form that the importer knows at this place";
const UNKNOWN_REMEDY: &str = "remove it, or state by hand in the lab what it describes";

/// Longest part of a line in a note.
const MAX_TEXT: usize = 100;

impl Ledger {
    pub fn new(file: &str) -> Ledger {
        let account = FileAccount { file: file.to_owned(), ..FileAccount::default() };
        Ledger { account, unknown: None, ignored: BTreeMap::new(), inexpressible: BTreeMap::new() }
    }

    pub fn contains(&mut self, what: &'static str) {
        if !self.account.contents.contains(&what) {
            self.account.contents.push(what);
        }
    }

    /// Enters line `number`.
    pub fn enter(&mut self, number: u32, text: &str, fate: Fate, notes: &mut Vec<Note>) {
        self.account.lines += 1;
        match fate {
            Fate::Decoration => {
                self.account.decoration += 1;
                return;
            }
            Fate::Unknown => {
                self.account.reported += 1;
                match &mut self.unknown {
                    Some((_, last, _)) => *last = number,
                    None => self.unknown = Some((number, number, cut(text))),
                }
                return;
            }
            Fate::Used => self.account.used += 1,
            Fate::Ignored(topic) => {
                self.account.reported += 1;
                let (_, last, count) = self.ignored.entry(topic).or_insert((number, number, 0));
                (*last, *count) = (number, *count + 1);
            }
            Fate::Inexpressible(topic) => {
                self.account.reported += 1;
                let (_, last, count) = self.inexpressible.entry(topic).or_insert((number, number, 0));
                (*last, *count) = (number, *count + 1);
            }
            Fate::Bad { .. } | Fate::Conflict { .. } => {
                self.account.reported += 1;
                notes.extend(self.note(number, text, fate));
            }
        }
        self.end_unknown(notes);
    }

    /// The note about line `number`, or about a further part of it. `None` for fates that share a
    /// note with other lines.
    pub fn note(&self, number: u32, text: &str, fate: Fate) -> Option<Note> {
        let own = self.place(number, number);
        let (kind, places, reason, remedy) = match fate {
            Fate::Bad { reason, remedy } => (NoteKind::Unplaced, vec![own], reason, remedy),
            Fate::Conflict { first, reason, remedy } => {
                (NoteKind::Conflict, vec![self.place(first, first), own], reason, remedy)
            }
            _ => return None,
        };
        Some(Note { kind, places, text: cut(text), reason, remedy })
    }

    /// Enters parts of line `number` that have no use, beside those that decide its fate.
    pub fn enter_unused(&mut self, number: u32, topic: &'static str, parts: u32) {
        let (_, last, count) = self.ignored.entry(topic).or_insert((number, number, 0));
        (*last, *count) = (number, *count + parts);
    }

    fn end_unknown(&mut self, notes: &mut Vec<Note>) {
        let Some((line, last, text)) = self.unknown.take() else { return };
        notes.push(Note {
            kind: NoteKind::Unplaced,
            places: vec![self.place(line, last)],
            text,
            reason: UNKNOWN_REASON.to_owned(),
            remedy: UNKNOWN_REMEDY.to_owned(),
        });
    }

    /// Ends the file.
    pub fn close(mut self, notes: &mut Vec<Note>) -> FileAccount {
        self.end_unknown(notes);
        for (topic, (line, last, count)) in std::mem::take(&mut self.inexpressible) {
            let reason = match count {
                1 => "has no counterpart in a lab".to_owned(),
                _ => format!("({count} lines) has no counterpart in a lab"),
            };
            let (places, text) = (vec![self.place(line, last)], topic.to_owned());
            let remedy = "leave it out, or describe its effect by hand".to_owned();
            notes.push(Note { kind: NoteKind::Unplaced, places, text, reason, remedy });
        }
        for (topic, (line, last, count)) in std::mem::take(&mut self.ignored) {
            let reason = match count {
                1 => "describes nothing that a lab has".to_owned(),
                _ => format!("({count} lines) describe nothing that a lab has"),
            };
            let places = vec![self.place(line, last)];
            let (text, remedy) = (topic.to_owned(), String::new());
            notes.push(Note { kind: NoteKind::Ignored, places, text, reason, remedy });
        }
        self.account
    }

    fn place(&self, line: u32, last: u32) -> Place {
        Place { file: self.account.file.clone(), line, last }
    }
}

/// Accounts for a file of XML, which the importer does not read.
pub(super) fn xml(text: &str, mut ledger: Ledger, notes: &mut Vec<Note>) -> FileAccount {
    let mut is_named = false;
    for (index, line) in text.lines().enumerate() {
        let fate = match (line.trim().is_empty(), is_named) {
            (true, _) => Fate::Decoration,
            (false, true) => Fate::Ignored("further lines of XML"),
            (false, false) => Fate::bad(
                "begins XML of the REST interface, which the importer does not read",
                "repeat the request with the header `Accept: application/yang-data+json`",
            ),
        };
        is_named |= fate != Fate::Decoration;
        ledger.enter(index as u32 + 1, line, fate, notes);
    }
    ledger.close(notes)
}

/// Returns the beginning of a line without control characters.
pub(super) fn cut(text: &str) -> String {
    let clean = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = clean.take(MAX_TEXT + 1).collect();
    if cut.chars().count() > MAX_TEXT {
        cut = cut.chars().take(MAX_TEXT).collect::<String>() + "…";
    }
    cut
}
