//! Zone requests to a fabric, live or simulated: the transactions of switches, and [`ZoneChanges`]
//! with the clients that wait for a commit. A driver gives access to its switches with
//! [`ZoneFabric`].
//!
//! A commit is passed to the zone server of the switch, which commits it in the whole fabric. If
//! the fabric has a store, the driver stores the database before the switch sends anything that
//! depends on it.

mod answers;
mod transactions;

pub use answers::{difference, status};
pub use transactions::{Caller, LostTransactions, OpenTransaction};

use crate::control::{Answer, ErrorKind, RequestError, RequestUser, ZoneAction};
use crate::zone_database::Edit;
use answers::{preview, sentences};
use sanloom_fc::fabric_switch::FabricSwitch;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::server::{ChangeFailure, ZoneChange};
use sanloom_fc::zoning::{Transaction, ZoneDatabase, ZoneEdit};
use sanloom_scsi::time::Instant;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// Access to the switches of a fabric whose zones are shown or changed. Switches have indices from
/// 0 in the order of the lab.
pub trait ZoneFabric {
    /// Description of the fabric.
    fn lab(&self) -> &Lab;

    /// Number of switches.
    fn switches(&self) -> usize;

    /// Name of a switch in the lab.
    fn name(&self, switch: usize) -> &str;

    /// Machines of a switch.
    fn machine(&self, switch: usize) -> &FabricSwitch;

    /// Transaction and committed zones of a switch.
    fn zones(&self, switch: usize) -> &SwitchZones;

    /// Transaction and committed zones of a switch, to change them.
    fn zones_mut(&mut self, switch: usize) -> &mut SwitchZones;

    /// Prepares the commit of a database at a switch.
    ///
    /// # Errors
    /// The database cannot be committed, for example because it cannot be stored.
    fn prepare(&mut self, switch: usize, outcome: &ZoneDatabase) -> Result<(), RequestError>;

    /// Passes a change to the zone server of a switch, and notes its user in the event log. The
    /// driver calls [`ZoneChanges::finish`] with its tag when the change has ended.
    fn change(&mut self, switch: usize, started: StartedChange);

    /// Path of the store of committed databases; `None` if they are not stored.
    fn store(&self) -> Option<String>;

    /// Logs that a transaction of a switch has ended without a request of its owner.
    fn transaction_ended(&self, switch: usize);
}

/// Zone change that begins.
#[derive(Debug)]
pub struct StartedChange {
    /// Unique tag of the change.
    pub tag: u32,
    /// The change.
    pub change: ZoneChange,
    /// Checksum of the database after the change.
    pub checksum: u128,
    /// The user for the event log.
    pub by: Option<RequestUser>,
}

/// Result of a zone change in the fabric.
#[derive(Debug)]
pub struct ZoneResult {
    /// Index of the switch that received the request.
    pub switch: usize,
    /// Tag of the change.
    pub tag: u32,
    /// Reasons if the change is not in force.
    pub result: Result<(), Vec<ChangeFailure>>,
}

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
    /// Transactions that have ended without their owners.
    lost: LostTransactions,
}

impl SwitchZones {
    /// Returns the zones with which a switch starts.
    pub fn new(committed: ZoneDatabase, previous: Option<ZoneDatabase>) -> SwitchZones {
        SwitchZones { previous, committed, ..SwitchZones::default() }
    }

