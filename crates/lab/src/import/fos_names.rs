//! Fabric OS: name server (`nsshow`, `nscamshow`) and `portshow`.

use super::facts::{Entry, Login, Os, PortRef, SwitchPort, rate, wwn};
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
    (reader.port, reader.is_port_online) = (index, false);
    Some(if index.is_some() { Fate::Used } else { Fate::bad("is no port number", "correct the line") })
}

/// Lines of `nscamshow` around the entries.
const AROUND: &[&str] = &["nscam show", "Switch entry for", "Device list"];

/// True for the head `state  rev  owner` of `nscamshow`, and the row `known  v910  0xfffc0c` below
/// it.
fn is_state(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let is_release = |word: &str| word.starts_with('v') && word[1..].bytes().all(|byte| byte.is_ascii_digit());
    matches!(words[..], ["state", "rev"])
        || matches!(words[..], ["known" | "unknown" | "local", release] if is_release(release))
}

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

const FURTHER: &str = "further attributes of name server entries";

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
        let (at, seen, wwnn) = (reader.at(), reader.seen, wwn(fields[3]));
        let entry = Entry { at, seen, address, wwpn, wwnn, ..Entry::default() };
        reader.facts.entries.push(entry);
        reader.entry = Some(reader.facts.entries.len() - 1);
        return match wwnn {
            Some(_) => Fate::Used,
            None => Fate::bad("has a node name that cannot be read", "correct the line"),
        };
    }
    if text.starts_with("The Local Name Server") || text.starts_with("There is no entry") {
        return Fate::Decoration;
    }
    if text.starts_with("No ") {
        return Fate::Ignored("messages of the name server");
    }
    if AROUND.iter().any(|around| text.starts_with(around)) || is_state(text) {
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
            entry.has_inquiry |= key == "FC4s" && value.contains('[');
        }
        "Fabric Port Name" | "Permanent Port Name" => {
            let Some(name) = wwn(value) else { return Fate::bad("is no world-wide name", "correct the line") };
            let own = if key == "Fabric Port Name" { &mut entry.fabric_port } else { &mut entry.permanent };
            *own = Some(name);
        }
        // Newer releases have a line for each protocol: `FC4 Features [FCP]`.
        _ if matches!(key, "Device type" | "FC4 Type") || key.starts_with("FC4 Features") => {
            entry.is_initiator |= value.contains("Initiator");
            entry.is_target |= value.contains("Target") || value.contains("NVM Subsystem");
            entry.is_virtual |= value.contains("NPIV");
            let words = ["Initiator", "Target", "NVM", "NPIV", "Physical", "nknown", "iSCSI", "Virtual", "EX"];
            if key == "Device type" && !words.iter().any(|word| value.contains(word)) {
                return Fate::bad("is no type of device that the importer knows", "correct the line");
            }
        }
        "Port Index" if value.eq_ignore_ascii_case("na") => return Fate::Ignored(FURTHER),
        "Port Index" => {
            let Some(index) = value.parse().ok().filter(|index| *index < u16::MAX) else {
                return Fate::bad("is no number of a port", "correct the line");
            };
            entry.index = Some(index);
        }
        "Device link speed" | "Device Link speed" => match rate(value) {
            Ok(gfc) => entry.gfc = gfc,
            Err(()) => return Fate::bad("is no rate of Fibre Channel", "correct the line"),
        },
        _ if ATTRIBUTES.contains(&key) => return Fate::Ignored(FURTHER),
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
        ("portState", Some(_)) => {
            reader.is_port_online = value.contains("Online");
            Fate::Ignored(TOPIC)
        }
        ("portSpeed", Some(number)) => {
            let (at, seen, is_online) = (reader.at(), reader.seen, reader.is_port_online);
            let Ok(gfc) = rate(value) else {
                return match is_online {
                    true => Fate::bad("is no rate of Fibre Channel", "correct the line"),
                    // A port without light has the rate of its optics, or any.
                    false => Fate::Ignored(TOPIC),
                };
            };
            reader.facts.ports.push(SwitchPort { at, seen, number, gfc, is_online, ..SwitchPort::default() });
            Fate::Used
        }
        ("portWwn of device(s) connected", _) => Fate::Decoration,
        _ => Fate::Ignored(TOPIC),
    }
}
