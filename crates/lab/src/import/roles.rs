//! Devices: where each port name is logged in, and whether it belongs to a host or to storage.

use super::facts::{At, Entry, Facts, Os, tail};
use super::plan::Plan;
use super::report::{Note, NoteKind};
use super::{Choices, note};
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;

/// Kind of node that a port belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Role {
    Host,
    Storage,
}

/// One port of a host or of storage.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub wwpn: u64,
    pub wwnn: Option<u64>,
    pub at: At,
    pub switch: usize,
    pub port: Option<u16>,
    pub gfc: Option<u32>,
    pub role: Role,
    /// Evidence for the role.
    pub how: &'static str,
    pub is_virtual: bool,
    /// Port name of the physical port, for a virtual one.
    pub permanent: Option<u64>,
    pub address: u32,
    pub symbols: Vec<String>,
}

/// A statement about the place of a port.
struct Candidate {
    rank: u8,
    at: At,
    switch: usize,
    port: Option<u16>,
}

/// All statements about a port: its places, its entries of name servers, and the name of its node.
type Statements<'f> = (Vec<Candidate>, Vec<&'f Entry>, Option<u64>);

/// Merges logins and name server entries into devices, ordered by switch, port and name.
pub(super) fn devices(facts: &Facts, plan: &Plan, choices: &Choices, notes: &mut Vec<Note>) -> Vec<Device> {
    let mut found: BTreeMap<u64, Statements<'_>> = BTreeMap::new();
    for login in facts.logins.iter().filter(|login| login.wwpn != 0) {
        let (candidates, _, wwnn) = found.entry(login.wwpn).or_default();
        *wwnn = wwnn.or(login.wwnn);
        if let Some(switch) = plan.switch(login.seen, login.vsan) {
            let port = plan.number(switch, &login.port);
            candidates.push(Candidate { rank: 0, at: login.at, switch, port });
        }
    }
    let areas = areas(facts, plan);
    for entry in facts.entries.iter().filter(|entry| entry.wwpn != 0 && !facts.supervisors.contains(&entry.wwpn)) {
        let (candidates, entries, wwnn) = found.entry(entry.wwpn).or_default();
        *wwnn = wwnn.or(entry.wwnn);
        entries.push(entry);
        candidates.extend(locate(plan, &areas, entry));
    }
    let mut devices = Vec::new();
    for (wwpn, (mut candidates, entries, wwnn)) in found {
        candidates.sort_by_key(|candidate| (candidate.rank, candidate.port.is_none(), candidate.at));
        let Some(first) = candidates.first() else {
            let (text, reason) = (Wwpn(wwpn).to_string(), "is logged in at a switch that no input describes");
            let at: Vec<At> = entries.iter().take(1).map(|entry| entry.at).collect();
            let remedy = "add the outputs of switchshow or show topology of that switch";
            note(facts, notes, NoteKind::Unplaced, &at, text, reason, remedy);
            continue;
        };
        let differs = |other: &&Candidate| {
            other.rank < 2 && (other.switch != first.switch || other.port.is_some() && other.port != first.port)
        };
        if let Some(other) = candidates.iter().filter(|_| first.rank < 2).find(differs) {
            let name = |candidate: &Candidate| match candidate.port {
                Some(port) => format!("{}:{port}", plan.switches[candidate.switch].name),
                None => plan.switches[candidate.switch].name.clone(),
            };
            let reason = format!("is at {} and at {}; the first place is kept", name(first), name(other));
            let remedy = "import outputs of one point in time, or find the duplicate name";
            let places = [first.at, other.at];
            note(facts, notes, NoteKind::Conflict, &places, Wwpn(wwpn).to_string(), reason, remedy);
        }
        let port = first.port.map(|port| (first.switch, port));
        if let Some(row) = port.and_then(|port| plan.loops.get(&port)) {
            let reason = "is on an arbitrated loop at a switch port, so it is not in the lab";
            let remedy = "describe the loop by hand with [loop.NAME] and a [[link]] to it";
            note(facts, notes, NoteKind::Unplaced, &[first.at, *row], Wwpn(wwpn).to_string(), reason, remedy);
            continue;
        }
        let symbols: Vec<String> = entries.iter().flat_map(|entry| entry.symbols.iter().cloned()).collect();
        let (role, how) = role(wwpn, &entries, &symbols, choices);
        let speed = first.port.and_then(|port| plan.speeds.get(&(first.switch, port)).copied());
        devices.push(Device {
            wwpn,
            wwnn,
            at: first.at,
            switch: first.switch,
            port: first.port,
            gfc: speed.or(entries.iter().find_map(|entry| entry.gfc)),
            role,
            how,
            is_virtual: entries.iter().any(|entry| entry.is_virtual),
            permanent: entries.iter().find_map(|entry| entry.permanent).filter(|name| *name != wwpn),
            address: entries.iter().map(|entry| entry.address).max().unwrap_or(0),
            symbols,
        });
    }
    devices.sort_by_key(|device| (device.switch, device.port.is_none(), device.port, device.wwpn));
    devices
}

