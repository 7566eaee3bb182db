//! Media of the test beds: disks in memory with bad blocks.

use sanloom_scsi::disk::WriteCache;
use sanloom_scsi::map::Pieces;
use sanloom_scsi::scsi::{Io, IoOp, IoStatus};
use std::collections::BTreeSet;

pub const BLOCK: usize = 512;

#[derive(Default)]
pub struct Disk {
    pub data: Vec<u8>,
    pub bad: BTreeSet<u64>,
    /// Cache mode that the disk reports.
    pub cache: WriteCache,
    /// Blocks whose data are only in the cache.
    pub volatile: BTreeSet<u64>,
}

impl Disk {
    pub fn new(blocks: u64) -> Disk {
        Disk { data: vec![0; blocks as usize * BLOCK], ..Disk::default() }
    }

    pub fn block(&mut self, lba: u64) -> &mut [u8] {
        &mut self.data[lba as usize * BLOCK..][..BLOCK]
    }

    /// Records an access to a block, and whether its data are in the volatile cache afterwards.
    pub fn touch(&mut self, lba: u64, writes: bool, durable: bool) {
        match durable || self.cache == WriteCache::Absent {
            true => _ = self.volatile.remove(&lba),
            false if writes => _ = self.volatile.insert(lba),
            false => {}
        }
    }

    /// Executes block I/O of the target that owns this unit.
    pub fn perform(&mut self, io: &Io, buffer: &mut Vec<u8>) -> IoStatus {
        let all: Vec<(usize, u64)> = (0..io.blocks).map(|n| (0, io.lba + u64::from(n))).collect();
        let io = Io { fua: io.fua && self.cache != WriteCache::Synchronize, ..*io };
        perform(std::slice::from_mut(self), &all, &io, buffer)
    }
}

/// Executes block I/O of a volume according to its map. Durable data are made so by FUA or by a
/// SYNCHRONIZE CACHE afterwards.
pub fn perform_mapped(disks: &mut [Disk], pieces: Pieces<'_>, io: &Io, buffer: &mut Vec<u8>) -> IoStatus {
    let of = |piece: sanloom_scsi::map::Piece| {
        (0..piece.blocks).map(move |n| (usize::from(piece.place.lun.0), piece.place.lba + u64::from(n)))
    };
    let all: Vec<(usize, u64)> = pieces.flat_map(of).collect();
    perform(disks, &all, io, buffer)
}

fn perform(disks: &mut [Disk], blocks: &[(usize, u64)], io: &Io, buffer: &mut Vec<u8>) -> IoStatus {
    let whole = io.bytes as usize / BLOCK;
    // A short write changes fewer blocks.
    let touched = if matches!(io.op, IoOp::Write | IoOp::WriteVerify) { whole } else { blocks.len() };
    if io.op != IoOp::Flush && blocks.iter().take(touched).any(|(disk, lba)| disks[*disk].bad.contains(lba)) {
        return IoStatus::MediumError;
    }
    if io.op == IoOp::Flush {
        disks.iter_mut().for_each(|disk| disk.volatile.clear());
    }
    if io.op == IoOp::Read || io.op.changes_medium() {
        blocks.iter().for_each(|(disk, lba)| disks[*disk].touch(*lba, io.op.changes_medium(), io.fua));
    }
    match io.op {
        IoOp::Read => {
            buffer.clear();
            for (disk, lba) in blocks {
                buffer.extend_from_slice(disks[*disk].block(*lba));
            }
            buffer.truncate(io.bytes as usize);
        }
        IoOp::Write | IoOp::WriteVerify => {
            for ((disk, lba), data) in blocks.iter().take(whole).zip(buffer.chunks(BLOCK)) {
                disks[*disk].block(*lba).copy_from_slice(data);
            }
        }
        IoOp::WriteSame => {
            for (disk, lba) in blocks {
                disks[*disk].block(*lba).copy_from_slice(&buffer[..BLOCK]);
            }
        }
        IoOp::CompareAndWrite => {
            let (compare, write) = buffer.split_at(blocks.len() * BLOCK);
            for (n, (disk, lba)) in blocks.iter().enumerate() {
                let there = disks[*disk].block(*lba);
                if let Some(at) = there.iter().zip(&compare[n * BLOCK..]).position(|(a, b)| a != b) {
                    return IoStatus::Miscompare { offset: (n * BLOCK + at) as u32 };
                }
            }
            for ((disk, lba), data) in blocks.iter().zip(write.chunks(BLOCK)) {
                disks[*disk].block(*lba).copy_from_slice(data);
            }
        }
        IoOp::Flush | IoOp::Verify => {}
        other => panic!("{other:?} is not in the script"),
    }
    IoStatus::Good
}
