//! sim
pub mod net;
pub mod rng;
pub mod host;
pub mod stats;
pub mod workload;
