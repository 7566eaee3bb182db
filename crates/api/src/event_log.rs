//! The event log of an instance: [`EventLog`].
//!
//! A driver passes the outputs of its switches and the requests of its operators. Surfaces read the
//! rows as [`EventsView`], a table like the others. Identifiers of messages have the form of Fabric
//! OS; their numbers are those of sanloom, apart from `FABR-1001`, `ZONE-1022` and `SEC-1193`.

use crate::control::RequestUser;
use crate::view::{EventRow, EventsView, Severity};
use sanloom_fc::fabric::{FibDelta, PortMode};
use sanloom_fc::fabric_switch::{Event, FabricSwitch, Output};
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ChangeFailure;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of events in the log. The oldest leaves when a further one comes.
pub const MAX_EVENTS: usize = 2_048;
/// Maximum length of a name that a client sends, in characters.
const MAX_NAME: usize = 64;

/// Declares the kinds of events with identifier, severity, and whether they are actions of users.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $id:literal, $severity:ident, $audit:literal;)+) => {
        /// Kind of an event.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// Identifier of the message, severity, and whether the audit log has it.
            pub fn message(self) -> (&'static str, Severity, bool) {
                match self {
                    $(Kind::$kind => ($id, Severity::$severity, $audit),)+
                }
            }
        }
    };
}

kinds! {
    /// The link of a port came up.
    LinkUp => "PORT-1001", Info, false;
    /// The link of a port went down.
    LinkDown => "PORT-1002", Warning, false;
    /// An operator has enabled a port.
    PortEnabled => "PORT-1003", Info, true;
    /// An operator has disabled a port.
    PortDisabled => "PORT-1004", Info, true;
    /// An N_Port has logged in.
    Login => "NS-1001", Info, false;
    /// An N_Port has logged out, or its link went down.
    Logout => "NS-1002", Info, false;
    /// A port was isolated from its neighbour (segmentation).
    Segmented => "FABR-1001", Warning, false;
    /// A link to another switch carries traffic.
    IslUp => "FABR-1002", Info, false;
    /// A link to another switch no longer carries traffic.
    IslDown => "FABR-1003", Warning, false;
    /// The principal switch has changed.
    Principal => "FABR-1004", Info, false;
    /// The switch has a domain.
    Domain => "FABR-1005", Info, false;
    /// The switch has lost its domain.
    NoDomain => "FABR-1006", Error, false;
    /// A link is up, and carries no HLO.
    AdjacencyLost => "FSPF-1001", Warning, false;
    /// A link carries HLOs again.
    AdjacencyRestored => "FSPF-1002", Info, false;
    /// The effective configuration has changed. Only the switch at which a user has committed the
    /// change audits it.
    ZonesChanged => "ZONE-1022", Info, false;
    /// The definitions of zones have changed, and the effective configuration has not. Audited as
    /// `ZonesChanged`.
    ZonesSaved => "ZONE-1024", Info, false;
    /// A change of the zones has failed, and has changed nothing.
    ZonesFailed => "ZONE-1001", Warning, true;
    /// A user has enabled a switch.
    SwitchEnabled => "SWCH-1001", Info, true;
    /// A user has disabled a switch.
    SwitchDisabled => "SWCH-1002", Info, true;
    /// A switch has started again.
    SwitchStarted => "SWCH-1003", Info, false;
    /// A switch has stopped.
    SwitchStopped => "SWCH-1004", Critical, false;
    /// A login at a management interface was refused.
    LoginFailed => "SEC-1193", Warning, true;
}

/// An event that a management interface has seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ClientEvent {
    /// A login was refused.
    LoginFailed {
        /// Name of the user, as the client has sent it.
        user: String,
        /// Address of the client.
        address: String,
        /// Interface, for example `REST`.
        interface: String,
    },
}

/// An event in the log.
#[derive(Clone, Debug)]
struct Entry {
    sequence: u64,
    at: Instant,
    kind: Kind,
    /// Index of the switch in the lab.
    switch: Option<u16>,
    port: Option<u16>,
    user: String,
    text: String,
    /// The audit log has the event.
    audit: bool,
    count: u64,
}

