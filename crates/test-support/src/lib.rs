//! Helpers for the tests of several crates: foreign programs, browsers, processes, guests,
//! captures, and waits with time limits.

pub mod alone;
pub mod browser;
pub mod guest;
pub mod ports;
pub mod process;
pub mod programs;
pub mod qemu_io;
pub mod samples;
pub mod started;
pub mod tgt;
pub mod tshark;
pub mod wait;

pub use sanloom_test_macros::needs;

/// Fails a test whose peer is missing; the attribute [`macro@needs`] inserts the call.
///
/// # Panics
/// Always.
#[track_caller]
pub fn peer_is_missing(reason: &str) {
    panic!("{reason}, but SANLOOM_REQUIRE_PEERS is set");
}
