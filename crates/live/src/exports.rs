//! Disks as NBD exports, independent of the transport. Translates disk properties, requests and
//! results between NBD and SCSI.

use crate::nbd::{NbdServer, Work};
use sanloom_scsi::disk::{self, ErrorKind, Op, Properties, Request, Run};
use sanloom_scsi::nbd::{Done, Export, Failure, IoOp};
use sanloom_scsi::time::Instant;
use sanloom_wire::nbd::{BlockSizes, ErrorNumber, MAX_PAYLOAD_BYTES, StatusExtent, allocation};

/// An NBD client's request for a disk.
#[derive(Debug)]
pub(crate) struct DiskWork {
    /// From [`Export::disk`].
    pub(crate) disk: u64,
    pub(crate) origin: NbdRequest,
    pub(crate) request: Request,
    /// Data to write, or a buffer of the size of the read.
    pub(crate) data: Vec<u8>,
}

/// NBD request that waits for the result.
#[derive(Debug)]
pub(crate) struct NbdRequest {
    client: u64,
    tag: u16,
    block_bytes: u32,
}

impl NbdRequest {
    /// Sends the result of a completed request to its NBD client.
    pub(crate) fn answer(
        self,
        now: Instant,
        nbd: &mut NbdServer,
        result: Result<disk::Done, disk::Error>,
        data: Vec<u8>,
    ) {
        nbd.done(now, self.client, self.tag, answer(result, self.block_bytes), data);
    }
}

/// Translates NBD work into a disk request with this tag. Work that needs no disk is answered here,
/// and `None` is returned.
pub(crate) fn disk_work(now: Instant, nbd: &mut NbdServer, tag: u64, work: Work) -> Option<DiskWork> {
    let Work { client, disk, io, mut data } = work;
    let op = match io.op {
        IoOp::Read => Op::Read,
        IoOp::Write => Op::Write,
        IoOp::Flush => Op::Flush,
        IoOp::Trim => Op::Unmap,
        IoOp::WriteZeroes { no_hole } => Op::WriteZeroes { unmap: !no_hole },
        // A prefetch hint; it requires no action.
        IoOp::Cache => {
            nbd.done(now, client, io.tag, Ok(Done::All), data);
            return None;
        }
        IoOp::Status { .. } => Op::Status,
    };
    let Some(export) = nbd.exports().iter().find(|export| export.disk == disk) else {
        let gone = Failure { error: ErrorNumber::ESHUTDOWN, message: "the target no longer lists the disk".into() };
        nbd.done(now, client, io.tag, Err(gone), data);
        return None;
    };
    let block_bytes = export.sizes.minimum;
    if op == Op::Read {
        data.resize(io.len_bytes as usize, 0);
    }
    let lba = io.offset_bytes / u64::from(block_bytes);
    // NBD defines no effect of FUA on reads (NBD protocol, command flags).
    let fua = io.fua && op != Op::Read;
    let request = Request { tag, op, lba, blocks: io.len_bytes / block_bytes, fua };
    Some(DiskWork { disk, origin: NbdRequest { client, tag: io.tag, block_bytes }, request, data })
}

/// Returns the NBD export of a disk.
pub(crate) fn export_of(disk: u64, name: &str, found: &Properties) -> Export {
    let thin = found.provisioning;
    let own_name = match &found.designator {
        Some(designator) => format!(", {designator}"),
        None => String::new(),
    };
    Export {
        disk,
        name: name.into(),
        description: format!("{} {}{own_name}", found.vendor, found.product).into(),
        size_bytes: found.size_bytes(),
        sizes: BlockSizes {
            minimum: found.block_bytes,
            preferred: found.physical_block_bytes.clamp(found.block_bytes.max(4_096), 1 << 20),
            maximum: MAX_PAYLOAD_BYTES,
        },
        read_only: found.write_protected,
        rotational: found.rotational,
        trim: thin.enabled && thin.unmap && thin.max_unmap_blocks > 0,
        allocation: thin.enabled,
    }
}

/// Translates the result of a disk request to NBD.
fn answer(result: Result<disk::Done, disk::Error>, block_bytes: u32) -> Result<Done, Failure> {
    match result {
        Ok(disk::Done::All) => Ok(Done::All),
        Ok(disk::Done::Runs(runs)) => Ok(Done::Extents(runs.iter().map(|run| extent(run, block_bytes)).collect())),
        Err(error) => Err(Failure { error: number(error.kind), message: error.to_string().into() }),
    }
}

fn extent(run: &Run, block_bytes: u32) -> StatusExtent {
    let hole = if run.mapped { 0 } else { allocation::HOLE };
    let zero = if run.zero { allocation::ZERO } else { 0 };
    StatusExtent { len_bytes: run.blocks.saturating_mul(block_bytes), flags: hole | zero }
}

fn number(kind: ErrorKind) -> ErrorNumber {
    match kind {
        ErrorKind::WriteProtected | ErrorKind::ReservationConflict => ErrorNumber::EPERM,
        ErrorKind::NoSpace => ErrorNumber::ENOSPC,
        ErrorKind::OutOfRange => ErrorNumber::EINVAL,
        ErrorKind::NotSupported => ErrorNumber::ENOTSUP,
        ErrorKind::PathLost
        | ErrorKind::TimedOut
        | ErrorKind::Transport
        | ErrorKind::Busy
        | ErrorKind::NotReady
        | ErrorKind::Medium
        | ErrorKind::OtherDisk
        | ErrorKind::NotADisk
        | ErrorKind::Target => ErrorNumber::EIO,
    }
}
