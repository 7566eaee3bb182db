//! Requests to the name server (FC-GS, name server, requests).

use crate::error::ParseError;
use crate::field::{Cursor, Field, requests};
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{Fc4Descriptors, Fc4Types, FeatureMap, IpAddress, ProcessAssociator, ZoneName, command};

requests! {
    /// A request to the name server. The documentation of each variant starts with its command
    /// code. A reserved byte precedes each address on the wire.
    NsRequest of "name server"
    /// 0100: the object with the next higher port identifier.
    GA_NXT GaNxt { port_id: FcId }
    /// 0101: the domains in use, or the areas in use of one domain.
    GID_A GidA { + 1, domain: u8; + 2 }
    /// 0112: the port name of an address.
    GPN_ID GpnId { port_id: FcId }
    /// 0113: the node name of an address.
    GNN_ID GnnId { port_id: FcId }
    /// 0114: the classes of service of an address.
    GCS_ID GcsId { port_id: FcId }
    /// 0117: the FC-4 types of an address.
    GFT_ID GftId { port_id: FcId }
    /// 0118: the symbolic port name of an address.
    GSPN_ID GspnId { port_id: FcId }
    /// 011A: the port type of an address.
    GPT_ID GptId { port_id: FcId }
    /// 011B: the IP address of the port with an address.
    GIPP_ID GippId { port_id: FcId }
    /// 011C: the fabric port name of an address.
    GFPN_ID GfpnId { port_id: FcId }
    /// 011D: the hard address of an address.
    GHA_ID GhaId { port_id: FcId }
    /// 011E: the descriptors of the given types.
    GFD_ID GfdId { port_id: FcId, types: Fc4Types }
    /// 011F: the FC-4 features of an address.
    GFF_ID GffId { port_id: FcId }
    /// 0121: the address of a port name.
    GID_PN GidPn { port_name: Wwpn }
    /// 012B: the IP address of the port with a port name.
    GIPP_PN GippPn { port_name: Wwpn }
    /// 0131: the addresses of the ports of a node.
    GID_NN GidNn { node_name: Wwnn }
    /// 0132: the port names of a node.
    GPN_NN GpnNn { node_name: Wwnn }
    /// 0135: the IP address of a node.
    GIP_NN GipNn { node_name: Wwnn }
    /// 0136: the initial process associator of a node.
    GIPA_NN GipaNn { node_name: Wwnn }
    /// 0139: the symbolic name of a node.
    GSNN_NN GsnnNn { node_name: Wwnn }
    /// 0153: the node name of an IP address.
    GNN_IP GnnIp { ip: IpAddress }
    /// 0156: the initial process associator of an IP address.
    GIPA_IP GipaIp { ip: IpAddress }
    /// 0171: addresses of ports with an FC-4 type, in a domain and area or everywhere.
    GID_FT GidFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 0172: port names of ports with an FC-4 type, in a domain and area or everywhere.
    GPN_FT GpnFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 0173: node names of ports with an FC-4 type, in a domain and area or everywhere.
    GNN_FT GnnFt { + 1, domain: u8, area: u8, fc4_type: u8 }
    /// 01A1: addresses of ports of a port type, in a domain and area or everywhere.
    GID_PT GidPt { port_type: u8, domain: u8, area: u8; + 1 }
    /// 01B1: addresses of the ports with an IP address.
    GID_IPP GidIpp { ip: IpAddress }
    /// 01B2: port names of the ports with an IP address.
    GPN_IPP GpnIpp { ip: IpAddress }
    /// 01F1: `features` is the nibble of the type; for FCP, bit 0 is target and bit 1 initiator.
    GID_FF GidFf { + 1, domain: u8, area: u8, + 3, features: u8, fc4_type: u8 }
    /// 0212: register a port name.
    RPN_ID RpnId { port_id: FcId, port_name: Wwpn }
    /// 0213: register a node name.
    RNN_ID RnnId { port_id: FcId, node_name: Wwnn }
    /// 0214: register classes of service.
    RCS_ID RcsId { port_id: FcId, classes: u32 }
    /// 0217: register FC-4 types.
    RFT_ID RftId { port_id: FcId, types: Fc4Types }
    /// 0218: the name has at most 255 bytes.
    RSPN_ID RspnId { port_id: FcId, symbolic_name: Box<[u8]> }
    /// 021A: register a port type.
    RPT_ID RptId { port_id: FcId, port_type: u8; + 3 }
    /// 021B: register the IP address of a port.
    RIPP_ID RippId { port_id: FcId, ip: IpAddress }
    /// 021D: register a hard address.
    RHA_ID RhaId { port_id: FcId, hard_address: FcId }
    /// 021E: register FC-4 descriptors.
    RFD_ID RfdId { port_id: FcId, descriptors: Fc4Descriptors }
    /// 021F: register the FC-4 features of one type.
    RFF_ID RffId { port_id: FcId, + 2, features: u8, fc4_type: u8 }
    /// 0235: register the IP address of a node.
    RIP_NN RipNn { node_name: Wwnn, ip: IpAddress }
    /// 0236: register the initial process associator of a node.
    RIPA_NN RipaNn { node_name: Wwnn, process_associator: ProcessAssociator }
    /// 0239: the name has at most 255 bytes.
    RSNN_NN RsnnNn { node_name: Wwnn, symbolic_name: Box<[u8]> }
    /// 0300: deregister everything about an address.
    DA_ID DaId { port_id: FcId }
    /// 0410: the entry of a port in the domain of the receiver. This and all following requests are
    /// exchanged between switches.
    GE_ID GeId { port_id: FcId }
    /// 0420: the entry of a port name.
    GE_PN GePn { port_name: Wwpn }
    /// 0430: entries of the ports of a node.
    GE_NN GeNn { node_name: Wwnn }
    /// 0450: entries of the ports of the node with an IP address.
    GE_IP GeIp { ip: IpAddress }
    /// 0470: entries of ports that have any of the types.
    GE_FT GeFt { types: Fc4Types }
    /// 04A0: entries of ports of a port type.
    GE_PT GePt { + 3, port_type: u8 }
    /// 04B0: entries of the ports that a zone member covers. The member has the layout of zone
    /// sets: type, reserved byte, flags, length, identifier.
    GE_ZM GeZm { kind: u8, + 1, flags: u8, id: Box<[u8]> }
    /// 04C0: entries of the members of the zone with this name.
    GE_ZN GeZn { name: ZoneName }
    /// 04D0: entries of the ports with an IP address.
    GE_IPP GeIpp { ip: IpAddress }
    /// 04E0: entries of ports that have any of the features, one nibble per type.
    GE_FF GeFf { features: FeatureMap }
}
