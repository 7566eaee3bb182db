//! FIP on the Ethernet plane: discovery, keep-alives and the end of virtual links (FC-BB-6, FCoE
//! Initialization Protocol).
//!
//! ```text
//!   ENode                                          forwarder
//!     │ VLAN request, untagged ─────────────────────▶ │   every second until it is answered
//!     │ ◀─────────────────────────────── notification │
//!     │ solicitation ───────────────────────────────▶ │   every 8 s, and after each advertisement
//!     │ ◀─────────── advertisement, padded to full size │   the virtual link is up: FLOGI
//!     │ ◀──────────────────────── advertisement (FKA) │   period and a random delay
//!     │ keep-alive (FKA) ───────────────────────────▶ │   of a VN_Port every 90 s
//!     │ ◀───────────────────────── clear virtual links │   2.5 periods without a keep-alive
//! ```
//!
//! Two forwarders (VE_Ports) solicit and watch each other's advertisements. Each frame is an
//! ordinary one of the plane: it has a length, a priority and a VLAN, waits in queues, obeys pauses
//! and is lost by faults. Its path is that of the data frames of its virtual link. A virtual link
//! therefore ends exactly if one of its ends has received nothing for 2.5 periods.
//!
//! # Why the live machines do not run here
//!
//! [`sanloom_fc::fip`] has the machines that run live. The simulator shares their intervals
//! ([`fip::silence_limit`] and the constants beside it) and the contents of their frames, and a
//! test passes the frames of a simulation to [`fip::enode::Enode`] and [`fip::fcf::Fcf`], which
//! must agree. Three properties keep the machines themselves out:
//!
//! - A link of a lab has fixed ends and a fixed port of its switch. An `Enode` selects a forwarder
//!   by its priority, and an `Fcf` takes a free port for each host.
//! - A virtual link of the Fibre Channel plane is one object, up or down for both ends. The
//!   machines have a state at each end, and the link is up at one end only for some time.
//! - Logins of FIP share the send queue and the crossbar with data frames of their port, so they
//!   wait and are lost as those. The machines build whole PDUs, with allocations for each frame.
//!
//! # Simplifications
//!
//! - A forwarder has an address (FCF-MAC) for each virtual link. Its multicast frames go to the
//!   station at the other end only: Ethernet switches do not flood.
//! - A link that ends at one end has ended at the other one as well.
//! - A host knows its forwarder, so it does not wait for further ones (2 s in Linux).
//! - Forwarders are always available, and answer logins when their switch has a domain.
//! - Of the settings that make two fabrics different, a forwarder compares FC-MAP and VF_ID.
//! - A forwarder does not end a login for a lack of the keep-alives of its VN_Port alone.

mod message;

pub(crate) use message::Message;

use crate::agenda::Agenda;
use crate::net::ethernet::Packet;
use crate::net::{NEVER, Net};
use sanloom_fc::fip::enode::VLAN_REQUEST_SPACING;
use sanloom_fc::fip::{self, ADVERTISEMENT_JITTER, DEFAULT_PERIOD, VN_PORT_KEEP_ALIVE};
use sanloom_scsi::random::{SplitMix64, mix};
use sanloom_scsi::time::Span;
use sanloom_wire::FcId;

/// A virtual link under the control of FIP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FipPlan {
    /// Number of the link in the lab.
    pub link: u16,
    pub ends: [EndPlan; 2],
    pub priority: u8,
    /// Number of the VLAN in the lab; 0 for none.
    pub vlan: u8,
    /// True if frames in the VLAN have a tag.
    pub has_tag: bool,
    /// True if both ends are forwarders of different fabrics, which discard each other's
    /// solicitations and advertisements (FC-BB-6).
    pub is_foreign: bool,
}

/// An end of a [`FipPlan`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndPlan {
    /// Interface of Ethernet.
    pub interface: u16,
    /// Period of the advertisements of a forwarder; `None` for an ENode.
    pub period_ps: Option<u64>,
}

/// Result of an input, for the layers above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// A virtual link has come up or has ended.
    Link(u16),
    /// The VN_Ports at an end of a virtual link send their keep-alives.
    VnPorts { link: u16, end: u8 },
}

/// Discovery of an ENode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Search {
    /// The link is up, or has no light.
    None,
    Vlan,
    Forwarder,
}

