//! The live runtime: the switches and the storage of a lab on real Ethernet ports, with the real clock.
//!
//! Start at [`runtime`] for the whole, [`ports`] for what carries frames, [`storage`] for the disks, [`iscsi`] for their way over
//! TCP, [`volumes`] for virtual disks on the LUNs of others, [`state`] for what outlives a crash beside them, [`record`] for what machines are told and say, [`initiator`] for a host
//! in user space and [`nbd`] for the way of programs to its disks.

pub mod capture;
pub mod clock;
pub mod control;
mod exports;
pub mod frame;
pub mod http;
pub mod initiator;
pub mod iscsi;
pub mod lldp;
pub mod load;
pub mod nbd;
pub mod offload;
pub mod poll;
pub mod ports;
pub mod record;
pub mod runtime;
pub mod sequence;
pub mod state;
pub mod storage;
pub mod sys;
pub mod volumes;
