//! Configuration of a target device: ports, logical units and LUN masking.

use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Target device of one storage system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceConfig {
    /// Node name of the storage system. It is the same through all ports, so that a host recognises
    /// a unit on several paths.
    pub wwnn: Wwnn,
    /// Ports of any transport. The index is the port's number in this device; its relative port
    /// identifier is one more.
    pub ports: Vec<PortConfig>,
    /// Logical units, which all ports share.
    pub units: Vec<UnitConfig>,
    /// Visibility of units to initiators.
    pub masking: Masking,
    /// True to report unit attentions (SAM). If false, the device behaves as if every host had been
    /// known before. The simulator's hosts rely on that.
    pub attentions: bool,
}

/// Port of a target device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Transport name of the port.
    pub name: PortName,
    /// Number of its target port group for asymmetric access. All ports of a group have the same
    /// state.
    pub group: u16,
}

/// Name of a target port in its transport.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PortName {
    /// Fibre Channel port name.
    Fcp(Wwpn),
    /// Port identifier of an SRP target: identifier extension and GUID.
    Srp([u8; 16]),
    /// Portal group of an iSCSI target.
    Iscsi {
        /// iSCSI name of the target.
        target: Box<str>,
        /// Target portal group tag.
        portal_group: u16,
    },
}

/// Logical unit of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitConfig {
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// True to refuse every command that would change the medium.
    pub read_only: bool,
    /// True to report a volatile write cache. Data are then durable only after FUA or SYNCHRONIZE
    /// CACHE. If false, the driver makes data durable before it calls
    /// [`io_done`](super::Device::io_done).
    pub write_back: bool,
    /// True if blocks can be unmapped (UNMAP). Unmapped blocks read as zeros.
    pub thin: bool,
    /// Largest transfer of one command in blocks; 0 means no limit.
    pub max_transfer_blocks: u32,
    /// Serial number. If empty, it is derived from the node name and the unit's number or
    /// [`identity`](Self::identity).
    pub serial: String,
    /// Number that replaces the unit's number in its name, for a unit whose number may change.
    pub identity: Option<u64>,
    /// Product identification, at most 16 ASCII characters.
    pub product: String,
}

impl UnitConfig {
    /// Creates a writable, fully provisioned unit without a write cache and without limits.
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

/// Visibility of units to initiators (LUN masking).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Masking {
    /// Every initiator sees all units; the LUN is the unit's index.
    #[default]
    Open,
    /// Initiators see the listed units, sorted by LUN. If the list names any initiator of a
    /// transport, other initiators of that transport see nothing. Initiators of a transport without
    /// entries see all units, as with `Open`.
    Listed(BTreeMap<InitiatorName, Vec<LunMap>>),
}

/// Unit and the LUN under which an initiator sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LunMap {
    /// Logical unit number that the initiator uses.
    pub lun: u16,
    /// Index of the unit.
    pub unit: u16,
}

/// Initiator name in access lists: the port name on Fibre Channel, the port identifier with SRP,
/// the node name with iSCSI.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InitiatorName {
    /// Fibre Channel port name.
    Fcp(Wwpn),
    /// SRP initiator port identifier.
    Srp(Box<[u8; 16]>),
    /// iSCSI name of the initiator node.
    Iscsi(Box<str>),
}

impl From<&TransportId> for InitiatorName {
    fn from(id: &TransportId) -> InitiatorName {
        match id {
            TransportId::Fcp(name) => InitiatorName::Fcp(*name),
            TransportId::Srp(port) => InitiatorName::Srp(port.clone()),
            TransportId::Iscsi(port) => InitiatorName::Iscsi(port.name.clone()),
        }
    }
}
