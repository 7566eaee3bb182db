//! The live runtime: the switches and the storage of a lab on real Ethernet ports, with the real clock.
//!
//! Start at [`ports`] for what carries frames.

pub mod clock;
pub mod frame;
pub mod ports;
pub mod sys;
