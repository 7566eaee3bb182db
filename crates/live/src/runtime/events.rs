//! The event log of an instance: its clock, its table, and the events of management interfaces.

use super::instance::Instance;
use sanloom_api::control::Answer;
use sanloom_api::event_log::{ClientEvent, EventLog};
use sanloom_api::view::{Table, View};
use sanloom_scsi::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// An empty log, whose time of day at the time zero of the machines is the current one.
pub fn log() -> EventLog {
    let mut log = EventLog::default();
    log.set_origin(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
    log
}

/// Returns the events after a sequence number; `on` limits them to a switch, by index in the lab.
pub fn view(instance: &Instance, now: Instant, after: u64, on: Option<u16>) -> View {
    let seconds = |at: Instant| at.as_ns() as f64 / 1e9;
    let switches = &instance.lab.switches;
    let name = |number: u16| switches.get(usize::from(number)).map_or("", |switch| &*switch.name);
    View::new(&instance.lab.name, seconds(now), Table::Events(instance.log.view(after, on, name, seconds)))
}

/// Records an event that a management interface has seen.
pub fn record(instance: &mut Instance, now: Instant, switch: Option<&str>, event: &ClientEvent) -> Answer {
    let number = switch.and_then(|name| instance.fabric.switch_named(name)).map(|here| instance.lab_switches[here]);
    instance.log.client(now, number, event);
    Answer::Done
}
