//! Block I/O on virtual disks: the conventional path of the iSCSI switch paper, section 2.
//!
//! ```text
//!   scsi::Device -- Io --> Volumes: order, -- disk::Request --> disk::Disk of each back-end LUN
//!                <- done - map::Map, pieces  <---- result -----
//! ```
//!
//! The protocol of the host ends before this module. Reservations, unit attentions and resets are
//! handled by the [`Device`](crate::scsi::Device) in front of it and never reach a back end.
//! Commands that a back end may not support (COMPARE AND WRITE, VERIFY, WRITE SAME of any pattern)
//! are emulated with reads and writes in chunks of [`CHUNK_BYTES`].
//!
//! Data do not enter this module: the driver keeps two buffers per job. *Data* contains the bytes
//! exchanged with the host. *Scratch* contains bytes read for a comparison, or the repeated block
//! of WRITE SAME.
//!
//! A job holds the epoch of the map on which it began until its last request has ended. COMPARE AND
//! WRITE and WRITE AND VERIFY are exclusive in their range: they wait for overlapping jobs, and
//! overlapping jobs wait for them ([`RangeOrder`]).
//!
//! Work on a volume without a job, such as that of the [forwarding path](crate::iscsi::forward),
//! takes part in both by a [`Claim`].

mod job;
mod order;

pub use order::{Claim, RangeOrder};

use crate::disk::{self, Done, Error, ErrorKind, Op};
use crate::map::{EpochId, LunBlock, LunId, Map, Piece, VolumeId};
use crate::ordered::OrderedMap;
use crate::scsi::{IoOp, IoStatus};
use job::{Job, Step, Wave};
use order::Orders;
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::{BTreeMap, VecDeque};

/// Maximum size of scratch in bytes, unless one block is larger.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// Block I/O on a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeIo {
    /// Number of the volume.
    pub volume: VolumeId,
    /// Operation to carry out.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Length of the buffer *data*. A write shorter than its blocks changes only the blocks that it
    /// covers entirely.
    pub bytes: u32,
    /// True if the data must be durable before completion.
    pub fua: bool,
}

/// Buffer of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Buffer {
    /// Bytes exchanged between host and switch.
    Data,
    /// Bytes read for a comparison, or a repeated block.
    Scratch,
}

/// Action that the driver has to execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Pass a request to the disk of a back-end LUN, then call [`Volumes::ended`] with its tag.
    Request {
        /// Number of the job.
        job: u64,
        /// Back-end LUN.
        lun: LunId,
        /// Request to carry out; its tag is never reused.
        request: disk::Request,
        /// Buffer with its data.
        buffer: Buffer,
        /// Offset in that buffer, in bytes. A buffer that is read into grows as needed.
        at: u32,
    },
    /// Fill `bytes` bytes of scratch with repetitions of the first `block_bytes` of data.
    Repeat {
        /// Number of the job.
        job: u64,
        /// Length of the repeated block in bytes.
        block_bytes: u32,
        /// Length of scratch in bytes.
        bytes: u32,
    },
    /// Compare the first `bytes` bytes of scratch with data, then call [`Volumes::compared`].
    Compare {
        /// Number of the job.
        job: u64,
        /// Number of bytes to compare.
        bytes: u32,
        /// Offset of those bytes in data.
        at: u32,
        /// Length of the one block in data with which each block of scratch is compared; 0 if data
        /// are as long as scratch.
        block_bytes: u32,
    },
    /// A job has ended. After a read, its data buffer contains the result.
    Done {
        /// Number of the job.
        job: u64,
        /// Result of the job.
        status: IoStatus,
    },
}

/// Counters of all volumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Jobs received.
    pub jobs: u64,
    /// Jobs over more than one piece.
    pub split: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that waited for others in their range.
    pub ordered: u64,
    /// Requests sent to back ends.
    pub requests: u64,
}

/// Path of a host command to the back ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Path {
    /// As a job of this module.
    Conventional,
    /// PDU by PDU, on the forwarding path.
    Forwarding,
}

/// Load of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Commands that access the medium.
    pub commands: u64,
    /// Read data in bytes.
    pub read_bytes: u64,
    /// Written data in bytes.
    pub written_bytes: u64,
}

/// First number of a claim; numbers of jobs are smaller.
const CLAIMS: u64 = 1 << 63;

/// Volumes of a switch. See the module for its use. After each call, [`Self::poll_output`] has to
/// be drained.
#[derive(Debug)]
pub struct Volumes {
    map: Map,
    orders: Orders,
    jobs: OrderedMap<u64, Job>,
    outbox: Outbox,
    counters: Counters,
    carried: BTreeMap<VolumeId, [Carried; 2]>,
    next_claim: u64,
}

