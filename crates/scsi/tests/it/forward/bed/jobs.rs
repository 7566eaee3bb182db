//! Block I/O of the conventional path: jobs of the volumes, whose requests the back ends answer in
//! any order.

use super::Bed;
use crate::forward::disk::BLOCK;
use sanloom_scsi::disk::{Done, Error, ErrorKind, Op, Request};
use sanloom_scsi::map::LunId;
use sanloom_scsi::scsi::{Io, IoTag};
use sanloom_scsi::volume::{Buffer, Output, VolumeIo};
use std::collections::BTreeMap;

/// Request to a back end: job, LUN, request, buffer and offset.
type BackEndRequest = (u64, LunId, Request, Buffer, usize);

/// Jobs that have not ended.
#[derive(Default)]
pub(super) struct Jobs {
    /// Task of each job unless it was cancelled, and both buffers.
    open: BTreeMap<u64, (Option<IoTag>, [Vec<u8>; 2])>,
    next: u64,
    requests: Vec<BackEndRequest>,
}

impl Jobs {
    /// Returns whether the back ends have no requests.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Forgets tasks that ended early. Their jobs continue without a report.
    pub(super) fn forget(&mut self, tags: &[IoTag]) {
        let gone = |of: &Option<IoTag>| of.is_some_and(|tag| tags.contains(&tag));
        self.open.values_mut().filter(|(of, _)| gone(of)).for_each(|(of, _)| *of = None);
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<u32> {
    a.iter().zip(b).position(|(a, b)| a != b).map(|at| at as u32)
}

impl Bed {
    /// Starts block I/O of the switch.
    pub(super) fn begin_job(&mut self, io: Io) {
        let id = self.jobs.next;
        self.jobs.next += 1;
        let data = self.front.at_work.remove(&io.tag).unwrap_or_default();
        self.jobs.open.insert(id, (Some(io.tag), [data, Vec::new()]));
        let volume = self.volumes.map().find("volume").unwrap();
        let Io { op, lba, blocks, bytes, fua, .. } = io;
        self.volumes.submit(id, VolumeIo { volume, op, lba, blocks, bytes, fua });
    }

    /// Executes the outputs of the jobs. Returns true if a job has ended.
    pub(super) fn follow_jobs(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.volumes.poll_output() {
            match output {
                Output::Request { job, lun, request, buffer, at } => {
                    self.jobs.requests.push((job, lun, request, buffer, at as usize));
                }
                Output::Repeat { job, block_bytes, bytes } => {
                    let (_, [data, scratch]) = self.jobs.open.get_mut(&job).unwrap();
                    *scratch = data[..block_bytes as usize].repeat((bytes / block_bytes) as usize);
                }
                Output::Compare { job, bytes, at, block_bytes } => {
                    assert_eq!(block_bytes, 0, "no host of the script compares with one block");
                    let (_, [data, scratch]) = &self.jobs.open[&job];
                    let difference = first_difference(&scratch[..bytes as usize], &data[at as usize..]);
                    self.volumes.compared(job, difference);
                }
                Output::Done { job, status } => {
                    let (tag, [data, _]) = self.jobs.open.remove(&job).unwrap();
                    any = true;
                    if let Some(tag) = tag {
                        self.io_done(tag, status, data);
                    }
                }
            }
        }
        any
    }

    /// Answers a random request at its back end. Durable data are made so by FUA or SYNCHRONIZE
    /// CACHE, as `disk::Disk` does.
    pub(super) fn answer_job(&mut self) {
        let (job, lun, request, buffer, at) =
            self.jobs.requests.swap_remove(self.chance.index(self.jobs.requests.len()));
        let disk = &mut self.media[usize::from(lun.0)];
        let blocks = request.lba..request.lba + u64::from(request.blocks);
        let (_, buffers) = self.jobs.open.get_mut(&job).unwrap();
        let buffer = &mut buffers[usize::from(buffer == Buffer::Scratch)];
        let result = match request.op {
            _ if disk.bad.range(blocks.clone()).next().is_some() => Err(Error { kind: ErrorKind::Medium, sense: None }),
            Op::Read => {
                let end = at + request.blocks as usize * BLOCK;
                buffer.resize(buffer.len().max(end), 0xee);
                for (lba, room) in blocks.zip(buffer[at..end].chunks_mut(BLOCK)) {
                    disk.touch(lba, false, request.fua);
                    room.copy_from_slice(disk.block(lba));
                }
                Ok(Done::All)
            }
            Op::Write => {
                for (lba, data) in blocks.zip(buffer[at..].chunks(BLOCK)) {
                    disk.touch(lba, true, request.fua);
                    disk.block(lba).copy_from_slice(data);
                }
                Ok(Done::All)
            }
            Op::Flush => {
                disk.volatile.clear();
                Ok(Done::All)
            }
            other => panic!("{other:?} is not in the script"),
        };
        self.volumes.ended(request.tag, result);
        self.after_switch();
    }

    /// Completes all jobs.
    pub(super) fn end_jobs(&mut self) {
        while self.follow_jobs() || !self.jobs.is_empty() {
            if !self.jobs.is_empty() {
                self.answer_job();
            }
        }
    }
}
