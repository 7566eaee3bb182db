//! JSON of the REST interface of Fabric OS.

use super::facts::{At, Entry, Facts, Logical, LogicalRow, Login, Member, Os, PortRef, SwitchPort, Trunk};
use super::facts::{tail, wwn};
use super::json::{self, Kind, Value};
use super::lines::sighting;
use super::plan::logical;
use super::report::{Fate, FileAccount, Ledger, Note, cut};
use super::rest_zones::Base;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Reader<'r> {
    pub facts: &'r mut Facts,
    ledger: &'r mut Ledger,
    file: u32,
    /// The present switch.
    pub seen: usize,
    /// Sightings of the elements of `fibrechannel-switch`, in their order.
    switches: Vec<usize>,
    /// The number of those that the second pass has met.
    met: usize,
    /// Zone databases by switch, with the answers that they are of.
    pub bases: BTreeMap<usize, Base>,
    /// Switch of the present list of ports.
    home: Option<usize>,
    /// Lines of resources without elements, such as the zones of a fabric that has none.
    empty: BTreeSet<u32>,
    /// Fates of values that cannot be used, by line.
    bad: BTreeMap<u32, Vec<Fate>>,
}

/// Reads one file of JSON documents.
pub(super) fn read(file: u32, text: &str, mut ledger: Ledger, facts: &mut Facts, notes: &mut Vec<Note>) -> FileAccount {
    facts.sightings.push(sighting(At { file, line: 0 }, None, Some(Os::FabricOs)));
    let seen = facts.sightings.len() - 1;
    let (documents, error) = json::read(text);
    let (switches, bases, empty, bad) = (Vec::new(), BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    let mut reader = Reader { facts, ledger: &mut ledger, file, seen, switches, met: 0, bases, home: None, empty, bad };
    // Switches first, because the other resources refer to them.
    for pass in [Pass::Switches, Pass::Others] {
        // A resource before all switches belongs to the first one.
        reader.seen = reader.switches.first().copied().unwrap_or(seen);
        documents.iter().for_each(|document| reader.walk(document, pass, 0));
    }
    let (bad, empty) = (std::mem::take(&mut reader.bad), std::mem::take(&mut reader.empty));
    let mut leaves = Leaves::default();
    documents.iter().for_each(|document| leaves.collect(document));
    for (index, line) in text.lines().enumerate() {
        let number = index as u32 + 1;
        let fate = if let Some(error) = error.as_ref().filter(|error| number >= error.line) {
            Fate::bad(error.reason.clone(), "repeat the request, and save the whole answer")
        } else if let Some(fate) = bad.get(&number).and_then(|all| all.first()) {
            fate.clone()
        } else if leaves.used.contains(&number) || empty.contains(&number) {
            Fate::Used
        } else if leaves.unused.contains_key(&number) {
            Fate::Ignored(UNUSED)
        } else {
            Fate::Decoration
        };
        let is_ignored = matches!(fate, Fate::Ignored(_));
        ledger.enter(number, line, fate, notes);
        // A line can have several values, as in a document without line breaks.
        for fate in bad.get(&number).into_iter().flatten().skip(1) {
            notes.extend(ledger.note(number, line, fate.clone()));
        }
        let unused = leaves.unused.get(&number).copied().unwrap_or(0);
        let others = unused.saturating_sub(u32::from(is_ignored));
        if others > 0 {
            ledger.enter_unused(number, UNUSED, others);
        }
    }
    ledger.close(notes)
}

const UNUSED: &str = "values of the REST interface without use";

/// Lines of the values, by whether they were used.
#[derive(Default)]
struct Leaves {
    used: BTreeSet<u32>,
    /// Number of values without use, by line.
    unused: BTreeMap<u32, u32>,
}

impl Leaves {
    fn collect(&mut self, value: &Value) {
        match &value.kind {
            Kind::Object(members) => members.iter().for_each(|(_, value)| self.collect(value)),
            Kind::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Kind::Leaf(_) if value.used.get() => _ = self.used.insert(value.line),
            Kind::Leaf(_) => *self.unused.entry(value.line).or_default() += 1,
        }
    }
}

/// Gives trunks of documents that do not name their switch to the switch of another document: the
/// only one with links from the same ports to the same neighbours.
pub(super) fn place_trunks(facts: &mut Facts, notes: &mut Vec<Note>) {
    for mut loose in std::mem::take(&mut facts.loose_trunks) {
        let same = |seen: usize, trunk: &Trunk| {
            facts.trunks.iter().any(|other| {
                other.seen == seen
                    && other.port == trunk.port
                    && other.peer_wwn.map(tail).zip(trunk.peer_wwn.map(tail)).is_some_and(|(a, b)| a == b)
            })
        };
        let all: BTreeSet<usize> = facts.trunks.iter().map(|trunk| trunk.seen).collect();
        let fit: Vec<usize> = all.into_iter().filter(|seen| loose.iter().all(|trunk| same(*seen, trunk))).collect();
        match (&fit[..], loose.first()) {
            (_, None) => {}
            ([seen], _) => {
                loose.iter_mut().for_each(|trunk| trunk.seen = *seen);
                facts.trunks.append(&mut loose);
            }
            (_, Some(first)) => {
                let reason = "are of a switch that the document does not name, and that no other document fits";
                let remedy = "put the answer into one file behind that of fibrechannel-switch of the same switch";
                super::note(facts, notes, super::NoteKind::Unplaced, &[first.at], "trunks", reason, remedy);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Switches,
    Others,
}

impl Reader<'_> {
    fn walk(&mut self, value: &Value, pass: Pass, depth: u32) {
        if depth > 8 {
            return;
        }
        match &value.kind {
            Kind::Object(members) => {
                for (name, value) in members {
                    self.resource(name, value, pass, depth);
                }
            }
            Kind::Array(items) => items.iter().for_each(|item| self.walk(item, pass, depth + 1)),
            Kind::Leaf(_) => {}
        }
    }

    fn resource(&mut self, name: &str, value: &Value, pass: Pass, depth: u32) {
        let mut has = |what: &'static str| {
            self.ledger.contains(what);
            if value.is_empty() {
                self.empty.insert(value.line);
            }
        };
        match (name, pass) {
            ("fibrechannel-switch", Pass::Switches) => {
                has("fibrechannel-switch");
                value.items().for_each(|item| self.switch(item));
            }
            ("fibrechannel-logical-switch", Pass::Others)
                if value.is_empty() || value.items().any(|item| item.get("fabric-id").is_some()) =>
            {
                has("fibrechannel-logical-switch");
                let list = self.facts.logical.last().map_or(0, |row| row.list + 1);
                value.items().for_each(|item| self.logical(item, list));
            }
            ("fabric-switch", Pass::Others) => {
                has("fabric-switch");
                value.items().for_each(|item| self.member(item));
            }
            ("fibrechannel", Pass::Others) => {
                has("fibrechannel");
                self.identify(value);
                value.items().for_each(|item| self.port(item));
            }
            ("fibrechannel-name-server", Pass::Others) => {
                has("fibrechannel-name-server");
                value.items().for_each(|item| self.entry(item));
            }
            ("trunk", Pass::Others) => {
                has("trunk");
                self.trunks(value);
            }
            ("defined-configuration", Pass::Others) => {
                has("defined-configuration");
                self.defined(value);
            }
            ("effective-configuration", Pass::Others) => {
                has("effective-configuration");
                self.effective(value);
            }
            // The resources behind a switch belong to it.
            ("fibrechannel-switch", Pass::Others) => {
                self.met += value.items().count();
                if let Some(seen) = self.met.checked_sub(1).and_then(|last| self.switches.get(last)) {
                    (self.seen, self.home) = (*seen, None);
                }
            }
            _ => self.walk(value, pass, depth + 1),
        }
    }

    pub fn at(&self, value: &Value) -> At {
        At { file: self.file, line: value.line }
    }

    pub fn refuse(&mut self, value: &Value, reason: impl Into<String>, remedy: &'static str) {
        self.bad.entry(value.line).or_default().push(Fate::bad(reason, remedy));
    }

    pub fn conflict(&mut self, line: u32, first: u32, reason: String, remedy: &str) {
        let fate = Fate::Conflict { first, reason, remedy: remedy.to_owned() };
        self.bad.entry(line).or_default().push(fate);
    }

    /// Reads the text `key` of an object. A text that is there and cannot be read is refused.
    pub fn read<T>(&mut self, value: &Value, key: &str, what: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = value.text(key).filter(|text| !is_absent(text))?;
        let read = parse(text);
        if read.is_none() {
            let reason = format!("has `{key}` {}, which is no {what}", cut(text));
            self.refuse(value.get(key).unwrap_or(value), reason, "correct it, or repeat the request");
        }
        read
    }

    fn wwn(&mut self, value: &Value, key: &str) -> Option<u64> {
        self.read(value, key, "world-wide name", wwn)
    }

    fn domain(&mut self, value: &Value, key: &str) -> Option<u8> {
        let domain = |text: &str| text.parse().ok().filter(|domain| (1..=239).contains(domain));
        self.read(value, key, "domain from 1 to 239", domain)
    }

    fn port_number(&mut self, value: &Value, key: &str) -> Option<u16> {
        self.read(value, key, "number of a port", |text| text.parse().ok().filter(|number| *number < u16::MAX))
    }

    fn switch(&mut self, value: &Value) {
        let at = self.at(value);
        let name = value.text("user-friendly-name").map(str::to_owned);
        let current = &mut self.facts.sightings[self.seen];
        if current.wwn.is_some() || current.name.is_some() {
            self.facts.sightings.push(sighting(at, None, Some(Os::FabricOs)));
            self.seen = self.facts.sightings.len() - 1;
        }
        self.switches.push(self.seen);
        let (wwn, domain) = (self.wwn(value, "name"), self.domain(value, "domain-id"));
        // -1 without Virtual Fabrics.
        let fid = |text: &str| match text.parse::<i32>() {
            Ok(fid) if fid < 1 => Some(None),
            Ok(fid) => u16::try_from(fid).ok().filter(|fid| *fid <= 128).map(Some),
            Err(_) => None,
        };
        let fid = self.read(value, "vf-id", "fabric ID from 1 to 128", fid).flatten();
        let current = &mut self.facts.sightings[self.seen];
        current.at = at;
        current.name = name.filter(|name| !name.is_empty());
        (current.wwn, current.domain) = (wwn, domain);
        current.logical = fid.map(|fid| Logical::of(at, fid));
    }

    fn logical(&mut self, value: &Value, list: usize) {
        let at = self.at(value);
        let is = |key: &str| matches!(value.text(key), Some("1" | "true" | "yes"));
        let Some(fid) = value.number("fabric-id").filter(|fid| (1..=128).contains(fid)) else {
            return self.refuse(value, "is a logical switch without a fabric ID from 1 to 128", "repeat the request");
        };
        let is_default = is("default-switch") || is("default-switch-status") || fid == 128;
        let logical = Logical { at, fid, is_default, is_base: is("base-switch-enabled") };
        let ports = value.get("port-member-list").and_then(|ports| ports.get("port-member"));
        let ports = ports.map(|ports| ports.items().filter_map(|port| port.leaf().map(str::to_owned)).collect());
        let wwn = self.wwn(value, "switch-wwn");
        self.facts.logical.push(LogicalRow { list, wwn, logical, ports: ports.unwrap_or_default() });
    }

    fn member(&mut self, value: &Value) {
        let (name, domain) = (value.text("name").and_then(wwn), value.number::<u8>("domain-id"));
        let (Some(wwn), Some(domain)) = (name, domain.filter(|domain| (1..=239).contains(domain))) else {
            let reason = "is a switch without a name or a domain from 1 to 239";
            return self.refuse(value, reason, "repeat the request");
        };
        let (at, seen) = (self.at(value), self.seen);
        let name = value.text("switch-user-friendly-name").filter(|name| !name.is_empty()).map(str::to_owned);
        self.facts.members.push(Member { at, seen, vsan: None, wwn, domain, name, is_local: false });
    }

    /// Finds the switch of a list of ports that all share six bytes of their names. In a file
    /// without `fibrechannel-switch` it has only its world-wide name; another file may then tell
    /// the rest.
    fn identify(&mut self, ports: &Value) {
        let at = self.at(ports);
        let names: BTreeSet<u64> = ports.items().filter_map(|port| port.text("wwn").and_then(wwn)).map(tail).collect();
        let (Some(&name), 1) = (names.first(), names.len()) else {
            self.home = None;
            return;
        };
        let current = &mut self.facts.sightings[self.seen];
        if current.wwn.is_none() && current.name.is_none() {
            (current.at, current.wwn) = (at, Some(0x1000_0000_0000_0000 | name));
        }
        let home = self.switch_of(Some(name), at);
        self.home = Some(home);
        // The ports of a logical switch may have the names of another one of its chassis.
        let present = &self.facts.sightings[self.seen];
        let may_share = |own: u64| present.logical.is_some() && logical::is_near(tail(own), name);
        if present.wwn.is_some_and(|own| !may_share(own)) {
            self.seen = home;
        }
    }

    /// The switch that a port belongs to: ports share six bytes of the name of their switch.
    fn switch_of(&mut self, port_name: Option<u64>, at: At) -> usize {
        let Some(port_name) = port_name else { return self.home.unwrap_or(self.seen) };
        let of = |seen: &super::facts::Sighting| {
            seen.at.file == self.file && seen.wwn.is_some_and(|name| tail(name) == tail(port_name))
        };
        if let Some(home) = self.home.filter(|home| of(&self.facts.sightings[*home])) {
            return home;
        }
        if let Some(seen) = self.facts.sightings.iter().position(of) {
            return seen;
        }
        if self.facts.sightings[self.seen].name.is_some() {
            return self.seen;
        }
        // The switch itself is in another file, which tells its name.
        let mut new = sighting(at, None, Some(Os::FabricOs));
        new.wwn = Some(0x1000_0000_0000_0000 | tail(port_name));
        self.facts.sightings.push(new);
        self.facts.sightings.len() - 1
    }

    fn port(&mut self, value: &Value) {
        let at = self.at(value);
        let name = self.wwn(value, "wwn");
        let seen = self.switch_of(name, at);
        // `0/5` on a switch with one slot is port 5; elsewhere the index tells it.
        let slot_port = value.text("name").and_then(|name| name.split_once('/'));
        let port = slot_port.filter(|(slot, _)| *slot == "0").and_then(|(_, port)| port.parse().ok());
        let index = self.port_number(value, "index");
        let number = index.or_else(|| self.port_number(value, "default-index")).or(port);
        let Some(number) = number.filter(|number: &u16| *number < u16::MAX) else {
            return self.refuse(value, "is a port without a number", "repeat the request");
        };
        if let Some(name) = value.text("name").filter(|name| name.contains('/')) {
            self.facts.slots.insert((seen, name.to_owned()), number);
        }
        let is_online = value.text("operational-status") == Some("2");
        let rate = |text: &str| match text.parse::<u64>() {
            Ok(0) => Some(None),
            bits => gfc_of(bits.ok()?).map(Some),
        };
        // A port without light has no rate, or any.
        let gfc = match is_online {
            true => self.read(value, "speed", "rate of Fibre Channel", rate).flatten(),
            false => value.text("speed").and_then(rate).flatten(),
        };
        let kind = self.read(value, "port-type", "number", |text| text.parse::<u32>().ok());
        let kind = kind.or_else(|| match value.text("port-type-string")? {
            "e-port" => Some(7),
            "f-port" => Some(15),
            "u-port" => Some(11),
            "l-port" => Some(LOOP),
            "unknown" | "other" | "g-port" | "n-port" => Some(0),
            _ => Some(OTHER),
        });
        let mut neighbours: Vec<u64> = Vec::new();
        let names = value.get("neighbor").and_then(|neighbour| neighbour.get("wwn"));
        for name in names.iter().flat_map(|names| names.items()) {
            let Some(text) = name.leaf().filter(|text| !is_absent(text)) else { continue };
            match wwn(text) {
                Some(name) => neighbours.push(name),
                None => {
                    let reason = format!("has the neighbour {}, which is no world-wide name", cut(text));
                    self.refuse(name, reason, "correct it, or repeat the request");
                }
            }
        }
        let node = self.wwn(value, "neighbor-node-wwn");
        let peer_port = value.text("neighbor-slot-port").and_then(|name| name.split_once('/'));
        let peer_port = peer_port.filter(|(slot, _)| *slot == "0").and_then(|(_, port)| port.parse().ok());
        let peer_name = value.text("neighbor-switch-user-friendly-name").filter(|name| !name.is_empty());
        let is_loop = is_online && kind == Some(LOOP);
        let mut row = SwitchPort { at, seen, number, gfc, is_online, is_loop, ..SwitchPort::default() };
        match kind {
            Some(15) => {
                row.is_occupied = is_online;
                let login = |wwpn| Login { at, seen, vsan: None, port: PortRef::Number(number), wwpn, wwnn: None };
                self.facts.logins.extend(neighbours.into_iter().map(login));
            }
            Some(7) if is_online => self.facts.trunks.push(Trunk {
                at,
                seen,
                vsan: None,
                port: PortRef::Number(number),
                peer_port: peer_port.map(PortRef::Number),
                peer_wwn: node.or(neighbours.first().copied()),
                peer_name: peer_name.map(str::to_owned),
                peer_address: None,
                peer_domain: None,
                gfc,
                master: None,
                width: 1,
            }),
            // A port that is online without a neighbour may wait for one.
            None | Some(0 | 10 | 11 | 17) if is_online && (!neighbours.is_empty() || node.unwrap_or(0) != 0) => {
                let reason = "is a port with a neighbour, of a kind that the importer does not place";
                self.refuse(value, reason, "describe its link by hand");
            }
            None | Some(0 | 7 | 10 | 11 | 17) => {}
            Some(_) if is_online => {
                self.refuse(value, "is a port of a kind that the importer does not place", "describe its link by hand");
            }
            Some(_) => {}
        }
        self.facts.ports.push(row);
    }

    /// Reads the list `trunk`: the ports of each group belong together.
    fn trunks(&mut self, list: &Value) {
        let seen = self.home.unwrap_or(self.seen);
        let mut masters: BTreeMap<u32, u16> = BTreeMap::new();
        for item in list.items() {
            if let (Some(group), Some(port), Some("true")) =
                (item.number("group"), item.number("source-port"), item.text("master"))
            {
                masters.entry(group).or_insert(port);
            }
        }
        let mut found = Vec::new();
        for item in list.items() {
            let (Some(group), Some(number)) = (item.number::<u32>("group"), item.number::<u16>("source-port")) else {
                self.refuse(item, "is a port of a trunk without group or port", "repeat the request");
                continue;
            };
            let name = item.text("neighbor-switch-name").filter(|name| !name.is_empty());
            let peer_port = self.port_number(item, "destination-port");
            found.push(Trunk {
                at: self.at(item),
                seen,
                vsan: None,
                port: PortRef::Number(number),
                peer_port: peer_port.map(PortRef::Number),
                peer_wwn: self.wwn(item, "neighbor-wwn"),
                peer_name: name.map(str::to_owned),
                peer_address: None,
                peer_domain: self.domain(item, "neighbor-domain-id"),
                gfc: None,
                master: masters.get(&group).copied().filter(|master| *master != number),
                width: 1,
            });
        }
        let own = &self.facts.sightings[seen];
        match own.wwn.is_some() || own.name.is_some() {
            true => self.facts.trunks.extend(found),
            false => self.facts.loose_trunks.push(found),
        }
    }

    fn entry(&mut self, value: &Value) {
        let at = self.at(value);
        let address = value.text("port-id").and_then(|id| u32::from_str_radix(id.strip_prefix("0x")?, 16).ok());
        let name = value.text("port-name").and_then(wwn);
        let (Some(address), Some(wwpn)) = (address.filter(|a| *a <= 0xff_ffff), name) else {
            return self.refuse(value, "is an entry of a name server without address or name", "repeat the request");
        };
        let features = value.text("fc4-features").unwrap_or("").to_owned();
        let device = value.text("name-server-device-type").unwrap_or("").to_owned();
        let both = format!("{features} {device}");
        let symbols = ["port-symbolic-name", "node-symbolic-name"];
        let symbols = symbols.iter().filter_map(|key| value.text(key));
        let known = !device.to_ascii_lowercase().contains("unknown");
        let symbols = symbols.map(|text| text.split('"').nth(1).unwrap_or(text).to_owned()).collect();
        let rate = |text: &str| super::facts::rate(text).ok();
        let entry = Entry {
            at,
            seen: self.seen,
            vsan: None,
            address,
            wwpn,
            wwnn: self.wwn(value, "node-name"),
            is_initiator: features.contains("Initiator") || known && both.contains("Initiator"),
            is_target: features.contains("Target") || known && both.contains("Target"),
            is_virtual: device.contains("NPIV"),
            symbols,
            fabric_port: self.wwn(value, "fabric-port-name"),
            permanent: self.wwn(value, "permanent-port-name"),
            // Numbers of ports at other switches are not those of this one.
            gfc: self.read(value, "link-speed", "rate of Fibre Channel", rate).flatten(),
            ..Entry::default()
        };
        self.facts.entries.push(entry);
    }
}

/// `port-type` of an arbitrated loop.
const LOOP: u32 = 16;

/// `port-type` of any kind that the importer does not know.
const OTHER: u32 = u32::MAX;

/// True for the words of the REST interface for a value that it does not have.
fn is_absent(text: &str) -> bool {
    let words = ["", "null", "none", "n/a", "na", "-", "--", "unknown", "auto"];
    words.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// The rate of Fibre Channel that a number of bits per second is.
fn gfc_of(bits: u64) -> Option<u32> {
    let rate = u32::try_from(bits / 1_000_000_000).ok();
    rate.filter(|rate| [1, 2, 4, 8, 10, 16, 32, 64, 128].contains(rate))
}
