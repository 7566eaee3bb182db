//! The live runtime: the switches and the storage of a lab on real Ethernet ports, with the real
//! clock.
//!
//! - [`runtime`]: the main loop and its parts.
//! - [`ports`]: drivers that carry frames.
//! - [`storage`]: the disks.
//! - [`iscsi`]: access to the disks over TCP.
//! - [`srp`]: access to the disks over RoCEv2.
//! - [`volumes`]: virtual disks on the LUNs of other storage systems.
//! - [`state`]: further state that survives a crash.
//! - [`record`]: recordings of machine inputs and outputs.
//! - [`initiator`]: a host in user space.
//! - [`nbd`]: access of programs to the host's disks.

pub mod capture;
pub mod clock;
pub mod control;
pub mod driven;
mod exports;
pub mod frame;
pub mod http;
pub mod initiator;
pub mod iscsi;
pub mod iscsi_initiator;
pub mod lldp;
pub mod nbd;
pub mod offload;
pub mod poll;
pub mod ports;
mod ready;
pub mod record;
mod request_trace;
pub mod runtime;
pub mod sequence;
pub mod session;
pub mod srp;
pub mod state;
pub mod storage;
pub mod sys;
pub mod volumes;
