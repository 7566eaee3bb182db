//! Zones in the hands of an operator: a transaction at a switch, and who waits for its end.
//!
//! A commit goes to the zone server of the switch, which carries it to the whole fabric. The database is in the store before
//! anything that depends on it leaves the switch: the loop acts on outputs in their order, and waits for the store.

use super::Runtime;
use super::operate::unknown;
use sanloom_api::control::{Answer, ZoneAction};
use sanloom_api::zone_database::{Database, Edit};
use sanloom_api::zoning::{PortPair, SCHEMA_VERSION, ZonePort, ZonePreview, ZoneStatus};
use sanloom_core::config::{Lab, Node};
use sanloom_core::fabric::PortIdentity;
use sanloom_core::fabric_switch;
use sanloom_core::time::{Instant, Span};
use sanloom_core::zoning::server::{ChangeFailure, ZoneChange};
use sanloom_core::zoning::{Preview, Transaction, ZoneDatabase, ZoneEdit};
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// How long the store is left alone after it could not keep something.
const KEEP_AGAIN: Span = Span::from_secs(2);

/// What operators do with the zones of a switch.
#[derive(Debug, Default)]
pub struct SwitchZones {
    /// Edits that are not committed.
    pub transaction: Option<Transaction>,
    /// What was committed before: for a rollback.
    pub previous: Option<ZoneDatabase>,
    /// What is committed, as the store was told.
    committed: ZoneDatabase,
    /// The store could not keep it.
    unkept: bool,
}

impl SwitchZones {
    /// What a switch begins with.
    pub fn new(committed: ZoneDatabase, previous: Option<ZoneDatabase>) -> SwitchZones {
        SwitchZones { transaction: None, previous, committed, unkept: false }
    }

    /// What is committed is in the store.
    pub fn is_kept(&self) -> bool {
        !self.unkept
    }
}

/// An operator who waits for a change.
#[derive(Debug)]
pub(super) struct ZoneChangeAsked {
    answer: Sender<Answer>,
    /// The transaction of the switch is over with it.
    ends_transaction: bool,
}

impl Runtime {
    /// Does what an operator wants with zones. The answer to what goes through the fabric comes later.
    pub(super) fn zone(&mut self, switch: Option<&str>, action: ZoneAction, answer: Sender<Answer>) {
        let found = match switch {
            None => Some(0),
            Some(name) => self.switches.iter().position(|live| live.name == name),
        };
        let Some(number) = found else {
            let names = self.switches.iter().map(|switch| &*switch.name);
            let _ = answer.send(unknown("switch", switch.unwrap_or_default(), names));
            return;
        };
        let reply = match action {
            ZoneAction::Show => Ok(self.zone_status(number)),
            ZoneAction::Edit { edits } => self.edit_zones(number, &edits).map(|transaction| {
                self.switches[number].zones.transaction = Some(transaction);
                self.zone_status(number)
            }),
            ZoneAction::Preview { edits } => {
                let transaction = self.edit_zones(number, &edits);
                transaction.and_then(|transaction| self.preview_zones(number, &transaction))
            }
            ZoneAction::Abort => match self.switches[number].zones.transaction.take() {
                Some(_) => Ok(self.zone_status(number)),
                None => Err(self.no_transaction(number)),
            },
            ZoneAction::Commit => match self.switches[number].zones.transaction.clone() {
                None => Err(self.no_transaction(number)),
                Some(transaction) => match transaction.commit() {
                    Err(problems) => Err(sentences(&problems)),
                    Ok(outcome) => {
                        let change = ZoneChange::Commit(Box::new(transaction));
                        return self.change_zones(
                            number,
                            change,
                            &outcome,
                            ZoneChangeAsked { answer, ends_transaction: true },
                        );
                    }
                },
            },
            ZoneAction::Rollback => match self.switches[number].zones.previous.clone() {
                None => Err(format!("{} has no zone database to go back to", self.switches[number].name)),
                Some(previous) => {
                    let change = ZoneChange::Replace(previous.clone());
                    return self.change_zones(
                        number,
                        change,
                        &previous,
                        ZoneChangeAsked { answer, ends_transaction: false },
                    );
                }
            },
        };
        // A client that does not wait for its answer is nobody's loss.
        let _ = answer.send(reply.unwrap_or_else(|reason| Answer::Failed { reason }));
    }

