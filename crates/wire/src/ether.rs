//! The Ethernet II header (IEEE 802.3) with an optional 802.1Q tag, and the addresses of FCoE
//! (FC-BB: FIP group addresses and FPMAs).

use crate::bytes::{Put, fixed, u16_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::id::FcId;
use std::fmt;
use std::str::FromStr;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

/// FC-MAP: the upper 24 bits of the fabric-provided addresses (FPMAs) of a fabric. The FC_ID forms
/// the lower 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FcMap(pub [u8; 3]);

/// EtherType: the type of the payload after the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EtherType(pub u16);

codes!(EtherType, u16, "EtherType" {
    IPV4 = 0x0800, "IPv4";
    VLAN = 0x8100, "802.1Q tag";
    IPV6 = 0x86dd, "IPv6";
    MAC_CONTROL = 0x8808, "MAC control";
    LLDP = 0x88cc, "LLDP";
    FCOE = 0x8906, "FCoE";
    FIP = 0x8914, "FIP";
});

/// 802.1Q tag control information, which follows the tag's EtherType.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct VlanTag {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095. The value 0 marks a frame that has a priority but no VLAN.
    pub vlan: u16,
}

/// Addresses, tag and EtherType of an Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EtherHeader {
    /// Destination address.
    pub to: MacAddr,
    /// Source address.
    pub from: MacAddr,
    /// Outermost tag, if the frame is tagged.
    pub tag: Option<VlanTag>,
    /// Type of the payload after the header.
    pub ether_type: EtherType,
}

/// Length of the header without a tag, in bytes.
pub const ETHER_BYTES: usize = 14;
/// Length of the header with a tag, in bytes.
pub const TAGGED_BYTES: usize = ETHER_BYTES + TAG_BYTES;
/// Length of a tag with its EtherType, in bytes.
const TAG_BYTES: usize = 4;
/// Shortest frame on a real wire, in bytes, without its check sequence. Shorter frames are padded
/// with zeros.
pub const MIN_FRAME_BYTES: usize = 60;
/// Largest VLAN that may be used; 0 and 4095 are reserved.
pub const MAX_VLAN: u16 = 4094;

impl MacAddr {
    /// The zero address. An ENode proposes it to leave the choice of an address to the fabric.
    pub const ZERO: MacAddr = MacAddr([0; 6]);
    /// Broadcast to all stations.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// All FCoE entities.
    pub const ALL_FCOE: MacAddr = MacAddr([0x01, 0x10, 0x18, 0x01, 0x00, 0x00]);
    /// All ENodes: multicast advertisements of FCFs.
    pub const ALL_ENODES: MacAddr = MacAddr([0x01, 0x10, 0x18, 0x01, 0x00, 0x01]);
    /// All FCFs: requests of ENodes, and advertisements between FCFs.
    pub const ALL_FCFS: MacAddr = MacAddr([0x01, 0x10, 0x18, 0x01, 0x00, 0x02]);
    /// All VN2VN ENodes: probes, claims and beacons.
    pub const ALL_VN2VN_ENODES: MacAddr = MacAddr([0x01, 0x10, 0x18, 0x01, 0x00, 0x04]);
    /// All ENodes of a point-to-point link.
    pub const ALL_PT2PT_ENODES: MacAddr = MacAddr([0x01, 0x10, 0x18, 0x01, 0x00, 0x05]);
    /// F_Port controller of fabrics without FIP.
    pub const PRE_FIP_FCF: MacAddr = MacAddr([0x0e, 0xfc, 0x00, 0xff, 0xff, 0xfe]);
    /// Nearest bridge: destination of LLDP frames, which bridges never forward.
    pub const NEAREST_BRIDGE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);

    /// The fabric-provided address of a VN_Port.
    pub const fn fpma(map: FcMap, id: FcId) -> MacAddr {
        let ([a, b, c], [d, e, f]) = (map.0, id.to_bytes());
        MacAddr([a, b, c, d, e, f])
    }
    /// Upper 24 bits: the FC-MAP if this is an FPMA.
    pub const fn fc_map(self) -> FcMap {
        FcMap([self.0[0], self.0[1], self.0[2]])
    }
    /// Lower 24 bits: the FC_ID if this is an FPMA.
    pub const fn fc_id(self) -> FcId {
        FcId::from_bytes([self.0[3], self.0[4], self.0[5]])
    }
    /// True for a group address.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
    /// True for the address of one station: neither zero nor a group.
    pub fn is_station(self) -> bool {
        !self.is_group() && self != MacAddr::ZERO
    }
    /// The address as a number below 2^48.
    pub fn to_u64(self) -> u64 {
        self.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
    /// Address from the low 48 bits of `number`.
    pub const fn from_u64(number: u64) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }
}

