//! Fabric OS: `switchshow`, `islshow`, `trunkshow` and `fabricshow`.

use super::facts::{Logical, Login, Member, Os, PortRef, SwitchPort, Trunk, rate as rate_of, speed, wwn};
use super::lines::{Reader, Section, fabric_id};
use super::report::Fate;
use std::collections::BTreeMap;

/// Columns of the port table of `switchshow`.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    has_slot: bool,
    has_address: bool,
    /// Number of each port by slot and port, for trunks.
    numbers: BTreeMap<(u16, u16), u16>,
}

/// Keys of the head of `switchshow` that a lab has no use for.
const HEAD: &[&str] = &[
    "switchType",
    "switchState",
    "switchMode",
    "switchRole",
    "switchId",
    "zoning",
    "switchBeacon",
    "FC Router",
    "FC Router BB Fabric ID",
    "HIF Mode",
    "Allow XISL Use",
    "LS Attributes",
    "Fabric Name",
    "Address Mode",
    "Insistent Domain",
    "blade3 Beacon",
];

/// Recognises the beginning of an output.
pub(super) fn begins(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    if let Some(name) = text.strip_prefix("switchName:") {
        let name = name.trim();
        if name.is_empty() {
            return Some(Fate::bad("has no name", "complete the line"));
        }
        reader.see(name, Os::FabricOs);
        reader.is(Os::FabricOs);
        reader.begin(Section::SwitchShow, "switchshow");
        return Some(Fate::Used);
    }
    let may_be_table = text.starts_with("Index") || text.starts_with("Area");
    let words: Vec<&str> = if may_be_table { text.split_whitespace().collect() } else { Vec::new() };
    let is_table = matches!(words.first(), Some(&("Index" | "Area"))) && words.contains(&"Media");
    if is_table {
        reader.columns = Columns {
            has_slot: words.contains(&"Slot"),
            has_address: words.contains(&"Address"),
            numbers: BTreeMap::new(),
        };
        reader.begin(Section::SwitchShow, "switchshow");
        return Some(Fate::Decoration);
    }
    if text.starts_with("Switch ID") && text.contains("Worldwide Name") {
        reader.begin(Section::FabricShow, "fabricshow");
        return Some(Fate::Decoration);
    }
    if let Some(rest) = text.strip_prefix("Created switches") {
        // `Created switches FIDs(CIDs): 128(0)(ds) 10(1) 20(2)(bs)` of `lscfg --show`.
        let list = rest.split_once(':').map_or("", |(_, list)| list);
        let fids = list.split_whitespace().filter_map(|word| fabric_id(word.split('(').next()?)).collect();
        let (at, seen) = (reader.at(), reader.seen);
        reader.facts.created.push((at, seen, fids));
        return Some(Fate::Used);
    }
    // Rows of `islshow` and `trunkshow` have forms of their own.
    let (head, rest) = text.split_once("->")?;
    if rest.contains(" deskew ") {
        reader.begin(Section::TrunkShow, "trunkshow");
        return Some(trunk_line(reader, text));
    }
    let is_row = head
        .split_once(':')
        .is_some_and(|(number, port)| number.trim().parse::<u32>().is_ok() && port.trim().parse::<u32>().is_ok());
    is_row.then(|| {
        reader.begin(Section::IslShow, "islshow");
        isl_line(reader, text)
    })
}

