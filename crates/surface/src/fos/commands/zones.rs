//! Commands about zones.

use super::{Outcome, usage, words};
use crate::fos::fault::Fault;
use crate::fos::room::Room;
use crate::fos::tree::Element;
use crate::fos::zone_edits;
use crate::fos::zones::{entries, seen, shown, text};
use crate::server::http::Method;
use regex::bytes::{Regex, RegexBuilder};
use sanloom_api::zone_database::{Database, Definition, Edit, Kind, Member};

/// Commands that ask before they change the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// `cfgenable`.
    Enable,
    /// `cfgdisable`.
    Disable,
    /// `cfgsave`.
    Save,
    /// `cfgclear`, which has no option -f.
    Clear,
    /// `defzone` with an option that changes it.
    DefaultZone,
}

/// Question of a command, its edits, and whether the option -f answers it.
pub fn question(arguments: &[String], ask: Ask) -> Result<(String, Vec<Edit>, bool), Fault> {
    let force = arguments.iter().any(|word| word == "-f");
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "-f").collect();
    if ask == Ask::Clear {
        let text = "The Clear All action will clear all Aliases, Zones, FA Zones\nand configurations in the Defined \
                    configuration.\nRun cfgSave to commit the transaction or cfgTransAbort to\ncancel the \
                    transaction.\nDo you really want to clear all configurations?  (yes, y, no, n): [no] ";
        return if arguments.is_empty() { Ok((text.to_owned(), vec![Edit::Clear], false)) } else { Err(usage()) };
    }
    let (about, verb, edits) = match (ask, &words[..]) {
        (Ask::Enable, [config]) if !config.starts_with('-') => {
            ("enable", format!("enable '{config}' configuration"), vec![Edit::Enable { config: (*config).to_owned() }])
        }
        (Ask::Disable, []) => ("disable", "disable zoning configuration".to_owned(), vec![Edit::Disable]),
        (Ask::Save, []) => ("save", "save the Defined zoning configuration only".to_owned(), Vec::new()),
        (Ask::DefaultZone, [option @ ("--noaccess" | "--allaccess")]) => {
            let open = *option == "--allaccess";
            let word = if open { "All Access" } else { "No Access" };
            let edit = Edit::SetDefault { open, auto: false };
            ("set the default zone of", format!("set the Default Zone access mode to {word}"), vec![edit])
        }
        _ => return Err(usage()),
    };
    let text = format!(
        "You are about to {about} the zoning configuration.\nThe change applies to all switches of the fabric.\n\
         Do you want to {verb}? (yes, y, no, n): [no] "
    );
    Ok((text, edits, force))
}

/// Commits the transaction of the session with these edits.
pub fn commit(room: &mut Room<'_>, edits: Vec<Edit>) -> Outcome {
    let text = match edits.first() {
        Some(Edit::Enable { config }) => {
            let (_, database) = zone_edits::based(room)?;
            if !database.configs.contains_key(config) {
                return Err(Fault::missing(format!("error: \"{config}\" not found")));
            }
            format!("zone config \"{config}\" is in effect\nUpdating flash ...\n")
        }
        Some(_) | None => "Updating flash ...\n".to_owned(),
    };
    zone_edits::commit(room, None, edits)?;
    Ok((text, 0))
}

fn change(room: &mut Room<'_>, method: &Method, words: &[String], kind: (&str, &str, &str, &str)) -> Outcome {
    if kind == ZONE && words.first().is_some_and(|word| word == PEER_ZONE) {
        let peer = Peer::read(&words[1..])?;
        let mut children = vec![Element::text("zone-name", &peer.name)];
        if *method == Method::POST {
            children.push(Element::number("zone-type", 1_u32));
        }
        children.push(entries(peer.members.into_iter(), peer.principals.into_iter()));
        let body = [Element::container("zone", children)];
        zone_edits::write(room, "defined-configuration", method, &[], &body)?;
        return Ok((String::new(), 0));
    }
    let (object, key, list, leaf) = kind;
    let needs_members = !(*method == Method::DELETE && words.len() == 1);
    let (name, members) = match words {
        [name, ..] if name.starts_with('-') => return Err(usage()),
        [name] if !needs_members => (name, Vec::new()),
        [name, members] => (name, words::members(members)),
        _ => return Err(usage()),
    };
    if needs_members && members.is_empty() {
        return Err(usage());
    }
    let mut children = vec![Element::text(key, name)];
    if !members.is_empty() {
        children.push(Element::texts(list, leaf, members));
    }
    let body = [Element::container(object, children)];
    zone_edits::write(room, "defined-configuration", method, &[], &body)?;
    Ok((String::new(), 0))
}

