//! Out-of-band virtualization: hosts hold a map of the extents of virtual disks and send their
//! commands straight to the back ends. A metadata server gives out the map and changes it.
//!
//! ```text
//!   HostMap --Lookup-----> Server        a miss: the host does not know the extent
//!           <----Grant----
//!           <---Recall----               the extent moves: epoch n
//!           --Acknowledge->              no command of the host uses the old place
//!                                        copy, then the map of epoch n is in force
//! ```
//!
//! A move of an extent stalls it: from the recall until the data are copied, the server holds
//! lookups of the extent. A host that does not acknowledge within [`ServerConfig::fence_after`] is
//! fenced: the back ends refuse its commands. It discards its map, waits for its commands in
//! flight, and registers again before it looks up anything.
//!
//! Both machines follow the contract of this crate. The network may lose and repeat messages, but
//! keeps the order between a server and a host.

mod host;
mod server;

pub use host::{HostConfig, HostMap, HostOutput};
pub use server::{Server, ServerConfig, ServerCount, ServerInput, ServerLun, ServerOutput};

use crate::map::LunBlock;

/// Number of an extent of the virtual disks of one server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Extent(pub u32);

/// Number of a host at its server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u16);

/// Message of a host to its server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Request {
    /// The host needs the place of an extent.
    Lookup(Extent),
    /// No command of the host uses the place that the recall of this epoch named.
    Acknowledge {
        /// Epoch of the recall.
        epoch: u64,
    },
    /// The host has no map and no command in flight.
    Register,
}

/// Message of a server to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reply {
    /// Place of an extent.
    Grant {
        /// The extent.
        extent: Extent,
        /// Its first block.
        place: LunBlock,
        /// Epoch of the map.
        epoch: u64,
    },
    /// The extent is about to move.
    Recall {
        /// The extent.
        extent: Extent,
        /// Epoch of the map with the new place.
        epoch: u64,
    },
    /// The host is fenced, so its map is void.
    Fenced,
    /// The back ends accept commands of the host again.
    Registered,
}
