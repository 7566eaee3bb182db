//! Target port groups: through which ports the units are reached how well (SPC-4, 5.15.2: asymmetric logical unit access).
//!
//! All units of a device share the states. A device with one group is as one without: its ports are all active/optimized.

use super::device::Device;
use super::nexus::NexusId;
use super::step::Step;
use super::unit::{answer, check, illegal};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::port_groups::{self, PortGroups, TargetPortGroup, changed, state, supports};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::BTreeMap;
use std::fmt;

/// How a group of ports serves (SPC-4, 5.15.2.4), the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AccessState {
    /// Everything, as well as can be.
    #[default]
    Optimized,
    /// Everything, but another group may be faster.
    NonOptimized,
    /// It changes.
    Transitioning,
    /// Only what needs no medium.
    Standby,
    /// Only what says so.
    Unavailable,
    /// The same, until somebody looks after it.
    Offline,
}

impl AccessState {
    /// All of them, the best first.
    pub const ALL: [AccessState; 6] = [
        AccessState::Optimized,
        AccessState::NonOptimized,
        AccessState::Transitioning,
        AccessState::Standby,
        AccessState::Unavailable,
        AccessState::Offline,
    ];

    /// The code of the wire (see [`state`]).
    pub const fn code(self) -> u8 {
        match self {
            AccessState::Optimized => state::ACTIVE_OPTIMIZED,
            AccessState::NonOptimized => state::ACTIVE_NON_OPTIMIZED,
            AccessState::Transitioning => state::TRANSITIONING,
            AccessState::Standby => state::STANDBY,
            AccessState::Unavailable => state::UNAVAILABLE,
            AccessState::Offline => state::OFFLINE,
        }
    }

    /// The state of a code; a reserved one is as good as none.
    pub fn of_code(code: u8) -> AccessState {
        // Logical block dependent (4): active, better or worse from block to block.
        const BLOCK_DEPENDENT: u8 = 4;
        match code {
            BLOCK_DEPENDENT => AccessState::NonOptimized,
            _ => AccessState::ALL.into_iter().find(|state| state.code() == code).unwrap_or(AccessState::Unavailable),
        }
    }

    /// The medium is served.
    pub const fn is_active(self) -> bool {
        matches!(self, AccessState::Optimized | AccessState::NonOptimized)
    }

    /// What a command gets that is not served in this state (SPC-4, 5.15.2.4).
    const fn refusal(self) -> SenseCode {
        match self {
            AccessState::Transitioning => SenseCode::ALUA_TRANSITION,
            AccessState::Standby => SenseCode::ALUA_STANDBY,
            _ => SenseCode::ALUA_UNAVAILABLE,
        }
    }
}

impl fmt::Display for AccessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(state::name(self.code()).unwrap_or_default())
    }
}

/// A group as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortGroup {
    /// How its ports serve.
    pub state: AccessState,
    /// Better than others of this state.
    pub preferred: bool,
}

/// The groups of a device.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// By number: what it is, and why (see [`changed`]).
    groups: BTreeMap<u16, (PortGroup, u8)>,
    /// Every port serves everything.
    pub(super) all_active: bool,
}

impl Groups {
    pub(super) fn new(numbers: impl Iterator<Item = u16>) -> Groups {
        let groups = numbers.map(|number| (number, (PortGroup::default(), changed::NOT_TOLD))).collect();
        Groups { groups, all_active: true }
    }

    /// States may differ.
    pub(super) fn are_several(&self) -> bool {
        self.groups.len() > 1
    }

    fn set(&mut self, number: u16, group: PortGroup, why: u8) -> bool {
        let Some(old) = self.groups.get_mut(&number) else { return false };
        if old.0 == group {
            return false;
        }
        *old = (group, why);
        self.all_active = self.groups.values().all(|(group, _)| group.state.is_active());
        true
    }
}

impl Device {
    /// The target port groups: number, what each is, and its relative port identifiers.
    pub fn port_groups(&self) -> impl Iterator<Item = (u16, PortGroup, Vec<u16>)> {
        self.groups.groups.iter().map(|(&number, (group, _))| (number, *group, self.ports_of(number)))
    }

    fn ports_of(&self, group: u16) -> Vec<u16> {
        let ports = self.config.ports.iter().zip(1..);
        ports.filter(|(port, _)| port.group == group).map(|(_, relative)| relative).collect()
    }

    /// A group serves in another way from now on. Tasks that have begun go on; everybody is told (unit attention). False: there is
    /// no such group, or only one, which is always active/optimized.
    pub fn set_port_group(&mut self, number: u16, group: PortGroup) -> bool {
        if !self.groups.are_several() || !self.groups.groups.contains_key(&number) {
            return false;
        }
        if self.groups.set(number, group, changed::IMPLICITLY) {
            self.groups_changed(None);
        }
        true
    }

