//! Parts of a lab that are missing because of errors in the text: [`Holes`]. Problems that the
//! validation finds there may only be consequences.

use super::Where;
use crate::diagnostic::Sink;
use crate::document::{BAD_NAME, DEFINED_TWICE, Document};
use crate::element::Element;
use crate::pattern::{BAD_RANGE, TOO_MANY};
use crate::schema::{Key, Kind};
use sanloom_fc::san::{Problem, ProblemKind, Section};

/// Parts of a lab that an error in the text has changed or removed.
#[derive(Default)]
pub(super) struct Holes {
    /// Nodes, links or zones.
    topology: bool,
    /// The length of the run.
    duration: bool,
    /// Keys that limit the size of a request.
    limits: bool,
    /// At least one fault.
    faults: bool,
}

impl Holes {
    /// Determines the missing parts, except workloads and faults. `nodes` are the locations of
    /// switches, hosts and storage.
    pub fn before_workloads(document: &Document, nodes: [&[Where<'_>]; 3], sink: &Sink) -> Holes {
        if !sink.has_errors() {
            return Holes::default();
        }
        let ports = |key: &Key| ["hbas", "ports", "wwpn", "wwpns"].contains(&key.path);
        let limits =
            |key: &Key| ["luns", "lun_size", "block_size", "receive_size", "data_frames_in_flight"].contains(&key.path);
        let topology = sink.is_without_section()
            || sink.has_any(&[BAD_NAME, DEFINED_TWICE, TOO_MANY, BAD_RANGE])
            || ["link", "isl", "alias", "zone", "zone_config"]
                .iter()
                .any(|name| any_wrong(&document.list(name), joins, sink))
            || nodes.iter().any(|list| list.iter().any(|w| is_wrong(&w.element, ports, sink)));
        let zoning = document.element(crate::schema::section("zoning"));
        let topology = topology || zoning.is_some_and(|zoning| is_wrong(&zoning, |key| key.path == "effective", sink));
        let run = document.element(crate::schema::section("run"));
        Holes {
            topology,
            duration: run.is_some_and(|run| is_wrong(&run, |key| key.path == "duration", sink)),
            limits: nodes.iter().any(|list| list.iter().any(|w| is_wrong(&w.element, limits, sink))),
            faults: false,
        }
    }

    /// Returns whether names of nodes or links may be missing.
    pub fn in_topology(&self) -> bool {
        self.topology
    }

    /// Adds the faults, which are built last.
    pub fn with_faults(mut self, document: &Document, sink: &Sink) -> Holes {
        self.faults = sink.has_errors() && any_wrong(&document.list("fault"), |_| true, sink);
        self
    }

    /// Returns whether the problem may disappear once the errors in the text are corrected.
    /// `element` is the element of the problem.
    pub fn explain(&self, problem: &Problem, element: &Element<'_>, sink: &Sink) -> bool {
        let wrong = |which: fn(&Key) -> bool| is_wrong(element, which, sink);
        match problem.kind {
            ProblemKind::Unreachable | ProblemKind::NotZoned | ProblemKind::Masked => {
                self.topology || wrong(|key| key.path == "spread")
            }
            ProblemKind::NoTarget | ProblemKind::EmptyZone | ProblemKind::TooLarge => self.topology,
            ProblemKind::NoDisk => self.topology || self.limits,
            ProblemKind::LinkNotDown => self.topology || self.faults,
            ProblemKind::FaultOutsideRun => self.duration,
            ProblemKind::TimeOrder => {
                let by_run = matches!(problem.place.section, Section::Run | Section::Workload);
                self.duration && by_run || wrong(|key| matches!(key.kind, Kind::Time))
            }
            ProblemKind::BadTime => self.duration && problem.place.key == "sample_interval",
            ProblemKind::BadSize => self.limits || wrong(|key| matches!(key.kind, Kind::Size { .. } | Kind::Sizes)),
            ProblemKind::BadExpectation => wrong(|key| matches!(key.kind, Kind::Bound)),
            _ => false,
        }
    }
}

/// Returns whether the key determines the ends of a link. Other keys, such as the rate, do not
/// affect the topology.
fn joins(key: &Key) -> bool {
    matches!(key.kind, Kind::Pattern | Kind::Patterns) || ["count", "spread"].contains(&key.path)
}

fn any_wrong(elements: &[Element<'_>], chosen: fn(&Key) -> bool, sink: &Sink) -> bool {
    elements.iter().any(|e| sink.has_within(&e.header) || is_wrong(e, chosen, sink))
}

/// Returns whether an error is reported in the value of one of the chosen keys.
fn is_wrong(element: &Element<'_>, chosen: impl Fn(&Key) -> bool, sink: &Sink) -> bool {
    let mut keys = element.def.keys.iter().filter(|key| chosen(key) && element.is_given(key.path));
    keys.any(|key| sink.has_within(&element.origin(key.path)))
}
