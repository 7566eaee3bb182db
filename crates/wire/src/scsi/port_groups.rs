//! REPORT TARGET PORT GROUPS parameter data (SPC).

use crate::bytes::{Put, fixed, slice, u16_at, u32_at};
use crate::codes::code_constants;
use crate::error::ParseError;

/// Target ports that share an asymmetric access state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TargetPortGroup {
    /// Preferred.
    pub preferred: bool,
    /// Asymmetric access state (see [`state`]).
    pub state: u8,
    /// States that the group can have (see [`supports`]).
    pub supported: u8,
    /// Number of the group.
    pub group: u16,
    /// Why the state is what it is; 0: nothing to say.
    pub status: u8,
    /// Relative port identifiers; at most 255.
    pub ports: Vec<u16>,
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
}

const FIELD: &str = "REPORT TARGET PORT GROUPS data";

/// Reads all groups; with the extended header also the implicit transition time, which is skipped.
pub fn parse(data: &[u8]) -> Result<Vec<TargetPortGroup>, ParseError> {
    let len = u32_at(fixed::<4>(FIELD, data)?, 0) as usize;
    let data = slice(FIELD, data, 0, 4_usize.saturating_add(len))?;
    let extended = data.get(4).is_some_and(|byte| byte >> 4 == 1);
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
    Ok(groups)
}

/// Appends the groups, with the extended header if it is wanted.
pub fn emit(groups: &[TargetPortGroup], extended: bool, out: &mut Vec<u8>) {
    let of_groups: usize = groups.iter().map(|group| 8 + 4 * group.ports.len().min(255)).sum();
    out.put_u32((of_groups + if extended { 4 } else { 0 }) as u32);
    if extended {
        out.put_u32(0x1000_0000);
    }
    for group in groups {
        let ports = &group.ports[..group.ports.len().min(255)];
        out.put_u8(if group.preferred { 0x80 } else { 0 } | group.state & 0x0f);
        out.put_u8(group.supported);
        out.put_u16(group.group);
        out.extend_from_slice(&[0, group.status, 0, ports.len() as u8]);
        ports.iter().for_each(|&port| out.put_u32(port.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_with_their_ports() {
        let groups = [
            TargetPortGroup { preferred: true, state: 0, supported: 1, group: 1, status: 0, ports: vec![1, 2] },
            TargetPortGroup { preferred: false, state: 2, supported: 5, group: 2, status: 0, ports: vec![3] },
        ];
        let mut out = Vec::new();
        emit(&groups, false, &mut out);
        assert_eq!(out[..12], [0, 0, 0, 28, 0x80, 1, 0, 1, 0, 0, 0, 2]);
        assert_eq!(out[12..20], [0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(parse(&out), Ok(groups.to_vec()));
        assert!((0..out.len()).all(|len| parse(&out[..len]).is_err()));
        let mut extended = Vec::new();
        emit(&groups, true, &mut extended);
        assert_eq!(extended[..8], [0, 0, 0, 32, 0x10, 0, 0, 0]);
        assert_eq!(parse(&extended), Ok(groups.to_vec()));
    }
}