/// Periodic job of an end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Advertisement of a forwarder, keep-alive of an ENode.
    Beat,
    /// The other end has been silent for too long.
    Silence,
    /// Repetition of a VLAN request or of a solicitation.
    Search,
    /// Keep-alives of VN_Ports.
    VnPorts,
}

const KINDS: usize = 4;

/// An entry of the agenda, which counts only if the alarm still has this time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Job {
    at_ps: u64,
    number: u32,
    end: u8,
    kind: Kind,
}

/// An alarm with at most one entry of the agenda that counts.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    due_ps: u64,
    planned_ps: u64,
}

const IDLE: Alarm = Alarm { due_ps: NEVER, planned_ps: NEVER };

/// State of an end.
#[derive(Clone, Copy, Debug)]
struct End {
    has_light: bool,
    search: Search,
    alarms: [Alarm; KINDS],
}

/// State of a virtual link.
#[derive(Debug)]
struct FipLink {
    plan: FipPlan,
    is_up: bool,
    ends: [End; 2],
    dice: SplitMix64,
}

/// Discovery and keep-alives of all virtual links.
#[derive(Debug)]
pub(crate) struct Fip {
    links: Vec<FipLink>,
    /// Position in `links` of each link of the lab; `u32::MAX` for none.
    positions: Vec<u32>,
    agenda: Agenda<Job>,
    due: Vec<Due>,
}

impl Fip {
    /// Returns the state before the first light. `links` is the number of links of the lab.
    pub fn new(plans: Vec<FipPlan>, links: usize, timer: u32, seed: u64) -> Fip {
        let mut positions = vec![u32::MAX; links];
        for (position, plan) in (0..).zip(&plans) {
            positions[usize::from(plan.link)] = position;
        }
        let idle = End { has_light: false, search: Search::None, alarms: [IDLE; KINDS] };
        let link = |plan: FipPlan| FipLink {
            dice: SplitMix64(mix(seed ^ mix(u64::from(plan.link) | 1 << 40))),
            plan,
            is_up: false,
            ends: [idle; 2],
        };
        Fip { links: plans.into_iter().map(link).collect(), positions, agenda: Agenda::new(timer), due: Vec::new() }
    }

    fn position(&self, link: u16) -> Option<usize> {
        self.positions.get(usize::from(link)).map(|position| *position as usize).filter(|at| *at < self.links.len())
    }

    /// Returns the links with their interfaces.
    pub fn plans(&self) -> impl Iterator<Item = &FipPlan> {
        self.links.iter().map(|link| &link.plan)
    }

    /// Returns the plan of a link; `None` if FIP does not control it.
    pub fn plan(&self, link: u16) -> Option<&FipPlan> {
        Some(&self.links[self.position(link)?].plan)
    }

    /// Returns whether a link is up; `None` if FIP does not control it.
    pub fn is_up(&self, link: u16) -> Option<bool> {
        Some(self.links[self.position(link)?].is_up)
    }

    /// Takes a result.
    pub fn take_due(&mut self) -> Option<Due> {
        self.due.pop()
    }

    /// Tells FIP which ends of a link can send and receive. An end that comes to light begins
    /// discovery. The link ends at once when one of its ends goes dark.
    pub fn set_light(&mut self, net: &mut Net, link: u16, light: [bool; 2]) {
        let Some(number) = self.position(link) else { return };
        let before = self.links[number].ends.map(|end| end.has_light);
        if before == light {
            return;
        }
        for (state, has_light) in self.links[number].ends.iter_mut().zip(light) {
            state.has_light = has_light;
            if !has_light {
                state.search = Search::None;
                state.alarms.iter_mut().for_each(|alarm| alarm.due_ps = NEVER);
            }
        }
        if self.links[number].is_up {
            self.end_link(net, number);
        }
        for end in (0..2).filter(|end| light[*end] && !before[*end]) {
            self.begin(net, number, end);
        }
    }

    /// Begins discovery at an end that has come to light.
    fn begin(&mut self, net: &mut Net, number: usize, end: usize) {
        let plan = self.links[number].plan;
        if plan.ends[end].period_ps.is_none() {
            return match plan.vlan {
                0 => self.solicit(net, number, end),
                _ => self.request_vlans(net, number, end),
            };
        }
        // A forwarder that starts has no logins.
        match plan.ends[1 - end].period_ps {
            None => self.send(net, number, end, Message::ClearAll),
            Some(_) => self.send(net, number, end, Message::Solicitation),
        }
        self.beat(net, number, end);
    }

