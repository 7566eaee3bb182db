//! What the links of a lab amount to: oversubscription, single points of failure, numbers of paths, and a drawing.
//!
//! Only cabling counts here, without the links that their switches will isolate: a pair of host and storage is looked at if a workload uses it (if there are no workloads,
//! every pair is), and zones do not close paths. Hosts with the same links and workloads are one class, so the cost
//! depends on the number of different nodes, not on their number.

mod classes;
mod layout;
mod names;
mod network;
mod report;
mod svg;
mod text;

pub use names::compress;
pub use report::{IslGroup, Part, Paths, Report, SinglePoint};
pub use svg::svg;
