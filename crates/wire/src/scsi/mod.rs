//! SCSI parameter data: the data that commands transfer (SPC, SBC). CDBs are in [`crate::cdb`],
//! sense data in [`crate::sense`], logical unit numbers in [`crate::lun`].

pub mod capacity;
pub mod inquiry;
pub mod lba_status;
pub mod luns;
pub mod mode;
pub mod operations;
pub mod port_groups;
pub mod reservation;
pub mod transport_id;
pub mod unmap;
pub mod vpd;

use crate::bytes::{fixed, slice, u32_at};
use crate::error::ParseError;

/// Returns the items of `N` bytes after a header. The first four bytes of the header count the
/// bytes after its first `count_from` bytes. A list that was truncated at the allocation length
/// ends with the available bytes.
fn items<'a, const N: usize>(
    field: &'static str,
    data: &'a [u8],
    header: usize,
    count_from: usize,
) -> Result<impl Iterator<Item = &'a [u8; N]>, ParseError> {
    let declared = u32_at(fixed::<4>(field, data)?, 0) as usize;
    slice(field, data, 0, header)?;
    let end = (count_from + declared).clamp(header, data.len());
    Ok(data[header..end].as_chunks::<N>().0.iter())
}
