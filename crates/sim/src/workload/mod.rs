//! Workloads (document 001, section 2.1): which requests come, when, how long, and where.
//!
//! A request has five dimensions: its arrival, its size, its place, whether places repeat, and its direction. One
//! [`Stream`] draws all of them for one workload on one host, each from a generator of its own.

mod arrivals;
mod location;
mod size;
mod stream;
mod zipf;

pub use arrivals::Arrivals;
pub use location::Locations;
pub use size::Sizes;
pub use stream::{Request, Stream};
pub use zipf::Zipf;
