//! The one table of definitions: every section and key, with type, default, meaning and example. The parser checks
//! files against it, takes defaults from it, and the reference page is printed from it, so they cannot disagree.

mod fabric;
mod iscsi;
mod live;
mod nodes;
mod traffic;
mod volumes;
mod words;
mod zoning;

pub(crate) use words::*;
pub(crate) use zoning::EDIT;

/// A section of the lab file.
pub(crate) struct SectionDef {
    /// As the file spells it.
    pub name: &'static str,
    /// How it is written.
    pub form: Form,
    /// What it describes, in sentences.
    pub meaning: &'static str,
    /// Words that people may use instead; only for suggestions.
    pub also: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [Key],
}

/// How a section is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// `[run]`: once.
    Single,
    /// `[host.NAME]`: one table for each name or range of names.
    Named,
    /// `[[link]]`: a list of tables.
    List,
}

/// A key of a section.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Path inside the section, with dots for tables in tables.
    pub path: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What holds if the key is not given.
    pub fallback: Fallback,
    /// What it means, in sentences.
    pub meaning: &'static str,
    /// A value as the file would write it.
    pub example: &'static str,
    /// Words that people may use instead; only for suggestions.
    pub also: &'static [&'static str],
}

/// What holds if a key is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallback {
    /// It must be given.
    Required,
    /// This value, as TOML.
    Value(&'static str),
    /// No value; the text says what that means.
    Absent(&'static str),
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer { min: u64, max: u64 },
    /// A whole number or one word.
    IntegerOr { word: &'static str, min: u64, max: u64 },
    /// A number from 0 to 1.
    Share,
    /// Any finite number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A time with its unit.
    Time,
    /// A length with its unit.
    Length,
    /// A number of bytes with its unit.
    Size { min: u64, max: u64 },
    /// Events per second with their unit.
    PerSecond,
    /// A frequency with its unit.
    Clock,
    /// A speed of Fibre Channel.
    LineRate,
    /// One of these words.
    Choice(&'static [Word]),
    /// The name of a preset.
    Preset,
    /// A world-wide name: 16 hex digits.
    Wwn,
    /// One name or range of names.
    Pattern,
    /// A list of names or ranges; one may stand without brackets.
    Patterns,
    /// One arrival process or a list of them.
    Arrivals,
    /// A size or a distribution of sizes.
    Sizes,
    /// A table; its keys stand beside it in the section with the table's name and a dot before theirs.
    Table,
}

/// One word of a choice.
#[derive(Debug)]
pub(crate) struct Word {
    /// As the file spells it.
    pub word: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Every section, in the order of the reference page.
pub(crate) const SECTIONS: &[SectionDef] = &[
    traffic::LAB,
    traffic::RUN,
    fabric::TIMERS,
    fabric::SWITCH,
    nodes::HOST,
    nodes::STORAGE,
    fabric::LINK,
    fabric::ISL,
    zoning::ZONING,
    zoning::ALIAS,
    zoning::ZONE,
    zoning::ZONE_CONFIG,
    zoning::CHANGE,
    zoning::PERSISTENT,
    traffic::WORKLOAD,
    traffic::FAULT,
    traffic::EXPECT,
    live::LIVE,
    live::MASK,
    live::PORT_GROUP,
    volumes::POOL,
    volumes::BACK_END,
    volumes::VOLUME,
];

/// Sections, and two keys of each that cannot stand together.
pub(crate) const ALTERNATIVES: &[(&str, &str, &str)] = &[
    ("workload", "arrivals", "depth"),
    ("workload", "arrivals", "think_time"),
    ("fault", "until", "for"),
    ("fault", "port", "link"),
    ("fault", "port", "end"),
];

/// The section with this name.
pub(crate) fn section(name: &str) -> Option<&'static SectionDef> {
    SECTIONS.iter().find(|s| s.name == name)
}

impl SectionDef {
    /// The key with this path.
    pub fn key(&self, path: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.path == path)
    }

    /// True if the keys `a` and `b` say the same in two ways, so that only one of them can stand.
    pub fn are_alternatives(&self, a: &str, b: &str) -> bool {
        let pairs = ALTERNATIVES.iter().filter(|(section, ..)| *section == self.name);
        pairs.into_iter().any(|&(_, one, other)| (one, other) == (a, b) || (other, one) == (a, b))
    }

    /// How the section is written in a file.
    pub fn heading(&self) -> String {
        match self.form {
            Form::Single => format!("[{}]", self.name),
            Form::Named => format!("[{}.NAME]", self.name),
            Form::List => format!("[[{}]]", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_tables_are_declared() {
        for (i, section) in SECTIONS.iter().enumerate() {
            assert!(SECTIONS[..i].iter().all(|s| s.name != section.name));
            for (j, key) in section.keys.iter().enumerate() {
                assert!(section.keys[..j].iter().all(|k| k.path != key.path), "{}", key.path);
                if let Some((table, _)) = key.path.rsplit_once('.') {
                    let table = section.key(table).expect("a key inside a table needs the table");
                    assert!(matches!(table.kind, Kind::Table), "{}", key.path);
                }
                assert!(!key.meaning.is_empty() && key.meaning.ends_with('.'), "{}", key.path);
            }
        }
    }
}
