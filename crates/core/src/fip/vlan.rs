//! VLAN discovery at the FCF's end: [`VlanResponder`].

use sanloom_wire::ether::{MAX_VLAN, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation, flag};

/// Answers VLAN requests (FC-BB, FIP VLAN discovery). They come untagged, so a port whose fabrics are all in VLANs has one of
/// its own beside its FCFs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanResponder {
    mac: MacAddr,
    vlans: Vec<u16>,
}

impl VlanResponder {
    /// Names these VLANs, 1 to 4094 each, in this order; without any it stays silent.
    pub fn new(mac: MacAddr, vlans: Vec<u16>) -> VlanResponder {
        debug_assert!(vlans.iter().all(|vlan| (1..=MAX_VLAN).contains(vlan)));
        VlanResponder { mac, vlans }
    }

    /// The answer to a packet, if it is a VLAN request of an ENode that says where the answer goes.
    pub fn answer(&self, to: MacAddr, packet: &Fip) -> Option<FipFrame> {
        let for_us = to == MacAddr::ALL_FCFS || to == self.mac;
        if packet.operation != Operation::VLAN_REQUEST || packet.has(flag::FCF) || !for_us || self.vlans.is_empty() {
            return None;
        }
        let asker = packet.mac().filter(|mac| mac.is_station())?;
        let vlans = self.vlans.iter().map(|vlan| Descriptor::Vlan(*vlan));
        let descriptors = std::iter::once(Descriptor::Mac(self.mac)).chain(vlans).collect();
        let packet = Fip { operation: Operation::VLAN_NOTIFICATION, flags: flag::FCF, descriptors };
        Some(FipFrame { to: asker, from: self.mac, padded_bytes: 0, packet })
    }
}
