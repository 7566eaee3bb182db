//! The single table of definitions: every section and key, with type, default, meaning and example.
//! The parser checks files against it and takes defaults from it. The reference page is generated
//! from it, so the two always agree.

mod design;
mod disk_loops;
mod ethernet;
mod fabric;
mod fault;
mod fcip;
mod gateway;
mod infiniband;
mod ipoib;
mod iscsi;
mod iscsi_hba;
mod live;
mod nodes;
mod out_of_band;
mod processor;
mod storage;
mod switch;
mod tcp;
mod traffic;
mod volumes;
mod words;
mod zoning;

pub(crate) use words::*;
pub(crate) use zoning::EDIT;

/// A section of the lab file.
pub(crate) struct SectionDef {
    /// Name in the file.
    pub name: &'static str,
    pub form: Form,
    /// Description in full sentences.
    pub meaning: &'static str,
    /// Other words for the section; used only for suggestions.
    pub also: &'static [&'static str],
    pub keys: &'static [Key],
}

/// Form of a section in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A single table, such as `[run]`.
    Single,
    /// One table for each name or range of names, such as `[host.NAME]`.
    Named,
    /// A list of tables, such as `[[link]]`.
    List,
}

/// A key of a section.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Path inside the section, with dots for nested tables.
    pub path: &'static str,
    /// Kind of allowed values.
    pub kind: Kind,
    /// Behaviour if the key is not given.
    pub fallback: Fallback,
    /// Description in full sentences.
    pub meaning: &'static str,
    /// A value as written in a file.
    pub example: &'static str,
    /// Other words for the key; used only for suggestions.
    pub also: &'static [&'static str],
}

