//! Extended link services (FC-LS): requests and replies.

use crate::id::{FcId, Wwnn, Wwpn};
use crate::login::Login;

/// An extended link service. R_CTL 22 carries requests, 23 carries [`Els::LsAcc`] and [`Els::LsRjt`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Els {
    /// Reject.
    LsRjt(LsRjt),
    /// Accept; its layout follows from the request.
    LsAcc(LsAcc),
    /// N_Port login.
    Plogi(Login),
    /// Fabric login.
    Flogi(Login),
    /// Additional N_Port_ID over an existing fabric login (NPIV).
    Fdisc(Login),
    /// Service parameters of a live login.
    Pdisc(Login),
    /// Logout.
    Logo(Logo),
    /// Read timeout values.
    Rtv,
    /// Read link error status of a port.
    Rls {
        /// The port asked about.
        port_id: FcId,
    },
    /// Echo: the accept returns the bytes.
    Echo(Box<[u8]>),
    /// Test: nobody answers.
    Test(Box<[u8]>),
    /// Reinstate recovery qualifier.
    Rrq(ExchangeRef),
    /// Read exchange concise.
    Rec(ExchangeRef),
    /// Process login.
    Prli(Prli),
    /// Process logout.
    Prlo(Prlo),
    /// Address and names of a live login.
    Adisc(Adisc),
    /// State change notification.
    Rscn(Rscn),
    /// Registration for state change notifications.
    Scr {
        /// 1 fabric detected, 2 N_Port detected, 3 full, FF clear.
        function: u8,
    },
    /// Link incident record registration.
    Lirr {
        /// 1 conditional, 2 unconditional, FF clear.
        function: u8,
        /// Format of the records.
        format: u8,
    },
    /// Any other request, with its payload behind the command byte.
    Other {
        /// Command code.
        command: u8,
        /// The rest of the payload.
        body: Box<[u8]>,
    },
}

/// Body of LS_ACC.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LsAcc {
    /// LOGO, SCR, RSCN, RRQ and others: the command word only.
    Empty,
    /// FLOGI, FDISC, PLOGI, PDISC.
    Login(Login),
    /// PRLI.
    Prli(Prli),
    /// PRLO.
    Prlo(Prlo),
    /// ADISC.
    Adisc(Adisc),
    /// RTV.
    Rtv(Rtv),
    /// RLS.
    Rls(LinkErrorStatus),
    /// ECHO.
    Echo(Box<[u8]>),
    /// REC.
    Rec(RecAcc),
    /// Anything else, behind the command word's first byte.
    Other(Box<[u8]>),
}

/// LS_RJT (FC-LS): reason and explanation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjt {
    /// Reason code.
    pub reason: LsRjtReason,
    /// Reason explanation.
    pub explanation: LsRjtExplanation,
    /// Vendor specific.
    pub vendor: u8,
}

/// Reason code of LS_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjtReason(pub u8);

#[allow(missing_docs)] // the names are the standard's own
impl LsRjtReason {
    pub const INVALID_COMMAND: Self = Self(0x01);
    pub const LOGICAL_ERROR: Self = Self(0x03);
    pub const LOGICAL_BUSY: Self = Self(0x05);
    pub const PROTOCOL_ERROR: Self = Self(0x07);
    pub const UNABLE: Self = Self(0x09);
    pub const NOT_SUPPORTED: Self = Self(0x0b);
    pub const IN_PROGRESS: Self = Self(0x0e);
}

/// Reason explanation of LS_RJT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LsRjtExplanation(pub u8);

