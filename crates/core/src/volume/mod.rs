//! Block I/O on virtual disks: the conventional path of the switch of document 003, section 2.
//!
//! ```text
//!   scsi::Device -- Io --> Volumes: order, map::Map, pieces -- disk::Request --> disk::Disk of each back-end LUN
//!                <- done -         statuses become one      <---- result -----
//! ```
//!
//! Whoever asks has terminated the protocol of its host already: reservations, unit attentions and resets are those of the
//! [`Device`](crate::scsi::Device) in front, and nothing of them goes to a back end. What a back end does not know (COMPARE AND
//! WRITE, VERIFY, WRITE SAME of any pattern) is made of reads and writes here, in pieces of [`CHUNK_BYTES`].
//!
//! Data do not enter: each job has two buffers, which are the driver's. *Data* is what moves between the host and the switch,
//! *scratch* what is read for a comparison or repeated for WRITE SAME.
//!
//! A job holds the epoch of the map on which it began until its last request has ended. COMPARE AND WRITE and WRITE AND VERIFY are
//! alone in their range: they wait for what overlaps them, and what overlaps them waits for them ([`RangeOrder`]).
//!
//! What somebody else does on a volume without a job (the [forwarding path](crate::iscsi::forward)) takes part in both: [`Claim`].

mod job;
mod order;

pub use order::{Claim, RangeOrder};

use crate::disk::{self, Done, Error, ErrorKind, Op};
use crate::map::{EpochId, LunId, Map, Piece, Place, VolumeId};
use crate::scsi::{IoOp, IoStatus};
use job::{Job, Step, Wave};
use order::Orders;
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::{BTreeMap, VecDeque};

/// Most bytes of scratch, unless one block is more.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// Block I/O on a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeIo {
    /// Which.
    pub volume: VolumeId,
    /// What to do.
    pub op: IoOp,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes in the buffer *data*; of a write that brings less than its blocks, only the whole ones count.
    pub bytes: u32,
    /// Durable before it is done.
    pub fua: bool,
}

/// A buffer of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Buffer {
    /// What moves between host and switch.
    Data,
    /// What is read to be compared, or repeated.
    Scratch,
}

/// What the driver does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Hand a request to the disk of a back-end LUN, then [`Volumes::ended`] with its tag.
    Request {
        /// The job.
        job: u64,
        /// The LUN.
        lun: LunId,
        /// What to do; its tag is never used twice.
        request: disk::Request,
        /// Where its data are.
        buffer: Buffer,
        /// And from which byte on. A buffer that is read into grows to what is needed.
        at: u32,
    },
    /// Make scratch of `bytes` bytes: the first `block_bytes` of data, again and again.
    Repeat {
        /// The job.
        job: u64,
        /// Bytes of a block.
        block_bytes: u32,
        /// Bytes of scratch.
        bytes: u32,
    },
    /// Compare the first `bytes` bytes of scratch with data, then [`Volumes::compared`].
    Compare {
        /// The job.
        job: u64,
        /// How many bytes.
        bytes: u32,
        /// Where in data they begin.
        at: u32,
        /// Data are one block of so many bytes, with which each block of scratch is compared; 0: they are as long as scratch.
        block_bytes: u32,
    },
    /// A job has ended. Its data are what was read.
    Done {
        /// The job.
        job: u64,
        /// How.
        status: IoStatus,
    },
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Jobs that came.
    pub jobs: u64,
    /// Jobs that lie on more than one place.
    pub split: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that waited for others in their range.
    pub ordered: u64,
    /// Requests to back ends.
    pub requests: u64,
}

/// How a command of a host reaches back ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Path {
    /// As a job.
    Conventional,
    /// PDU by PDU.
    Forwarding,
}

/// What went one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Commands that touch the medium.
    pub commands: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
}

/// Numbers of claims begin here, those of jobs are smaller.
const CLAIMS: u64 = 1 << 63;

/// The volumes of a switch. See the module for its use: after each call, [`Self::poll_output`] is drained.
#[derive(Debug)]
pub struct Volumes {
    map: Map,
    orders: Orders,
    jobs: BTreeMap<u64, Job>,
    desk: Desk,
    counters: Counters,
    carried: BTreeMap<VolumeId, [Carried; 2]>,
    next_claim: u64,
}

/// What leaves, and what has not come back.
#[derive(Debug, Default)]
struct Desk {
    /// Job and place in its wave of each request that has not ended.
    requests: BTreeMap<u64, (u64, u32)>,
    next_request: u64,
    outputs: VecDeque<Output>,
}

impl Desk {
    /// A piece of a wave becomes a request.
    fn ask(&mut self, id: u64, job: &mut Job, wave: &Wave, piece: Piece) {
        let tag = self.next_request;
        self.next_request += 1;
        self.requests.insert(tag, (id, job.open));
        job.open += 1;
        let Place { lun, lba } = piece.place;
        let request = disk::Request { tag, op: wave.op, lba, blocks: piece.blocks, fua: wave.fua };
        let at = wave.at + piece.at.saturating_mul(job.block_bytes);
        self.outputs.push_back(Output::Request { job: id, lun, request, buffer: wave.buffer, at });
    }
}

impl Volumes {
    /// Volumes of a map.
    pub fn new(map: Map) -> Volumes {
        Volumes {
            map,
            orders: Orders::default(),
            jobs: BTreeMap::new(),
            desk: Desk::default(),
            counters: Counters::default(),
            carried: BTreeMap::new(),
            next_claim: CLAIMS,
        }
    }

