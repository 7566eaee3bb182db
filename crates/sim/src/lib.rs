//! A frame-level simulator of storage area networks in virtual time.
//!
//! [`net`] moves frames. [`world`] adds the protocol machines of `sanloom-fc` and `sanloom-scsi`,
//! hosts and storage. Time is an integer number of picoseconds. Floats appear only where samples
//! are drawn and results are printed.

#![allow(missing_docs, reason = "a comment that repeats the name is left out")]

mod agenda;
pub mod capture;
pub mod fcip;
pub(crate) mod fip;
pub mod host;
pub mod infiniband;
pub mod iscsi;
pub mod lldp;
pub mod net;
pub mod parallel;
mod precision;
pub mod recovery;
pub mod replicate;
pub mod requests;
pub mod results;
pub mod rng;
pub mod run;
pub mod srp;
pub mod stats;
pub mod tcp;
pub mod trace;
pub mod view;
pub mod workload;
pub mod world;
