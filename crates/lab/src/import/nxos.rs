//! NX-OS: outputs of `show` commands.

use super::facts::{Entry, FarEnd, Kind, Login, Member, Os, PortRef, State, Trunk, speed, wwn};
use super::lines::{Reader, Section};
use super::nxos_config::{self, Cursor};
use super::nxos_interfaces;
use super::report::Fate;
use sanloom_fc::config::ZoneDefault;

/// Begins the output of a `show` command, given in lower case.
pub(super) fn command(reader: &mut Reader<'_>, command: &str) -> Fate {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has = |word: &str| words.iter().any(|other| other.starts_with(word));
    reader.is(Os::NxOs);
    reader.bases.clear();
    reader.entry = None;
    reader.nx = Cursor::default();
    reader.vsan = words.iter().position(|word| *word == "vsan").and_then(|i| words.get(i + 1)?.parse().ok());
    let (section, what) = match words.get(1).copied().unwrap_or("") {
        "flogi" => (Section::Flogi, "show flogi database"),
        "fcns" => (Section::Fcns, "show fcns database"),
        "topology" => (Section::Topology, "show topology"),
        "fcdomain" if has("domain-list") => (Section::Domains, "show fcdomain domain-list"),
        "zone" if has("status") => (Section::ZoneStatus, "show zone status"),
        "zoneset" | "zone" | "fcalias" => (Section::ZoneSets(has("active")), "show zoneset"),
        "device-alias" if has("database") => (Section::DeviceAliases, "show device-alias database"),
        "interface" | "int" if has("brief") => (Section::Brief, "show interface brief"),
        "running-config" | "startup-config" | "run" | "run-config" => (Section::Config, "show running-config"),
        _ => {
            let topic = "outputs of show commands without use";
            reader.section = Section::Ignored(topic);
            return Fate::Ignored(topic);
        }
    };
    reader.begin(section, what);
    Fate::Used
}

/// Recognises the beginning of an output.
pub(super) fn begins(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    // Only such lines are divided into words.
    if !["INTERFACE", "FC", "Number", "Interface", "VSAN"].iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (section, what) = match words[..] {
        ["INTERFACE", "VSAN", "FCID", ..] => (Section::Flogi, "show flogi database"),
        ["FCID", "TYPE", "PWWN", ..] => (Section::Fcns, "show fcns database"),
        ["FC", "Topology", "for", "VSAN", vsan, ..] => {
            reader.vsan = vsan.trim_end_matches(':').parse().ok();
            (Section::Topology, "show topology")
        }
        ["Number", "of", "domains:", ..] => (Section::Domains, "show fcdomain domain-list"),
        ["Interface", "Vsan", "Admin", ..] => (Section::Brief, "show interface brief"),
        _ => {
            // `VSAN 10:` before a table, and `VSAN:10     FCID:0x670041` before a detailed entry.
            let rest = text.strip_prefix("VSAN")?;
            let digits: String = rest.trim_start_matches([' ', ':']).chars().take_while(char::is_ascii_digit).collect();
            let open = [Section::None, Section::Fcns, Section::Domains].contains(&reader.section);
            let vsan = digits.parse().ok().filter(|_| open)?;
            reader.vsan = Some(vsan);
            if let Some((_, address)) = text.split_once("FCID:0x") {
                reader.begin(Section::Fcns, "show fcns database");
                let (at, seen) = (reader.at(), reader.seen);
                let address = u32::from_str_radix(address.trim(), 16).ok().filter(|a| *a <= 0xff_ffff);
                let Some(address) = address else { return Some(Fate::bad("has no address", "complete the line")) };
                reader.facts.entries.push(Entry { at, seen, vsan: Some(vsan), address, ..Entry::default() });
                reader.entry = Some(reader.facts.entries.len() - 1);
            }
            return Some(Fate::Used);
        }
    };
    reader.begin(section, what);
    reader.is(Os::NxOs);
    reader.entry = None;
    Some(Fate::Decoration)
}

