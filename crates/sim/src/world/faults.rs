//! Execution of scheduled faults and changes of a lab.

use super::World;
use super::arbitrated_loop;
use super::controllers;
use super::disks::Disks;
use super::notes::NoteKind;
use super::out_of_band;
use super::schedule::{LinkFaults, Schedule, Step};
use super::{ethernet_faults, infiniband_faults};
use super::{fcip, fip};
use crate::net::{End, LaneFault, parts};
use crate::rng::{Purpose, stream_rng};
use sanloom_fc::config::{Direction, EthernetFault, Fault, FaultKind, InfinibandFault, LinkEnd, Node};

impl World {
    /// Starts the schedule of the lab.
    pub(super) fn start_schedule(&mut self) {
        self.schedule = Schedule::new(&self.lab, self.start_ps);
        self.link_faults = LinkFaults::new(self.lab.links.len());
        self.arm_schedule();
    }

    pub(super) fn arm_schedule(&mut self) {
        self.net.set_timer(self.timers.fault, self.schedule.next_ps());
    }

    /// Executes all steps that are due.
    pub(super) fn execute_schedule(&mut self) {
        let now = self.net.now();
        while let Some(step) = self.schedule.pop_due(now) {
            match step {
                Step::Create(host) => self.create_machine(host),
                Step::Change(number) => self.change_zones(number),
                Step::Fault(number, ends) => self.apply(number, ends),
                Step::FailBack(storage, controller) => controllers::fail_back(self, storage, controller),
                Step::EndMoves(storage) => controllers::end_moves(self, storage, now),
            }
        }
        self.arm_schedule();
    }

    fn change_zones(&mut self, number: u16) {
        let lab = self.lab.clone();
        let (control, mut env) = self.split_control();
        control.change_zones(&mut env, &lab, number);
    }

    /// Ends all active faults and cancels the remaining steps, so that the network can recover.
    pub fn heal(&mut self) {
        for number in self.schedule.cancel(self.net.now()) {
            self.apply(number, true);
        }
        for number in 0..self.lab.faults.len() {
            let fault = &self.lab.faults[number];
            let comes_up = matches!(
                fault.kind,
                FaultKind::LinkUp { .. }
                    | FaultKind::Ethernet(EthernetFault::LinkUp { .. })
                    | FaultKind::Infiniband(InfinibandFault::LinkUp { .. })
            );
            if fault.until.is_none() && !comes_up {
                self.apply(number, true);
            }
        }
        ethernet_faults::clear(self);
        for link in 0..self.lab.links.len() as u16 {
            self.link_faults.clear(link);
            self.update_link(link);
        }
        infiniband_faults::clear(self);
        controllers::settle(self);
        self.arm_schedule();
    }

