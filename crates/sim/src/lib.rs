//! A frame-level simulator of storage area networks in virtual time.
//!
//! [`net`] moves frames, [`world`] puts the protocol machines of `sanloom-core`, hosts and storage around it. Time is an
//! integer number of picoseconds; floats appear only where samples are drawn and where results are printed.

pub mod capture;
pub mod fabric_bed;
pub mod host;
pub mod net;
pub mod npiv_bed;
pub mod random_lab;
pub mod replicate;
pub mod results;
pub mod rng;
pub mod run;
pub mod stats;
pub mod trace;
pub mod view;
pub mod workload;
pub mod world;
