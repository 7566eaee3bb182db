//! Zone commands of NX-OS.

use super::{Lists, Members, effective_differs, enabled, missing};
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{AliasMembers, MemberRef, ZoneDatabase};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

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
    is_enhanced: bool,
}

impl Script {
    fn line(&mut self, line: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Writes changes of device aliases. In the enhanced mode the changes of zones before them are
    /// committed, because an alias cannot be deleted while a pending zone has it.
    fn device_aliases(&mut self, lines: &[String]) {
        if self.is_enhanced && !self.text.is_empty() && !self.text.ends_with("device-alias commit\n") {
            let vsan = self.vsan;
            self.line(format_args!("zone commit vsan {vsan}"));
        }
        self.line("device-alias database");
        lines.iter().for_each(|line| self.line(line));
        self.line("device-alias commit");
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

/// Keeps one alias of each port: NX-OS has one device alias for a port name. `known` is the
/// database whose choice is taken. Returns a remark on each alias that the switches do not get.
pub(super) fn one_alias_per_port(database: &mut ZoneDatabase, known: Option<&ZoneDatabase>) -> Vec<String> {
    let mut kept: BTreeMap<ZoneMember, String> = BTreeMap::new();
    let all = database.defined.aliases.iter().filter(|(_, members)| is_device(members));
    for (name, members) in all {
        let is_known = known.is_some_and(|known| known.defined.aliases.get(name) == Some(members));
        match kept.entry(members[0]) {
            Entry::Vacant(entry) => _ = entry.insert(name.clone()),
            // The first one, unless only a later one is there already.
            Entry::Occupied(mut entry) => {
                let first = known.and_then(|known| known.defined.aliases.get(entry.get()));
                if is_known && first != Some(members) {
                    entry.insert(name.clone());
                }
            }
        }
    }
    let is_left_out = |name: &String, members: &AliasMembers| is_device(members) && kept[&members[0]] != *name;
    let defined = &database.defined;
    let left_out: BTreeMap<String, String> = defined
        .aliases
        .iter()
        .filter(|(name, members)| is_left_out(name, members))
        .map(|(name, members)| (name.clone(), kept[&members[0]].clone()))
        .collect();
    if left_out.is_empty() {
        return Vec::new();
    }
    let mut defined = (**defined).clone();
    defined.aliases.retain(|name, _| !left_out.contains_key(name));
    for zone in defined.zones.values_mut() {
        for list in [&mut zone.members, &mut zone.principals] {
            for member in list.iter_mut() {
                if let MemberRef::Alias(name) = member
                    && let Some(other) = left_out.get(name)
                {
                    *name = other.clone();
                }
            }
            let mut seen = BTreeSet::new();
            list.retain(|member| seen.insert(member.to_string()));
        }
    }
    database.defined = Arc::new(defined);
    let remark = |(name, other): (&String, &String)| {
        format!(
            "alias {name} is another name for the port of {other}; NX-OS has one device alias for a port, so zones \
             name {other}"
        )
    };
    left_out.iter().map(remark).collect()
}

type Aliases<'a> = BTreeMap<&'a String, (bool, &'a Vec<String>)>;

fn aliases<'a>(database: &ZoneDatabase, lists: &'a Lists) -> Aliases<'a> {
    let device = |name: &String| database.defined.aliases.get(name).is_some_and(is_device);
    lists.aliases.iter().map(|(name, members)| (name, (device(name), members))).collect()
}

/// Returns the commands that turn `before` into `after`. With `keeps_in_force` they activate
/// nothing.
pub(super) fn commands(
    before: &ZoneDatabase,
    after: &ZoneDatabase,
    vsan: u16,
    is_enhanced: bool,
    keeps_in_force: bool,
) -> String {
    let mut script = Script { text: String::new(), vsan, is_enhanced };
    match without_moved_aliases(before, after) {
        Some(between) => {
            changes(before, &between, &mut script);
            changes(&between, after, &mut script);
        }
        None => changes(before, after, &mut script),
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

/// A step between two databases, if an alias changes from a device alias to an fcalias or back: its
/// zones have its members, and the alias does not exist. A switch that keeps both kinds in one name
/// space accepts the second kind only after the first is gone.
fn without_moved_aliases(before: &ZoneDatabase, after: &ZoneDatabase) -> Option<ZoneDatabase> {
    let new = &after.defined.aliases;
    let is_moved =
        |name: &String, members: &AliasMembers| new.get(name).is_some_and(|new| is_device(new) != is_device(members));
    let old = before.defined.aliases.iter().filter(|(name, members)| is_moved(name, members));
    let moved: BTreeMap<String, AliasMembers> = old.map(|(name, members)| (name.clone(), members.clone())).collect();
    if moved.is_empty() {
        return None;
    }
    let mut defined = (*before.defined).clone();
    defined.aliases.retain(|name, _| !moved.contains_key(name));
    for zone in defined.zones.values_mut() {
        for list in [&mut zone.members, &mut zone.principals] {
            let members = |member: MemberRef| match &member {
                MemberRef::Alias(name) if moved.contains_key(name) => {
                    moved[name].iter().map(|own| MemberRef::Member(*own)).collect()
                }
                _ => vec![member],
            };
            *list = std::mem::take(list).into_iter().flat_map(members).collect();
            let mut seen = BTreeSet::new();
            list.retain(|member| seen.insert(member.to_string()));
        }
    }
    Some(ZoneDatabase { defined: Arc::new(defined), ..before.clone() })
}

/// Writes the changes of aliases, zones and zone sets.
fn changes(before: &ZoneDatabase, after: &ZoneDatabase, script: &mut Script) {
    let vsan = script.vsan;
    let (first, to) = (lists(before), lists(after));
    let mut from = first.clone();
    // The configuration in force may be another one than that of the part.
    let smart = |database: &ZoneDatabase| {
        let in_force = database.effective.iter().flat_map(|effective| &effective.zones);
        let mut in_force = in_force.map(|zone| !zone.principals.is_empty());
        database.defined.zones.values().any(|zone| !zone.principals.is_empty()) || in_force.any(|is_peer| is_peer)
    };
    let (old, new) = (aliases(before, &first), aliases(after, &to));
    let released = released(&old, &new);
    release(&mut from, &released, script);
    device_aliases(&old, &new, &released, script);
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
        let (add, remove) = (missing(&zone.members, &known.members), missing(&known.members, &zone.members));
        let base = |member: &str| {
            let roles = [" target", " init", " both"];
            roles.iter().find_map(|role| member.strip_suffix(role)).unwrap_or(member).to_owned()
        };
        let old_of: BTreeMap<String, &str> = remove.iter().map(|old| (base(old), *old)).collect();
        let (moved, new): (Vec<&str>, Vec<&str>) = add.iter().partition(|new| old_of.contains_key(&base(new)));
        let is_gone = |old: &&str| !moved.iter().any(|new| base(new) == base(old));
        let gone: Vec<&str> = remove.iter().copied().filter(is_gone).collect();
        script.edit("zone", name, &new, &[]);
        // A zone has a member once, so a member whose role changes cannot be added before it is
        // removed. One at a time, so that the zone keeps its other members.
        if !moved.is_empty() {
            script.line("! Roles change: each member is removed and added again before the next one");
            script.line(format_args!("zone name {name} vsan {vsan}"));
        }
        for member in moved {
            script.line(format_args!("  no member {}", old_of[&base(member)]));
            script.line(format_args!("  member {member}"));
        }
        script.edit("zone", name, &[], &gone);
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
        .map(|(name, _)| name)
        .filter(|name| !released.contains(*name))
        .collect();
    if !gone.is_empty() {
        script.device_aliases(&gone.iter().map(|name| format!("  no device-alias name {name}")).collect::<Vec<_>>());
    }
    if smart(before) && !smart(after) {
        script.line(format_args!("no zone smart-zoning enable vsan {vsan}"));
    }
}

/// A device alias that is new or stands for another port, with its port.
fn added<'a>(old: &Aliases<'a>, new: &Aliases<'a>) -> Vec<(&'a String, &'a Vec<String>)> {
    let devices = new.iter().filter(|(_, (device, _))| *device);
    let is_new = |name: &String, members: &Vec<String>| old.get(name) != Some(&(true, members));
    devices.map(|(name, (_, members))| (*name, *members)).filter(|(name, members)| is_new(name, members)).collect()
}

/// Device aliases that release their ports before any is added: those that get another port, and
/// those that are removed and whose port another one gets.
fn released<'a>(old: &Aliases<'a>, new: &Aliases<'a>) -> BTreeSet<&'a String> {
    let added = added(old, new);
    let is_taken = |name: &String, members: &Vec<String>| {
        added.iter().any(|(new, ports)| *new == name || ports.iter().any(|port| members.contains(port)))
    };
    old.iter().filter(|(name, (device, members))| *device && is_taken(name, members)).map(|(name, _)| *name).collect()
}

/// Removes device aliases from their zones, before they release their ports. In the basic mode of
/// device aliases a zone stores the port name of an alias, so it would keep the old port. `from`
/// has the zones afterwards.
fn release(from: &mut Lists, released: &BTreeSet<&String>, script: &mut Script) {
    let is_released = |member: &String| {
        let alias = member.strip_prefix("device-alias ").and_then(|words| words.split(' ').next());
        alias.is_some_and(|alias| released.iter().any(|name| *name == alias))
    };
    let mut is_told = false;
    for (name, zone) in &mut from.zones {
        let (gone, rest): (Vec<String>, Vec<String>) =
            std::mem::take(&mut zone.members).into_iter().partition(is_released);
        zone.members = rest;
        if !gone.is_empty() && !is_told {
            script.line("! Device aliases release their ports: zones drop them, and get them back afterwards");
            is_told = true;
        }
        script.edit("zone", name, &[], &gone.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Writes the device aliases that are new or stand for another port. Ports are released first: a
/// port has one device alias.
fn device_aliases(old: &Aliases<'_>, new: &Aliases<'_>, released: &BTreeSet<&String>, script: &mut Script) {
    let mut lines: Vec<String> = released.iter().map(|name| format!("  no device-alias name {name}")).collect();
    for (name, members) in added(old, new) {
        lines.extend(members.iter().map(|member| format!("  device-alias name {name} {member}")));
    }
    if !lines.is_empty() {
        script.device_aliases(&lines);
    }
}
