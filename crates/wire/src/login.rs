//! The common shape of FLOGI, FDISC, PLOGI, PDISC and of their accepts (FC-LS, login), 116 bytes.

use crate::id::{Wwnn, Wwpn};

/// Service parameters of a login.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Login {
    /// Common service parameters.
    pub common: CommonParameters,
    /// Port name: the N_Port's, or the F_Port's in a FLOGI accept.
    pub port_name: Wwpn,
    /// Node name, or the fabric name in a FLOGI accept.
    pub node_name: Wwnn,
    /// Class 1 parameters, normally invalid.
    pub class_1: ClassParameters,
    /// Class 2 parameters.
    pub class_2: ClassParameters,
    /// Class 3 parameters.
    pub class_3: ClassParameters,
}

/// Common service parameters, 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CommonParameters {
    /// Highest FC-PH version.
    pub highest_version: u8,
    /// Lowest FC-PH version.
    pub lowest_version: u8,
    /// Buffer-to-buffer credit, in frames.
    pub bb_credit: u16,
    /// Feature bits; their meaning differs between FLOGI and PLOGI (see [`feature`]).
    pub features: u16,
    /// BB_SC_N, 0 to 15.
    pub bb_sc_n: u8,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// FLOGI accept: R_A_TOV in ms. PLOGI: total concurrent sequences (high half) and relative-offset mask (low half).
    pub word_8: u32,
    /// E_D_TOV in ms, or ns when [`feature::E_D_TOV_NS`] is set.
    pub e_d_tov: u32,
}

/// Feature bits of [`CommonParameters::features`].
pub mod feature {
    /// FLOGI request: wants several N_Port_IDs. PLOGI: continuously increasing relative offset.
    pub const MULTIPLE_N_PORT_ID: u16 = 0x8000;
    /// FLOGI accept: clean address. Same bit as [`MULTIPLE_N_PORT_ID`].
    pub const CLEAN_ADDRESS: u16 = 0x8000;
    /// FLOGI accept: NPIV supported.
    pub const NPIV_SUPPORTED: u16 = 0x2000;
    /// FLOGI accept: the answering port is an F_Port.
    pub const F_PORT: u16 = 0x1000;
    /// Alternate BB_Credit model.
    pub const ALTERNATE_BB_CREDIT: u16 = 0x0800;
    /// E_D_TOV is in nanoseconds.
    pub const E_D_TOV_NS: u16 = 0x0400;
    /// PLOGI: continuously increasing relative offset.
    pub const CONTINUOUS_OFFSET: u16 = 0x8000;
}

/// Parameters of one class of service, 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ClassParameters {
    /// 8000 valid, 0800 sequential delivery.
    pub flags: u16,
    /// Initiator control.
    pub initiator_control: u16,
    /// Recipient control.
    pub recipient_control: u16,
    /// Receive data field size in bytes.
    pub receive_size_bytes: u16,
    /// Concurrent sequences.
    pub concurrent_sequences: u16,
    /// End-to-end credit.
    pub end_to_end_credit: u16,
    /// Open sequences per exchange.
    pub open_sequences: u16,
}

impl ClassParameters {
    /// The class is offered.
    pub const VALID: u16 = 0x8000;
    /// Frames are delivered in the order they were sent.
    pub const SEQUENTIAL_DELIVERY: u16 = 0x0800;
}
