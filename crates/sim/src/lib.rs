//! sim
pub mod net;
pub mod rng;