/// The words of a row of a table, in which `port-channel 7` is one word.
fn row(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        match words.last_mut() {
            Some(last) if words_of_kind(last) && is_number => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn words_of_kind(word: &str) -> bool {
    matches!(word, "port-channel" | "san-port-channel" | "vfc")
}

fn is_total(text: &str) -> bool {
    text.starts_with("Total number")
}

/// A row `fc1/1  1  0x670061  PWWN NWWN` of `show flogi database`, or the alias below it.
pub(super) fn flogi_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if is_total(text) {
        return Fate::Decoration;
    }
    if text.starts_with('[') {
        return Fate::Ignored("aliases beside logins, which the device-alias database has too");
    }
    let words = row(text);
    let [interface, vsan, address, wwpn, rest @ ..] = &words[..] else { return Fate::Unknown };
    let is_address = address.strip_prefix("0x").is_some_and(|hex| u32::from_str_radix(hex, 16).is_ok());
    let (Ok(vsan), Some(wwpn), true) = (vsan.parse::<u16>(), wwn(wwpn), is_address) else {
        return Fate::Unknown;
    };
    let (at, seen) = (reader.at(), reader.seen);
    let port = PortRef::Name(interface.clone());
    let wwnn = rest.first().and_then(|name| wwn(name));
    if wwnn.is_none() && !rest.is_empty() {
        return Fate::bad("has a node name that cannot be read", "correct the line");
    }
    if interface.starts_with("sup-fc") {
        reader.facts.supervisors.insert(wwpn);
        return Fate::Ignored("login at sup-fc, the management interface of the supervisor and not a port");
    }
    reader.facts.logins.push(Login { at, seen, vsan: Some(vsan), port, wwpn, wwnn });
    Fate::Used
}

/// A row `0x670041  N  PWWN (vendor) scsi-fcp:target`, the alias below it, or a line of a detailed
/// entry.
pub(super) fn fcns_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if is_total(text) {
        return Fate::Decoration;
    }
    if text.starts_with('[') {
        return Fate::Ignored("aliases beside logins, which the device-alias database has too");
    }
    if let Some(address) = text.strip_prefix("0x") {
        let mut words = address.split_whitespace();
        let address = words.next().and_then(|word| u32::from_str_radix(word, 16).ok()).filter(|a| *a <= 0xff_ffff);
        let (Some(address), Some(wwpn)) = (address, words.nth(1).and_then(wwn)) else {
            return Fate::bad("is no entry of a name server", "complete the line");
        };
        let features = text.rsplit_once(char::is_whitespace).map_or("", |_| text);
        let (at, seen, vsan) = (reader.at(), reader.seen, reader.vsan);
        let mut entry = Entry { at, seen, vsan, address, wwpn, ..Entry::default() };
        set_features(&mut entry, features);
        reader.facts.entries.push(entry);
        reader.entry = None;
        return Fate::Used;
    }
    let Some(entry) = reader.entry.and_then(|index| reader.facts.entries.get_mut(index)) else {
        return Fate::Unknown;
    };
    let Some((key, value)) = text.split_once(" :").or_else(|| text.split_once("features  :")) else {
        return match text.split_once(":scsi-fcp") {
            Some(_) => {
                set_features(entry, text);
                Fate::Used
            }
            None => Fate::Ignored("further attributes of name server entries"),
        };
    };
    let value = value.trim_start_matches(':').trim();
    match key.trim() {
        "port-wwn (vendor)" | "node-wwn" | "permanent-port-wwn (vendor)" => {
            let Some(name) = value.get(..23).and_then(wwn) else {
                return Fate::bad("is no world-wide name", "correct the line");
            };
            match key.trim() {
                "node-wwn" => entry.wwnn = Some(name),
                "port-wwn (vendor)" => entry.wwpn = name,
                _ => entry.permanent = Some(name),
            }
        }
        "symbolic-port-name" | "symbolic-node-name" => entry.symbols.push(value.to_owned()),
        key if key.starts_with("fc4-types") => set_features(entry, text),
        _ => return Fate::Ignored("further attributes of name server entries"),
    }
    Fate::Used
}

