//! Integration tests of `sanloom-live`, one module per topic.

mod nbd;
mod ports;
mod recordings;
mod state;
mod storage;
