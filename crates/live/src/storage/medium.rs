//! Block I/O on a LUN: [`Medium`].

use super::store::Store;
use sanloom_block::Source;
use sanloom_core::scsi::{IoOp, IoStatus};
use std::io;
use std::sync::{PoisonError, RwLock};

/// The medium of one LUN. Shared by everybody who does I/O on it.
#[derive(Debug)]
pub struct Medium {
    store: Store,
    block_bytes: u32,
    /// Held alone by what must not be mixed with other I/O (COMPARE AND WRITE).
    order: RwLock<()>,
}

/// What to do, in blocks of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockWork {
    /// Read, write, …
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes that move between initiator and target.
    pub bytes: u32,
    /// Durable before it is done.
    pub fua: bool,
}

impl Medium {
    /// A medium that keeps nothing: reads give zeros, writes are taken and forgotten.
    ///
    /// # Errors
    /// Never; as [`Store::open`].
    pub fn nowhere(block_bytes: u32) -> io::Result<Medium> {
        Ok(Medium::new(Store::open(&Source::Null)?, block_bytes))
    }

    /// A medium of blocks of this size.
    pub fn new(store: Store, block_bytes: u32) -> Medium {
        Medium { store, block_bytes, order: RwLock::new(()) }
    }

    /// Makes room for so many bytes; what there is stays.
    ///
    /// # Errors
    /// What the file says.
    pub fn grow(&self, bytes: u64) -> io::Result<()> {
        self.store.grow(bytes)
    }

    /// I/O takes so long that somebody else should do it.
    pub fn is_slow(&self) -> bool {
        matches!(self.store, Store::File(_) | Store::Direct(_))
    }

    /// Whether it goes past the page cache; nothing: it is no file.
    pub fn direct(&self) -> Option<bool> {
        match self.store {
            Store::Memory(_) => None,
            Store::File(_) => Some(false),
            Store::Direct(_) => Some(true),
        }
    }

    /// Does the work. `data`: what a write brings, or room for what a read gives; it grows to the size of a read.
    pub fn perform(&self, work: BlockWork, data: &mut Vec<u8>) -> IoStatus {
        let alone = work.op == IoOp::CompareAndWrite;
        let (shared, exclusive) = match alone {
            false => (Some(self.order.read().unwrap_or_else(PoisonError::into_inner)), None),
            true => (None, Some(self.order.write().unwrap_or_else(PoisonError::into_inner))),
        };
        let status = self.attempt(work, data).unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoStatus::NoSpace,
            _ => {
                tracing::error!(%error, lba = work.lba, op = ?work.op, "medium");
                IoStatus::MediumError
            }
        });
        drop((shared, exclusive));
        status
    }

    fn attempt(&self, work: BlockWork, data: &mut Vec<u8>) -> io::Result<IoStatus> {
        let block = u64::from(self.block_bytes);
        let (offset, extent) = (work.lba * block, u64::from(work.blocks) * block);
        // Of a write that brings less than its blocks, only the whole blocks count.
        let whole = |data: &[u8]| data.len().min(work.bytes as usize) / block as usize * block as usize;
        match work.op {
            IoOp::Read => {
                data.resize(work.bytes as usize, 0);
                self.store.read(offset, data)?;
            }
            IoOp::Write => self.store.write(offset, &data[..whole(data)])?,
            IoOp::WriteVerify => {
                let written = &data[..whole(data)];
                self.store.write(offset, written)?;
                self.store.flush()?;
                if let Some(at) = self.difference(offset, written)? {
                    tracing::error!(lba = work.lba, at, "the medium does not keep what is written");
                    return Ok(IoStatus::MediumError);
                }
            }
            IoOp::Verify => {
                let mut piece = vec![0; extent.min(PIECE_BYTES) as usize];
                for at in (0..extent).step_by(PIECE_BYTES as usize) {
                    let len = (extent - at).min(PIECE_BYTES) as usize;
                    self.store.read(offset + at, &mut piece[..len])?;
                }
            }
            IoOp::Compare => {
                if let Some(at) = self.difference(offset, &data[..whole(data)])? {
                    return Ok(IoStatus::Miscompare { offset: at });
                }
            }
            IoOp::CompareSame => {
                let one = &data[..whole(data).min(block as usize)];
                for number in 0..u64::from(work.blocks) {
                    if let Some(at) = self.difference(offset + number * block, one)? {
                        return Ok(IoStatus::Miscompare { offset: at });
                    }
                }
            }
            IoOp::CompareAndWrite => {
                let half = data.len().min(work.bytes as usize) / 2;
                let (expected, new) = data.split_at(half);
                if let Some(at) = self.difference(offset, expected)? {
                    return Ok(IoStatus::Miscompare { offset: at });
                }
                self.store.write(offset, &new[..half])?;
            }
            IoOp::WriteSame => {
                let one = &data[..whole(data).min(block as usize)];
                if !one.is_empty() {
                    let piece = one.repeat((extent.min(PIECE_BYTES) / block).max(1) as usize);
                    for at in (0..extent).step_by(piece.len()) {
                        let len = (extent - at).min(piece.len() as u64) as usize;
                        self.store.write(offset + at, &piece[..len])?;
                    }
                }
            }
            IoOp::WriteZeroes | IoOp::Unmap => self.store.discard(offset, extent)?,
            IoOp::Flush => self.store.flush()?,
            IoOp::Mapping => {
                let (mapped, bytes) = self.store.mapping(offset, extent)?;
                return Ok(IoStatus::Mapping { mapped, blocks: (bytes / block).max(1) });
            }
        }
        if work.fua && work.op.changes_medium() && work.op != IoOp::WriteVerify {
            self.store.flush()?;
        }
        Ok(IoStatus::Good)
    }

    /// Where the medium differs from `data`, in bytes from the beginning of both.
    fn difference(&self, offset: u64, data: &[u8]) -> io::Result<Option<u32>> {
        let mut piece = vec![0; data.len().min(PIECE_BYTES as usize)];
        for (number, expected) in data.chunks(PIECE_BYTES as usize).enumerate() {
            let at = number * PIECE_BYTES as usize;
            let found = &mut piece[..expected.len()];
            self.store.read(offset + at as u64, found)?;
            if let Some(byte) = found.iter().zip(expected).position(|(a, b)| a != b) {
                return Ok(Some((at + byte) as u32));
            }
        }
        Ok(None)
    }
}

