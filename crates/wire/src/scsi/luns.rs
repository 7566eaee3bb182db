//! REPORT LUNS parameter data (SPC).

use super::items;
use crate::bytes::{Put, counted};
use crate::error::ParseError;
use crate::lun::LunBytes;

/// Reads the list, which may be truncated at the allocation length.
pub fn parse(data: &[u8]) -> Result<Vec<LunBytes>, ParseError> {
    Ok(items::<8>("REPORT LUNS data", data, 8, 8)?.copied().collect())
}

/// Appends the list.
pub fn emit(luns: &[LunBytes], out: &mut Vec<u8>) {
    let put_luns = |out: &mut dyn Put| luns.iter().for_each(|lun| out.put_slice(lun));
    out.put_len32(counted(|_, out| put_luns(out)));
    out.put_u32(0);
    put_luns(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_length_and_eight_bytes_per_lun() {
        let luns = [[0, 0, 0, 0, 0, 0, 0, 0], [0x41, 0, 0, 0, 0, 0, 0, 0]];
        let mut out = Vec::new();
        emit(&luns, &mut out);
        assert_eq!(out[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
        assert_eq!(parse(&out), Ok(luns.to_vec()));
        assert_eq!(parse(&out[..20]), Ok(luns[..1].to_vec()));
        assert!((0..8).all(|len| parse(&out[..len]).is_err()));
    }
}