/// A change of the zones by a user, which has not ended.
#[derive(Clone, Debug)]
struct ZonesPending {
    /// Checksum of the database after the change, as far as known at its begin.
    checksum: u128,
    by: Option<RequestUser>,
    /// The event of the change has its user.
    is_audited: bool,
    /// Sequence number of the last change of the zones since its begin.
    last: Option<u64>,
}

/// The last events of an instance, in a ring of [`MAX_EVENTS`].
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    ring: VecDeque<Entry>,
    last: u64,
    /// Events since the start, by severity.
    totals: [u64; Severity::ALL.len()],
    /// Time of day in seconds since 1970 at the time zero of the machines.
    origin_unix_s: Option<f64>,
    /// Changes of the zones by users, by switch and tag.
    zone_changes: BTreeMap<(u16, u32), ZonesPending>,
    /// Ports with a link: switch and port.
    up: BTreeSet<(u16, u16)>,
    /// Ports and names of the N_Port_IDs that are logged in.
    logins: BTreeMap<(u16, FcId), (u16, Option<Wwpn>)>,
}

/// Place and text of a new event.
#[derive(Clone, Debug, Default)]
struct New {
    switch: Option<u16>,
    port: Option<u16>,
    user: String,
    text: String,
}

impl EventLog {
    /// Sets the time of day in seconds since 1970 at the time zero of the machines.
    pub fn set_origin(&mut self, unix_s: f64) {
        self.origin_unix_s = Some(unix_s);
    }

    /// Notes the ports with a link and the logins of a switch that was there before the log, so
    /// that their end is an event. `ports`: number of ports of the switch.
    pub fn begin(&mut self, number: u16, machine: &FabricSwitch, ports: u16) {
        let with_link = (0..ports).filter(|port| machine.port_mode(*port) != PortMode::Down);
        self.up.extend(with_link.map(|port| (number, port)));
        let logins = machine.logins().map(|(id, port)| ((number, id), (port, machine.services().port_name_of(id))));
        self.logins.extend(logins);
    }

