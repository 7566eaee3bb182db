//! The common layout of FLOGI, FDISC, PLOGI, PDISC and their accepts (FC-LS, login), 116 bytes.

use crate::bytes::{Put, fixed, u16_at, u32_at, u64_at};
use crate::error::ParseError;
use crate::id::{Wwnn, Wwpn};

/// Service parameters of a login.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Login {
    /// Parameters that apply to all classes of service.
    pub common: CommonParameters,
    /// Port name of the N_Port; in a FLOGI accept, of the F_Port.
    pub port_name: Wwpn,
    /// Node name; in a FLOGI accept, the fabric name.
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
    /// Highest supported FC-PH version.
    pub highest_version: u8,
    /// Lowest supported FC-PH version.
    pub lowest_version: u8,
    /// Buffer-to-buffer credit, in frames.
    pub bb_credit: u16,
    /// Feature bits; their meaning differs between FLOGI and PLOGI (see [`feature`]).
    pub features: u16,
    /// BB_SC_N, 0 to 15; only the low four bits are sent.
    pub bb_sc_n: u8,
    /// Receive data field size in bytes, 256 to 2112; only the low 12 bits are sent.
    pub receive_size_bytes: u16,
    /// FLOGI accept: R_A_TOV in ms. PLOGI: total concurrent sequences (high half) and
    /// relative-offset mask (low half).
    pub word_8: u32,
    /// E_D_TOV in ms, or ns when [`feature::E_D_TOV_NS`] is set.
    pub e_d_tov: u32,
}

/// Feature bits of [`CommonParameters::features`].
pub mod feature {
    /// FLOGI request: the port requests several N_Port_IDs. PLOGI: continuously increasing relative
    /// offset.
    pub const MULTIPLE_N_PORT_ID: u16 = 0x8000;
    /// FLOGI accept: clean address. Same bit as [`MULTIPLE_N_PORT_ID`].
    pub const CLEAN_ADDRESS: u16 = 0x8000;
    /// FLOGI accept: NPIV supported.
    pub const NPIV_SUPPORTED: u16 = 0x2000;
    /// FLOGI accept: the responding port is an F_Port.
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
    /// 8000: valid; 0800: sequential delivery.
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
    /// The class is supported.
    pub const VALID: u16 = 0x8000;
    /// Frames are delivered in the order in which they were sent.
    pub const SEQUENTIAL_DELIVERY: u16 = 0x0800;
}

/// Length of a login payload in bytes, command word included.
pub const LOGIN_BYTES: usize = 116;
/// Length of the parameters of one class, in bytes.
const CLASS_BYTES: usize = 16;
/// Length of the vendor version level, in bytes.
const VENDOR_VERSION_BYTES: usize = 16;

impl Login {
    /// Login of a Linux host (libfc) for FLOGI and FDISC: ten credits, frames of 2112 bytes,
    /// several N_Port_IDs, class 3 with in-order delivery.
    pub fn of_linux_host(port_name: Wwpn, node_name: Wwnn) -> Login {
        Login {
            common: CommonParameters {
                highest_version: 0x20,
                lowest_version: 0x20,
                bb_credit: 10,
                features: feature::MULTIPLE_N_PORT_ID,
                receive_size_bytes: 2112,
                ..CommonParameters::default()
            },
            port_name,
            node_name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY,
                ..ClassParameters::default()
            },
        }
    }

    /// Reads 116 bytes. The first four, the command word, are ignored because the caller has
    /// evaluated them. The parameters of the fourth class and the vendor version level are not
    /// stored.
    pub fn parse(payload: &[u8]) -> Result<Login, ParseError> {
        let b = fixed::<LOGIN_BYTES>("login payload", payload)?;
        Ok(Login {
            common: CommonParameters {
                highest_version: b[4],
                lowest_version: b[5],
                bb_credit: u16_at(b, 6),
                features: u16_at(b, 8),
                bb_sc_n: b[10] >> 4,
                receive_size_bytes: u16_at(b, 10) & 0x0fff,
                word_8: u32_at(b, 12),
                e_d_tov: u32_at(b, 16),
            },
            port_name: Wwpn(u64_at(b, 20)),
            node_name: Wwnn(u64_at(b, 28)),
            class_1: ClassParameters::read(b, 36),
            class_2: ClassParameters::read(b, 52),
            class_3: ClassParameters::read(b, 68),
        })
    }

    /// Appends 116 bytes, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        let common = &self.common;
        out.put_u32(u32::from(command) << 24);
        out.put_u8(common.highest_version);
        out.put_u8(common.lowest_version);
        out.put_u16(common.bb_credit);
        out.put_u16(common.features);
        out.put_u16(u16::from(common.bb_sc_n) << 12 | common.receive_size_bytes & 0x0fff);
        out.put_u32(common.word_8);
        out.put_u32(common.e_d_tov);
        out.put_u64(self.port_name.0);
        out.put_u64(self.node_name.0);
        for class in [&self.class_1, &self.class_2, &self.class_3] {
            class.write(out);
        }
        out.put_zeros(CLASS_BYTES);
        out.put_zeros(VENDOR_VERSION_BYTES);
    }
}

impl ClassParameters {
    fn read(b: &[u8; LOGIN_BYTES], at: usize) -> ClassParameters {
        ClassParameters {
            flags: u16_at(b, at),
            initiator_control: u16_at(b, at + 2),
            recipient_control: u16_at(b, at + 4),
            receive_size_bytes: u16_at(b, at + 6),
            concurrent_sequences: u16_at(b, at + 8),
            end_to_end_credit: u16_at(b, at + 10),
            open_sequences: u16_at(b, at + 12),
        }
    }

    fn write(&self, out: &mut dyn Put) {
        out.put_u16(self.flags);
        out.put_u16(self.initiator_control);
        out.put_u16(self.recipient_control);
        out.put_u16(self.receive_size_bytes);
        out.put_u16(self.concurrent_sequences);
        out.put_u16(self.end_to_end_credit);
        out.put_u16(self.open_sequences);
        out.put_u16(0);
    }
}
