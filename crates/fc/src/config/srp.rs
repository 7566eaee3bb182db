//! SRP targets on RoCEv2: [`SrpPortals`].

use core::net::SocketAddrV4;

/// SRP target of a storage system on RoCEv2, in a live run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SrpPortals {
    /// Addresses, each with a port of the RDMA connection manager. Packets go to UDP port 4791.
    pub portals: Vec<SocketAddrV4>,
    /// Initiator ports that may log in, each an identifier extension and a GUID; empty for all.
    pub initiators: Vec<[u8; 16]>,
}

/// Returns the target port of a storage system with this node name: identifier extension, then GUID
/// of the I/O controller. Both are the node name, as the Linux target has its GUID as both.
pub fn srp_target_port(wwnn: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&wwnn.to_be_bytes());
    id[8..].copy_from_slice(&wwnn.to_be_bytes());
    id
}
