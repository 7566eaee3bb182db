//! Physical switches: which sightings are the same one.

use super::{At, Chassis, Facts, NO_VSAN, Note, NoteKind, Os, Plan, PortRef, note, tail};
use crate::import::facts::{Member, Trunk};
use crate::import::nodes::{Names, sanitise};
use std::collections::{BTreeMap, BTreeSet};

/// Fills `plan.chassis` and `plan.chassis_of`.
pub(super) fn build(facts: &Facts, plan: &mut Plan, notes: &mut Vec<Note>) {
    let has_ports = sightings_with_ports(facts);
    plan.chassis_of = vec![None; facts.sightings.len()];
    let mut index = Index::default();
    let told = Told::of(facts);
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        if sighting.is_gateway {
            continue;
        }
        let wwn = sighting.wwn.or(told.local.get(&seen).copied());
        let is_switch = has_ports.contains(&seen) || wwn.is_some() || sighting.domain.is_some();
        // Another file may name a switch of that world-wide name.
        let by_wwn = |names: &BTreeMap<u64, &Option<String>>| (*names.get(&tail(wwn?))?).clone();
        let name = sighting.name.clone().or_else(|| by_wwn(&told.listed)).or_else(|| by_wwn(&told.named));
        let fid = sighting.logical.map(|logical| logical.fid);
        let is_known = |name: &String| index.by_name.contains_key(&index.key(plan, name, fid));
        if !is_switch && !name.as_ref().is_some_and(is_known) {
            continue;
        }
        let (name, key) = match name {
            Some(name) => (name.clone(), name),
            None => {
                let name = stem(facts, sighting.at);
                let at = At { line: 1, ..sighting.at };
                let remedy = match sighting.os {
                    Some(Os::NxOs) => "add the line `switchname` of show running-config",
                    _ => "add the output of switchshow",
                };
                let reason = "names no switch, so the switch has the name of the file";
                note(facts, notes, NoteKind::Decision, &[at], name.clone(), reason, remedy);
                // Files of the same name in two folders are of two switches. No name of a
                // switch has such a byte.
                (name, format!("\0{}", facts.files.get(sighting.at.file as usize).map_or("", String::as_str)))
            }
        };
        let key = index.key(plan, &key, fid);
        let chassis = index.find_or_name(plan, &key, &name, wwn);
        plan.chassis_of[seen] = Some(chassis);
        let found = &mut plan.chassis[chassis];
        // A line of attributes tells more than a prompt.
        found.logical = match (found.logical, sighting.logical) {
            (Some(a), Some(b)) if b.is_base || b.is_default && !a.is_base => Some(b),
            (a, b) => a.or(b),
        };
        found.is_seen = true;
        found.os = found.os.or(sighting.os);
        found.addresses.extend(sighting.address.clone());
        if let Some(domain) = sighting.domain {
            set_domain(facts, plan, chassis, NO_VSAN, domain, sighting.at, notes);
        }
    }
    // Sightings that came before the one that makes their name known.
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        if plan.chassis_of[seen].is_none()
            && !sighting.is_gateway
            && let Some(name) = &sighting.name
        {
            let key = index.key(plan, name, sighting.logical.map(|logical| logical.fid));
            plan.chassis_of[seen] = index.by_name.get(&key).copied();
        }
    }
    for (at, seen, vsan, domain) in &facts.domains {
        if let Some(chassis) = plan.chassis_of[*seen] {
            set_domain(facts, plan, chassis, *vsan, *domain, *at, notes);
        }
    }
    for (seen, vsan, priority) in &facts.priorities {
        if let Some(chassis) = plan.chassis_of[*seen] {
            plan.chassis[chassis].priorities.entry(*vsan).or_insert(*priority);
        }
    }
    // Neighbours with a name first: lists of domains have none.
    let named = |trunk: &&Trunk| trunk.peer_name.is_some();
    facts.trunks.iter().filter(named).for_each(|trunk| neighbour(facts, plan, &mut index, trunk, notes));
    for member in &facts.members {
        let is_nx = facts.sightings[member.seen].os == Some(Os::NxOs);
        let vsan = if is_nx { member.vsan.unwrap_or(1) } else { NO_VSAN };
        let chassis = index.find_member(plan, member, is_nx, vsan);
        plan.chassis[chassis].os.get_or_insert(if is_nx { Os::NxOs } else { Os::FabricOs });
        set_domain(facts, plan, chassis, vsan, member.domain, member.at, notes);
    }
    facts.trunks.iter().for_each(|trunk| neighbour(facts, plan, &mut index, trunk, notes));
    unique_names(plan);
    number_interfaces(facts, plan);
    for port in &facts.ports {
        if let Some(chassis) = plan.chassis_of[port.seen] {
            plan.chassis[chassis].listed.insert(port.number);
            let ports = &mut plan.chassis[chassis].ports;
            *ports = Some(ports.unwrap_or(0).max(port.number.saturating_add(1)));
        }
    }
}

