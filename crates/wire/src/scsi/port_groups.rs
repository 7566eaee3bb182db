//! Target port groups: parameter data of REPORT and SET TARGET PORT GROUPS (SPC-4, 6.37 and 6.45).

use crate::bytes::{Put, fixed, len8, put_with_len32, slice, u16_at, u32_at};
use crate::codes::code_constants;
use crate::error::ParseError;

/// Parameter data of REPORT TARGET PORT GROUPS.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortGroups {
    /// Longest implicit transition in seconds, from the extended header; 0 means unspecified.
    /// `None` selects the short header.
    pub transition_seconds: Option<u8>,
    /// The groups.
    pub groups: Vec<TargetPortGroup>,
}

/// Target ports that share an asymmetric access state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TargetPortGroup {
    /// The group is preferred.
    pub preferred: bool,
    /// Asymmetric access state (see [`state`]).
    pub state: u8,
    /// States that the group can have (see [`supports`]).
    pub supported: u8,
    /// Number of the group.
    pub group: u16,
    /// Cause of the last state change (see [`changed`]).
    pub status: u8,
    /// Relative port identifiers of the group; at most 255.
    pub ports: Vec<u16>,
}

/// A descriptor of SET TARGET PORT GROUPS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SetTargetPortGroup {
    /// Requested state of the group (see [`state`]).
    pub state: u8,
    /// Number of the group.
    pub group: u16,
}

/// Asymmetric access states.
pub mod state {
    use super::code_constants;

    code_constants!(u8 {
        ACTIVE_OPTIMIZED = 0x0, "active/optimized";
        ACTIVE_NON_OPTIMIZED = 0x1, "active/non-optimized";
        STANDBY = 0x2, "standby";
        UNAVAILABLE = 0x3, "unavailable";
        OFFLINE = 0xe, "offline";
        TRANSITIONING = 0xf, "transitioning";
    });
}

/// Bits of [`TargetPortGroup::supported`].
pub mod supports {
    /// Active/optimized.
    pub const ACTIVE_OPTIMIZED: u8 = 0x01;
    /// Active/non-optimized.
    pub const ACTIVE_NON_OPTIMIZED: u8 = 0x02;
    /// Standby.
    pub const STANDBY: u8 = 0x04;
    /// Unavailable.
    pub const UNAVAILABLE: u8 = 0x08;
    /// Offline.
    pub const OFFLINE: u8 = 0x40;
    /// Transitioning.
    pub const TRANSITIONING: u8 = 0x80;
}

/// Values of [`TargetPortGroup::status`].
pub mod changed {
    /// No status information.
    pub const NOT_TOLD: u8 = 0;
    /// State changed by SET TARGET PORT GROUPS.
    pub const EXPLICITLY: u8 = 1;
    /// State changed by the device server itself.
    pub const IMPLICITLY: u8 = 2;
}

const FIELD: &str = "REPORT TARGET PORT GROUPS data";
const SET_FIELD: &str = "SET TARGET PORT GROUPS data";
/// Reserved bytes before the descriptors of SET TARGET PORT GROUPS.
const SET_HEAD_BYTES: usize = 4;

impl PortGroups {
    /// Reads all groups, after a short or an extended header.
    pub fn parse(data: &[u8]) -> Result<PortGroups, ParseError> {
        let len = u32_at(fixed::<4>(FIELD, data)?, 0) as usize;
        let data = slice(FIELD, data, 0, 4_usize.saturating_add(len))?;
        let extended = data.get(4).is_some_and(|byte| byte >> 4 == 1);
        let transition_seconds = if extended { Some(fixed::<8>(FIELD, data)?[5]) } else { None };
        let mut at = if extended { 8 } else { 4 };
        let mut groups = Vec::new();
        while at < data.len() {
            let b = fixed::<8>(FIELD, &data[at..])?;
            let ports = slice(FIELD, data, at + 8, 4 * usize::from(b[7]))?;
            groups.push(TargetPortGroup {
                preferred: b[0] & 0x80 != 0,
                state: b[0] & 0x0f,
                supported: b[1],
                group: u16_at(b, 2),
                status: b[5],
                ports: ports.as_chunks::<4>().0.iter().map(|port| u16_at(port, 2)).collect(),
            });
            at += 8 + ports.len();
        }
        Ok(PortGroups { transition_seconds, groups })
    }