    /// Where everything is.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The same, to change it: jobs that have begun go on on the map that they began on.
    pub fn map_mut(&mut self) -> &mut Map {
        &mut self.map
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Commands for a volume so far, on each path.
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

    /// The newest map of a volume, if a read or write of these blocks could begin on it at once.
    #[inline]
    pub fn is_open(&self, volume: VolumeId, lba: u64, blocks: u32) -> Option<EpochId> {
        self.map.epoch(volume).filter(|_| self.orders.is_open(volume, lba, blocks.into()))
    }

    /// Somebody works on blocks of a volume beside the jobs, and shares them unless he has to be alone. None: there is no such volume, or
    /// not now.
    pub fn claim(&mut self, volume: VolumeId, lba: u64, blocks: u32, alone: bool) -> Option<Claim> {
        if alone && !self.orders.is_empty_at(volume, lba, blocks.into()) {
            return None;
        }
        self.is_open(volume, lba, blocks)?;
        let epoch = self.map.begin(volume)?;
        let id = self.next_claim;
        self.next_claim += 1;
        let begun = self.orders.begin(volume, id, lba, blocks.into(), alone);
        debug_assert!(begun, "it was open");
        Some(Claim { volume, id, epoch })
    }

    /// A read or write passes by the jobs; see [`claim`](Self::claim).
    pub fn forward(&mut self, volume: VolumeId, op: IoOp, lba: u64, blocks: u32, bytes: u32) -> Option<Claim> {
        let claim = self.claim(volume, lba, blocks, false)?;
        self.carry(volume, Path::Forwarding, op, bytes);
        Some(claim)
    }

    /// Nobody else begins on the blocks of a claim from now on: it is not known any more when the work ends.
    pub fn seize(&mut self, claim: &Claim) {
        self.orders.seize(claim.volume, claim.id);
    }

    /// The work of a claim has ended. Jobs that waited for it begin with the next [`poll_output`](Self::poll_output).
    pub fn release(&mut self, claim: Claim) {
        self.orders.end(claim.volume, claim.id);
        self.map.end(claim.epoch);
    }

    /// Neither jobs nor claims are under way.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.orders.is_idle()
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        while let Some(id) = self.orders.next_ready() {
            self.start(id);
        }
        self.desk.outputs.pop_front()
    }

    /// A job, under a number below 2^63 that no other has.
    pub fn submit(&mut self, id: u64, io: VolumeIo) {
        self.counters.jobs += 1;
        self.carry(io.volume, Path::Conventional, io.op, io.bytes);
        self.jobs.insert(id, Job::new(io));
        let (lba, blocks) = job::range(&io);
        let alone = matches!(io.op, IoOp::CompareAndWrite | IoOp::WriteVerify);
        match self.orders.begin(io.volume, id, lba, blocks, alone) {
            true => self.start(id),
            false => self.counters.ordered += 1,
        }
    }

    /// A job whose turn it is.
    fn start(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let volume = job.io.volume;
        let pool = self.map.volume(volume).and_then(|volume| self.map.pool(volume.pool));
        let Some(block_bytes) = pool.map(|pool| pool.block_bytes.max(1)) else {
            // It was deleted after its command had come.
            return self.finish(id, failed(SenseKey::ILLEGAL_REQUEST, SenseCode::LUN_NOT_SUPPORTED));
        };
        job.begin(block_bytes, self.map.begin(volume));
        self.go_on(id);
    }

    /// A back-end request has ended.
    pub fn ended(&mut self, tag: u64, result: Result<Done, Error>) {
        let Some((id, place)) = self.desk.requests.remove(&tag) else { return };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.ended(place, result);
        if job.open == 0 {
            self.go_on(id);
        }
    }

    /// A comparison has ended: where the first byte differs, counted from the beginning of what was compared; with one block, from
    /// the beginning of the block.
    pub fn compared(&mut self, id: u64, difference: Option<u32>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.compared(difference);
        self.go_on(id);
    }

    /// The next steps of a job, until it waits for something.
    fn go_on(&mut self, id: u64) {
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
                    self.desk.outputs.push_back(Output::Repeat { job: id, block_bytes, bytes });
                }
                Step::Compare { bytes, at, block_bytes } => {
                    return self.desk.outputs.push_back(Output::Compare { job: id, bytes, at, block_bytes });
                }
                Step::End(status) => return self.finish(id, status),
            }
        }
    }

    /// Sends the requests of a wave. False if there are none.
    fn send(&mut self, id: u64, wave: &Wave) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let Some(epoch) = job.epoch else { return false };
        if wave.op == Op::Flush {
            for lun in self.map.luns_of(epoch) {
                let piece = Piece { at: 0, blocks: 0, place: Place { lun, lba: 0 } };
                self.desk.ask(id, job, wave, piece);
            }
        } else {
            let Some(pieces) = self.map.resolve(epoch, wave.lba, wave.blocks) else {
                job.out_of_range();
                return false;
            };
            for piece in pieces.take(if wave.op == Op::Status { 1 } else { usize::MAX }) {
                self.desk.ask(id, job, wave, piece);
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
        self.desk.outputs.push_back(Output::Done { job: id, status });
        self.orders.end(job.io.volume, id);
    }
}

const fn failed(key: SenseKey, code: SenseCode) -> IoStatus {
    IoStatus::Failed { key, code }
}

/// What a host hears of the failure of a back end: what an array says of a disk of its own.
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
