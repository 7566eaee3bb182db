//! Zone commands of Fabric OS.

use super::{Inexpressible, Lists, Members, effective_differs, enabled, missing};
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{MemberRef, ZoneDatabase};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Fabric OS has no zone members by address.
pub(super) fn check(database: &ZoneDatabase) -> Vec<Inexpressible> {
    let mut problems = Vec::new();
    let mut member = |object: String, member: &ZoneMember| {
        if let ZoneMember::PortId(_) = member {
            problems.push(Inexpressible {
                object,
                reason: format!("has the member {member}, and Fabric OS has no members by address"),
                remedy: "name the port name, or domain and port, of the device".to_owned(),
            });
        }
    };
    for (name, members) in &database.defined.aliases {
        members.iter().for_each(|own| member(format!("alias {name}"), own));
    }
    for (name, zone) in &database.defined.zones {
        for own in zone.members.iter().chain(&zone.principals) {
            if let MemberRef::Member(own) = own {
                member(format!("zone {name}"), own);
            }
        }
    }
    problems
}

fn text(member: &ZoneMember) -> String {
    match member {
        ZoneMember::NodeName(name) => name.to_string(),
        other => other.to_string(),
    }
}

fn lists(database: &ZoneDatabase) -> Lists {
    let reference = |member: &MemberRef| match member {
        MemberRef::Alias(name) => name.clone(),
        MemberRef::Member(member) => text(member),
    };
    Lists::of(
        &database.defined,
        |members| members.iter().map(text).collect(),
        |members| members.iter().map(reference).collect(),
    )
}

/// Longest list of members in one command. The command line of a switch is limited.
const CHUNK: usize = 32;

/// Answer to the question of a command that changes the fabric, on the line behind it.
const ANSWER: &str = "\ny";

struct Script {
    text: String,
    /// Configuration in force after the commands so far.
    enabled: Option<String>,
}