    fn request_vlans(&mut self, net: &mut Net, number: usize, end: usize) {
        self.links[number].ends[end].search = Search::Vlan;
        self.send(net, number, end, Message::VlanRequest);
        self.set(net, number, end, Kind::Search, net.now() + ps(VLAN_REQUEST_SPACING));
    }

    /// Sends the solicitation of an ENode to all forwarders, and repeats it later.
    fn solicit(&mut self, net: &mut Net, number: usize, end: usize) {
        self.links[number].ends[end].search = Search::Forwarder;
        self.send(net, number, end, Message::Solicitation);
        self.set(net, number, end, Kind::Search, net.now() + ps(DEFAULT_PERIOD));
    }

    /// Sends the advertisement or the keep-alive of an end, and plans the next one.
    fn beat(&mut self, net: &mut Net, number: usize, end: usize) {
        let [own, peer] = [end, 1 - end].map(|end| self.links[number].plan.ends[end].period_ps);
        let (message, wait_ps) = match own {
            Some(period_ps) => {
                // Short periods have a shorter delay, so that a single loss ends no link.
                let most_ps = ps(ADVERTISEMENT_JITTER).min(period_ps / 80);
                let jitter_ps = self.links[number].dice.below(most_ps + 1);
                (Message::Advertisement, period_ps + jitter_ps)
            }
            None => (Message::KeepAlive, peer.unwrap_or(NEVER)),
        };
        self.send(net, number, end, message);
        self.set(net, number, end, Kind::Beat, net.now().saturating_add(wait_ps));
    }

    /// Handles a frame that has arrived at its interface.
    pub fn packet(&mut self, net: &mut Net, packet: &Packet) {
        let (link, end) = ((packet.flow / 2) as u16, 1 - (packet.flow % 2) as usize);
        let Some(number) = self.position(link) else { return };
        let state = &self.links[number];
        if !state.ends[end].has_light || state.plan.is_foreign {
            return;
        }
        let is_forwarder = state.plan.ends[end].period_ps.is_some();
        let (is_up, search) = (state.is_up, state.ends[end].search);
        match Message::of(packet) {
            Message::VlanRequest if is_forwarder => self.send(net, number, end, Message::VlanNotification),
            Message::VlanNotification if search == Search::Vlan => self.solicit(net, number, end),
            message @ (Message::Solicitation | Message::UnicastSolicitation) if is_forwarder => {
                self.send(net, number, end, Message::SolicitedAdvertisement);
                let is_start = message == Message::Solicitation;
                if is_start && !is_up && state_is_forwarder(&self.links[number], 1 - end) {
                    self.send(net, number, end, Message::UnicastSolicitation);
                }
            }
            Message::SolicitedAdvertisement | Message::Advertisement if is_up => self.hear(net, number, end),
            Message::SolicitedAdvertisement if search != Search::Vlan => self.come_up(net, number),
            Message::Advertisement if search != Search::Vlan => {
                self.send(net, number, end, Message::UnicastSolicitation);
            }
            Message::KeepAlive if is_up => self.hear(net, number, end),
            Message::ClearVirtualLinks | Message::ClearAll if search == Search::Forwarder => {
                self.solicit(net, number, end)
            }
            _ => {}
        }
    }

    /// Counts the time of silence of the other end from now on.
    fn hear(&mut self, net: &mut Net, number: usize, end: usize) {
        let plan = &self.links[number].plan;
        let of_peer = plan.ends[1 - end].period_ps.or(plan.ends[end].period_ps);
        let limit_ps = ps(fip::silence_limit(Span::from_ns(of_peer.unwrap_or(NEVER) / 1_000)));
        self.set(net, number, end, Kind::Silence, net.now().saturating_add(limit_ps));
    }

    fn come_up(&mut self, net: &mut Net, number: usize) {
        if !self.links[number].ends.iter().all(|end| end.has_light) {
            return;
        }
        self.links[number].is_up = true;
        for end in 0..2 {
            self.hear(net, number, end);
            let plan = self.links[number].plan;
            if let (None, Some(period_ps)) = (plan.ends[end].period_ps, plan.ends[1 - end].period_ps) {
                self.links[number].ends[end].search = Search::None;
                self.clear(number, end, Kind::Search);
                self.set(net, number, end, Kind::Beat, net.now() + period_ps);
                self.set(net, number, end, Kind::VnPorts, net.now() + ps(VN_PORT_KEEP_ALIVE));
            }
        }
        self.due.push(Due::Link(self.links[number].plan.link));
    }

