//! Fabric OS: zone databases, as `cfgshow` prints them.

use super::facts::{Kind, Object, Objects, Os, wwn};
use super::fos_commands::{OBJECT_COMMANDS, command};
use super::fos_transaction;
use super::lines::{Reader, Section};
use super::report::Fate;
use sanloom_fc::config::ZoneDefault;

/// Place in the output of `cfgshow`.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// In the effective configuration.
    pub active: bool,
    object: Option<(Kind, String)>,
    /// Members that follow are principals.
    principals: bool,
}

/// A line of `defzone --show`.
pub(super) fn default_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let Some((key, value)) = text.split_once('-') else { return Fate::Unknown };
    match (key.trim(), value.trim()) {
        ("committed", "No Access") => super::fos_commands::show_default(reader, ZoneDefault::Closed),
        ("committed", "All Access") => super::fos_commands::show_default(reader, ZoneDefault::OpenWithoutZones),
        ("transaction", _) => return Fate::Ignored("open transactions of the default zone"),
        _ => return Fate::Unknown,
    }
    Fate::Used
}

/// Recognises the beginning of an output.
pub(super) fn begins(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    let is_defined = text.starts_with("Defined configuration:");
    if is_defined || text.starts_with("Effective configuration:") {
        if is_defined || reader.section != Section::Zones {
            reader.bases.clear();
        }
        // No question is open behind an output.
        fos_transaction::forget(reader);
        reader.begin(Section::Zones, "cfgshow");
        reader.is(Os::FabricOs);
        reader.zones = Cursor { active: !is_defined, ..Cursor::default() };
        return Some(if text.contains("configuration: ") { line(reader, text) } else { Fate::Decoration });
    }
    if text.starts_with("Default Zone Access Mode") {
        reader.begin(Section::DefaultZone, "defzone --show");
        reader.is(Os::FabricOs);
        return Some(Fate::Decoration);
    }
    if header(text).is_none() {
        // Zone commands without a prompt, as in a script.
        let word = text.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
        let kinds = ["ali", "zone", "cfg"].iter().find_map(|kind| word.strip_prefix(kind)).unwrap_or("");
        let actions = ["create", "add", "remove", "delete", "enable", "disable", "save", "clear", "transabort"];
        let is_command = actions.contains(&kinds) || word == "defzone" || OBJECT_COMMANDS.contains(&word.as_str());
        return if is_command { command(reader, text) } else { None };
    }
    if reader.section != Section::Zones {
        fos_transaction::forget(reader);
        reader.zones = Cursor::default();
        reader.bases.clear();
        reader.begin(Section::Zones, "cfgshow");
        reader.is(Os::FabricOs);
    }
    Some(line(reader, text))
}

fn header(text: &str) -> Option<(Kind, &str)> {
    let (key, rest) = text.split_once(':')?;
    let kind = match key {
        "cfg" => Kind::Config,
        "zone" => Kind::Zone,
        "alias" => Kind::Alias,
        _ => return None,
    };
    Some((kind, rest.trim()))
}

/// Returns true if the heading of a list of members, without its colon, is that of principals;
/// `None` for other texts. The colon tells it from the name of an object.
fn is_of_principals(heading: &str) -> Option<bool> {
    match heading.trim_end().to_ascii_lowercase().as_str() {
        "principal member(s)" | "principal members" | "principal member" => Some(true),
        "peer member(s)" | "peer members" | "peer member" | "member(s)" | "members" | "member" => Some(false),
        _ => None,
    }
}

/// A line of members below an object: an indented list of members and nothing else. Names of zone
/// objects may be words that begin an output or a command elsewhere.
pub(super) fn members_below(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    let is_below = reader.section == Section::Zones && reader.indent > 0 && reader.zones.object.is_some();
    if !is_below || !all_members(text) {
        return None;
    }
    Some(member_list(reader, text))
}

/// True for a list of members, of which there is at least one.
fn all_members(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim).filter(|member| !member.is_empty()).peekable();
    parts.peek().is_some() && parts.all(is_member)
}

fn objects<'r>(reader: &'r mut Reader<'_>, active: bool) -> &'r mut Objects {
    let base = reader.base(None);
    if active { &mut base.active } else { &mut base.defined }
}

