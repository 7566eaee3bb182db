//! Integration tests of `sanloom-storage`, one module per topic.
