//! Fabric OS: zone databases, as `cfgshow` prints them and as commands change them.

use super::facts::{At, Kind, Object, Objects, Os, wwn};
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
    if header(text).is_none() {
        // Zone commands without a prompt, as in a script.
        let word = text.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
        let kinds = ["ali", "zone", "cfg"].iter().find_map(|kind| word.strip_prefix(kind)).unwrap_or("");
        let actions = ["create", "add", "remove", "delete", "enable", "disable", "save"];
        let is_command = actions.contains(&kinds) || word == "defzone";
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
    if text.contains(' ') && !text.contains(';') {
        return Fate::Unknown;
    }
    member_list(reader, text)
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
    reader.zones = Cursor { active, object: Some((kind, name.to_owned())), principals: false };
    match members.trim().is_empty() {
        true => Fate::Used,
        false => member_list(reader, members),
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
/// own list. The last two bytes of the property member are their number.
pub(super) fn split_peers(object: &mut Object) {
    let is_property = |member: &String| wwn(member).is_some_and(|name| name >> 24 == 0x00_0200_0000);
    let Some(index) = object.members.iter().position(is_property) else { return };
    let property = wwn(&object.members.remove(index)).unwrap_or_default();
    if object.principals.is_empty() {
        let count = usize::from(property as u16).min(object.members.len() - index.min(object.members.len()));
        object.principals = object.members.drain(index..index + count).collect();
    }
}

/// Applies a zoning command, such as `zonecreate "z", "a; b"`. `None`: another command.
pub(super) fn command(reader: &mut Reader<'_>, command: &str) -> Option<Fate> {
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let lower = word.to_ascii_lowercase();
    let at = reader.at();
    match lower.as_str() {
        "cfgsave" | "cfgtransabort" => return Some(Fate::Used),
        "cfgdisable" => {
            let base = reader.base(None);
            (base.enabled, base.is_disabled) = (None, true);
            return Some(Fate::Used);
        }
        "cfgclear" => {
            reader.base(None).defined = Objects::default();
            return Some(Fate::Used);
        }
        "cfgenable" => {
            let name = rest.trim().trim_start_matches("-f").trim().trim_matches('"');
            if name.is_empty() {
                return Some(Fate::bad("names no configuration", "complete the command"));
            }
            let base = reader.base(None);
            (base.enabled, base.is_disabled) = (Some((name.to_owned(), at)), false);
            return Some(Fate::Used);
        }
        "defzone" => {
            let base = reader.base(None);
            let closed = rest.contains("--noaccess");
            if !closed && !rest.contains("--allaccess") {
                return Some(Fate::Ignored("queries of the default zone"));
            }
            base.default = Some((if closed { ZoneDefault::Closed } else { ZoneDefault::OpenWithoutZones }, at));
            return Some(Fate::Used);
        }
        _ => {}
    }
    let kinds = [("ali", Kind::Alias), ("zone", Kind::Zone), ("cfg", Kind::Config)];
    let (kind, action) = kinds.iter().find_map(|(prefix, kind)| Some((*kind, lower.strip_prefix(prefix)?)))?;
    if !["create", "add", "remove", "delete"].contains(&action) {
        return None;
    }
    reader.is(Os::FabricOs);
    reader.begun = Some("zone commands");
    let Some((name, object)) = arguments(rest, at) else {
        return Some(Fate::bad("has no name", "complete the command"));
    };
    let map = reader.base(None).defined.of_mut(kind);
    Some(apply(map, action, kind, &name, object))
}

fn apply(
    map: &mut std::collections::BTreeMap<String, Object>,
    action: &str,
    kind: Kind,
    name: &str,
    object: Object,
) -> Fate {
    let noun = kind.noun();
    if action == "create" {
        if map.contains_key(name) {
            return Fate::bad(format!("creates a {noun} that exists"), "remove one of the two definitions");
        }
        map.insert(name.to_owned(), object);
        return Fate::Used;
    }
    let Some(found) = map.get_mut(name) else {
        return Fate::bad(format!("changes a {noun} that no input defines"), "add the output of cfgshow before it");
    };
    let merge = |list: &mut Vec<String>, others: Vec<String>| match action {
        "add" => others.into_iter().for_each(|other| {
            if !list.contains(&other) {
                list.push(other);
            }
        }),
        _ => list.retain(|member| !others.contains(member)),
    };
    merge(&mut found.members, object.members);
    merge(&mut found.principals, object.principals);
    if action == "delete" || action == "remove" && found.members.is_empty() && found.principals.is_empty() {
        map.remove(name);
    }
    Fate::Used
}

/// Reads `"name", "member; member"`, or `--peerzone name -principal "…" -members "…"`.
fn arguments(text: &str, at: At) -> Option<(String, Object)> {
    let list = |text: &str| -> Vec<String> {
        let members = text.split(';').map(|member| member.trim().trim_matches('"').trim().to_owned());
        members.filter(|member| !member.is_empty()).collect()
    };
    let text = text.trim();
    let mut object = Object { at, ..Object::default() };
    if let Some(rest) = text.strip_prefix("--peerzone") {
        let mut parts = rest.split(" -");
        let name = parts.next()?.trim().trim_matches('"').to_owned();
        for part in parts {
            let (option, value) = part.split_once(char::is_whitespace)?;
            match option {
                "principal" => object.principals = list(value.trim().trim_matches('"')),
                "members" | "member" => object.members = list(value.trim().trim_matches('"')),
                _ => return None,
            }
        }
        return (!name.is_empty()).then_some((name, object));
    }
    let (name, members) = text.split_once(',').unwrap_or((text, ""));
    let name = name.trim().trim_matches('"').trim().to_owned();
    object.members = list(members.trim().trim_matches('"'));
    (!name.is_empty()).then_some((name, object))
}