/// Ports by switch and the first two bytes of their address.
fn areas(facts: &Facts, plan: &Plan) -> BTreeMap<(usize, u32), u16> {
    let ports = facts.ports.iter().filter_map(|port| Some((plan.switch(port.seen, None)?, port.area?, port.number)));
    ports.map(|(switch, area, number)| ((switch, area), number)).collect()
}

/// The place that an entry of a name server tells: by the name of the switch port, by the number of
/// the port, or by the address.
fn locate(plan: &Plan, areas: &BTreeMap<(usize, u32), u16>, entry: &Entry) -> Option<Candidate> {
    let own = plan.switch(entry.seen, entry.vsan);
    let domain = (entry.address >> 16) as u8;
    if let Some(name) = entry.fabric_port {
        let is_it = |switch: &super::plan::Switch| {
            let chassis = &plan.chassis[switch.chassis];
            chassis.os != Some(Os::NxOs) && chassis.wwn.is_some_and(|wwn| tail(wwn) == tail(name))
        };
        if let Some(switch) = plan.switches.iter().position(is_it) {
            let port = (name >> 48 & 0xfff) as u16;
            let switch = plan.owner(switch, port);
            return Some(Candidate { rank: 1, at: entry.at, switch, port: Some(port) });
        }
    }
    let in_fabric = own.and_then(|own| plan.with_domain(plan.switches[own].fabric, domain));
    let anywhere = || {
        let mut with = (0..plan.switches.len()).filter(|&i| plan.domain(i) == Some(domain));
        with.next().filter(|_| with.next().is_none())
    };
    let switch = match own {
        Some(own) if plan.domain(own).is_none_or(|known| known == domain) && in_fabric.is_none() => own,
        _ => in_fabric.or_else(anywhere)?,
    };
    if plan.chassis[plan.switches[switch].chassis].os == Some(Os::NxOs) {
        return Some(Candidate { rank: 2, at: entry.at, switch, port: None });
    }
    let index = entry.index.filter(|_| own == Some(switch));
    let area = areas.get(&(switch, entry.address >> 8)).copied();
    let rank = if index.or(area).is_some() { 1 } else { 2 };
    let port = index.or(area).unwrap_or((entry.address >> 8 & 0xff) as u16);
    Some(Candidate { rank, at: entry.at, switch, port: Some(port) })
}

/// Words in symbolic names and INQUIRY data of adapters.
const ADAPTERS: &[&str] =
    &["HN:", "QLE", "QMH", "QLOGIC", "EMULEX", "LPE", "HBA", "FNIC", "DVR:", "BROCADE-", "HOST:", "VMHBA"];