/// Reads a line of `cfgshow`, `zoneshow`, `alishow` or `cfgactvshow`.
pub(super) fn line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let at = reader.at();
    if lower.contains("no configuration in effect") || lower.contains("no effective configuration") {
        let base = reader.base(None);
        base.is_disabled = true;
        if lower.contains("(no access)") {
            base.default = Some((ZoneDefault::Closed, at));
        }
        return Fate::Used;
    }
    if lower.contains("no configuration defined") || lower.starts_with("default zone:") {
        let is_closed = lower.contains("no access");
        if lower.starts_with("default zone:") && !is_closed && !lower.contains("all access") {
            return Fate::bad("is neither `No Access` nor `All Access`", "correct the line");
        }
        let base = reader.base(None);
        if is_closed {
            base.default = Some((ZoneDefault::Closed, at));
        }
        return Fate::Used;
    }
    if let Some((kind, rest)) = header(text) {
        return head(reader, kind, rest);
    }
    if lower.starts_with("property member:") {
        return member_list(reader, text.split_once(':').map_or("", |(_, rest)| rest));
    }
    if let Some((heading, rest)) = text.split_once(':')
        && let Some(principals) = is_of_principals(heading)
    {
        reader.zones.principals = principals;
        return if rest.trim().is_empty() { Fate::Decoration } else { member_list(reader, rest) };
    }
    if lower.starts_with("created by") {
        return Fate::Ignored("creators of peer zones");
    }
    if lower.starts_with("ti zone name:") {
        reader.zones.object = None;
        return Fate::bad("is a traffic isolation zone, which a lab cannot express", "leave it out");
    }
    let traffic_isolation = ["port list:", "status:", "configured status:", "enabled status:", "defined ti zone"];
    if traffic_isolation.iter().any(|key| lower.starts_with(key)) {
        reader.zones.object = None;
        return Fate::Ignored("ports and states of traffic isolation zones");
    }
    if !all_members(text) {
        // Members behind a heading that is not known belong to no object.
        reader.zones.object = None;
        return Fate::Unknown;
    }
    member_list(reader, text)
}

/// True for the text of a member: a world-wide name, domain and port, or the name of an object.
fn is_member(text: &str) -> bool {
    let text = text.trim_matches('"');
    let is_name = |c: char| c.is_ascii_alphanumeric() || "$-^_.".contains(c);
    let is_port = || {
        let parts = text.split_once(',');
        parts.is_some_and(|(domain, port)| domain.trim().parse::<u8>().is_ok() && port.trim().parse::<u16>().is_ok())
    };
    // A rule of dashes is no name.
    let is_named = || !text.is_empty() && text.len() <= 64 && !text.starts_with('-') && text.chars().all(is_name);
    wwn(text).is_some() || is_port() || is_named()
}

fn head(reader: &mut Reader<'_>, kind: Kind, rest: &str) -> Fate {
    let (name, members) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim_matches('"');
    reader.zones.object = None;
    if name.is_empty() {
        return Fate::bad("has no name", "complete the line");
    }
    let (at, active) = (reader.at(), reader.zones.active);
    if active && kind == Kind::Config {
        reader.base(None).enabled = Some((name.to_owned(), at));
    }
    let map = objects(reader, active).of_mut(kind);
    if map.contains_key(name) {
        // A second definition in one output: its members are compared with those of the first one.
        reader.bases.clear();
        reader.base(None);
    }
    let (base, object) = (reader.base(None), Object { at, ..Object::default() });
    match active {
        true => _ = base.active.of_mut(kind).insert(name.to_owned(), object),
        false => base.put(kind, name, object),
    }
    reader.zones = Cursor { active, object: Some((kind, name.to_owned())), ..Cursor::default() };
    match (members.trim().is_empty(), all_members(members)) {
        (true, _) => Fate::Used,
        (false, true) => member_list(reader, members),
        (false, false) => Fate::bad("has a member in no form that the importer knows", "correct the line"),
    }
}

fn member_list(reader: &mut Reader<'_>, text: &str) -> Fate {
    let Some((kind, name)) = reader.zones.object.clone() else {
        return Fate::bad("belongs to no alias, zone or configuration", "complete the line before it");
    };
    let (at, active, principals) = (reader.at(), reader.zones.active, reader.zones.principals);
    if active && kind == Kind::Config {
        return Fate::bad("lists zones of the configuration in force, which follow it", "remove the line");
    }
    let Some(object) = objects(reader, active).of_mut(kind).get_mut(&name) else {
        return Fate::Unknown;
    };
    let members = text.split(';').map(str::trim).filter(|member| !member.is_empty());
    let members: Vec<String> = members.map(str::to_owned).collect();
    let (list, first) = (if principals { &mut object.principals } else { &mut object.members }, object.at);
    list.extend_from_slice(&members);
    if !active {
        reader.base(None).refer(kind, &name, members.iter());
    }
    if first != at {
        let names = members.into_iter().filter(|member| !member.contains([':', ',']));
        reader.facts.member_lines.extend(names.map(|name| ((first, name), at)));
    }
    Fate::Used
}

/// Moves the principals of a peer zone, which `cfgshow` lists behind a property member, to their
/// own list. The last byte of the property member is the number of their world-wide names, of which
/// an alias can have several.
pub(super) fn split_peers(object: &mut Object, names_of: impl Fn(&str) -> usize) {
    let is_property = |member: &String| wwn(member).is_some_and(|name| name >> 24 == 0x00_0200_0000);
    let Some(index) = object.members.iter().position(is_property) else { return };
    let property = wwn(&object.members.remove(index)).unwrap_or_default();
    if !object.principals.is_empty() {
        return;
    }
    let (wanted, mut names, mut end) = (usize::from(property as u8), 0, index);
    while names < wanted && end < object.members.len() {
        names += names_of(&object.members[end]).max(1);
        end += 1;
    }
    object.principals = object.members.drain(index..end).collect();
}
