//! Cooperation of the controllers of a storage system: ownership of LUNs, takeover and failback.

use super::storage::Job;
use crate::iscsi::SESSION;
use crate::srp::CHANNEL;
use sanloom_fc::config::{ControllerAccess, Controllers};
use sanloom_scsi::scsi::IoTag;

/// Several controllers with the same LUNs.
///
/// Each LUN has an own controller. If it fails, the next working one takes over after a time, in
/// which commands wait. When it returns, its LUNs move back after a time, if they do at all.
#[derive(Clone, Debug)]
pub struct Partners {
    config: Controllers,
    /// First N_Port, and the number of ports.
    first_nport: u16,
    ports: usize,
    /// Number of iSCSI portals, which follow the ports.
    portals: u16,
    /// Number of ports of SRP, which follow the portals.
    channels: u16,
    /// Number of faults that keep each controller down.
    faults: Vec<u32>,
    /// State of the LUNs of each controller.
    homes: Vec<Home>,
    /// Number of LUNs.
    units: u16,
    /// Commands that wait until a controller serves their LUN.
    pub(super) held: Vec<Job>,
    counts: Vec<ControllerCount>,
}

/// LUNs with the same own controller.
#[derive(Clone, Copy, Debug)]
enum Home {
    /// This controller serves them.
    At(u8),
    /// No controller serves them before this time in ps.
    Moving(u64),
}

/// Work of a controller since the end of the warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerCount {
    /// Commands that arrived through its ports.
    pub commands: u64,
    /// Commands that it sent to the controllers of their LUNs.
    pub forwarded: u64,
    /// Times that it took over LUNs, including its own.
    pub takeovers: u64,
}

impl Partners {
    /// Returns working controllers, each with its own LUNs. The ports are consecutive N_Ports.
    pub fn new(
        config: &Controllers,
        (first_nport, ports, [portals, channels]): (u16, usize, [u16; 2]),
        luns: usize,
    ) -> Partners {
        let count = usize::from(config.count);
        Partners {
            config: *config,
            first_nport,
            ports,
            portals,
            channels,
            faults: vec![0; count],
            homes: (0..config.count).map(Home::At).collect(),
            units: luns as u16,
            held: Vec::new(),
            counts: vec![ControllerCount::default(); count],
        }
    }

    /// Returns the number of controllers.
    pub fn count(&self) -> usize {
        self.homes.len()
    }

    /// Returns the work of each controller.
    pub fn counts(&self) -> &[ControllerCount] {
        &self.counts
    }

    /// Returns the controller of an N_Port of the system, or of a session.
    pub fn of_port(&self, nport: u16) -> u8 {
        let port = match nport & SESSION {
            0 => nport.wrapping_sub(self.first_nport),
            _ if nport & CHANNEL == CHANNEL => {
                self.ports as u16 + self.portals + (nport & !CHANNEL) % self.channels.max(1)
            }
            // Sessions are numbered portal by portal.
            _ => self.ports as u16 + (nport & !SESSION) % self.portals.max(1),
        };
        self.config.of_port(port, self.ports + usize::from(self.portals + self.channels))
    }

    /// Returns the own controller of a LUN.
    pub fn home_of(&self, unit: u16) -> u8 {
        self.config.of_lun(unit)
    }

    /// Returns whether a controller works.
    pub fn works(&self, number: u8) -> bool {
        self.faults.get(usize::from(number)) == Some(&0)
    }

    /// Returns the controller that serves the LUNs of another one; `None` while they move.
    pub fn owner_of_home(&self, home: u8) -> Option<u8> {
        match self.homes[usize::from(home)] {
            Home::At(owner) => Some(owner),
            Home::Moving(_) => None,
        }
    }

    /// Returns the controller that serves a LUN; `None` while it moves.
    pub(super) fn owner_of(&self, unit: u16) -> Option<u8> {
        self.owner_of_home(self.home_of(unit))
    }

    /// Returns the number of LUNs that a controller serves.
    pub fn units_of(&self, number: u8) -> usize {
        self.units_at(number).count()
    }

    /// Returns whether fewer than two of several controllers work, so that there is no partner for
    /// copies of written data.
    pub(super) fn is_alone(&self) -> bool {
        self.count() > 1 && self.faults.iter().filter(|faults| **faults == 0).count() < 2
    }

    /// Counts a command that arrives through a port. Returns the controller of the port.
    pub(super) fn arrive(&mut self, nport: u16) -> u8 {
        let number = self.of_port(nport);
        self.counts[usize::from(number)].commands += 1;
        number
    }