impl Script {
    fn line(&mut self, line: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn enable(&mut self, name: &str) {
        self.line(format_args!("cfgenable \"{name}\"{ANSWER}"));
        self.enabled = Some(name.to_owned());
    }

    fn disable(&mut self) {
        if self.enabled.take().is_some() {
            self.line(format_args!("cfgdisable{ANSWER}"));
        }
    }

    fn list(&mut self, create: Option<&str>, add: &str, name: &str, members: &[&str]) {
        for (index, chunk) in members.chunks(CHUNK).enumerate() {
            let verb = create.filter(|_| index == 0).unwrap_or(add);
            self.line(format_args!("{verb} \"{name}\", \"{}\"", chunk.join("; ")));
        }
    }

    fn peers(&mut self, create: bool, remove: bool, name: &str, principals: &[&str], members: &[&str]) {
        let count = principals.chunks(CHUNK).count().max(members.chunks(CHUNK).count());
        let chunk = |list: &[&str], index: usize| list.chunks(CHUNK).nth(index).unwrap_or(&[]).join("; ");
        for index in 0..count {
            let verb = match (create && index == 0, remove) {
                (true, _) => "zonecreate",
                (false, true) => "zoneremove",
                (false, false) => "zoneadd",
            };
            let mut line = format!("{verb} --peerzone \"{name}\"");
            for (option, list) in [("principal", principals), ("members", members)] {
                let list = chunk(list, index);
                if !list.is_empty() {
                    line.push_str(&format!(" -{option} \"{list}\""));
                }
            }
            self.line(line);
        }
    }

    fn create_zone(&mut self, name: &str, zone: &Members) {
        let all = |list: &[String]| -> Vec<String> { list.to_vec() };
        let (principals, members) = (all(&zone.principals), all(&zone.members));
        let principals: Vec<&str> = principals.iter().map(String::as_str).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        match principals.is_empty() {
            true => self.list(Some("zonecreate"), "zoneadd", name, &members),
            false => self.peers(true, false, name, &principals, &members),
        }
    }
}

/// Returns the commands that turn `before` into `after`. With `keeps_in_force` they enable nothing.
pub(super) fn commands(before: &ZoneDatabase, after: &ZoneDatabase, keeps_in_force: bool) -> String {
    let (mut from, to) = (lists(before), lists(after));
    let mut script = Script { text: String::new(), enabled: enabled(before).map(str::to_owned) };
    clear_the_way(&mut from, &to, &mut script);
    for (name, members) in &to.aliases {
        match from.aliases.get(name) {
            None => {
                let all: Vec<&str> = members.iter().map(String::as_str).collect();
                script.list(Some("alicreate"), "aliadd", name, &all);
            }
            Some(known) => script.list(None, "aliadd", name, &missing(members, known)),
        }
    }
    for (name, zone) in &to.zones {
        match from.zones.get(name) {
            None => script.create_zone(name, zone),
            Some(known) if zone.principals.is_empty() => {
                script.list(None, "zoneadd", name, &missing(&zone.members, &known.members));
            }
            Some(known) => {
                let principals = missing(&zone.principals, &known.principals);
                script.peers(false, false, name, &principals, &missing(&zone.members, &known.members));
            }
        }
    }
    for (name, zones) in &to.configs {
        match from.configs.get(name) {
            None => {
                let all: Vec<&str> = zones.iter().map(String::as_str).collect();
                script.list(Some("cfgcreate"), "cfgadd", name, &all);
            }
            Some(known) => script.list(None, "cfgadd", name, &missing(zones, known)),
        }
    }
    remove(&from, &to, after, &mut script);
    let is_new_default = before.default_zone != after.default_zone;
    if is_new_default {
        let option = if after.default_zone == ZoneDefault::Closed { "--noaccess" } else { "--allaccess" };
        script.line(format_args!("defzone {option}{ANSWER}"));
    }
    if script.text.is_empty() && !effective_differs(before, after) {
        return script.text;
    }
    match enabled(after) {
        Some(_) if keeps_in_force => script.line(format_args!("cfgsave{ANSWER}")),
        // Enabling saves, too.
        Some(name) => script.enable(name),
        None => {
            script.disable();
            script.line(format_args!("cfgsave{ANSWER}"));
        }
    }
    script.text
}

/// Removes what `to` no longer has, users before the objects that they name.
fn remove(from: &Lists, to: &Lists, after: &ZoneDatabase, script: &mut Script) {
    for (name, zones) in &from.configs {
        match to.configs.get(name) {
            Some(wanted) => script.list(None, "cfgremove", name, &missing(zones, wanted)),
            None => {
                // The configuration in force cannot be deleted.
                if script.enabled.as_ref() == Some(name) {
                    match enabled(after) {
                        Some(next) => script.enable(next),
                        None => script.disable(),
                    }
                }
                script.line(format_args!("cfgdelete \"{name}\""));
            }
        }
    }
    for (name, zone) in &from.zones {
        match to.zones.get(name) {
            None => script.line(format_args!("zonedelete \"{name}\"")),
            Some(wanted) if wanted.principals.is_empty() => {
                script.list(None, "zoneremove", name, &missing(&zone.members, &wanted.members));
            }
            Some(wanted) => {
                let principals = missing(&zone.principals, &wanted.principals);
                script.peers(false, true, name, &principals, &missing(&zone.members, &wanted.members));
            }
        }
    }
    for (name, members) in &from.aliases {
        match to.aliases.get(name) {
            None => script.line(format_args!("alidelete \"{name}\"")),
            Some(wanted) => script.list(None, "aliremove", name, &missing(members, wanted)),
        }
    }
}

/// Gives each configuration that would lose all its zones a zone that it keeps until the end: a
/// configuration without zones would be deleted.
fn hold(from: &mut Lists, to: &Lists, zones: &BTreeSet<String>, configs: &BTreeSet<String>, script: &mut Script) {
    let is_emptied = |(name, list): &(&String, &Vec<String>)| {
        !configs.contains(*name) && list.iter().all(|zone| zones.contains(zone))
    };
    let emptied: Vec<String> = from.configs.iter().filter(is_emptied).map(|(name, _)| name.clone()).collect();
    let Some(member) = emptied.first().and_then(|_| from.zones.values().find_map(|zone| zone.members.first())) else {
        return;
    };
    let is_taken = |name: &String| {
        [from, to].iter().any(|lists| {
            lists.aliases.contains_key(name) || lists.zones.contains_key(name) || lists.configs.contains_key(name)
        })
    };
    let names = (0..).map(|number| format!("sanloom_hold{number}"));
    let Some(name) = names.take(1_000_000).find(|name| !is_taken(name)) else { return };
    // An alias of that name may go, so the zone has a member of its own.
    let member = if member.contains([':', ',']) { member.clone() } else { "1,0".to_owned() };
    script.list(Some("zonecreate"), "zoneadd", &name, &[&member]);
    for config in emptied {
        script.list(None, "cfgadd", &config, &[&name]);
        from.configs.entry(config).or_default().push(name.clone());
    }
    from.zones.insert(name, Members { members: vec![member], principals: Vec::new() });
}

/// Removes objects whose names `to` uses for another kind of object, and zones that become peer
/// zones or cease to be, with all references to them. Zones that this empties go, too. All of them
/// are created again afterwards.
fn clear_the_way(from: &mut Lists, to: &Lists, script: &mut Script) {
    let zone_or_config = |name: &String| to.zones.contains_key(name) || to.configs.contains_key(name);
    let aliases: BTreeSet<String> = from.aliases.keys().filter(|name| zone_or_config(name)).cloned().collect();
    let changes = |(name, zone): &(&String, &Members)| {
        let is_peer = |zone: &Members| !zone.principals.is_empty();
        let other = to.zones.get(*name).is_some_and(|wanted| is_peer(wanted) != is_peer(zone));
        other || to.aliases.contains_key(*name) || to.configs.contains_key(*name)
    };
    let mut zones: BTreeSet<String> = from.zones.iter().filter(changes).map(|(name, _)| name.clone()).collect();
    let alias_or_zone = |name: &String| to.aliases.contains_key(name) || to.zones.contains_key(name);
    let configs: BTreeSet<String> = from.configs.keys().filter(|name| alias_or_zone(name)).cloned().collect();
    for (name, zone) in &from.zones {
        let left = |list: &[String]| list.iter().any(|member| !aliases.contains(member));
        let emptied = !left(&zone.members) || !zone.principals.is_empty() && !left(&zone.principals);
        if emptied {
            zones.insert(name.clone());
        }
    }
    hold(from, to, &zones, &configs, script);
    let named = |list: &[String], gone: &BTreeSet<String>| -> Vec<String> {
        list.iter().filter(|member| gone.contains(*member)).cloned().collect()
    };
    for name in &configs {
        if script.enabled.as_ref() == Some(name) {
            script.disable();
        }
        script.line(format_args!("cfgdelete \"{name}\""));
        from.configs.remove(name);
    }
    for (name, list) in &mut from.configs {
        let gone = named(list, &zones);
        script.list(None, "cfgremove", name, &gone.iter().map(String::as_str).collect::<Vec<_>>());
        list.retain(|zone| !zones.contains(zone));
    }
    for name in &zones {
        script.line(format_args!("zonedelete \"{name}\""));
        from.zones.remove(name);
    }
    for (name, zone) in &mut from.zones {
        let (members, principals) = (named(&zone.members, &aliases), named(&zone.principals, &aliases));
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let principals: Vec<&str> = principals.iter().map(String::as_str).collect();
        match zone.principals.is_empty() {
            true => script.list(None, "zoneremove", name, &members),
            false => script.peers(false, true, name, &principals, &members),
        }
        zone.members.retain(|member| !aliases.contains(member));
        zone.principals.retain(|member| !aliases.contains(member));
    }
    for name in &aliases {
        script.line(format_args!("alidelete \"{name}\""));
        from.aliases.remove(name);
    }
}