fn set_features(entry: &mut Entry, text: &str) {
    let both = text.contains(":both");
    entry.is_initiator |= both || text.contains(":init");
    entry.is_target |= both || text.contains(":target");
}

/// A row `fc1/3 0x67(103) fc1/3 198.19.254.123(core-1)` of `show topology`.
pub(super) fn topology_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("Interface") && text.contains("Peer Domain") {
        return Fate::Decoration;
    }
    let words = row(text);
    let [interface, domain, peer, rest @ ..] = &words[..] else { return Fate::Unknown };
    let domain = domain.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex.split('(').next()?, 16).ok());
    let Some(domain) = domain.filter(|domain| (1..=239).contains(domain)) else { return Fate::Unknown };
    let name = rest.iter().find_map(|word| word.split_once('(')?.1.strip_suffix(')'));
    let address = rest.first().map(|word| word.split_once('(').map_or(word.as_str(), |(address, _)| address));
    reader.facts.trunks.push(Trunk {
        at: reader.at(),
        seen: reader.seen,
        vsan: reader.vsan,
        port: PortRef::Name(interface.clone()),
        peer_port: Some(PortRef::Name(peer.clone())),
        peer_wwn: None,
        peer_name: name.filter(|name| !name.is_empty()).map(str::to_owned),
        peer_address: address.filter(|address| !address.is_empty()).map(str::to_owned),
        peer_domain: Some(domain),
        gfc: None,
        master: None,
        width: 1,
    });
    Fate::Used
}

/// A row `0x25(37)  WWN [Principal]` of `show fcdomain domain-list`.
pub(super) fn domain_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    if text.starts_with("Domain ID") && text.contains("WWN") {
        return Fate::Decoration;
    }
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or("");
    let domain = first.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex.split('(').next()?, 16).ok());
    let (Some(domain), Some(wwn)) = (domain.filter(|d| (1..=239).contains(d)), words.next().and_then(wwn)) else {
        return Fate::Unknown;
    };
    let (at, seen, vsan) = (reader.at(), reader.seen, reader.vsan);
    let is_local = text.contains("[Local]");
    reader.facts.members.push(Member { at, seen, vsan, wwn, domain, name: None, is_local });
    Fate::Used
}

/// Words of the headings of `show interface brief`, of all kinds of interfaces.
const HEADINGS: [&str; 41] = [
    "Interface",
    "Vsan",
    "Admin",
    "Status",
    "SFP",
    "Bind",
    "Info",
    "Oper",
    "Port",
    "Logical",
    "Mode",
    "Trunk",
    "Speed",
    "(Gbps)",
    "(bps)",
    "Channel",
    "Type",
    "Ethernet",
    "VLAN",
    "Reason",
    "Ch",
    "#",
    "VRF",
    "IP",
    "Address",
    "MTU",
    "Port-channel",
    "Port-Channel",
    "Protocol",
    "Secondary",
    "VLAN(Type)",
    "VLAN/BD",
    "Description",
    "Profile",
    "Eth",
    "Int",
    "Address/Mask",
    "Vlan",
    "Tunnel",
    "Encapsulation",
    "Loopback",
];

/// Kinds of interfaces without Fibre Channel, before the number, in lower case.
const OTHERS: [&str; 16] = [
    "ethernet",
    "eth",
    "mgmt",
    "sup-fc",
    "vlan",
    "lo",
    "loopback",
    "gigabitethernet",
    "gige",
    "ipstorage",
    "iscsi",
    "fcip",
    "po",
    "veth",
    "tunnel",
    "cpp",
];

