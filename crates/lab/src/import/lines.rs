//! Reader of command outputs: prompts, sections, and the fate of each line.

use super::facts::{At, Facts, Logical, Os, Sighting, ZoneBase};
use super::report::{Fate, FileAccount, Ledger, Note};
use super::{fos, fos_commands, fos_names, fos_transaction, fos_zones, nxos, nxos_config};
use std::collections::BTreeMap;

/// Kind of the output that the present line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Section {
    /// Nothing recognised yet.
    None,
    /// Output without use.
    Ignored(&'static str),
    SwitchShow,
    IslShow,
    TrunkShow,
    FabricShow,
    /// `nsshow` and `nscamshow`.
    NameServer,
    PortShow,
    /// `cfgshow` and its relatives.
    Zones,
    /// `defzone --show`.
    DefaultZone,
    Flogi,
    Fcns,
    Topology,
    Domains,
    Brief,
    DeviceAliases,
    /// `show zoneset`, `show zone`: `true` for those in force.
    ZoneSets(bool),
    ZoneStatus,
    Config,
}

/// State of the reader of one file.
pub(super) struct Reader<'f> {
    pub facts: &'f mut Facts,
    pub file: u32,
    pub line: u32,
    /// White space before the present line, in characters.
    pub indent: usize,
    /// Sighting that the present output belongs to.
    pub seen: usize,
    /// Sightings of the file that have had a name, by the name.
    by_name: BTreeMap<String, Vec<usize>>,
    /// The last sighting of the file with a fabric ID, by the ID.
    by_fid: BTreeMap<u16, usize>,
    pub section: Section,
    pub columns: fos::Columns,
    pub port: Option<u16>,
    /// The port of `portshow` is online.
    pub is_port_online: bool,
    /// First port of the present trunk of `trunkshow`.
    pub trunk: Option<u16>,
    /// Entry of a name server that the attributes belong to.
    pub entry: Option<usize>,
    pub zones: fos_zones::Cursor,
    /// Zone databases of the present output, by sighting and VSAN.
    pub bases: BTreeMap<(usize, Option<u16>), usize>,
    pub transactions: fos_transaction::Transactions,
    pub vsan: Option<u16>,
    /// Fabric ID of the present output (Fabric OS).
    pub fid: Option<u16>,
    pub nx: nxos_config::Cursor,
    /// Outputs that the present line has begun.
    pub begun: Option<&'static str>,
}

impl Reader<'_> {
    pub fn at(&self) -> At {
        At { file: self.file, line: self.line }
    }

    pub fn sighting(&mut self) -> &mut Sighting {
        &mut self.facts.sightings[self.seen]
    }

    /// Begins an output.
    pub fn begin(&mut self, section: Section, what: &'static str) {
        self.section = section;
        self.begun = Some(what);
    }

    /// Gives the present switch a name.
    pub fn name(&mut self, name: &str) {
        let seen = self.seen;
        self.sighting().name = Some(name.to_owned());
        let known = self.by_name.entry(name.to_owned()).or_default();
        if !known.contains(&seen) {
            known.push(seen);
        }
    }

    /// Makes the present switch a logical one.
    pub fn set_logical(&mut self, logical: Logical) {
        let seen = self.seen;
        self.sighting().logical = Some(logical);
        let last = self.by_fid.entry(logical.fid).or_insert(seen);
        *last = seen.max(*last);
    }

    /// Turns to the switch `name`, which is new unless the file has shown it before.
    pub fn see(&mut self, name: &str, os: Os) {
        let (at, fid) = (self.at(), self.fid);
        let fits = |seen: &Sighting| match (&seen.logical, fid) {
            (Some(logical), Some(fid)) => logical.fid == fid,
            _ => true,
        };
        let current = self.sighting();
        if current.name.is_none() && fits(current) {
            current.os = current.os.or(Some(os));
            self.name(name);
        } else {
            let sightings = &self.facts.sightings;
            let same = |seen: &usize| sightings[*seen].name.as_deref() == Some(name) && fits(&sightings[*seen]);
            let known = self.by_name.get(name).into_iter().flatten().copied().filter(same).min();
            self.seen = known.unwrap_or(sightings.len());
            if known.is_none() {
                self.facts.sightings.push(sighting(at, None, Some(os)));
                self.name(name);
            }
        }
        if let Some(fid) = fid
            && self.sighting().logical.is_none()
        {
            self.set_logical(Logical::of(at, fid));
        }
    }

    /// Turns to the logical switch of a fabric ID: the last one of the file, or a new one.
    pub fn turn(&mut self, fid: u16) {
        self.fid = Some(fid);
        let at = self.at();
        if self.sighting().logical.is_some_and(|own| own.fid == fid) {
            return;
        }
        if let Some(index) = self.by_fid.get(&fid) {
            self.seen = *index;
            return;
        }
        let current = self.sighting();
        if current.name.is_some() || current.wwn.is_some() || current.domain.is_some() || current.logical.is_some() {
            self.facts.sightings.push(sighting(at, None, Some(Os::FabricOs)));
            self.seen = self.facts.sightings.len() - 1;
        }
        self.set_logical(Logical::of(at, fid));
    }

    /// The zone database that the present output shows.
    pub fn base(&mut self, vsan: Option<u16>) -> &mut ZoneBase {
        let (at, seen) = (self.at(), self.seen);
        let index = *self.bases.entry((seen, vsan)).or_insert_with(|| {
            self.facts.zones.push(ZoneBase { at, seen, vsan, ..ZoneBase::default() });
            self.facts.zones.len() - 1
        });
        &mut self.facts.zones[index]
    }

    pub fn is(&mut self, os: Os) {
        let sighting = self.sighting();
        sighting.os = sighting.os.or(Some(os));
    }
}