/// World-wide names and names that inputs tell of switches.
struct Told<'f> {
    /// The world-wide name of the switch that an output is of, by sighting.
    local: BTreeMap<usize, u64>,
    /// Names in lists of switches, by the last six bytes of the world-wide name.
    listed: BTreeMap<u64, &'f Option<String>>,
    /// Names of sightings, by the same.
    named: BTreeMap<u64, &'f Option<String>>,
}

impl Told<'_> {
    /// The first statement of each counts.
    fn of(facts: &Facts) -> Told<'_> {
        let mut told = Told { local: BTreeMap::new(), listed: BTreeMap::new(), named: BTreeMap::new() };
        for member in &facts.members {
            if member.is_local {
                told.local.entry(member.seen).or_insert(member.wwn);
            }
            told.listed.entry(tail(member.wwn)).or_insert(&member.name);
        }
        for sighting in facts.sightings.iter().filter(|sighting| sighting.name.is_some()) {
            if let Some(wwn) = sighting.wwn {
                told.named.entry(tail(wwn)).or_insert(&sighting.name);
            }
        }
        told
    }
}

/// Sightings that list ports, logins or links.
fn sightings_with_ports(facts: &Facts) -> BTreeSet<usize> {
    let ports = facts.ports.iter().map(|port| port.seen);
    let logins = facts.logins.iter().map(|login| login.seen);
    let trunks = facts.trunks.iter().map(|trunk| trunk.seen);
    let named = facts.sightings.iter().enumerate();
    let interfaces = named.filter(|(_, sighting)| !sighting.interfaces.is_empty()).map(|(seen, _)| seen);
    let domains = facts.domains.iter().map(|(_, seen, ..)| *seen);
    let vsans = facts.vsans.iter().map(|(seen, _)| *seen);
    let domains = domains.chain(vsans);
    ports.chain(logins).chain(trunks).chain(interfaces).chain(domains).collect()
}

/// Name of a file without folder and ending, or with its folder if another file has the same name.
fn stem(facts: &Facts, at: At) -> String {
    fn parts(path: &str) -> (&str, Option<&str>) {
        let mut parts = path.rsplit(['/', '\\']);
        let name = parts.next().unwrap_or(path);
        (name.split('.').next().unwrap_or(name), parts.next().filter(|folder| !folder.is_empty()))
    }
    let path = facts.files.get(at.file as usize).map_or("", String::as_str);
    let (name, folder) = parts(path);
    let is_shared = facts.files.iter().any(|other| other != path && parts(other).0 == name);
    match folder.filter(|_| is_shared) {
        Some(folder) => format!("{folder}-{name}"),
        None => name.to_owned(),
    }
}

/// Chassis by name.
#[derive(Default)]
struct Index {
    by_name: BTreeMap<String, usize>,
}

impl Index {
    /// Key of a switch with a name. Logical switches of one chassis may have the same name.
    fn key(&self, plan: &Plan, name: &str, fid: Option<u16>) -> String {
        let own = self.by_name.get(name).and_then(|chassis| plan.chassis[*chassis].logical);
        match (own, fid) {
            (Some(own), Some(fid)) if own.fid != fid => format!("\0{name}\0{fid}"),
            _ => name.to_owned(),
        }
    }

    /// Two switches with different world-wide names are two switches, whatever their names.
    fn find(&mut self, plan: &mut Plan, name: &str, wwn: Option<u64>) -> usize {
        self.find_or_name(plan, name, name, wwn)
    }

    /// The same by the key `name`. A new switch is called `wanted`.
    fn find_or_name(&mut self, plan: &mut Plan, name: &str, wanted: &str, wwn: Option<u64>) -> usize {
        let by_tail = wwn.and_then(|wwn| plan.chassis_with(wwn));
        let same = |chassis: &usize| match (wwn, plan.chassis[*chassis].wwn) {
            (Some(a), Some(b)) => tail(a) == tail(b),
            _ => true,
        };
        let by_name = self.by_name.get(name).copied().filter(same);
        let chassis = by_tail.or(by_name).unwrap_or_else(|| {
            plan.chassis.push(Chassis { name: wanted.to_owned(), ..Chassis::default() });
            let chassis = plan.chassis.len() - 1;
            if wwn.is_none() {
                plan.nameless.entry(wanted.to_owned()).or_default().push(chassis);
            }
            chassis
        });
        let called = if name.starts_with('\0') { wanted } else { name };
        plan.chassis[chassis].called.insert(called.to_owned());
        self.by_name.entry(name.to_owned()).or_insert(chassis);
        if let Some(wwn) = wwn {
            plan.by_tail.insert(tail(wwn), chassis);
            plan.chassis[chassis].wwn.get_or_insert(wwn);
        }
        chassis
    }

