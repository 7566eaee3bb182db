//! Discovery of asymmetric access: the target port groups through which a logical unit is reached
//! (SPC-4, 5.15.2).
//!
//! The probe sends its commands on the path in use. Standard INQUIRY reports whether there are
//! access states, VPD page 83 the port and group of this path, and REPORT TARGET PORT GROUPS the
//! state of each group. A port accepts all three in every state.

use super::verdict::{Verdict, verdict};
use super::{Command, Data, End, Reply, cdb};
use crate::scsi::AccessState;
use crate::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::port_groups::{self, PortGroups, SetTargetPortGroup, state};
use sanloom_wire::scsi::vpd::{self, Designator, association, page};
use std::collections::VecDeque;

/// Known access states of the ports of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// True if the device changes states by itself (TPGS, implicit).
    pub implicit: bool,
    /// True if an initiator can set the states (TPGS, explicit).
    pub explicit: bool,
    /// Relative identifier of the port in use; `None` if the device has not reported it.
    pub port: Option<u16>,
    /// Target port group of that port; `None` if the device has not reported it.
    pub group: Option<u16>,
    /// All groups. If empty, all paths are equally good.
    pub groups: Vec<AccessGroup>,
    /// Maximum duration of a transition; `None` if the device has not reported it.
    pub transition: Option<Span>,
}

/// Target port group as reported by the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessGroup {
    /// Number of the group.
    pub number: u16,
    /// Access state of its ports.
    pub state: AccessState,
    /// True if the device prefers this group (PREF).
    pub preferred: bool,
    /// Relative identifiers of its ports.
    pub ports: Vec<u16>,
}

/// Event for an [`AccessProbe`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessInput {
    /// There is a new path that was not probed yet.
    PathUp,
    /// The path is lost.
    PathDown,
    /// States may have changed: probe again.
    Probe,
    /// Set this group to active/optimized, then probe again.
    Set(u16),
    /// A command of the probe has ended.
    Reply(Reply),
    /// The deadline of [`AccessProbe::poll_timeout`] has passed.
    Timeout,
}

/// Action or result of an [`AccessProbe`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessOutput {
    /// Send a command, then pass [`AccessInput::Reply`].
    Command(Command),
    /// Access states of the unit, reported at the end of each probe.
    Probed(Access),
}

/// Command of the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Inquiry,
    Identification,
    Groups { extended: bool },
    Set,
}

/// Probe of the access states of one unit.
#[derive(Debug, Default)]
pub struct AccessProbe {
    up: bool,
    /// Number and step of the command in flight.
    open: Option<(u64, Step)>,
    /// Step to be repeated, and its time.
    later: Option<(Instant, Step)>,
    /// True if another probe follows the command in flight.
    again: bool,
    set: Option<u16>,
    /// True if the extended header must not be requested.
    short: bool,
    quick_tries: u8,
    found: Access,
    next_id: u64,
    outputs: VecDeque<AccessOutput>,
}

const INQUIRY_BYTES: u16 = 96;
const PAGE_BYTES: u16 = 1024;
/// Allocation length in bytes, enough for some thousand groups or ports.
const GROUPS_BYTES: u32 = 16 << 10;
const QUICK_TRIES: u8 = 8;
const RETRY: Span = Span::from_ms(500);
/// Designator types of VPD page 83.
const RELATIVE_PORT: u8 = 4;
const PORT_GROUP: u8 = 5;

impl AccessProbe {
    /// Creates a probe without a path.
    pub fn new() -> AccessProbe {
        AccessProbe::default()
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: AccessInput) {
        match input {
            AccessInput::PathUp => {
                *self = AccessProbe { up: true, next_id: self.next_id, ..AccessProbe::default() };
            }
            AccessInput::PathDown => {
                *self = AccessProbe { next_id: self.next_id, ..AccessProbe::default() };
            }
            AccessInput::Probe => self.probe_again(),
            AccessInput::Set(group) => {
                self.set = Some(group);
                self.probe_again();
            }
            AccessInput::Reply(reply) => {
                if let Some((_, step)) = self.open.take_if(|(id, _)| *id == reply.id) {
                    self.on_end(now, step, &reply.end);
                }
            }
            AccessInput::Timeout => {
                if let Some((_, step)) = self.later.take_if(|(at, _)| *at <= now) {
                    self.quick_tries = 0;
                    self.send(step);
                }
            }
        }
    }

