//! Server-sent events: [`Hub`] asks the fabric once per second on behalf of all pages.
//!
//! | event | data |
//! |---|---|
//! | `state` | the ports of the switches, when one has changed: an array for each property |
//! | `rates` | frames per second of each port of the last `state`, in the time of the fabric |
//! | `changed` | the names of tables that may have changed |
//! | `log` | new and changed rows of the event log, oldest first, with the time zero of the log |
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
use sanloom_api::view::{EventRow, EventsView, PortRow, Table, View};
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
    log: Log,
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
        page.queue(message("log", &state.log));
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
        if let Some(new) = &seen.log {
            state.log.merge(new);
        }
        if let Some(ports) = &seen.state {
            state.newest = Some(message("state", ports));
        }
        let [rates, down, changed] = [("rates", seen.rates), ("down", seen.down), ("changed", seen.changed)]
            .map(|(kind, value)| value.map(|value| (kind, message(kind, &value))));
        for page in &state.pages {
            if let Some(new) = &seen.log {
                page.queue(message("log", new));
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
    /// New and changed events, or the log of another instance.
    log: Option<Log>,
}

/// Rows of the event log of an instance, oldest first.
#[derive(Clone, Debug, Default, Serialize)]
struct Log {
    /// Identifies the instance ([`EventsView::origin_unix_s`]).
    origin_unix_s: Option<f64>,
    events: VecDeque<EventRow>,
}

impl Log {
    /// Adds new rows, replaces changed ones, and forgets those of a previous instance.
    fn merge(&mut self, new: &Log) {
        if self.origin_unix_s != new.origin_unix_s {
            *self = Log { origin_unix_s: new.origin_unix_s, events: VecDeque::new() };
        }
        if let Some(first) = new.events.front() {
            let kept = self.events.partition_point(|row| row.sequence < first.sequence);
            self.events.truncate(kept);
        }
        self.events.extend(new.events.iter().cloned());
        let surplus = self.events.len().saturating_sub(MAX_EVENTS);
        self.events.drain(..surplus);
    }
}

/// The fabric at the last look.
#[derive(Default)]
struct Watch {
    ports: Vec<PortRow>,
    at: Option<(Instant, f64)>,
    /// Time zero of the event log, which identifies its instance.
    origin_unix_s: Option<f64>,
    /// The last event. It changes when an equal one follows.
    last: Option<EventRow>,
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
        seen.log = self.log(fabric);
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

impl Watch {
    /// Reads the events that are new, and the last one again if it has changed. The log of another
    /// instance is read from its begin.
    fn log(&mut self, fabric: &mut dyn Fabric) -> Option<Log> {
        let mut read = |after| match fabric.ask(Request::Events { after }) {
            Ok(Answer::View(View { table: Table::Events(log), .. })) => Some(log),
            _ => None,
        };
        let after = self.last.as_ref().map_or(0, |row| row.sequence.saturating_sub(1));
        let mut log = read(after)?;
        let is_other = log.origin_unix_s != self.origin_unix_s;
        if is_other {
            if after > 0 {
                log = read(0)?;
            }
            self.last = None;
        }
        let EventsView { mut events, origin_unix_s, .. } = log;
        self.origin_unix_s = origin_unix_s;
        let newest = events.last().cloned();
        events.retain(|row| Some(row) != self.last.as_ref());
        self.last = newest.or_else(|| self.last.take());
        (is_other || !events.is_empty()).then(|| Log { origin_unix_s, events: events.into() })
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
    use crate::Busy;
    use sanloom_api::event_log::{ClientEvent, EventLog};
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

    /// A fabric whose events are those of a log.
    struct Logged(EventLog);

    impl Fabric for Logged {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            let Request::Events { after } = request else { return Err(Busy) };
            let view = self.0.view(after, None, |_| "sw1", |_| 0.0);
            Ok(Answer::View(View::new("lab", 0.0, Table::Events(view))))
        }
    }

    fn instance(unix_s: f64) -> Logged {
        let mut log = EventLog::default();
        log.set_origin(unix_s);
        Logged(log)
    }

    #[test]
    fn the_count_of_an_event_that_repeats_is_read_again_and_replaces_the_row() {
        let mut fabric = instance(1_000.0);
        let (mut watch, mut page) = (Watch::default(), Log::default());
        let failure = |fabric: &mut Logged, user: &str| {
            let [user, address, interface] = [user, "10.0.0.1", "REST"].map(str::to_owned);
            let event = ClientEvent::LoginFailed { user, address, interface };
            fabric.0.client(Default::default(), None, &event);
        };
        let mut look = |fabric: &mut Logged| {
            let new = watch.log(fabric).unwrap_or_default();
            if new.origin_unix_s.is_some() {
                page.merge(&new);
            }
            let rows = |log: &Log| log.events.iter().map(|row| (row.sequence, row.count)).collect::<Vec<_>>();
            (rows(&new), rows(&page))
        };
        assert_eq!(look(&mut fabric), (vec![], vec![]));
        failure(&mut fabric, "eve");
        assert_eq!(look(&mut fabric), (vec![(1, 1)], vec![(1, 1)]));
        assert_eq!(look(&mut fabric), (vec![], vec![(1, 1)]), "nothing is sent twice");
        failure(&mut fabric, "eve");
        failure(&mut fabric, "eve");
        assert_eq!(look(&mut fabric), (vec![(1, 3)], vec![(1, 3)]));
        failure(&mut fabric, "eve");
        failure(&mut fabric, "mallory");
        assert_eq!(look(&mut fabric), (vec![(1, 4), (2, 1)], vec![(1, 4), (2, 1)]));
        // Another instance, with fewer events and with more.
        let mut fabric = instance(2_000.0);
        assert_eq!(look(&mut fabric), (vec![], vec![]), "rows of the previous instance are gone");
        failure(&mut fabric, "trudy");
        assert_eq!(look(&mut fabric), (vec![(1, 1)], vec![(1, 1)]));
        let mut fabric = instance(3_000.0);
        for user in ["a", "b", "c"] {
            failure(&mut fabric, user);
        }
        assert_eq!(look(&mut fabric), (vec![(1, 1), (2, 1), (3, 1)], vec![(1, 1), (2, 1), (3, 1)]));
    }

    #[test]
    fn a_text_cannot_end_a_message() {
        let bytes = message("log", &json!(["a\n\nevent: x"]));
        assert_eq!(bytes, "event: log\ndata: [\"a\\n\\nevent: x\"]\n\n");
    }
}
