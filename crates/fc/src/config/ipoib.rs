//! IP over InfiniBand (RFC 4391, RFC 4755), and hosts that route between it and Ethernet.

use super::infiniband::InfinibandNode;
use super::units::Picos;
use std::collections::BTreeMap;

/// Bytes before the IP header of a packet on InfiniBand: type 16 bits, reserved 16 bits (RFC 4391,
/// section 6).
pub const IPOIB_HEADER_BYTES: u16 = 4;
/// Largest MTU of the connected mode (Linux: 65,535 bytes of an IP packet in whole words).
pub const MAX_CONNECTED_MTU: u16 = 65_520;
/// Smallest MTU of an interface (RFC 791).
pub const MIN_IP_MTU: u16 = 576;
/// Default partition: the low 15 bits of a P_Key (IBA volume 1, 10.9.1.2).
pub const DEFAULT_PARTITION: u16 = 0x7fff;

named_variants! {
    /// Transport of an IPoIB interface.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub enum IpoibMode {
        /// Unreliable datagrams: a packet of IP is one of InfiniBand.
        #[default]
        Datagram => "datagram",
        /// A reliable connection for each pair of interfaces, if both have this mode.
        Connected => "connected",
    }
}

/// IP of a host or storage system at its InfiniBand interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipoib {
    /// Transport.
    pub mode: IpoibMode,
    /// Largest packet of IP in bytes; `None`: the largest of the mode.
    pub mtu: Option<u16>,
    /// Partition: the low 15 bits of the P_Key, of which the interfaces are full members.
    pub partition: u16,
    /// Service level of the packets that the interfaces send; `None`: that of the SRP initiator of
    /// the host, and 0 at a storage system.
    pub level: Option<u8>,
}

impl Default for Ipoib {
    fn default() -> Ipoib {
        Ipoib { mode: IpoibMode::Datagram, mtu: None, partition: DEFAULT_PARTITION, level: None }
    }
}

impl Ipoib {
    /// Largest MTU of the mode in a subnet whose packets have up to `subnet_mtu` bytes of payload.
    pub const fn largest_mtu(&self, subnet_mtu: u16) -> u16 {
        match self.mode {
            IpoibMode::Datagram => subnet_mtu.saturating_sub(IPOIB_HEADER_BYTES),
            IpoibMode::Connected => MAX_CONNECTED_MTU,
        }
    }

    /// MTU of the interfaces.
    pub fn mtu(&self, subnet_mtu: u16) -> u16 {
        self.mtu.unwrap_or(self.largest_mtu(subnet_mtu))
    }
}

/// A host that routes packets of IP between its Ethernet and its IPoIB interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpRouter {
    /// Time that a packet occupies the router.
    pub per_packet: Picos,
    /// Most packets that wait for it at each interface; further ones are dropped.
    pub queue: u32,
}

impl Default for IpRouter {
    /// The queue is that of a Linux device (`net.core.netdev_max_backlog`).
    fn default() -> IpRouter {
        IpRouter { per_packet: Picos::from_us(1), queue: 1_000 }
    }
}

/// IPoIB of a whole lab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IpoibOfLab {
    /// Hosts and storage systems with IPoIB.
    pub nodes: BTreeMap<InfinibandNode, Ipoib>,
    /// Routers, by index of their host.
    pub routers: BTreeMap<u16, IpRouter>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_carries_the_path_mtu_without_its_header_and_a_connection_64_kib() {
        let of = |mode| Ipoib { mode, ..Ipoib::default() };
        assert_eq!(of(IpoibMode::Datagram).mtu(2_048), 2_044);
        assert_eq!(of(IpoibMode::Datagram).mtu(4_096), 4_092);
        assert_eq!(of(IpoibMode::Connected).mtu(2_048), 65_520);
        let given = Ipoib { mtu: Some(1_500), ..Ipoib::default() };
        assert_eq!(given.mtu(2_048), 1_500);
    }
}
