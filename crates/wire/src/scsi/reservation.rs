//! PERSISTENT RESERVE IN and OUT parameter data (SPC-4, 6.15 and 6.16).

use super::items;
use super::transport_id::TransportId;
use crate::bytes::{Put, fixed, put_with_len32, slice, u16_at, u32_at, u64_at};
use crate::codes::code_constants;
use crate::error::ParseError;

/// Service actions of PERSISTENT RESERVE IN.
pub mod in_action {
    use super::code_constants;

    code_constants!(u8 {
        READ_KEYS = 0x00, "READ KEYS";
        READ_RESERVATION = 0x01, "READ RESERVATION";
        REPORT_CAPABILITIES = 0x02, "REPORT CAPABILITIES";
        READ_FULL_STATUS = 0x03, "READ FULL STATUS";
    });
}

/// Service actions of PERSISTENT RESERVE OUT.
pub mod out_action {
    use super::code_constants;

    code_constants!(u8 {
        REGISTER = 0x00, "REGISTER";
        RESERVE = 0x01, "RESERVE";
        RELEASE = 0x02, "RELEASE";
        CLEAR = 0x03, "CLEAR";
        PREEMPT = 0x04, "PREEMPT";
        PREEMPT_AND_ABORT = 0x05, "PREEMPT AND ABORT";
        REGISTER_AND_IGNORE = 0x06, "REGISTER AND IGNORE EXISTING KEY";
        REGISTER_AND_MOVE = 0x07, "REGISTER AND MOVE";
    });
}

/// Types of a persistent reservation.
pub mod kind {
    use super::code_constants;

    code_constants!(u8 {
        WRITE_EXCLUSIVE = 0x1, "write exclusive";
        EXCLUSIVE_ACCESS = 0x3, "exclusive access";
        WRITE_EXCLUSIVE_REGISTRANTS_ONLY = 0x5, "write exclusive, registrants only";
        EXCLUSIVE_ACCESS_REGISTRANTS_ONLY = 0x6, "exclusive access, registrants only";
        WRITE_EXCLUSIVE_ALL_REGISTRANTS = 0x7, "write exclusive, all registrants";
        EXCLUSIVE_ACCESS_ALL_REGISTRANTS = 0x8, "exclusive access, all registrants";
    });
}

const IN_FIELD: &str = "PERSISTENT RESERVE IN data";
const OUT_FIELD: &str = "PERSISTENT RESERVE OUT parameter list";

/// Parameter data of READ KEYS.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keys {
    /// Number of registration changes so far.
    pub generation: u32,
    /// Reservation keys of all registered nexuses.
    pub keys: Vec<u64>,
}

impl Keys {
    /// Reads the keys, which may be truncated at the allocation length.
    pub fn parse(data: &[u8]) -> Result<Keys, ParseError> {
        let generation = u32_at(fixed::<8>(IN_FIELD, data)?, 0);
        let keys = items::<8>(IN_FIELD, &data[4..], 4, 4)?.map(|key| u64::from_be_bytes(*key));
        Ok(Keys { generation, keys: keys.collect() })
    }

    /// Appends the parameter data.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.generation);
        put_with_len32(out, |out| self.keys.iter().for_each(|&key| out.put_u64(key)));
    }
}

/// Parameter data of READ RESERVATION.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reservation {
    /// Number of registration changes so far.
    pub generation: u32,
    /// Key of the holder (0 for "all registrants") and type (see [`kind`]), if there is a
    /// reservation.
    pub held: Option<(u64, u8)>,
}

impl Reservation {
    /// Reads the parameter data.
    pub fn parse(data: &[u8]) -> Result<Reservation, ParseError> {
        let b = fixed::<8>(IN_FIELD, data)?;
        let generation = u32_at(b, 0);
        if u32_at(b, 4) == 0 {
            return Ok(Reservation { generation, held: None });
        }
        let b = fixed::<24>(IN_FIELD, data)?;
        Ok(Reservation { generation, held: Some((u64_at(b, 8), b[21] & 0x0f)) })
    }

    /// Appends the parameter data.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.generation);
        put_with_len32(out, |out| {
            if let Some((key, kind)) = self.held {
                out.put_u64(key);
                out.put_zeros(5);
                out.put_u8(kind & 0x0f);
                out.put_zeros(2);
            }
        });
    }
}

