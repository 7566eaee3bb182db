//! An NBD export of a medium of this process: requests become block I/O.

use super::{NbdServer, Work};
use crate::clock::Clock;
use crate::storage::medium::{BlockWork, Medium};
use sanloom_scsi::nbd::{Done, Export, Failure, Io, IoOp};
use sanloom_scsi::scsi::{self, IoStatus};
use sanloom_wire::nbd::{BlockSizes, ErrorNumber, MAX_PAYLOAD_BYTES, StatusExtent, allocation};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of extents in one reply.
const MAX_EXTENTS: usize = 1_024;

/// Returns an export of a medium with `blocks` blocks.
pub fn export(disk: u64, name: &str, description: &str, blocks: u64, block_bytes: u32, read_only: bool) -> Export {
    Export {
        disk,
        name: name.into(),
        description: description.into(),
        size_bytes: blocks * u64::from(block_bytes),
        sizes: BlockSizes { minimum: block_bytes, preferred: block_bytes.max(4_096), maximum: MAX_PAYLOAD_BYTES },
        read_only,
        rotational: false,
        trim: true,
        allocation: true,
    }
}

/// Carries out a request. The connection has checked that the range is within the medium.
pub fn perform(medium: &Medium, block_bytes: u32, io: &Io, data: &mut Vec<u8>) -> Result<Done, Failure> {
    let block = u64::from(block_bytes);
    let work = |op| BlockWork {
        op,
        lba: io.offset_bytes / block,
        blocks: io.len_bytes / block_bytes,
        bytes: io.len_bytes,
        fua: io.fua,
    };
    let op = match io.op {
        IoOp::Read => scsi::IoOp::Read,
        IoOp::Write => scsi::IoOp::Write,
        IoOp::Flush => scsi::IoOp::Flush,
        IoOp::Trim => scsi::IoOp::Unmap,
        IoOp::WriteZeroes { no_hole: false } => scsi::IoOp::WriteZeroes,
        IoOp::WriteZeroes { no_hole: true } => {
            *data = vec![0; block_bytes as usize];
            let done = medium.perform(BlockWork { bytes: block_bytes, ..work(scsi::IoOp::WriteSame) }, data);
            return finish(done);
        }
        IoOp::Cache => return Ok(Done::All),
        IoOp::Status { one } => return extents(medium, block, io, if one { 1 } else { MAX_EXTENTS }),
    };
    finish(medium.perform(work(op), data))
}

fn extents(medium: &Medium, block: u64, io: &Io, most: usize) -> Result<Done, Failure> {
    let mut extents: Vec<StatusExtent> = Vec::new();
    let (mut lba, end) = (io.offset_bytes / block, (io.offset_bytes + u64::from(io.len_bytes)) / block);
    while lba < end && extents.len() < most {
        let left = (end - lba) as u32;
        let work = BlockWork { op: scsi::IoOp::Mapping, lba, blocks: left, bytes: 0, fua: false };
        let (mapped, blocks) = match medium.perform(work, &mut Vec::new()) {
            IoStatus::Mapping { mapped, blocks } => (mapped, blocks.clamp(1, left.into())),
            other => return finish(other),
        };
        let flags = if mapped { 0 } else { allocation::HOLE | allocation::ZERO };
        extents.push(StatusExtent { len_bytes: (blocks * block) as u32, flags });
        lba += blocks;
    }
    Ok(Done::Extents(extents))
}

fn finish(status: IoStatus) -> Result<Done, Failure> {
    let (error, message) = match status {
        IoStatus::Good | IoStatus::Mapping { .. } => return Ok(Done::All),
        IoStatus::NoSpace => (ErrorNumber::ENOSPC, "no room left for the disk's file"),
        IoStatus::TaskSetFull | IoStatus::Busy => (ErrorNumber::ENOMEM, "the disk is busy"),
        IoStatus::MediumError | IoStatus::Miscompare { .. } | IoStatus::Failed { .. } => {
            (ErrorNumber::EIO, "the disk failed")
        }
    };
    Err(Failure { error, message: message.into() })
}

/// Serves media of this process, by the number of their exports, until `go_on` returns false.
/// `go_on` is called every 100 ms.
///
/// # Errors
/// Errors of waiting for sockets.
pub fn serve(
    server: &mut NbdServer,
    clock: Clock,
    media: &[(Arc<Medium>, u32)],
    mut go_on: impl FnMut(&NbdServer) -> bool,
) -> io::Result<()> {
    const CHECK_INTERVAL: Duration = Duration::from_millis(100);
    while go_on(server) {
        server.process_events(clock.now(), CHECK_INTERVAL)?;
        while let Some(Work { client, disk, io, mut data }) = server.next_work() {
            let result = match media.get(disk as usize) {
                Some((medium, block_bytes)) => perform(medium, *block_bytes, &io, &mut data),
                None => Err(Failure { error: ErrorNumber::EIO, message: "no such disk".into() }),
            };
            server.done(clock.now(), client, io.tag, result, data);
        }
    }
    Ok(())
}
