//! Integration tests of `sanloom-storage`, one module per topic.

mod disk_traces;
mod support;