    /// Ends the open transaction without a request of its owner. The next edit or commit of the
    /// owner fails with the reason, a clause such as `the switch has restarted`.
    pub fn lose(&mut self, reason: &str) {
        if let Some(open) = self.open.take() {
            self.lost.add(open.session(), reason);
        }
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
    switch: usize,
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

    /// Answers a zone request. A change of the fabric is answered when it ends. `by`: the user for
    /// the event log, if the request names no client.
    pub fn request(
        &mut self,
        fabric: &mut dyn ZoneFabric,
        now: Instant,
        switch: Option<&str>,
        by: Option<RequestUser>,
        action: ZoneAction,
        answer: Sender<Answer>,
    ) {
        let found = match switch {
            None => (fabric.switches() > 0).then_some(0),
            Some(name) => (0..fabric.switches()).find(|number| fabric.name(*number) == name),
        };
        let Some(number) = found else {
            let names: Vec<&str> = (0..fabric.switches()).map(|number| fabric.name(number)).collect();
            let name = switch.unwrap_or_default();
            let reason = format!("this instance has no switch `{name}`; it has {}", names.join(", "));
            return reply(&answer, Err(reason.into()));
        };
        let (caller, action) = match Caller::of(action, now) {
            Ok(parts) => parts,
            Err(reason) => return reply(&answer, Err(reason.into())),
        };
        let is_changing = self.waiting.values().any(|waiting| waiting.switch == number);
        if let Err(error) = caller.enter(fabric, number, &action, is_changing) {
            return reply(&answer, Err(error));
        }
        let reads = matches!(action, ZoneAction::Show | ZoneAction::Preview { .. });
        if !reads && is_changing {
            return reply(&answer, Err(in_progress(fabric, number)));
        }
        let by = caller.user().or(by);
        let outcome = match action {
            ZoneAction::Show => Ok(caller.shown(fabric, number)),
            // Nothing to keep, so nobody is locked out.
            ZoneAction::Edit { edits } if edits.is_empty() => Ok(status(fabric, number, caller.now)),
            ZoneAction::Edit { edits } => edit(fabric, number, &edits, true).map(|transaction| {
                caller.keep(fabric.zones_mut(number), transaction);
                status(fabric, number, caller.now)
            }),
            ZoneAction::Preview { edits } => {
                let transaction = edit(fabric, number, &edits, caller.sees_edits(fabric.zones(number)));
                transaction.and_then(|transaction| preview(fabric, number, &transaction))
            }
            ZoneAction::Abort => match caller.abort(fabric.zones_mut(number), by.as_ref()) {
                true => Ok(status(fabric, number, caller.now)),
                false => Err(no_transaction(fabric, number).into()),
            },
            ZoneAction::Commit => match fabric.zones(number).open.as_ref().map(|open| open.transaction.clone()) {
                Some(transaction) => return self.commit(fabric, number, transaction, by, answer),
                None => Err(no_transaction(fabric, number).into()),
            },
            ZoneAction::EditAndCommit { edits } => match edit(fabric, number, &edits, true) {
                Ok(transaction) => return self.commit(fabric, number, transaction, by, answer),
                Err(error) => Err(error),
            },
            ZoneAction::Rollback => return self.roll_back(fabric, number, by, answer),
            ZoneAction::As { .. } => Err("a zone request names one client only".to_owned().into()),
        };
        reply(&answer, outcome);
    }

    fn commit(
        &mut self,
        fabric: &mut dyn ZoneFabric,
        switch: usize,
        transaction: Transaction,
        by: Option<RequestUser>,
        answer: Sender<Answer>,
    ) {
        match transaction.commit() {
            Err(problems) => reply(&answer, Err(sentences(&problems).into())),
            Ok(outcome) => {
                let change = ZoneChange::Commit(Box::new(transaction));
                self.start(fabric, (change, by), &outcome, Waiting { switch, answer, ends_transaction: true });
            }
        }
    }

    fn roll_back(
        &mut self,
        fabric: &mut dyn ZoneFabric,
        switch: usize,
        by: Option<RequestUser>,
        answer: Sender<Answer>,
    ) {
        let Some(previous) = fabric.zones(switch).previous.clone() else {
            let reason = format!("{} has no earlier zone database to roll back to", fabric.name(switch));
            return reply(&answer, Err(reason.into()));
        };
        let change = ZoneChange::Replace(previous.clone());
        self.start(fabric, (change, by), &previous, Waiting { switch, answer, ends_transaction: false });
    }

    fn start(
        &mut self,
        fabric: &mut dyn ZoneFabric,
        (change, by): (ZoneChange, Option<RequestUser>),
        outcome: &ZoneDatabase,
        waiting: Waiting,
    ) {
        let switch = waiting.switch;
        if let Err(error) = fabric.prepare(switch, outcome) {
            return reply(&waiting.answer, Err(error));
        }
        let tag = self.next_tag();
        self.waiting.insert(tag, waiting);
        fabric.change(switch, StartedChange { tag, change, checksum: outcome.checksum(), by });
    }

    /// Answers the client whose change has ended.
    pub fn finish(&mut self, fabric: &mut dyn ZoneFabric, now: Instant, ended: ZoneResult) {
        let ZoneResult { switch, tag, result } = ended;
        let Some(Waiting { answer, ends_transaction, .. }) = self.waiting.remove(&tag) else { return };
        if let Err(failures) = result {
            return reply(&answer, Err(format!("not committed: {}", sentences(&failures)).into()));
        }
        let zones = fabric.zones_mut(switch);
        if ends_transaction {
            zones.open = None;
        }
        let outcome = match fabric.store().filter(|_| !fabric.zones(switch).is_kept()) {
            None => Ok(status(fabric, switch, now)),
            Some(path) => Err(RequestError::environment(format!(
                "the change is in force, but {path} could not store it (see the log); the write is repeated"
            ))),
        };
        reply(&answer, outcome);
    }
}

/// Sends an answer. A client that has disconnected does not receive it.
fn reply(answer: &Sender<Answer>, outcome: Result<Answer, RequestError>) {
    let _ = answer.send(outcome.unwrap_or_else(Answer::Failed));
}

/// The transaction of a switch cannot change while the fabric commits it.
fn in_progress(fabric: &dyn ZoneFabric, switch: usize) -> RequestError {
    let name = fabric.name(switch);
    let reason = format!("{name} has a change of the zones in progress; wait for its end, and try again");
    RequestError { reason, kind: ErrorKind::Transaction }
}

fn no_transaction(fabric: &dyn ZoneFabric, switch: usize) -> String {
    let name = fabric.name(switch);
    format!("no transaction is open at {name}; begin one with `sanloom zone edit`")
}

/// Returns a copy of the transaction of a switch with further edits, or a new one with them.
/// `pending`: starts from the open transaction, not from the committed database.
fn edit(fabric: &dyn ZoneFabric, switch: usize, edits: &[Edit], pending: bool) -> Result<Transaction, RequestError> {
    let open = fabric.zones(switch).open.as_ref().filter(|_| pending).map(|open| open.transaction.clone());
    let limits = fabric.lab().zone_policy.limits;
    let mut transaction = open.unwrap_or_else(|| Transaction::begin(fabric.machine(switch).zone_database(), limits));
    for edit in edits {
        let edit = ZoneEdit::try_from(edit).map_err(|error| error.to_string())?;
        transaction.apply(edit).map_err(|problem| problem.to_string())?;
    }
    Ok(transaction)
}