const ALIAS: (&str, &str, &str, &str) = ("alias", "alias-name", "member-entry", "alias-entry-name");
const ZONE: (&str, &str, &str, &str) = ("zone", "zone-name", "member-entry", "entry-name");
const CONFIG: (&str, &str, &str, &str) = ("cfg", "cfg-name", "member-zone", "zone-name");

/// Option of the commands for peer zones.
const PEER_ZONE: &str = "--peerzone";

/// Arguments of a command for peer zones, behind the option.
struct Peer {
    name: String,
    members: Vec<String>,
    principals: Vec<String>,
}

impl Peer {
    /// Reads `NAME [-principal "MEMBER; …"] [-members "MEMBER; …"]`.
    fn read(words: &[String]) -> Result<Peer, Fault> {
        let [name, rest @ ..] = words else { return Err(usage()) };
        let mut peer = Peer { name: name.clone(), members: Vec::new(), principals: Vec::new() };
        let mut is_principal = None;
        for word in rest {
            match (word.as_str(), is_principal) {
                ("-principal" | "-principals", _) => is_principal = Some(true),
                ("-members" | "-member", _) => is_principal = Some(false),
                (word, _) if word.starts_with('-') => return Err(usage()),
                (word, Some(true)) => peer.principals.extend(words::members(word)),
                (word, Some(false)) => peer.members.extend(words::members(word)),
                (_, None) => return Err(usage()),
            }
        }
        match peer.name.starts_with('-') || peer.members.is_empty() && peer.principals.is_empty() {
            true => Err(usage()),
            false => Ok(peer),
        }
    }
}

fn kind_of(database: &Database, name: &str) -> Option<Kind> {
    let kinds = [
        (database.aliases.contains_key(name), Kind::Alias),
        (database.zones.contains_key(name), Kind::Zone),
        (database.configs.contains_key(name), Kind::Config),
    ];
    kinds.into_iter().find(|(there, _)| *there).map(|(_, kind)| kind)
}

/// Creates an object that must not exist, or adds to one that must exist.
fn create(room: &mut Room<'_>, words: &[String], kind: (&str, &str, &str, &str), new: bool) -> Outcome {
    check(words, kind)?;
    let (_, database) = zone_edits::based(room)?;
    let is_peer = kind == ZONE && words.first().is_some_and(|word| word == PEER_ZONE);
    let name = words.get(usize::from(is_peer)).map(String::as_str).unwrap_or_default();
    match (kind_of(&database, name), new) {
        (Some(_), true) => Err(Fault::exists(format!("error: \"{name}\" duplicate name"))),
        (None, false) => Err(Fault::missing(format!("error: \"{name}\" not found"))),
        _ => change(room, &Method::POST, words, kind),
    }
}

/// Fails for arguments that are not an object with members.
fn check(words: &[String], kind: (&str, &str, &str, &str)) -> Result<(), Fault> {
    match words {
        [option, rest @ ..] if kind == ZONE && option == PEER_ZONE => Peer::read(rest).map(drop),
        [name, members] if !name.starts_with('-') && !members.starts_with('-') => Ok(()),
        _ => Err(usage()),
    }
}

