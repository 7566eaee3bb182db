//! Integration tests of `sanloom-bench`, one module per topic.

mod campaign;
mod fabric_bed;
mod fluid;
mod mixed_labs;
mod npiv_bed;
mod random_labs;
mod survivable;
mod survivable_sessions;
mod threads;
