//! Zone commands of NX-OS.

use super::{Lists, Members, effective_differs, enabled, missing};
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{AliasMembers, MemberRef, ZoneDatabase};
use std::collections::BTreeMap;
use std::fmt::Write;

fn text(member: &ZoneMember) -> String {
    match member {
        ZoneMember::PortName(name) => format!("pwwn {name}"),
        ZoneMember::NodeName(name) => format!("nwwn {name}"),
        ZoneMember::DomainPort { domain, port } => format!("domain-id {domain} port-number {port}"),
        ZoneMember::PortId(id) => format!("fcid 0x{id}"),
    }
}

/// An alias of one port name is a device alias; any other is an fcalias.
fn is_device(members: &AliasMembers) -> bool {
    matches!(members[..], [ZoneMember::PortName(_)])
}

fn lists(database: &ZoneDatabase) -> Lists {
    let aliases = &database.defined.aliases;
    let reference = |member: &MemberRef| match member {
        MemberRef::Alias(name) => match aliases.get(name).is_some_and(is_device) {
            true => format!("device-alias {name}"),
            false => format!("fcalias {name}"),
        },
        MemberRef::Member(member) => text(member),
    };
    let alias = |members: &AliasMembers| members.iter().map(text).collect();
    let mut lists = Lists::of(&database.defined, alias, |members| members.iter().map(reference).collect());
    for zone in lists.zones.values_mut().filter(|zone| !zone.principals.is_empty()) {
        let both: Vec<String> = zone.members.iter().filter(|own| zone.principals.contains(own)).cloned().collect();
        let one = |list: &[String], role: &str| -> Vec<String> {
            list.iter().filter(|own| !both.contains(own)).map(|own| format!("{own} {role}")).collect()
        };
        let mut members = one(&zone.principals, "target");
        members.extend(one(&zone.members, "init"));
        members.extend(both.iter().map(|own| format!("{own} both")));
        *zone = Members { members, principals: Vec::new() };
    }
    lists
}

struct Script {
    text: String,
    vsan: u16,
}

impl Script {
    fn line(&mut self, line: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Edits the members of an object, if there is an edit.
    fn edit(&mut self, kind: &str, name: &str, add: &[&str], remove: &[&str]) {
        if add.is_empty() && remove.is_empty() {
            return;
        }
        let vsan = self.vsan;
        self.line(format_args!("{kind} name {name} vsan {vsan}"));
        add.iter().for_each(|member| self.line(format_args!("  member {member}")));
        remove.iter().for_each(|member| self.line(format_args!("  no member {member}")));
    }
}

type Aliases<'a> = BTreeMap<&'a String, (bool, &'a Vec<String>)>;

fn aliases<'a>(database: &ZoneDatabase, lists: &'a Lists) -> Aliases<'a> {
    let device = |name: &String| database.defined.aliases.get(name).is_some_and(is_device);
    lists.aliases.iter().map(|(name, members)| (name, (device(name), members))).collect()
}