macro_rules! commands {
    ($($create:ident, $add:ident, $remove:ident, $delete:ident, $kind:ident);*) => {$(
        /// Creates an object.
        pub fn $create(room: &mut Room<'_>, words: &[String]) -> Outcome {
            create(room, words, $kind, true)
        }

        /// Adds members.
        pub fn $add(room: &mut Room<'_>, words: &[String]) -> Outcome {
            create(room, words, $kind, false)
        }

        /// Removes members.
        pub fn $remove(room: &mut Room<'_>, words: &[String]) -> Outcome {
            check(words, $kind)?;
            change(room, &Method::DELETE, words, $kind)
        }

        /// Deletes an object.
        pub fn $delete(room: &mut Room<'_>, words: &[String]) -> Outcome {
            match words {
                [_] => change(room, &Method::DELETE, words, $kind),
                _ => Err(usage()),
            }
        }
    )*};
}

commands! {
    create_alias, add_alias, remove_alias, delete_alias, ALIAS;
    create_zone, add_zone, remove_zone, delete_zone, ZONE;
    create_config, add_config, remove_config, delete_config, CONFIG
}

/// `cfgtransabort [TOKEN]`.
pub fn abort(room: &mut Room<'_>, words: &[String]) -> Outcome {
    match words {
        [] => {}
        [token] => {
            let number = match token.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => token.parse(),
            };
            let number = number.map_err(|_| usage())?;
            if room.zone_status()?.transaction.is_none_or(|open| open.token != number) {
                return Err(Fault::missing(format!("There is no transaction with the token {token}.")));
            }
        }
        _ => return Err(usage()),
    }
    zone_edits::abort(room)?;
    Ok((String::new(), 0))
}

/// `cfgtransshow`.
pub fn transaction(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let open = room.zone_status()?.transaction;
    let text = match open {
        None => "There is no outstanding zoning transactions\n".to_owned(),
        Some(open) => format!("Current transaction token is 0x{:x}\nIt is abortable\n", open.token),
    };
    Ok((text, 0))
}

/// `defzone --show`; the other options ask.
pub fn default_zone(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let (status, database) = seen(room)?;
    let word = |open| if open { "All Access" } else { "No Access" };
    let committed = word(status.committed.default_open);
    let working = if status.working.is_some() { word(database.default_open) } else { "No Transaction" };
    let text = format!("Default Zone Access Mode\n        committed - {committed}\n        transaction - {working}\n");
    Ok((text, 0))
}

/// Adds edits to the transaction of the session.
pub fn stage(room: &mut Room<'_>, edits: Vec<Edit>) -> Outcome {
    zone_edits::edit(room, None, edits)?;
    // The line of the question ends.
    Ok(("\n".to_owned(), 0))
}

/// The database, and the kind of its object with this name.
fn named(room: &mut Room<'_>, name: &str) -> Result<(Database, Kind), Fault> {
    if name.starts_with('-') {
        return Err(usage());
    }
    let (_, database) = zone_edits::based(room)?;
    let kind = kind_of(&database, name).ok_or_else(|| Fault::missing(format!("error: \"{name}\" not found")))?;
    Ok((database, kind))
}

/// `zoneobjectexpunge`.
pub fn expunge(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let [name] = words else { return Err(usage()) };
    let (database, kind) = named(room, name)?;
    zone_edits::change(room, &database, vec![Edit::Expunge { kind, name: name.clone() }])?;
    Ok((String::new(), 0))
}

/// `zoneobjectrename`.
pub fn rename(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let [from, to] = words else { return Err(usage()) };
    if to.starts_with('-') {
        return Err(usage());
    }
    let (_, kind) = named(room, from)?;
    zone_edits::edit(room, None, vec![Edit::Rename { kind, from: from.clone(), to: to.clone() }])?;
    Ok((String::new(), 0))
}

