//! Ports of trunks and port-channels, and their pairs.

use super::{Facts, Plan, PortRef};
use std::collections::{BTreeMap, BTreeSet};

/// A switch of the lab and a port.
pub(super) type End = (usize, u16);

/// Ports of each line at both ends, where they are known.
pub(super) type Lines = Vec<[Option<u16>; 2]>;

/// Ports that belong together, from the statements of all inputs.
#[derive(Default)]
pub(super) struct Trunks {
    /// Another port of the same trunk, nearer to its root.
    parents: BTreeMap<End, u16>,
    /// Ports with a parent, by their root.
    groups: BTreeMap<End, BTreeSet<u16>>,
    /// Members of port-channels by the number of the port-channel.
    channels: BTreeMap<End, Vec<u16>>,
    /// Remote ports that an input tells.
    far: BTreeMap<End, u16>,
    /// Speeds of the ports, in Gbit/s.
    speeds: BTreeMap<End, u32>,
}

impl Trunks {
    pub fn of(facts: &Facts, plan: &Plan) -> Trunks {
        let mut trunks = Trunks { speeds: plan.speeds.clone(), ..Trunks::default() };
        for trunk in &facts.trunks {
            let Some(switch) = plan.switch(trunk.seen, trunk.vsan) else { continue };
            let Some(number) = plan.number(switch, &trunk.port) else { continue };
            if let Some(PortRef::Number(peer)) = trunk.peer_port {
                trunks.far.entry((switch, number)).or_insert(peer);
            }
            if let Some(gfc) = trunk.gfc {
                trunks.speeds.insert((switch, number), gfc);
            }
            if let Some(master) = trunk.master {
                let (a, b) = (trunks.shorten((switch, number)), trunks.shorten((switch, master)));
                if a != b {
                    trunks.parents.insert((switch, a), b);
                }
            }
        }
        for (seen, sighting) in facts.sightings.iter().enumerate() {
            let Some(chassis) = plan.chassis_of[seen] else { continue };
            let numbers = &plan.chassis[chassis].numbers;
            let own = || plan.switches.iter().enumerate().filter(|(_, switch)| switch.chassis == chassis);
            for (name, interface) in &sighting.interfaces {
                // Members name both kinds of port-channels by their number.
                let number = |name: &String| numbers.get(name).or_else(|| numbers.get(&format!("san-{name}")));
                let channel = interface.channel.as_ref().and_then(number);
                let (Some(&channel), Some(&member)) = (channel, numbers.get(name)) else { continue };
                for (switch, _) in own() {
                    let members = trunks.channels.entry((switch, channel)).or_default();
                    if !members.contains(&member) {
                        members.push(member);
                    }
                }
            }
        }
        let ports: Vec<End> = trunks.parents.keys().copied().collect();
        for (switch, port) in ports {
            let root = trunks.shorten((switch, port));
            trunks.groups.entry((switch, root)).or_default().insert(port);
        }
        trunks
    }

    /// The root of a port. The way from the port to it is shorter afterwards.
    fn shorten(&mut self, (switch, port): End) -> u16 {
        let root = self.root((switch, port));
        let mut next = port;
        while next != root {
            next = self.parents.insert((switch, next), root).unwrap_or(root);
        }
        root
    }

    fn root(&self, (switch, mut port): End) -> u16 {
        while let Some(parent) = self.parents.get(&(switch, port)) {
            port = *parent;
        }
        port
    }

    /// The ports of the trunk or port-channel that a port belongs to. A port-channel without known
    /// members has its own number, which is none of a port: the second value is false.
    fn group(&self, end: End, is_channel: bool) -> (BTreeSet<u16>, bool) {
        if let Some(members) = self.channels.get(&end) {
            return (members.iter().copied().collect(), true);
        }
        let root = self.root(end);
        let mut same = self.groups.get(&(end.0, root)).cloned().unwrap_or_default();
        same.insert(root);
        (same, !is_channel)
    }

    /// The lines of a link from `near` to a port of another switch, if that is known, and whether
    /// pairs of ports are guessed. `channels` tells which ends are port-channels.
    pub fn lines(&self, near: End, far: (usize, Option<u16>), channels: [bool; 2], width: u32) -> (Lines, bool) {
        let (mut own, is_own_real) = self.group(near, channels[0]);
        let (mut other, is_other_real) =
            far.1.map_or((BTreeSet::new(), true), |port| self.group((far.0, port), channels[1]));
        if !is_own_real && other.len() > 1 {
            own.clear();
        }
        if !is_other_real && own.len() > 1 {
            other.clear();
        }
        let told = |switch: usize, ports: &BTreeSet<u16>| -> Vec<(u16, u16)> {
            ports.iter().filter_map(|port| Some((*port, *self.far.get(&(switch, *port))?))).collect()
        };
        let mut lines = Lines::new();
        let back = told(far.0, &other).into_iter().map(|(other, own)| (own, other));
        let mut taken = [BTreeSet::new(), BTreeSet::new()];
        for (a, b) in told(near.0, &own).into_iter().chain(back) {
            if !taken[0].contains(&a) && !taken[1].contains(&b) {
                taken[0].insert(a);
                taken[1].insert(b);
                lines.push([Some(a), Some(b)]);
            }
        }
        for line in &lines {
            line[0].inspect(|port| _ = own.remove(port));
            line[1].inspect(|port| _ = other.remove(port));
        }
        let is_guess = own.len().min(other.len()) > 0 && own.len().max(other.len()) > 1;
        let (mut own, mut other) = (own.into_iter(), other.into_iter());
        loop {
            let line = [own.next(), other.next()];
            if line == [None, None] {
                break;
            }
            lines.push(line);
        }
        lines.sort_by_key(|line| (line[0].is_none(), line[0], line[1]));
        lines.resize(lines.len().max(width.min(64) as usize), [None, None]);
        (lines, is_guess)
    }

    /// The speed of the slowest port of a trunk.
    pub fn speed(&self, switches: [usize; 2], lines: &Lines) -> Option<u32> {
        let ports = lines.iter().flat_map(|line| [(switches[0], line[0]), (switches[1], line[1])]);
        ports.filter_map(|(switch, port)| self.speeds.get(&(switch, port?)).copied()).min()
    }
}