    /// Appends the selected header and the groups.
    pub fn emit(&self, out: &mut Vec<u8>) {
        put_with_len32(out, |out| {
            if let Some(seconds) = self.transition_seconds {
                out.put_slice(&[0x10, seconds, 0, 0]);
            }
            for group in &self.groups {
                let ports = &group.ports[..group.ports.len().min(255)];
                out.put_u8(if group.preferred { 0x80 } else { 0 } | group.state & 0x0f);
                out.put_u8(group.supported);
                out.put_u16(group.group);
                out.put_slice(&[0, group.status, 0, len8(ports.len())]);
                ports.iter().for_each(|&port| out.put_u32(port.into()));
            }
        });
    }
}

/// Reads the descriptors of SET TARGET PORT GROUPS.
pub fn parse_set(data: &[u8]) -> Result<Vec<SetTargetPortGroup>, ParseError> {
    fixed::<SET_HEAD_BYTES>(SET_FIELD, data)?;
    let (descriptors, rest) = data[SET_HEAD_BYTES..].as_chunks::<4>();
    if !rest.is_empty() {
        let needed_bytes = data.len() + 4 - rest.len();
        return Err(ParseError::Truncated { field: SET_FIELD, needed_bytes, got_bytes: data.len() });
    }
    Ok(descriptors.iter().map(|b| SetTargetPortGroup { state: b[0] & 0x0f, group: u16_at(b, 2) }).collect())
}

/// Appends parameter data of SET TARGET PORT GROUPS.
pub fn emit_set(groups: &[SetTargetPortGroup], out: &mut Vec<u8>) {
    out.put_zeros(SET_HEAD_BYTES);
    for set in groups {
        out.extend_from_slice(&[set.state & 0x0f, 0]);
        out.put_u16(set.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_follow_each_other_with_their_ports() {
        let groups = vec![
            TargetPortGroup { preferred: true, state: 0, supported: 0xcf, group: 1, status: 1, ports: vec![1, 2] },
            TargetPortGroup { preferred: false, state: 2, supported: 5, group: 2, status: 0, ports: vec![3] },
        ];
        let short = PortGroups { transition_seconds: None, groups };
        let mut out = Vec::new();
        short.emit(&mut out);
        assert_eq!(out[..12], [0, 0, 0, 28, 0x80, 0xcf, 0, 1, 0, 1, 0, 2]);
        assert_eq!(out[12..20], [0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(out[20..], [2, 5, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3]);
        assert_eq!(PortGroups::parse(&out), Ok(short.clone()));
        assert!((0..out.len()).all(|len| PortGroups::parse(&out[..len]).is_err()));
        let extended = PortGroups { transition_seconds: Some(9), ..short };
        out.clear();
        extended.emit(&mut out);
        assert_eq!(out[..8], [0, 0, 0, 32, 0x10, 9, 0, 0]);
        assert_eq!(PortGroups::parse(&out), Ok(extended));
        assert!((0..out.len()).all(|len| PortGroups::parse(&out[..len]).is_err()));
    }

    #[test]
    fn the_states_to_set_follow_four_reserved_bytes() {
        let groups = [SetTargetPortGroup { state: 0, group: 0x102 }, SetTargetPortGroup { state: 2, group: 3 }];
        let mut out = Vec::new();
        emit_set(&groups, &mut out);
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 1, 2, 2, 0, 0, 3]);
        assert_eq!(parse_set(&out), Ok(groups.to_vec()));
        assert_eq!(parse_set(&out[..4]), Ok(vec![]));
        assert!((0..out.len()).filter(|len| ![4, 8].contains(len)).all(|len| parse_set(&out[..len]).is_err()));
    }

    fn group() -> impl Strategy<Value = TargetPortGroup> {
        let ports = prop::collection::vec(any::<u16>(), 0..255);
        (any::<bool>(), 0_u8..16, any::<u8>(), any::<u16>(), any::<u8>(), ports).prop_map(
            |(preferred, state, supported, group, status, ports)| TargetPortGroup {
                preferred,
                state,
                supported,
                group,
                status,
                ports,
            },
        )
    }

    proptest! {
        #[test]
        fn both_lists_survive(
            transition_seconds in any::<Option<u8>>(),
            groups in prop::collection::vec(group(), 0..8),
            set in prop::collection::vec((0_u8..16, any::<u16>()), 0..8),
        ) {
            let all = PortGroups { transition_seconds, groups };
            let mut out = Vec::new();
            all.emit(&mut out);
            prop_assert_eq!(PortGroups::parse(&out), Ok(all));
            let set: Vec<_> = set.into_iter().map(|(state, group)| SetTargetPortGroup { state, group }).collect();
            out.clear();
            emit_set(&set, &mut out);
            prop_assert_eq!(parse_set(&out), Ok(set));
        }
    }
}
