//! Fabric OS: commands that change the zone database, at a prompt or in a script. A command applies
//! to all that the file has shown of the database of its switch.

use super::facts::{At, KINDS, Kind, Object, Os, ZoneBase};
use super::fos_transaction::{self, is_of};
use super::index::List;
use super::lines::Reader;
use super::report::Fate;
use sanloom_fc::config::ZoneDefault;

/// Commands that change any kind of object.
pub(super) const OBJECT_COMMANDS: [&str; 5] =
    ["zonerename", "zoneobjectrename", "zoneobjectexpunge", "zoneobjectcopy", "zoneobjectreplace"];

/// True for the name of a command about zones.
pub(super) fn is_about_zones(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    ["zone", "ali", "cfg"].iter().any(|kind| lower.starts_with(kind)) && lower != "alias"
}

/// Fate of a command about zones that the importer does not know.
pub(super) fn unknown() -> Fate {
    Fate::bad("is a command about zones that the importer does not know", "make its change by hand in the lab")
}

/// The databases that the file shows of the present switch, at least one.
fn session(reader: &mut Reader<'_>) -> Vec<usize> {
    let zones = reader.facts.zones.iter().enumerate();
    let mut all: Vec<usize> = zones.filter(|(_, base)| is_of(base, reader.seen)).map(|(number, _)| number).collect();
    if all.is_empty() {
        reader.base(None);
        all.push(reader.facts.zones.len() - 1);
    }
    all
}

/// Sets the configuration in force. The zones that were in force are so no longer.
fn enable(reader: &mut Reader<'_>, enabled: Option<(String, At)>) {
    let all = session(reader);
    let last = all.last().copied();
    for base in all {
        let is_last = Some(base) == last;
        let own = enabled.clone().filter(|_| is_last);
        fos_transaction::put_in_force(reader, base, own, is_last && enabled.is_none());
    }
}

/// Sets the default zone, as an output shows it.
pub(super) fn show_default(reader: &mut Reader<'_>, default: ZoneDefault) {
    let at = reader.at();
    for base in session(reader) {
        fos_transaction::committed_default(reader, base, (default, at));
    }
}

/// Applies the zoning commands of a line, such as `zonecreate "z", "a; b"; cfgsave`. `None`:
/// another command. The fate is that of the first command that cannot be used.
pub(super) fn command(reader: &mut Reader<'_>, line: &str) -> Option<Fate> {
    let mut fate = None;
    for command in commands(line) {
        let own = one(reader, command);
        let own = if fate.is_some() { own.or_else(|| Some(unknown())) } else { own };
        if fate.is_none() || fate == Some(Fate::Used) {
            fate = own;
        }
        if fate.is_none() {
            break;
        }
    }
    fate
}

