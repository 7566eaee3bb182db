//! NX-OS: the configuration, as `show running-config` prints it and as commands change it.

use super::facts::{Kind, Object, Objects, Os, wwn};
use super::lines::{Reader, Section};
use super::nxos_interfaces::{expand, interface, interface_line, is_interface_line, no_interfaces};
use super::report::Fate;
use sanloom_fc::config::ZoneDefault;
use std::collections::BTreeSet;

/// Place in a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// In the section of the zones in force.
    pub active: bool,
    pub object: Option<(Kind, u16, String)>,
    /// Zone set of `show zoneset` that the zones belong to.
    pub set: Option<(u16, String)>,
    /// Zone of `show zone` that the lines belong to: indentation, VSAN and name.
    pub zone: Option<(usize, u16, String)>,
    /// Indentation of an alias that is listed within its zone.
    pub nested: Option<usize>,
    pub interfaces: Vec<String>,
    pub in_interface: bool,
    /// The line is a command at a prompt.
    pub is_command: bool,
    /// Interfaces whose speed the configuration has set. A second line replaces the first one.
    pub set_speeds: BTreeSet<String>,
    /// The line of the present interfaces cannot be read.
    pub is_unread: bool,
    /// In the management interface.
    pub in_management: bool,
    /// In an object of inter-VSAN routing.
    in_ivr: bool,
    /// The configuration has named its switch.
    has_name: bool,
}

/// Recognises the beginning of a configuration.
pub(super) fn begins(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    // All words below begin with such a letter.
    if reader.section == Section::Config || !text.starts_with(|c: char| c == '!' || c.is_ascii_lowercase()) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words[0] == "interface" && !is_interface_line(reader, &words) {
        return None;
    }
    let is_zone = matches!(words[..], ["zone" | "zoneset" | "fcalias", "name", _, "vsan", _, ..]);
    match reader.section {
        Section::ZoneSets(_) if is_zone || words[0] == "device-alias" => return None,
        Section::DeviceAliases if text.starts_with("device-alias name") => return None,
        _ => {}
    }
    if is_zone && reader.section != Section::ZoneSets(true) {
        // Members tell a configuration from the output of `show zoneset`; both are read alike.
        reader.bases.clear();
        reader.nx = Cursor::default();
        reader.begin(Section::ZoneSets(false), "zones of NX-OS");
        reader.is(Os::NxOs);
        return Some(super::nxos::zone_line(reader, text));
    }
    let is_config = matches!(
        words[..],
        ["!Command:", ..]
            | ["!Active" | "!Full", "Zone", ..]
            | ["switchname" | "hostname", _]
            | ["feature", _, ..]
            | ["interface", _, ..]
            | ["vsan", "database"]
            | ["device-alias", "database" | "name" | "mode" | "commit", ..]
            | ["fcdomain", ..]
            | ["configure" | "conf", ..]
            | ["zoneset", "activate", ..]
            | ["zone", "commit" | "default-zone" | "mode" | "smart-zoning" | "merge-control", ..]
            | ["no", "zone" | "zoneset" | "device-alias" | "fcalias", ..]
            | ["terminal", "dont-ask"]
    );
    is_config.then(|| {
        if !matches!(reader.section, Section::ZoneSets(_)) {
            reader.bases.clear();
            reader.nx = Cursor::default();
        }
        reader.begin(Section::Config, "configuration of NX-OS");
        reader.is(Os::NxOs);
        line(reader, text)
    })
}

/// A command at a prompt. `None` if it is no configuration command.
pub(super) fn command(reader: &mut Reader<'_>, command: &str) -> Option<Fate> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let known = [
        "zone",
        "zoneset",
        "member",
        "device-alias",
        "vsan",
        "interface",
        "no",
        "fcalias",
        "switchport",
        "fcdomain",
        "exit",
        "end",
        "conf",
        "configure",
        "copy",
        "do",
        "channel-group",
        "shutdown",
        "switchname",
        "ivr",
    ];
    if !known.contains(words.first()?) {
        return None;
    }
    if !matches!(reader.section, Section::Config) {
        reader.bases.clear();
    }
    reader.begin(Section::Config, "configuration of NX-OS");
    reader.is(Os::NxOs);
    reader.nx.is_command = true;
    let fate = line(reader, command);
    reader.nx.is_command = false;
    Some(fate)
}