    /// Number of events since the start, by severity.
    pub fn totals(&self) -> impl Iterator<Item = (Severity, u64)> + '_ {
        Severity::ALL.into_iter().zip(self.totals)
    }

    fn add(&mut self, at: Instant, kind: Kind, new: New) {
        let New { switch, port, user, text } = new;
        let (_, severity, audit) = kind.message();
        let at_severity = Severity::ALL.into_iter().position(|of| of == severity).unwrap_or_default();
        self.totals[at_severity] += 1;
        if let Some(entry) = self.ring.back_mut()
            && (entry.kind, entry.switch, entry.port) == (kind, switch, port)
            && (&entry.user, &entry.text, entry.audit) == (&user, &text, audit)
        {
            (entry.at, entry.count) = (at, entry.count + 1);
            return;
        }
        if self.ring.len() >= MAX_EVENTS {
            self.ring.pop_front();
        }
        self.last += 1;
        self.ring.push_back(Entry { sequence: self.last, at, kind, switch, port, user, text, audit, count: 1 });
    }

    /// Records an output of a switch. `number`: index of the switch in the lab. Outputs that are no
    /// event for an administrator are ignored.
    pub fn output(&mut self, at: Instant, number: u16, machine: &FabricSwitch, output: &Output) {
        match output {
            Output::Fib(FibDelta::PortMode { port, mode }) => self.port_mode(at, (number, *port), *mode),
            Output::Fib(FibDelta::OwnId { port, id }) => self.login(at, (number, *port), *id, machine),
            Output::Fib(FibDelta::RemoveId { id }) => self.logout(at, number, *id),
            Output::Zones { database, effective } => self.zones(at, number, database, *effective),
            Output::Event(event) => self.event(at, number, event),
            Output::Send { .. } | Output::Fib(_) | Output::Persist { .. } => {}
        }
    }

    /// Records a change of the zones at a switch. The change of a user there is audited.
    /// `effective`: the enforced zoning has changed, not only the definitions.
    fn zones(&mut self, at: Instant, switch: u16, database: &ZoneDatabase, effective: bool) {
        let name = database.effective.as_ref().map_or("none", |effective| &effective.name);
        let (kind, text) = match effective {
            true => (Kind::ZonesChanged, format!("The effective configuration has changed to {name}.")),
            false => (Kind::ZonesSaved, "The defined configuration was saved.".to_owned()),
        };
        self.add(at, kind, New { switch: Some(switch), text, ..New::default() });
        let mut own = None;
        let checksum = self.zone_changes.range((switch, 0)..=(switch, u32::MAX)).next().map(|_| database.checksum());
        for pending in self.zone_changes.range_mut((switch, 0)..=(switch, u32::MAX)).map(|(_, pending)| pending) {
            pending.last = Some(self.last);
            if !pending.is_audited && own.is_none() && checksum == Some(pending.checksum) {
                pending.is_audited = true;
                own = Some(pending.by.clone());
            }
        }
        if let Some(by) = own {
            self.audit_zones(self.last, by.as_ref());
        }
    }

    fn port_mode(&mut self, at: Instant, (switch, port): (u16, u16), mode: PortMode) {
        let is_up = mode != PortMode::Down;
        let changes = match is_up {
            true => self.up.insert((switch, port)),
            false => self.up.remove(&(switch, port)),
        };
        if changes {
            let (kind, word) = if is_up { (Kind::LinkUp, "up") } else { (Kind::LinkDown, "down") };
            let text = format!("The link of port {port} is {word}.");
            self.add(at, kind, New { switch: Some(switch), port: Some(port), text, ..New::default() });
        }
    }

    fn login(&mut self, at: Instant, (switch, port): (u16, u16), id: FcId, machine: &FabricSwitch) {
        let name = machine.services().port_name_of(id);
        if self.logins.insert((switch, id), (port, name)).is_some() {
            return;
        }
        let text = format!("{}{id} has logged in at port {port}.", named(name));
        self.add(at, Kind::Login, New { switch: Some(switch), port: Some(port), text, ..New::default() });
    }

    fn logout(&mut self, at: Instant, switch: u16, id: FcId) {
        let Some((port, name)) = self.logins.remove(&(switch, id)) else { return };
        let text = format!("{}{id} is no longer logged in at port {port}.", named(name));
        self.add(at, Kind::Logout, New { switch: Some(switch), port: Some(port), text, ..New::default() });
    }

    fn event(&mut self, at: Instant, switch: u16, event: &Event) {
        let (kind, port, text) = match event {
            Event::IslUp { port, neighbour } => {
                (Kind::IslUp, Some(*port), format!("Port {port} joins the switch {neighbour}."))
            }
            Event::IslDown { port } => (Kind::IslDown, Some(*port), format!("Port {port} joins no other switch.")),
            Event::AdjacencyLost { port } => {
                (Kind::AdjacencyLost, Some(*port), format!("Port {port} carries no HLO, so no path uses it."))
            }
            Event::AdjacencyRestored { port } => {
                (Kind::AdjacencyRestored, Some(*port), format!("Port {port} carries HLOs again."))
            }
            Event::Isolated { port, reason } => {
                (Kind::Segmented, Some(*port), format!("Port {port} is segmented: {reason}."))
            }
            Event::Domain(Some(domain)) => (Kind::Domain, None, format!("The domain of the switch is {domain}.")),
            Event::Domain(None) => (Kind::NoDomain, None, "The switch has no domain.".to_owned()),
            Event::Principal(name) => (Kind::Principal, None, format!("The principal switch is {name}.")),
            Event::ZonesChanged { tag, result } => return self.zones_done(at, (switch, *tag), result),
        };
        self.add(at, kind, New { switch: Some(switch), port, text, ..New::default() });
    }

    /// Notes that a user has begun a change of the zones at a switch, by its index in the lab. The
    /// event of the change at this switch then belongs to the audit log, with the user. `checksum`:
    /// that of the database after the change. `tag`: that of [`Event::ZonesChanged`].
    pub fn zone_change(&mut self, switch: u16, tag: u32, checksum: u128, by: Option<RequestUser>) {
        let pending = ZonesPending { checksum, by, is_audited: false, last: None };
        self.zone_changes.insert((switch, tag), pending);
    }

    /// Records the end of a change of the zones by a user.
    fn zones_done(&mut self, at: Instant, (switch, tag): (u16, u32), result: &Result<(), Vec<ChangeFailure>>) {
        let pending = self.zone_changes.remove(&(switch, tag));
        if let Err(failures) = result {
            let reasons: Vec<String> = failures.iter().map(ToString::to_string).collect();
            let text = format!("A change of the zones has failed: {}.", reasons.join("; "));
            let user = user_and_way(pending.and_then(|pending| pending.by).as_ref()).0;
            return self.add(at, Kind::ZonesFailed, New { switch: Some(switch), port: None, user, text });
        }
        // The edits of the change were applied to a newer database than that of its begin.
        if let Some(ZonesPending { is_audited: false, last: Some(last), by, .. }) = pending {
            self.audit_zones(last, by.as_ref());
        }
    }

    /// Adds the change of the zones with a sequence number to the audit log.
    fn audit_zones(&mut self, sequence: u64, by: Option<&RequestUser>) {
        let (user, way) = user_and_way(by);
        if let Some(entry) = self.ring.iter_mut().rev().find(|entry| entry.sequence == sequence) {
            let text = entry.text.strip_suffix('.').unwrap_or(&entry.text);
            (entry.text, entry.user, entry.audit) = (format!("{text} {way}."), user, true);
        }
    }

    /// Records that an operator or the user of a management interface has enabled or disabled a
    /// port. `switch`: index in the lab.
    pub fn port_enabled(&mut self, at: Instant, (switch, port): (u16, u16), enabled: bool, by: Option<&RequestUser>) {
        let (kind, word) = if enabled { (Kind::PortEnabled, "enabled") } else { (Kind::PortDisabled, "disabled") };
        let (user, way) = user_and_way(by);
        let text = format!("Port {port} is {word} {way}.");
        self.add(at, kind, New { switch: Some(switch), port: Some(port), user, text });
    }

    /// Records that an operator or the user of a management interface has enabled or disabled a
    /// switch. `switch`: index in the lab.
    pub fn switch_enabled(&mut self, at: Instant, switch: u16, enabled: bool, by: Option<&RequestUser>) {
        let (kind, word) = match enabled {
            true => (Kind::SwitchEnabled, "enabled"),
            false => (Kind::SwitchDisabled, "disabled"),
        };
        let (user, way) = user_and_way(by);
        let text = format!("The switch is {word} {way}.");
        self.add(at, kind, New { switch: Some(switch), port: None, user, text });
    }

    /// Records the start or the stop of a switch. A switch that stops loses its links and logins.
    pub fn switch_runs(&mut self, at: Instant, switch: u16, runs: bool) {
        self.up.retain(|(of, _)| *of != switch);
        self.logins.retain(|(of, _), _| *of != switch);
        // The memory of its changes is lost.
        self.zone_changes.retain(|(of, _), _| *of != switch);
        let (kind, text) = match runs {
            true => (Kind::SwitchStarted, "The switch has started again."),
            false => (Kind::SwitchStopped, "The switch has stopped."),
        };
        self.add(at, kind, New { switch: Some(switch), text: text.to_owned(), ..New::default() });
    }

    /// Records an event that a management interface has seen. `switch`: index in the lab.
    pub fn client(&mut self, at: Instant, switch: Option<u16>, event: &ClientEvent) {
        let (kind, user, text) = match event {
            ClientEvent::LoginFailed { user, address, interface } => {
                let (address, interface) = (printable(address), printable(interface));
                let text = format!("Login failure attempt via {interface}. IP Addr: {address}");
                (Kind::LoginFailed, user, text)
            }
        };
        self.add(at, kind, New { switch, port: None, user: printable(user), text });
    }

    /// Returns the events after a sequence number; 0 for all. `on` limits them to one switch of the
    /// lab, `switch_name` returns the name of a switch, and `seconds` converts a time to
    /// seconds since the start of the workloads or of the instance.
    pub fn view<'n>(
        &self,
        after: u64,
        on: Option<u16>,
        switch_name: impl Fn(u16) -> &'n str,
        seconds: impl Fn(Instant) -> f64,
    ) -> EventsView {
        let first = self.ring.front().map_or(self.last + 1, |entry| entry.sequence);
        let start =
            usize::try_from(after.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX).min(self.ring.len());
        let chosen = self.ring.range(start..).filter(|entry| on.is_none_or(|on| entry.switch == Some(on)));
        let rows = chosen.map(|entry| {
            let (id, severity, _) = entry.kind.message();
            let switch = entry.switch.map(&switch_name).unwrap_or_default();
            EventRow {
                sequence: entry.sequence,
                at_s: seconds(entry.at),
                unix_s: self.origin_unix_s.map(|origin| origin + entry.at.as_ns() as f64 / 1e9),
                severity,
                id: id.to_owned(),
                switch: switch.to_owned(),
                port: entry.port.map(|port| format!("{switch}:{port}")).unwrap_or_default(),
                user: entry.user.clone(),
                text: entry.text.clone(),
                audit: entry.audit,
                count: entry.count,
            }
        });
        EventsView { events: rows.collect(), discarded: first - 1, origin_unix_s: self.origin_unix_s }
    }
}

