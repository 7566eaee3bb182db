//! ELP (FC-SW, exchange link parameters): parameters on which both ends of an inter-switch link
//! must agree. Request and accept.

use crate::bytes::{Put, fixed, put_with_len16, slice, u16_at, u32_at, u64_at};
use crate::codes::codes;
use crate::error::ParseError;
use crate::id::{Wwnn, Wwpn};

/// Link parameters of an E_Port. Request and accept have the same layout.
///
/// Offsets are those of captured frames: the revision is in byte 4.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Elp {
    /// Revision: 2 for FC-SW, 3 for FC-SW-3.
    pub revision: u8,
    /// Kind of port (see [`Elp::BRIDGE_PORT`]); 0 for an E_Port.
    pub flags: u16,
    /// BB_SC_N: buffer-to-buffer state changes are counted every 2^n frames; 0 means never.
    pub bb_sc_n: u8,
    /// R_A_TOV in ms.
    pub r_a_tov_ms: u32,
    /// E_D_TOV in ms.
    pub e_d_tov_ms: u32,
    /// Name of the E_Port.
    pub port_name: Wwpn,
    /// Name of the switch.
    pub switch_name: Wwnn,
    /// Parameters of class F, which carries the link services themselves.
    pub class_f: ClassF,
    /// Parameters of classes 1, 2 and 3.
    pub classes: [ElpClass; 3],
    /// Method of returning credit.
    pub flow_control: FlowControl,
    /// BB_Credit: number of frames that the sender of this message can buffer.
    pub bb_credit: u32,
    /// Flow control parameters after BB_Credit. R_RDY has 16 bytes of compatibility parameters;
    /// some vendor modes have more. Shorter parameters are padded with zeros, and at most 65,531
    /// bytes are sent.
    pub flow_parameters: Box<[u8]>,
}

/// Class F service parameters, 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ClassF {
    /// Flags. Byte 0, bit 80: valid. Byte 4, bit 20: X_ID interlock.
    pub flags: [u8; 6],
    /// Receive data field size in bytes.
    pub receive_size_bytes: u16,
    /// Concurrent sequences.
    pub concurrent_sequences: u16,
    /// End-to-end credit.
    pub end_to_end_credit: u16,
    /// Open sequences per exchange.
    pub open_sequences: u16,
}

/// Parameters of another class of service, 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ElpClass {
    /// Flags. 8000: valid; 0800: sequential delivery.
    pub flags: u16,
    /// Receive data field size in bytes.
    pub receive_size_bytes: u16,
}

/// Method by which the two ends of a link return credit (FC-SW, ISL flow control mode).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowControl(pub u16);

codes!(FlowControl, u16, "flow control mode" {
    VENDOR = 0x0001, "vendor specific";
    R_RDY = 0x0002, "R_RDY";
});

impl ClassF {
    /// Bit of the first flag byte: class F is supported.
    pub const VALID: u8 = 0x80;

    /// True if class F is supported.
    pub const fn is_valid(&self) -> bool {
        self.flags[0] & ClassF::VALID != 0
    }
}

impl ElpClass {
    /// The class is supported.
    pub const VALID: u16 = 0x8000;
    /// Frames are delivered in the order in which they were sent.
    pub const SEQUENTIAL_DELIVERY: u16 = 0x0800;
}

impl Elp {
    /// Flag: the port is a B_Port of a bridge.
    pub const BRIDGE_PORT: u16 = 0x8000;
    /// Length with the shortest flow control parameters, command word included, in bytes.
    pub const BYTES: usize = 104;
    /// Length of BB_Credit and the shortest compatibility parameters, in bytes.
    const MIN_PARAMETER_BYTES: usize = Self::CREDIT_BYTES + Self::MIN_AFTER_CREDIT_BYTES;
    /// Length of BB_Credit, in bytes.
    const CREDIT_BYTES: usize = 4;
    /// Length of the shortest parameters after BB_Credit, in bytes.
    const MIN_AFTER_CREDIT_BYTES: usize = 16;
    /// Length of the longest parameters after BB_Credit, in bytes.
    const MAX_AFTER_CREDIT_BYTES: usize = u16::MAX as usize - Self::CREDIT_BYTES;

