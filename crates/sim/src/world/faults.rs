//! The faults of a lab, at their times.

use super::World;
use super::ledger::NoteKind;
use super::processor::SwitchProcessor;
use crate::net::{End, NEVER};
use crate::rng::{Purpose, stream_rng};
use sanloom_core::config::{Direction, Fault, FaultKind, Node, Picos};
use sanloom_core::fabric_switch::{FabricSwitch, Input};
use sanloom_core::time::Instant;
use sanloom_core::zoning::server::ZoneChange;

/// What is still to come.
#[derive(Default)]
pub(super) struct Schedule {
    /// What is to be done and when; the next one last.
    steps: Vec<(u64, Step)>,
    /// How many faults keep a link down.
    down: Vec<u32>,
    /// When everything that was still to come was called off.
    healed_ps: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A virtual machine is created.
    Create(u16),
    /// The zones change.
    Change(u16),
    /// A fault begins (`false`) or ends.
    Fault(usize, bool),
}

impl World {
    /// Plans the beginning and the end of each fault, and the creation of each virtual machine.
    pub(super) fn schedule_faults(&mut self) {
        let start = self.start_ps;
        let mut steps = Vec::new();
        for (number, fault) in self.lab.faults.iter().enumerate() {
            steps.push((start + fault.at.0, Step::Fault(number, false)));
            if let Some(until) = fault.until {
                steps.push((start + until.0, Step::Fault(number, true)));
            }
        }
        for (host, number) in self.lab.hosts.iter().zip(0..) {
            if let Some(at) = host.virtual_machine.and_then(|vm| vm.start) {
                steps.push((start.saturating_add(at.0), Step::Create(number)));
            }
        }
        for (change, number) in self.lab.changes.iter().zip(0..) {
            steps.push((start.saturating_add(change.at.0), Step::Change(number)));
        }
        steps.sort_by(|a, b| b.cmp(a));
        self.faults = Schedule { steps, down: vec![0; self.lab.links.len()], healed_ps: None };
        self.arm_faults();
    }

    /// What the lab has for a time, counted from the start of the workloads, has happened.
    pub fn has_happened(&self, at: Picos) -> bool {
        let last = self.faults.healed_ps.unwrap_or(u64::MAX).min(self.net.now());
        self.start_ps > 0 && self.start_ps.saturating_add(at.0) <= last
    }

    fn arm_faults(&mut self) {
        let at = self.faults.steps.last().map_or(NEVER, |step| step.0);
        self.net.set_timer(self.timers.fault, at);
    }

    /// Faults begin or end.
    pub(super) fn apply_faults(&mut self) {
        let now = self.net.now();
        while let Some(&(at, step)) = self.faults.steps.last()
            && at <= now
        {
            self.faults.steps.pop();
            match step {
                Step::Create(host) => self.create_machine(host),
                Step::Change(number) => self.change_zones(number),
                Step::Fault(number, ends) => {
                    let fault = self.lab.faults[number];
                    self.apply(&fault, ends);
                }
            }
        }
        self.arm_faults();
    }

    /// An administrator commits a change of the zones at a switch, which tells how it ended.
    fn change_zones(&mut self, number: u16) {
        let change = &self.lab.changes[usize::from(number)];
        let (switch, edits) = (change.switch, change.edits.clone());
        if !self.switches[usize::from(switch)].up {
            let failure = Some("the switch does not run".to_owned());
            return self.note(NoteKind::ZonesChanged { switch, change: number, failure });
        }
        let input = Input::ChangeZones { tag: number.into(), change: ZoneChange::Edits(edits) };
        self.switch_input(switch, Instant::from_ns(self.net.now() / 1_000), input);
    }

    /// Ends every fault that lasts, so that the network can heal.
    pub fn heal(&mut self) {
        self.faults.healed_ps = Some(self.net.now());
        while let Some((_, step)) = self.faults.steps.pop() {
            if let Step::Fault(number, true) = step {
                let fault = self.lab.faults[number];
                self.apply(&fault, true);
            }
        }
        for number in 0..self.lab.faults.len() {
            let fault = self.lab.faults[number];
            if fault.until.is_none() && !matches!(fault.kind, FaultKind::LinkUp { .. }) {
                self.apply(&fault, true);
            }
        }
        for link in 0..self.lab.links.len() as u16 {
            self.faults.down[usize::from(link)] = 0;
            self.follow_link(link);
        }
        self.arm_faults();
    }

