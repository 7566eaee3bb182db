//! SCSI parameter data: what commands carry besides their CDB (SPC, SBC). CDBs are in [`crate::cdb`], sense data in
//! [`crate::sense`], logical unit numbers in [`crate::lun`].

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

/// The items of `N` bytes behind a header whose first four bytes count the bytes that follow the header's `count_from`th
/// byte. A list that was cut at the allocation length is as long as the bytes that are there.
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