/// Reads `zone|zoneset|fcalias name NAME vsan N`.
pub(super) fn header<'t>(words: &[&'t str]) -> Option<(Kind, &'t str, u16)> {
    let [kind, "name", name, "vsan", vsan, ..] = words else { return None };
    let kind = match *kind {
        "zone" => Kind::Zone,
        "zoneset" => Kind::Config,
        "fcalias" => Kind::Alias,
        _ => return None,
    };
    let vsan = vsan.parse().ok().filter(|vsan| (1..=4094).contains(vsan))?;
    Some((kind, name, vsan))
}

pub(super) fn objects<'r>(reader: &'r mut Reader<'_>, vsan: u16) -> &'r mut Objects {
    let active = reader.nx.active;
    let base = reader.base(Some(vsan));
    if active { &mut base.active } else { &mut base.defined }
}

/// Begins the definition of an object, or continues it.
pub(super) fn define(reader: &mut Reader<'_>, kind: Kind, name: &str, vsan: u16) -> Fate {
    let at = reader.at();
    (reader.nx.in_interface, reader.nx.in_ivr) = (false, false);
    objects(reader, vsan).of_mut(kind).entry(name.to_owned()).or_insert(Object { at, ..Object::default() });
    reader.nx.object = Some((kind, vsan, name.to_owned()));
    Fate::Used
}

/// Role of a member in a smart zone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    Initiator,
    Target,
}

/// The words behind the kind of a member and its name, which may be any word.
fn behind<'w, 't>(words: &'w [&'t str]) -> &'w [&'t str] {
    let start = if words.first() == Some(&"*") { 3 } else { 2 };
    words.get(start..).unwrap_or_default()
}

/// Reads the member behind `member`, or a member of `show zone`: its text and its role.
fn parse(words: &[&str]) -> Result<(String, Role), Fate> {
    let role = match behind(words).last().copied().unwrap_or("") {
        "init" | "initiator" | "host" => Role::Initiator,
        "target" | "storage" => Role::Target,
        _ => Role::None,
    };
    let incomplete = || Fate::bad("is no zone member", "complete the line");
    let unsupported = |kind: &str| {
        let reason = format!("is a member by {kind}, which a lab cannot express");
        Err(Fate::bad(reason, "name the port name of the device instead"))
    };
    let bracket = |key: &str| {
        let start = words.iter().position(|word| *word == key)?;
        words.get(start + 1).map(|word| word.trim_end_matches(']'))
    };
    let first = |word: Option<&&str>| word.and_then(|word| wwn(word)).ok_or_else(incomplete);
    let member = match *words {
        ["pwwn", name, ..] => wwn_text(wwn(name).ok_or_else(incomplete)?),
        ["nwwn", name, ..] => format!("wwnn:{}", wwn_text(wwn(name).ok_or_else(incomplete)?)),
        ["device-alias" | "fcalias", name, ..] => name.to_owned(),
        ["*", "fcid", ..] | ["fcid", ..] if bracket("[pwwn").is_some() => wwn_text(first(bracket("[pwwn").as_ref())?),
        ["*", "fcid", ..] | ["fcid", ..] if bracket("[device-alias").is_some() => {
            bracket("[device-alias").unwrap_or_default().to_owned()
        }
        ["*", "fcid", ..] | ["fcid", ..] if bracket("[nwwn").is_some() => {
            format!("wwnn:{}", wwn_text(first(bracket("[nwwn").as_ref())?))
        }
        ["*", "fcid", ..] | ["fcid", ..] if bracket("[domain-id").is_some() => {
            let domain = bracket("[domain-id").and_then(|domain| domain.parse::<u8>().ok());
            let port = bracket("port-number").and_then(|port| port.parse::<u16>().ok());
            let (domain, port) = domain.filter(|d| (1..=239).contains(d)).zip(port).ok_or_else(incomplete)?;
            format!("{domain},{port}")
        }
        ["*", "fcid", address, ..] | ["fcid", address, ..] => {
            let digits = address.strip_prefix("0x").unwrap_or(address);
            let address = u32::from_str_radix(digits, 16).ok().filter(|a| *a <= 0xff_ffff).ok_or_else(incomplete)?;
            format!("0x{address:06x}")
        }
        ["*", "device-alias", name, ..] => name.to_owned(),
        ["*", "pwwn", name, ..] => wwn_text(wwn(name).ok_or_else(incomplete)?),
        ["domain-id", domain, "port-number", port, ..] => {
            let domain = domain.parse::<u8>().ok().filter(|domain| (1..=239).contains(domain));
            let (Some(domain), Ok(port)) = (domain, port.parse::<u16>()) else { return Err(incomplete()) };
            format!("{domain},{port}")
        }
        ["interface", ..] | ["*", "interface", ..] => return unsupported("interface"),
        ["fwwn", ..] => return unsupported("the name of a switch port"),
        ["ip-address", ..] | ["ipv6-address", ..] => return unsupported("IP address"),
        ["symbolic-nodename", ..] => return unsupported("symbolic name"),
        _ => return Err(Fate::Unknown),
    };
    Ok((member, role))
}

