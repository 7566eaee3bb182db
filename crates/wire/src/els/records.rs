//! Small fixed layouts of extended link services (FC-LS): LOGO, ADISC, RRQ and REC, and the accepts
//! of RTV, RLS and REC. Every `parse` skips the command word without checking it.

use crate::bytes::{Put, fixed, id_at, u16_at, u32_at, u64_at};
use crate::els::command;
use crate::error::ParseError;
use crate::id::{FcId, Wwnn, Wwpn};

/// LOGO payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Logo {
    /// Address of the port that logs out.
    pub port_id: FcId,
    /// Name of the port that logs out.
    pub port_name: Wwpn,
}

/// The exchange that an RRQ or REC refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExchangeRef {
    /// Originator of the exchange.
    pub originator: FcId,
    /// Exchange identifier assigned by the originator.
    pub ox_id: u16,
    /// Exchange identifier assigned by the responder.
    pub rx_id: u16,
}

/// ADISC and its accept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Adisc {
    /// Hard address; zero if there is none.
    pub hard_address: FcId,
    /// Port name.
    pub port_name: Wwpn,
    /// Node name.
    pub node_name: Wwnn,
    /// Current address.
    pub port_id: FcId,
}

/// FAN: fabric address notification, which an FL_Port sends after loop initialisation. No reply is
/// sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fan {
    /// Address of the FL_Port: domain and area of the loop.
    pub loop_fabric_address: FcId,
    /// Name of the FL_Port.
    pub fabric_port_name: Wwpn,
    /// Name of the fabric.
    pub fabric_name: Wwnn,
}

/// Accept of RTV: timeout values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rtv {
    /// R_A_TOV in ms.
    pub r_a_tov_ms: u32,
    /// E_D_TOV in ms, or in ns if `qualifier` has [`Rtv::E_D_TOV_NS`].
    pub e_d_tov: u32,
    /// Bit 26: E_D_TOV in ns; bit 19: R_T_TOV is 100 µs.
    pub qualifier: u32,
}

/// Link error status block, six counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkErrorStatus {
    /// Link failures.
    pub link_failure: u32,
    /// Losses of synchronisation.
    pub loss_of_sync: u32,
    /// Losses of signal.
    pub loss_of_signal: u32,
    /// Primitive sequence protocol errors.
    pub primitive_sequence_error: u32,
    /// Invalid transmission words.
    pub invalid_word: u32,
    /// Invalid CRCs.
    pub invalid_crc: u32,
}

/// Accept of REC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecAcc {
    /// Exchange identifier assigned by the originator.
    pub ox_id: u16,
    /// Exchange identifier assigned by the responder.
    pub rx_id: u16,
    /// Originator.
    pub originator: FcId,
    /// Responder.
    pub responder: FcId,
    /// Bytes transferred so far.
    pub fc4_value: u32,
    /// Exchange status bits.
    pub e_stat: u32,
}

impl Logo {
    /// Length of the request, in bytes.
    pub const BYTES: usize = 16;

    /// Reads 16 bytes.
    pub fn parse(payload: &[u8]) -> Result<Logo, ParseError> {
        let b = fixed::<{ Self::BYTES }>("LOGO", payload)?;
        Ok(Logo { port_id: id_at(b, 5), port_name: Wwpn(u64_at(b, 8)) })
    }

    /// Appends 16 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::LOGO, FcId::ZERO);
        out.put_word(0, self.port_id);
        out.put_u64(self.port_name.0);
    }
}

impl ExchangeRef {
    /// Length of RRQ and REC, in bytes.
    pub const BYTES: usize = 12;

    /// Reads 12 bytes.
    pub fn parse(payload: &[u8]) -> Result<ExchangeRef, ParseError> {
        let b = fixed::<{ Self::BYTES }>("RRQ or REC", payload)?;
        Ok(ExchangeRef { originator: id_at(b, 5), ox_id: u16_at(b, 8), rx_id: u16_at(b, 10) })
    }

    /// Appends 12 bytes.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        out.put_word(command, FcId::ZERO);
        out.put_word(0, self.originator);
        out.put_u16(self.ox_id);
        out.put_u16(self.rx_id);
    }
}

