//! Block I/O on a LUN: [`Medium`].

use super::store::Store;
use sanloom_block::Source;
use sanloom_scsi::scsi::{IoOp, IoStatus};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// The medium of one LUN, shared by all threads that do I/O on it.
#[derive(Debug)]
pub struct Medium {
    store: Store,
    block_bytes: u32,
    /// Held exclusively by operations that must not be mixed with other I/O (COMPARE AND WRITE).
    order: RwLock<()>,
    /// Name of the LUN, for messages.
    name: String,
    /// The last write was refused because there was no space.
    full: AtomicBool,
}

/// A block operation, in blocks of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockWork {
    /// The operation: read, write, …
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes that move between initiator and target.
    pub bytes: u32,
    /// The data must be durable before the operation ends (FUA).
    pub fua: bool,
}

impl Medium {
    /// Returns a medium that stores nothing: reads return zeros, written data are discarded.
    ///
    /// # Errors
    /// None; the type is that of [`Store::open`].
    pub fn nowhere(block_bytes: u32) -> io::Result<Medium> {
        Ok(Medium::new(Store::open(&Source::Null)?, block_bytes))
    }

    /// Returns a medium with blocks of this size.
    pub fn new(store: Store, block_bytes: u32) -> Medium {
        Medium { store, block_bytes, order: RwLock::new(()), name: String::new(), full: AtomicBool::new(false) }
    }

    /// Returns the medium with the name of its LUN for messages.
    pub fn with_name(self, name: String) -> Medium {
        Medium { name, ..self }
    }

    /// Returns whether the last write was refused because the disk is full.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Grows the medium to at least `bytes`; its content stays.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn grow(&self, bytes: u64) -> io::Result<()> {
        self.store.grow(bytes)
    }

    /// Returns whether I/O may take long, so that worker threads should do it.
    pub fn is_slow(&self) -> bool {
        matches!(self.store, Store::File(_) | Store::Direct(_))
    }

    /// Returns whether a file bypasses the page cache; `None` for other media.
    pub fn direct(&self) -> Option<bool> {
        match self.store {
            Store::Memory(_) => None,
            Store::File(_) => Some(false),
            Store::Direct(_) => Some(true),
        }
    }

    /// Carries out `work`. `data` holds the data of a write or receives those of a read, for which
    /// it grows.
    pub fn perform(&self, work: BlockWork, data: &mut Vec<u8>) -> IoStatus {
        let is_exclusive = work.op == IoOp::CompareAndWrite;
        let (shared, exclusive) = match is_exclusive {
            false => (Some(self.order.read().unwrap_or_else(PoisonError::into_inner)), None),
            true => (None, Some(self.order.write().unwrap_or_else(PoisonError::into_inner))),
        };
        let outcome = self.attempt(work, data);
        drop((shared, exclusive));
        self.status(work, outcome)
    }

    /// Returns the status of an attempt. Reports a full disk once, until a write succeeds again.
    fn status(&self, work: BlockWork, outcome: io::Result<IoStatus>) -> IoStatus {
        match outcome {
            Ok(status) => {
                let wrote = status == IoStatus::Good && work.op.changes_medium();
                if wrote && self.is_full() && self.full.swap(false, Ordering::Relaxed) {
                    tracing::info!(lun = self.name, "the disk behind the LUN has space again");
                }
                status
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                if !self.full.swap(true, Ordering::Relaxed) {
                    let lun = &self.name;
                    tracing::error!(lun, %error, "the disk behind the LUN is full, writes fail; free space on it");
                }
                IoStatus::NoSpace
            }
            Err(error) => {
                tracing::error!(lun = self.name, %error, lba = work.lba, op = ?work.op, "medium");
                IoStatus::MediumError
            }
        }
    }

    fn attempt(&self, work: BlockWork, data: &mut Vec<u8>) -> io::Result<IoStatus> {
        let block = u64::from(self.block_bytes);
        let (offset, extent) = (work.lba * block, u64::from(work.blocks) * block);
        // A write whose expected length ends inside a block writes the received bytes and keeps the
        // rest of the block, as tgt does. Other operations use whole blocks.
        let received = data.len().min(work.bytes as usize);
        let whole = |data: &[u8]| data.len().min(work.bytes as usize) / block as usize * block as usize;
        match work.op {
            IoOp::Read => {
                data.resize(work.bytes as usize, 0);
                self.store.read(offset, data)?;
            }
            IoOp::Write => self.store.write(offset, &data[..received])?,
            IoOp::WriteVerify => {
                let written = &data[..received];
                self.store.write(offset, written)?;
                self.store.flush()?;
                if let Some(at) = self.difference(offset, written)? {
                    tracing::error!(
                        lba = work.lba,
                        at,
                        "WRITE AND VERIFY: the medium returns other data than were written"
                    );
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

    /// Returns the offset of the first difference between the medium and `data`.
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

/// Maximum bytes read or written at once, apart from the caller's data.
const PIECE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_block::Source;

    fn work(op: IoOp, lba: u64, blocks: u32, bytes: u32) -> BlockWork {
        BlockWork { op, lba, blocks, bytes, fua: false }
    }

    #[test]
    fn a_full_disk_is_reported_until_a_write_succeeds() {
        let medium = Medium::new(Store::open(&Source::Ram).unwrap(), 512);
        let (write, read) = (work(IoOp::Write, 0, 1, 512), work(IoOp::Read, 0, 1, 512));
        assert!(!medium.is_full());
        let full = || Err(io::ErrorKind::StorageFull.into());
        assert_eq!((medium.status(write, full()), medium.is_full()), (IoStatus::NoSpace, true));
        assert_eq!(medium.status(write, full()), IoStatus::NoSpace);
        assert_eq!((medium.status(read, Ok(IoStatus::Good)), medium.is_full()), (IoStatus::Good, true));
        assert_eq!((medium.status(write, Ok(IoStatus::Good)), medium.is_full()), (IoStatus::Good, false));
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
    fn a_write_that_ends_inside_a_block_keeps_the_rest_of_the_block() {
        let medium = Medium::new(Store::open(&Source::Ram).unwrap(), 512);
        for (op, brought) in [(IoOp::Write, 700), (IoOp::WriteVerify, 700), (IoOp::Write, 200), (IoOp::Write, 0)] {
            assert_eq!(medium.perform(work(IoOp::Write, 0, 2, 1024), &mut vec![1; 1024]), IoStatus::Good);
            // The buffer is longer than the data, as reused buffers are.
            let mut data = vec![5; 2048];
            assert_eq!(medium.perform(work(op, 0, 2, brought), &mut data), IoStatus::Good);
            let mut read = Vec::new();
            medium.perform(work(IoOp::Read, 0, 2, 1024), &mut read);
            let brought = brought as usize;
            assert_eq!(read, [vec![5; brought], vec![1; 1024 - brought]].concat(), "{op:?}");
        }
    }
}