    /// Begins or ends a fault of the lab.
    fn apply(&mut self, number: usize, ends: bool) {
        let fault: Fault = self.lab.faults[number];
        match fault.kind {
            FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => {
                if ends {
                    self.link_faults.end(link);
                } else {
                    self.link_faults.begin(link);
                }
                self.update_link(link);
            }
            FaultKind::LinkUp { link } => {
                self.link_faults.clear(link);
                self.update_link(link);
            }
            FaultKind::SwitchReset { switch } => self.switch_power(switch, ends),
            FaultKind::FrameLoss { link, direction, probability } => {
                let value = if ends { 0.0 } else { probability };
                lanes(link, direction).iter().for_each(|&lane| self.lane_fault(lane).frame_loss = value);
            }
            FaultKind::CrcErrors { link, direction, probability } => {
                let value = if ends { 0.0 } else { probability };
                lanes(link, direction).iter().for_each(|&lane| self.lane_fault(lane).crc_errors = value);
            }
            FaultKind::SlowReceiver { link, end, delay } => {
                self.net.fc.slow_receiver(lane_towards(link, end), if ends { 0 } else { delay.0 });
            }
            FaultKind::VmMove { host, to } if !ends => self.move_machine(host, to, fault.until.is_none()),
            FaultKind::VmMove { host, .. } if fault.until.is_some() => self.resume_machine(host),
            FaultKind::VmStop { host } if !ends => {
                let (hosts, mut env) = self.split_hosts();
                hosts.stop_machine(&mut env, host);
            }
            FaultKind::VmMove { .. } | FaultKind::VmStop { .. } => {}
            FaultKind::DuplicateName { host, of } => self.rename_machine(host, if ends { host } else { of }),
            FaultKind::ForeignAddress { host, of } => {
                let nports = &self.hosts.node(host).nports;
                let others = &self.hosts.node(of).nports;
                let pairs: Vec<_> =
                    nports.iter().zip(others.iter().cycle()).map(|(&own, &other)| (own, other)).collect();
                for (nport, other) in pairs {
                    self.nports.send_as(nport, (!ends).then_some(other));
                }
            }
            FaultKind::DiskFailure { storage, lun, member } => {
                self.storage_fault(storage, |disks, now_ps| disks.set_failed(now_ps, lun, member, !ends));
            }
            FaultKind::LatentError { storage, lun, member, block } if !ends => {
                self.storage_fault(storage, |disks, _| disks.add_latent_error(lun, member, block));
            }
            FaultKind::LatentError { .. } => {}
            FaultKind::PowerFailure { storage } => storage_power(self, storage, ends),
            FaultKind::ControllerFailure { storage, controller } => {
                controllers::fault(self, storage, controller, ends);
            }
            FaultKind::CacheBattery { storage } => {
                self.storage_fault(storage, |disks, now_ps| disks.set_battery(now_ps, ends));
            }
            FaultKind::WithheldCredits { link, end } => self.net.withhold_credits(lane_towards(link, end), !ends),
            FaultKind::OutOfBand(fault) => out_of_band::fault(self, fault, ends),
            FaultKind::Ethernet(fault) => ethernet_faults::apply(self, fault, ends),
            FaultKind::Infiniband(fault) => infiniband_faults::apply(self, fault, ends),
            FaultKind::LostRRdy { link, end, probability } => {
                self.lane_fault(lane_towards(link, end)).r_rdy_loss = if ends { 0.0 } else { probability };
            }
        }
    }

    /// Changes the disks of a storage system.
    fn storage_fault(&mut self, storage: u16, change: impl FnOnce(&mut Disks, u64)) {
        let World { storage: all, net, .. } = self;
        if let Some(disks) = all.systems[usize::from(storage)].controller.disks_mut() {
            change(disks, net.now());
        }
        all.arm_controller(net, storage);
    }

    pub(super) fn lane_fault(&mut self, lane: u32) -> &mut LaneFault {
        let link = &self.lab.links[lane as usize / 2];
        let direction = if lane.is_multiple_of(2) { "forward" } else { "backward" };
        let rng = || stream_rng(self.lab.run.seed, Purpose::FrameLoss, &[&link.name, direction]);
        self.net.fc.fault_mut(lane, rng)
    }

    /// Updates the state of a link. It is up if no fault keeps it down, no operator has disabled a
    /// port at its ends, the Ethernet below a virtual link is whole, and the switches at its ends
    /// are running.
    pub(super) fn update_link(&mut self, link: u16) {
        // A link of the lab that is dark at first has its light from its first change on.
        self.dark_links.remove(&link);
        fip::follow(self, link);
        fcip::follow_switches(self, link);
        update_link_state(self, link);
    }

    /// Brings one link up, with every login over it, for test beds that do so one by one instead of
    /// [`World::log_in`].
    pub fn bring_up(&mut self, link: u16) {
        self.announce_link(link, true);
    }

    /// Reports to both ends of a link that it went up or down.
    pub(super) fn announce_link(&mut self, link: u16, up: bool) {
        let lanes = [2 * u32::from(link), 2 * u32::from(link) + 1];
        let on_loop = self.lab.links[usize::from(link)].loop_end();
        // An FL_Port comes up when its loop is initialised.
        for lane in lanes.into_iter().filter(|_| on_loop.is_none() || !up) {
            if let End::Switch { switch, port } = self.net.fc.lanes()[lane as usize].to {
                let (control, mut env) = self.split_control();
                control.port_changed(&mut env, switch, port, up);
            }
        }
        match on_loop {
            Some(number) => arbitrated_loop::link_changed(self, number, link, up),
            None => {
                for lane in lanes {
                    if let End::NPort(nport) = self.net.fc.lanes()[lane as usize].to {
                        self.port_link(nport, up);
                    }
                }
            }
        }
        self.process_completions();
    }