/// Reads a line of `switchshow`.
pub(super) fn switch_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if let Some((key, value)) = text.split_once(':')
        && key.trim().bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
    {
        let (key, value) = (key.trim(), value.trim());
        match key {
            "switchDomain" => {
                let number: String = value.chars().take_while(char::is_ascii_digit).collect();
                let domain = number.parse::<u8>().ok().filter(|domain| (1..=239).contains(domain));
                if domain.is_none() {
                    return Fate::bad("is no domain from 1 to 239", "correct the line");
                }
                let (line, sighting) = (reader.line, reader.sighting());
                if let (Some(known), Some((first, domain))) = (sighting.domain, sighting.domain_line.zip(domain))
                    && known != domain
                {
                    return Fate::Conflict {
                        first,
                        reason: format!("is domain {domain} of a switch that has domain {known} before; {known} is kept"),
                        remedy: "if they are virtual fabrics of one chassis, import the output of each from a file of its own"
                            .to_owned(),
                    };
                }
                (sighting.domain, sighting.domain_line) = (domain, Some(line));
                return Fate::Used;
            }
            "switchWwn" => {
                let name = wwn(value);
                if name.is_none() {
                    return Fate::bad("is no world-wide name", "correct the line");
                }
                reader.sighting().wwn = name;
                return Fate::Used;
            }
            "switchMode" if value.contains("Access Gateway") => {
                reader.sighting().is_gateway = true;
                return Fate::bad(
                    "is the mode of a device that is no switch of the fabric",
                    "import the switch that it is connected to, which lists the hosts behind it",
                );
            }
            "LS Attributes" if value.contains("FID:") => return attributes(reader, value),
            _ if HEAD.contains(&key) => return Fate::Ignored("state and settings of switches"),
            _ => return Fate::Unknown,
        }
    }
    port_row(reader, text)
}

/// Reads `[FID: 10, Base Switch: No, Default Switch: No, …]`.
fn attributes(reader: &mut Reader<'_>, value: &str) -> Fate {
    let lower = value.to_ascii_lowercase();
    let digits = |text: &str| text.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>();
    let Some(fid) = lower.split_once("fid:").and_then(|(_, rest)| fabric_id(&digits(rest))) else {
        return Fate::bad("has no fabric ID from 1 to 128", "correct the line");
    };
    let at = reader.at();
    let known = reader.sighting().logical;
    if let Some(known) = known.filter(|known| known.fid != fid) {
        let reason = format!("is virtual fabric {fid} of a switch that has virtual fabric {} before", known.fid);
        return Fate::bad(reason, "import the output of each logical switch from a file of its own");
    }
    let is_default = lower.contains("default switch: yes");
    reader.set_logical(Logical { at, fid, is_default, is_base: lower.contains("base switch: yes") });
    Fate::Used
}

fn port_row(reader: &mut Reader<'_>, text: &str) -> Fate {
    let mut words = text.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<u16>().ok()).filter(|n| *n < u16::MAX) else {
        return Fate::Unknown;
    };
    let slot = if reader.columns.has_slot { words.next().and_then(|word| word.parse().ok()) } else { Some(0) };
    let port = words.next().and_then(|word| word.parse::<u16>().ok());
    let (Some(slot), Some(port)) = (slot, port) else {
        return Fate::bad("is no row of the port table", "complete the line");
    };
    reader.columns.numbers.insert((slot, port), number);
    if reader.sighting().is_gateway {
        return Fate::Ignored("ports of access gateways");
    }
    let address = if reader.columns.has_address { words.next() } else { None };
    let area = address.and_then(|word| u32::from_str_radix(word, 16).ok()).map(|address| address >> 8);
    let (_media, rate_text, state) = (words.next(), words.next().unwrap_or(""), words.next().unwrap_or(""));
    let _protocol = words.next();
    let rest: Vec<&str> = words.collect();
    let is_online = !state.is_empty() && !OFFLINE.contains(&state);
    // A port without light has the rate of its optics, or any.
    let gfc = speed(rate_text);
    let problem = match address {
        Some(word) if area.is_none() && !word.starts_with('-') => Some("has an address that cannot be read"),
        _ if is_online && rate_of(rate_text).is_err() => Some("has a speed that is no rate of Fibre Channel"),
        _ => None,
    };
    let (at, seen) = (reader.at(), reader.seen);
    let mut row = SwitchPort { at, seen, number, gfc, area, is_online, ..SwitchPort::default() };
    let login = |wwpn| Login { at, seen, vsan: None, port: PortRef::Number(number), wwpn, wwnn: None };
    let place = rest.iter().position(|word| word.ends_with("-Port"));
    let behind = rest.get(place.map_or(0, |place| place + 1)..).unwrap_or_default();
    let fate = match place.map_or("", |place| rest[place]) {
        "F-Port" => {
            row.is_occupied = is_online;
            let name = rest.iter().copied().find_map(wwn);
            reader.facts.logins.extend(name.map(login));
            // `1 N Port + 2 NPIV public` counts devices, whose names other outputs have.
            let counts = |word: &&str| matches!(*word, "Port" | "NPIV" | "public") || word.starts_with('(');
            match name.is_none() && !behind.is_empty() && !behind.iter().any(counts) {
                true => Fate::bad("has the name of a device that cannot be read", "correct the line"),
                false => Fate::Used,
            }
        }
        "E-Port" => trunk(reader, number, gfc, text),
        "L-Port" => {
            row.is_loop = true;
            Fate::bad(
                "is an arbitrated loop at a switch port",
                "describe the loop by hand with [loop.NAME] and a [[link]] to it",
            )
        }
        "" | "G-Port" | "U-Port" | "N-Port" if !is_online => Fate::Used,
        _ => Fate::bad("is a port of a kind that the importer does not place", "describe its link by hand"),
    };
    reader.facts.ports.push(row);
    match problem {
        // The row is used without the value.
        Some(reason) if fate == Fate::Used => Fate::bad(reason, "correct the line, or its link in the lab"),
        _ => fate,
    }
}

