//! A plain engine of Ethernet: no event queue, no counters that could go wrong. At each instant it
//! looks at every line and every switch. It shares no code with the plane but the plan, the packet
//! and the random numbers.

mod line;

use line::{Flying, PlainLine, Waiting};
use sanloom_scsi::random::{SplitMix64, mix};
use sanloom_sim::net::ethernet::{EthernetPlan, EthernetSwitchPlan, LineErrors, Packet, Station};
use std::collections::{BTreeMap, BTreeSet};

const NEVER: u64 = u64::MAX;

/// A frame on a line: a pause frame names the priorities to stop and to resume.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Content {
    Frame {
        packet: Packet,
        is_bad: bool,
    },
    Pause {
        named: u8,
        stop: u8,
    },
    /// A pause of all priorities at once, or its end.
    LinkPause {
        stops: bool,
    },
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct PlainGroup {
    pub reserve: u64,
    pub shared: u64,
    pub headroom: u64,
    pub pauses: bool,
}

/// Event of a frame of FCoE, which has a number as its position.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Handed {
    Left,
    Arrived(u16),
    Lost,
}

struct PlainSwitch {
    plan: EthernetSwitchPlan,
    pool: u64,
    lossy: u64,
    groups: BTreeMap<(u16, u8), PlainGroup>,
}

