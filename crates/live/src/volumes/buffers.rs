//! The buffers of jobs: [`Buffers`].

use crate::iscsi_initiator::Memory;
use sanloom_scsi::volume::Buffer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A buffer that is filled or sent.
#[derive(Debug)]
enum Bytes {
    Own(Vec<u8>),
    /// Parts of the buffer are in the output queue of a socket.
    Shared(Arc<Vec<u8>>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }

    fn share(&mut self) -> Arc<Vec<u8>> {
        if let Bytes::Own(bytes) = self {
            *self = Bytes::Shared(Arc::new(std::mem::take(bytes)));
        }
        match self {
            Bytes::Shared(bytes) => bytes.clone(),
            Bytes::Own(_) => Arc::default(),
        }
    }

    /// Returns the bytes to fill; `None` while they are being sent.
    fn room(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Bytes::Own(bytes) => Some(bytes),
            Bytes::Shared(_) => None,
        }
    }

    /// Returns the bytes. Output of an aborted task that is still queued keeps them instead.
    fn into_inner(self) -> Vec<u8> {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => Arc::try_unwrap(bytes).unwrap_or_default(),
        }
    }
}

/// The buffers of a job.
#[derive(Debug)]
struct Pair {
    data: Bytes,
    scratch: Bytes,
}

/// Buffers of all jobs, and the buffer range of each request.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    jobs: BTreeMap<u64, Pair>,
    /// Job, buffer and offset of the first byte, by the tag of the request.
    requests: BTreeMap<u64, (u64, Buffer, u32)>,
}

impl Buffers {
    pub(super) fn begin(&mut self, job: u64, data: Vec<u8>) {
        self.jobs.insert(job, Pair { data: Bytes::Own(data), scratch: Bytes::Own(Vec::new()) });
    }

    pub(super) fn lend(&mut self, tag: u64, job: u64, buffer: Buffer, at: u32) {
        self.requests.insert(tag, (job, buffer, at));
    }

    pub(super) fn forget(&mut self, tag: u64) {
        self.requests.remove(&tag);
    }

    /// Returns a copy of the data of a write, for carriers that cannot send from the buffer.
    pub(super) fn copy_out(&mut self, tag: u64, len: usize) -> Option<Vec<u8>> {
        let (bytes, begin) = self.of(tag)?;
        bytes.get().get(begin as usize..)?.get(..len).map(<[u8]>::to_vec)
    }

    /// Stores the data of a read, from carriers that cannot read into the buffer.
    pub(super) fn copy_in(&mut self, tag: u64, data: &[u8]) {
        if let Some(room) = self.room(tag, 0, data.len()) {
            room.copy_from_slice(data);
        }
    }

    /// Removes a job and returns its data.
    pub(super) fn end(&mut self, job: u64) -> Vec<u8> {
        self.jobs.remove(&job).map(|pair| pair.data.into_inner()).unwrap_or_default()
    }

    /// Fills scratch with copies of the first block of data.
    pub(super) fn repeat(&mut self, job: u64, block_bytes: u32, bytes: u32) {
        let Some(pair) = self.jobs.get_mut(&job) else { return };
        let block = pair.data.get().get(..block_bytes as usize).unwrap_or_default();
        pair.scratch = Bytes::Own(block.repeat((bytes / block_bytes.max(1)) as usize));
    }

    /// Returns the first difference between scratch and data, see
    /// [`sanloom_scsi::volume::Output::Compare`]. Missing bytes are a difference.
    pub(super) fn difference(&self, job: u64, bytes: u32, at: u32, block_bytes: u32) -> Option<u32> {
        let pair = self.jobs.get(&job)?;
        let scratch = pair.scratch.get().get(..bytes as usize);
        let (Some(scratch), Some(data)) = (scratch, pair.data.get().get(at as usize..)) else { return Some(0) };
        match block_bytes as usize {
            0 => first_difference(scratch, data),
            block => scratch.chunks(block).find_map(|one| first_difference(one, data)),
        }
    }

    fn of(&mut self, tag: u64) -> Option<(&mut Bytes, u32)> {
        let (job, buffer, at) = self.requests.get(&tag)?;
        let pair = self.jobs.get_mut(job)?;
        Some((if *buffer == Buffer::Data { &mut pair.data } else { &mut pair.scratch }, *at))
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<u32> {
    if b.get(..a.len()) == Some(a) {
        return None;
    }
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    Some(same as u32)
}

impl Memory for Buffers {
    fn room(&mut self, tag: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        let (bytes, begin) = self.of(tag)?;
        let first = begin as usize + at;
        let bytes = bytes.room()?;
        if bytes.len() < first + len {
            bytes.resize(first + len, 0);
        }
        bytes.get_mut(first..first + len)
    }

    fn data(&mut self, tag: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        let (bytes, begin) = self.of(tag)?;
        Some((bytes.share(), begin))
    }
}