pub(super) fn sighting(at: At, name: Option<String>, os: Option<Os>) -> Sighting {
    Sighting {
        at,
        os,
        name,
        wwn: None,
        domain: None,
        domain_line: None,
        is_gateway: false,
        interfaces: BTreeMap::new(),
        address: None,
        logical: None,
    }
}

/// Reads one file of command outputs.
pub(super) fn read(file: u32, text: &str, mut ledger: Ledger, facts: &mut Facts, notes: &mut Vec<Note>) -> FileAccount {
    facts.sightings.push(sighting(At { file, line: 0 }, None, None));
    let seen = facts.sightings.len() - 1;
    let mut reader = Reader {
        facts,
        file,
        line: 0,
        indent: 0,
        seen,
        by_name: BTreeMap::new(),
        by_fid: BTreeMap::new(),
        section: Section::None,
        columns: fos::Columns::default(),
        port: None,
        is_port_online: false,
        trunk: None,
        entry: None,
        zones: fos_zones::Cursor::default(),
        bases: BTreeMap::new(),
        transactions: fos_transaction::Transactions::default(),
        vsan: None,
        fid: None,
        nx: nxos_config::Cursor::default(),
        begun: None,
    };
    for raw in text.lines() {
        reader.line += 1;
        let clean = clean(raw);
        reader.indent = clean.chars().take_while(|c| c.is_whitespace()).count();
        let fate = fate(&mut reader, &clean);
        if let Some(what) = reader.begun.take() {
            ledger.contains(what);
        }
        ledger.enter(reader.line, &clean, fate, notes);
    }
    ledger.close(notes)
}

/// Removes control sequences of terminals and the prompts of pagers.
fn clean(raw: &str) -> String {
    // Most lines of most files have nothing to remove.
    let is_plain = |byte| !matches!(byte, b'\x07' | b'\x08' | b'\r' | b'\x1b');
    if raw.bytes().all(is_plain) && !raw.contains("--More--") {
        return raw.trim_end().to_owned();
    }
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // ESC, `[`, parameters, and a final letter.
                if chars.clone().next() == Some('[') {
                    chars.find(char::is_ascii_alphabetic);
                }
            }
            '\r' | '\u{7}' => {}
            '\u{8}' => _ = text.pop(),
            _ => text.push(c),
        }
    }
    text.replace("--More--", "").trim_end().to_owned()
}

