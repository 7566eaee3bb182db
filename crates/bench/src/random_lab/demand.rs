//! Required state of a healed world without further requests.

use super::reach;
use sanloom_fc::config::{Fault, FaultKind, Node, Zoning};
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::server::TransactionState;
use sanloom_sim::host::PathState;
use sanloom_sim::world::{Owner, World};

/// Returns each path from a host to a storage system that it uses: host, storage system, path
/// number (HBA * ports + port), and whether the path must be usable if nothing is broken.
pub fn expected_paths(world: &World) -> Vec<(u16, u16, u16, bool)> {
    let mut paths = Vec::new();
    let lab = as_it_is(world);
    let zonings: Vec<Zoning> =
        world.control.switches.iter().map(|node| node.machine.zone_database().zoning()).collect();
    for (host, node) in world.hosts.nodes.iter().enumerate() {
        let host = host as u16;
        for system in node.paths.systems() {
            for path in 0..system.paths().len() as u16 {
                let (hba, port) = (path / system.ports, path % system.ports);
                let zoning = reach::switch_of(&lab, Node::Host(host), hba).map(|switch| &zonings[usize::from(switch)]);
                let usable = is_there(world, host)
                    && zoning
                        .is_some_and(|zoning| reach::may_talk_under(&lab, zoning, (host, hba), (system.storage, port)));
                paths.push((host, system.storage, path, usable));
            }
        }
    }
    paths
}

/// Returns the lab with its virtual machines at their current hypervisors.
fn as_it_is(world: &World) -> Lab {
    let mut lab = Lab::clone(&world.lab);
    for fault in world.lab.faults.iter().filter(|fault| world.has_happened(fault.at)) {
        if let FaultKind::VmMove { host, to } = fault.kind
            && let Some(machine) = &mut lab.hosts[usize::from(host)].virtual_machine
        {
            machine.on = to;
        }
    }
    lab
}

/// Returns whether a host is physical, or a virtual machine that has booted and has not stopped.
fn is_there(world: &World, host: u16) -> bool {
    let stops = |kind: &FaultKind| matches!(kind, FaultKind::VmStop { host: of } if *of == host);
    let mut happened = world.lab.faults.iter().filter(|fault| world.has_happened(fault.at));
    world.has_booted(host) && !happened.any(|fault| stops(&fault.kind))
}

/// Returns a description of the first sign that the world is not at rest, or `None` if it is. Signs
/// are an unfinished request, frame, message or exchange, a missing credit, or a path in the wrong
/// state.
pub fn first_unrest(world: &World) -> Option<String> {
    (requests(world).or_else(|| frames(world)))
        .or_else(|| credits(world))
        .or_else(|| exchanges(world))
        .or_else(|| zones(world))
        .or_else(|| paths(world))
}

fn requests(world: &World) -> Option<String> {
    let books = world.hosts.totals;
    if world.hosts.is_busy() {
        let busy: Vec<usize> = (0..world.hosts.nodes.len()).filter(|&host| world.hosts.nodes[host].is_busy()).collect();
        return Some(format!("hosts {busy:?} are busy; {books:?}"));
    }
    if books.issued != books.completed + books.failed {
        return Some(format!("requests have not ended: {books:?}"));
    }
    let storage = world.storage.systems.iter().position(|storage| storage.controller.depth.level() > 0);
    storage.map(|storage| format!("storage {storage} is at work"))
}

fn frames(world: &World) -> Option<String> {
    let net = &world.net;
    if net.fc.frames_in_flight() > 0 {
        return Some(format!("{} frames are in flight: {}", net.fc.frames_in_flight(), whereabouts(world)));
    }
    let waiting = world.nports.nodes.iter().map(|node| node.plane).find(|&plane| net.fc.nport(plane).unsent() > 0);
    if let Some(nport) = waiting {
        return Some(format!("N_Port {nport} has {} items to send", net.fc.nport(nport).unsent()));
    }
    (!net.fc.messages.is_empty()).then(|| format!("{} messages are in the pool", net.fc.messages.len()))
}

/// Returns the locations of the frames in flight.
fn whereabouts(world: &World) -> String {
    let mut places = Vec::new();
    for (number, lane) in world.net.fc.lanes().iter().enumerate() {
        if !lane.flight.is_empty() {
            places.push(format!("{} on lane {number}", lane.flight.len()));
        }
    }
    for (number, switch) in world.lab.switches.iter().enumerate() {
        let crossbar = &world.net.fc.switch(number as u16).crossbar;
        for input in 0..=switch.ports {
            if let Some(oldest) = crossbar.frames_of(input).first() {
                let (many, output) = (crossbar.occupancy(input), oldest.output);
                places.push(format!(
                    "{many} at input {input} of switch {number}, the oldest since {} ps for output {output}",
                    oldest.on_line.at_ps
                ));
            }
        }
    }
    places.join(", ")
}

