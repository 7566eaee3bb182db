//! Interfaces of NX-OS in operation whose other end no input names.

use super::{At, Facts, Note, NoteKind, Plan, PortRef, chassis, note};
use crate::import::facts::FarEnd;
use std::collections::{BTreeMap, BTreeSet};

/// A chassis and an interface, or the port-channel that the interface is in.
type Port = (usize, String);

/// A port in operation whose other end no input names.
#[derive(Default)]
struct Open<'f> {
    /// Name as the input has it.
    name: Option<&'f str>,
    places: Vec<At>,
}

/// Port-channels of their members.
struct Channels(BTreeMap<Port, String>);

impl Channels {
    fn of(facts: &Facts, plan: &Plan) -> Channels {
        let mut channels = BTreeMap::new();
        for (seen, sighting) in facts.sightings.iter().enumerate() {
            let Some(chassis) = plan.chassis_of[seen] else { continue };
            for (name, interface) in &sighting.interfaces {
                if let Some(channel) = &interface.channel {
                    channels.insert((chassis, name.clone()), channel.clone());
                }
            }
        }
        Channels(channels)
    }

    /// Members name both kinds of port-channels by their number.
    fn port(&self, chassis: usize, interface: &str) -> Port {
        let name = interface.strip_prefix("san-").unwrap_or(interface);
        let port = (chassis, name.to_owned());
        match self.0.get(&port) {
            Some(channel) => (chassis, channel.clone()),
            None => port,
        }
    }
}

/// Reports links to switches without a neighbour, and ports of devices without a login. Ports that
/// are down are not reported.
pub(super) fn report(facts: &Facts, plan: &Plan, notes: &mut Vec<Note>) {
    let channels = Channels::of(facts, plan);
    let mut told: BTreeSet<Port> = BTreeSet::new();
    let mut with_topology = BTreeSet::new();
    let mut tell = |chassis: Option<usize>, port: &PortRef| {
        if let (Some(chassis), PortRef::Name(name)) = (chassis, port) {
            told.insert(channels.port(chassis, name));
        }
    };
    for trunk in &facts.trunks {
        with_topology.extend(plan.chassis_of[trunk.seen]);
        tell(plan.chassis_of[trunk.seen], &trunk.port);
        if let Some(port @ PortRef::Name(_)) = &trunk.peer_port {
            tell(chassis::peer(facts, plan, trunk), port);
        }
    }
    facts.logins.iter().for_each(|login| tell(plan.chassis_of[login.seen], &login.port));
    let mut shown = BTreeSet::new();
    let mut open: BTreeMap<(FarEnd, Port), Open<'_>> = BTreeMap::new();
    for state in &facts.states {
        let Some(chassis) = plan.chassis_of[state.seen] else { continue };
        let port = channels.port(chassis, &state.interface);
        shown.extend([(chassis, state.interface.clone()), port.clone()]);
        if let Some(far) = state.far.filter(|_| !told.contains(&port)) {
            let is_itself = state.interface.ends_with(&port.1);
            let open = open.entry((far, port)).or_default();
            open.places.push(state.at);
            open.name = open.name.or(Some(state.interface.as_str()).filter(|_| is_itself));
        }
    }
    unnamed(facts, plan, &open, notes);
    // The state of an interface that no table shows is that of the configuration. The topology
    // lists all links that work.
    let mut set_up: BTreeMap<Port, Vec<At>> = BTreeMap::new();
    for (seen, sighting) in facts.sightings.iter().enumerate() {
        let Some(chassis) = plan.chassis_of[seen].filter(|chassis| !with_topology.contains(chassis)) else { continue };
        for (name, interface) in sighting.interfaces.iter().filter(|(_, interface)| interface.is_enabled) {
            let port = channels.port(chassis, name);
            let is_shown = shown.contains(&(chassis, name.clone())) || shown.contains(&port) || told.contains(&port);
            if let Some((FarEnd::Switch, at)) = interface.set_far
                && !is_shown
            {
                set_up.entry(port).or_default().push(at);
            }
        }
    }
    for ((chassis, name), places) in set_up {
        let text = format!("{}:{name}", plan.chassis[chassis].name);
        let reason = "is set up and enabled as an E_Port, but no input has its state or names its neighbour";
        let remedy = "add the outputs of show interface brief and show topology, or an [[isl]] by hand";
        note(facts, notes, NoteKind::Unplaced, &places, text, reason, remedy);
    }
}

/// Reports ports in operation whose other end no input names.
fn unnamed(facts: &Facts, plan: &Plan, open: &BTreeMap<(FarEnd, Port), Open<'_>>, notes: &mut Vec<Note>) {
    // A name server lists devices without their ports, so any of the ports may be theirs.
    let mut devices: BTreeMap<usize, usize> = BTreeMap::new();
    for device in plan.devices.iter().filter(|device| device.port.is_none() && !device.is_virtual) {
        *devices.entry(plan.switches[device.switch].chassis).or_default() += 1;
    }
    let mut ports: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, (chassis, _)) in open.keys().filter(|(far, _)| *far == FarEnd::Devices) {
        *ports.entry(*chassis).or_default() += 1;
    }
    for ((far, (chassis, port)), Open { name, places }) in open {
        let (reason, remedy) = match far {
            FarEnd::Switch => (
                "is an E_Port that is up and names no neighbour",
                "add the output of show topology, or add an [[isl]] by hand",
            ),
            FarEnd::Core => (
                "is an NP_Port that is up and names no neighbour",
                "import the switch that it is connected to, which lists the hosts behind it",
            ),
            FarEnd::Devices if devices.get(chassis) >= ports.get(chassis) => continue,
            FarEnd::Devices => ("has devices whose port names no input tells", "add the output of show flogi database"),
        };
        let text = format!("{}:{}", plan.chassis[*chassis].name, name.unwrap_or(port));
        note(facts, notes, NoteKind::Unplaced, places, text, reason, remedy);
    }
}