/// `zone`: the other commands for zones as options of one command.
pub fn zone(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let Some((option, rest)) = words.split_first() else { return Err(usage()) };
    // Members as the last argument, or as the option of a peer zone.
    let members = || -> Vec<String> {
        let is_peer = rest.iter().any(|word| word.starts_with("-principal"));
        let is_named = rest.first().is_some_and(|word| word == PEER_ZONE);
        let peer = (is_peer && !is_named).then(|| PEER_ZONE.to_owned());
        let plain = rest.iter().filter(|word| is_peer || is_named || !["-members", "-member"].contains(&&***word));
        peer.into_iter().chain(plain.cloned()).collect()
    };
    match (option.as_str(), rest) {
        ("--show", []) => {
            let every = Chosen::read(&[])?;
            Ok((defined(&every.database(room)?, &every, &[Kind::Zone]), 0))
        }
        ("--show", [name]) => show_zones(room, std::slice::from_ref(name)),
        ("--create", _) => create_zone(room, &members()),
        ("--add", _) => add_zone(room, &members()),
        ("--remove", _) => remove_zone(room, &members()),
        ("--delete", _) => delete_zone(room, rest),
        ("--expunge", _) => expunge(room, rest),
        ("--rename", _) => rename(room, rest),
        _ => Err(usage()),
    }
}

/// Members of a zone; a peer zone begins with its property. The last byte of the property is the
/// number of world-wide names of the principals, of which an alias can have several.
fn zone_members<T>(
    members: &[T],
    principals: &[T],
    names: impl Fn(&T) -> usize,
    text: impl Fn(&T) -> String,
) -> Vec<String> {
    let count = principals.iter().map(names).sum::<usize>().min(0xff);
    let property = (!principals.is_empty()).then(|| format!("00:02:00:00:00:03:01:{count:02x}"));
    property.into_iter().chain(principals.iter().chain(members).map(text)).collect()
}

/// Lines of a definition, with three members each.
fn definition(kind: &str, name: &str, members: &[String]) -> String {
    let mut lines = String::new();
    let chunks: Vec<&[String]> = members.chunks(4).collect();
    for (index, chunk) in chunks.iter().enumerate() {
        let end = if index + 1 < chunks.len() { "; " } else { "" };
        lines += &format!("\t\t{}{end}\n", chunk.join("; "));
    }
    match kind {
        "cfg" => format!(" cfg:\t{name}\t{}", lines.trim_start_matches('\t')),
        _ => format!(" {kind}:\t{name}\n{lines}"),
    }
}

/// Limit of the memory of a compiled pattern in bytes.
const MAX_PATTERN: usize = 64 << 10;

/// Names and contents that a command prints.
struct Chosen {
    /// Pattern of the names; all without one.
    pattern: Option<Regex>,
    /// Text of the pattern.
    text: String,
    /// True for the committed database, also with a transaction.
    committed: bool,
    /// True for peer zones only.
    peer: bool,
}

impl Chosen {
    /// Reads `[--ic] [PATTERN] [0|1]`. A pattern has `*`, `?` and sets in brackets.
    fn read(words: &[String]) -> Result<Chosen, Fault> {
        let (any_case, words) = match words {
            [option, rest @ ..] if option == "--ic" || option == "-ic" => (true, rest),
            words => (false, words),
        };
        let (text, committed) = match words {
            [] if !any_case => ("", false),
            [text] => (text.as_str(), false),
            [text, mode] if mode == "0" || mode == "1" => (text.as_str(), mode == "1"),
            _ => return Err(usage()),
        };
        if text.starts_with('-') {
            return Err(usage());
        }
        let mut source = "^".to_owned();
        let mut is_set = false;
        for c in text.chars() {
            match c {
                '[' => (is_set, source) = (true, source + "["),
                ']' if is_set => (is_set, source) = (false, source + "]"),
                '*' if !is_set => source += ".*",
                '?' if !is_set => source += ".",
                '-' if is_set => source += "-",
                c => source += &regex::escape(c.encode_utf8(&mut [0; 4])),
            }
        }
        let mut builder = RegexBuilder::new(&(source + "$"));
        let built = builder.unicode(false).case_insensitive(any_case).size_limit(MAX_PATTERN).build();
        let pattern = match words.is_empty() {
            true => None,
            false => Some(built.map_err(|_| Fault::invalid(format!("{text} is not a pattern.")))?),
        };
        Ok(Chosen { pattern, text: text.to_owned(), committed, peer: false })
    }