    fn no_transaction(&self, switch: usize) -> String {
        format!("no transaction is open at {}; begin one with `sanloom zone edit`", self.switches[switch].name)
    }

    /// The transaction of a switch with more edits, or one that begins with them.
    fn edit_zones(&self, switch: usize, edits: &[Edit]) -> Result<Transaction, String> {
        let live = &self.switches[switch];
        let open = live.zones.transaction.clone();
        let limits = self.lab.zone_policy.limits;
        let mut transaction = open.unwrap_or_else(|| Transaction::begin(live.machine.zone_database(), limits));
        for edit in edits {
            let edit = ZoneEdit::try_from(edit).map_err(|error| error.to_string())?;
            transaction.apply(edit).map_err(|problem| problem.to_string())?;
        }
        Ok(transaction)
    }

    fn change_zones(&mut self, switch: usize, change: ZoneChange, outcome: &ZoneDatabase, asked: ZoneChangeAsked) {
        if let Err(error) = self.state.prepare(&self.switches[switch].name, outcome) {
            let _ =
                asked.answer.send(Answer::Failed { reason: format!("not committed, it could not be kept: {error}") });
            return;
        }
        let tag = self.next_zone_change;
        self.next_zone_change = tag.wrapping_add(1);
        self.zone_changes.insert(tag, asked);
        let now = self.clock.now();
        self.tell_switch(now, switch, fabric_switch::Input::ChangeZones { tag, change });
        self.settle_inside(now);
    }

    /// A change has ended: its operator hears of it.
    pub(super) fn zone_change_done(&mut self, switch: usize, tag: u32, result: Result<(), Vec<ChangeFailure>>) {
        if self.apply_zones_done(tag, &result) {
            return;
        }
        let Some(asked) = self.zone_changes.remove(&tag) else { return };
        let zones = &mut self.switches[switch].zones;
        let reply = match result {
            Err(failures) => Answer::Failed { reason: format!("not committed: {}", sentences(&failures)) },
            Ok(()) => {
                if asked.ends_transaction {
                    zones.transaction = None;
                }
                match zones.unkept {
                    false => self.zone_status(switch),
                    true => Answer::Failed {
                        reason: format!(
                            "the change is in force, but {} cannot keep it over a restart, see the log; it is tried again",
                            self.state.path().display()
                        ),
                    },
                }
            }
        };
        let _ = asked.answer.send(reply);
    }

    /// The database of a switch is another one: it is in the store before this comes back.
    pub(super) fn keep_zones(&mut self, switch: usize, database: ZoneDatabase) {
        let zones = &mut self.switches[switch].zones;
        let before = std::mem::replace(&mut zones.committed, database);
        zones.previous = Some(before);
        self.write_zones(switch);
    }

    fn write_zones(&mut self, switch: usize) {
        let live = &mut self.switches[switch];
        let zones = &mut live.zones;
        let kept = self.state.commit(&live.name, &zones.committed, zones.previous.as_ref());
        if let Err(error) = &kept
            && !zones.unkept
        {
            tracing::error!(switch = live.name, %error, "zones are in force and not kept");
        }
        zones.unkept = kept.is_err();
        if zones.unkept {
            self.keep_again = self.clock.now() + KEEP_AGAIN;
        }
    }

    /// Tries again to keep what could not be kept, now and then: each try may wait for the disk, or for another process.
    pub(super) fn keep_again(&mut self, now: Instant) {
        if now < self.keep_again {
            return;
        }
        for switch in 0..self.switches.len() {
            if self.switches[switch].zones.unkept {
                self.write_zones(switch);
            }
            while now >= self.keep_again
                && let Some((name, id)) = self.switches[switch].unkept_addresses.pop_first()
            {
                self.write_address(switch, name, id);
            }
            if now < self.keep_again {
                return;
            }
        }
    }

    /// An address was learned: it is in the store before this comes back, or is tried again later.
    pub(super) fn keep_address(&mut self, now: Instant, switch: usize, port_name: Wwpn, port_id: FcId) {
        // A name has one address, and an address one name: what was to be kept before is out of date.
        self.switches[switch].unkept_addresses.retain(|name, id| *name != port_name && *id != port_id);
        match now < self.keep_again {
            true => _ = self.switches[switch].unkept_addresses.insert(port_name, port_id),
            false => self.write_address(switch, port_name, port_id),
        }
    }

