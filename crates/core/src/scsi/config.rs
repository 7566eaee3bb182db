//! What a target device consists of: ports, logical units, and who may see which.

use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// A target device: one storage system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceConfig {
    /// Node name of the storage system: the same through all its ports, so that a host recognises a unit.
    pub wwnn: Wwnn,
    /// Its ports, of any transport. The index is the port's number here; its relative port identifier is one more.
    pub ports: Vec<PortConfig>,
    /// Its logical units, which all ports share.
    pub units: Vec<UnitConfig>,
    /// Who sees which units.
    pub masking: Masking,
    /// Report unit attentions (SAM). Without, a device answers as if every host had been there before; the simulator's
    /// hosts rely on that.
    pub attentions: bool,
}

/// A port of a target device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Its name.
    pub name: PortName,
    /// Target port group, for asymmetric access. All ports of a group have the same state.
    pub group: u16,
}

/// Name of a target port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortName {
    /// Fibre Channel.
    Fcp(Wwpn),
    /// iSCSI: a portal group of a target.
    Iscsi {
        /// Name of the target.
        target: Box<str>,
        /// Target portal group tag.
        portal_group: u16,
    },
}

/// A logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitConfig {
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Refuse everything that would change the medium.
    pub read_only: bool,
    /// Report a volatile write cache: data is durable after FUA or SYNCHRONIZE CACHE only. Without, the driver makes data
    /// durable before it says [`IoDone`](super::Device::io_done).
    pub write_back: bool,
    /// Blocks can be given back (UNMAP), and read as zeros then.
    pub thin: bool,
    /// Largest transfer of one command in blocks; 0: no limit.
    pub max_transfer_blocks: u32,
    /// Serial number; empty: made from the node name and the unit's number, or [`identity`](Self::identity).
    pub serial: String,
    /// What stands in the unit's name in place of its number, for one that may have another number tomorrow.
    pub identity: Option<u64>,
    /// Product identification, at most 16 ASCII characters.
    pub product: String,
}

impl UnitConfig {
    /// A writable, fully provisioned unit without a cache and without limits.
    pub fn new(blocks: u64, block_bytes: u32) -> UnitConfig {
        UnitConfig {
            blocks,
            block_bytes,
            read_only: false,
            write_back: false,
            thin: false,
            max_transfer_blocks: 0,
            serial: String::new(),
            identity: None,
            product: "VIRTUAL DISK".into(),
        }
    }
}

/// Who sees which units (LUN masking).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Masking {
    /// Everybody sees all; the LUN number is the unit's index.
    #[default]
    Open,
    /// Initiators see what stands here, sorted by LUN. Others of a transport of which anybody stands here see nothing; those of
    /// another transport see all, as with `Open`.
    Listed(BTreeMap<InitiatorName, Vec<LunMap>>),
}

/// A unit under a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LunMap {
    /// Logical unit number that the initiator uses.
    pub lun: u16,
    /// Index of the unit.
    pub unit: u16,
}

/// The name that access lists use: of the port on Fibre Channel, of the device with iSCSI.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InitiatorName {
    /// Port name.
    Fcp(Wwpn),
    /// iSCSI name.
    Iscsi(Box<str>),
}

impl From<&TransportId> for InitiatorName {
    fn from(id: &TransportId) -> InitiatorName {
        match id {
            TransportId::Fcp(name) => InitiatorName::Fcp(*name),
            TransportId::Iscsi(port) => InitiatorName::Iscsi(port.name.clone()),
        }
    }
}