/// States of ports without light or a link.
const OFFLINE: &[&str] = &[
    "No_Card",
    "No_Module",
    "Mod_Val",
    "Mod_Inv",
    "Mod_Uns",
    "No_Light",
    "No_Sync",
    "No_SigDet",
    "In_Sync",
    "Laser_Flt",
    "Port_Flt",
    "Hard_Flt",
    "Diag_Flt",
    "Lock_Ref",
    "Testing",
    "Offline",
    "Disabled",
    "Faulty",
    "Unknown",
];

/// Reads the port table's row of an E_Port.
fn trunk(reader: &mut Reader<'_>, number: u16, gfc: Option<u32>, text: &str) -> Fate {
    let peer_wwn = text.split_whitespace().find_map(wwn);
    let peer_name = text.split('"').nth(1).filter(|name| !name.is_empty()).map(str::to_owned);
    let master = text.split_once("master is").map(|(_, place)| {
        let numbers: Vec<u16> =
            place.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [slot, port, ..] if place.contains("Slot") => reader.columns.numbers.get(&(slot, port)).copied(),
            [port, ..] => Some(port),
            _ => None,
        }
    });
    let master = match master {
        Some(None) => return Fate::bad("names no known master port", "complete the port table"),
        Some(port) => port,
        None => None,
    };
    if text.contains("segmented") || text.contains("isolated") {
        return Fate::bad("is an isolated E_Port", "add an [[isl]] by hand if the link is to work");
    }
    if peer_wwn.is_none() && master.is_none() {
        return Fate::bad("names no neighbour", "add an [[isl]] by hand");
    }
    reader.facts.trunks.push(Trunk {
        at: reader.at(),
        seen: reader.seen,
        vsan: None,
        port: PortRef::Number(number),
        peer_port: None,
        peer_wwn,
        peer_name,
        peer_address: None,
        peer_domain: None,
        gfc,
        master: master.filter(|port| *port != number),
        width: 1,
    });
    Fate::Used
}

