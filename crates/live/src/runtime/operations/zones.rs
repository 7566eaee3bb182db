//! Zone requests: the transactions of switches, and [`ZoneChanges`] with the clients that wait for
//! a commit.
//!
//! A commit is passed to the zone server of the switch, which commits it in the whole fabric. The
//! database is stored before the switch sends anything that depends on it: outputs of a switch are
//! processed in order, and the [`Keeper`](super::keeper::Keeper) waits for the store.

use super::transactions::{Caller, OpenTransaction};
use super::{Site, unknown};
use crate::runtime::instance::{Instance, ZoneResult};
use sanloom_api::control::{Answer, RequestError, ZoneAction};
use sanloom_api::zone_database::{Database, Edit};
use sanloom_api::zoning::{PortPair, SCHEMA_VERSION, ZonePort, ZonePreview, ZoneStatus};
use sanloom_fc::config::Node;
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::fabric_switch;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_fc::zoning::{Preview, Transaction, ZoneDatabase, ZoneEdit};
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// Zones of a switch for control requests.
#[derive(Debug, Default)]
pub struct SwitchZones {
    /// Uncommitted edits.
    pub open: Option<OpenTransaction>,
    /// Number of transactions since the start.
    pub transactions: u32,
    /// The database before the committed one, for a rollback.
    pub previous: Option<ZoneDatabase>,
    /// The committed database.
    committed: ZoneDatabase,
    /// The committed database could not be stored.
    unkept: bool,
}

impl SwitchZones {
    /// Returns the zones with which a switch starts.
    pub fn new(committed: ZoneDatabase, previous: Option<ZoneDatabase>) -> SwitchZones {
        SwitchZones { open: None, transactions: 0, previous, committed, unkept: false }
    }

    /// Returns whether the committed database is in the store.
    pub fn is_kept(&self) -> bool {
        !self.unkept
    }

    /// Records whether the committed database is stored.
    pub fn set_kept(&mut self, kept: bool) {
        self.unkept = !kept;
    }

    /// The committed database.
    pub fn committed(&self) -> &ZoneDatabase {
        &self.committed
    }

    /// Replaces the committed database; the one before can be restored by a rollback.
    pub fn commit(&mut self, database: ZoneDatabase) {
        self.previous = Some(std::mem::replace(&mut self.committed, database));
    }
}

/// A client that waits for a change.
#[derive(Debug)]
struct Waiting {
    answer: Sender<Answer>,
    /// The change ends the transaction of the switch.
    ends_transaction: bool,
}

/// Unfinished zone changes.
#[derive(Debug, Default)]
pub struct ZoneChanges {
    waiting: BTreeMap<u32, Waiting>,
    next_tag: u32,
}

impl ZoneChanges {
    /// Returns a new, unique tag for a change.
    pub fn next_tag(&mut self) -> u32 {
        let tag = self.next_tag;
        self.next_tag = tag.wrapping_add(1);
        tag
    }

    /// Answers a zone request. A change of the fabric is answered when it ends.
    pub fn request(&mut self, site: &mut Site<'_>, switch: Option<&str>, action: ZoneAction, answer: Sender<Answer>) {
        let Site { instance, now, .. } = site;
        let found = match switch {
            None => Some(0),
            Some(name) => instance.fabric.switch_named(name),
        };
        let Some(number) = found else {
            let names = instance.fabric.switches.iter().map(|switch| &*switch.name);
            let _ = answer.send(unknown("switch", switch.unwrap_or_default(), names));
            return;
        };
        let (caller, action) = match Caller::of(action, *now) {
            Ok(parts) => parts,
            Err(reason) => return reply(&answer, Err(reason.into())),
        };
        if let Err(error) = caller.enter(instance, number, &action) {
            return reply(&answer, Err(error));
        }
        let outcome = match action {
            ZoneAction::Show => Ok(status(instance, number, caller.now)),
            ZoneAction::Edit { edits } => edit(instance, number, &edits).map(|transaction| {
                caller.keep(&mut instance.fabric.switches[number].zones, transaction);
                status(instance, number, caller.now)
            }),
            ZoneAction::Preview { edits } => {
                let transaction = edit(instance, number, &edits);
                transaction.and_then(|transaction| preview(instance, number, &transaction))
            }
            ZoneAction::Abort => match instance.fabric.switches[number].zones.open.take() {
                Some(_) => Ok(status(instance, number, caller.now)),
                None => Err(no_transaction(instance, number).into()),
            },
            ZoneAction::Commit => {
                return self.commit(instance, number, answer);
            }
            ZoneAction::Rollback => {
                return self.roll_back(instance, number, answer);
            }
            ZoneAction::As { .. } => Err("a zone request names one client only".to_owned().into()),
        };
        reply(&answer, outcome);
    }

