//! Conversion between wire bytes and values, for Fibre Channel and the protocols around it.
//!
//! This crate has no state, no time, no I/O, and no dependency on the other crates of sanloom. A
//! byte view shows any frame, even a malformed one. Values hold the supported structures, and an
//! unknown code keeps its number. Every multi-byte field on the wire is big-endian, except the CRC
//! (least-significant byte first).
//!
//! Each file holds one structure, always in the same order: the value and its meaning, `parse` and
//! `emit`, printing, tests.

#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod arbitrated_loop;
pub mod bls;
mod bytes;
pub mod cdb;
mod codes;
pub mod crc;
pub mod ct;
pub mod delimiter;
pub mod els;
pub mod error;
pub mod ether;
pub mod fcip;
pub mod fcoe;
pub mod fcp;
pub mod fcs;
pub mod fdmi;
mod field;
pub mod fip;
pub mod frame;
pub mod fzs;
pub mod header;
pub mod id;
pub mod infiniband;
pub mod iscsi;
pub mod link_control;
pub mod lldp;
pub mod login;
pub mod lun;
pub mod message;
pub mod nbd;
pub mod ns;
pub mod pattern;
pub mod pause;
pub mod pcapng;
pub mod scsi;
pub mod sense;
pub mod srp;
pub mod sw_ils;
pub mod tcp;
mod zone_name;

pub use bytes::Put;
pub use error::ParseError;
pub use frame::{Frame, Payload};
pub use header::{FCtl, FcType, Header, RCtl};
pub use id::{FcId, Wwnn, Wwpn};
pub use message::{Message, ReplyTo};
