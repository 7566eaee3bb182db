//! Initialisation of arbitrated loops: [`Loops`].
//!
//! Each change of a link of a loop begins a LIP. The loop carries nothing until the initialisation
//! has ended; a LIP before its end starts it anew. Then the ports of the loop learn their addresses
//! and the position map. A hub bypasses ports whose links are dark.

use super::{World, instant_of};
use crate::net::End;
use crate::net::loops::{self, Participant};
use sanloom_fc::arbitrated_loop::{Candidate, Initialised, LipCause, LoopConfig, LoopPort, LoopTime, initialise};
use sanloom_fc::config::{ArbitratedLoop, Node};
use sanloom_fc::nport;
use sanloom_fc::san::Lab;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::{FcId, Wwpn};

/// All arbitrated loops.
pub struct Loops {
    list: Vec<State>,
}

/// State of a loop.
struct State {
    /// Ports in the order of the loop.
    members: Vec<Member>,
    /// The initialisation in progress.
    pending: Option<Pending>,
    /// The FL_Port has not initialised the loop since it came up: it sets the L_bit.
    is_first: bool,
    /// Initialisations that have ended, and their time in ps, since the counters were reset.
    initialisations: u64,
    down_ps: u64,
}

/// An initialisation in progress.
struct Pending {
    /// Times in ps of the LIP that made the loop unusable, and of the last LIP.
    since_ps: u64,
    lip_ps: u64,
    result: Initialised,
    /// Frames whose time has come. Only a loop with a watched link counts them.
    frames: usize,
}

/// Owner of a port of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    NPort(u16),
    /// FL_Port of a switch, with its port number there.
    FlPort {
        switch: u16,
        port: u16,
    },
}

/// A port of a loop.
struct Member {
    /// Index of its link in the lab.
    link: u16,
    /// Port number at the loop.
    port: u16,
    owner: Owner,
    name: Wwpn,
    /// The port does not use an FL_Port.
    is_private: bool,
    /// Address since the last initialisation in which the port took part.
    al_pa: Option<AlPa>,
    /// Index in the position map of the last initialisation.
    position: Option<u32>,
    /// True if the port takes part since the last initialisation.
    participates: bool,
}

impl Loops {
    pub(super) fn new(lab: &Lab) -> Loops {
        let state = |_: &ArbitratedLoop| State {
            members: Vec::new(),
            pending: None,
            is_first: true,
            initialisations: 0,
            down_ps: 0,
        };
        Loops { list: lab.loops.iter().map(state).collect() }
    }

    /// Returns whether an initialisation is in progress.
    pub(super) fn is_initialising(&self) -> bool {
        self.list.iter().any(|state| state.pending.is_some())
    }

    /// Restarts the measurement.
    pub(super) fn restart(&mut self, now_ps: u64) {
        for state in &mut self.list {
            (state.initialisations, state.down_ps) = (0, 0);
            if let Some(pending) = &mut state.pending {
                pending.since_ps = now_ps;
            }
        }
    }

    /// Returns the number of initialisations of a loop and the time of them up to `now_ps`, in ps.
    pub fn initialisations(&self, number: u16, now_ps: u64) -> (u64, u64) {
        let state = &self.list[usize::from(number)];
        let open = state.pending.as_ref().map_or(0, |pending| now_ps - pending.since_ps);
        (state.initialisations, state.down_ps + open)
    }

    /// Returns the address of a port of a loop, if it takes part.
    pub fn address(&self, number: u16, port: u16) -> Option<AlPa> {
        let member = self.list[usize::from(number)].members.iter().find(|member| member.port == port)?;
        member.al_pa.filter(|_| member.participates)
    }

    /// Returns the index of a port in the position map of its loop, if it takes part.
    pub fn position(&self, number: u16, port: u16) -> Option<u32> {
        let member = self.list[usize::from(number)].members.iter().find(|member| member.port == port)?;
        member.position.filter(|_| member.participates)
    }
}

/// Handles a link of a loop that came up or went down.
pub(super) fn link_changed(world: &mut World, number: u16, link: u16, up: bool) {
    if world.loops.list[usize::from(number)].members.is_empty() {
        world.loops.list[usize::from(number)].members = members(world, number);
    }
    let state = &mut world.loops.list[usize::from(number)];
    match state.members.iter().find(|member| member.link == link).map(|member| member.owner) {
        Some(Owner::NPort(nport)) if !up => world.port_link(nport, false),
        Some(Owner::FlPort { .. }) if !up => state.is_first = true,
        _ => {}
    }
    lip(world, number, if up { LipCause::Inserted } else { LipCause::Failure(None) });
}