/// Requests in flight, and outputs.
#[derive(Debug, Default)]
struct Outbox {
    /// Job of each request in flight, and number of the request in its wave.
    requests: OrderedMap<u64, (u64, u32)>,
    next_request: u64,
    outputs: VecDeque<Output>,
}

impl Outbox {
    /// Sends a piece of a wave as a request.
    fn send_piece(&mut self, id: u64, job: &mut Job, wave: &Wave, piece: Piece) {
        let tag = self.next_request;
        self.next_request += 1;
        self.requests.insert(tag, (id, job.open));
        job.open += 1;
        let LunBlock { lun, lba } = piece.place;
        let request = disk::Request { tag, op: wave.op, lba, blocks: piece.blocks, fua: wave.fua };
        let at = wave.at + piece.at.saturating_mul(job.block_bytes);
        self.outputs.push_back(Output::Request { job: id, lun, request, buffer: wave.buffer, at });
    }
}

impl Volumes {
    /// Creates the volumes of a map.
    pub fn new(map: Map) -> Volumes {
        Volumes {
            map,
            orders: Orders::default(),
            jobs: OrderedMap::new(),
            outbox: Outbox::default(),
            counters: Counters::default(),
            carried: BTreeMap::new(),
            next_claim: CLAIMS,
        }
    }

    /// Map of all volumes.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Mutable map. Jobs in progress continue on the epoch on which they began.
    pub fn map_mut(&mut self) -> &mut Map {
        &mut self.map
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of jobs that have not ended.
    pub fn open_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Load of a volume so far on one path.
    pub fn carried(&self, volume: VolumeId, path: Path) -> Carried {
        self.carried.get(&volume).map_or_else(Carried::default, |both| both[path as usize])
    }

    fn carry(&mut self, volume: VolumeId, path: Path, op: IoOp, bytes: u32) {
        let both = self.carried.entry(volume).or_default();
        let Carried { commands, read_bytes, written_bytes } = &mut both[path as usize];
        *commands += 1;
        match op {
            IoOp::Read => *read_bytes += u64::from(bytes),
            IoOp::Write => *written_bytes += u64::from(bytes),
            _ => {}
        }
    }

    /// Returns the newest epoch of a volume if a read or write of these blocks could begin at once.
    #[inline]
    pub fn is_open(&self, volume: VolumeId, lba: u64, blocks: u32) -> Option<EpochId> {
        self.map.epoch(volume).filter(|_| self.orders.is_open(volume, lba, blocks.into()))
    }

    /// Reserves blocks for work without a job. The blocks are shared unless `exclusive` is true.
    /// Returns `None` if the volume does not exist or the blocks are not available now.
    pub fn claim(&mut self, volume: VolumeId, lba: u64, blocks: u32, exclusive: bool) -> Option<Claim> {
        if exclusive && !self.orders.is_empty_at(volume, lba, blocks.into()) {
            return None;
        }
        self.is_open(volume, lba, blocks)?;
        let epoch = self.map.begin(volume)?;
        let id = self.next_claim;
        self.next_claim += 1;
        let begun = self.orders.begin(volume, id, lba, blocks.into(), exclusive);
        debug_assert!(begun, "a free range begins at once");
        Some(Claim { volume, id, epoch })
    }

    /// Claims the blocks of a read or write on the forwarding path; see [`claim`](Self::claim).
    pub fn forward(&mut self, volume: VolumeId, op: IoOp, lba: u64, blocks: u32, bytes: u32) -> Option<Claim> {
        let claim = self.claim(volume, lba, blocks, false)?;
        self.carry(volume, Path::Forwarding, op, bytes);
        Some(claim)
    }

    /// Makes a claim exclusive for all work that begins later, because the end of its own work is
    /// unknown.
    pub fn seize(&mut self, claim: &Claim) {
        self.orders.seize(claim.volume, claim.id);
    }

    /// Ends a claim. Jobs that waited for it begin with the next
    /// [`poll_output`](Self::poll_output).
    pub fn release(&mut self, claim: Claim) {
        self.orders.end(claim.volume, claim.id);
        self.map.end(claim.epoch);
    }

    /// Returns whether there are neither jobs nor claims.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.orders.is_idle()
    }

