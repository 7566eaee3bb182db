//! Fabric OS: zone databases, as `cfgshow` prints them.

use super::facts::{Kind, Object, Objects, Os, wwn};
use super::fos_commands::{OBJECT_COMMANDS, command};
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
        ("transaction", _) => return Fate::Decoration,
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
        let base = reader.base(None);
        if lower.contains("no access") {
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
    if lower.starts_with("principal member") || lower.starts_with("peer member") || lower.starts_with("member") {
        reader.zones.principals = lower.starts_with("principal");
        return Fate::Decoration;
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
    if !text.split(';').map(str::trim).filter(|member| !member.is_empty()).all(is_member) {
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
    wwn(text).is_some() || is_port() || !text.is_empty() && text.len() <= 64 && text.chars().all(is_name)
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
    objects(reader, active).of_mut(kind).insert(name.to_owned(), Object { at, ..Object::default() });
    reader.zones = Cursor { active, object: Some((kind, name.to_owned())), ..Cursor::default() };
    let all = members.split(';').map(str::trim).filter(|member| !member.is_empty());
    match (members.trim().is_empty(), all.clone().all(is_member)) {
        (true, _) => Fate::Used,
        (false, true) => member_list(reader, members),
        (false, false) => Fate::bad("has a member in no form that the importer knows", "correct the line"),
    }
}

fn member_list(reader: &mut Reader<'_>, text: &str) -> Fate {
    let Some((kind, name)) = reader.zones.object.clone() else {
        return Fate::bad("belongs to no alias, zone or configuration", "complete the line before it");
    };
    let (active, principals) = (reader.zones.active, reader.zones.principals);
    let Some(object) = objects(reader, active).of_mut(kind).get_mut(&name) else {
        return Fate::Unknown;
    };
    for member in text.split(';').map(str::trim).filter(|member| !member.is_empty()) {
        let list = if principals { &mut object.principals } else { &mut object.members };
        list.push(member.to_owned());
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
