//! The `sanloom` command.

fn main() {}
