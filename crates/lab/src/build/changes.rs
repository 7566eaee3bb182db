//! `[[change]]`: changes of zones while the lab runs.
//!
//! What an edit names must be there when it is done, so the changes are played through in the order of their times: one zone
//! database for each fabric, and fabrics that a link joins by then have one together.

use super::Where;
use super::nodes::Names;
use super::zone_edits::edit_database;
use crate::diagnostic::Sink;
use crate::document::Document;
use crate::element::Element;
use sanloom_core::config::{FaultKind, Lab, Node, Picos, ScheduledChange};
use sanloom_core::zoning::{ZoneDatabase, merge};
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

/// The switch that is named, or the first.
fn switch(element: &Element<'_>, names: &Names, sink: &mut Sink) -> Option<u16> {
    let Some((name, origin)) = element.patterns("switch").first() else { return Some(0) };
    match names.find(name, "switch", |node| matches!(node, Node::Switch(_)), origin, sink)? {
        Node::Switch(switch) => Some(switch),
        Node::Host(_) | Node::Storage(_) => None,
    }
}

/// What the fabrics have committed, as far as the lab says it.
struct Databases {
    /// Number of the fabric of each switch.
    fabric: Vec<u16>,
    committed: BTreeMap<u16, ZoneDatabase>,
    /// Of switches that do not exist.
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

    /// Fabrics between which links have come up by now have one database, unless theirs contradict each other.
    fn join(&mut self, lab: &Lab, now: Picos) {
        let dark: BTreeSet<u16> = lab.dark_links().into_iter().filter(|link| !has_come_up(lab, *link, now)).collect();
        for (switch, root) in lab.fabrics_without(&dark).into_iter().enumerate() {
            let (ours, theirs) = (self.fabric[usize::from(root)], self.fabric[switch]);
            if ours == theirs {
                continue;
            }
            let policy = &lab.zone_policy;
            let merged = match (self.committed.get(&ours), self.committed.get(&theirs)) {
                (Some(a), Some(b)) => merge(a, b, policy.merge_control, &policy.limits, policy.merge_rules),
                _ => continue,
            };
            if let Ok(merged) = merged {
                self.committed.insert(ours, merged.database);
                self.committed.remove(&theirs);
                self.fabric.iter_mut().filter(|fabric| **fabric == theirs).for_each(|fabric| *fabric = ours);
            }
        }
    }
}

/// A link that was dark at first has had light before `now`.
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
