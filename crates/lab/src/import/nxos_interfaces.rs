//! NX-OS: the lines of interfaces in a configuration.

use super::facts::{FarEnd, rate};
use super::lines::{Reader, Section};
use super::report::Fate;

const INTERFACE: &str = "settings of interfaces";

/// Expands `fc1/1-4`, `fc1/1 - 4` and `fc1/1, fc1/3` to the names of interfaces. A blank before the
/// number, as in `port-channel 7`, is no part of the name. `None` for any other text.
pub(super) fn expand(text: &str) -> Option<Vec<String>> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| is_number(text));
    let mut names = Vec::new();
    for part in text.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        let splits_number = |pair: &[&str]| {
            pair[0].ends_with(|c: char| c.is_ascii_digit()) && pair[1].starts_with(|c: char| c.is_ascii_digit())
        };
        if words.windows(2).any(splits_number) {
            return None;
        }
        let part = words.concat();
        let (kind, numbers) = part.split_at(part.find(|c: char| c.is_ascii_digit())?);
        let (first, last) = numbers.split_once('-').map_or((numbers, None), |(first, last)| (first, Some(last)));
        // The port is the last number, behind those of the chassis and the slot.
        let port = first.rfind('/').map_or(0, |slash| slash + 1);
        let (slot, first) = (&first[..port], number(&first[port..])?);
        let last = match last {
            Some(last) => {
                let last = last.strip_prefix(kind).unwrap_or(last);
                number(last.strip_prefix(slot).unwrap_or(last))?
            }
            None => first,
        };
        let is_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let is_slot = slot.split_terminator('/').all(|part| !part.is_empty() && is_number(part));
        if !is_kind || !is_slot || last < first || last - first >= 1024 {
            return None;
        }
        names.extend((first..=last).map(|port| format!("{kind}{slot}{port}")));
    }
    Some(names)
}

/// Kinds of interfaces of Fibre Channel, before the number. `bay` and `ext` are those of switches
/// in blade enclosures.
const KINDS: [&str; 7] = ["fc", "vfc", "vfc-po", "port-channel", "san-port-channel", "bay", "ext"];

/// True for the name of an interface of Fibre Channel.
pub(super) fn is_interface(name: &str) -> bool {
    let begins = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    KINDS.iter().any(|kind| name.strip_prefix(kind).is_some_and(begins))
}

/// True for a line that begins interfaces, and not a member of a zone.
pub(super) fn is_interface_line(reader: &Reader<'_>, words: &[&str]) -> bool {
    let is_member = matches!(reader.section, Section::ZoneSets(_)) && reader.indent > 0;
    !is_member && (words.len() == 2 || expand(&words[1..].join(" ")).is_some())
}

pub(super) fn no_interfaces() -> Fate {
    Fate::bad("names no interfaces that the importer can read", "correct the list of interfaces")
}

pub(super) fn interface(reader: &mut Reader<'_>, list: &str) -> Fate {
    let at = reader.at();
    reader.nx.in_interface = true;
    reader.nx.in_management = list.starts_with("mgmt");
    reader.nx.object = None;
    reader.nx.interfaces = Vec::new();
    let parts: Vec<&str> = list.split(',').map(str::trim).collect();
    reader.nx.is_unread = parts.iter().any(|part| is_interface(part));
    if !reader.nx.is_unread {
        return Fate::Ignored("interfaces of other kinds");
    }
    let names = expand(list).filter(|names| names.iter().all(|name| is_interface(name)));
    let Some(names) = names else { return no_interfaces() };
    for name in &names {
        reader.sighting().interfaces.entry(name.clone()).or_default().at = at;
    }
    (reader.nx.interfaces, reader.nx.is_unread) = (names, false);
    Fate::Used
}

/// Notes the mode of the present interfaces, and whether they are enabled.
fn operation(reader: &mut Reader<'_>, words: &[&str]) {
    let at = reader.at();
    for name in reader.nx.interfaces.clone() {
        let interface = reader.sighting().interfaces.entry(name).or_default();
        match words {
            [_, _, mode, ..] => interface.set_far = FarEnd::of_mode(mode).map(|far| (far, at)),
            _ => interface.is_enabled = words[0] == "no",
        }
    }
}

pub(super) fn interface_line(reader: &mut Reader<'_>, words: &[&str]) -> Fate {
    if let ["ip", "address", address, ..] = words
        && reader.nx.in_management
    {
        let address = address.split('/').next().map(str::to_owned);
        reader.sighting().address = address;
        return Fate::Used;
    }
    let (mut gfc, mut channel) = (None, None);
    match words {
        ["switchport", "mode", ..] | ["shutdown"] | ["no", "shutdown"] => operation(reader, words),
        ["switchport", "speed", text, ..] => match rate(text) {
            Ok(rate) => gfc = rate,
            Err(()) => return Fate::bad("is no rate of Fibre Channel", "correct the speed"),
        },
        ["channel-group", "auto", ..] => {}
        ["channel-group", number, ..] => match number.parse::<u16>() {
            Ok(number) => channel = Some(format!("port-channel{number}")),
            Err(_) => return Fate::bad("names no port-channel", "correct its number"),
        },
        _ => {}
    }
    if gfc.is_none() && channel.is_none() {
        return Fate::Ignored(INTERFACE);
    }
    if reader.nx.interfaces.is_empty() {
        return match reader.nx.is_unread {
            true => Fate::bad("belongs to no interface that can be read", "correct the line of the interface"),
            false => Fate::Ignored(INTERFACE),
        };
    }
    let at = reader.at();
    for name in reader.nx.interfaces.clone() {
        let replaces = gfc.is_some() && !reader.nx.set_speeds.insert(name.clone()) || reader.nx.is_command;
        let interface = reader.sighting().interfaces.entry(name).or_default();
        if let Some(gfc) = gfc {
            interface.set(gfc, at, replaces);
        }
        interface.channel = channel.clone().or(interface.channel.take());
    }
    Fate::Used
}
