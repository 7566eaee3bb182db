//! Code that several commands share: exit codes, arguments, progress bars, tables, HTML, CSV and
//! JSON.
//!
//! The commands are in `sanloom` (the product) and `sanloom-bench` (measurement). This crate
//! depends on neither.

pub mod chap;
pub mod endpoint;
pub mod exit;
pub mod gate;
pub mod hash;
pub mod input;
pub mod interrupt;
pub mod machine;
pub mod metric;
pub mod node;
pub mod output;
pub mod outputs;
pub mod paced;
pub mod pool;
pub mod quantity;
pub mod remedy;
pub mod report;
pub mod run;
pub mod simulation;
pub mod sweep;
pub mod threads;
pub mod whatif;
pub mod zones;