    fn has(&self, name: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(name.as_bytes()))
    }

    /// The database that is asked for.
    fn database(&self, room: &mut Room<'_>) -> Result<Database, Fault> {
        let (status, database) = seen(room)?;
        Ok(if self.committed { status.committed } else { database })
    }
}

fn defined(database: &Database, chosen: &Chosen, kinds: &[Kind]) -> String {
    let mut text = String::new();
    if kinds.contains(&Kind::Config) {
        let found = database.configs.iter().filter(|(name, _)| chosen.has(name));
        found.for_each(|(name, zones)| text += &definition("cfg", name, zones));
    }
    if kinds.contains(&Kind::Zone) {
        let is_peer = |zone: &Definition| !chosen.peer || !zone.principals.is_empty();
        for (name, zone) in database.zones.iter().filter(|(name, zone)| chosen.has(name) && is_peer(zone)) {
            let names = |member: &Member| match member {
                Member::Alias { alias } => database.aliases.get(alias).map_or(1, Vec::len),
                Member::Port(_) => 1,
            };
            let members =
                zone_members(&zone.members, &zone.principals, names, |member: &Member| self::text(member).to_owned());
            text += &definition("zone", name, &members);
        }
    }
    if kinds.contains(&Kind::Alias) {
        for (name, members) in database.aliases.iter().filter(|(name, _)| chosen.has(name)) {
            let members: Vec<String> = members.iter().map(|member| shown(member).to_owned()).collect();
            text += &definition("alias", name, &members);
        }
    }
    text
}

fn effective(database: &Database) -> String {
    let Some(effective) = &database.effective else {
        let access = if database.default_open { "All Access" } else { "No Access" };
        return format!(" no configuration in effect: ({access})\n");
    };
    let mut text = format!(" cfg:\t{}\n", effective.config);
    for zone in &effective.zones {
        text += &format!(" zone:\t{}\n", zone.zone);
        let members = zone_members(&zone.members, &zone.principals, |_| 1, |member: &String| shown(member).to_owned());
        members.iter().for_each(|member| text += &format!("\t\t{member}\n"));
    }
    text
}

/// `cfgshow`.
pub fn show_all(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let chosen = Chosen::read(words)?;
    let database = chosen.database(room)?;
    match words.is_empty() {
        true => Ok((whole(&database), 0)),
        false => found_or(defined(&database, &chosen, &[Kind::Config]), &chosen),
    }
}

/// The whole database.
fn whole(database: &Database) -> String {
    let every = Chosen { pattern: None, text: String::new(), committed: false, peer: false };
    let all = defined(database, &every, &[Kind::Config, Kind::Zone, Kind::Alias]);
    let all = if all.is_empty() { " no configuration defined\n".to_owned() } else { all };
    format!("Defined configuration:\n{all}\nEffective configuration:\n{}\n", effective(database))
}

fn found_or(found: String, chosen: &Chosen) -> Outcome {
    match found.is_empty() && chosen.pattern.is_some() {
        true => Err(Fault::missing(format!("{} does not exist.", chosen.text))),
        false => Ok((found, 0)),
    }
}

/// `zoneshow`. No target of the fabric creates zones, so `--peerzone target` finds none.
pub fn show_zones(room: &mut Room<'_>, words: &[String]) -> Outcome {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => show_all(room, words),
        ["--peerzone", kind @ ("all" | "user" | "target")] => {
            let chosen = Chosen { peer: true, ..Chosen::read(&[])? };
            let database = chosen.database(room)?;
            let found = if kind == "target" { String::new() } else { defined(&database, &chosen, &[Kind::Zone]) };
            let none = "There are no peer zones\n".to_owned();
            Ok((if found.is_empty() { none } else { found }, 0))
        }
        _ => {
            let chosen = Chosen::read(words)?;
            let database = chosen.database(room)?;
            found_or(defined(&database, &chosen, &[Kind::Zone]), &chosen)
        }
    }
}

/// `alishow`.
pub fn show_aliases(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let chosen = Chosen::read(words)?;
    let database = chosen.database(room)?;
    found_or(defined(&database, &chosen, &[Kind::Alias]), &chosen)
}

