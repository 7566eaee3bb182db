//! Requests of an operator to a running world: ports, links and zones. Each takes effect at the
//! current time, as a fault or a change of the lab would. Without an operator, none of this costs
//! anything.

use super::{World, faults};
use crate::net::injection::{Counts, Damage, Rule};
use sanloom_api::control::RequestUser;
use sanloom_api::event_log::EventLog;
use sanloom_api::inject::{Direction, Matcher, RuleRow, RulesView};
use sanloom_api::zone_requests::{StartedChange, SwitchZones, ZoneResult};
use sanloom_fc::config::{FaultKind, Link, LinkEnd, Node};
use sanloom_fc::fabric_switch::{Event, Input};
use sanloom_fc::zoning::server::ChangeFailure;
use sanloom_scsi::time::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// First tag of zone changes by requests. Smaller ones are changes of the lab.
pub const TAGS: u32 = 1 << 16;
/// Maximum number of events that wait to be taken; further ones are dropped.
const MAX_EVENTS: usize = 10_000;

/// State of the requests to a world.
#[derive(Default)]
pub struct Operator {
    zones: Vec<SwitchZones>,
    ended: Vec<ZoneResult>,
    events: Vec<SwitchEvent>,
    /// The event log. Times are those of the machines.
    pub log: EventLog,
    /// Disabled ports: switch and port.
    disabled: BTreeSet<(u16, u16)>,
    /// Disabled switches.
    switches_disabled: BTreeSet<u16>,
    injections: Vec<Injection>,
    next_rule: u32,
    /// Tags of zone changes that have not ended, by switch.
    changes: BTreeSet<(u16, u32)>,
    /// Captures have read the records of watched links since the first of them.
    pub is_captured: bool,
}

/// A fault that is injected into the frames of a port.
#[derive(Debug)]
struct Injection {
    row: RuleRow,
    /// Lanes towards the port and from it.
    lanes: [u32; 2],
    counts: Arc<Counts>,
}

/// An event of a switch.
#[derive(Debug)]
pub struct SwitchEvent {
    /// Time in ps since the first login.
    pub at_ps: u64,
    /// Index of the switch.
    pub switch: u16,
    /// The event.
    pub event: Event,
}

impl Operator {
    /// Returns the transaction and the committed zones of a switch.
    pub fn zones(&self, switch: u16) -> &SwitchZones {
        &self.zones[usize::from(switch)]
    }

    /// Returns the transaction and the committed zones of a switch, to change them.
    pub fn zones_mut(&mut self, switch: u16) -> &mut SwitchZones {
        &mut self.zones[usize::from(switch)]
    }

    /// Returns whether a port of a switch is disabled itself.
    pub fn is_disabled(&self, switch: u16, port: u16) -> bool {
        self.disabled.contains(&(switch, port))
    }

    /// Returns whether a switch is disabled.
    pub fn is_switch_disabled(&self, switch: u16) -> bool {
        self.switches_disabled.contains(&switch)
    }

    /// Returns whether a port of a switch is dark, because it or its switch is disabled.
    pub(super) fn holds(&self, switch: u16, port: u16) -> bool {
        self.is_switch_disabled(switch) || self.is_disabled(switch, port)
    }

    /// Disabled ports: switch and port.
    pub fn disabled(&self) -> &BTreeSet<(u16, u16)> {
        &self.disabled
    }

    /// Returns whether a port at an end of a link, or its switch, is disabled.
    pub(super) fn darkens(&self, link: &Link) -> bool {
        let holds = |end: &LinkEnd| matches!(end.node, Node::Switch(switch) if self.holds(switch, end.port));
        !(self.disabled.is_empty() && self.switches_disabled.is_empty()) && link.ends.iter().any(holds)
    }

