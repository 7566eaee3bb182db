//! Virtual links of Fibre Channel over Ethernet (FC-BB-6) in a simulation.

use super::ethernet::EthernetLink;
use super::fcip::FcipTunnel;

/// Smallest payload of Ethernet frames that carries every frame of Fibre Channel, in bytes: the
/// FCoE header 14, the frame header 24, the data field 2,112, CRC 4 and EOF 4 (FC-BB-6).
pub const FCOE_MTU: u16 = 2_158;
/// Bytes of an FCoE frame from the destination address to the FCS beside those from SOF to EOF on a
/// line of Fibre Channel: addresses 12, type 2, version and reserved bytes 13, SOF 1 instead of 4,
/// EOF with reserved bytes 4 instead of 4, FCS 4.
pub const FCOE_OVERHEAD_BYTES: u16 = 28;
/// Bytes of a VLAN tag.
pub const TAG_BYTES: u16 = 4;
/// Frames of one virtual link that wait in the Ethernet port of their sender.
pub const FCOE_QUEUE_FRAMES: u16 = 16;
/// Receive buffer at each end of a virtual link beside the headroom, in bytes, unless the lab sets
/// it.
pub const FCOE_BUFFER_BYTES: u64 = 65_536;

/// Virtual link between two Ethernet interfaces: of a VN_Port and a VF_Port, or of two VE_Ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualLink {
    /// VLAN of its frames; `None`: no tag.
    pub vlan: Option<u16>,
    /// Priority of its frames.
    pub priority: u8,
    /// True if the interfaces at both ends use PFC for the priority: each sends pauses when its
    /// receive buffer fills, and obeys those of the other end. False for FCIP.
    pub pfc: bool,
    /// Receive buffer at each end, in bytes; `None`: [`FCOE_BUFFER_BYTES`] and the headroom.
    pub buffer_bytes: Option<u64>,
    /// TCP carries the frames instead (FCIP), which use neither a VLAN nor PFC.
    pub fcip: Option<FcipTunnel>,
}

impl VirtualLink {
    /// Length from the destination address to the FCS of a frame that has this length from SOF to
    /// EOF on a line of Fibre Channel, in bytes.
    pub fn frame_bytes(&self, fc_bytes: u16) -> u16 {
        fc_bytes + FCOE_OVERHEAD_BYTES + if self.has_tag() { TAG_BYTES } else { 0 }
    }

    /// True if frames have a tag. A priority needs one.
    pub fn has_tag(&self) -> bool {
        self.vlan.is_some() || self.priority != 0
    }

    /// Part of the receive buffer that frames fill after a pause was sent over an Ethernet link, in
    /// bytes, with the frame that passes the threshold.
    pub fn headroom_bytes(link: &EthernetLink) -> u64 {
        link.headroom_bytes(link.mtu) + u64::from(link.mtu)
    }

    /// Receive buffer at an end whose interface has this Ethernet link, in bytes.
    pub fn buffer_at(&self, link: &EthernetLink) -> u64 {
        self.buffer_bytes.unwrap_or_else(|| FCOE_BUFFER_BYTES + VirtualLink::headroom_bytes(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_has_the_length_of_the_standard() {
        let link = VirtualLink { vlan: Some(100), priority: 3, pfc: true, buffer_bytes: None, fcip: None };
        // Header 14, tag 4, FCoE 14, FC header 24, data 2,112, CRC 4, EOF 4, FCS 4.
        assert_eq!(link.frame_bytes(2_112 + 36), 2_180);
        // With preamble and gap, a data field of 2,048 bytes has 0.95880 of the line.
        let share = 2_048.0 / f64::from(link.frame_bytes(2_048 + 36) + 20);
        assert!((share - 0.958_80).abs() < 0.000_01, "{share}");
    }
}
