//! Responder side of VLAN discovery: [`VlanResponder`].

use sanloom_wire::ether::{MAX_VLAN, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};

/// Responder to VLAN requests (FC-BB, FIP VLAN discovery).
///
/// The requests are untagged. If all fabrics of a port are in VLANs, the port has a separate
/// responder besides its FCFs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanResponder {
    mac: MacAddr,
    vlans: Vec<u16>,
    /// Multicast destination of the requests.
    group: MacAddr,
    notification: Operation,
    flags: u16,
}

impl VlanResponder {
    /// Returns a responder that lists these VLANs, 1 to 4094 each, in this order. An empty list
    /// disables it.
    pub fn new(mac: MacAddr, vlans: Vec<u16>) -> VlanResponder {
        debug_assert!(vlans.iter().all(|vlan| (1..=MAX_VLAN).contains(vlan)));
        let (group, notification) = (MacAddr::ALL_FCFS, Operation::VLAN_NOTIFICATION);
        VlanResponder { mac, vlans, group, notification, flags: flag::FCF }
    }

    /// Returns a responder for a station of a segment without FCF; it lists the VLANs that carry
    /// VN2VN.
    pub fn vn2vn(mac: MacAddr, vlans: Vec<u16>) -> VlanResponder {
        let (group, notification) = (MacAddr::ALL_VN2VN_ENODES, Operation::VN2VN_VLAN_NOTIFICATION);
        VlanResponder { group, notification, flags: 0, ..VlanResponder::new(mac, vlans) }
    }

    /// Reply to a packet, if it is a VLAN request of an ENode with a reply address.
    pub fn answer(&self, to: MacAddr, packet: &Fip) -> Option<FipFrame> {
        let for_us = to == self.group || to == self.mac;
        if packet.operation != Operation::VLAN_REQUEST || packet.has(flag::FCF) || !for_us || self.vlans.is_empty() {
            return None;
        }
        let requester = packet.mac().filter(|mac| mac.is_station())?;
        let vlans = self.vlans.iter().map(|vlan| Descriptor::Vlan(*vlan));
        let descriptors = std::iter::once(Descriptor::Mac(self.mac)).chain(vlans).collect();
        let packet = Fip { operation: self.notification, flags: self.flags, descriptors };
        Some(FipFrame { to: requester, from: self.mac, padded_bytes: 0, packet })
    }
}
