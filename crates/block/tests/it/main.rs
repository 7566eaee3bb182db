//! Integration tests of `sanloom-block`, one module per topic.

mod memory;
mod parity;
