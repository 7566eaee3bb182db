//! The reference page of the lab file, generated from the definitions used by the parser.

use crate::forms::{self, Variant};
use crate::presets;
use crate::schema::{self, Fallback, Form, Key, Kind, SECTIONS, SectionDef, Word};
use crate::units::{self, Dimension};
use crate::value;
use std::fmt::Write;

/// Returns a Markdown page with every section and key of the lab file: type, range, default,
/// meaning and example. A test checks that `docs/src/reference/lab-file.md` equals this text.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for (section, one, other) in schema::ALTERNATIVES {
        let _ = writeln!(page, "- `{one}` and `{other}` of a {section}");
    }
    page.push('\n');
    for section in SECTIONS {
        print_section(section, &mut page);
    }
    print_forms(&mut page);
    page.push_str(EDITS);
    print_section(&schema::EDIT, &mut page);
    page.push_str("## Presets\n\n`preset` in `[lab]` sets defaults for every section; the file overrides them.\n\n");
    for (name, meaning) in presets::NAMES {
        let _ = writeln!(page, "- `{name}`: {meaning}");
        let text = presets::text(name).unwrap_or("");
        let body = text.split_once("\n\n").map_or("", |(_, body)| body).trim_end();
        if !body.is_empty() {
            let _ = writeln!(page, "\n  ```toml");
            for line in body.lines() {
                let _ = writeln!(page, "{}", format!("  {line}").trim_end());
            }
            page.push_str("  ```\n");
        }
    }
    print_element_presets(SWITCH_PRESETS, &presets::SWITCH_NAMES, presets::SWITCHES, &mut page);
    print_element_presets(HOST_PRESETS, &presets::HOST_NAMES, presets::HOSTS, &mut page);
    page
}

/// Prints the values of the presets of one section with their sources.
fn print_element_presets(introduction: &str, names: &[(&str, &str)], text: &'static str, page: &mut String) {
    page.push_str(introduction);
    for (name, meaning) in names {
        let _ = writeln!(page, "- `{name}`: {meaning}");
    }
    page.push_str("\n| preset | key | value | source |\n|---|---|---|---|\n");
    for (name, _) in names {
        for (key, value, source) in presets::lines_of(text, name) {
            let _ = writeln!(page, "| {name} | `{key}` | `{value}` | {} |", escape(source));
        }
    }
}

const INTRODUCTION: &str = r#"# The lab file

<!-- Printed by sanloom_lab::reference() from the definitions that parse the file. A test fails if this page differs. -->