    fn write_address(&mut self, switch: usize, port_name: Wwpn, port_id: FcId) {
        let live = &mut self.switches[switch];
        match self.state.keep_address(&live.name, port_name, port_id) {
            Ok(()) => tracing::debug!(switch = live.name, %port_name, %port_id, "address kept"),
            Err(error) => {
                tracing::error!(switch = live.name, %port_name, %port_id, %error, "address not kept, tried again later");
                live.unkept_addresses.insert(port_name, port_id);
                self.keep_again = self.clock.now() + KEEP_AGAIN;
            }
        }
    }

    fn zone_status(&self, switch: usize) -> Answer {
        let live = &self.switches[switch];
        let database = live.machine.zone_database();
        let server = live.machine.zone_server();
        let (working, problems) = match &live.zones.transaction {
            None => (None, Vec::new()),
            Some(transaction) => {
                let (outcome, problems) = transaction.outcome();
                (Some(Database::from(&outcome)), problems.iter().map(ToString::to_string).collect())
            }
        };
        Answer::Zones(Box::new(ZoneStatus {
            schema_version: SCHEMA_VERSION,
            switch: live.name.clone(),
            state: database.into(),
            committed: database.into(),
            working,
            problems,
            change: server.state().to_string(),
            locked_by: server.locked_by(),
            can_roll_back: live.zones.previous.is_some(),
            kept: !live.zones.unkept,
            ports: self.zone_ports(switch).into_iter().map(|(port, _)| port).collect(),
        }))
    }

    fn preview_zones(&self, switch: usize, transaction: &Transaction) -> Result<Answer, String> {
        let outcome = transaction.commit().map_err(|problems| sentences(&problems))?;
        let before = self.switches[switch].machine.zone_database();
        Ok(Answer::ZonePreview(Box::new(self.zone_difference(switch, before, &outcome))))
    }

    /// What another database would change for the ports that are logged in.
    pub(super) fn zone_difference(&self, switch: usize, before: &ZoneDatabase, after: &ZoneDatabase) -> ZonePreview {
        let ports = self.zone_ports(switch);
        let identities: Vec<PortIdentity> = ports.iter().map(|(_, identity)| *identity).collect();
        let preview = Preview::between(&before.zoning(), &after.zoning(), &identities);
        let name = |index: u32| ports[index as usize].0.name.clone();
        let pairs = |list: &[(u32, u32)]| list.iter().map(|(a, b)| PortPair(name(*a), name(*b))).collect();
        ZonePreview {
            schema_version: SCHEMA_VERSION,
            lab: self.lab.name.clone(),
            before: before.into(),
            after: after.into(),
            gains: pairs(&preview.gains),
            loses: pairs(&preview.loses),
            unchanged_pairs: preview.unchanged,
            unaffected_ports: preview.unaffected_ports as u64,
        }
    }

    /// The ports that the name server of a switch knows, of the whole fabric.
    fn zone_ports(&self, switch: usize) -> Vec<(ZonePort, PortIdentity)> {
        let machine = &self.switches[switch].machine;
        let names = port_names(&self.lab);
        let domains: BTreeMap<u8, &str> = (machine.members().iter())
            .filter_map(|(domain, name)| {
                let switch = self.lab.switches.iter().find(|switch| switch.wwn == *name);
                switch.map(|switch| (*domain, &*switch.name))
            })
            .collect();
        let port = |identity: PortIdentity| {
            let port_name = identity.port_name.to_string();
            let own = Some(identity.domain) == machine.domain();
            let name = if own { &*self.switches[switch].name } else { domains.get(&identity.domain).unwrap_or(&"") };
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
}

/// The ports of a lab, as `server1:0`, by their names.
fn port_names(lab: &Lab) -> BTreeMap<Wwpn, String> {
    let name = |port: &sanloom_core::config::AttachedPort| match port.node {
        Node::Switch(n) => &lab.switches[usize::from(n)].name,
        Node::Host(n) => &lab.hosts[usize::from(n)].name,
        Node::Storage(n) => &lab.storage[usize::from(n)].name,
    };
    let ports = lab.attached_ports();
    ports.iter().map(|port| (port.identity.port_name, format!("{}:{}", name(port), port.port))).collect()
}

fn sentences<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}