pub(super) fn wwn_text(name: u64) -> String {
    sanloom_wire::Wwpn(name).to_string()
}

/// Adds a member to the present object, or removes it.
pub(super) fn member(reader: &mut Reader<'_>, words: &[&str], add: bool) -> Fate {
    let Some((kind, vsan, name)) = reader.nx.object.clone() else {
        if reader.nx.in_ivr {
            return Fate::Inexpressible(IVR);
        }
        return match words.first() {
            Some(&("pwwn" | "*" | "device-alias" | "member" | "fcid" | "fcalias")) => {
                Fate::bad("belongs to no zone, zone set or alias", "add the line that begins the object")
            }
            _ => Fate::Unknown,
        };
    };
    if words.first() == Some(&"attribute") || words.first() == Some(&"attribute-group") {
        return Fate::Ignored("attributes of zones");
    }
    let words = if words.first() == Some(&"member") { &words[1..] } else { words };
    if kind == Kind::Config {
        let [zone] = words else { return Fate::Unknown };
        let Some(object) = objects(reader, vsan).configs.get_mut(&name) else { return Fate::Unknown };
        match add {
            true => object.members.push((*zone).to_owned()),
            false => object.remove(zone),
        }
        return Fate::Used;
    }
    let (member, role) = match parse(words) {
        Ok(member) => member,
        Err(fate) => return fate,
    };
    let Some(object) = objects(reader, vsan).of_mut(kind).get_mut(&name) else { return Fate::Unknown };
    if !add {
        object.remove(&member);
        return Fate::Used;
    }
    // The merger leaves one of several equal members, so that no list is searched here for each
    // line.
    match role {
        Role::Initiator => object.members.push(member),
        Role::Target => object.principals.push(member),
        Role::None => object.both.push(member),
    }
    if behind(words).contains(&"lun") {
        let reason = "is one LUN of the member, and the lab has the member with all of its LUNs";
        return Fate::bad(reason, "restrict the LUNs with [[mask]]");
    }
    Fate::Used
}

/// A line of `show device-alias database`.
pub(super) fn alias_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("Total number") || text.starts_with("There are no entries") {
        return Fate::Decoration;
    }
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["device-alias", "name", name, "pwwn", wwpn, ..] => device_alias(reader, name, wwpn),
        _ => Fate::Unknown,
    }
}

fn device_alias(reader: &mut Reader<'_>, name: &str, wwpn: &str) -> Fate {
    let Some(wwpn) = wwn(wwpn) else {
        return Fate::bad("names no port", "correct the world-wide name");
    };
    let (at, seen) = (reader.at(), reader.seen);
    let object = Object { at, members: vec![wwn_text(wwpn)], ..Object::default() };
    reader.facts.device_aliases.push((seen, name.to_owned(), object));
    Fate::Used
}

/// Topic of inter-VSAN routing.
const IVR: &str = "inter-VSAN routing (IVR)";

