//! Integration tests of `sanloom-live`, one module per topic.

mod fcip;
mod listeners;
mod nbd;
mod ports;
mod recordings;
mod state;
mod storage;
