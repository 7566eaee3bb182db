//! What the `sanloom` command is made of.

pub mod report;