    /// Reads 104 bytes, command word included, or more if longer flow control parameters are
    /// announced.
    pub fn parse(payload: &[u8]) -> Result<Elp, ParseError> {
        let b = fixed::<{ Self::BYTES }>("ELP", payload)?;
        let parameter_bytes = usize::from(u16_at(b, 82)).max(Self::MIN_PARAMETER_BYTES);
        let flow_parameters = slice("ELP flow control parameters", payload, 88, parameter_bytes - Self::CREDIT_BYTES)?;
        let class = |at| ElpClass { flags: u16_at(b, at), receive_size_bytes: u16_at(b, at + 2) };
        Ok(Elp {
            revision: b[4],
            flags: u16_at(b, 5),
            bb_sc_n: b[7],
            r_a_tov_ms: u32_at(b, 8),
            e_d_tov_ms: u32_at(b, 12),
            port_name: Wwpn(u64_at(b, 16)),
            switch_name: Wwnn(u64_at(b, 24)),
            class_f: ClassF {
                flags: [b[32], b[33], b[34], b[35], b[36], b[37]],
                receive_size_bytes: u16_at(b, 38),
                concurrent_sequences: u16_at(b, 40),
                end_to_end_credit: u16_at(b, 42),
                open_sequences: u16_at(b, 44),
            },
            classes: [class(48), class(52), class(56)],
            flow_control: FlowControl(u16_at(b, 80)),
            bb_credit: u32_at(b, 84),
            flow_parameters: flow_parameters.into(),
        })
    }

    /// Appends the payload, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        out.put_u32(u32::from(command) << 24);
        out.put_u8(self.revision);
        out.put_u16(self.flags);
        out.put_u8(self.bb_sc_n);
        out.put_u32(self.r_a_tov_ms);
        out.put_u32(self.e_d_tov_ms);
        out.put_u64(self.port_name.0);
        out.put_u64(self.switch_name.0);
        out.put_slice(&self.class_f.flags);
        out.put_u16(self.class_f.receive_size_bytes);
        out.put_u16(self.class_f.concurrent_sequences);
        out.put_u16(self.class_f.end_to_end_credit);
        out.put_u16(self.class_f.open_sequences);
        out.put_u16(0);
        for class in &self.classes {
            out.put_u16(class.flags);
            out.put_u16(class.receive_size_bytes);
        }
        out.put_zeros(20);
        out.put_u16(self.flow_control.0);
        let parameters = &self.flow_parameters[..self.flow_parameters.len().min(Self::MAX_AFTER_CREDIT_BYTES)];
        put_with_len16(out, |out| {
            out.put_u32(self.bb_credit);
            out.put_slice(parameters);
            out.put_zeros(Self::MIN_AFTER_CREDIT_BYTES.saturating_sub(parameters.len()));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwIls, command};

    /// The head comes from a captured frame of a switch. The rest follows the table of the
    /// standard.
    const REAL_HEAD: [u8; 18] = [0x10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x27, 0x10, 0, 0, 0x07, 0xd0, 0x20, 0x10];

    #[test]
    fn the_head_of_a_captured_request_has_its_revision_at_four_and_its_timers_at_eight() {
        let mut bytes = [0; Elp::BYTES];
        bytes[..18].copy_from_slice(&REAL_HEAD);
        bytes[18..32].copy_from_slice(&[0, 5, 1, 2, 3, 4, 0x10, 0, 0, 5, 1, 2, 3, 0]);
        bytes[32..46].copy_from_slice(&[0x80, 0, 0, 0, 0x20, 0, 8, 0x40, 0, 1, 0, 2, 0, 3]);
        bytes[56..60].copy_from_slice(&[0x88, 0, 0x08, 0x40]);
        bytes[80..88].copy_from_slice(&[0, 2, 0, 20, 0, 0, 0, 16]);
        bytes[103] = 9;
        let Ok(SwIls::Elp(elp)) = SwIls::parse(&bytes, None) else { panic!("an ELP") };
        assert_eq!((elp.revision, elp.r_a_tov_ms, elp.e_d_tov_ms), (2, 10_000, 2_000));
        assert_eq!((elp.port_name, elp.switch_name), (Wwpn(0x2010_0005_0102_0304), Wwnn(0x1000_0005_0102_0300)));
        assert!(elp.class_f.is_valid());
        assert_eq!((elp.class_f.receive_size_bytes, elp.class_f.open_sequences), (2112, 3));
        assert_eq!(elp.classes[2], ElpClass { flags: 0x8800, receive_size_bytes: 2112 });
        assert_eq!((elp.flow_control, elp.bb_credit, elp.flow_parameters[15]), (FlowControl::R_RDY, 16, 9));
        let mut again = Vec::new();
        elp.emit(command::ELP, &mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn longer_flow_control_parameters_are_read_to_their_end() {
        let mut bytes = vec![0; 84 + 0x50];
        bytes[80..84].copy_from_slice(&[0, 1, 0, 0x50]);
        bytes[163] = 7;
        let elp = Elp::parse(&bytes).unwrap();
        assert_eq!((elp.flow_control, elp.flow_parameters.len()), (FlowControl::VENDOR, 76));
        assert_eq!(SwIls::Elp(Box::new(elp.clone())).encoded_len(), 164);
        assert_eq!(elp.flow_parameters[75], 7);
        assert!(Elp::parse(&bytes[..163]).is_err());
    }
}
