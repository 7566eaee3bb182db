//! The protocol machines of a storage area network, sans-IO, and the values that configure them.
//!
//! This crate never reads a clock, never does I/O, holds no hidden randomness and starts no threads. Two drivers call
//! the same machines: the simulator with virtual time and the live runtime with real sockets.
//!
//! # The contract of a control machine
//!
//! 1. `handle(now, input)`: one thing happened. It never blocks; a peer's misbehaviour becomes output and a counter,
//!    never a panic.
//! 2. `poll_output()`: drained until `None` after every `handle`.
//! 3. `poll_timeout()`: when to come back with `Input::Timeout` if nothing happens before. Equal timeouts form FIFO
//!    lists, so it is O(1); an early `Timeout` is harmless.
//! 4. `now` never decreases. Randomness comes from a generator given at construction.

mod alarms;
pub mod config;
pub mod dcbx;
pub mod disk;
pub mod domain;
pub mod eport;
pub mod exchange;
pub mod fabric;
pub mod fabric_switch;
pub mod fcp;
pub mod fip;
pub mod fspf;
pub mod ils;
pub mod iscsi;
pub mod isolation;
pub mod map;
pub mod names;
pub mod nbd;
pub mod nport;
pub mod random;
pub mod scsi;
pub mod switch;
pub mod time;
pub mod volume;
pub mod zoning;