/// Returns the commands that turn `before` into `after`. With `keeps_in_force` they activate nothing.
pub(super) fn commands(
    before: &ZoneDatabase,
    after: &ZoneDatabase,
    vsan: u16,
    is_enhanced: bool,
    keeps_in_force: bool,
) -> String {
    let (from, to) = (lists(before), lists(after));
    let mut script = Script { text: String::new(), vsan };
    // The configuration in force may be another one than that of the part.
    let smart = |database: &ZoneDatabase| {
        let in_force = database.effective.iter().flat_map(|effective| &effective.zones);
        let mut in_force = in_force.map(|zone| !zone.principals.is_empty());
        database.defined.zones.values().any(|zone| !zone.principals.is_empty()) || in_force.any(|is_peer| is_peer)
    };
    let (old, new) = (aliases(before, &from), aliases(after, &to));
    device_aliases(&old, &new, &mut script);
    for (name, (_, members)) in new.iter().filter(|(_, (device, _))| !device) {
        let known = old.get(name).filter(|(device, _)| !device).map_or(&[][..], |(_, members)| members);
        script.edit("fcalias", name, &missing(members, known), &missing(known, members));
    }
    if smart(after) && !smart(before) {
        script.line(format_args!("zone smart-zoning enable vsan {vsan}"));
    }
    let none = Members::default();
    for (name, zone) in &to.zones {
        let known = from.zones.get(name).unwrap_or(&none);
        // A member whose role changes is removed before it is added.
        let (add, remove) = (missing(&zone.members, &known.members), missing(&known.members, &zone.members));
        let base = |member: &str| {
            let roles = [" target", " init", " both"];
            roles.iter().find_map(|role| member.strip_suffix(role)).unwrap_or(member).to_owned()
        };
        let moved: Vec<&str> =
            remove.iter().copied().filter(|old| add.iter().any(|new| base(new) == base(old))).collect();
        let gone: Vec<&str> = remove.iter().copied().filter(|old| !moved.contains(old)).collect();
        script.edit("zone", name, &[], &moved);
        script.edit("zone", name, &add, &gone);
    }
    for (name, zones) in &to.configs {
        let known = from.configs.get(name).map_or(&[][..], Vec::as_slice);
        script.edit("zoneset", name, &missing(zones, known), &missing(known, zones));
    }
    for name in from.configs.keys().filter(|name| !to.configs.contains_key(*name)) {
        script.line(format_args!("no zoneset name {name} vsan {vsan}"));
    }
    for name in from.zones.keys().filter(|name| !to.zones.contains_key(*name)) {
        script.line(format_args!("no zone name {name} vsan {vsan}"));
    }
    for (name, _) in old.iter().filter(|(name, (device, _))| !device && new.get(*name).is_none_or(|(d, _)| *d)) {
        script.line(format_args!("no fcalias name {name} vsan {vsan}"));
    }
    let gone: Vec<&&String> = old
        .iter()
        .filter(|(name, (device, _))| *device && new.get(*name).is_none_or(|(d, _)| !d))
        .map(|(n, _)| n)
        .collect();
    if !gone.is_empty() {
        script.line("device-alias database");
        gone.iter().for_each(|name| script.line(format_args!("  no device-alias name {name}")));
        script.line("device-alias commit");
    }
    if smart(before) && !smart(after) {
        script.line(format_args!("no zone smart-zoning enable vsan {vsan}"));
    }
    if before.default_zone != after.default_zone {
        let no = if after.default_zone == ZoneDefault::Open { "" } else { "no " };
        script.line(format_args!("{no}zone default-zone permit vsan {vsan}"));
    }
    if script.text.is_empty() && !effective_differs(before, after) {
        return script.text;
    }
    match (enabled(after), enabled(before)) {
        _ if keeps_in_force => {}
        (Some(name), _) => script.line(format_args!("zoneset activate name {name} vsan {vsan}")),
        (None, Some(name)) => script.line(format_args!("no zoneset activate name {name} vsan {vsan}")),
        (None, None) => {}
    }
    if is_enhanced {
        script.line(format_args!("zone commit vsan {vsan}"));
    }
    format!("configure terminal\n{}end\ncopy running-config startup-config\n", script.text)
}

/// Writes the device aliases that are new or stand for another port.
fn device_aliases(old: &Aliases<'_>, new: &Aliases<'_>, script: &mut Script) {
    let mut lines = Vec::new();
    for (name, (_, members)) in new.iter().filter(|(_, (device, _))| *device) {
        let known = old.get(name).filter(|(device, _)| *device);
        if known.is_some_and(|(_, known)| known == members) {
            continue;
        }
        if known.is_some() {
            lines.push(format!("  no device-alias name {name}"));
        }
        lines.extend(members.iter().map(|member| format!("  device-alias name {name} {member}")));
    }
    if !lines.is_empty() {
        script.line("device-alias database");
        lines.iter().for_each(|line| script.line(line));
        script.line("device-alias commit");
    }
}
