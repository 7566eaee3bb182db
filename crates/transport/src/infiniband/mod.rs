//! InfiniBand: fabrics and their subnet manager, links and lanes, reliable and unreliable transport.
//!
//! - [`fabric`] is the graph of switches and channel adapters. [`manager`] brings it up: discovery,
//!   LIDs, forwarding tables ([`routing`]) and partitions ([`partition`]).

pub mod arbitration;
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