/// `cfgactvshow`: the effective configuration with tabs.
pub fn active(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let (status, _) = seen(room)?;
    let Some(effective) = status.committed.effective else {
        return Ok(("Effective configuration:\n no configuration in effect\n".to_owned(), 0));
    };
    let mut text = format!("Effective configuration:\n cfg:\t{}\t\n", effective.config);
    for zone in &effective.zones {
        let members = zone_members(&zone.members, &zone.principals, |_| 1, |member: &String| shown(member).to_owned());
        for (index, member) in members.iter().enumerate() {
            match index {
                0 => text += &format!(" zone:\t{}\t{member}\n", zone.zone),
                _ => text += &format!(" \t\t{member}\n"),
            }
        }
    }
    Ok((text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sanloom_api::zone_database::{Effective, EffectiveZone};
    use sanloom_lab::import::{Choices, Source, import};
    use std::collections::BTreeSet;

    fn port(number: u8) -> String {
        format!("10:00:00:10:9b:1c:00:{number:02x}")
    }

    /// Alias `aN` stands for ports `16 N` to `16 N + ports - 1`; direct members are ports from 128.
    fn database(ports: &[u8], zones: &[(Vec<u8>, Vec<u8>)]) -> Database {
        let mut database = Database::default();
        for (alias, count) in (0_u8..).zip(ports) {
            let names = (0..*count).map(|index| port(16 * alias + index)).collect();
            database.aliases.insert(format!("a{alias}"), names);
        }
        let member = |number: &u8| match usize::from(*number) < ports.len() {
            true => Member::Alias { alias: format!("a{number}") },
            false => Member::Port(port(128 + number)),
        };
        let expand = |number: &u8| match ports.get(usize::from(*number)) {
            Some(count) => (0..*count).map(|index| port(16 * number + index)).collect(),
            None => vec![port(128 + number)],
        };
        let mut effective = Effective { config: "c".to_owned(), ..Effective::default() };
        for (index, (members, principals)) in zones.iter().enumerate() {
            let zone = format!("z{index}");
            let members: Vec<u8> = members.iter().filter(|member| !principals.contains(member)).copied().collect();
            if members.is_empty() {
                continue;
            }
            let definition = Definition {
                members: members.iter().map(member).collect(),
                principals: principals.iter().map(member).collect(),
            };
            database.zones.insert(zone.clone(), definition);
            effective.zones.push(EffectiveZone {
                zone: zone.clone(),
                members: members.iter().flat_map(expand).collect(),
                principals: principals.iter().flat_map(expand).collect(),
            });
            database.configs.entry("c".to_owned()).or_default().push(zone);
        }
        database.effective = Some(effective).filter(|effective| !effective.zones.is_empty());
        database
    }

    fn names<T: ToString>(list: &[T]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    fn list() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::btree_set(0_u8..12, 0..5).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_output_of_cfgshow_is_imported_to_the_same_zones(
            ports in proptest::collection::vec(1_u8..5, 0..6),
            zones in proptest::collection::vec((list(), list()), 1..5),
        ) {
            let database = database(&ports, &zones);
            let text = format!("switchName:\ts\nswitchDomain:\t1\n{}", whole(&database));
            let imported = import(&[Source { name: "in.txt".to_owned(), text: text.clone() }], &Choices::default());
            let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let found = &loaded.lab.zone_database.defined.zones;
            let wanted = |list: &[Member]| list.iter().map(|own| super::text(own).to_owned()).collect::<BTreeSet<_>>();
            prop_assert_eq!(found.len(), database.zones.len(), "{}", text);
            for (name, zone) in &database.zones {
                prop_assert_eq!(names(&found[name].members), wanted(&zone.members), "{}", text);
                prop_assert_eq!(names(&found[name].principals), wanted(&zone.principals), "{}", text);
            }
            let effective = loaded.lab.zone_database.effective.as_ref().map_or(0, |effective| effective.zones.len());
            prop_assert_eq!(effective, database.zones.len(), "{}", text);
        }
    }
}