    /// Returns the next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        while let Some(id) = self.orders.next_ready() {
            self.start(id);
        }
        self.outbox.outputs.pop_front()
    }

    /// Submits a job under a number below 2^63 that no other job has.
    pub fn submit(&mut self, id: u64, io: VolumeIo) {
        self.counters.jobs += 1;
        self.carry(io.volume, Path::Conventional, io.op, io.bytes);
        self.jobs.insert(id, Job::new(io));
        let (lba, blocks) = job::range(&io);
        let exclusive = matches!(io.op, IoOp::CompareAndWrite | IoOp::WriteVerify);
        match self.orders.begin(io.volume, id, lba, blocks, exclusive) {
            true => self.start(id),
            false => self.counters.ordered += 1,
        }
    }

    /// Starts a job that no earlier job blocks.
    fn start(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let volume = job.io.volume;
        let pool = self.map.volume(volume).and_then(|volume| self.map.pool(volume.pool));
        let Some(block_bytes) = pool.map(|pool| pool.block_bytes.max(1)) else {
            // The volume was deleted after the command had arrived.
            return self.finish(id, failed(SenseKey::ILLEGAL_REQUEST, SenseCode::LUN_NOT_SUPPORTED));
        };
        job.begin(block_bytes, self.map.begin(volume));
        self.advance(id);
    }

    /// Handles the end of a back-end request.
    pub fn ended(&mut self, tag: u64, result: Result<Done, Error>) {
        let Some((id, place)) = self.outbox.requests.remove(&tag) else { return };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.ended(place, result);
        if job.open == 0 {
            self.advance(id);
        }
    }

    /// Handles the end of a comparison. `difference` is the offset of the first differing byte in
    /// the compared bytes, or within the block if data are one block.
    pub fn compared(&mut self, id: u64, difference: Option<u32>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.compared(difference);
        self.advance(id);
    }

    /// Executes steps of a job until it has to wait.
    fn advance(&mut self, id: u64) {
        loop {
            let Some(job) = self.jobs.get_mut(&id) else { return };
            match job.next_step() {
                Step::Wave(wave) => {
                    if self.send(id, &wave) {
                        return;
                    }
                }
                Step::Repeat { bytes } => {
                    let block_bytes = job.block_bytes;
                    self.outbox.outputs.push_back(Output::Repeat { job: id, block_bytes, bytes });
                }
                Step::Compare { bytes, at, block_bytes } => {
                    return self.outbox.outputs.push_back(Output::Compare { job: id, bytes, at, block_bytes });
                }
                Step::End(status) => return self.finish(id, status),
            }
        }
    }

    /// Sends the requests of a wave. Returns false if there are none.
    fn send(&mut self, id: u64, wave: &Wave) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let Some(epoch) = job.epoch else { return false };
        if wave.op == Op::Flush {
            for lun in self.map.luns_of(epoch) {
                let piece = Piece { at: 0, blocks: 0, place: LunBlock { lun, lba: 0 } };
                self.outbox.send_piece(id, job, wave, piece);
            }
        } else {
            let Some(pieces) = self.map.resolve(epoch, wave.lba, wave.blocks) else {
                job.out_of_range();
                return false;
            };
            for piece in pieces.take(if wave.op == Op::Status { 1 } else { usize::MAX }) {
                self.outbox.send_piece(id, job, wave, piece);
            }
        }
        let requests = u64::from(job.open);
        self.counters.requests += requests;
        self.counters.split += u64::from(job.is_first_wave() && requests > 1 && wave.op != Op::Flush);
        requests > 0
    }

    fn finish(&mut self, id: u64, status: IoStatus) {
        let Some(job) = self.jobs.remove(&id) else { return };
        if let Some(epoch) = job.epoch {
            self.map.end(epoch);
        }
        let good = matches!(status, IoStatus::Good | IoStatus::Mapping { .. } | IoStatus::Miscompare { .. });
        self.counters.failed += u64::from(!good);
        self.outbox.outputs.push_back(Output::Done { job: id, status });
        self.orders.end(job.io.volume, id);
    }
}

const fn failed(key: SenseKey, code: SenseCode) -> IoStatus {
    IoStatus::Failed { key, code }
}

/// Converts the failure of a back end to the status that an array reports for a failure of its own
/// disk.
fn status_of(error: &Error) -> IoStatus {
    match error.kind {
        ErrorKind::PathLost | ErrorKind::TimedOut | ErrorKind::NotReady => {
            failed(SenseKey::NOT_READY, SenseCode::COMMUNICATION_FAILURE)
        }
        ErrorKind::Busy => IoStatus::Busy,
        ErrorKind::Medium => IoStatus::MediumError,
        ErrorKind::WriteProtected => failed(SenseKey::DATA_PROTECT, SenseCode::WRITE_PROTECTED),
        ErrorKind::NoSpace => IoStatus::NoSpace,
        ErrorKind::Transport
        | ErrorKind::ReservationConflict
        | ErrorKind::OutOfRange
        | ErrorKind::NotSupported
        | ErrorKind::OtherDisk
        | ErrorKind::NotADisk
        | ErrorKind::Target => failed(SenseKey::HARDWARE_ERROR, SenseCode::INTERNAL_TARGET_FAILURE),
    }
}
