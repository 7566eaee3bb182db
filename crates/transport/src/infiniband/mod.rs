//! InfiniBand: fabrics and their subnet manager, links and lanes, transports.
//!
//! - [`rate`], [`packet`], [`credit`] and [`arbitration`] describe a link and its virtual lanes.
//! - [`rc`] and [`ud`] are transports without payload.
//! - [`cm`] is the connection manager of a live end point that accepts connections.
//! - [`fabric`] is the graph of switches and channel adapters. [`manager`] brings it up: discovery,
//!   LIDs, forwarding tables ([`routing`]) and partitions ([`partition`]).

pub mod arbitration;
pub mod cm;
pub mod credit;
pub mod discovery;
pub mod fabric;
pub mod lids;
pub mod manager;
pub mod packet;
pub mod partition;
pub mod rate;
pub mod rc;
pub mod routing;
pub mod ud;
