//! `[[change]]`: changes of zones during a run.
//!
//! Every edit must refer to objects that exist at its time. The changes are therefore simulated in
//! the order of their times, with one zone database for each fabric. Fabrics that a link has joined
//! by then share one database.

use super::Where;
use super::nodes::Names;
use super::zone_edits::edit_database;
use crate::diagnostic::Sink;
use crate::document::Document;
use crate::element::Element;
use sanloom_fc::config::{FaultKind, Node, Picos};
use sanloom_fc::san::{Lab, ScheduledChange};
use sanloom_fc::zoning::{ZoneDatabase, merge};
use std::collections::{BTreeMap, BTreeSet};

/// Fills `lab.changes`, sorted by time.
pub(super) fn build<'d>(document: &'d Document, lab: &mut Lab, names: &Names, sink: &mut Sink) -> Vec<Where<'d>> {
    // Edits of one transaction, in the order of the file.
    let mut transactions: BTreeMap<(Picos, u16), Vec<Element<'d>>> = BTreeMap::new();
    for element in document.list("change") {
        let Some(switch) = switch(&element, names, sink) else { continue };
        let at = element.time("at").unwrap_or_default();
        transactions.entry((at, switch)).or_default().push(element);
    }
    let mut databases = Databases::new(lab);
    let mut changes = Vec::new();
    let mut places = Vec::new();
    for ((at, switch), elements) in transactions {
        databases.join(lab, at);
        let base = databases.of(switch).clone();
        let edited = edit_database(lab, &base, &elements.iter().collect::<Vec<_>>(), sink);
        let outcome = edited.transaction.outcome().0;
        let expected = outcome.zoning();
        *databases.of(switch) = outcome;
        changes.push(ScheduledChange { at, switch, edits: edited.edits, expected });
        places.extend(elements.into_iter().next().map(Where::new));
    }
    lab.changes = changes;
    places
}

/// Returns the named switch, or the first one if no switch is named.
fn switch(element: &Element<'_>, names: &Names, sink: &mut Sink) -> Option<u16> {
    let Some((name, origin)) = element.patterns("switch").first() else { return Some(0) };
    match names.find(name, "switch", |node| matches!(node, Node::Switch(_)), origin, sink)? {
        Node::Switch(switch) => Some(switch),
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => None,
    }
}

/// The zone databases of the fabrics, as far as they follow from the lab.
struct Databases {
    /// Number of the fabric of each switch.
    fabric: Vec<u16>,
    committed: BTreeMap<u16, ZoneDatabase>,
    /// Database for switches that do not exist.
    none: ZoneDatabase,
}

impl Databases {
    fn new(lab: &Lab) -> Databases {
        let fabric = lab.fabrics_without(&lab.dark_links());
        let committed = fabric.iter().map(|fabric| (*fabric, lab.zone_database_at(*fabric))).collect();
        Databases { fabric, committed, none: lab.zone_database.clone() }
    }

    fn of(&mut self, switch: u16) -> &mut ZoneDatabase {
        let fabric = self.fabric.get(usize::from(switch)).copied();
        match fabric.and_then(|fabric| self.committed.get_mut(&fabric)) {
            Some(database) => database,
            None => &mut self.none,
        }
    }

    /// Merges the databases of fabrics that links have joined by `now`, unless the databases
    /// conflict.
    fn join(&mut self, lab: &Lab, now: Picos) {
        let dark: BTreeSet<u16> = lab.dark_links().into_iter().filter(|link| !has_come_up(lab, *link, now)).collect();
        for (switch, root) in lab.fabrics_without(&dark).into_iter().enumerate() {
            let (kept, joined) = (self.fabric[usize::from(root)], self.fabric[switch]);
            if kept == joined {
                continue;
            }
            let policy = &lab.zone_policy;
            let merged = match (self.committed.get(&kept), self.committed.get(&joined)) {
                (Some(a), Some(b)) => merge(a, b, policy.merge_control, &policy.limits, policy.merge_rules),
                _ => continue,
            };
            if let Ok(merged) = merged {
                self.committed.insert(kept, merged.database);
                self.committed.remove(&joined);
                self.fabric.iter_mut().filter(|fabric| **fabric == joined).for_each(|fabric| *fabric = kept);
            }
        }
    }
}

/// Returns whether an initially dark link has come up before `now`.
fn has_come_up(lab: &Lab, link: u16, now: Picos) -> bool {
    let mut ended = true;
    for fault in lab.faults.iter().filter(|fault| fault.at <= now) {
        match fault.kind {
            FaultKind::LinkDown { link: of } | FaultKind::PortDown { link: of, .. } if of == link => {
                ended &= fault.until.is_some_and(|until| until <= now);
            }
            FaultKind::LinkUp { link: of } if of == link => return true,
            _ => {}
        }
    }
    ended
}