/// Words in symbolic names and INQUIRY data of storage.
const ARRAYS: &[&str] = &[
    "DGC ",
    "SYMMETRIX",
    "NETAPP",
    "LUNZ",
    "OPEN-",
    "HITACHI",
    "IBM     2",
    "2145",
    "2107",
    "PURE",
    "FLASHARRAY",
    "3PAR",
    "INSERV",
    "COMPELNT",
    "STORAGE",
    "HUAWEI",
    "XSG1",
    "HPE ",
    "MSA ",
    "VNX",
    "UNITY",
    "POWERSTORE",
    "POWERMAX",
    "ULTRIUM",
    "LTO",
    "DISK",
];

/// Company numbers (OUI) that only storage uses.
const STORAGE_OUIS: &[u64] = &[
    0x00_6016, 0x00_0097, 0x00_60e8, 0x00_a098, 0x00_5076, 0x24_a937, 0x00_02ac, 0x00_d310, 0x00_a0b8, 0x00_0402,
    0x00_c0ff, 0x00_1fe1, 0x00_1738, 0x00_d023,
];

/// Company numbers (OUI) that only adapters of hosts use.
const HOST_OUIS: &[u64] = &[
    0x00_00c9, 0x00_90fa, 0x00_109b, 0x00_620b, 0x00_24ff, 0x00_e08b, 0x00_1b32, 0xf4_e9d4, 0x00_0e1e, 0x00_25b5,
    0x8c_7cff, 0x00_c0dd, 0x34_800d, 0x00_1086,
];

/// Returns the company number of a name: bytes 2 to 4 in NAA 1 and 2, and the 24 bits behind the
/// first four in NAA 5 and C.
fn oui(name: u64) -> u64 {
    match name >> 60 {
        5 | 6 | 0xc => name >> 36 & 0xff_ffff,
        _ => name >> 24 & 0xff_ffff,
    }
}

/// Decides whether a port belongs to a host or to storage, and by which evidence.
fn role(wwpn: u64, entries: &[&Entry], symbols: &[String], choices: &Choices) -> (Role, &'static str) {
    if choices.storage.contains(&Wwpn(wwpn)) {
        return (Role::Storage, "chosen with --storage");
    }
    if choices.hosts.contains(&Wwpn(wwpn)) {
        return (Role::Host, "chosen with --host");
    }
    let is_target = entries.iter().any(|entry| entry.is_target);
    let is_initiator = entries.iter().any(|entry| entry.is_initiator);
    match (is_initiator, is_target) {
        (true, false) => return (Role::Host, "FC-4 features: initiator"),
        (false, true) => return (Role::Storage, "FC-4 features: target"),
        // Arrays that copy to other arrays, and virtualisation of storage.
        (true, true) => return (Role::Storage, "FC-4 features: initiator and target"),
        (false, false) => {}
    }
    let upper: Vec<String> = symbols.iter().map(|symbol| symbol.to_ascii_uppercase()).collect();
    let has = |words: &[&str]| upper.iter().any(|symbol| words.iter().any(|word| symbol.contains(word)));
    let has_inquiry = entries.iter().any(|entry| entry.has_inquiry);
    if has(ADAPTERS) && !has_inquiry {
        return (Role::Host, "symbolic name of an adapter");
    }
    if has(ARRAYS) {
        return (Role::Storage, "symbolic name or INQUIRY data of storage");
    }
    if has_inquiry {
        return (Role::Storage, "INQUIRY data, which only targets return");
    }
    let oui = oui(wwpn);
    if HOST_OUIS.contains(&oui) {
        return (Role::Host, "vendor part of the port name (OUI)");
    }
    if STORAGE_OUIS.contains(&oui) {
        return (Role::Storage, "vendor part of the port name (OUI)");
    }
    match wwpn >> 60 {
        5 | 6 => (Role::Storage, "form of the port name (NAA 5), a weak sign"),
        _ => (Role::Host, "form of the port name, a weak sign"),
    }
}