/// Behaviour if a key is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallback {
    /// The key is required.
    Required,
    /// Default value, as TOML.
    Value(&'static str),
    /// No value; the text describes the consequence.
    Absent(&'static str),
}

/// Kind of the value of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer { min: u64, max: u64 },
    /// A whole number or one fixed word.
    IntegerOr { word: &'static str, min: u64, max: u64 },
    /// A list of whole numbers; a single one may be written without brackets.
    Numbers { min: u64, max: u64 },
    /// A number from 0 to 1.
    Share,
    /// Any finite number.
    Number,
    /// A finite number of at least `min`.
    NumberFrom { min: f64 },
    /// Any finite number, or a text with a unit that fits a metric; the builder reads the text.
    Bound,
    /// `true` or `false`.
    Flag,
    /// A time with its unit.
    Time,
    /// A time with its unit, or one fixed word.
    TimeOr { word: &'static str },
    /// A length with its unit.
    Length,
    /// A number of bytes with its unit.
    Size { min: u64, max: u64 },
    /// Events per second, with unit.
    PerSecond,
    /// A frequency with its unit.
    Clock,
    /// Bits per second, with unit.
    BitRate,
    /// A Fibre Channel line rate.
    LineRate,
    /// A line rate of Fibre Channel, Ethernet or InfiniBand.
    LinkRate,
    /// One of these words.
    Choice(&'static [Word]),
    /// One of these words, or the name of a file that ends in `.toml`.
    ChoiceOrFile(&'static [Word]),
    /// The name of a preset.
    Preset,
    /// The name of a preset of a switch.
    SwitchPreset,
    /// The name of a preset of a host.
    HostPreset,
    /// A world-wide name: 16 hex digits.
    Wwn,
    /// One name or range of names.
    Pattern,
    /// A list of names or ranges; a single one may be written without brackets.
    Patterns,
    /// One arrival process or a list of them.
    Arrivals,
    /// A size or a distribution of sizes.
    Sizes,
    /// A time or a distribution of times.
    Times,
    /// The stop rule of a run.
    StopRule,
    /// A table. Its keys are listed in the same section, with the table's name and a dot as prefix.
    Table,
}

/// One word of a choice.
#[derive(Debug)]
pub(crate) struct Word {
    /// Word in the file.
    pub word: &'static str,
    /// Description of the word.
    pub meaning: &'static str,
}

/// All sections, in the order of the reference page.
pub(crate) const SECTIONS: &[SectionDef] = &[
    traffic::LAB,
    traffic::RUN,
    fabric::TIMERS,
    switch::SWITCH,
    ethernet::SWITCH,
    infiniband::SWITCH,
    infiniband::SUBNET,
    nodes::HOST,
    storage::STORAGE,
    fabric::LOOP,
    fabric::LINK,
    fabric::ISL,
    zoning::ZONING,
    zoning::ALIAS,
    zoning::ZONE,
    zoning::ZONE_CONFIG,
    zoning::CHANGE,
    zoning::PERSISTENT,
    traffic::WORKLOAD,
    fault::FAULT,
    traffic::EXPECT,
    design::CHECK,
    live::LIVE,
    live::MASK,
    live::PORT_GROUP,
    volumes::POOL,
    volumes::BACK_END,
    volumes::VOLUME,
];

/// Sections with two keys that exclude each other.
pub(crate) const ALTERNATIVES: &[(&str, &str, &str)] = &[
    ("workload", "arrivals", "depth"),
    ("workload", "arrivals", "think_time"),
    ("fault", "until", "for"),
    ("fault", "port", "link"),
    ("fault", "port", "end"),
];

/// Joins lists of keys. `N` is the sum of their lengths.
const fn join<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
    let (mut all, mut number, mut list) = ([lists[0][0]; N], 0, 0);
    while list < lists.len() {
        let mut key = 0;
        while key < lists[list].len() {
            all[number] = lists[list][key];
            (key, number) = (key + 1, number + 1);
        }
        list += 1;
    }
    assert!(number == N, "the joined list has all keys");
    all
}

/// Keys that an element needs under a condition. The builder checks the same, so that this table is
/// for the JSON Schema only.
pub(crate) struct Need {
    pub section: &'static str,
    pub when: When,
    /// Sets of keys, one of which must be complete.
    pub one_of: &'static [&'static [&'static str]],
}

/// Condition of a [`Need`].
pub(crate) enum When {
    Always,
    /// The element has this table, and the keys are those of the table.
    Table(&'static str),
    /// The key of the element has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// The element has the key.
    Has(&'static str),
}

/// Keys that faults of a link need.
const AT_LINK: &[&[&str]] = &[&["link"], &["port"]];
/// Keys that faults of one end of a link need.
const AT_END: &[&[&str]] = &[&["port"], &["link", "end"]];

/// All conditional needs.
pub(crate) const NEEDS: &[Need] = &[
    Need {
        section: "fault",
        when: When::Is("kind", &["link-down", "link-up", "frame-loss", "crc-errors"]),
        one_of: AT_LINK,
    },
    Need {
        section: "fault",
        when: When::Is("kind", &["port-down", "slow-receiver", "withheld-credits", "lost-r-rdy"]),
        one_of: AT_END,
    },
    Need {
        section: "fault",
        when: When::Is("kind", &["frame-loss", "crc-errors", "lost-r-rdy"]),
        one_of: &[&["probability"]],
    },
    Need { section: "fault", when: When::Is("kind", &["slow-receiver"]), one_of: &[&["delay"]] },
    Need { section: "fault", when: When::Is("kind", &["switch-reset"]), one_of: &[&["switch"]] },
    Need { section: "fault", when: When::Is("kind", &["vm-move"]), one_of: &[&["vm", "to"]] },
    Need { section: "fault", when: When::Is("kind", &["vm-stop"]), one_of: &[&["vm"]] },
    Need { section: "fault", when: When::Is("kind", &["duplicate-name"]), one_of: &[&["vm", "of"]] },
    Need { section: "fault", when: When::Is("kind", &["foreign-address"]), one_of: &[&["host", "of"]] },
    Need { section: "workload", when: When::Is("location", &["strided"]), one_of: &[&["stride"]] },
    Need { section: "storage", when: When::Has("disk_scheduler"), one_of: &[&["disk"]] },
    Need { section: "storage", when: When::Has("disk_interface"), one_of: &[&["disk"]] },
    Need { section: "storage", when: When::Has("disk_write_cache"), one_of: &[&["disk"]] },
    Need { section: "storage", when: When::Has("raid.level"), one_of: &[&["disk"]] },
    Need { section: "storage", when: When::Has("controller_cache.size"), one_of: &[&["disk"]] },
    Need { section: "fault", when: When::Is("kind", &["disk-failure", "latent-error"]), one_of: &[&["lun"]] },
    Need { section: "fault", when: When::Is("kind", &["cache-battery", "power-failure"]), one_of: &[&["storage"]] },
    Need { section: "ethernet_switch", when: When::Table("ecn"), one_of: &[&["from"]] },
    Need { section: "switch", when: When::Table("virtual_fabric"), one_of: &[&["chassis", "id", "ports"]] },
    Need { section: "back_end", when: When::Always, one_of: &[&["target", "portals"], &["host", "target_port"]] },
    Need { section: "back_end", when: When::Has("chap_name"), one_of: &[&["chap_secret_file"]] },
    Need { section: "back_end", when: When::Has("chap_secret_file"), one_of: &[&["chap_name"]] },
    Need { section: "back_end", when: When::Has("target_chap_name"), one_of: &[&["target_chap_secret_file"]] },
    Need { section: "back_end", when: When::Has("target_chap_secret_file"), one_of: &[&["target_chap_name"]] },
];

/// Returns the section with this name.
pub(crate) fn section(name: &str) -> Option<&'static SectionDef> {
    SECTIONS.iter().find(|s| s.name == name)
}

impl SectionDef {
    /// Returns the key with this path.
    pub fn key(&self, path: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.path == path)
    }

    /// Returns whether the keys `a` and `b` are alternatives, of which only one may be given.
    pub fn are_alternatives(&self, a: &str, b: &str) -> bool {
        let pairs = ALTERNATIVES.iter().filter(|(section, ..)| *section == self.name);
        pairs.into_iter().any(|&(_, one, other)| (one, other) == (a, b) || (other, one) == (a, b))
    }

    /// Returns the header of the section as written in a file.
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
    fn every_conditional_need_names_keys_of_its_section() {
        for need in NEEDS {
            let section = section(need.section).expect(need.section);
            let prefix = match need.when {
                When::Table(table) => format!("{table}."),
                _ => String::new(),
            };
            let given = match need.when {
                When::Always => None,
                When::Table(key) | When::Is(key, _) | When::Has(key) => Some(key),
            };
            if let (Some(given), When::Is(_, words)) = (given, &need.when) {
                let Some(Kind::Choice(known)) = section.key(given).map(|key| key.kind) else { panic!("{given}") };
                assert!(words.iter().all(|word| known.iter().any(|known| known.word == *word)), "{given}");
            }
            assert!(given.is_none_or(|key| section.key(key).is_some()), "{given:?}");
            for key in need.one_of.iter().copied().flatten() {
                assert!(section.key(&format!("{prefix}{key}")).is_some(), "{} {key}", need.section);
            }
        }
    }

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