    /// Returns the time that a command needs to the controller of its LUN, and counts it; `None` if
    /// it is there.
    pub(super) fn forward(&mut self, number: usize, unit: u16) -> Option<u64> {
        if self.config.access == ControllerAccess::Symmetric {
            return None;
        }
        match self.owner_of(unit) {
            Some(owner) if usize::from(owner) == number => None,
            Some(_) => {
                self.counts[number].forwarded += 1;
                Some(self.config.forward.0)
            }
            None => Some(0),
        }
    }

    /// Keeps a command until a controller serves its LUN.
    pub(super) fn hold(&mut self, job: Job) {
        self.held.push(job);
    }

    /// Removes and returns the held commands that arrived through controllers for which `is_lost`
    /// returns true.
    pub(super) fn take_held(&mut self, is_lost: impl Fn(u8) -> bool) -> Vec<Job> {
        let (lost, kept) = std::mem::take(&mut self.held).into_iter().partition(|job| is_lost(self.of_port(job.nport)));
        self.held = kept;
        lost
    }

    /// Removes an aborted command. Returns false if it is not held.
    pub(super) fn cancel(&mut self, nport: u16, tag: IoTag) -> bool {
        let before = self.held.len();
        self.held.retain(|job| (job.nport, job.tag) != (nport, tag));
        self.held.len() < before
    }

    /// A fault stops a controller. Its LUNs begin to move. Returns false if it was down before.
    pub(super) fn down(&mut self, now_ps: u64, number: u8) -> bool {
        let Some(faults) = self.faults.get_mut(usize::from(number)) else { return false };
        *faults += 1;
        if *faults > 1 {
            return false;
        }
        let due_ps = now_ps.saturating_add(self.config.takeover.0);
        for home in &mut self.homes {
            if matches!(home, Home::At(owner) if *owner == number) {
                *home = Home::Moving(due_ps);
            }
        }
        true
    }

    /// A fault of a controller ends. Returns true if it works again. LUNs that waited for any
    /// controller begin to move.
    pub(super) fn up(&mut self, now_ps: u64, number: u8) -> bool {
        let Some(faults) = self.faults.get_mut(usize::from(number)).filter(|faults| **faults > 0) else { return false };
        *faults -= 1;
        if *faults > 0 {
            return false;
        }
        let due_ps = now_ps.saturating_add(self.config.takeover.0);
        for home in &mut self.homes {
            if matches!(home, Home::Moving(at_ps) if *at_ps == u64::MAX) {
                *home = Home::Moving(due_ps);
            }
        }
        true
    }

    /// The LUNs of a controller begin to move back to it. Returns false if it is down or has them.
    pub(super) fn fail_back(&mut self, now_ps: u64, number: u8) -> bool {
        let home = usize::from(number);
        let is_elsewhere = matches!(self.homes.get(home), Some(Home::At(owner)) if *owner != number);
        if !is_elsewhere || !self.works(number) {
            return false;
        }
        self.homes[home] = Home::Moving(now_ps.saturating_add(self.config.takeover.0));
        true
    }

    /// Returns the time at which the next move ends, or `u64::MAX`.
    pub(super) fn next_move_ps(&self) -> u64 {
        let ends = self.homes.iter().filter_map(|home| match home {
            Home::Moving(at_ps) => Some(*at_ps),
            Home::At(_) => None,
        });
        ends.min().unwrap_or(u64::MAX)
    }

    /// Ends the moves that are due by `until_ps`. Returns the controllers whose LUNs have moved.
    /// Without a working controller, they wait for one.
    pub(super) fn end_moves(&mut self, until_ps: u64) -> Vec<u8> {
        let count = self.config.count;
        let mut moved = Vec::new();
        for home in 0..count {
            if !matches!(self.homes[usize::from(home)], Home::Moving(at_ps) if at_ps <= until_ps) {
                continue;
            }
            let owner = (home..home + count).map(|number| number % count).find(|number| self.works(*number));
            self.homes[usize::from(home)] = owner.map_or(Home::Moving(u64::MAX), Home::At);
            if let Some(owner) = owner {
                self.counts[usize::from(owner)].takeovers += 1;
                moved.push(home);
            }
        }
        moved
    }

    /// Returns the LUNs that a controller serves.
    pub(super) fn units_at(&self, number: u8) -> impl Iterator<Item = u16> {
        (0..self.units).filter(move |unit| self.owner_of(*unit) == Some(number))
    }

    /// Restarts the counters.
    pub(super) fn restart(&mut self) {
        self.counts.fill(ControllerCount::default());
    }
}
