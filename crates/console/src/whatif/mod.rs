//! Simulations of single failures, for `sanloom whatif`: [`failure`], [`trial`].

pub mod failure;
pub mod trial;