#[allow(missing_docs)] // the names are the standard's own
impl LsRjtExplanation {
    pub const NONE: Self = Self(0x00);
    pub const RECEIVE_SIZE: Self = Self(0x07);
    pub const INVALID_PORT_NAME: Self = Self(0x0d);
    pub const INVALID_NODE_NAME: Self = Self(0x0e);
    pub const INVALID_COMMON_PARAMETERS: Self = Self(0x0f);
    pub const INVALID_ORIGINATOR_S_ID: Self = Self(0x15);
    pub const INVALID_OX_RX_ID: Self = Self(0x17);
    pub const N_PORT_LOGIN_REQUIRED: Self = Self(0x1e);
    pub const INVALID_N_PORT_ID: Self = Self(0x1f);
    pub const INSUFFICIENT_RESOURCES: Self = Self(0x29);
    pub const CANNOT_SUPPLY_DATA: Self = Self(0x2a);
    pub const NOT_SUPPORTED: Self = Self(0x2c);
    pub const INVALID_PAYLOAD_LENGTH: Self = Self(0x2d);
}

/// LOGO payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Logo {
    /// The port that logs out.
    pub port_id: FcId,
    /// Its port name.
    pub port_name: Wwpn,
}

/// An exchange of another port, named by RRQ and REC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExchangeRef {
    /// Originator of the exchange.
    pub originator: FcId,
    /// Originator's number.
    pub ox_id: u16,
    /// Responder's number.
    pub rx_id: u16,
}

/// PRLI and its accept: service parameter pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prli {
    /// One page per FC-4 type.
    pub pages: Vec<PrliPage>,
}

/// One service parameter page of 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrliPage {
    /// FC-4 type, 08 for FCP.
    pub fc4_type: u8,
    /// Type extension.
    pub type_extension: u8,
    /// 80 and 40: process associators valid; 20: establish image pair; low nibble in an accept: response code.
    pub flags: u8,
    /// Originator's process associator.
    pub originator_pa: u32,
    /// Responder's process associator.
    pub responder_pa: u32,
    /// Service parameters (see [`prli`]).
    pub parameters: u32,
}

/// Bits and codes of a [`PrliPage`] for FCP.
pub mod prli {
    /// Flags: establish image pair.
    pub const ESTABLISH_IMAGE_PAIR: u8 = 0x20;
    /// Response code: request executed.
    pub const RESPONSE_EXECUTED: u8 = 1;
    /// Parameter: command retry.
    pub const RETRY: u32 = 0x0100;
    /// Parameter: confirmed completion.
    pub const CONFIRM: u32 = 0x0080;
    /// Parameter: initiator function.
    pub const INITIATOR: u32 = 0x0020;
    /// Parameter: target function.
    pub const TARGET: u32 = 0x0010;
    /// Parameter: no XFER_RDY before read data.
    pub const READ_XFER_RDY_DISABLED: u32 = 0x0002;
    /// Parameter: no XFER_RDY before the first write data.
    pub const WRITE_XFER_RDY_DISABLED: u32 = 0x0001;
}

/// PRLO and its accept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prlo {
    /// One page per FC-4 type; `parameters` is not used.
    pub pages: Vec<PrliPage>,
}

/// ADISC and its accept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Adisc {
    /// Hard address, or zero.
    pub hard_address: FcId,
    /// Port name.
    pub port_name: Wwpn,
    /// Node name.
    pub node_name: Wwnn,
    /// Current address.
    pub port_id: FcId,
}

/// RSCN payload: at most 255 pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rscn {
    /// The affected addresses.
    pub pages: Vec<RscnPage>,
}

/// One page of an RSCN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RscnPage {
    /// Event qualifier, 0 to 15.
    pub qualifier: u8,
    /// How much of the address counts.
    pub format: AddressFormat,
    /// The address; the parts below `format` are zero.
    pub address: FcId,
}

/// Scope of an RSCN page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressFormat {
    /// One port.
    Port,
    /// An area.
    Area,
    /// A domain.
    Domain,
    /// The whole fabric.
    Fabric,
}

/// Accept of RTV: timeout values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rtv {
    /// R_A_TOV in ms.
    pub r_a_tov_ms: u32,
    /// E_D_TOV in ms, or ns by `qualifier`.
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
    /// Originator's number.
    pub ox_id: u16,
    /// Responder's number.
    pub rx_id: u16,
    /// Originator.
    pub originator: FcId,
    /// Responder.
    pub responder: FcId,
    /// Bytes transferred so far.
    pub fc4_value: u32,
    /// Exchange status.
    pub e_stat: u32,
}