A lab file describes a storage area network: switches, hosts, storage, links, zones, workloads and
faults. It is [TOML](https://toml.io). `sanloom check LAB` reports every mistake with its place and
a remedy.

**Units.** A value with a unit is text in quotes: `"50m"`, `"2GFC"`, `"32KiB"`, `"22.5k/s"`. `KB` and
`MB` are powers of 1000, `KiB` and `MiB` powers of 1024. A bare number in place of a value with a
unit is a mistake.

**Names.** Letters, digits, `-` and `_`. Switches, hosts and storage share one name space.

**Ranges.** `server{1..8}` stands for eight names, `disk{1..64..4}` for every fourth, `node{a,b}` for
two; `edge{01..16}` keeps the leading zeros. A range as the name of a section makes one element for
each name. Two ranges meet in the ends of a link, in the members of several zones, and in the hosts
of several workloads. Ranges of equal length are paired one to one. A single name is paired with
all. Otherwise the longer range must be a multiple of the shorter one, and `spread` selects how it
is distributed.

**Ports.** `server1:0` is the first HBA of `server1`, `disk1:0` the first port of `disk1`, `core:5`
port 5 of a switch. Without a number a link uses the next free port. `disk1:lun0` is the first LUN of
`disk1`.

**Layers.** The value of a key comes from the first of these layers that has it: `--set`, the table of
the name, the table of the range that covers the name, the table of `"*"`, the preset of the switch,
the preset of the lab, the defaults below.

**`--set KEY=VALUE`** overrides the file: `run.seed=7`, `workload.reads.depth=8`,
`switch.*.queueing=voq`, `host.server{1..4}.queue_depth=16`, `isl.ISL1.length=10km`, `fault.1.at=1s`
(the first `[[fault]]`). Names may be `*` or ranges; every name must exist in the lab. Quotes around
the value are optional.

Some keys exclude each other. An override of one of them removes the other from the file:

"#;

const SWITCH_PRESETS: &str = r#"
## Switch presets

`preset` in `[switch.NAME]` or `[switch."*"]` sets defaults for the switch. Keys of the file override
them, also keys of `[switch."*"]` and of `--set`. The preset overrides that of `[lab]`. A source is
the title of a publication ([Sources](sources.md#publications-about-switches)). *Assumption* marks a
number that we chose. In a real switch the ports of an ASIC share its buffers. Here each port has
its own, so give a long link `credits`.

"#;

const HOST_PRESETS: &str = r#"
## Host presets

`preset` in `[host.NAME]` or `[host."*"]` sets the costs of I/O for a class of machine. Keys of the
file override them. *Assumption* marks a number that we chose; measure your own machine before you
rely on processor times.

"#;

const EDITS: &str = r#"## Zone edits

`sanloom zone preview LAB --edit FILE` reads a file of its own, with one section only:

```toml
[[edit]]
action = "add"
zone = "backup"
members = "server2"

[[edit]]
action = "default"
default = "closed"
```

"#;

fn print_section(section: &SectionDef, page: &mut String) {
    let _ = writeln!(page, "## `{}`\n\n{}\n", section.heading(), section.meaning);
    if section.form == Form::List {
        page.push_str("There may be any number of them.\n\n");
    }
    page.push_str("| key | type | default | meaning | example |\n|---|---|---|---|---|\n");
    for key in section.keys {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | `{}` |",
            key.path,
            kind(&key.kind),
            fallback(key),
            escape(key.meaning),
            key.example
        );
    }
    page.push('\n');
    for key in section.keys {
        if let Kind::Choice(words) | Kind::ChoiceOrFile(words) = key.kind {
            print_words(key, words, page);
        }
    }
}

fn print_words(key: &Key, words: &[Word], page: &mut String) {
    let _ = writeln!(page, "Words of `{}`:\n", key.path);
    for word in words {
        let _ = writeln!(page, "- `\"{}\"`: {}", word.word, word.meaning);
    }
    page.push('\n');
}

fn print_forms(page: &mut String) {
    page.push_str(
        "## Arrival processes\n\n`arrivals` of a workload is one of these, or a list of several that run side by side on each host:\n\n",
    );
    print_variants(forms::ARRIVALS, page);
    page.push_str(
        "## Size distributions\n\n`size` of a workload is one size (`\"32KiB\"`), sizes with weights (`{ \"4KiB\" = 0.7, \"64KiB\" = 0.3 }`), or one of these. Every size must be a multiple of the block size of the targets.\n\n",
    );
    print_variants(forms::SIZES, page);
    page.push_str(
        "## Distributions of times\n\n`think_time` of a workload and `service_time` of a storage system are one time (`\"1ms\"`), or one of these:\n\n",
    );
    print_variants(forms::TIMES, page);
}

fn print_variants(variants: &[Variant], page: &mut String) {
    for variant in variants {
        let _ = writeln!(page, "- `{}`: {}", variant.example, variant.meaning);
    }
    page.push('\n');
}

fn kind(kind: &Kind) -> String {
    let range = |min: u64, max: u64| format!("{min} to {max}");
    match *kind {
        Kind::Text => "text".to_owned(),
        Kind::Integer { min, max } => format!("whole number, {}", range(min, max)),
        Kind::IntegerOr { word, min, max } => {
            format!("whole number, {}, or `\"{word}\"`", range(min, max))
        }
        Kind::Share => "share, 0 to 1".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::NumberFrom { min } => format!("number, at least {min}"),
        Kind::Bound => "number, or text with a unit".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Time => unit("time", &units::TIME),
        Kind::TimeOr { word } => format!("{}, or `\"{word}\"`", unit("time", &units::TIME)),
        Kind::Length => unit("length", &units::LENGTH),
        Kind::Size { min, max } => {
            let bound = |bytes| value::size(bytes).replace('"', "");
            format!("size, {} to {}", bound(min), bound(max))
        }
        Kind::PerSecond => unit("rate", &units::PER_SECOND),
        Kind::Clock => unit("frequency", &units::CLOCK),
        Kind::BitRate => unit("data rate", &units::BIT_RATE),
        Kind::LineRate => {
            let names: Vec<&str> = sanloom_fc::config::LineRate::ALL.iter().map(|rate| rate.name()).collect();
            format!("line rate: {}", names.join(", "))
        }
        Kind::LinkRate => {
            let names = sanloom_fc::config::LineRate::ALL.iter().map(|rate| rate.name());
            let ethernet = sanloom_fc::config::EthernetRate::ALL.iter().map(|rate| rate.name());
            let infiniband = sanloom_fc::config::InfinibandRate::ALL.iter().map(|rate| rate.name());
            format!("line rate: {}", names.chain(ethernet).chain(infiniband).collect::<Vec<_>>().join(", "))
        }
        Kind::Numbers { min, max } => format!("whole number, {}, or list of them", range(min, max)),
        Kind::Choice(_) => "word, see below".to_owned(),
        Kind::ChoiceOrFile(_) => "word, see below, or file".to_owned(),
        Kind::Preset => "name of a preset".to_owned(),
        Kind::HostPreset => "name of a host preset".to_owned(),
        Kind::SwitchPreset => "name of a switch preset".to_owned(),
        Kind::Wwn => "world-wide name, 16 hex digits".to_owned(),
        Kind::Pattern => "name or range".to_owned(),
        Kind::Patterns => "name, range, or list of them".to_owned(),
        Kind::Arrivals => "arrival process, see below".to_owned(),
        Kind::Sizes => "size or distribution, see below".to_owned(),
        Kind::Times => "time or distribution, see below".to_owned(),
        Kind::StopRule => "`\"ci PERCENT% of NUMBER\"`".to_owned(),
        Kind::Table => "table of the keys below".to_owned(),
    }
}

fn unit(noun: &str, dimension: &Dimension) -> String {
    format!("{noun} in {}", units::plain_units(dimension).join(", "))
}

fn fallback(key: &Key) -> String {
    match key.fallback {
        Fallback::Required => "must be given".to_owned(),
        Fallback::Value(text) => format!("`{text}`"),
        Fallback::Absent(meaning) => escape(meaning),
    }
}

/// Escapes bars, which would end a table cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}
