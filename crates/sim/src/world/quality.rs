//! Quality of service: the priorities of zones, and the quarantine of slow devices.
//!
//! Both set the priorities of the frame path. Zones give them to pairs of addresses when the ports
//! log in. A quarantine gives low priority to every address behind an F_Port whose sender has had
//! frames and no credit for too long. All switches know of it at once; no message carries it.

use super::{NoteKind, World};
use crate::net::{End, NEVER, Net, parts};
use sanloom_fc::config::{Priority, SlowDrain, Zone};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::san::Lab;
use sanloom_wire::FcId;
use std::collections::BTreeMap;

/// Priorities of the zones, and the watched F_Ports.
pub(super) struct Quality {
    /// Zones with another priority than medium, high before low.
    zones: Vec<(Zone, Priority)>,
    /// Ports that are logged in, by N_Port.
    logged_in: BTreeMap<u16, PortIdentity>,
    watched: Vec<Watched>,
}

/// An F_Port whose device may be slow.
struct Watched {
    /// Lane to the device.
    lane: u32,
    /// N_Port at its end.
    plane: u16,
    switch: u16,
    port: u16,
    limits: SlowDrain,
    /// End of the present window.
    next_ps: u64,
    /// Waiting time of the lane at the start of the window.
    waited_ps: u64,
    /// Time since the last slow window, in ps.
    quiet_ps: u64,
    is_slow: bool,
}

impl Quality {
    /// Returns the priorities of a lab. Without virtual channels they have no effect, so nothing is
    /// watched.
    pub fn new(lab: &Lab, net: &Net) -> Quality {
        let has_channels = (0..net.fc.lanes().len() as u32).any(|lane| net.fc.channels(lane).is_some());
        let priority = |zone: &Zone| lab.zone_priorities.get(&zone.name).copied();
        let mut zones: Vec<(Zone, Priority)> = lab
            .zoning
            .zones
            .iter()
            .filter(|_| has_channels)
            .filter_map(|zone| Some((zone.clone(), priority(zone)?)))
            .collect();
        zones.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
        let watched = |(lane, ends): (u32, &crate::net::Lane)| {
            let (End::Switch { switch, port }, End::NPort(plane)) = (ends.from, ends.to) else { return None };
            let limits = lab.switches[usize::from(switch)].quarantine.filter(|_| has_channels)?;
            let (next_ps, waited_ps, quiet_ps, is_slow) = (NEVER, 0, 0, false);
            Some(Watched { lane, plane, switch, port, limits, next_ps, waited_ps, quiet_ps, is_slow })
        };
        Quality { zones, logged_in: BTreeMap::new(), watched: (0..).zip(net.fc.lanes()).filter_map(watched).collect() }
    }

    /// Returns whether zones have priorities that matter, or switches watch their devices.
    pub fn is_used(&self) -> bool {
        !self.zones.is_empty() || !self.watched.is_empty()
    }

    /// Returns the zones of a port.
    fn zones_of(&self, port: &PortIdentity) -> Vec<&(Zone, Priority)> {
        self.zones.iter().filter(|(zone, _)| zone.all_members().any(|member| port.is(member))).collect()
    }

    /// Returns the priority of the frames between two ports. `zones` are those of the first one.
    fn priority(zones: &[&(Zone, Priority)], a: &PortIdentity, b: &PortIdentity) -> Priority {
        let is = |list: &[sanloom_fc::config::ZoneMember], port: &PortIdentity| list.iter().any(|m| port.is(m));
        let joins = |zone: &Zone| {
            if zone.is_peer() {
                let one_way = |a, b| is(&zone.principals, a) && is(&zone.members, b);
                one_way(a, b) || one_way(b, a)
            } else {
                is(&zone.members, a) && is(&zone.members, b)
            }
        };
        zones.iter().find(|(zone, _)| joins(zone)).map_or(Priority::Medium, |(_, priority)| *priority)
    }
}

