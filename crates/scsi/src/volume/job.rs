//! One block I/O on a volume as a sequence of steps: [`Job`].

use super::{Buffer, CHUNK_BYTES, VolumeIo, status_of};
use crate::disk::{Done, Error, Op};
use crate::map::EpochId;
use crate::scsi::{IoOp, IoStatus};
use sanloom_wire::sense::{SenseCode, SenseKey};

/// Requests that are sent together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wave {
    pub(super) op: Op,
    pub(super) lba: u64,
    pub(super) blocks: u32,
    pub(super) fua: bool,
    pub(super) buffer: Buffer,
    /// Offset of the first block in the buffer, in bytes.
    pub(super) at: u32,
}

/// Next step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Wave(Wave),
    Repeat { bytes: u32 },
    Compare { bytes: u32, at: u32, block_bytes: u32 },
    End(IoStatus),
}

/// State of one block I/O.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) io: VolumeIo,
    pub(super) block_bytes: u32,
    /// Epoch on which the job began.
    pub(super) epoch: Option<EpochId>,
    /// Number of requests that have not ended.
    pub(super) open: u32,
    /// Number of steps taken.
    phase: u32,
    /// Blocks completed in an operation that is done in chunks.
    done: u32,
    /// Blocks of the current chunk.
    chunk: u32,
    /// True if the chunk was read and has to be compared.
    reading: bool,
    /// Failure of the first failed piece, with the number of that piece.
    error: Option<(u32, IoStatus)>,
    /// Result of a status request.
    mapping: Option<IoStatus>,
}

/// Blocks that take part in the order of overlapping jobs.
pub(super) fn range(io: &VolumeIo) -> (u64, u64) {
    match io.op {
        IoOp::Flush => (0, 0),
        _ => (io.lba, io.blocks.into()),
    }
}

impl Job {
    pub(super) fn new(io: VolumeIo) -> Job {
        let (error, mapping) = (None, None);
        Job { io, block_bytes: 1, epoch: None, open: 0, phase: 0, done: 0, chunk: 0, reading: false, error, mapping }
    }

    pub(super) fn begin(&mut self, block_bytes: u32, epoch: Option<EpochId>) {
        self.block_bytes = block_bytes;
        self.epoch = epoch;
        let whole = self.io.bytes / block_bytes;
        match self.io.op {
            IoOp::Write | IoOp::WriteVerify => self.io.blocks = self.io.blocks.min(whole),
            // Comparisons and WRITE SAME cannot be carried out in part, so the job fails.
            IoOp::Compare if whole < self.io.blocks => self.refuse(),
            IoOp::CompareAndWrite if whole / 2 < self.io.blocks => self.refuse(),
            IoOp::CompareSame | IoOp::WriteSame if whole == 0 => self.refuse(),
            _ => {}
        }
    }

    pub(super) fn is_first_wave(&self) -> bool {
        self.phase == 1
    }

    /// Records the end of a request of the current wave.
    pub(super) fn ended(&mut self, place: u32, result: Result<Done, Error>) {
        self.open -= 1;
        match result {
            Err(error) if self.error.is_none_or(|(first, _)| place < first) => {
                self.error = Some((place, status_of(&error)));
            }
            Ok(Done::Runs(runs)) => {
                let run = runs.first();
                self.mapping = run.map(|run| IoStatus::Mapping { mapped: run.mapped, blocks: run.blocks.into() });
            }
            Err(_) | Ok(Done::All) => {}
        }
    }

    /// Fails the job because its blocks do not exist.
    pub(super) fn out_of_range(&mut self) {
        let (key, code) = (SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE);
        self.error = Some((0, IoStatus::Failed { key, code }));
    }

    /// Fails the job because data are missing.
    fn refuse(&mut self) {
        let (key, code) = (SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_CDB);
        self.error = Some((0, IoStatus::Failed { key, code }));
    }

    pub(super) fn compared(&mut self, difference: Option<u32>) {
        if let Some(offset) = difference {
            let before = if self.io.op == IoOp::CompareSame { 0 } else { self.bytes(self.done) };
            // A difference after a write is a failed write, not a miscompare.
            let status = match self.io.op {
                IoOp::WriteVerify => IoStatus::MediumError,
                _ => IoStatus::Miscompare { offset: before + offset },
            };
            self.error = Some((0, status));
        }
        self.done += self.chunk;
    }

