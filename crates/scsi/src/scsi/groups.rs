//! Target port groups: access states of the ports (SPC-4, 5.15.2: asymmetric logical unit access).
//!
//! All units of a device share the states. In a device with one group all ports stay
//! active/optimized, as without groups.

use super::device::Device;
use super::nexus::NexusId;
use super::step::Step;
use super::unit::{answer, check, illegal};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::port_groups::{self, PortGroups, TargetPortGroup, changed, state, supports};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::BTreeMap;
use std::fmt;

/// Access state of a port group (SPC-4, 5.15.2.4), the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AccessState {
    /// All commands, at full performance.
    #[default]
    Optimized,
    /// All commands; another group may be faster.
    NonOptimized,
    /// Changing from one state to another.
    Transitioning,
    /// Only commands that require no medium.
    Standby,
    /// Only commands that report state, such as INQUIRY and REPORT TARGET PORT GROUPS.
    Unavailable,
    /// As `Unavailable`, until an administrator intervenes.
    Offline,
}

impl AccessState {
    /// All states, the best first.
    pub const ALL: [AccessState; 6] = [
        AccessState::Optimized,
        AccessState::NonOptimized,
        AccessState::Transitioning,
        AccessState::Standby,
        AccessState::Unavailable,
        AccessState::Offline,
    ];

    /// Code in REPORT TARGET PORT GROUPS (see [`state`]).
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

    /// Returns the state of a code; a reserved code counts as unavailable.
    pub fn of_code(code: u8) -> AccessState {
        // Logical block dependent (4): active, with different performance from block to block.
        const BLOCK_DEPENDENT: u8 = 4;
        match code {
            BLOCK_DEPENDENT => AccessState::NonOptimized,
            _ => AccessState::ALL.into_iter().find(|state| state.code() == code).unwrap_or(AccessState::Unavailable),
        }
    }

    /// Returns whether commands that access the medium are accepted.
    pub const fn is_active(self) -> bool {
        matches!(self, AccessState::Optimized | AccessState::NonOptimized)
    }

    /// Sense code for commands that are not accepted in this state (SPC-4, 5.15.2.4).
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

/// Current state of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortGroup {
    /// Access state of its ports.
    pub state: AccessState,
    /// True if the group is preferred to others in the same state.
    pub preferred: bool,
}

/// Groups of a device.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// By group number: the state, and the reason for its last change (see [`changed`]).
    groups: BTreeMap<u16, (PortGroup, u8)>,
    /// Group of each port of the device.
    members: Vec<u16>,
    /// True if every port accepts all commands.
    all_active: bool,
}

impl Groups {
    /// Creates the groups from the group number of each port.
    pub(super) fn new(members: Vec<u16>) -> Groups {
        let groups = members.iter().map(|&number| (number, (PortGroup::default(), changed::NOT_TOLD))).collect();
        Groups { groups, members, all_active: true }
    }

    /// Returns whether there are several groups, so that their states may differ.
    pub(super) fn are_several(&self) -> bool {
        self.groups.len() > 1
    }