impl FcMap {
    /// FC-MAP of a fabric that has no configured one.
    pub const DEFAULT: FcMap = FcMap([0x0e, 0xfc, 0x00]);
    /// FC-MAP of VN2VN, where the upper byte of each FC_ID is zero.
    pub const VN2VN: FcMap = FcMap([0x0e, 0xfd, 0x00]);

    /// True if the map can form station addresses: it is not zero, and the group bit 0x010000 is
    /// clear.
    pub const fn is_usable(self) -> bool {
        let [a, b, c] = self.0;
        a & 1 == 0 && (a | b | c) != 0
    }
}

impl VlanTag {
    const DROP_ELIGIBLE: u16 = 0x1000;

    /// Decodes tag control information, either from a frame or from a kernel that stripped the tag
    /// and reports it separately.
    pub fn from_bits(bits: u16) -> VlanTag {
        VlanTag { priority: (bits >> 13) as u8, drop_eligible: bits & VlanTag::DROP_ELIGIBLE != 0, vlan: bits & 0x0fff }
    }

    /// Tag control information: priority, drop eligible, VLAN. Priority is cut to 3 bits and the
    /// VLAN to 12 bits.
    pub fn to_bits(self) -> u16 {
        let drop_eligible = if self.drop_eligible { VlanTag::DROP_ELIGIBLE } else { 0 };
        u16::from(self.priority & 7) << 13 | drop_eligible | self.vlan & 0x0fff
    }
}

impl EtherHeader {
    /// Reads the header of a frame. Returns the header and the bytes after it.
    pub fn parse(frame: &[u8]) -> Result<(EtherHeader, &[u8]), ParseError> {
        let b = fixed::<ETHER_BYTES>("Ethernet header", frame)?;
        let to = MacAddr([b[0], b[1], b[2], b[3], b[4], b[5]]);
        let from = MacAddr([b[6], b[7], b[8], b[9], b[10], b[11]]);
        let ether_type = EtherType(u16_at(b, 12));
        if ether_type != EtherType::VLAN {
            return Ok((EtherHeader { to, from, tag: None, ether_type }, &frame[ETHER_BYTES..]));
        }
        let b = fixed::<TAGGED_BYTES>("802.1Q tag", frame)?;
        let tag = Some(VlanTag::from_bits(u16_at(b, 14)));
        Ok((EtherHeader { to, from, tag, ether_type: EtherType(u16_at(b, 16)) }, &frame[TAGGED_BYTES..]))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&self.from.0);
        if let Some(tag) = self.tag {
            out.put_u16(EtherType::VLAN.0);
            out.put_u16(tag.to_bits());
        }
        out.put_u16(self.ether_type.0);
    }

    /// Number of bytes that [`emit`](Self::emit) appends; also the offset of the payload.
    pub const fn encoded_len(&self) -> usize {
        match self.tag {
            Some(_) => TAGGED_BYTES,
            None => ETHER_BYTES,
        }
    }

    /// VLAN of the frame. `None` if the frame is untagged or its tag has VLAN 0, which carries a
    /// priority only.
    pub fn vlan(&self) -> Option<u16> {
        self.tag.map(|tag| tag.vlan).filter(|vlan| *vlan != 0)
    }
}

/// Replaces both addresses in the header of a frame; all other bytes stay unchanged. A frame too
/// short for two addresses is left as it is.
pub fn readdress(frame: &mut [u8], to: MacAddr, from: MacAddr) {
    if let Some(addresses) = frame.first_chunk_mut::<12>() {
        addresses[..6].copy_from_slice(&to.0);
        addresses[6..].copy_from_slice(&from.0);
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacAddr({self})")
    }
}

impl fmt::Display for FcMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}")
    }
}

impl fmt::Debug for FcMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FcMap({self})")
    }
}

/// Parses `N` pairs of hex digits with colons between them.
fn colon_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part =
            parts.next().filter(|part| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

impl FromStr for MacAddr {
    type Err = BadMac;

    /// Parses six pairs of hex digits with colons between them.
    fn from_str(text: &str) -> Result<MacAddr, BadMac> {
        colon_bytes(text).map(MacAddr).ok_or(BadMac)
    }
}

impl FromStr for FcMap {
    type Err = BadFcMap;

    /// Parses three pairs of hex digits with colons between them.
    fn from_str(text: &str) -> Result<FcMap, BadFcMap> {
        colon_bytes(text).map(FcMap).ok_or(BadFcMap)
    }
}

/// Parse error of a [`MacAddr`]: the text is not six pairs of hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an Ethernet address is six bytes in hex, such as 02:fc:f0:00:00:01")]
pub struct BadMac;

/// Parse error of an [`FcMap`]: the text is not three pairs of hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an FC-MAP is three bytes in hex, such as 0e:fc:00")]
pub struct BadFcMap;
