//! Analysis of the links of a lab: oversubscription, single points of failure, numbers of paths,
//! and a drawing.
//!
//! A path counts if zones and masks permit it when the lab starts, over links that are neither dark
//! nor isolated then: [`Lab::permitted_pairs`](sanloom_fc::san::Lab::permitted_pairs). The report
//! covers each pair of host and storage that a workload uses. Without workloads it covers each pair
//! that zones and masks permit, and without either every pair. If masks show the LUNs of a pair to
//! different ports, the LUNs with the fewest paths count. Hosts with the same links, workloads and
//! permitted partners are one class, so the cost depends on the number of different nodes, not on
//! the number of nodes.

mod chassis;
mod classes;
mod cut;
mod disjoint;
mod durability;
mod gateways;
mod graph;
mod layout;
mod lints;
mod loops;
mod names;
mod network;
mod part;
mod report;
mod sessions;
mod svg;
mod trunks;
mod verdict;
mod wires;

pub use chassis::{Chassis, chassis};
pub use cut::{HostLuns, Reach};
pub use durability::{Durability, is_unprotected};
pub use graph::graph;
pub(crate) use lints::{CODES, Limits, Lint, SUBJECTS};
pub use loops::LoopTimes;
pub use names::{compress, compress_all, fit};
pub use part::Part;
pub use report::{IslGroup, Paths, Report, SinglePoint, ZoneRange};
pub use sessions::SessionPaths;
pub use svg::{Marks, marked_svg, svg};
pub use verdict::PointGroup;

use sanloom_fc::san::Lab;

/// Report and lints of a lab that [`Lab::validate`] accepts. `isolated`: as for [`Report::of`].
pub(crate) fn examine(lab: &Lab, isolated: &[usize], limits: Limits) -> (Report, Vec<Lint>) {
    let (network, classes, report) = report::examine(lab, isolated);
    let lints = lints::all(lab, &network, &classes, &report, limits);
    (report, lints)
}