    /// Finds a listed switch: by its world-wide name, or by its domain if only one switch without a
    /// known world-wide name has that.
    fn find_member(&mut self, plan: &mut Plan, member: &Member, is_nx: bool, vsan: u16) -> usize {
        if let Some(chassis) = plan.chassis_with(member.wwn) {
            return chassis;
        }
        let has_domain = |chassis: &&Chassis| {
            chassis.wwn.is_none() && chassis.domains.get(&vsan).is_some_and(|(domain, _)| *domain == member.domain)
        };
        let mut same = plan.chassis.iter().filter(has_domain).map(|chassis| chassis.name.clone());
        let nameless = same.next().filter(|_| same.next().is_none() && member.name.is_none());
        let made = || format!("{}{}", if is_nx { "domain" } else { "switch" }, member.domain);
        let name = member.name.clone().or(nameless).unwrap_or_else(made);
        self.find(plan, &name, Some(member.wwn))
    }
}

/// Adds the neighbour of a link.
fn neighbour(facts: &Facts, plan: &mut Plan, index: &mut Index, trunk: &Trunk, notes: &mut Vec<Note>) {
    let Some(own) = plan.chassis_of[trunk.seen] else { return };
    let os = plan.chassis[own].os;
    let chassis = match (peer(facts, plan, trunk), &trunk.peer_name, trunk.peer_wwn) {
        (Some(chassis), ..) => chassis,
        // NX-OS adds the name of the DNS domain.
        (None, Some(name), wwn) if os == Some(Os::NxOs) => index.find_or_name(plan, name, label(name), wwn),
        (None, Some(name), wwn) => index.find(plan, name, wwn),
        (None, None, Some(wwn)) => index.find(plan, &format!("switch-{:06x}", wwn & 0xff_ffff), Some(wwn)),
        (None, None, None) => return,
    };
    let found = &mut plan.chassis[chassis];
    found.called.extend(trunk.peer_name.clone());
    found.addresses.extend(trunk.peer_address.clone());
    found.os = found.os.or(os);
    if let (None, Some(wwn)) = (found.wwn, trunk.peer_wwn) {
        found.wwn = Some(wwn);
        plan.by_tail.insert(tail(wwn), chassis);
    }
    if let Some(domain) = trunk.peer_domain {
        let vsan = if os == Some(Os::NxOs) { trunk.vsan.unwrap_or(1) } else { NO_VSAN };
        set_domain(facts, plan, chassis, vsan, domain, trunk.at, notes);
    }
}

/// The chassis at the other end of a link, if it is known.
pub(super) fn peer(facts: &Facts, plan: &Plan, trunk: &Trunk) -> Option<usize> {
    if let Some(wwn) = trunk.peer_wwn {
        return plan.chassis_with(wwn).or_else(|| {
            let all = plan.nameless.get(trunk.peer_name.as_ref()?)?;
            all.iter().copied().filter(|chassis| plan.chassis[*chassis].wwn.is_none()).min()
        });
    }
    let own = plan.chassis_of[trunk.seen];
    let is_nx = own.is_some_and(|own| plan.chassis[own].os == Some(Os::NxOs));
    let others = || plan.chassis.iter().enumerate().filter(|(i, _)| Some(*i) != own);
    let find = |is_it: &dyn Fn(&Chassis) -> bool| others().find(|(_, chassis)| is_it(chassis)).map(|(i, _)| i);
    if let Some(name) = &trunk.peer_name {
        let exact = find(&|chassis| chassis.name == *name || chassis.called.contains(name));
        let by_label = || find(&|chassis| chassis.called.iter().any(|own| is_same_host(own, name)));
        if let Some(found) = exact.or_else(|| if is_nx { by_label() } else { None }) {
            return Some(found);
        }
    }
    let listed = |domain: u8| {
        let is_row =
            |m: &&Member| m.seen == trunk.seen && m.domain == domain && (m.vsan.is_none() || m.vsan == trunk.vsan);
        plan.chassis_with(facts.members.iter().find(is_row)?.wwn)
    };
    trunk.peer_domain.and_then(listed).or_else(|| if is_nx { by_number(facts, plan, trunk) } else { None })
}