    /// Returns the next action or result.
    pub fn poll_output(&mut self) -> Option<AccessOutput> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`AccessInput::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.later.map(|(at, _)| at)
    }

    /// Requests the states again, now or after the command in flight.
    fn probe_again(&mut self) {
        if self.open.is_some() || self.later.is_some() {
            self.again = true;
        } else if self.up {
            self.next_round();
        }
    }

    fn next_round(&mut self) {
        self.quick_tries = 0;
        self.send(match self.set {
            Some(_) if self.found.explicit => Step::Set,
            // The identity of a path is constant, so it is read again only if the group is still
            // unknown.
            _ if self.found.group.is_some() => Step::Groups { extended: !self.short },
            _ => Step::Inquiry,
        });
    }

    fn send(&mut self, step: Step) {
        if !self.up {
            return;
        }
        let (cdb, data) = match step {
            Step::Inquiry => (cdb::inquiry(None, INQUIRY_BYTES), Data::In { max_bytes: INQUIRY_BYTES.into() }),
            Step::Identification => {
                (cdb::inquiry(Some(page::IDENTIFICATION), PAGE_BYTES), Data::In { max_bytes: PAGE_BYTES.into() })
            }
            Step::Groups { extended } => {
                let cdb = Cdb::ReportTargetPortGroups { extended, allocation_len: GROUPS_BYTES };
                (cdb.to_bytes(), Data::In { max_bytes: GROUPS_BYTES })
            }
            Step::Set => {
                let set = self.set.map(|group| SetTargetPortGroup { state: state::ACTIVE_OPTIMIZED, group });
                let mut list = Vec::new();
                port_groups::emit_set(set.as_slice(), &mut list);
                let cdb = Cdb::SetTargetPortGroups { list_len: list.len() as u32 };
                (cdb.to_bytes(), Data::Out(list.into()))
            }
        };
        let id = self.next_id;
        self.next_id += 1;
        self.open = Some((id, step));
        self.outputs.push_back(AccessOutput::Command(Command { id, cdb, data }));
    }

    fn on_end(&mut self, now: Instant, step: Step, end: &End) {
        let data = match end {
            End::Status { data, .. } => &data[..],
            _ => &[],
        };
        match (verdict(end), step) {
            (Verdict::PathGone, _) => {}
            (Verdict::UnitAttention(_), _) if self.quick_tries < QUICK_TRIES => {
                self.quick_tries += 1;
                self.send(step);
            }
            // The states that are read next show whether the command had an effect.
            (_, Step::Set) => {
                self.set = None;
                self.send(Step::Groups { extended: !self.short });
            }
            (Verdict::Good, Step::Inquiry) => self.on_inquiry(data),
            (Verdict::Good, Step::Identification) => {
                self.on_identification(data);
                self.send(Step::Groups { extended: true });
            }
            (Verdict::Good, Step::Groups { extended }) => match PortGroups::parse(data) {
                Ok(groups) => self.on_groups(groups),
                Err(_) if extended => self.request_short(),
                Err(_) => self.finish(Vec::new()),
            },
            (Verdict::Fail(_), Step::Groups { extended: true }) => self.request_short(),
            (Verdict::Fail(_), _) => self.finish(Vec::new()),
            _ => self.later = Some((now + RETRY, step)),
        }
    }

    /// Requests the short header. Older devices support only that one, and the target of Linux
    /// omits the longer header from the length field.
    fn request_short(&mut self) {
        self.short = true;
        self.send(Step::Groups { extended: false });
    }

    fn on_inquiry(&mut self, data: &[u8]) {
        let groups = StandardInquiry::parse(data).map_or(0, |inquiry| inquiry.port_groups);
        (self.found.implicit, self.found.explicit) = (groups & 1 != 0, groups & 2 != 0);
        match groups {
            0 => self.finish(Vec::new()),
            _ => self.send(Step::Identification),
        }
    }

    fn on_identification(&mut self, data: &[u8]) {
        // A page longer than the allocation length is truncated; parsing ends at its last complete
        // designator.
        let mut body = match vpd::parse(data) {
            Ok((_, body)) => body,
            Err(_) => data.get(4..).unwrap_or_default(),
        };
        while let Ok((designator, rest)) = Designator::parse(body) {
            body = rest;
            let number = match &designator.bytes[..] {
                [_, _, high, low] => u16::from_be_bytes([*high, *low]),
                _ => continue,
            };
            match (designator.association, designator.kind) {
                (association::PORT, RELATIVE_PORT) => self.found.port = Some(number),
                (association::PORT, PORT_GROUP) => self.found.group = Some(number),
                _ => {}
            }
        }
    }

    fn on_groups(&mut self, PortGroups { transition_seconds, groups }: PortGroups) {
        let transition_seconds = transition_seconds.filter(|seconds| *seconds > 0);
        self.found.transition = transition_seconds.map(|seconds| Span::from_secs(seconds.into()));
        let group = |one: port_groups::TargetPortGroup| AccessGroup {
            number: one.group,
            state: AccessState::of_code(one.state),
            preferred: one.preferred,
            ports: one.ports,
        };
        self.finish(groups.into_iter().map(group).collect());
    }

    /// Completes the probe and outputs its result.
    fn finish(&mut self, groups: Vec<AccessGroup>) {
        self.found.groups = groups;
        self.outputs.push_back(AccessOutput::Probed(self.found.clone()));
        if std::mem::take(&mut self.again) {
            self.next_round();
        }
    }
}

impl Access {
    /// Returns the reported state of a group.
    pub fn of_group(&self, number: u16) -> Option<&AccessGroup> {
        self.groups.iter().find(|group| group.number == number)
    }
}