pub struct Engine {
    pub now: u64,
    pub lines: Vec<PlainLine>,
    switches: Vec<PlainSwitch>,
    storms: Vec<u8>,
    /// Priorities that an interface pauses because of its receive buffers.
    busy: Vec<u8>,
    /// Frames of FCoE that have begun to leave their interface, have arrived or are lost.
    pub handed: Vec<(u32, Handed)>,
    pub delivered: Vec<(u64, u16, u32, u32, bool)>,
    pub lost: BTreeMap<(u32, &'static str), u64>,
}

impl Engine {
    pub fn new(plan: &EthernetPlan) -> Engine {
        let mut lines = Vec::new();
        for link in &plan.links {
            for (ends, shares) in [link.ends, [link.ends[1], link.ends[0]]].into_iter().zip(link.shares) {
                let number = lines.len() as u64;
                let early =
                    matches!(ends[1], Station::Switch { switch, .. } if plan.switches[usize::from(switch)].cut_through);
                let longest = match ends[0] {
                    Station::Switch { switch, .. } => plan.switches[usize::from(switch)].longest_bytes,
                    Station::Interface(_) => 9_238,
                };
                // The flow control of the switch at the near end, or else of that at the far end.
                let mut control = (0xff, false);
                for end in [ends[1], ends[0]] {
                    if let Station::Switch { switch, .. } = end {
                        let plan = &plan.switches[usize::from(switch)];
                        control = (plan.lossless, plan.pauses_links);
                    }
                }
                lines.push(PlainLine {
                    from: ends[0],
                    to: ends[1],
                    ps_per_byte: u64::from(link.byte.fraction().0) / u64::from(link.byte.fraction().1),
                    cable_ps: link.propagation_ps,
                    reaction_ps: link.reaction_ps,
                    shares: shares.map(u64::from),
                    longest: longest.into(),
                    enters_early: early,
                    up: true,
                    free_ps: 0,
                    waiting: Vec::new(),
                    flying: Vec::new(),
                    to_name: 0,
                    pauses: [(0, 0); 8],
                    deficits: [0; 8],
                    turn: 0,
                    granted: false,
                    errors: LineErrors::default(),
                    dice: SplitMix64(mix(plan.seed ^ mix(number))),
                    refresh_ps: NEVER,
                    obeys: control.0,
                    whole: control.1,
                    frames: 0,
                    bytes: 0,
                    pause_frames: 0,
                });
            }
        }
        let switches = plan.switches.iter().map(|plan| {
            let mut pool = plan.memory.bytes;
            for priority in 0..8 {
                let has_group = if plan.pauses_links { priority == 0 } else { plan.lossless & 1 << priority != 0 };
                if has_group {
                    pool -=
                        plan.memory.headroom_bytes.iter().map(|bytes| bytes + plan.memory.reserve_bytes).sum::<u64>();
                }
            }
            PlainSwitch { plan: plan.clone(), pool, lossy: 0, groups: BTreeMap::new() }
        });
        Engine {
            now: 0,
            switches: switches.collect(),
            lines,
            storms: vec![0; plan.interfaces.into()],
            busy: vec![0; plan.interfaces.into()],
            handed: Vec::new(),
            delivered: Vec::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Returns the time of the next instant at which something may happen.
    pub fn next_ps(&self) -> u64 {
        let mut next = NEVER;
        let mut at = |ps: u64| {
            if ps > self.now {
                next = next.min(ps);
            }
        };
        for line in &self.lines {
            line.flying.iter().for_each(|flying| at(flying.acts_ps));
            at(line.free_ps);
            line.pauses.iter().for_each(|pause| at(pause.1));
            line.waiting.iter().for_each(|waiting| at(waiting.ready_ps));
            at(line.refresh_ps);
        }
        next
    }

    /// Goes to the instant `now` and does all that happens then.
    pub fn go(&mut self, now: u64) {
        self.now = now;
        while self.arrive_next() || self.send_next() || self.refresh_next() {}
    }

    /// Lets one frame arrive that does so now.
    pub fn arrive_next(&mut self) -> bool {
        let now = self.now;
        let is_due = |line: &PlainLine| line.flying.first().is_some_and(|flying| flying.acts_ps == now);
        let Some(number) = self.lines.iter().position(is_due) else { return false };
        let flying = self.lines[number].flying.remove(0);
        self.arrive(number, &flying);
        true
    }

    /// Sends one frame on the first line that can.
    pub fn send_next(&mut self) -> bool {
        (0..self.lines.len()).any(|number| self.try_send(number))
    }

    /// Refreshes the pauses for one line that are due now.
    pub fn refresh_next(&mut self) -> bool {
        let now = self.now;
        let Some(number) = self.lines.iter().position(|line| line.refresh_ps == now) else { return false };
        self.lines[number].refresh_ps = NEVER;
        self.refresh(number);
        true
    }

    fn lose(&mut self, line: usize, packet: Packet, why: &'static str) {
        if packet.is_fcoe() {
            self.handed.push((packet.position, Handed::Lost));
        }
        *self.lost.entry((line as u32, why)).or_default() += 1;
    }

    pub fn send(&mut self, packet: Packet) {
        self.send_at(packet, self.now);
    }

    /// Appends a frame to the queue of its interface, which begins at `ready_ps` at the earliest.
    pub fn send_at(&mut self, packet: Packet, ready_ps: u64) {
        let is_own = |line: &PlainLine| line.from == Station::Interface(packet.from);
        let number = self.lines.iter().position(is_own).expect("each interface has a link");
        if !self.lines[number].up {
            return self.lose(number, packet, "link down");
        }
        self.lines[number].waiting.push(Waiting { packet, is_bad: false, ready_ps, ingress: None });
        self.try_send(number);
    }

    fn arrive(&mut self, number: usize, flying: &Flying) {
        let (packet, is_bad) = match flying.content {
            Content::Pause { .. } | Content::LinkPause { .. } => {
                let now = self.now;
                let sender = &mut self.lines[number ^ 1];
                let longest = 65_535 * 64 * sender.ps_per_byte;
                let (named, stop) = match flying.content {
                    Content::Pause { named, stop } if !sender.whole => (named & sender.obeys, stop),
                    Content::LinkPause { stops } if sender.whole => (0xff, if stops { 0xff } else { 0 }),
                    _ => (0, 0),
                };
                for priority in (0..8).filter(|priority| named & 1 << priority != 0) {
                    let (from, until) = &mut sender.pauses[priority];
                    if stop & 1 << priority == 0 {
                        (*from, *until) = (0, 0);
                    } else if *until > now {
                        *until = (now + longest).max(*from);
                    } else {
                        *from = now + sender.reaction_ps;
                        *until = *from + longest;
                    }
                }
                self.try_send(number ^ 1);
                return;
            }
            Content::Frame { packet, is_bad } => (packet, is_bad),
        };
        match self.lines[number].to {
            Station::Interface(_) if is_bad => self.lose(number, packet, "bad FCS"),
            Station::Interface(interface) if packet.is_fcoe() => {
                self.handed.push((packet.position, Handed::Arrived(interface)));
            }
            Station::Interface(interface) => {
                self.delivered.push((self.now, interface, packet.flow, packet.position, packet.has_congestion()));
            }
            Station::Switch { switch, port } => self.forward(number, (switch, port), packet, is_bad, flying.tail_ps),
        }
    }

    /// Returns whether the port at an end of a line belongs to a VLAN.
    fn belongs(&self, end: Station, vlan: u8) -> bool {
        match end {
            Station::Interface(_) => true,
            Station::Switch { switch, port } => {
                self.switches[usize::from(switch)].plan.vlans[usize::from(port)] >> vlan & 1 == 1
            }
        }
    }

    /// Returns the port that a frame takes over lines that `passes` accepts, found by a search for
    /// each frame.
    fn out(&self, switch: u16, packet: &Packet, passes: impl Fn(&PlainLine) -> bool) -> Option<u16> {
        // Distance of each switch from the interface.
        let is_last = |line: &&PlainLine| passes(line) && line.to == Station::Interface(packet.to);
        let mut distance: BTreeMap<u16, u32> = BTreeMap::new();
        let Station::Switch { switch: last, port } = self.lines.iter().find(is_last)?.from else { return None };
        distance.insert(last, 0);
        for round in 0..self.switches.len() as u32 {
            for line in self.lines.iter().filter(|line| passes(line)) {
                if let (Station::Switch { switch: from, .. }, Station::Switch { switch: to, .. }) = (line.from, line.to)
                    && distance.get(&to) == Some(&round)
                {
                    distance.entry(from).or_insert(round + 1);
                }
            }
        }
        let own = *distance.get(&switch)?;
        if own == 0 {
            return Some(port);
        }
        let mut bundles: BTreeMap<u16, BTreeSet<(usize, u16)>> = BTreeMap::new();
        for (number, line) in self.lines.iter().enumerate().filter(|(_, line)| passes(line)) {
            if let (Station::Switch { switch: from, port }, Station::Switch { switch: to, .. }) = (line.from, line.to)
                && from == switch
                && distance.get(&to) == Some(&(own - 1))
            {
                bundles.entry(to).or_default().insert((number / 2, port));
            }
        }
        let hash = mix(u64::from(packet.flow) ^ mix(u64::from(switch)));
        let bundles: Vec<Vec<u16>> =
            bundles.into_values().map(|ports| ports.into_iter().map(|port| port.1).collect()).collect();
        let bundle = &bundles[(hash >> 32) as usize % bundles.len()];
        Some(bundle[(hash & 0xffff_ffff) as usize % bundle.len()])
    }

    fn line_of(&self, switch: u16, port: u16) -> usize {
        self.lines.iter().position(|line| line.from == Station::Switch { switch, port }).expect("a line at each port")
    }

    fn forward(&mut self, number: usize, (switch, port): (u16, u16), packet: Packet, is_bad: bool, tail_ps: u64) {
        let plan = self.switches[usize::from(switch)].plan.clone();
        if is_bad && tail_ps <= self.now {
            return self.lose(number, packet, "bad FCS");
        }
        if packet.bytes > plan.longest_bytes {
            return self.lose(number, packet, "too long");
        }
        if self.out(switch, &packet, |line| line.up).is_none() {
            return self.lose(number, packet, "no path");
        }
        let vlan = packet.vlan();
        let of_vlan = |line: &PlainLine| line.up && [line.from, line.to].iter().all(|end| self.belongs(*end, vlan));
        let out = self.out(switch, &packet, of_vlan);
        let Some(out) = out.filter(|_| self.belongs(Station::Switch { switch, port }, vlan)) else {
            return self.lose(number, packet, "VLAN");
        };
        let tx = self.line_of(switch, out);
        let priority = packet.priority();
        let same = self.lines[tx].waiting.iter().filter(|waiting| waiting.packet.priority() == priority);
        let queued: u64 = same.map(|waiting| u64::from(waiting.packet.bytes)).sum();
        let cell = u64::from(plan.memory.cell_bytes);
        let bytes = u64::from(packet.bytes).div_ceil(cell) * cell;
        let state = &mut self.switches[usize::from(switch)];
        let free = state.free();
        let mut begins_pause = false;
        if !plan.pauses_links && plan.lossless & 1 << priority == 0 {
            if bytes > free || queued + bytes > free * u64::from(plan.memory.lossy_alpha_256) / 256 {
                return self.lose(number, packet, "congestion");
            }
            state.lossy += bytes;
        } else {
            let most = free * u64::from(plan.memory.alpha_256) / 256;
            let group = state.groups.entry((port, plan.group_of(priority))).or_default();
            if group.reserve + bytes <= plan.memory.reserve_bytes {
                group.reserve += bytes;
            } else if group.headroom == 0 && bytes <= free && group.shared + bytes <= most {
                group.shared += bytes;
            } else if group.headroom + bytes <= plan.memory.headroom_bytes[usize::from(port)] {
                group.headroom += bytes;
            } else {
                return self.lose(number, packet, "headroom");
            }
            begins_pause = group.headroom > 0 && !group.pauses;
            group.pauses |= group.headroom > 0;
        }
        let mut packet = packet;
        if let Some(ecn) = plan.ecn[usize::from(priority)]
            && packet.is_ecn_capable()
        {
            let is_between = queued >= ecn.from_bytes && queued < ecn.all_bytes;
            let chance = if is_between {
                u64::from(ecn.chance) * (queued - ecn.from_bytes) / (ecn.all_bytes - ecn.from_bytes)
            } else {
                0
            };
            let is_hit = is_between && (self.lines[tx].dice.bits() >> 32) < chance;
            if queued >= ecn.all_bytes || is_hit {
                packet = packet.with_congestion();
            }
        }
        let line = &mut self.lines[tx];
        let mut ready_ps = self.now + plan.latency_ps;
        if tail_ps > self.now {
            let last_byte_ps =
                (tail_ps + plan.latency_ps).saturating_sub((u64::from(packet.bytes) + 8) * line.ps_per_byte);
            ready_ps = ready_ps.max(last_byte_ps);
        }
        line.waiting.push(Waiting { packet, is_bad, ready_ps, ingress: Some(port) });
        if begins_pause {
            self.announce(number, 1 << priority);
        }
        self.try_send(tx);
    }

    fn announce(&mut self, number: usize, named: u8) {
        if !self.lines[number].up {
            return;
        }
        self.lines[number ^ 1].to_name |= named;
        self.try_send(number ^ 1);
        let refresh_ps = self.now + 65_535 * 64 * self.lines[number].ps_per_byte / 2;
        self.lines[number].refresh_ps = self.lines[number].refresh_ps.min(refresh_ps);
    }

    fn pausing(&self, number: usize) -> u8 {
        match self.lines[number].to {
            Station::Interface(interface) => self.storms[usize::from(interface)] | self.busy[usize::from(interface)],
            Station::Switch { switch, port } => {
                let state = &self.switches[usize::from(switch)];
                let groups = state.groups.iter();
                if state.plan.pauses_links {
                    return if groups.into_iter().any(|(key, group)| key.0 == port && group.pauses) { 0xff } else { 0 };
                }
                groups.filter(|(key, group)| key.0 == port && group.pauses).map(|(key, _)| 1 << key.1).sum()
            }
        }
    }

    fn refresh(&mut self, number: usize) {
        let pausing = self.pausing(number);
        if pausing == 0 || !self.lines[number].up {
            return;
        }
        if let Station::Switch { switch, port } = self.lines[number].to {
            for priority in 0..8 {
                self.switches[usize::from(switch)].ends_pause(port, priority);
            }
        }
        self.announce(number, pausing);
    }

    /// Sends one frame on a line, if one may leave.
    fn try_send(&mut self, number: usize) -> bool {
        let now = self.now;
        let line = &mut self.lines[number];
        if !line.up || line.free_ps > now {
            return false;
        }
        if line.to_name != 0 {
            let named = std::mem::take(&mut line.to_name);
            let whole = line.whole;
            let stop = self.pausing(number ^ 1) & named;
            match whole {
                true => self.put(number, Content::LinkPause { stops: self.pausing(number ^ 1) != 0 }),
                false => self.put(number, Content::Pause { named, stop }),
            }
            return true;
        }
        let first: Vec<Option<Waiting>> = (0..8).map(|priority| line.first(priority)).collect();
        let may_begin = |priority: usize| {
            let (from, until) = line.pauses[priority];
            first[priority].is_some_and(|waiting| waiting.ready_ps <= now) && !(from <= now && now < until)
        };
        let ready: Vec<usize> = (0..8).filter(|&priority| may_begin(priority)).collect();
        let Some(priority) = line.choose(&ready, &first) else { return false };
        let at = line.waiting.iter().position(|waiting| usize::from(waiting.packet.priority()) == priority);
        let waiting = line.take(at.expect("it is ready"));
        let from = line.from;
        self.put(number, Content::Frame { packet: waiting.packet, is_bad: waiting.is_bad });
        if waiting.packet.is_fcoe() && matches!(from, Station::Interface(_)) {
            self.handed.push((waiting.packet.position, Handed::Left));
        }
        self.free(from, &waiting);
        true
    }

    fn free(&mut self, from: Station, waiting: &Waiting) {
        let (Station::Switch { switch, .. }, Some(port)) = (from, waiting.ingress) else { return };
        let priority = waiting.packet.priority();
        let state = &mut self.switches[usize::from(switch)];
        let cell = u64::from(state.plan.memory.cell_bytes);
        let mut bytes = u64::from(waiting.packet.bytes).div_ceil(cell) * cell;
        if !state.plan.pauses_links && state.plan.lossless & 1 << priority == 0 {
            state.lossy -= bytes;
            return;
        }
        let group = state.groups.entry((port, state.plan.group_of(priority))).or_default();
        for part in [&mut group.headroom, &mut group.shared, &mut group.reserve] {
            let taken = bytes.min(*part);
            *part -= taken;
            bytes -= taken;
        }
        if state.ends_pause(port, priority) {
            let ingress = self.line_of(switch, port) ^ 1;
            self.announce(ingress, 1 << priority);
        }
    }

    fn put(&mut self, number: usize, mut content: Content) {
        let now = self.now;
        let line = &mut self.lines[number];
        let bytes = match content {
            Content::Pause { .. } | Content::LinkPause { .. } => 64,
            Content::Frame { packet, .. } => u64::from(packet.bytes),
        };
        let tail_ps = now + (bytes + 8) * line.ps_per_byte + line.cable_ps;
        line.free_ps = now + (bytes + 20) * line.ps_per_byte;
        let mut acts_ps = tail_ps;
        match content {
            Content::Pause { .. } | Content::LinkPause { .. } => line.pause_frames += 1,
            Content::Frame { .. } => {
                line.frames += 1;
                line.bytes += bytes;
                if line.enters_early {
                    acts_ps = now + 72 * line.ps_per_byte + line.cable_ps;
                }
            }
        }
        let (mut acts_ps, mut tail_ps) = (acts_ps, tail_ps);
        if line.errors != LineErrors::default() {
            let LineErrors { loss, damage, lateness, late_ps } = line.errors;
            let [is_lost, is_damaged] = [loss, damage].map(|chance| (line.dice.bits() >> 32) < u64::from(chance));
            match &mut content {
                Content::Pause { .. } | Content::LinkPause { .. } if is_lost || is_damaged => return,
                Content::Pause { .. } | Content::LinkPause { .. } => {}
                Content::Frame { packet, .. } if is_lost => return self.lose(number, *packet, "lost"),
                Content::Frame { is_bad, .. } => *is_bad |= is_damaged,
            }
            if lateness > 0 && (line.dice.bits() >> 32) < u64::from(lateness) {
                acts_ps += late_ps;
                tail_ps += late_ps;
            }
        }
        let flying = &mut self.lines[number].flying;
        flying.push(Flying { acts_ps, tail_ps, content });
        flying.sort_by_key(|flying| flying.acts_ps);
    }

    pub fn set_link(&mut self, link: usize, up: bool) {
        if self.lines[2 * link].up == up {
            return;
        }
        for number in [2 * link, 2 * link + 1] {
            self.lines[number].up = up;
            if !up {
                let line = &mut self.lines[number];
                (line.pauses, line.to_name) = ([(0, 0); 8], 0);
                let flying = std::mem::take(&mut line.flying);
                let from = line.from;
                for flying in flying {
                    if let Content::Frame { packet, .. } = flying.content {
                        self.lose(number, packet, "link down");
                    }
                }
                for priority in 0..8 {
                    while let Some(at) =
                        self.lines[number].waiting.iter().position(|waiting| waiting.packet.priority() == priority)
                    {
                        let waiting = self.lines[number].take(at);
                        self.lose(number, waiting.packet, "link down");
                        self.free(from, &waiting);
                    }
                }
            }
        }
        for number in [2 * link, 2 * link + 1] {
            let pausing = self.pausing(number);
            if up && pausing != 0 {
                self.announce(number, pausing);
            }
        }
    }

    pub fn set_storm(&mut self, interface: u16, storm: u8) {
        let before = std::mem::replace(&mut self.storms[usize::from(interface)], storm);
        let number = self.lines.iter().position(|line| line.to == Station::Interface(interface)).expect("a link");
        if before != storm && self.lines[number].up {
            self.announce(number, before | storm);
        }
    }

    /// Lets an interface pause the priorities in `busy` because of its receive buffers.
    pub fn set_busy(&mut self, interface: u16, busy: u8) {
        let before = std::mem::replace(&mut self.busy[usize::from(interface)], busy);
        let number = self.lines.iter().position(|line| line.to == Station::Interface(interface)).expect("a link");
        if before != busy {
            self.announce(number, before | busy);
        }
    }

    pub fn group(&self, switch: u16, port: u16, priority: u8) -> PlainGroup {
        let state = &self.switches[usize::from(switch)];
        state.groups.get(&(port, state.plan.group_of(priority))).copied().unwrap_or_default()
    }

    pub fn queued(&self, line: usize, priority: u8) -> u64 {
        let of = self.lines[line].waiting.iter().filter(|waiting| waiting.packet.priority() == priority);
        of.map(|waiting| u64::from(waiting.packet.bytes)).sum()
    }
}

/// Group of memory of a priority.
trait GroupOf {
    fn group_of(&self, priority: u8) -> u8;
}

impl GroupOf for EthernetSwitchPlan {
    fn group_of(&self, priority: u8) -> u8 {
        if self.pauses_links { 0 } else { priority }
    }
}

impl PlainSwitch {
    fn free(&self) -> u64 {
        self.pool - self.lossy - self.groups.values().map(|group| group.shared).sum::<u64>()
    }

    fn ends_pause(&mut self, port: u16, priority: u8) -> bool {
        let most = self.free() * u64::from(self.plan.memory.alpha_256) / 256;
        let key = (port, self.plan.group_of(priority));
        let Some(group) = self.groups.get_mut(&key) else { return false };
        let low = group.shared == 0 || group.shared + self.plan.memory.resume_bytes <= most;
        let ends = group.pauses && group.headroom == 0 && low;
        if ends {
            group.pauses = false;
        }
        ends
    }
}