    /// Returns the rules of injected faults, with their counts.
    pub fn rules(&self) -> RulesView {
        let row = |one: &Injection| RuleRow {
            injected: one.counts.injected.load(Ordering::Relaxed),
            left: one.row.left.map(|_| one.counts.left.load(Ordering::Relaxed)),
            ..one.row.clone()
        };
        RulesView { rules: self.injections.iter().map(row).collect() }
    }

    /// Takes the zone changes that have ended, with the tags of [`change_zones`] less [`TAGS`].
    pub fn take_ended(&mut self) -> Vec<ZoneResult> {
        std::mem::take(&mut self.ended)
    }

    /// Takes the events of the switches, in the order of time.
    pub fn take_events(&mut self) -> Vec<SwitchEvent> {
        std::mem::take(&mut self.events)
    }

    /// Ends the changes and the transaction of a switch that stops. The memory of both is lost.
    pub(super) fn stopped(&mut self, switch: u16) {
        let tags: Vec<u32> = self.changes.range((switch, 0)..=(switch, u32::MAX)).map(|(_, tag)| *tag).collect();
        for tag in tags {
            self.changes.remove(&(switch, tag));
            self.ended.push(ZoneResult {
                switch: switch.into(),
                tag: tag - TAGS,
                result: Err(vec![ChangeFailure::Restarted]),
            });
        }
        self.zones_mut(switch).lose("the switch has restarted");
    }

    /// Records an event of a switch.
    pub(super) fn event(&mut self, at_ps: u64, switch: u16, event: &Event) {
        match event {
            Event::ZonesChanged { tag, result } if *tag >= TAGS => {
                // A restart has ended the change before.
                let is_open = self.changes.remove(&(switch, *tag));
                let ended = ZoneResult { switch: switch.into(), tag: *tag - TAGS, result: result.clone() };
                self.ended.extend(is_open.then_some(ended));
            }
            event if self.events.len() < MAX_EVENTS => {
                self.events.push(SwitchEvent { at_ps, switch, event: event.clone() });
            }
            _ => {}
        }
    }
}

/// Permits requests to a world. The results of a run without a request do not change.
pub fn permit(world: &mut World) {
    let machines = world.control.switches.iter().map(|node| node.machine.zone_database().clone());
    let zones = machines.map(|database| SwitchZones::new(database, None)).collect();
    let mut log = EventLog::default();
    for ((number, node), config) in (0..).zip(&world.control.switches).zip(&world.lab.switches) {
        log.begin(number, &node.machine, config.ports);
    }
    world.control.operator = Some(Box::new(Operator { zones, log, ..Operator::default() }));
}

/// Returns the state of the requests; `None` if they are not permitted.
pub fn state(world: &World) -> Option<&Operator> {
    world.control.operator.as_deref()
}

/// Returns the state of the requests, to change it; `None` if they are not permitted.
pub fn state_mut(world: &mut World) -> Option<&mut Operator> {
    world.control.operator.as_deref_mut()
}

/// Starts a change of the zones at a switch. [`Operator::take_ended`] returns its end.
pub fn change_zones(world: &mut World, switch: u16, started: StartedChange) {
    let StartedChange { tag, change, checksum, by } = started;
    debug_assert!(tag >= TAGS, "smaller tags are changes of the lab");
    let (control, mut env) = world.split_control();
    if let Some(operator) = &mut control.operator {
        operator.changes.insert((switch, tag));
        operator.log.zone_change(switch, tag, checksum, by);
    }
    control.handle(&mut env, switch, Input::ChangeZones { tag, change });
}

/// Disables or enables a port of a switch. Its link, if it has one, is dark while one of its ports
/// or switches is disabled, and while a fault keeps it down. `by`: the user for the event log.
pub fn set_port(
    world: &mut World,
    link: Option<u16>,
    (switch, port): (u16, u16),
    enabled: bool,
    by: Option<&RequestUser>,
) {
    let at = Instant::from_ns(world.net.now() / 1_000);
    let Some(operator) = &mut world.control.operator else { return };
    let changes = match enabled {
        true => operator.disabled.remove(&(switch, port)),
        false => operator.disabled.insert((switch, port)),
    };
    if !changes {
        return;
    }
    operator.log.port_enabled(at, (switch, port), enabled, by);
    if let Some(link) = link.filter(|link| !awaits_link_up(world, *link)) {
        world.update_link(link);
    }
}

