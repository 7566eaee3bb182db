//! The object that GA_NXT returns (FC-GS, name server, get all next).

use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{Fc4Types, IpAddress, MAX_SYMBOLIC_NAME_BYTES, ProcessAssociator, clip, emit_symbolic_name, types_at};

/// All name server attributes of a port, as returned by GA_NXT (620 bytes).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs)] // the fields are the standard's objects
pub struct NsObject {
    pub port_type: u8,
    pub port_id: FcId,
    pub port_name: Wwpn,
    pub symbolic_port_name: Box<[u8]>,
    pub node_name: Wwnn,
    pub symbolic_node_name: Box<[u8]>,
    pub process_associator: ProcessAssociator,
    pub node_ip: IpAddress,
    pub classes: u32,
    pub types: Fc4Types,
    pub port_ip: IpAddress,
    pub fabric_port_name: Wwpn,
    pub hard_address: FcId,
}

const FIELD: &str = "name server object";

impl NsObject {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 620;

    /// Reads 620 bytes.
    pub fn parse(body: &[u8]) -> Result<NsObject, ParseError> {
        let b = fixed::<{ Self::BYTES }>(FIELD, body)?;
        let symbolic = |at: usize| slice("symbolic name", b, at + 1, b[at].into()).map(Box::from);
        Ok(NsObject {
            port_type: b[0],
            port_id: id_at(b, 1),
            port_name: Wwpn(u64_at(b, 4)),
            symbolic_port_name: symbolic(12)?,
            node_name: Wwnn(u64_at(b, 268)),
            symbolic_node_name: symbolic(276)?,
            process_associator: *fixed(FIELD, &b[532..])?,
            node_ip: *fixed(FIELD, &b[540..])?,
            classes: u32_at(b, 556),
            types: types_at(b, 560),
            port_ip: *fixed(FIELD, &b[592..])?,
            fabric_port_name: Wwpn(u64_at(b, 608)),
            hard_address: id_at(b, 617),
        })
    }

    /// Appends 620 bytes. Symbolic names are cut at 255 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(self.port_type, self.port_id);
        out.put_u64(self.port_name.0);
        put_padded(&self.symbolic_port_name, out);
        out.put_u64(self.node_name.0);
        put_padded(&self.symbolic_node_name, out);
        out.put_slice(&self.process_associator);
        out.put_slice(&self.node_ip);
        out.put_u32(self.classes);
        self.types.iter().for_each(|word| out.put_u32(*word));
        out.put_slice(&self.port_ip);
        out.put_u64(self.fabric_port_name.0);
        out.put_word(0, self.hard_address);
    }
}

fn put_padded(name: &[u8], out: &mut dyn Put) {
    emit_symbolic_name(name, out);
    out.put_zeros(MAX_SYMBOLIC_NAME_BYTES - clip(name).len());
}