    /// Ends a link that is up. An ENode with light searches again.
    fn end_link(&mut self, net: &mut Net, number: usize) {
        self.links[number].is_up = false;
        for end in 0..2 {
            self.clear(number, end, Kind::Silence);
            if state_is_forwarder(&self.links[number], end) {
                continue;
            }
            self.clear(number, end, Kind::Beat);
            self.clear(number, end, Kind::VnPorts);
            if self.links[number].ends[end].has_light {
                self.links[number].ends[end].search = Search::Forwarder;
                self.set(net, number, end, Kind::Search, net.now() + ps(DEFAULT_PERIOD));
            }
        }
        self.due.push(Due::Link(self.links[number].plan.link));
    }

    /// Handles the silence of the peer of an end.
    fn fall_silent(&mut self, net: &mut Net, number: usize, end: usize) {
        self.end_link(net, number);
        match [end, 1 - end].map(|end| state_is_forwarder(&self.links[number], end)) {
            [false, _] => self.solicit(net, number, end),
            [true, false] => self.send(net, number, end, Message::ClearVirtualLinks),
            [true, true] => {}
        }
    }

    /// Runs a job that is due, and returns whether there was one.
    pub fn run_due(&mut self, net: &mut Net) -> bool {
        let now = net.now();
        let Some(Job { at_ps, number, end, kind }) = self.agenda.pop_due(now) else {
            self.agenda.arm(net);
            return false;
        };
        let (number, end) = (number as usize, usize::from(end));
        let alarm = &mut self.links[number].ends[end].alarms[kind as usize];
        if alarm.planned_ps != at_ps {
            return true;
        }
        alarm.planned_ps = NEVER;
        let due_ps = alarm.due_ps;
        if due_ps > now {
            if due_ps != NEVER {
                self.set(net, number, end, kind, due_ps);
            }
            return true;
        }
        alarm.due_ps = NEVER;
        match (kind, self.links[number].ends[end].search) {
            (Kind::Beat, _) => self.beat(net, number, end),
            (Kind::Silence, _) => self.fall_silent(net, number, end),
            (Kind::Search, Search::Vlan) => self.request_vlans(net, number, end),
            (Kind::Search, _) => self.solicit(net, number, end),
            (Kind::VnPorts, _) => {
                self.due.push(Due::VnPorts { link: self.links[number].plan.link, end: end as u8 });
                self.set(net, number, end, kind, now + ps(VN_PORT_KEEP_ALIVE));
            }
        }
        true
    }

    /// Sends the keep-alive of a VN_Port.
    pub fn send_vn_port(&mut self, net: &mut Net, (link, end): (u16, u8), port_id: FcId) {
        if let Some(number) = self.position(link) {
            self.send(net, number, end.into(), Message::VnPortKeepAlive(port_id));
        }
    }

    fn send(&mut self, net: &mut Net, number: usize, end: usize, message: Message) {
        let plan = &self.links[number].plan;
        let [from, to] = [end, 1 - end].map(|end| plan.ends[end].interface);
        let has_tag = plan.has_tag && !message.is_of_vlan_discovery();
        let flow = 2 * u32::from(plan.link) + end as u32;
        let packet = Packet::new(from, to, flow, message.code(), message.bytes(has_tag)).with_fip();
        // VLAN discovery is untagged, so its frames have no priority either.
        let packet = if has_tag { packet.with_priority(plan.priority).with_vlan(plan.vlan) } else { packet };
        net.send_packet(packet);
    }

    /// Lets an alarm expire at a time.
    fn set(&mut self, net: &mut Net, number: usize, end: usize, kind: Kind, at_ps: u64) {
        let alarm = &mut self.links[number].ends[end].alarms[kind as usize];
        alarm.due_ps = at_ps;
        if at_ps < alarm.planned_ps {
            alarm.planned_ps = at_ps;
            self.agenda.plan(net, at_ps, Job { at_ps, number: number as u32, end: end as u8, kind });
        }
    }

    fn clear(&mut self, number: usize, end: usize, kind: Kind) {
        self.links[number].ends[end].alarms[kind as usize].due_ps = NEVER;
    }
}

fn state_is_forwarder(link: &FipLink, end: usize) -> bool {
    link.plan.ends[end].period_ps.is_some()
}

fn ps(span: Span) -> u64 {
    span.as_ns().saturating_mul(1_000)
}