    fn commit(&mut self, instance: &mut Instance, switch: usize, answer: Sender<Answer>) {
        let open = instance.fabric.switches[switch].zones.open.as_ref();
        let Some(transaction) = open.map(|open| open.transaction.clone()) else {
            return reply(&answer, Err(no_transaction(instance, switch).into()));
        };
        match transaction.commit() {
            Err(problems) => reply(&answer, Err(sentences(&problems).into())),
            Ok(outcome) => {
                let change = ZoneChange::Commit(Box::new(transaction));
                self.start(instance, switch, change, &outcome, Waiting { answer, ends_transaction: true });
            }
        }
    }

    fn roll_back(&mut self, instance: &mut Instance, switch: usize, answer: Sender<Answer>) {
        let live = &instance.fabric.switches[switch];
        let Some(previous) = live.zones.previous.clone() else {
            let reason = format!("{} has no earlier zone database to roll back to", live.name);
            return reply(&answer, Err(reason.into()));
        };
        let change = ZoneChange::Replace(previous.clone());
        self.start(instance, switch, change, &previous, Waiting { answer, ends_transaction: false });
    }

    fn start(
        &mut self,
        instance: &mut Instance,
        switch: usize,
        change: ZoneChange,
        outcome: &ZoneDatabase,
        waiting: Waiting,
    ) {
        if let Err(error) = instance.keeper.state.prepare(&instance.fabric.switches[switch].name, outcome) {
            return reply(
                &waiting.answer,
                Err(RequestError::environment(format!(
                    "not committed, because the database cannot be stored: {error}"
                ))),
            );
        }
        let tag = self.next_tag();
        self.waiting.insert(tag, waiting);
        instance.work.push_switch(switch, fabric_switch::Input::ChangeZones { tag, change });
    }

    /// Answers the client whose change has ended.
    pub fn finish(&mut self, site: &mut Site<'_>, ZoneResult { switch, tag, result }: ZoneResult) {
        let Site { instance, now, .. } = site;
        let Some(Waiting { answer, ends_transaction }) = self.waiting.remove(&tag) else { return };
        if let Err(failures) = result {
            return reply(&answer, Err(format!("not committed: {}", sentences(&failures)).into()));
        }
        let zones = &mut instance.fabric.switches[switch].zones;
        if ends_transaction {
            zones.open = None;
        }
        let outcome = match zones.is_kept() {
            true => Ok(status(instance, switch, *now)),
            false => Err(RequestError::environment(format!(
                "the change is in force, but {} could not store it (see the log); the write is repeated",
                instance.keeper.state.path().display()
            ))),
        };
        reply(&answer, outcome);
    }
}

/// Sends an answer. A client that has disconnected does not receive it.
fn reply(answer: &Sender<Answer>, outcome: Result<Answer, RequestError>) {
    let _ = answer.send(outcome.unwrap_or_else(Answer::Failed));
}

fn no_transaction(instance: &Instance, switch: usize) -> String {
    let name = &instance.fabric.switches[switch].name;
    format!("no transaction is open at {name}; begin one with `sanloom zone edit`")
}

/// Returns the transaction of a switch with further edits, or a new one with them.
fn edit(instance: &Instance, switch: usize, edits: &[Edit]) -> Result<Transaction, RequestError> {
    let live = &instance.fabric.switches[switch];
    let open = live.zones.open.as_ref().map(|open| open.transaction.clone());
    let limits = instance.lab.zone_policy.limits;
    let mut transaction = open.unwrap_or_else(|| Transaction::begin(live.machine.zone_database(), limits));
    for edit in edits {
        let edit = ZoneEdit::try_from(edit).map_err(|error| error.to_string())?;
        transaction.apply(edit).map_err(|problem| problem.to_string())?;
    }
    Ok(transaction)
}

