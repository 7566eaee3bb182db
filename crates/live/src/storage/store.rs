//! Where the bytes of a LUN are: [`Store`].

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use sanloom_wire::pattern;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{PoisonError, RwLock};

/// Memory is given out in pieces of this size.
const PAGE_BYTES: u64 = 64 << 10;

/// Bytes that can be read and written at any place.
#[derive(Debug)]
pub enum Store {
    /// In memory, pages that were never written take none.
    Ram(RwLock<BTreeMap<u64, Box<[u8]>>>),
    /// In a file.
    File(File),
    /// Each byte follows from its address; writes are forgotten.
    Pattern {
        /// Names the stream of bytes.
        seed: u32,
    },
    /// Zeros; writes are forgotten.
    Null,
}

impl Store {
    /// Memory, all zeros.
    pub fn ram() -> Store {
        Store::Ram(RwLock::default())
    }

    /// Reads from `offset`.
    ///
    /// # Errors
    /// What the file says.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Store::Ram(pages) => {
                let pages = pages.read().unwrap_or_else(PoisonError::into_inner);
                pieces(offset, out.len(), |page, within, range| match pages.get(&page) {
                    Some(bytes) => out[range.clone()].copy_from_slice(&bytes[within..within + range.len()]),
                    None => out[range].fill(0),
                });
                Ok(())
            }
            Store::File(file) => file.read_exact_at(out, offset),
            Store::Pattern { seed } => {
                pattern::fill(*seed, offset, out);
                Ok(())
            }
            Store::Null => {
                out.fill(0);
                Ok(())
            }
        }
    }

    /// Writes at `offset`.
    ///
    /// # Errors
    /// What the file says.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Store::Ram(pages) => {
                let mut pages = pages.write().unwrap_or_else(PoisonError::into_inner);
                pieces(offset, data.len(), |page, within, range| {
                    let bytes = pages.entry(page).or_insert_with(|| vec![0; PAGE_BYTES as usize].into_boxed_slice());
                    bytes[within..within + range.len()].copy_from_slice(&data[range]);
                });
                Ok(())
            }
            Store::File(file) => file.write_all_at(data, offset),
            Store::Pattern { .. } | Store::Null => Ok(()),
        }
    }

    /// Gives back the space of a range, which reads as zeros from then on.
    ///
    /// # Errors
    /// What the file says.
    pub fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        match self {
            Store::Ram(pages) => {
                let mut pages = pages.write().unwrap_or_else(PoisonError::into_inner);
                let (first, end) = (offset.div_ceil(PAGE_BYTES), (offset + len) / PAGE_BYTES);
                let whole: Vec<u64> =
                    if first < end { pages.range(first..end).map(|(page, _)| *page).collect() } else { Vec::new() };
                whole.iter().for_each(|page| drop(pages.remove(page)));
                for (page, bytes) in pages.range_mut(offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)) {
                    let start = page * PAGE_BYTES;
                    let from = offset.saturating_sub(start).min(PAGE_BYTES);
                    let to = (offset + len).saturating_sub(start).min(PAGE_BYTES);
                    bytes[from as usize..to as usize].fill(0);
                }
                Ok(())
            }
            Store::File(file) => {
                Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)?)
            }
            Store::Pattern { .. } | Store::Null => Ok(()),
        }
    }

    /// Everything that was written survives a crash of the machine, as far as the store survives one at all.
    ///
    /// # Errors
    /// What the file says.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Store::File(file) => file.sync_data(),
            Store::Ram(_) | Store::Pattern { .. } | Store::Null => Ok(()),
        }
    }

    /// Whether the byte at `offset` takes space, and for how many bytes from there on the answer is the same, within `len`.
    ///
    /// # Errors
    /// What the file says.
    pub fn mapping(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        let end = offset + len;
        match self {
            Store::Ram(pages) => {
                let pages = pages.read().unwrap_or_else(PoisonError::into_inner);
                let first = offset / PAGE_BYTES;
                let mapped = pages.contains_key(&first);
                let change = (first..end.div_ceil(PAGE_BYTES)).find(|page| pages.contains_key(page) != mapped);
                Ok((mapped, change.map_or(end, |page| page * PAGE_BYTES).min(end) - offset))
            }
            Store::File(file) => {
                let data = match seek(file, SeekFrom::Data(offset)) {
                    Ok(data) => data,
                    // Nothing but a hole up to the end.
                    Err(rustix::io::Errno::NXIO) => end,
                    Err(error) => return Err(error.into()),
                };
                if data > offset {
                    return Ok((false, data.min(end) - offset));
                }
                Ok((true, seek(file, SeekFrom::Hole(offset))?.min(end) - offset))
            }
            Store::Pattern { .. } | Store::Null => Ok((true, len)),
        }
    }
}

/// Calls `each` with page, offset within it, and the part of the caller's bytes.
fn pieces(offset: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES) as usize;
        let piece = (PAGE_BYTES as usize - within).min(len - done);
        each(at / PAGE_BYTES, within, done..done + piece);
        done += piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores() -> Vec<Store> {
        let file = tempfile();
        file.set_len(1 << 20).unwrap();
        vec![Store::ram(), Store::File(file)]
    }

    fn tempfile() -> File {
        let path = std::env::temp_dir().join(format!("sanloom-store-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    #[test]
    fn what_is_written_is_read_across_pages_and_what_is_not_is_zero() {
        for store in stores() {
            let data: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
            store.write(60_000, &data).unwrap();
            let mut out = vec![1; 300_000];
            store.read(10_000, &mut out).unwrap();
            assert!(out[..50_000].iter().all(|byte| *byte == 0));
            assert_eq!(out[50_000..250_000], data);
            assert!(out[250_000..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn what_is_discarded_reads_as_zeros_and_takes_no_space() {
        for store in stores() {
            store.write(0, &[7; 512 << 10]).unwrap();
            assert_eq!(store.mapping(0, 1 << 20).unwrap(), (true, 512 << 10));
            store.discard(4_096, 256 << 10).unwrap();
            let mut out = vec![1; 512 << 10];
            store.read(0, &mut out).unwrap();
            let zeros = out.iter().filter(|byte| **byte == 0).count();
            assert_eq!((zeros, out[4_095], out[4_096 + (256 << 10)]), (256 << 10, 7, 7));
            assert!(!store.mapping(128 << 10, 64 << 10).unwrap().0);
        }
    }
}