/// Appends REPORT CAPABILITIES of a device with all reservation types. The device can keep
/// registrations over a power cycle (PTPL_C, and PTPL_A if `keeps_now`). It can also register other
/// initiator ports (SIP_C) and register through all target ports (ATP_C).
pub fn emit_capabilities(keeps_now: bool, out: &mut Vec<u8>) {
    const PTPL_CAPABLE: u8 = 0x01;
    const INITIATORS_AND_PORTS_CAPABLE: u8 = 0x0c;
    const TYPE_MASK_VALID: u8 = 0x80;
    out.put_u16(8);
    out.put_u8(INITIATORS_AND_PORTS_CAPABLE | PTPL_CAPABLE);
    out.put_u8(TYPE_MASK_VALID | u8::from(keeps_now));
    // One bit for each type of `kind`.
    out.extend_from_slice(&[0xea, 0x01, 0, 0]);
}

/// A registered nexus in READ FULL STATUS.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FullStatus {
    /// Reservation key of the nexus.
    pub key: u64,
    /// The registration covers all target ports of the device.
    pub all_ports: bool,
    /// Type of the reservation (see [`kind`]), if the nexus holds one.
    pub holds: Option<u8>,
    /// Relative identifier of the target port.
    pub port: u16,
    /// Initiator port of the nexus.
    pub initiator: TransportId,
}

impl FullStatus {
    const BYTES: usize = 24;

    /// Reads the list and its generation.
    pub fn parse_list(data: &[u8]) -> Result<(u32, Vec<FullStatus>), ParseError> {
        let b = fixed::<8>(IN_FIELD, data)?;
        let end = 8_usize.saturating_add(u32_at(b, 4) as usize);
        let data = slice(IN_FIELD, data, 0, end)?;
        let mut at = 8;
        let mut list = Vec::new();
        while at < data.len() {
            let b = fixed::<{ Self::BYTES }>(IN_FIELD, &data[at..])?;
            let more = slice(IN_FIELD, data, at + Self::BYTES, u32_at(b, 20) as usize)?;
            let (initiator, _) = TransportId::parse(more)?;
            list.push(FullStatus {
                key: u64_at(b, 0),
                all_ports: b[12] & 2 != 0,
                holds: (b[12] & 1 != 0).then_some(b[13] & 0x0f),
                port: u16_at(b, 18),
                initiator,
            });
            at += Self::BYTES + more.len();
        }
        Ok((u32_at(b, 0), list))
    }

    /// Appends the list and its generation.
    pub fn emit_list(generation: u32, list: &[FullStatus], out: &mut Vec<u8>) {
        out.put_u32(generation);
        put_with_len32(out, |out| list.iter().for_each(|status| status.put(out)));
    }

    fn put(&self, out: &mut dyn Put) {
        out.put_u64(self.key);
        out.put_u32(0);
        out.put_u8(u8::from(self.all_ports) << 1 | u8::from(self.holds.is_some()));
        out.put_u8(self.holds.unwrap_or(0));
        out.put_zeros(4);
        out.put_u16(self.port);
        put_with_len32(out, |out| self.initiator.emit(out));
    }
}

/// Parameter list of PERSISTENT RESERVE OUT, for all service actions except REGISTER AND MOVE.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OutParameters {
    /// Reservation key of the sender.
    pub key: u64,
    /// The new key, or the key to preempt.
    pub action_key: u64,
    /// Registrations survive a power cycle (APTPL).
    pub keep: bool,
    /// The registration covers all target ports (ALL_TG_PT).
    pub all_ports: bool,
    /// Initiator ports to register instead of the sender (SPEC_I_PT).
    pub initiators: Option<Vec<TransportId>>,
}

impl OutParameters {
    /// Length without TransportIDs, in bytes.
    pub const BYTES: usize = 24;

    /// Reads the parameter list.
    pub fn parse(data: &[u8]) -> Result<OutParameters, ParseError> {
        let b = fixed::<{ Self::BYTES }>(OUT_FIELD, data)?;
        let initiators = if b[20] & 8 == 0 {
            None
        } else {
            let len = u32_at(fixed::<28>(OUT_FIELD, data)?, 24) as usize;
            let mut rest = slice(OUT_FIELD, data, 28, len)?;
            let mut list = Vec::new();
            while !rest.is_empty() {
                let (initiator, bytes) = TransportId::parse(rest)?;
                list.push(initiator);
                rest = &rest[bytes..];
            }
            Some(list)
        };
        Ok(OutParameters {
            key: u64_at(b, 0),
            action_key: u64_at(b, 8),
            keep: b[20] & 1 != 0,
            all_ports: b[20] & 4 != 0,
            initiators,
        })
    }

    /// Appends the parameter list.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u64(self.key);
        out.put_u64(self.action_key);
        out.put_u32(0);
        out.put_u8(u8::from(self.initiators.is_some()) << 3 | u8::from(self.all_ports) << 2 | u8::from(self.keep));
        out.put_zeros(3);
        if let Some(list) = &self.initiators {
            put_with_len32(out, |out| list.iter().for_each(|initiator| initiator.emit(out)));
        }
    }
}

