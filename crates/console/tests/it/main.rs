//! Integration tests of `sanloom-console`, one module per topic.

mod report;
