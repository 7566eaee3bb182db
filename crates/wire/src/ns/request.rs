//! Requests to the name server (FC-GS, name server, requests).

use crate::error::ParseError;
use crate::field::{Cursor, Field, requests};
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{Fc4Descriptors, Fc4Types, FeatureMap, IpAddress, ProcessAssociator, ZoneName, command};

requests! {
    /// A request to the name server. Addresses stand behind a reserved byte.
    NsRequest of "name server"
    /// 0100: the object of the next higher id.
    GA_NXT GaNxt { port_id: FcId }
    /// 0101: the domains in use or, of one domain, the areas in use.
    GID_A GidA { + 1, domain: u8; + 2 }
    /// 0112
    GPN_ID GpnId { port_id: FcId }
    /// 0113
    GNN_ID GnnId { port_id: FcId }
    /// 0114
    GCS_ID GcsId { port_id: FcId }
    /// 0117
    GFT_ID GftId { port_id: FcId }
    /// 0118
    GSPN_ID GspnId { port_id: FcId }
    /// 011A
    GPT_ID GptId { port_id: FcId }
    /// 011B
    GIPP_ID GippId { port_id: FcId }
    /// 011C
    GFPN_ID GfpnId { port_id: FcId }
    /// 011D
    GHA_ID GhaId { port_id: FcId }
    /// 011E: the descriptors of these types.
    GFD_ID GfdId { port_id: FcId, types: Fc4Types }
    /// 011F
    GFF_ID GffId { port_id: FcId }
    /// 0121
    GID_PN GidPn { port_name: Wwpn }
    /// 012B
    GIPP_PN GippPn { port_name: Wwpn }
    /// 0131
    GID_NN GidNn { node_name: Wwnn }
    /// 0132
    GPN_NN GpnNn { node_name: Wwnn }
    /// 0135
    GIP_NN GipNn { node_name: Wwnn }
    /// 0136
    GIPA_NN GipaNn { node_name: Wwnn }
    /// 0139
    GSNN_NN GsnnNn { node_name: Wwnn }
    /// 0153
    GNN_IP GnnIp { ip: IpAddress }
    /// 0156
    GIPA_IP GipaIp { ip: IpAddress }
    /// 0171
    GID_FT GidFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 0172
    GPN_FT GpnFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 0173
    GNN_FT GnnFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 01A1
    GID_PT GidPt { port_type: u8, domain: u8, area: u8; + 1 }
    /// 01B1
    GID_IPP GidIpp { ip: IpAddress }
    /// 01B2
    GPN_IPP GpnIpp { ip: IpAddress }
    /// 01F1: features is the nibble of the type, bit 0 target, bit 1 initiator for FCP.
    GID_FF GidFf { + 1, domain: u8, area: u8, + 3, features: u8, fc4_type: u8 }
    /// 0212
    RPN_ID RpnId { port_id: FcId, port_name: Wwpn }
    /// 0213
    RNN_ID RnnId { port_id: FcId, node_name: Wwnn }
    /// 0214
    RCS_ID RcsId { port_id: FcId, classes: u32 }
    /// 0217
    RFT_ID RftId { port_id: FcId, types: Fc4Types }
    /// 0218: at most 255 bytes.
    RSPN_ID RspnId { port_id: FcId, symbolic_name: Box<[u8]> }
    /// 021A
    RPT_ID RptId { port_id: FcId, port_type: u8; + 3 }
    /// 021B
    RIPP_ID RippId { port_id: FcId, ip: IpAddress }
    /// 021D
    RHA_ID RhaId { port_id: FcId, hard_address: FcId }
    /// 021E
    RFD_ID RfdId { port_id: FcId, descriptors: Fc4Descriptors }
    /// 021F
    RFF_ID RffId { port_id: FcId, + 2, features: u8, fc4_type: u8 }
    /// 0235
    RIP_NN RipNn { node_name: Wwnn, ip: IpAddress }
    /// 0236
    RIPA_NN RipaNn { node_name: Wwnn, process_associator: ProcessAssociator }
    /// 0239: at most 255 bytes.
    RSNN_NN RsnnNn { node_name: Wwnn, symbolic_name: Box<[u8]> }
    /// 0300
    DA_ID DaId { port_id: FcId }
    /// 0410, between switches as all that follow: the entry of a port of the domain that is asked.
    GE_ID GeId { port_id: FcId }
    /// 0420
    GE_PN GePn { port_name: Wwpn }
    /// 0430
    GE_NN GeNn { node_name: Wwnn }
    /// 0450
    GE_IP GeIp { ip: IpAddress }
    /// 0470: of ports that have any of the types.
    GE_FT GeFt { types: Fc4Types }
    /// 04A0
    GE_PT GePt { + 3, port_type: u8 }
    /// 04B0: of the ports that a zone member means. The member as zone sets have it: type, reserved byte, flags, length,
    /// identifier.
    GE_ZM GeZm { kind: u8, + 1, flags: u8, id: Box<[u8]> }
    /// 04C0: of the members of the zone with this name.
    GE_ZN GeZn { name: ZoneName }
    /// 04D0
    GE_IPP GeIpp { ip: IpAddress }
    /// 04E0: of ports that have any of the features, one nibble for each type.
    GE_FF GeFf { features: FeatureMap }
}
