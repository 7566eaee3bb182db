//! Server-sent events: [`Hub`] asks the fabric once per second on behalf of all pages.
//!
//! | event | data |
//! |---|---|
//! | `state` | the ports of the switches, when one has changed: an array for each property |
//! | `rates` | frames per second of each port of the last `state`, in the time of the fabric |
//! | `changed` | the names of tables that may have changed |
//! | `log` | rows of the event log of the fabric, oldest first |
//! | `down` | the fabric does not answer |
//! | `finished` | the run has ended, and its results can be loaded |

use super::Connect;
use crate::Fabric;
use crate::server::Bytes;
use crate::server::stream::{Feed, Writer, pair};
use crate::server::threads;
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::event_log;
use sanloom_api::view::build::Which;
use sanloom_api::view::{EventRow, PortRow, Table, View};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of the requests to the fabric.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of open pages.
const MAX_PAGES: usize = 256;
/// Number of events that a new page receives: all that the log of the fabric holds.
const MAX_EVENTS: usize = event_log::MAX_EVENTS;

/// Distributor of events to the pages.
pub struct Hub {
    state: Mutex<State>,
    /// Notified when a page is opened, a request may have changed the fabric, or the hub ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pages: Vec<Writer>,
    /// The last `state`, for a new page.
    newest: Option<Bytes>,
    /// The event log of the fabric.
    events: VecDeque<EventRow>,
    woken: bool,
    ended: bool,
}

impl Hub {
    /// Starts the thread of the hub.
    ///
    /// # Errors
    /// The limit of threads is reached.
    pub fn start(connect: Connect) -> io::Result<Arc<Hub>> {
        let hub = Arc::new(Hub { state: Mutex::default(), changed: Condvar::new() });
        let own = hub.clone();
        threads::spawn("surface-events", move || own.run(&connect))?;
        Ok(hub)
    }

    /// Ends the thread and all streams.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.pages.clear();
        self.changed.notify_all();
    }

    /// Informs all pages that the run has ended.
    pub fn finish(&self) {
        for page in &self.lock().pages {
            page.queue(message("finished", &json!({})));
        }
    }

    /// Asks the fabric soon, because a request may have changed it.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    /// Adds a page. Returns `None` if there are too many.
    pub fn subscribe(&self) -> Option<Feed> {
        let mut state = self.lock();
        state.pages.retain(|page| !page.is_abandoned());
        if state.pages.len() >= MAX_PAGES || state.ended {
            return None;
        }
        let (page, feed) = pair();
        page.queue(Bytes::from_static(b"retry: 1000\n\n"));
        page.queue(message("log", &state.events));
        if let Some(newest) = &state.newest {
            page.latest("state", newest.clone());
        }
        state.pages.push(page);
        self.changed.notify_all();
        Some(feed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, connect: &Connect) {
        let mut fabric = connect();
        let mut watch = Watch::default();
        loop {
            let mut state = self.lock();
            while state.pages.is_empty() && !state.ended {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.ended {
                return;
            }
            state.woken = false;
            drop(state);
            let seen = watch.look(&mut *fabric);
            self.publish(seen);
            let state = self.lock();
            let idle = |state: &mut State| !state.woken && !state.ended;
            let (state, _) =
                self.changed.wait_timeout_while(state, INTERVAL, idle).unwrap_or_else(PoisonError::into_inner);
            let (woken, ended) = (state.woken, state.ended);
            drop(state);
            if woken && !ended {
                // The change takes effect a moment after its answer, and a burst is one change.
                thread::sleep(INTERVAL / 10);
            }
        }
    }

    fn publish(&self, seen: Seen) {
        let mut state = self.lock();
        state.pages.retain(|page| !page.is_abandoned());
        let new = seen.events;
        state.events.extend(new.iter().cloned());
        while state.events.len() > MAX_EVENTS {
            state.events.pop_front();
        }
        if let Some(ports) = &seen.state {
            state.newest = Some(message("state", ports));
        }
        let [rates, down, changed] = [("rates", seen.rates), ("down", seen.down), ("changed", seen.changed)]
            .map(|(kind, value)| value.map(|value| (kind, message(kind, &value))));
        for page in &state.pages {
            if !new.is_empty() {
                page.queue(message("log", &new));
            }
            if let (Some(_), Some(newest)) = (&seen.state, &state.newest) {
                page.latest("state", newest.clone());
            }
            for (kind, bytes) in [&rates, &down, &changed].into_iter().flatten() {
                page.latest(kind, bytes.clone());
            }
        }
    }
}

/// JSON never contains a line feed outside of a text, where it is escaped.
fn message(kind: &str, value: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(value).unwrap_or_default();
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}

/// Changes since the last look.
#[derive(Default)]
struct Seen {
    state: Option<Value>,
    rates: Option<Value>,
    changed: Option<Value>,
    down: Option<Value>,
    /// Events since the last look.
    events: Vec<EventRow>,
}

/// The fabric at the last look.
#[derive(Default)]
struct Watch {
    ports: Vec<PortRow>,
    at: Option<(Instant, f64)>,
    /// Sequence number of the last event.
    last: u64,
    /// Tables whose rows are compared.
    tables: BTreeMap<&'static str, Value>,
}

impl Watch {
    fn look(&mut self, fabric: &mut dyn Fabric) -> Seen {
        let mut seen = Seen::default();
        let show = |which| Request::Show { table: ShowTable::Fabric(which), switch: None };
        let Ok(Answer::View(View { table: Table::Ports(view), at_s, .. })) = fabric.ask(show(Which::Ports)) else {
            seen.down = Some(json!({}));
            return seen;
        };
        if let Ok(Answer::View(View { table: Table::Events(log), .. })) =
            fabric.ask(Request::Events { after: self.last })
        {
            self.last = log.events.last().map_or(self.last, |row| row.sequence);
            seen.events = log.events;
        }
        let now = Instant::now();
        // Rates are those of the fabric, whose time may be virtual.
        let since = self.at.replace((now, at_s)).map(|(at, before_s)| match at_s - before_s {
            passed_s if passed_s > 0.0 => Duration::try_from_secs_f64(passed_s).unwrap_or(now - at),
            _ => now - at,
        });
        let same = self.ports.len() == view.ports.len()
            && self.ports.iter().zip(&view.ports).all(|(old, new)| old.port == new.port && !differs(old, new));
        if let Some(since) = since {
            let old = std::mem::take(&mut self.ports);
            seen.rates = Some(rates(&old, &view.ports, since, at_s));
        }
        if since.is_none() || !same {
            seen.state = Some(columns(&view.ports, at_s));
        }
        self.ports = view.ports;
        let mut changed = Vec::new();
        for (name, which) in [("switch", Which::Switch), ("zone", Which::Zone), ("fabric", Which::Fabric)] {
            let Ok(Answer::View(View { table, .. })) = fabric.ask(show(which)) else { continue };
            let rows = quiet(&table);
            if self.tables.get(name).is_some_and(|old| *old != rows) {
                changed.push(name);
            }
            self.tables.insert(name, rows);
        }
        if !changed.is_empty() {
            seen.changed = Some(json!(changed));
        }
        seen
    }
}

/// A table without counters that change all the time.
fn quiet(table: &Table) -> Value {
    let mut value = serde_json::to_value(table).unwrap_or_default();
    for row in value.get_mut("switches").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(row) = row.as_object_mut() {
            for counter in ["requests_accepted", "requests_rejected", "logins_rejected", "rscns_sent"] {
                row.remove(counter);
            }
        }
    }
    value
}