/// A row of `show interface brief`.
pub(super) fn brief_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let words = row(text);
    let first = words[0].as_str();
    let (at, seen) = (reader.at(), reader.seen);
    // The operating mode is behind the status.
    let up = words.iter().enumerate().skip(3).find(|(_, word)| *word == "up" || *word == "trunking");
    let far = up.and_then(|(place, _)| words[place + 1..].iter().find_map(|word| FarEnd::of_mode(word)));
    let state = State { at, seen, interface: first.to_owned(), far };
    if !nxos_interfaces::is_interface(first) {
        if first == "mgmt0"
            && let Some(address) = words.iter().find(|word| word.contains('.') && word.contains('/'))
        {
            let address = address.split('/').next().map(str::to_owned);
            reader.sighting().address = address;
            return Fate::Used;
        }
        let lower = first.to_ascii_lowercase();
        let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        if lower.starts_with("fcip") {
            reader.facts.states.push(state);
        }
        return match OTHERS.iter().any(|kind| lower.strip_prefix(kind).is_some_and(is_number)) {
            true => Fate::Ignored("interfaces of other kinds"),
            false if words.iter().all(|word| HEADINGS.contains(&word.as_str())) => Fate::Decoration,
            false => Fate::Unknown,
        };
    }
    // The operating speed is a plain number behind the status, and the channel follows it.
    let is_speed = |word: &String| speed(word).is_some() && word.bytes().all(|b| b.is_ascii_digit());
    let place = words.iter().skip(4).position(is_speed).map(|place| place + 4);
    let gfc = place.and_then(|place| speed(&words[place]));
    let Some(vsan) = words.get(1).and_then(|word| word.parse::<u16>().ok()).filter(|vsan| *vsan > 0) else {
        return Fate::bad("has no VSAN", "complete the line");
    };
    let channel = place.filter(|_| first.starts_with("fc")).and_then(|place| words.get(place + 1));
    let channel = channel.and_then(|word| word.parse::<u16>().ok()).map(|number| format!("port-channel{number}"));
    let interface = reader.sighting().interfaces.entry(first.to_owned()).or_default();
    interface.at = at;
    match gfc {
        // The sum of the members of a port-channel is no statement about one of them.
        Some(gfc) if first.contains("port-channel") || first.starts_with("vfc-po") => interface.gfc = Some(gfc),
        Some(gfc) => interface.state(gfc, at),
        None => {}
    }
    interface.vsan = Some(vsan);
    interface.channel = channel.or(interface.channel.take());
    reader.facts.states.push(state);
    // The sum of the members of a port-channel is any number.
    if up.is_some() && gfc.is_none() && first.starts_with("fc") {
        return Fate::bad("is up at no rate of Fibre Channel", "complete the line");
    }
    Fate::Used
}

/// A line of `show zoneset`, `show zone` or `show fcalias`.
pub(super) fn zone_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let Section::ZoneSets(active) = reader.section else { return Fate::Unknown };
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some((kind, name, vsan)) = nxos_config::header(&words) {
        reader.nx.active = active;
        if kind == Kind::Alias
            && let Some(zone) = zone_around(reader, vsan)
        {
            return nested_alias(reader, &words, name, vsan, &zone);
        }
        reader.nx.nested = None;
        reader.nx.zone = (kind == Kind::Zone).then(|| (reader.indent, vsan, name.to_owned()));
        if kind == Kind::Config {
            let at = reader.at();
            reader.nx.set = Some((vsan, name.to_owned()));
            if active {
                reader.base(Some(vsan)).enabled = Some((name.to_owned(), at));
            }
        }
        let fate = nxos_config::define(reader, kind, name, vsan);
        if kind == Kind::Zone
            && let Some((of, set)) = reader.nx.set.clone()
            && of == vsan
        {
            nxos_config::objects(reader, vsan).configs.entry(set).or_default().members.push(name.to_owned());
        }
        return fate;
    }
    if is_total(text) || text.starts_with("Zoneset not present") || text.starts_with("Zone not present") {
        return Fate::Decoration;
    }
    if !words.first().is_some_and(|word| nxos_config::begins_member(word)) {
        // An object of another kind, whose members are not those of the object before it.
        (reader.nx.object, reader.nx.zone, reader.nx.nested) = (None, None, None);
        return match words.first() {
            Some(&"ivr") => nxos_config::inter_vsan(reader),
            _ => Fate::Unknown,
        };
    }
    if words.first() == Some(&"*") && !active {
        // Only the zones in force list addresses.
        reader.section = Section::ZoneSets(true);
        reader.nx.active = true;
        if let Some((_, vsan, _)) = reader.nx.object.clone() {
            let set = reader.nx.set.clone().filter(|(of, _)| *of == vsan);
            let base = reader.base(Some(vsan));
            base.active = std::mem::take(&mut base.defined);
            base.enabled = set.and_then(|(_, name)| Some((name.clone(), base.active.configs.get(&name)?.at)));
        }
    }
    if reader.nx.nested.is_some_and(|alias| reader.indent <= alias) {
        reader.nx.nested = None;
        reader.nx.object = reader.nx.zone.clone().map(|(_, vsan, zone)| (Kind::Zone, vsan, zone));
    }
    nxos_config::member(reader, &words, true)
}

