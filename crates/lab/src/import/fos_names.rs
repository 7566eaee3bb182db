//! Fabric OS: name server (`nsshow`, `nscamshow`) and `portshow`.

use super::facts::{Entry, Login, Os, PortRef, SwitchPort, speed, wwn};
use super::lines::{Reader, Section};
use super::report::Fate;

/// Recognises the beginning of an output.
pub(super) fn begins(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    if text.starts_with("Type Pid") && text.contains("PortName") {
        reader.begin(Section::NameServer, "nsshow");
        reader.is(Os::FabricOs);
        reader.entry = None;
        return Some(Fate::Decoration);
    }
    let index = text.strip_prefix("portIndex:")?.trim().parse::<u16>().ok().filter(|index| *index < u16::MAX);
    reader.begin(Section::PortShow, "portshow");
    reader.is(Os::FabricOs);
    reader.port = index;
    Some(if index.is_some() { Fate::Used } else { Fate::bad("is no port number", "correct the line") })
}

/// Lines of `nscamshow` around the entries.
const AROUND: &[&str] = &["nscam show", "Switch entry for", "state  rev", "known", "Device list", "state", "local"];

/// Attributes of entries without use.
const ATTRIBUTES: &[&str] = &[
    "Share Area",
    "Device Shared in Other AD",
    "Redirect",
    "Partial",
    "LSAN",
    "Slow Drain Device",
    "Connected through AG",
    "Real device behind AG",
    "Cascaded AG",
    "FCoE",
    "Aliases",
    "Class of Service",
    "IP address",
    "IPv4",
    "Port Properties",
    "FCP",
    "Tclass",
];

/// Reads a line of the name server.
pub(super) fn line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let fields: Vec<&str> = text.split(';').map(str::trim).collect();
    let mut words = fields[0].split_whitespace();
    let kind = words.next().unwrap_or("");
    if fields.len() >= 4 && matches!(kind, "N" | "NL" | "U") {
        let address = words.next().and_then(|word| u32::from_str_radix(word, 16).ok()).filter(|a| *a <= 0xff_ffff);
        let (Some(address), Some(wwpn)) = (address, wwn(fields[2])) else {
            reader.entry = None;
            return Fate::bad("is no entry of a name server", "complete the line");
        };
        let (at, seen) = (reader.at(), reader.seen);
        let entry = Entry { at, seen, address, wwpn, wwnn: wwn(fields[3]), ..Entry::default() };
        reader.facts.entries.push(entry);
        reader.entry = Some(reader.facts.entries.len() - 1);
        return Fate::Used;
    }
    if text.starts_with("The Local Name Server") || text.starts_with("There is no entry") || text.starts_with("No ") {
        return Fate::Decoration;
    }
    if AROUND.iter().any(|around| text.starts_with(around)) {
        return Fate::Decoration;
    }
    let Some((key, value)) = text.split_once(':') else { return Fate::Unknown };
    let (key, value) = (key.trim(), value.trim());
    let Some(entry) = reader.entry.and_then(|index| reader.facts.entries.get_mut(index)) else {
        return Fate::bad("belongs to no entry that can be read", "complete the entry before it");
    };
    match key {
        "FC4s" | "PortSymb" | "NodeSymb" => {
            // The INQUIRY data of a device in brackets, or the quoted symbolic name.
            let symbol = value.split('"').nth(1).unwrap_or(value).trim();
            entry.symbols.push(symbol.to_owned());
        }
        "Fabric Port Name" => entry.fabric_port = wwn(value),
        "Permanent Port Name" => entry.permanent = wwn(value),
        // Newer releases have a line for each protocol: `FC4 Features [FCP]`.
        _ if matches!(key, "Device type" | "FC4 Type") || key.starts_with("FC4 Features") => {
            entry.is_initiator |= value.contains("Initiator");
            entry.is_target |= value.contains("Target") || value.contains("NVM Subsystem");
            entry.is_virtual |= value.contains("NPIV");
        }
        "Port Index" => entry.index = value.parse().ok().filter(|index| *index < u16::MAX),
        "Device link speed" | "Device Link speed" => entry.gfc = speed(value),
        _ if ATTRIBUTES.contains(&key) => return Fate::Ignored("further attributes of name server entries"),
        _ => return Fate::Unknown,
    }
    Fate::Used
}

const TOPIC: &str = "settings and counters of portshow";

/// Reads a line of `portshow`.
pub(super) fn port_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if let Some(wwpn) = wwn(text) {
        let Some(number) = reader.port else {
            return Fate::bad("belongs to no port that can be read", "add the line with portIndex");
        };
        let (at, seen) = (reader.at(), reader.seen);
        let port = PortRef::Number(number);
        reader.facts.logins.push(Login { at, seen, vsan: None, port, wwpn, wwnn: None });
        return Fate::Used;
    }
    let Some((key, value)) = text.split_once(':') else { return Fate::Ignored(TOPIC) };
    match (key.trim(), reader.port) {
        ("portSpeed", Some(number)) => {
            let (at, seen, gfc) = (reader.at(), reader.seen, speed(value));
            reader.facts.ports.push(SwitchPort { at, seen, number, gfc, area: None, is_occupied: false });
            Fate::Used
        }
        ("portWwn of device(s) connected", _) => Fate::Decoration,
        _ => Fate::Ignored(TOPIC),
    }
}
