//! `[loop.NAME]`: arbitrated loops.

use super::Where;
use super::nodes::Names;
use crate::diagnostic::Sink;
use crate::document::{Budget, Document};
use sanloom_fc::config::{ArbitratedLoop, Node};
use sanloom_fc::san::Lab;

/// Fills `lab.loops`, without the nodes that loops name.
pub(super) fn build<'d>(document: &'d Document, lab: &mut Lab, budget: &mut Budget, sink: &mut Sink) -> Vec<Where<'d>> {
    let elements = document.named("loop", budget, sink);
    for element in &elements {
        lab.loops.push(ArbitratedLoop {
            name: element.name.clone(),
            delay_words: element.integer("delay_words").unwrap_or(6),
            login_credit: element.integer("login_credit").unwrap_or(0),
            firmware: element.time("firmware").unwrap_or_default(),
            unfair: Vec::new(),
            transfers: Vec::new(),
            private: Vec::new(),
        });
    }
    elements.into_iter().map(Where::new).collect()
}

/// Resolves the names of nodes in loops.
pub(super) fn resolve(lab: &mut Lab, places: &[Where<'_>], names: &Names, budget: &mut Budget, sink: &mut Sink) {
    let accept = |node| matches!(node, Node::Host(_) | Node::Storage(_));
    for (of_lab, place) in lab.loops.iter_mut().zip(places) {
        let mut named = |key: &str| {
            let mut nodes = Vec::new();
            for (text, origin) in place.element.patterns(key) {
                let Some(expanded) = budget.expand(text, origin, sink) else { continue };
                let found =
                    expanded.iter().map(|name| names.find(name, "host or storage system", accept, origin, sink));
                nodes.extend(found.flatten());
            }
            nodes
        };
        (of_lab.unfair, of_lab.transfers) = (named("unfair"), named("transfers"));
        of_lab.private = named("private");
    }
}