/// Parts a line at semicolons outside quotes that a zoning command follows. Other semicolons part
/// members.
fn commands(line: &str) -> Vec<&str> {
    let begins = |rest: &str| {
        // No command has a longer name, and a line can have many members.
        let word: Vec<u8> = rest.trim_start().bytes().take(24).take_while(|byte| !byte.is_ascii_whitespace()).collect();
        let word = String::from_utf8_lossy(&word).to_ascii_lowercase();
        let changes = ["ali", "zone", "cfg"].iter().filter_map(|kind| word.strip_prefix(kind));
        let mut changes = changes.filter(|action| ["create", "add", "remove", "delete"].contains(action));
        let others = ["cfgsave", "cfgenable", "cfgdisable", "cfgclear", "cfgtransabort", "defzone"];
        OBJECT_COMMANDS.contains(&&*word) || others.contains(&&*word) || changes.next().is_some()
    };
    let (mut parts, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b';' if !is_quoted && begins(&line[at + 1..]) => {
                parts.push(line[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(line[start..].trim());
    parts
}

/// Applies one zoning command.
fn one(reader: &mut Reader<'_>, command: &str) -> Option<Fate> {
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let lower = word.to_ascii_lowercase();
    let at = reader.at();
    match ["cfgsave", "cfgenable", "cfgdisable", "cfgclear", "defzone"].contains(&lower.as_str()) {
        true => fos_transaction::ask(reader, rest),
        false => fos_transaction::forget(reader),
    }
    match lower.as_str() {
        "cfgsave" => {
            fos_transaction::save(reader);
            return Some(Fate::Used);
        }
        "cfgtransabort" => {
            fos_transaction::abort(reader);
            return Some(Fate::Used);
        }
        "cfgdisable" => {
            enable(reader, None);
            fos_transaction::save(reader);
            return Some(Fate::Used);
        }
        "cfgclear" => {
            for base in session(reader) {
                fos_transaction::clear(reader, base);
            }
            return Some(Fate::Used);
        }
        "cfgenable" => {
            let name = rest.split_whitespace().find(|word| *word != "-f").unwrap_or("").trim_matches('"');
            if name.is_empty() {
                return Some(Fate::bad("names no configuration", "complete the command"));
            }
            enable(reader, Some((name.to_owned(), at)));
            fos_transaction::save(reader);
            return Some(Fate::Used);
        }
        "defzone" => {
            let closed = rest.contains("--noaccess");
            if !closed && !rest.contains("--allaccess") {
                return None;
            }
            let default = if closed { ZoneDefault::Closed } else { ZoneDefault::OpenWithoutZones };
            for base in session(reader) {
                fos_transaction::set_default(reader, base, (default, at));
            }
            return Some(Fate::Used);
        }
        _ => {}
    }
    if OBJECT_COMMANDS.contains(&lower.as_str()) {
        reader.is(Os::FabricOs);
        reader.begun = Some("zone commands");
        return Some(object_command(reader, &lower, rest));
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
    let noun = kind.noun();
    let all = session(reader);
    let defined = |base: &usize| reader.facts.zones[*base].defined.of(kind).contains_key(&name);
    let having: Vec<usize> = all.iter().copied().filter(defined).collect();
    if action == "create" {
        if !having.is_empty() {
            return Some(Fate::bad(format!("creates a {noun} that exists"), "remove one of the two definitions"));
        }
        if let Some(base) = all.last().copied() {
            reader.transactions.edits(reader.seen).object((base, kind, name.clone()), None);
            reader.facts.zones[base].put(kind, &name, object);
        }
        return Some(Fate::Used);
    }
    if having.is_empty() {
        let reason = format!("changes a {noun} that no input defines");
        return Some(Fate::bad(reason, "add the output of cfgshow before it"));
    }
    for base in having {
        let zones = &mut reader.facts.zones[base];
        reader.transactions.edits(reader.seen).object((base, kind, name.clone()), zones.defined.of(kind).get(&name));
        change(zones, kind, action, &name, &object);
    }
    Some(Fate::Used)
}

fn change(base: &mut ZoneBase, kind: Kind, action: &str, name: &str, by: &Object) {
    let map = base.defined.of_mut(kind);
    let Some(found) = map.get_mut(name) else { return };
    match action {
        "add" => {
            // The merger leaves one of several equal members.
            found.members.extend_from_slice(&by.members);
            found.principals.extend_from_slice(&by.principals);
            base.refer(kind, name, by.members.iter().chain(&by.principals));
        }
        "remove" => {
            by.members.iter().for_each(|member| found.remove_name(List::Members, member));
            by.principals.iter().for_each(|member| found.remove_name(List::Principals, member));
            if found.is_empty() {
                map.remove(name);
            }
        }
        _ => _ = map.remove(name),
    }
}

/// Renames an object with all references to it, or deletes it with them.
fn object_command(reader: &mut Reader<'_>, word: &str, rest: &str) -> Fate {
    let names: Vec<&str> = rest.split(',').map(|name| name.trim().trim_matches('"').trim()).collect();
    let (old, new) = match (word, &names[..]) {
        ("zonerename" | "zoneobjectrename", [old, new]) if !old.is_empty() && !new.is_empty() => (*old, Some(*new)),
        ("zoneobjectexpunge", [old]) if !old.is_empty() => (*old, None),
        ("zonerename" | "zoneobjectrename" | "zoneobjectexpunge", _) => {
            return Fate::bad("has no name", "complete the command");
        }
        _ => return unknown(),
    };
    let all = session(reader);
    let has = |base: &usize, name: &str| {
        let defined = &reader.facts.zones[*base].defined;
        KINDS.iter().any(|kind| defined.of(*kind).contains_key(name))
    };
    if !all.iter().any(|base| has(base, old)) {
        return Fate::bad("changes an object that no input defines", "add the output of cfgshow before it");
    }
    if new.is_some_and(|new| all.iter().any(|base| has(base, new))) {
        return Fate::bad("gives an object the name of another one", "correct the command");
    }
    let edits = reader.transactions.edits(reader.seen);
    for number in all {
        let base = &mut reader.facts.zones[number];
        if let (Some((name, _)), Some(new)) = (&mut base.enabled, new)
            && name == old
            && base.defined.configs.contains_key(old)
        {
            new.clone_into(name);
        }
        for (kind, name) in base.take_users(old) {
            let map = base.defined.of_mut(kind);
            let Some(object) = map.get_mut(&name) else { continue };
            edits.object((number, kind, name.clone()), Some(object));
            match new {
                Some(new) => {
                    object.rename(old, new);
                    base.refer(kind, &name, std::iter::once(&new.to_owned()));
                }
                None => {
                    object.remove(old);
                    // A reference to an object that is gone leaves no object without members.
                    if object.is_empty() {
                        map.remove(&name);
                    }
                }
            }
        }
        for kind in KINDS {
            let Some(object) = base.defined.of_mut(kind).remove(old) else { continue };
            edits.object((number, kind, old.to_owned()), Some(&object));
            if let Some(new) = new {
                edits.object((number, kind, new.to_owned()), None);
                base.put(kind, new, object);
            }
        }
        if new.is_none() {
            base.remove_bare();
        }
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