impl World {
    /// Gives the frames of an N_Port their priorities after its address has changed; `port_id` is
    /// [`FcId::ZERO`] if it has none.
    pub(super) fn set_priorities(&mut self, nport: u16, port_id: FcId) {
        let old = self.quality.logged_in.remove(&nport);
        if let Some(old) = old {
            self.net.fc.priorities.quarantine(old.port_id.to_u32(), false);
            for other in self.quality.logged_in.values() {
                for (s_id, d_id) in [(old.port_id, other.port_id), (other.port_id, old.port_id)] {
                    self.net.fc.priorities.set_pair(s_id.to_u32(), d_id.to_u32(), Priority::Medium);
                }
            }
        }
        if port_id == FcId::ZERO || (self.quality.zones.is_empty() && self.quality.watched.is_empty()) {
            return;
        }
        let plane = self.nports.plane_of(nport);
        let lane = self.net.fc.nport(plane).tx_lane();
        let End::Switch { switch, port } = self.net.fc.lanes()[lane as usize].to else { return };
        let login = &self.nports.node(nport).login;
        let domain = self.lab.switches[usize::from(switch)].domain;
        let identity = PortIdentity { port_id, port_name: login.wwpn(), node_name: login.wwnn(), domain, port };
        let zones = self.quality.zones_of(&identity);
        for other in self.quality.logged_in.values().filter(|_| !zones.is_empty()) {
            let priority = Quality::priority(&zones, &identity, other);
            for (s_id, d_id) in [(port_id, other.port_id), (other.port_id, port_id)] {
                self.net.fc.priorities.set_pair(s_id.to_u32(), d_id.to_u32(), priority);
            }
        }
        self.quality.logged_in.insert(nport, identity);
        if self.quality.watched.iter().any(|watched| watched.plane == plane && watched.is_slow) {
            self.net.fc.priorities.quarantine(port_id.to_u32(), true);
        }
    }

    /// Starts the windows in which slow devices are detected.
    pub(super) fn watch_devices(&mut self) {
        let now = self.net.now();
        for watched in &mut self.quality.watched {
            watched.next_ps = now + watched.limits.window.0;
            watched.waited_ps = self.net.fc.lanes()[watched.lane as usize].credit_wait_ps(now);
        }
        self.expect_windows();
    }

    /// Schedules the end of the next window.
    fn expect_windows(&mut self) {
        if let Some(next_ps) = self.quality.watched.iter().map(|watched| watched.next_ps).min() {
            self.net.set_timer(self.timers.quarantine, next_ps);
        }
    }

    /// Ends the windows that are over, and starts and ends quarantines.
    pub(super) fn end_windows(&mut self) {
        let now = self.net.now();
        let mut changed = Vec::new();
        for watched in self.quality.watched.iter_mut().filter(|watched| watched.next_ps <= now) {
            let waited_ps = self.net.fc.lanes()[watched.lane as usize].credit_wait_ps(now);
            let in_window = waited_ps - watched.waited_ps;
            let window_ps = watched.limits.window.0;
            let limit_ps = u128::from(window_ps) * u128::from(watched.limits.share_permille) / 1_000;
            let is_slow = u128::from(in_window) >= limit_ps;
            watched.waited_ps = waited_ps;
            watched.next_ps = now + window_ps;
            watched.quiet_ps = if is_slow { 0 } else { watched.quiet_ps.saturating_add(window_ps) };
            let starts = is_slow && !watched.is_slow;
            let ends = watched.is_slow && watched.quiet_ps >= watched.limits.recovery.0;
            if starts || ends {
                watched.is_slow = starts;
                changed.push((watched.switch, watched.port, watched.plane, starts));
            }
        }
        for (switch, port, plane, starts) in changed {
            for (&nport, identity) in &self.quality.logged_in {
                if self.nports.plane_of(nport) == plane {
                    self.net.fc.priorities.quarantine(identity.port_id.to_u32(), starts);
                }
            }
            self.notes.add(parts::turn(&self.net), NoteKind::Quarantine { switch, port, starts });
        }
        self.expect_windows();
    }
}