fn credits(world: &World) -> Option<String> {
    let now = world.net.now();
    // A credit lost with its R_RDY, or with its frame if there is credit recovery, is restored by a
    // state change, or when the sender has no credit left.
    let lost = |fault: &Fault| matches!(fault.kind, FaultKind::LostRRdy { .. } | FaultKind::FrameLoss { .. });
    let may_miss = world.lab.faults.iter().any(lost);
    for (number, lane) in world.net.fc.lanes().iter().enumerate() {
        if !lane.up {
            return Some(format!("lane {number} is down"));
        }
        let credits = lane.credits_at(now);
        let returning = lane.credits + lane.credits_returning() - credits + lane.receiver.withheld;
        let missed = lane.bb_credit - credits;
        if returning > 0
            || (missed > 0 && !(may_miss && u64::from(missed) <= lane.credits_lost - lane.state_changes.recovered))
        {
            return Some(format!("lane {number} has {credits} of {} credits: {lane:?}", lane.bb_credit));
        }
    }
    None
}

fn exchanges(world: &World) -> Option<String> {
    for nport in 0..world.nports.nodes.len() as u16 {
        let open = world.hosts.initiator(nport).map_or(0, |initiator| initiator.in_flight());
        if open > 0 {
            return Some(format!("the initiator of N_Port {nport} has {open} exchanges"));
        }
        let open = world.storage.target(nport).map_or(0, |target| target.exchanges_in_use());
        if open > 0 {
            return Some(format!("the target of N_Port {nport} has {open} exchanges"));
        }
    }
    None
}

/// Checks that all switches of a fabric have the same zone database, and that no change is pending.
fn zones(world: &World) -> Option<String> {
    let state = |switch: usize| world.control.switches[switch].machine.zone_server().state();
    if let Some(switch) = (0..world.control.switches.len()).find(|&switch| state(switch) != TransactionState::Free) {
        return Some(format!("switch {switch} has part in a change of the zones: {:?}", state(switch)));
    }
    let fabrics = world.lab.fabrics();
    let database = |switch: usize| world.control.switches[switch].machine.zone_database();
    let differs = |&switch: &usize| database(switch) != database(usize::from(fabrics[switch]));
    let switch = (0..fabrics.len()).find(differs)?;
    Some(format!("switches {switch} and {} differ in their zones", fabrics[switch]))
}

fn paths(world: &World) -> Option<String> {
    let state_of = |host: u16, storage: u16, path: u16| {
        let systems = world.hosts.nodes[usize::from(host)].paths.systems();
        systems.iter().find(|system| system.storage == storage).map(|system| system.state(path))
    };
    for (host, storage, path, usable) in expected_paths(world) {
        let state = state_of(host, storage, path);
        let wanted = if usable { PathState::Active } else { PathState::Gone };
        if state != Some(wanted) {
            let what = format!("path {path} from host {host} to storage {storage} is {state:?}, not {wanted:?}");
            return Some(format!("{what}\n{}", logins(world)));
        }
    }
    None
}

/// Returns the login states of all N_Ports, to explain a missing path.
fn logins(world: &World) -> String {
    let mut lines = Vec::new();
    for (nport, node) in world.nports.nodes.iter().enumerate() {
        let name = name_of(&world.lab, node.owner);
        let remotes: Vec<_> = node.login.remotes().collect();
        lines.push(format!("  N_Port {nport} {name} {:?} {:?} {remotes:?}", node.port_id, node.login.state()));
    }
    for (number, node) in world.control.switches.iter().enumerate() {
        let isls: Vec<_> = node.machine.isls().map(|isl| (isl.port, isl.state)).collect();
        let neighbours: Vec<_> = node.machine.paths().neighbours().map(|n| (n.port, n.state)).collect();
        let (domain, members) = (node.machine.domain(), node.machine.members());
        lines.push(format!("  switch {number} up {} {domain:?} of {members:?}: {isls:?} {neighbours:?}", node.up));
    }
    lines.join("\n")
}

fn name_of(lab: &Lab, owner: Owner) -> String {
    match owner {
        Owner::Host { host, hba } => format!("{}.{hba}", lab.hosts[usize::from(host)].name),
        Owner::Storage { storage, port } => format!("{}.{port}", lab.storage[usize::from(storage)].name),
    }
}