/// The zone that an alias is listed in: the present one, if the alias is indented deeper.
fn zone_around(reader: &Reader<'_>, vsan: u16) -> Option<String> {
    let (indent, of, name) = reader.nx.zone.as_ref()?;
    (reader.indent > *indent && *of == vsan).then(|| name.clone())
}

/// Reads `fcalias name NAME vsan N [ROLE]` within a zone: a member of the zone, before the members
/// of the alias.
fn nested_alias(reader: &mut Reader<'_>, words: &[&str], name: &str, vsan: u16, zone: &str) -> Fate {
    let mut member = vec!["fcalias", name];
    member.extend(words.get(5..).into_iter().flatten());
    reader.nx.object = Some((Kind::Zone, vsan, zone.to_owned()));
    let fate = nxos_config::member(reader, &member, true);
    if fate != Fate::Used {
        return fate;
    }
    reader.nx.nested = Some(reader.indent);
    nxos_config::define(reader, Kind::Alias, name, vsan)
}

/// A line of `show zone status`.
pub(super) fn status_line(reader: &mut Reader<'_>, text: &str) -> Fate {
    let topic = "state of zone databases";
    let vsan = text.strip_prefix("VSAN:").and_then(|rest| rest.split_whitespace().next()?.parse::<u16>().ok());
    if let Some(vsan) = vsan {
        reader.vsan = Some(vsan);
    }
    let Some(vsan) = reader.vsan else { return Fate::Unknown };
    let at = reader.at();
    let base = reader.base(Some(vsan));
    let mut is_used = false;
    // True if the word behind a key is the first of two. `None`: it is neither.
    let choice = |key: &str, words: [&str; 2]| {
        let (_, rest) = text.split_once(key)?;
        let word = rest.split_whitespace().next().unwrap_or("");
        Some(if words.contains(&word) { Ok(word == words[0]) } else { Err(()) })
    };
    let keys = [("default-zone:", ["permit", "deny"]), ("mode:", ["enhanced", "basic"]), ("smart-zoning:", SMART)];
    for (key, words) in keys {
        let Some(choice) = choice(key, words) else { continue };
        let Ok(is_first) = choice else {
            let reason = format!("has `{key}` with neither `{}` nor `{}`", words[0], words[1]);
            return Fate::bad(reason, "correct the line");
        };
        is_used = true;
        match key {
            "default-zone:" => {
                base.default = Some((if is_first { ZoneDefault::Open } else { ZoneDefault::Closed }, at))
            }
            "mode:" => base.is_enhanced = is_first,
            _ => base.is_smart = Some(is_first),
        }
    }
    if is_used { Fate::Used } else { Fate::Ignored(topic) }
}

/// States of smart zones.
const SMART: [&str; 2] = ["enabled", "disabled"];