/// Reads a line of `islshow`.
pub(super) fn isl_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("No ISL") {
        return Fate::Used;
    }
    let incomplete = || Fate::bad("is no row of islshow", "complete the line");
    let Some((head, rest)) = text.split_once("->") else { return Fate::Unknown };
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|n| *n < u16::MAX);
    let local = head.split_once(':').and_then(|(_, port)| number(port));
    let mut words = rest.split_whitespace();
    let peer = words.next().and_then(number);
    let peer_wwn = words.next().and_then(wwn);
    let domain = words.next().and_then(|word| word.parse::<u8>().ok()).filter(|domain| (1..=239).contains(domain));
    let name = words.next().filter(|name| *name != "sp:").map(|name| name.trim_matches('"').to_owned());
    let (Some(local), Some(peer), Some(peer_wwn), Some(domain)) = (local, peer, peer_wwn, domain) else {
        return incomplete();
    };
    let value = |key: &str| text.split_once(key).map(|(_, rest)| rest.trim_start());
    // Links over IP have dashes instead of a rate.
    let is_bad = |key: &str| value(key).is_some_and(|rest| !rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()));
    let one = value("sp:").map_or("", |rest| rest.split_whitespace().next().unwrap_or(""));
    let has_bad_speed = is_bad("sp:") || is_bad("bw:") || rate_of(one).is_err();
    let rate = |key: &str| -> Option<f64> {
        let digits: String = value(key)?.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        digits.parse().ok()
    };
    let width = match (rate("sp:"), rate("bw:")) {
        (Some(one), Some(all)) if one >= 1.0 && text.contains("TRUNK") => (all / one).round().clamp(1.0, 64.0) as u32,
        _ => 1,
    };
    reader.facts.trunks.push(Trunk {
        at: reader.at(),
        seen: reader.seen,
        vsan: None,
        port: PortRef::Number(local),
        peer_port: Some(PortRef::Number(peer)),
        peer_wwn: Some(peer_wwn),
        peer_name: name,
        peer_address: None,
        peer_domain: Some(domain),
        gfc: value("sp:").and_then(speed),
        master: None,
        width,
    });
    match has_bad_speed {
        true => Fate::bad("has a speed that is no rate of Fibre Channel", "correct the line, or `rate` in the lab"),
        false => Fate::Used,
    }
}

/// Reads a line of `trunkshow`: the first port of a trunk behind its number, and the others below
/// it.
pub(super) fn trunk_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("No trunking links") {
        return Fate::Used;
    }
    let Some((head, rest)) = text.split_once("->") else {
        return match ["Tx:", "Rx:", "Tx+Rx:"].iter().any(|rate| text.starts_with(rate)) {
            true => Fate::Ignored("port rates"),
            false => Fate::Unknown,
        };
    };
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|n| *n < u16::MAX);
    let (is_first, local) = head.split_once(':').map_or((false, head), |(_, port)| (true, port));
    let mut words = rest.split_whitespace();
    let (local, peer) = (number(local), words.next().and_then(number));
    let peer_wwn = words.next().and_then(wwn);
    let peer_domain = words.next().and_then(|word| word.parse().ok()).filter(|domain| (1..=239).contains(domain));
    let (Some(local), Some(peer), Some(peer_wwn), Some(peer_domain)) = (local, peer, peer_wwn, peer_domain) else {
        if is_first {
            reader.trunk = None;
        }
        return Fate::bad("is no row of trunkshow", "complete the line");
    };
    if is_first {
        reader.trunk = Some(local);
    }
    let Some(first) = reader.trunk else {
        return Fate::bad("belongs to no trunk that can be read", "complete the row of its master");
    };
    reader.facts.trunks.push(Trunk {
        at: reader.at(),
        seen: reader.seen,
        vsan: None,
        port: PortRef::Number(local),
        peer_port: Some(PortRef::Number(peer)),
        peer_wwn: Some(peer_wwn),
        peer_name: None,
        peer_address: None,
        peer_domain: Some(peer_domain),
        gfc: None,
        master: Some(first).filter(|first| *first != local),
        width: 1,
    });
    Fate::Used
}

/// Reads a line of `fabricshow`.
pub(super) fn fabric_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("The Fabric has") || text.starts_with("Fabric Name") {
        return Fate::Decoration;
    }
    let is_address = |word: &str| word.split('/').next().is_some_and(|word| word.parse::<std::net::IpAddr>().is_ok());
    if text.split_whitespace().all(is_address) {
        return Fate::Ignored("IP addresses of switches");
    }
    let Some((domain, rest)) = text.split_once(':') else { return Fate::Unknown };
    let domain = domain.trim().parse::<u8>().ok().filter(|domain| (1..=239).contains(domain));
    let (Some(domain), Some(wwn)) = (domain, rest.split_whitespace().find_map(wwn)) else {
        return Fate::bad("is no row of fabricshow", "complete the line");
    };
    let name = text.split('"').nth(1).filter(|name| !name.is_empty()).map(str::to_owned);
    let (at, seen) = (reader.at(), reader.seen);
    reader.facts.members.push(Member { at, seen, vsan: None, wwn, domain, name, is_local: false });
    Fate::Used
}