    /// Returns whether every port accepts all commands.
    pub(super) fn are_all_active(&self) -> bool {
        self.all_active
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

    /// Relative identifiers of the ports of a group.
    fn ports_of(&self, group: u16) -> Vec<u16> {
        let ports = self.members.iter().zip(1..);
        ports.filter(|(of, _)| **of == group).map(|(_, relative)| relative).collect()
    }

    /// Access state of a port.
    fn state_of(&self, port: u16) -> AccessState {
        let group = self.members.get(usize::from(port)).and_then(|number| self.groups.get(number));
        group.map_or(AccessState::Optimized, |(group, _)| group.state)
    }

    /// Returns the sense for a command that the access state of its port forbids. A lost nexus has
    /// no port.
    pub(super) fn refusal(&self, port: Option<u16>, cdb: &Cdb) -> Option<Sense> {
        if self.all_active {
            return None;
        }
        let state = port.map_or(AccessState::Optimized, |port| self.state_of(port));
        (!accepts(state, cdb)).then(|| Sense::new(SenseKey::NOT_READY, state.refusal()))
    }

    /// Executes REPORT TARGET PORT GROUPS (SPC-4, 6.37).
    pub(super) fn report(&self, extended: bool, allocation_len: u32) -> Step {
        const ALL_STATES: u8 = supports::ACTIVE_OPTIMIZED
            | supports::ACTIVE_NON_OPTIMIZED
            | supports::STANDBY
            | supports::UNAVAILABLE
            | supports::OFFLINE
            | supports::TRANSITIONING;
        let supported = if self.are_several() { ALL_STATES } else { supports::ACTIVE_OPTIMIZED };
        let groups = self.groups.iter().map(|(&number, (group, status))| TargetPortGroup {
            preferred: group.preferred,
            state: group.state.code(),
            supported,
            group: number,
            status: *status,
            ports: self.ports_of(number),
        });
        // The transition time is 0 (not specified), because a transition ends only by a further
        // change of state.
        let all = PortGroups { transition_seconds: extended.then_some(0), groups: groups.collect() };
        let mut data = Vec::new();
        all.emit(&mut data);
        answer(data, allocation_len)
    }

    /// Applies the list of a SET TARGET PORT GROUPS: the whole list or nothing. Returns whether a
    /// state has changed.
    fn apply(&mut self, list: &[u8]) -> Result<bool, Sense> {
        const HEAD_BYTES: u16 = 4;
        const DESCRIPTOR_BYTES: u16 = 4;
        let list = port_groups::parse_set(list).map_err(|_| illegal(SenseCode::PARAMETER_LIST_LENGTH))?;
        for (set, at) in list.iter().zip(0_u16..) {
            let byte = HEAD_BYTES + at * DESCRIPTOR_BYTES;
            let can_be_set = [state::ACTIVE_OPTIMIZED, state::ACTIVE_NON_OPTIMIZED, state::STANDBY, state::UNAVAILABLE];
            if !can_be_set.contains(&set.state) {
                return Err(Sense::invalid_field_in_list(byte));
            }
            if !self.groups.contains_key(&set.group) {
                return Err(Sense::invalid_field_in_list(byte + 2));
            }
        }
        let mut any = false;
        for set in list {
            let state = AccessState::of_code(set.state);
            let preferred = self.groups.get(&set.group).is_some_and(|(group, _)| group.preferred);
            any |= self.set(set.group, PortGroup { state, preferred }, changed::EXPLICITLY);
        }
        Ok(any)
    }
}

impl Device {
    /// Target port groups: number, state, and relative port identifiers of each.
    pub fn port_groups(&self) -> impl Iterator<Item = (u16, PortGroup, Vec<u16>)> {
        let groups = &self.groups;
        groups.groups.iter().map(|(&number, (group, _))| (number, *group, groups.ports_of(number)))
    }

    /// Changes the state of a group. Tasks in progress continue, and every nexus gets a unit
    /// attention. Returns false if the group does not exist or is the only one, which is always
    /// active/optimized.
    pub fn set_port_group(&mut self, number: u16, group: PortGroup) -> bool {
        if !self.groups.are_several() || !self.groups.groups.contains_key(&number) {
            return false;
        }
        if self.groups.set(number, group, changed::IMPLICITLY) {
            self.on_groups_changed(None);
        }
        true
    }

    /// Executes SET TARGET PORT GROUPS with its list (SPC-4, 6.45).
    pub(super) fn set_port_groups(&mut self, nexus: NexusId, list: &[u8]) -> Step {
        match self.groups.apply(list) {
            Err(sense) => return check(sense),
            Ok(true) => self.on_groups_changed(Some(nexus)),
            Ok(false) => {}
        }
        answer(Vec::new(), 0)
    }

    fn on_groups_changed(&mut self, by: Option<NexusId>) {
        self.update_plain();
        for unit in 0..self.units.len() as u16 {
            self.add_attention_for_all(unit, by, SenseCode::ALUA_STATE_CHANGED);
        }
    }
}

/// Returns whether a port accepts a command in a state (SPC-4, 5.15.2.4.2 to 5.15.2.4.6).
fn accepts(state: AccessState, cdb: &Cdb) -> bool {
    let reports_state = matches!(
        cdb,
        Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::ReportTargetPortGroups { .. } | Cdb::RequestSense { .. }
    );
    // READ CAPACITY and the lists of supported functions are accepted in addition to the standard's
    // list. Initiators query the size on every path, and a path without a size is later useless to
    // them.
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
        AccessState::Standby => reports_state || without_medium || matches!(cdb, Cdb::SetTargetPortGroups { .. }),
        AccessState::Unavailable | AccessState::Offline => {
            reports_state || matches!(cdb, Cdb::SetTargetPortGroups { .. })
        }
        AccessState::Transitioning => reports_state,
    }
}