    fn apply(&mut self, fault: &Fault, ends: bool) {
        match fault.kind {
            FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => {
                if ends {
                    self.release_link(link);
                } else {
                    self.hold_down(link);
                }
            }
            FaultKind::LinkUp { link } => {
                self.faults.down[usize::from(link)] = 0;
                self.follow_link(link);
            }
            FaultKind::SwitchReset { switch } => self.switch_power(switch, ends),
            FaultKind::FrameLoss { link, direction, probability } => {
                let value = if ends { 0.0 } else { probability };
                for lane in lanes(link, direction) {
                    let seed = self.lab.run.seed;
                    let rng = || stream_rng(seed, Purpose::FrameLoss, lane, 0);
                    self.net.fault_mut(lane, rng).frame_loss = value;
                }
            }
            FaultKind::CrcErrors { link, direction, probability } => {
                let value = if ends { 0.0 } else { probability };
                for lane in lanes(link, direction) {
                    let seed = self.lab.run.seed;
                    let rng = || stream_rng(seed, Purpose::FrameLoss, lane, 0);
                    self.net.fault_mut(lane, rng).crc_errors = value;
                }
            }
            FaultKind::SlowReceiver { link, end, delay } => {
                self.net.slow_receiver(towards(link, end), if ends { 0 } else { delay.0 });
            }
            FaultKind::VmMove { host, to } if !ends => self.move_machine(host, to, fault.until.is_none()),
            FaultKind::VmMove { host, .. } if fault.until.is_some() => self.resume_machine(host),
            FaultKind::VmStop { host } if !ends => self.stop_machine(host),
            FaultKind::VmMove { .. } | FaultKind::VmStop { .. } => {}
            FaultKind::WithheldCredits { link, end } => self.net.withhold_credits(towards(link, end), !ends),
            FaultKind::LostRRdy { link, end, probability } => {
                let lane = towards(link, end);
                let seed = self.lab.run.seed;
                let rng = || stream_rng(seed, Purpose::FrameLoss, lane, 0);
                self.net.fault_mut(lane, rng).r_rdy_loss = if ends { 0.0 } else { probability };
            }
        }
    }

    fn hold_down(&mut self, link: u16) {
        self.faults.down[usize::from(link)] += 1;
        self.follow_link(link);
    }

    fn release_link(&mut self, link: u16) {
        let down = &mut self.faults.down[usize::from(link)];
        *down = down.saturating_sub(1);
        self.follow_link(link);
    }

    /// A link is up when no fault keeps it down and the switches at its ends run.
    fn follow_link(&mut self, link: u16) {
        let runs = |node: Node| match node {
            Node::Switch(switch) => self.switches[usize::from(switch)].up,
            Node::Host(_) | Node::Storage(_) => true,
        };
        let ends = &self.lab.links[usize::from(link)].ends;
        let up = self.faults.down[usize::from(link)] == 0 && ends.iter().all(|end| runs(end.node));
        if up == self.net.link_is_up(link) {
            return;
        }
        if up {
            self.net.link_up(link);
        } else {
            self.net.link_down(link);
        }
        self.link_changed(link, up);
    }

    fn link_changed(&mut self, link: u16, up: bool) {
        let now = self.net.now();
        self.note(NoteKind::Link { link, up });
        let since = &mut self.ledger.down_since_ps[usize::from(link)];
        match since.take() {
            Some(since) if up => self.ledger.down_ps[usize::from(link)] += now - since,
            other => *since = if up { None } else { other.or(Some(now)) },
        }
        self.announce_link(link, up);
    }

    /// Tells both ends of a link that it is up or down.
    pub(crate) fn announce_link(&mut self, link: u16, up: bool) {
        for lane in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            match self.net.lanes()[lane as usize].to {
                End::Switch { switch, port } => self.switch_port(switch, port, up),
                End::NPort(_) => {}
            }
        }
        for lane in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            if let End::NPort(nport) = self.net.lanes()[lane as usize].to {
                self.port_link(nport, up);
            }
        }
        self.settle();
    }

    /// A switch stops, with all its links, buffers and logins; or it is back, knowing nothing.
    fn switch_power(&mut self, switch: u16, up: bool) {
        let links: Vec<u16> = (0..self.lab.links.len() as u16)
            .filter(|&link| self.lab.links[usize::from(link)].ends.iter().any(|end| end.node == Node::Switch(switch)))
            .collect();
        if self.switches[usize::from(switch)].up == up {
            return;
        }
        if up {
            let node = &mut self.switches[usize::from(switch)];
            node.forgotten = node.counted();
            let now = Instant::from_ns(self.net.now() / 1_000);
            let mut config = self.switch_config(switch);
            // Logins are forgotten, what an administrator has committed is not.
            let committed = self.switches[usize::from(switch)].machine.zone_server().zones().clone();
            (config.services.zoning, config.database) = (committed.index(), committed);
            self.switches[usize::from(switch)].machine = FabricSwitch::new(now, config);
            self.switches[usize::from(switch)].up = true;
            self.note(NoteKind::Switch { switch, up });
        } else {
            self.note(NoteKind::Switch { switch, up });
            self.net.reset_switch(switch);
            let node = &mut self.switches[usize::from(switch)];
            node.up = false;
            // What it was busy with is forgotten.
            node.processor = self.lab.switches[usize::from(switch)].processor.map(SwitchProcessor::new);
        }
        for link in links {
            self.follow_link(link);
        }
    }
}

fn lanes(link: u16, direction: Direction) -> Vec<u32> {
    let first = 2 * u32::from(link);
    match direction {
        Direction::Forward => vec![first],
        Direction::Backward => vec![first + 1],
        Direction::Both => vec![first, first + 1],
    }
}

/// The lane that arrives at an end of a link.
fn towards(link: u16, end: u8) -> u32 {
    2 * u32::from(link) + u32::from(end == 0)
}