/// What is read or written at once, beyond what the caller has in memory.
const PIECE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_block::Source;

    fn work(op: IoOp, lba: u64, blocks: u32, bytes: u32) -> BlockWork {
        BlockWork { op, lba, blocks, bytes, fua: false }
    }

    #[test]
    fn compare_and_write_changes_only_what_is_as_expected() {
        let medium = Medium::new(Store::open(&Source::Ram).unwrap(), 512);
        let mut data = [vec![0; 512], vec![9; 512]].concat();
        assert_eq!(medium.perform(work(IoOp::CompareAndWrite, 5, 1, 1024), &mut data), IoStatus::Good);
        data[3] = 1;
        let refused = medium.perform(work(IoOp::CompareAndWrite, 5, 1, 1024), &mut data);
        assert_eq!(refused, IoStatus::Miscompare { offset: 0 });
        let mut read = Vec::new();
        assert_eq!(medium.perform(work(IoOp::Read, 5, 1, 512), &mut read), IoStatus::Good);
        assert_eq!(read, vec![9; 512]);
    }

    #[test]
    fn one_block_fills_an_extent_and_is_found_in_all_of_it() {
        let medium = Medium::new(Store::open(&Source::Ram).unwrap(), 4096);
        let mut block = vec![3; 4096];
        assert_eq!(medium.perform(work(IoOp::WriteSame, 10, 1000, 4096), &mut block), IoStatus::Good);
        assert_eq!(medium.perform(work(IoOp::CompareSame, 10, 1000, 4096), &mut block), IoStatus::Good);
        let beyond = medium.perform(work(IoOp::CompareSame, 10, 1001, 4096), &mut block);
        assert_eq!(beyond, IoStatus::Miscompare { offset: 0 });
    }

    #[test]
    fn a_write_that_brings_less_writes_its_whole_blocks() {
        let medium = Medium::new(Store::open(&Source::Ram).unwrap(), 512);
        assert_eq!(medium.perform(work(IoOp::Write, 0, 2, 700), &mut vec![5; 700]), IoStatus::Good);
        let mut read = Vec::new();
        medium.perform(work(IoOp::Read, 0, 2, 1024), &mut read);
        assert_eq!(read, [vec![5; 512], vec![0; 512]].concat());
    }
}