fn status(instance: &Instance, switch: usize, now: Instant) -> Answer {
    let live = &instance.fabric.switches[switch];
    let database = live.machine.zone_database();
    let server = live.machine.zone_server();
    let (working, transaction, problems) = match &live.zones.open {
        None => (None, None, Vec::new()),
        Some(open) => {
            let (outcome, problems) = open.transaction.outcome();
            let shown = open.shown(now, outcome.size().database_bytes as u64);
            (Some(Database::from(&outcome)), Some(shown), problems.iter().map(ToString::to_string).collect())
        }
    };
    Answer::Zones(Box::new(ZoneStatus {
        schema_version: SCHEMA_VERSION,
        switch: live.name.clone(),
        state: database.into(),
        committed: database.into(),
        working,
        checksum: format!("{:032x}", database.checksum()),
        database_max_bytes: instance.lab.zone_policy.limits.database_bytes as u64,
        transaction,
        problems,
        change: server.state().to_string(),
        locked_by: server.locked_by(),
        can_roll_back: live.zones.previous.is_some(),
        kept: live.zones.is_kept(),
        ports: ports_of(instance, switch).into_iter().map(|(port, _)| port).collect(),
    }))
}

fn preview(instance: &Instance, switch: usize, transaction: &Transaction) -> Result<Answer, RequestError> {
    let outcome = transaction.commit().map_err(|problems| sentences(&problems))?;
    let before = instance.fabric.switches[switch].machine.zone_database();
    Ok(Answer::ZonePreview(Box::new(difference(instance, switch, before, &outcome))))
}

/// Pairs of logged-in ports that another database would permit or forbid.
pub fn difference(instance: &Instance, switch: usize, before: &ZoneDatabase, after: &ZoneDatabase) -> ZonePreview {
    let ports = ports_of(instance, switch);
    let identities: Vec<PortIdentity> = ports.iter().map(|(_, identity)| *identity).collect();
    let preview = Preview::between(&before.zoning(), &after.zoning(), &identities);
    let name = |index: u32| ports[index as usize].0.name.clone();
    let pairs = |list: &[(u32, u32)]| list.iter().map(|(a, b)| PortPair(name(*a), name(*b))).collect();
    ZonePreview {
        schema_version: SCHEMA_VERSION,
        lab: instance.lab.name.clone(),
        before: before.into(),
        after: after.into(),
        gains: pairs(&preview.gains),
        loses: pairs(&preview.loses),
        unchanged_pairs: preview.unchanged,
        unaffected_ports: preview.unaffected_ports as u64,
    }
}

/// Ports of the whole fabric, from the name server of a switch.
fn ports_of(instance: &Instance, switch: usize) -> Vec<(ZonePort, PortIdentity)> {
    let machine = &instance.fabric.switches[switch].machine;
    let names = port_names(&instance.lab);
    let domains: BTreeMap<u8, &str> = (machine.members().iter())
        .filter_map(|(domain, name)| {
            let switch = instance.lab.switches.iter().find(|switch| switch.wwn == *name);
            switch.map(|switch| (*domain, &*switch.name))
        })
        .collect();
    let port = |identity: PortIdentity| {
        let port_name = identity.port_name.to_string();
        let own = Some(identity.domain) == machine.domain();
        let name =
            if own { &*instance.fabric.switches[switch].name } else { domains.get(&identity.domain).unwrap_or(&"") };
        let view = ZonePort {
            name: names.get(&identity.port_name).cloned().unwrap_or_else(|| port_name.clone()),
            port_name,
            node_name: identity.node_name.to_string(),
            port_id: identity.port_id.to_string(),
            switch: name.to_owned(),
            domain: identity.domain,
            switch_port: identity.port,
        };
        (view, identity)
    };
    machine.services().name_server().map(|entry| port(entry.identity())).collect()
}

/// Ports of a lab, as `server1:0`, by their names.
fn port_names(lab: &Lab) -> BTreeMap<Wwpn, String> {
    let name = |port: &sanloom_fc::san::AttachedPort| match port.node {
        Node::Switch(n) => &lab.switches[usize::from(n)].name,
        Node::Host(n) => &lab.hosts[usize::from(n)].name,
        Node::Storage(n) => &lab.storage[usize::from(n)].name,
        Node::Loop(n) => &lab.loops[usize::from(n)].name,
    };
    let ports = lab.attached_ports();
    ports.iter().map(|port| (port.identity.port_name, format!("{}:{}", name(port), port.port))).collect()
}

fn sentences<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}
