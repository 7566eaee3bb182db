//! Workloads (the SANSim paper, section 2.1): arrival time, size and location of requests.
//!
//! A request has five dimensions: arrival, size, location, repetition of locations, and direction.
//! One [`Stream`] draws all of them for one workload on one host, each from its own generator.

mod arrivals;
mod location;
mod replay;
mod size;
mod stream;
mod times;
mod zipf;

pub use arrivals::Arrivals;
pub use location::Locations;
pub use replay::{ReplayCounts, TraceStream};
pub use size::Sizes;
pub use stream::{Request, RequestOp, Stream};
pub use times::sample_ps;
pub use zipf::Zipf;
