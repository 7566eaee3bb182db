//! Fibre Channel machines, sans-IO, and the values that configure a storage area network.
//!
//! This crate never reads a clock, never does I/O, uses no hidden randomness and starts no threads.
//! Two drivers call the same machines: the simulator with virtual time and the live runtime with
//! real sockets.
//!
//! # The contract of a control machine
//!
//! 1. `handle(now, input)` processes one event. It never blocks. Misbehaviour of a peer leads to
//!    output and a counter, never to a panic.
//! 2. `poll_output()` must be drained until `None` after every `handle`.
//! 3. `poll_timeout()` returns the time at which to pass `Input::Timeout` if no other input comes
//!    first. An early `Timeout` is harmless.
//! 4. `now` never decreases. Randomness comes from a generator that is passed at construction.

#![warn(missing_docs)]

#[macro_use]
mod variants;

pub mod alarms;
pub mod arbitrated_loop;
pub mod config;
pub mod dcbx;
pub mod domain;
pub mod eport;
pub mod exchange;
pub mod fabric;
pub mod fabric_switch;
pub mod fcip;
pub mod fcp;
pub mod fip;
pub mod fspf;
pub mod ils;
pub mod isolation;
pub mod names;
pub mod nport;
pub mod san;
pub mod switch;
pub mod zoning;
