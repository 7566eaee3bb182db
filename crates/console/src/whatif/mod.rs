//! Simulations of single failures, for `sanloom whatif`: [`failure`], [`trial`].

pub mod failure;
pub mod trial;

/// Result of a study that has no failure to simulate.
pub const NO_FAILURES: &str = "The lab has no element of these kinds, so no failure was simulated.";