/// Returns the ports of a loop.
fn members(world: &World, number: u16) -> Vec<Member> {
    let mut members = Vec::new();
    for (link, of_lab) in (0..).zip(&world.lab.links).filter(|(_, of_lab)| of_lab.loop_end() == Some(number)) {
        let at_loop = of_lab.ends.iter().find(|end| end.node == Node::Loop(number));
        let ends = [2 * u32::from(link), 2 * u32::from(link) + 1].map(|lane| world.net.fc.lanes()[lane as usize].to);
        let owner = ends.iter().find_map(|end| match *end {
            End::NPort(nport) => Some(Owner::NPort(nport)),
            End::Switch { switch, port } => Some(Owner::FlPort { switch, port }),
            End::Loop { .. } => None,
        });
        let (Some(at_loop), Some(owner)) = (at_loop, owner) else { continue };
        let name = match owner {
            Owner::NPort(nport) => world.nports.node(nport).login.wwpn(),
            // Only its order among FL_Ports would matter.
            Owner::FlPort { switch, .. } => Wwpn(world.lab.switches[usize::from(switch)].wwn.0),
        };
        let private = &world.lab.loops[usize::from(number)].private;
        members.push(Member {
            link,
            port: at_loop.port,
            owner,
            name,
            is_private: of_lab.ends.iter().any(|end| private.contains(&end.node)),
            al_pa: None,
            position: None,
            participates: false,
        });
    }
    members.sort_by_key(|member| member.port);
    members
}

/// Begins the initialisation of a loop.
fn lip(world: &mut World, number: u16, cause: LipCause) {
    loops::interrupt(&mut world.net, number);
    let now = world.net.now();
    let state = &mut world.loops.list[usize::from(number)];
    let since_ps = state.pending.take().map_or(now, |pending| pending.since_ps);
    let is_first = state.is_first;
    let lost: Vec<Owner> =
        state.members.iter().filter(|member| member.participates).map(|member| member.owner).collect();
    state.members.iter_mut().for_each(|member| member.participates = false);
    for owner in lost {
        if let Owner::NPort(nport) = owner {
            world.nports.handle(instant_of(now), nport, nport::Input::LoopInterrupted);
            world.drain_login(nport);
        }
    }
    let Some(config) = world.lab.loop_config(number) else { return };
    let result = initialise(config.rate, &candidates(world, number, &config), cause, is_first);
    loops::lip(&mut world.net, number, result.lip);
    world.loops.list[usize::from(number)].pending = Some(Pending { since_ps, lip_ps: now, result, frames: 0 });
    set_timer(world, number);
}

/// Sets the timer of a loop to the end of its initialisation, or to its next frame if a link is
/// watched.
fn set_timer(world: &mut World, number: u16) {
    let Some(pending) = &world.loops.list[usize::from(number)].pending else { return };
    let next = pending.result.frames.get(pending.frames).filter(|_| loops::is_watched(&world.net.fc, number));
    let end_ps = pending.result.duration.ps() + 1;
    let at_ps = pending.lip_ps + next.map_or(end_ps, |frame| frame.start.ps());
    world.net.set_timer(world.timers.arbitrated_loop + u32::from(number), at_ps);
}

/// Handles the timer of a loop: its next frame, or the end of its initialisation.
pub(super) fn timer(world: &mut World, number: u16) {
    let state = &mut world.loops.list[usize::from(number)];
    let Some(Pending { lip_ps, result, frames, .. }) = &mut state.pending else { return };
    if let Some(frame) = result.frames.get(*frames)
        && *lip_ps + result.duration.ps() >= world.net.now()
    {
        *frames += 1;
        // The header is that of the loop master, with which every frame begins.
        let is_master = |member: &Member| matches!(member.owner, Owner::FlPort { .. });
        let from_fl_port = result.master.is_some_and(|master| is_master(&state.members[master]));
        let ports = [frame.from, frame.to].map(|index| state.members[index].port);
        let times_ps = [frame.start, frame.arrival].map(|time| *lip_ps + time.ps());
        loops::initialisation_frame(&mut world.net, number, ports, times_ps, (&frame.frame, from_fl_port));
        return set_timer(world, number);
    }
    end_initialisation(world, number);
}

