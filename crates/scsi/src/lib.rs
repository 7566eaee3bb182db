//! SCSI state machines without I/O: device server, disks, address maps, volumes, iSCSI and NBD.
//!
//! This crate never reads a clock, does no I/O, has no hidden randomness and starts no threads. Two
//! drivers call the same machines: the simulator with virtual time and the live runtime with real
//! sockets.
//!
//! # The contract of a control machine
//!
//! 1. `handle(now, input)` processes one event. It never blocks. A peer's misbehaviour becomes
//!    output and a counter, never a panic.
//! 2. `poll_output()` has to be drained until `None` after every `handle`.
//! 3. `poll_timeout()` returns the time at which the driver must pass `Input::Timeout` if no other
//!    event comes first. Equal time-outs form FIFO lists, so the call is O(1). An early `Timeout`
//!    is harmless.
//! 4. `now` never decreases. Randomness comes from a generator passed at construction.

#![warn(missing_docs)]

pub mod counters;
pub mod disk;
pub mod iscsi;
pub mod map;
pub mod nbd;
pub mod ordered;
pub mod out_of_band;
pub mod random;
pub mod scsi;
pub mod srp;
pub mod time;
pub mod volume;