/// Parameter list of REGISTER AND MOVE.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MoveParameters {
    /// Reservation key of the sender.
    pub key: u64,
    /// Reservation key of the new holder.
    pub action_key: u64,
    /// The sender is unregistered (UNREG).
    pub unregister: bool,
    /// Registrations survive a power cycle (APTPL).
    pub keep: bool,
    /// Relative identifier of the target port of the new holder.
    pub port: u16,
    /// Initiator port of the new holder.
    pub initiator: TransportId,
}

impl MoveParameters {
    /// Reads the parameter list.
    pub fn parse(data: &[u8]) -> Result<MoveParameters, ParseError> {
        let b = fixed::<24>(OUT_FIELD, data)?;
        let (initiator, _) = TransportId::parse(slice(OUT_FIELD, data, 24, u32_at(b, 20) as usize)?)?;
        Ok(MoveParameters {
            key: u64_at(b, 0),
            action_key: u64_at(b, 8),
            unregister: b[17] & 2 != 0,
            keep: b[17] & 1 != 0,
            port: u16_at(b, 18),
            initiator,
        })
    }

    /// Appends the parameter list.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u64(self.key);
        out.put_u64(self.action_key);
        out.put_u8(0);
        out.put_u8(u8::from(self.unregister) << 1 | u8::from(self.keep));
        out.put_u16(self.port);
        put_with_len32(out, |out| self.initiator.emit(out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wwpn;

    fn bytes(emit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        emit(&mut out);
        out
    }

    #[test]
    fn keys_and_reservation_have_the_layout_of_the_standard() {
        let keys = Keys { generation: 7, keys: vec![0x0102_0304_0506_0708, 9] };
        let out = bytes(|out| keys.emit(out));
        assert_eq!(out[..16], [0, 0, 0, 7, 0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Keys::parse(&out), Ok(keys));
        assert!((0..8).all(|len| Keys::parse(&out[..len]).is_err()));
        for held in [None, Some((5, kind::EXCLUSIVE_ACCESS))] {
            let reservation = Reservation { generation: 7, held };
            let out = bytes(|out| reservation.emit(out));
            assert_eq!(out.len(), if held.is_some() { 24 } else { 8 });
            assert_eq!(Reservation::parse(&out), Ok(reservation));
            assert!((0..out.len()).all(|len| Reservation::parse(&out[..len]).is_err()));
        }
    }

    #[test]
    fn capabilities_name_all_six_types() {
        assert_eq!(bytes(|out| emit_capabilities(true, out)), [0, 8, 0x0d, 0x81, 0xea, 1, 0, 0]);
    }

    #[test]
    fn full_status_names_initiators_of_two_transports() {
        let list = vec![
            FullStatus { key: 1, all_ports: false, holds: Some(5), port: 1, initiator: TransportId::Fcp(Wwpn(3)) },
            FullStatus { key: 2, all_ports: true, holds: None, port: 2, initiator: TransportId::iscsi("iqn.x", None) },
        ];
        let out = bytes(|out| FullStatus::emit_list(4, &list, out));
        assert_eq!(out[..8], [0, 0, 0, 4, 0, 0, 0, 96]);
        assert_eq!(out[20..22], [1, 5]);
        assert_eq!(FullStatus::parse_list(&out), Ok((4, list)));
        assert!((0..out.len()).all(|len| FullStatus::parse_list(&out[..len]).is_err()));
    }

    #[test]
    fn out_parameters_with_and_without_initiators() {
        for initiators in [None, Some(vec![TransportId::Fcp(Wwpn(3)), TransportId::iscsi("iqn.x", Some([1; 6]))])] {
            let parameters = OutParameters { key: 1, action_key: 2, keep: true, all_ports: false, initiators };
            let out = bytes(|out| parameters.emit(out));
            assert_eq!(out[20], if parameters.initiators.is_some() { 9 } else { 1 });
            assert!((0..out.len()).all(|len| OutParameters::parse(&out[..len]).is_err()));
            assert_eq!(OutParameters::parse(&out), Ok(parameters));
        }
    }

    #[test]
    fn move_parameters_name_the_new_holder() {
        let parameters = MoveParameters {
            key: 1,
            action_key: 2,
            unregister: true,
            keep: false,
            port: 3,
            initiator: TransportId::Fcp(Wwpn(4)),
        };
        let out = bytes(|out| parameters.emit(out));
        assert_eq!(out[16..24], [0, 2, 0, 3, 0, 0, 0, 24]);
        assert!((0..out.len()).all(|len| MoveParameters::parse(&out[..len]).is_err()));
        assert_eq!(MoveParameters::parse(&out), Ok(parameters));
    }
}