/// Ends the initialisation of a loop: its ports get their addresses. Public ports of a loop whose
/// FL_Port is not there wait for it.
fn end_initialisation(world: &mut World, number: u16) {
    let now = world.net.now();
    let members = world.loops.list[usize::from(number)].members.iter();
    let node = |owner| if let Owner::NPort(nport) = owner { Some(world.node_of_nport(nport)) } else { None };
    let nodes: Vec<Option<Node>> = members.map(|member| node(member.owner)).collect();
    let of_lab = &world.lab.loops[usize::from(number)];
    let state = &mut world.loops.list[usize::from(number)];
    let Some(config) = world.lab.loop_config(number) else { return };
    let Some(Pending { since_ps, result, .. }) = state.pending.take() else { return };
    state.initialisations += 1;
    state.down_ps += now - since_ps;
    let mut ports = Vec::new();
    let of_ports = config.ports.into_iter().zip(nodes).zip(result.addresses);
    for (member, ((port, node), address)) in state.members.iter_mut().zip(of_ports) {
        member.participates = address.is_some();
        member.al_pa = address.or(member.al_pa);
        let map = result.positions.iter().flat_map(|map| map.addresses());
        member.position = map.zip(0..).find(|(listed, _)| Some(**listed) == address).map(|(_, position)| position);
        if world.net.fc.link_is_up(member.link) {
            ports.push(Participant { port: member.port, config: port_config(of_lab, node, port, address) });
        }
    }
    if ports.len() >= 2 {
        loops::start(&mut world.net, number, config.rate, ports);
    }
    let fl_port = state.members.iter().find_map(|member| match member.owner {
        Owner::FlPort { switch, port } => Some((switch, port, member.participates)),
        Owner::NPort(_) => None,
    });
    let is_present = |member: &&Member| member.participates;
    // The FL_Port knows nothing of private ports.
    let public_ports = state.members.iter().filter(is_present).filter(|member| !member.is_private);
    let al_pas = public_ports.filter_map(|member| member.al_pa).collect();
    let participant = |member: &Member| match member.owner {
        Owner::NPort(nport) => {
            let port_id = FcId::from_parts(0, 0, member.al_pa?.value());
            Some((nport, port_id, fl_port.is_some() && !member.is_private))
        }
        Owner::FlPort { .. } => None,
    };
    let participants: Vec<(u16, FcId, bool)> =
        state.members.iter().filter(is_present).filter_map(participant).collect();
    let logs_in = std::mem::replace(&mut state.is_first, false) || result.login_required;
    let has_fabric = fl_port.is_some_and(|(.., participates)| participates);
    match fl_port {
        Some((switch, port, true)) => {
            let (control, mut env) = world.split_control();
            control.loop_up(&mut env, switch, port, al_pas);
        }
        Some((.., false)) => state.is_first = true,
        None => {}
    }
    for (at, (nport, port_id, public)) in participants.iter().enumerate() {
        if *public && (logs_in || !has_fabric) {
            world.port_link(*nport, false);
        }
        if *public && !has_fabric {
            continue;
        }
        // A port logs in to ports of its own kind only.
        let behind = participants[at + 1..].iter().chain(&participants[..at]).filter(|other| other.2 == *public);
        let others = behind.map(|(_, other, _)| *other).collect();
        let input = nport::Input::LoopUp { port_id: *port_id, public: *public, others };
        world.nports.handle(instant_of(now), *nport, input);
        world.drain_login(*nport);
    }
    world.process_completions();
}

/// Returns the ports of a loop for its initialisation. Ports without light are bypassed.
fn candidates(world: &World, number: u16, config: &LoopConfig) -> Vec<Candidate> {
    let firmware = LoopTime::from_ps(world.lab.loops[usize::from(number)].firmware.0);
    let members = world.loops.list[usize::from(number)].members.iter();
    let candidate = |(member, port): (&Member, &LoopPort)| Candidate {
        previous_address: member.al_pa,
        bypassed: !world.net.fc.link_is_up(member.link),
        delay_words: port.delay_words,
        cable: port.cable,
        firmware,
        ..match member.owner {
            Owner::NPort(_) => Candidate::new(member.name),
            Owner::FlPort { .. } => Candidate::fl_port(member.name),
        }
    };
    members.zip(&config.ports).map(candidate).collect()
}

/// Returns the settings of a port after the initialisation. `node`: `None` for an FL_Port.
fn port_config(of_lab: &ArbitratedLoop, node: Option<Node>, port: LoopPort, al_pa: Option<AlPa>) -> LoopPort {
    LoopPort {
        al_pa,
        fair: node.is_none_or(|node| !of_lab.unfair.contains(&node)),
        transfers: node.is_some_and(|node| of_lab.transfers.contains(&node)),
        // A port frees its buffers at once, so that more of them change nothing.
        buffers: of_lab.login_credit.max(port.buffers),
        ..port
    }
}
