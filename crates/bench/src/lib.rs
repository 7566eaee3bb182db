//! Measurement: benches, reproductions of the source documents, ceilings, load generators, test
//! beds and random labs.
//!
//! Product crates hold the product. Nothing depends on this crate but the binary, which shows its
//! verbs, and tests.

pub mod bench;
pub mod ceiling;
pub mod disk;
pub mod fabric_bed;
pub mod fluid;
mod live_lab;
pub mod load;
pub mod npiv_bed;
mod process;
mod quote;
pub mod random_lab;
pub mod reproduce;
mod ring;