/// A line of inter-VSAN routing. Members behind it belong to its object.
pub(super) fn inter_vsan(reader: &mut Reader<'_>) -> Fate {
    (reader.nx.object, reader.nx.in_ivr, reader.nx.in_interface) = (None, true, false);
    Fate::Inexpressible(IVR)
}

/// The `switchname` of a configuration: the name of its switch, whatever the prompt was.
fn switch_name(reader: &mut Reader<'_>, name: &str) -> Fate {
    match std::mem::replace(&mut reader.nx.has_name, true) {
        // Another configuration follows in the same file.
        true => {
            reader.nx.set_speeds.clear();
            reader.see(name, Os::NxOs);
        }
        false => {
            reader.name(name);
            reader.is(Os::NxOs);
        }
    }
    Fate::Used
}

const OTHER: &str = "settings outside zones, VSANs and interfaces";
/// A line of a configuration.
pub(super) fn line(reader: &mut Reader<'_>, line: &str) -> Fate {
    let text = line.trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some((kind, name, vsan)) = header(&words) {
        return define(reader, kind, name, vsan);
    }
    let at = reader.at();
    // Only members and attributes belong to the object before them; members behind any other line,
    // such as an object of inter-VSAN routing, do not.
    let is_part =
        matches!(words[..], ["member" | "attribute" | "attribute-group", ..] | ["no", "member" | "attribute", ..]);
    if !is_part && !words.first().is_none_or(|first| first.starts_with('!')) {
        (reader.nx.object, reader.nx.in_ivr) = (None, false);
    }
    let number = |text: &str| text.parse::<u16>().ok().filter(|vsan| (1..=4094).contains(vsan));
    match words[..] {
        ["!Active", "Zone", "Database", "Section", "for", "vsan", ..] => reader.nx.active = true,
        ["!Full", "Zone", "Database", "Section", "for", "vsan", ..] => reader.nx.active = false,
        [first, ..] if first.starts_with('!') => return Fate::Decoration,
        ["switchname" | "hostname", name] => return switch_name(reader, name),
        ["configure" | "conf", ..] | ["exit" | "end"] | ["terminal", "dont-ask"] | ["no", "terminal", "dont-ask"] => {}
        ["copy", "running-config" | "run", ..] => {}
        ["interface", ref list @ ..] => return interface(reader, &list.join(" ")),
        ["member", ..] => return member(reader, &words, true),
        ["no", "member", ..] => return member(reader, &words[1..], false),
        ["attribute", ..] | ["attribute-group", ..] => return Fate::Ignored("attributes of zones"),
        ["device-alias", "name", name, "pwwn", wwpn, ..] => return device_alias(reader, name, wwpn),
        ["no", "device-alias", "name", name] => {
            let number = reader.facts.device_aliases.len();
            reader.facts.removed_device_aliases.insert((reader.seen, name.to_owned()), number);
        }
        ["device-alias", "database" | "commit"] => reader.nx.object = None,
        ["device-alias", ..] => return Fate::Ignored("distribution of aliases"),
        ["no", "zone" | "zoneset" | "fcalias", "name", ..] => {
            let Some((kind, name, vsan)) = header(&words[1..]) else { return Fate::Unknown };
            reader.nx.object = None;
            objects(reader, vsan).of_mut(kind).remove(name);
        }
        ["zoneset", "activate", "name", name, "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            let base = reader.base(Some(vsan));
            (base.enabled, base.is_disabled) = (Some((name.to_owned(), at)), false);
        }
        ["no", "zoneset", "activate", "name", _, "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            let base = reader.base(Some(vsan));
            (base.enabled, base.is_disabled, base.active) = (None, true, Objects::default());
        }
        ["do", "clear", "zone", "database", "vsan", vsan] | ["clear", "zone", "database", "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            reader.base(Some(vsan)).defined = Objects::default();
            reader.nx.active = false;
        }
        ["zone", "default-zone", "permit", "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            reader.base(Some(vsan)).default = Some((ZoneDefault::Open, at));
        }
        ["no", "zone", "default-zone", "permit", "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            reader.base(Some(vsan)).default = Some((ZoneDefault::Closed, at));
        }
        ["zone", "mode", "enhanced", "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            reader.base(Some(vsan)).is_enhanced = true;
        }
        ["zone", "smart-zoning", "enable", "vsan", vsan] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            reader.base(Some(vsan)).is_smart = Some(true);
        }
        ["zone", "commit", "vsan", _] => {}
        ["vsan", "database"] => reader.nx.in_interface = false,
        ["vsan", vsan, "interface", ref list @ ..] => {
            let Some(vsan) = number(vsan) else { return Fate::Unknown };
            let Some(names) = expand(&list.join(" ")) else { return no_interfaces() };
            for name in names {
                let interface = reader.sighting().interfaces.entry(name).or_default();
                (interface.at, interface.vsan) = (at, Some(vsan));
            }
            let seen = reader.seen;
            reader.facts.vsans.push((seen, vsan));
        }
        ["vsan", vsan, "wwn", ..] if number(vsan).is_some() => return Fate::Ignored("persistent addresses"),
        ["vsan", vsan, ref rest @ ..] if number(vsan).is_some() => {
            let seen = reader.seen;
            reader.facts.vsans.extend(number(vsan).map(|vsan| (seen, vsan)));
            return match rest {
                [] => Fate::Used,
                _ if rest.contains(&"suspend") => Fate::bad(
                    "suspends a VSAN, which a lab cannot express; the lab has it in operation",
                    "remove its switches from the lab by hand",
                ),
                ["name" | "interop" | "loadbalancing", ..] => Fate::Ignored("names and settings of VSANs"),
                _ => Fate::Unknown,
            };
        }
        ["ivr", ..] | ["no", "ivr", ..] => return inter_vsan(reader),
        ["fcdomain", "priority", priority, "vsan", vsan] => {
            let priority = priority.parse::<u8>().ok().filter(|priority| (1..=254).contains(priority));
            let (Some(priority), Some(vsan)) = (priority, number(vsan)) else { return Fate::Unknown };
            let seen = reader.seen;
            reader.facts.priorities.push((seen, vsan, priority));
        }
        ["fcdomain", "domain", domain, "static" | "preferred", "vsan", vsan] => {
            let domain = domain.parse::<u8>().ok().filter(|domain| (1..=239).contains(domain));
            let (Some(domain), Some(vsan)) = (domain, number(vsan)) else { return Fate::Unknown };
            let seen = reader.seen;
            reader.facts.domains.push((at, seen, vsan, domain));
        }
        ["fcdomain", "distribute"] => return Fate::Ignored(OTHER),
        ["fcdomain", "fcid", "database"] => return Fate::Ignored("persistent addresses"),
        ["zone" | "zoneset", "distribute" | "merge-control" | "gs" | "confirm-commit" | "convert", ..]
        | ["zoneset", "overwrite-control", ..]
        | ["zone", "broadcast", ..] => return Fate::Ignored("distribution of zones"),
        _ if reader.nx.in_interface && !is_ours(&words) => return interface_line(reader, &words),
        [_, ..] => {
            return if is_ours(&words) { Fate::Unknown } else { Fate::Ignored(OTHER) };
        }
        [] => return Fate::Decoration,
    }
    Fate::Used
}

/// True for a line about Fibre Channel, which a lab may have to express.
fn is_ours(words: &[&str]) -> bool {
    let ours = ["zone", "zoneset", "fcalias", "ivr", "fcdomain", "vsan", "member", "pwwn"];
    let is_ours = |word: Option<&&str>| word.is_some_and(|word| ours.contains(word));
    is_ours(words.first()) || words.first() == Some(&"no") && is_ours(words.get(1))
}

/// True for the first word of a member, as `show zone` lists it.
pub(super) fn begins_member(word: &str) -> bool {
    let words = [
        "*",
        "pwwn",
        "nwwn",
        "fcid",
        "device-alias",
        "fcalias",
        "domain-id",
        "interface",
        "fwwn",
        "ip-address",
        "ipv6-address",
        "symbolic-nodename",
        "member",
        "attribute",
        "attribute-group",
    ];
    words.contains(&word)
}