fn fate(reader: &mut Reader<'_>, line: &str) -> Fate {
    let text = line.trim();
    if let Some(fate) = fos_zones::members_below(reader, text) {
        return fate;
    }
    let is_rule = |c: char| "-=+*_|~ \t".contains(c);
    if text.chars().all(is_rule) {
        return Fate::Decoration;
    }
    if let Some(context) = text.strip_prefix("CURRENT CONTEXT") {
        // `CURRENT CONTEXT -- 1 , 10` of supportshow: number and fabric ID of a logical switch.
        return match context.rsplit_once(',').map(|(_, fid)| fabric_id(fid)) {
            Some(Some(fid)) => {
                reader.turn(fid);
                Fate::Decoration
            }
            Some(None) => Fate::bad("has no fabric ID from 1 to 128", "correct the line"),
            None => Fate::Decoration,
        };
    }
    if text == "{" || text == "}" {
        return Fate::Decoration;
    }
    if let Some(fate) = fos_transaction::answer(reader, text) {
        return fate;
    }
    if let Some((name, command)) = prompt(text) {
        fos_transaction::prompt(reader);
        if let Some((name, os, fid)) = name {
            reader.fid = fid;
            reader.see(name, os);
        }
        return match command.is_empty() {
            true => Fate::Decoration,
            false => self::command(reader, command).unwrap_or_else(|| {
                reader.section = Section::Ignored("output of commands that the importer does not know");
                if fos_commands::is_about_zones(command.split_whitespace().next().unwrap_or("")) {
                    return fos_commands::unknown();
                }
                Fate::Ignored("commands that the importer does not know")
            }),
        };
    }
    fos_transaction::output(reader);
    // `"switchshow" on FID 10:` of fosexec.
    if let Some((quoted, rest)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"'))
        && let Some(fid) = rest.trim_start().strip_prefix("on FID ").and_then(|rest| rest.strip_suffix(':'))
    {
        if let Some(fid) = fabric_id(fid) {
            reader.turn(fid);
        }
        if let Some(fate) = command(reader, quoted) {
            return fate;
        }
    }
    // `/fabos/cliexec/switchshow :` of supportshow, and "`show flogi database`" of tech-support.
    let bare = text.trim_matches('`').trim_end_matches(':').trim().trim_matches('-').trim();
    let bare = bare.rsplit_once('/').map_or(bare, |(_, last)| if bare.starts_with('/') { last } else { bare });
    if is_known(bare)
        && let Some(fate) = command(reader, bare)
    {
        return fate;
    }
    fos::begins(reader, text)
        .or_else(|| fos_names::begins(reader, text))
        .or_else(|| fos_zones::begins(reader, text))
        .or_else(|| nxos::begins(reader, text))
        .or_else(|| nxos_config::begins(reader, text))
        .unwrap_or_else(|| inside(reader, line))
}

fn inside(reader: &mut Reader<'_>, line: &str) -> Fate {
    let text = line.trim();
    match reader.section {
        Section::None => Fate::Unknown,
        Section::Ignored(topic) => Fate::Ignored(topic),
        Section::SwitchShow => fos::switch_line(reader, text),
        Section::IslShow => fos::isl_line(reader, text),
        Section::TrunkShow => fos::trunk_line(reader, text),
        Section::FabricShow => fos::fabric_line(reader, text),
        Section::NameServer => fos_names::line(reader, text),
        Section::PortShow => fos_names::port_line(reader, text),
        Section::Zones => fos_zones::line(reader, line),
        Section::DefaultZone => fos_zones::default_line(reader, text),
        Section::Flogi => nxos::flogi_line(reader, text),
        Section::Fcns => nxos::fcns_line(reader, text),
        Section::Topology => nxos::topology_line(reader, text),
        Section::Domains => nxos::domain_line(reader, text),
        Section::Brief => nxos::brief_line(reader, text),
        Section::DeviceAliases => nxos_config::alias_line(reader, text),
        Section::ZoneSets(_) => nxos::zone_line(reader, text),
        Section::ZoneStatus => nxos::status_line(reader, text),
        Section::Config => nxos_config::line(reader, line),
    }
}

/// A fabric ID of Fabric OS.
pub(super) fn fabric_id(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|fid| (1..=128).contains(fid))
}

/// The name of the switch in a prompt, and its fabric ID if the prompt has one.
type PromptName<'t> = (&'t str, Os, Option<u16>);

/// Splits a prompt from the command behind it: the name of the switch, if the prompt has one, and
/// the command.
fn prompt(text: &str) -> Option<(Option<PromptName<'_>>, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b'>' | b'#'))?;
    let (head, command) = (&text[..end], text[end + 1..].trim());
    let good = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b)) && part.len() <= 64
    };
    if text.as_bytes()[end] == b'>' {
        if ["admin", "root", "user", "factory"].contains(&head) {
            return Some((None, command));
        }
        let parts: Vec<&str> = head.split(':').collect();
        let is_prompt = (2..=4).contains(&parts.len()) && parts.iter().all(|part| good(part));
        let fid = parts.get(1).and_then(|part| part.strip_prefix("FID")).and_then(fabric_id);
        // A row such as `1:6->6` is no prompt.
        let has_name = parts[0].starts_with(|c: char| c.is_ascii_alphabetic());
        return (is_prompt && has_name).then_some((Some((parts[0], Os::FabricOs, fid)), command));
    }
    let (name, mode) = head.split_once('(').unwrap_or((head, ")"));
    (good(name) && mode.ends_with(')')).then_some((Some((name, Os::NxOs, None)), command))
}