/// Disables or enables a switch. All its links are dark while it is disabled. `by`: the user for
/// the event log.
pub fn set_switch(world: &mut World, switch: u16, enabled: bool, by: Option<&RequestUser>) {
    let at = Instant::from_ns(world.net.now() / 1_000);
    let Some(operator) = &mut world.control.operator else { return };
    let changes = match enabled {
        true => operator.switches_disabled.remove(&switch),
        false => operator.switches_disabled.insert(switch),
    };
    if !changes {
        return;
    }
    operator.log.switch_enabled(at, switch, enabled, by);
    let links = (0..).zip(&world.lab.links);
    let is_own = |link: &Link| link.ends.iter().any(|end| end.node == Node::Switch(switch));
    let own: Vec<u16> = links.filter(|(_, link)| is_own(link)).map(|(number, _)| number).collect();
    for link in own {
        if !awaits_link_up(world, link) {
            world.update_link(link);
        }
    }
}

/// Returns whether a link is dark until a `link-up` of the lab that has not happened yet.
fn awaits_link_up(world: &World, link: u16) -> bool {
    let mut ups =
        world.lab.faults.iter().filter(|fault| matches!(fault.kind, FaultKind::LinkUp { link: of } if of == link));
    world.lab.dark_links().contains(&link) && !ups.any(|fault| world.has_happened(fault.at))
}

/// Injects a fault into the frames of a port at an end of a link. `row` describes the rule; its
/// identifier and its counts are set here.
pub fn inject(world: &mut World, (link, end): (u16, u8), row: RuleRow, matcher: Matcher, damage: Damage) {
    let lanes = [faults::lane_towards(link, end), faults::lane_towards(link, 1 - end)];
    let left = row.left.unwrap_or(u64::MAX);
    let counts = Arc::new(Counts { left: left.into(), ..Counts::default() });
    let Some(operator) = &mut world.control.operator else { return };
    let id = operator.next_rule;
    operator.next_rule = id.wrapping_add(1);
    operator.injections.push(Injection { row: RuleRow { id, ..row }, lanes, counts: counts.clone() });
    let matcher = Arc::new(matcher);
    for (lane, direction) in lanes.into_iter().zip([Direction::In, Direction::Out]) {
        let rule = Rule { id, matcher: matcher.clone(), direction, damage, counts: counts.clone() };
        world.lane_fault(lane).rules.push(rule);
    }
}

/// Removes the rules of a port, or all.
pub fn clear_injections(world: &mut World, port: Option<&str>) {
    let Some(operator) = &mut world.control.operator else { return };
    let removed: Vec<Injection> =
        operator.injections.extract_if(.., |one| port.is_none_or(|port| port == one.row.port)).collect();
    for Injection { row, lanes, .. } in removed {
        lanes.into_iter().for_each(|lane| world.lane_fault(lane).rules.retain(|rule| rule.id != row.id));
    }
}

/// Returns whether a switch runs, that is, it does not restart.
pub fn runs(world: &World, switch: u16) -> bool {
    world.control.switches[usize::from(switch)].up
}

/// Returns the link of a port of a switch, and the number of its end.
pub fn link_of(world: &World, switch: u16, port: u16) -> Option<(u16, u8)> {
    let at = |end: &LinkEnd| end.node == Node::Switch(switch) && end.port == port;
    let end_of = |link: &Link| if at(&link.ends[0]) { Some(0) } else { at(&link.ends[1]).then_some(1) };
    world.lab.links.iter().zip(0..).find_map(|(link, number)| Some((number, end_of(link)?)))
}