/// The neighbour of NX-OS whose name no input tells: by its domain, or by its IP address.
fn by_number(facts: &Facts, plan: &Plan, trunk: &Trunk) -> Option<usize> {
    let own = plan.chassis_of[trunk.seen];
    let vsan = trunk.vsan.unwrap_or(1);
    let others = || (0..plan.chassis.len()).filter(|i| Some(*i) != own);
    let only = |found: Vec<usize>| if found.len() == 1 { found.first().copied() } else { None };
    let has_domain = |i: &usize| {
        let domain = plan.chassis[*i].domains.get(&vsan).map(|(domain, _)| *domain);
        domain.is_some() && domain == trunk.peer_domain
    };
    // Another fabric may use the same VSAN and domain, so a switch with a name must list a link to
    // this one, by the domain of this one.
    let own_domain = own.and_then(|own| Some(plan.chassis[own].domains.get(&vsan)?.0));
    let lists_own = |i: &usize| {
        let mut links = facts.trunks.iter().filter(|other| plan.chassis_of[other.seen] == Some(*i));
        trunk.peer_name.is_none()
            || links
                .any(|other| other.vsan.unwrap_or(1) == vsan && other.peer_domain == own_domain && own_domain.is_some())
    };
    let has_address = |i: &usize| trunk.peer_address.as_ref().is_some_and(|ip| plan.chassis[*i].addresses.contains(ip));
    only(others().filter(|i| has_domain(i) && lists_own(i)).collect())
        .or_else(|| only(others().filter(has_address).collect()))
}

/// The name of a host without that of its DNS domain.
fn label(name: &str) -> &str {
    match name.parse::<std::net::IpAddr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().filter(|label| !label.is_empty()).unwrap_or(name),
    }
}

/// True if two names are of one host, where one of them may lack the DNS domain.
fn is_same_host(a: &str, b: &str) -> bool {
    let is_short = |name: &str| label(name).len() == name.len();
    a.eq_ignore_ascii_case(b) || (is_short(a) || is_short(b)) && label(a).eq_ignore_ascii_case(label(b))
}

fn set_domain(facts: &Facts, plan: &mut Plan, chassis: usize, vsan: u16, domain: u8, at: At, notes: &mut Vec<Note>) {
    let found = &mut plan.chassis[chassis];
    match found.domains.get(&vsan) {
        Some((other, first)) if *other != domain => {
            let reason = format!("has domain {other} in one input and {domain} in another; domain {other} is kept");
            let (places, text) = ([*first, at], found.name.clone());
            // Every row about a neighbour repeats its domain.
            if notes.iter().any(|note| note.text == text && note.reason == reason) {
                return;
            }
            note(facts, notes, NoteKind::Conflict, &places, text, reason, "import outputs of one point in time");
        }
        Some(_) => {}
        None => _ = found.domains.insert(vsan, (domain, at)),
    }
}

/// Makes the names of chassis unique, and fit for a lab.
fn unique_names(plan: &mut Plan) {
    let mut names = Names::default();
    plan.nameless.clear();
    for (index, chassis) in plan.chassis.iter_mut().enumerate() {
        chassis.name = names.unique(&sanitise(&chassis.name, "switch"));
        if chassis.wwn.is_none() {
            plan.nameless.entry(chassis.name.clone()).or_default().push(index);
        }
    }
}

/// Numbers the interfaces of NX-OS: `fc1/N` of a switch with one slot is port N-1; others are
/// numbered in order.
fn number_interfaces(facts: &Facts, plan: &mut Plan) {
    let mut names: Vec<BTreeSet<(u8, u32, u32, String)>> = vec![BTreeSet::new(); plan.chassis.len()];
    let mut add = |chassis: Option<usize>, name: &str| {
        if let Some(chassis) = chassis {
            names[chassis].insert(key(name));
        }
    };
    for login in &facts.logins {
        if let PortRef::Name(name) = &login.port {
            add(plan.chassis_of[login.seen], name);
        }
    }
    for trunk in &facts.trunks {
        if let PortRef::Name(name) = &trunk.port {
            add(plan.chassis_of[trunk.seen], name);
        }
        if let Some(PortRef::Name(name)) = &trunk.peer_port {
            add(peer(facts, plan, trunk), name);
        }
    }
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        let physical = sighting.interfaces.keys().filter(|name| name.starts_with("fc"));
        physical.for_each(|name| add(plan.chassis_of[seen], name));
    }
    for (chassis, names) in plan.chassis.iter_mut().zip(names) {
        let slots: BTreeSet<u32> = names.iter().filter(|key| key.0 == 0).map(|key| key.1).collect();
        let mut next = 0_u16;
        for (kind, _, port, name) in names {
            let number = match kind == 0 && slots.len() == 1 && (1..=1024).contains(&port) {
                true => (port - 1) as u16,
                false => next,
            };
            next = next.max(number).saturating_add(1);
            chassis.numbers.insert(name, number);
        }
    }
}

/// Sort key of an interface: kind, slot, port, name.
fn key(name: &str) -> (u8, u32, u32, String) {
    let kind = if name.starts_with("fc") {
        0
    } else if name.starts_with("vfc") {
        1
    } else {
        2
    };
    let numbers = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let (slot, port) = numbers.split_once('/').unwrap_or(("0", numbers));
    (kind, slot.parse().unwrap_or(0), port.parse().unwrap_or(0), name.to_owned())
}