/// Name of the user of a request, and the way of the request as the end of a sentence. The user of
/// a request without a management interface is not known.
fn user_and_way(by: Option<&RequestUser>) -> (String, String) {
    match by {
        Some(RequestUser { user, interface }) => (printable(user), format!("via {}", printable(interface))),
        None => (String::new(), "by an operator".to_owned()),
    }
}

/// Name of an N_Port before its address.
fn named(name: Option<Wwpn>) -> String {
    name.map_or_else(|| "N_Port ".to_owned(), |name| format!("N_Port {name} with the address "))
}

/// The first characters of a text of a client, without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_fc::zoning::EffectiveZones;
    use std::collections::BTreeSet;

    fn failed(user: &str) -> ClientEvent {
        let [address, interface] = ["10.0.0.1", "SSH"].map(str::to_owned);
        ClientEvent::LoginFailed { user: user.to_owned(), address, interface }
    }

    fn rows(log: &EventLog, after: u64, on: Option<u16>) -> EventsView {
        log.view(after, on, |switch| ["sw1", "sw2"][usize::from(switch)], |at| at.as_ns() as f64 / 1e9)
    }

    #[test]
    fn each_kind_has_its_own_identifier_of_the_form_of_fabric_os() {
        let ids: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.message().0).collect();
        assert_eq!(ids.len(), Kind::ALL.len());
        for id in ids {
            let (module, number) = id.split_once('-').unwrap();
            assert!(module.chars().all(|c| c.is_ascii_uppercase()) && number.len() == 4, "{id}");
            assert!((1000..2000).contains(&number.parse().unwrap()), "{id}");
        }
        assert_eq!(Severity::from_word("WARNING"), Some(Severity::Warning));
    }

    #[test]
    fn the_ring_keeps_the_newest_events_and_counts_those_that_left() {
        let mut log = EventLog::default();
        log.set_origin(1_000.0);
        for port in 0..MAX_EVENTS as u16 + 10 {
            log.port_enabled(Instant::from_ns(u64::from(port) * 1_000_000_000), (1, port), false, None);
        }
        let all = rows(&log, 0, None);
        assert_eq!((all.events.len(), all.discarded), (MAX_EVENTS, 10));
        let first = &all.events[0];
        assert_eq!((first.sequence, &*first.port, first.at_s), (11, "sw2:10", 10.0));
        assert_eq!((first.unix_s, first.severity, &*first.id), (Some(1_010.0), Severity::Info, "PORT-1004"));
        let newest = MAX_EVENTS as u64 + 10;
        assert_eq!(rows(&log, newest - 2, None).events.len(), 2);
        assert_eq!(rows(&log, newest, None).events.len(), 0);
        assert_eq!(rows(&log, u64::MAX, None).events.len(), 0);
        assert_eq!(rows(&log, 0, Some(0)).events.len(), 0, "no event of the other switch");
        assert_eq!(log.totals().map(|(_, count)| count).collect::<Vec<_>>(), [0, 0, 0, newest]);
    }

    #[test]
    fn only_the_switch_of_the_commit_audits_a_change_of_the_zones_with_its_user() {
        let mut log = EventLog::default();
        let database = |name: &str| {
            let effective = EffectiveZones { name: name.to_owned(), zones: Vec::new() };
            ZoneDatabase { effective: Some(effective.into()), ..ZoneDatabase::default() }
        };
        let changed =
            |log: &mut EventLog, switch, database: &ZoneDatabase| log.zones(Instant::ZERO, switch, database, true);
        let jane = || Some(RequestUser { user: "jane".to_owned(), interface: "REST".to_owned() });
        let done = |log: &mut EventLog, switch, tag, result| {
            log.event(Instant::ZERO, switch, &Event::ZonesChanged { tag, result });
        };
        // A change of another switch comes first, and that of the user is applied after it.
        log.zone_change(0, 7, database("mine").checksum(), jane());
        changed(&mut log, 0, &database("other"));
        changed(&mut log, 0, &database("mine"));
        changed(&mut log, 1, &database("mine"));
        done(&mut log, 0, 7, Ok(()));
        // The fabric has merged the change of the user with another one.
        log.zone_change(0, 8, database("planned").checksum(), None);
        changed(&mut log, 0, &database("merged"));
        done(&mut log, 0, 8, Ok(()));
        log.zone_change(1, 9, database("late").checksum(), jane());
        done(&mut log, 1, 9, Err(vec![ChangeFailure::Restarted]));
        // A further change is not that of the user.
        changed(&mut log, 1, &database("late"));
        let view = rows(&log, 0, None);
        let seen: Vec<(&str, &str, bool, &str)> =
            view.events.iter().map(|row| (&*row.switch, &*row.user, row.audit, &*row.text)).collect();
        let text = |name: &str| format!("The effective configuration has changed to {name}");
        let expected = [
            ("sw1", "", false, text("other.")),
            ("sw1", "jane", true, text("mine via REST.")),
            ("sw2", "", false, text("mine.")),
            ("sw1", "", true, text("merged by an operator.")),
            ("sw2", "jane", true, seen[4].3.to_owned()),
            ("sw2", "", false, text("late.")),
        ];
        assert_eq!(seen, expected.each_ref().map(|(switch, user, audit, text)| (*switch, *user, *audit, &**text)));
        assert!(seen[4].3.starts_with("A change of the zones has failed: "), "{}", seen[4].3);
        assert!(log.zone_changes.is_empty());
    }

    #[test]
    fn a_save_of_definitions_is_another_event_than_a_change_of_the_effective_configuration() {
        let mut log = EventLog::default();
        let database = ZoneDatabase::default();
        let jane = RequestUser { user: "jane".to_owned(), interface: "REST".to_owned() };
        log.zone_change(0, 7, database.checksum(), Some(jane));
        log.zones(Instant::ZERO, 0, &database, false);
        log.event(Instant::ZERO, 0, &Event::ZonesChanged { tag: 7, result: Ok(()) });
        log.zones(Instant::ZERO, 1, &database, false);
        log.zones(Instant::ZERO, 1, &database, true);
        let seen: Vec<_> =
            rows(&log, 0, None).events.into_iter().map(|row| (row.id, row.user, row.audit, row.text)).collect();
        let expected = [
            ("ZONE-1024", "jane", true, "The defined configuration was saved via REST."),
            ("ZONE-1024", "", false, "The defined configuration was saved."),
            ("ZONE-1022", "", false, "The effective configuration has changed to none."),
        ];
        assert_eq!(
            seen,
            expected.map(|(id, user, audit, text)| (id.to_owned(), user.to_owned(), audit, text.to_owned()))
        );
    }

    #[test]
    fn a_flood_of_equal_events_is_one_row_and_a_client_cannot_write_another_line() {
        let mut log = EventLog::default();
        for _ in 0..5_000 {
            log.client(Instant::ZERO, Some(0), &failed("root\n[SWCH-1002]"));
        }
        let view = rows(&log, 0, None);
        assert_eq!(view.events.len(), 1);
        let row = &view.events[0];
        assert_eq!((row.count, &*row.user, row.audit), (5_000, "root[SWCH-1002]", true));
        log.client(Instant::ZERO, None, &failed(&"x".repeat(100_000)));
        assert_eq!(rows(&log, 1, None).events[0].user.len(), MAX_NAME);
    }
}