impl Fan {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Result<Fan, ParseError> {
        let b = fixed::<24>("FAN", payload)?;
        Ok(Fan {
            loop_fabric_address: id_at(b, 5),
            fabric_port_name: Wwpn(u64_at(b, 8)),
            fabric_name: Wwnn(u64_at(b, 16)),
        })
    }
    /// Appends the payload.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::FAN, FcId::ZERO);
        out.put_word(0, self.loop_fabric_address);
        out.put_u64(self.fabric_port_name.0);
        out.put_u64(self.fabric_name.0);
    }
}

impl Adisc {
    /// Length of request and accept, in bytes.
    pub const BYTES: usize = 28;

    /// Reads 28 bytes.
    pub fn parse(payload: &[u8]) -> Result<Adisc, ParseError> {
        let b = fixed::<{ Self::BYTES }>("ADISC", payload)?;
        Ok(Adisc {
            hard_address: id_at(b, 5),
            port_name: Wwpn(u64_at(b, 8)),
            node_name: Wwnn(u64_at(b, 16)),
            port_id: id_at(b, 25),
        })
    }

    /// Appends 28 bytes.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        out.put_word(command, FcId::ZERO);
        out.put_word(0, self.hard_address);
        out.put_u64(self.port_name.0);
        out.put_u64(self.node_name.0);
        out.put_word(0, self.port_id);
    }
}

impl Rtv {
    /// Length of the accept, in bytes.
    pub const BYTES: usize = 16;
    /// Bit of `qualifier`: E_D_TOV is in ns.
    pub const E_D_TOV_NS: u32 = 1 << 26;
    /// Bit of `qualifier`: R_T_TOV is 100 µs instead of 100 ms.
    pub const R_T_TOV_100_US: u32 = 1 << 19;

    /// Reads 16 bytes.
    pub fn parse(payload: &[u8]) -> Result<Rtv, ParseError> {
        let b = fixed::<{ Self::BYTES }>("RTV accept", payload)?;
        Ok(Rtv { r_a_tov_ms: u32_at(b, 4), e_d_tov: u32_at(b, 8), qualifier: u32_at(b, 12) })
    }

    /// Appends 16 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::LS_ACC, FcId::ZERO);
        out.put_u32(self.r_a_tov_ms);
        out.put_u32(self.e_d_tov);
        out.put_u32(self.qualifier);
    }
}

impl LinkErrorStatus {
    /// Length of the accept of RLS, in bytes.
    pub const BYTES: usize = 28;

    /// Reads 28 bytes.
    pub fn parse(payload: &[u8]) -> Result<LinkErrorStatus, ParseError> {
        let b = fixed::<{ Self::BYTES }>("RLS accept", payload)?;
        Ok(LinkErrorStatus {
            link_failure: u32_at(b, 4),
            loss_of_sync: u32_at(b, 8),
            loss_of_signal: u32_at(b, 12),
            primitive_sequence_error: u32_at(b, 16),
            invalid_word: u32_at(b, 20),
            invalid_crc: u32_at(b, 24),
        })
    }

    /// Appends 28 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::LS_ACC, FcId::ZERO);
        out.put_u32(self.link_failure);
        out.put_u32(self.loss_of_sync);
        out.put_u32(self.loss_of_signal);
        out.put_u32(self.primitive_sequence_error);
        out.put_u32(self.invalid_word);
        out.put_u32(self.invalid_crc);
    }
}

impl RecAcc {
    /// Length of the accept, in bytes.
    pub const BYTES: usize = 24;

    /// Reads 24 bytes.
    pub fn parse(payload: &[u8]) -> Result<RecAcc, ParseError> {
        let b = fixed::<{ Self::BYTES }>("REC accept", payload)?;
        Ok(RecAcc {
            ox_id: u16_at(b, 4),
            rx_id: u16_at(b, 6),
            originator: id_at(b, 9),
            responder: id_at(b, 13),
            fc4_value: u32_at(b, 16),
            e_stat: u32_at(b, 20),
        })
    }

    /// Appends 24 bytes.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_word(command::LS_ACC, FcId::ZERO);
        out.put_u16(self.ox_id);
        out.put_u16(self.rx_id);
        out.put_word(0, self.originator);
        out.put_word(0, self.responder);
        out.put_u32(self.fc4_value);
        out.put_u32(self.e_stat);
    }
}