    /// Stops or restarts a switch. A stopped switch loses its links, buffers and logins.
    fn switch_power(&mut self, switch: u16, up: bool) {
        let lab = self.lab.clone();
        let (control, mut env) = self.split_control();
        if control.switches[usize::from(switch)].up == up {
            return;
        }
        if up {
            control.start(&mut env, &lab, switch);
        } else {
            control.stop(&mut env, &lab, switch);
        }
        for (link, number) in lab.links.iter().zip(0..) {
            if link.ends.iter().any(|end| end.node == Node::Switch(switch)) {
                self.update_link(number);
            }
        }
    }
}

/// As [`World::update_link`], when nothing has changed at the ends of the link.
pub(super) fn update_link_state(world: &mut World, link: u16) {
    let runs = |node: Node| match node {
        Node::Switch(switch) => world.control.switches[usize::from(switch)].up,
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => true,
    };
    let config = &world.lab.links[usize::from(link)];
    let is_disabled = world.control.operator.as_ref().is_some_and(|operator| operator.darkens(config));
    let is_broken = fcip::holds(world, link) || fip::holds(world, link) || world.dark_links.contains(&link);
    let is_held = world.link_faults.is_down(link) || is_disabled || is_broken;
    // An FCIP link outlives a switch at its end until its peer notices.
    let up = !is_held && (fcip::controls(world, link) || config.ends.iter().all(|end| runs(end.node)));
    if up == world.net.fc.link_is_up(link) {
        return;
    }
    if up {
        world.net.link_up(link);
    } else {
        // A port that an operator has disabled, itself or with its switch, and one of a stopped
        // switch, count nothing.
        let operator = world.control.operator.as_ref();
        let sees = |end: &LinkEnd| match end.node {
            Node::Switch(switch) => runs(end.node) && !operator.is_some_and(|own| own.holds(switch, end.port)),
            Node::Host(_) | Node::Storage(_) | Node::Loop(_) => true,
        };
        world.downtimes.link_failed(link, config.ends.each_ref().map(sees));
        world.net.link_down(link);
    }
    let now = world.net.now();
    // The first discovery of a virtual link is part of the first login.
    if world.start_ps > 0 || !up {
        world.notes.add(parts::turn(&world.net), NoteKind::Link { link, up });
    }
    world.downtimes.link_changed(link, up, now);
    world.announce_link(link, up);
}

/// Switches the power of a storage system.
fn storage_power(world: &mut World, storage: u16, on: bool) {
    let lab = world.lab.clone();
    if on {
        world.storage_fault(storage, |disks, _| disks.power_on());
    }
    // The ports of a gateway in the fabric are in the same box.
    let hosts = sanloom_fc::san::hosts_of_gateway(&lab, storage);
    let is_its = |node: Node| match node {
        Node::Host(host) => hosts.contains(&host),
        node => node == Node::Storage(storage),
    };
    for (link, number) in lab.links.iter().zip(0..) {
        if link.ends.iter().any(|end| is_its(end.node)) {
            match on {
                true => world.link_faults.end(number),
                false => world.link_faults.begin(number),
            }
            world.update_link(number);
        }
    }
    ethernet_faults::power(world, storage, on);
    infiniband_faults::power(world, storage, on);
    out_of_band::power(world, storage, on);
    if !on {
        world.storage.power_off(&mut world.net, storage);
        world.process_completions();
    }
}

/// Returns the lines of a direction of a link, on any plane.
pub(super) fn lanes(link: u16, direction: Direction) -> Vec<u32> {
    let first = 2 * u32::from(link);
    match direction {
        Direction::Forward => vec![first],
        Direction::Backward => vec![first + 1],
        Direction::Both => vec![first, first + 1],
    }
}

/// Returns the lane that arrives at an end of a link.
pub(super) fn lane_towards(link: u16, end: u8) -> u32 {
    2 * u32::from(link) + u32::from(end == 0)
}
