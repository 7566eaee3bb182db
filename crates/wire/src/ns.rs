//! Name server requests and accepts (FC-GS, name server).

use crate::id::{FcId, Wwnn, Wwpn};

/// FC-4 TYPE bitmap, 256 bits; word = type / 32, bit = type % 32.
pub type Fc4Types = [u32; 8];

/// A request to the name server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // each field is named after the object that the standard names
pub enum NsRequest {
    /// 0100: the object of the next higher id.
    GaNxt { port_id: FcId },
    /// 0112
    GpnId { port_id: FcId },
    /// 0113
    GnnId { port_id: FcId },
    /// 0114
    GcsId { port_id: FcId },
    /// 0117
    GftId { port_id: FcId },
    /// 0118
    GspnId { port_id: FcId },
    /// 011A
    GptId { port_id: FcId },
    /// 011D
    GfpnId { port_id: FcId },
    /// 011F
    GffId { port_id: FcId },
    /// 0121
    GidPn { port_name: Wwpn },
    /// 0131
    GidNn { node_name: Wwnn },
    /// 0139
    GsnnNn { node_name: Wwnn },
    /// 0171
    GidFt { domain: u8, area: u8, fc4_type: u8 },
    /// 0172
    GpnFt { domain: u8, area: u8, fc4_type: u8 },
    /// 0173
    GnnFt { domain: u8, area: u8, fc4_type: u8 },
    /// 01A1
    GidPt { port_type: u8, domain: u8, area: u8 },
    /// 01F1: features is the nibble of the type, bit 0 target, bit 1 initiator for FCP.
    GidFf { domain: u8, area: u8, features: u8, fc4_type: u8 },
    /// 0212
    RpnId { port_id: FcId, port_name: Wwpn },
    /// 0213
    RnnId { port_id: FcId, node_name: Wwnn },
    /// 0214
    RcsId { port_id: FcId, classes: u32 },
    /// 0217
    RftId { port_id: FcId, types: Fc4Types },
    /// 0218: at most 255 bytes.
    RspnId { port_id: FcId, symbolic_name: Box<[u8]> },
    /// 021A
    RptId { port_id: FcId, port_type: u8 },
    /// 021F
    RffId { port_id: FcId, features: u8, fc4_type: u8 },
    /// 0239: at most 255 bytes.
    RsnnNn { node_name: Wwnn, symbolic_name: Box<[u8]> },
    /// 0300
    DaId { port_id: FcId },
}

/// An accept of the name server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // each variant is named after the object that the standard names
pub enum NsAccept {
    /// Registrations.
    Empty,
    PortName(Wwpn),
    NodeName(Wwnn),
    FabricPortName(Wwpn),
    Classes(u32),
    Types(Fc4Types),
    SymbolicName(Box<[u8]>),
    PortType(u8),
    /// 128 bytes, one nibble per FC-4 type.
    Features(Box<[u8; 128]>),
    PortId(FcId),
    /// GID_NN, GID_FT, GID_PT, GID_FF.
    PortIds(Vec<FcId>),
    /// GPN_FT.
    PortNames(Vec<(FcId, Wwpn)>),
    /// GNN_FT.
    NodeNames(Vec<(FcId, Wwnn)>),
    /// GA_NXT.
    Object(Box<NsObject>),
}

/// Everything that the name server knows of a port, as GA_NXT returns it (620 bytes).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the fields are the standard's objects
pub struct NsObject {
    pub port_type: u8,
    pub port_id: FcId,
    pub port_name: Wwpn,
    pub symbolic_port_name: Box<[u8]>,
    pub node_name: Wwnn,
    pub symbolic_node_name: Box<[u8]>,
    pub classes: u32,
    pub types: Fc4Types,
    pub fabric_port_name: Wwpn,
    pub hard_address: FcId,
}

/// FC-4 feature bits of FCP, one nibble.
pub mod fcp_feature {
    /// The port is a target.
    pub const TARGET: u8 = 0x01;
    /// The port is an initiator.
    pub const INITIATOR: u8 = 0x02;
}

/// Port types.
pub mod port_type {
    /// N_Port.
    pub const N_PORT: u8 = 0x01;
    /// NL_Port.
    pub const NL_PORT: u8 = 0x02;
    /// Any Nx_Port.
    pub const NX_PORT: u8 = 0x7f;
}

/// Reject explanations of the name server.
#[allow(missing_docs)] // the names are the standard's own
pub mod explanation {
    pub const NONE: u8 = 0x00;
    pub const PORT_ID_NOT_REGISTERED: u8 = 0x01;
    pub const PORT_NAME_NOT_REGISTERED: u8 = 0x02;
    pub const NODE_NAME_NOT_REGISTERED: u8 = 0x03;
    pub const CLASS_NOT_REGISTERED: u8 = 0x04;
    pub const FC4_TYPES_NOT_REGISTERED: u8 = 0x07;
    pub const SYMBOLIC_PORT_NAME_NOT_REGISTERED: u8 = 0x08;
    pub const SYMBOLIC_NODE_NAME_NOT_REGISTERED: u8 = 0x09;
    pub const PORT_TYPE_NOT_REGISTERED: u8 = 0x0a;
    pub const FC4_FEATURES_NOT_REGISTERED: u8 = 0x0f;
    pub const ACCESS_DENIED: u8 = 0x10;
    pub const UNACCEPTABLE_PORT_ID: u8 = 0x11;
    pub const DATABASE_EMPTY: u8 = 0x12;
    pub const NO_OBJECT_IN_SCOPE: u8 = 0x13;
}