/// True if the state of a port differs; counters and credits do not matter.
fn differs(old: &PortRow, new: &PortRow) -> bool {
    (old.mode, old.light, old.dark, old.blocked, old.logins) != (new.mode, new.light, new.dark, new.blocked, new.logins)
        || (&old.isolated, &old.attached, &old.link) != (&new.isolated, &new.attached, &new.link)
}

fn columns(ports: &[PortRow], at_s: f64) -> Value {
    json!({
        "at_s": at_s,
        "port": ports.iter().map(|row| &row.port).collect::<Vec<_>>(),
        "link": ports.iter().map(|row| &row.link).collect::<Vec<_>>(),
        "mode": ports.iter().map(|row| row.mode).collect::<Vec<_>>(),
        "light": ports.iter().map(|row| row.light).collect::<Vec<_>>(),
        "dark": ports.iter().map(|row| row.dark).collect::<Vec<_>>(),
        "isolated": ports.iter().map(|row| &row.isolated).collect::<Vec<_>>(),
        "blocked": ports.iter().map(|row| row.blocked).collect::<Vec<_>>(),
        "attached": ports.iter().map(|row| &row.attached).collect::<Vec<_>>(),
        "logins": ports.iter().map(|row| row.logins).collect::<Vec<_>>(),
        "rate": ports.iter().map(|row| &row.rate).collect::<Vec<_>>(),
    })
}

fn rates(old: &[PortRow], new: &[PortRow], since: Duration, at_s: f64) -> Value {
    let seconds = since.as_secs_f64().max(1e-9);
    let rate = |counter: fn(&PortRow) -> u64| -> Vec<u64> {
        let same =
            |at: usize, row: &PortRow| old.get(at).filter(|old| old.port == row.port).map_or(counter(row), counter);
        let pairs = new.iter().enumerate().map(|(at, row)| counter(row).saturating_sub(same(at, row)));
        pairs.map(|frames| (frames as f64 / seconds).round() as u64).collect()
    };
    let discards = |row: &PortRow| row.discards.values().sum();
    json!({
        "at_s": at_s,
        "sent": rate(|row| row.frames_sent),
        "received": rate(|row| row.frames_received),
        "discarded": rate(discards),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_api::view::{Dark, PortMode};

    fn row(port: &str, frames: u64) -> PortRow {
        PortRow { port: port.to_owned(), mode: PortMode::F, light: true, frames_sent: frames, ..PortRow::default() }
    }

    #[test]
    fn counters_are_no_change_of_a_port_and_a_pulled_link_is_one() {
        let [old, mut new] = [row("sw1:1", 5), row("sw1:1", 900)];
        assert!(!differs(&old, &new));
        new.light = false;
        new.dark = Some(Dark::NoPeer);
        assert!(differs(&old, &new));
    }

    #[test]
    fn rates_are_differences_per_second_of_the_same_port() {
        let old = [row("a", 100), row("b", 100)];
        let new = [row("a", 300), row("c", 700)];
        let value = rates(&old, &new, Duration::from_secs(2), 1.0);
        assert_eq!(value["sent"], json!([100, 0]));
    }

    #[test]
    fn a_text_cannot_end_a_message() {
        let bytes = message("log", &json!(["a\n\nevent: x"]));
        assert_eq!(bytes, "event: log\ndata: [\"a\\n\\nevent: x\"]\n\n");
    }
}