    fn bytes(&self, blocks: u32) -> u32 {
        blocks.saturating_mul(self.block_bytes)
    }

    /// Returns the next step after all previous ones have ended.
    pub(super) fn next_step(&mut self) -> Step {
        if let Some((_, status)) = self.error {
            return Step::End(status);
        }
        let VolumeIo { op, lba, blocks, fua, .. } = self.io;
        let phase = self.phase;
        self.phase += 1;
        let whole = |op, fua| Wave { op, lba, blocks, fua, buffer: Buffer::Data, at: 0 };
        let nothing = blocks == 0 && op != IoOp::Flush;
        match (op, phase) {
            _ if nothing => Step::End(IoStatus::Good),
            (IoOp::Read, 0) => Step::Wave(whole(Op::Read, fua)),
            (IoOp::Write, 0) => Step::Wave(whole(Op::Write, fua)),
            (IoOp::WriteVerify, 0) => Step::Wave(whole(Op::Write, true)),
            (IoOp::WriteZeroes, 0) => Step::Wave(whole(Op::WriteZeroes { unmap: false }, fua)),
            // Unmapped blocks must read as zeros on every back end.
            (IoOp::Unmap, 0) => Step::Wave(whole(Op::WriteZeroes { unmap: true }, fua)),
            (IoOp::Flush, 0) => Step::Wave(whole(Op::Flush, false)),
            (IoOp::Mapping, 0) => Step::Wave(whole(Op::Status, false)),
            (IoOp::Mapping, _) => Step::End(self.mapping.unwrap_or(IoStatus::MediumError)),
            (IoOp::WriteSame, 0) => Step::Repeat { bytes: self.bytes(self.next_chunk()) },
            (IoOp::WriteSame, _) => {
                self.done += self.chunk;
                self.in_chunks(Op::Write, fua)
            }
            (IoOp::Verify, _) => {
                self.done += self.chunk;
                self.in_chunks(Op::Read, false)
            }
            (IoOp::CompareAndWrite, 0) => Step::Wave(Wave { buffer: Buffer::Scratch, ..whole(Op::Read, false) }),
            (IoOp::CompareAndWrite, 1) => {
                self.chunk = blocks;
                Step::Compare { bytes: self.bytes(blocks), at: 0, block_bytes: 0 }
            }
            (IoOp::CompareAndWrite, 2) => Step::Wave(Wave { at: self.bytes(blocks), ..whole(Op::Write, fua) }),
            (IoOp::Compare | IoOp::CompareSame | IoOp::WriteVerify, _) => self.read_and_compare(),
            (IoOp::Read | IoOp::Write | IoOp::WriteZeroes | IoOp::Unmap | IoOp::Flush | IoOp::CompareAndWrite, _) => {
                Step::End(IoStatus::Good)
            }
        }
    }

    /// Number of blocks in the next chunk.
    fn next_chunk(&self) -> u32 {
        (CHUNK_BYTES / self.block_bytes).max(1).min(self.io.blocks - self.done)
    }

    /// Returns the next transfer of a chunk between scratch and the volume.
    fn in_chunks(&mut self, op: Op, fua: bool) -> Step {
        self.chunk = self.next_chunk();
        if self.chunk == 0 {
            return Step::End(IoStatus::Good);
        }
        let lba = self.io.lba + u64::from(self.done);
        Step::Wave(Wave { op, lba, blocks: self.chunk, fua, buffer: Buffer::Scratch, at: 0 })
    }

    /// Alternates between reading a chunk and comparing it.
    fn read_and_compare(&mut self) -> Step {
        let compare = std::mem::replace(&mut self.reading, false);
        if !compare {
            self.reading = true;
            return self.in_chunks(Op::Read, false);
        }
        let bytes = self.bytes(self.chunk);
        match self.io.op {
            IoOp::CompareSame => Step::Compare { bytes, at: 0, block_bytes: self.block_bytes },
            _ => Step::Compare { bytes, at: self.bytes(self.done), block_bytes: 0 },
        }
    }
}