/// Outputs of Fabric OS without use, by command.
const USELESS: &[(&str, &str)] = &[
    ("porterrshow", "port error counters"),
    ("portstatsshow", "port counters"),
    ("portstats64show", "port counters"),
    ("portperfshow", "port rates"),
    ("sfpshow", "optics"),
    ("portcfgshow", "port settings of portcfgshow"),
    ("version", "versions"),
    ("firmwareshow", "versions"),
    ("chassisshow", "hardware"),
    ("sensorshow", "hardware"),
    ("psshow", "hardware"),
    ("fanshow", "hardware"),
    ("tempshow", "hardware"),
    ("uptime", "time of operation"),
    ("licenseshow", "licences"),
    ("errdump", "event log"),
    ("errshow", "event log"),
    ("switchstatusshow", "health"),
    ("cfgtransshow", "zone transactions"),
    ("cfgsize", "size of the zone database"),
    ("nsallshow", "addresses of nsallshow"),
    ("topologyshow", "routes"),
    ("urouteshow", "routes"),
    ("lscfg", "ports of logical switches, which their own switchshow has"),
];

fn is_known(text: &str) -> bool {
    // A colon or equals sign belongs to an output, such as `version: 1.0`.
    if text.bytes().any(|byte| matches!(byte, b':' | b'=' | b';' | b'"')) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    let first = words.next().unwrap_or("");
    let has_only_options = words.all(|word| word.starts_with('-') || word.parse::<u32>().is_ok() || word.contains('/'));
    let fos =
        ["switchshow", "islshow", "trunkshow", "fabricshow", "nsshow", "nscamshow", "portshow", "cfgshow", "zoneshow"];
    let fos = fos.contains(&first) || ["alishow", "cfgactvshow"].contains(&first);
    let useless = USELESS.iter().any(|(name, _)| *name == first);
    let shows = lower == "defzone --show";
    (fos || useless || shows) && has_only_options || lower.starts_with("show ") && text.len() < 80
}

/// Begins the output of a command. `None` if the command is not known.
fn command(reader: &mut Reader<'_>, command: &str) -> Option<Fate> {
    if let Some(fate) = fos_commands::command(reader, command) {
        reader.section = Section::Ignored("output of zone commands");
        return Some(fate);
    }
    let lower = command.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    let first = words.next()?;
    let (section, what) = match first {
        "switchshow" => (Section::SwitchShow, "switchshow"),
        "islshow" => (Section::IslShow, "islshow"),
        "trunkshow" => (Section::TrunkShow, "trunkshow"),
        "fabricshow" => (Section::FabricShow, "fabricshow"),
        "nsshow" | "nscamshow" => (Section::NameServer, "nsshow"),
        "portshow" => {
            reader.is_port_online = false;
            reader.port = words.next().and_then(|word| word.rsplit('/').next()).and_then(|word| word.parse().ok());
            (Section::PortShow, "portshow")
        }
        "cfgshow" | "zoneshow" | "alishow" | "cfgactvshow" | "zone"
            if first != "zone" || lower.starts_with("zone --") =>
        {
            fos_transaction::forget(reader);
            reader.zones = fos_zones::Cursor::default();
            reader.bases.clear();
            if first == "cfgactvshow" {
                reader.zones.active = true;
            }
            (Section::Zones, "cfgshow")
        }
        "defzone" => (Section::DefaultZone, "defzone --show"),
        "show" | "sh" => return Some(nxos::command(reader, &lower)),
        "exit" | "end" | "logout" if reader.sighting().os == Some(Os::FabricOs) => {
            reader.section = Section::Ignored("lines behind the end of a session");
            return Some(Fate::Decoration);
        }
        _ => {
            if let Some((_, topic)) = USELESS.iter().find(|(name, _)| *name == first) {
                reader.section = Section::Ignored(topic);
                return Some(Fate::Ignored(topic));
            }
            return nxos_config::command(reader, command);
        }
    };
    reader.begin(section, what);
    reader.is(Os::FabricOs);
    Some(Fate::Used)
}