    fn groups_changed(&mut self, by: Option<NexusId>) {
        self.settle();
        for unit in 0..self.units.len() as u16 {
            self.attend_all(unit, by, SenseCode::ALUA_STATE_CHANGED);
        }
    }

    /// The state of the port of a nexus.
    pub(super) fn state_of(&self, nexus: NexusId) -> AccessState {
        let port = self.nexuses.get(nexus).and_then(|nexus| self.config.ports.get(usize::from(nexus.port)));
        let group = port.and_then(|port| self.groups.groups.get(&port.group));
        group.map_or(AccessState::Optimized, |(group, _)| group.state)
    }

    /// Why a command is not served through its port.
    pub(super) fn port_refusal(&self, nexus: NexusId, cdb: &Cdb) -> Option<Sense> {
        if self.groups.all_active {
            return None;
        }
        let state = self.state_of(nexus);
        (!is_served(state, cdb)).then(|| Sense::new(SenseKey::NOT_READY, state.refusal()))
    }

    /// REPORT TARGET PORT GROUPS (SPC-4, 6.37).
    pub(super) fn report_port_groups(&self, extended: bool, allocation_len: u32) -> Step {
        const ALL_STATES: u8 = supports::ACTIVE_OPTIMIZED
            | supports::ACTIVE_NON_OPTIMIZED
            | supports::STANDBY
            | supports::UNAVAILABLE
            | supports::OFFLINE
            | supports::TRANSITIONING;
        let supported = if self.groups.are_several() { ALL_STATES } else { supports::ACTIVE_OPTIMIZED };
        let groups = self.groups.groups.iter().map(|(&number, (group, status))| TargetPortGroup {
            preferred: group.preferred,
            state: group.state.code(),
            supported,
            group: number,
            status: *status,
            ports: self.ports_of(number),
        });
        // A transition here is over when somebody says so.
        let all = PortGroups { transition_seconds: extended.then_some(0), groups: groups.collect() };
        let mut data = Vec::new();
        all.emit(&mut data);
        answer(data, allocation_len)
    }

    /// SET TARGET PORT GROUPS (SPC-4, 6.45): all of the list, or nothing.
    pub(super) fn take_port_groups(&mut self, nexus: NexusId, list: &[u8]) -> Step {
        const HEAD_BYTES: u16 = 4;
        const DESCRIPTOR_BYTES: u16 = 4;
        let Ok(wanted) = port_groups::parse_set(list) else {
            return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
        };
        for (set, at) in wanted.iter().zip(0_u16..) {
            let byte = HEAD_BYTES + at * DESCRIPTOR_BYTES;
            let can_be_set = [state::ACTIVE_OPTIMIZED, state::ACTIVE_NON_OPTIMIZED, state::STANDBY, state::UNAVAILABLE];
            if !can_be_set.contains(&set.state) {
                return check(Sense::invalid_field_in_list(byte));
            }
            if !self.groups.groups.contains_key(&set.group) {
                return check(Sense::invalid_field_in_list(byte + 2));
            }
        }
        let mut any = false;
        for set in wanted {
            let state = AccessState::of_code(set.state);
            let preferred = self.groups.groups.get(&set.group).is_some_and(|(group, _)| group.preferred);
            any |= self.groups.set(set.group, PortGroup { state, preferred }, changed::EXPLICITLY);
        }
        if any {
            self.groups_changed(Some(nexus));
        }
        answer(Vec::new(), 0)
    }
}

/// What a port serves in each state (SPC-4, 5.15.2.4.2 to 5.15.2.4.6).
fn is_served(state: AccessState, cdb: &Cdb) -> bool {
    let tells = matches!(
        cdb,
        Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::ReportTargetPortGroups { .. } | Cdb::RequestSense { .. }
    );
    // Beyond the standard's list READ CAPACITY and what can be supported: initiators ask for the size of every path, and one
    // without a size is of no use to them later.
    let without_medium = matches!(
        cdb,
        Cdb::ModeSense { .. }
            | Cdb::ModeSelect { .. }
            | Cdb::PersistentReserveIn { .. }
            | Cdb::PersistentReserveOut { .. }
            | Cdb::ReadCapacity10
            | Cdb::ReadCapacity16 { .. }
            | Cdb::ReportSupportedOperations { .. }
            | Cdb::ReportSupportedTaskManagement { .. }
    );
    match state {
        AccessState::Optimized | AccessState::NonOptimized => true,
        AccessState::Standby => tells || without_medium || matches!(cdb, Cdb::SetTargetPortGroups { .. }),
        AccessState::Unavailable | AccessState::Offline => tells || matches!(cdb, Cdb::SetTargetPortGroups { .. }),
        AccessState::Transitioning => tells,
    }
}
