//! The disks of an [`Initiator`] as NBD exports.

use super::Initiator;
use super::host::{DiskView, Event, Host, lun_name, request};
use crate::nbd::Work;
use sanloom_core::disk::{self, ErrorKind, Op, Run};
use sanloom_core::nbd::{Done, Export, Failure, IoOp};
use sanloom_core::time::Instant;
use sanloom_wire::Wwpn;
use sanloom_wire::nbd::{BlockSizes, ErrorNumber, MAX_PAYLOAD_BYTES, StatusExtent, allocation};

/// The number of an export is that of the host, and below it that of the disk.
const HOST_SHIFT: u32 = 32;

/// What an NBD client has asked.
#[derive(Debug)]
pub(super) struct Asked {
    client: u64,
    tag: u16,
    block_bytes: u32,
}

impl Initiator {
    /// Carries requests to the disks, and answers back, until there are none.
    pub(super) fn serve(&mut self, now: Instant) {
        loop {
            if let Some(work) = self.nbd.next_work() {
                self.work(now, work);
                continue;
            }
            match self.hosts.iter_mut().find_map(Host::poll_event) {
                Some(Event::Disks) => {
                    let disks = (0..).zip(&self.hosts).flat_map(|(number, host)| {
                        // The disks of the physical port have the names that Linux gives them; others say whose they are.
                        let through = (number > 0).then(|| host.login.wwpn());
                        host.disks().filter_map(move |disk| export(number, through, &disk))
                    });
                    let exports: Vec<Export> = disks.collect();
                    if exports != self.nbd.exports() {
                        self.nbd.set_exports(exports);
                    }
                }
                Some(Event::Done { tag, result, data }) => {
                    if let Some(asked) = self.asked.remove(&tag) {
                        let result = answer(result, asked.block_bytes);
                        self.nbd.done(now, asked.client, asked.tag, result, data);
                    }
                }
                Some(Event::Answer { number, message }) => self.answered(now, number, message),
                None => return,
            }
        }
    }

    fn work(&mut self, now: Instant, work: Work) {
        let Work { client, disk, io, mut data } = work;
        let exports = self.nbd.exports();
        let block_bytes = exports.iter().find(|export| export.disk == disk).map(|export| export.sizes.minimum);
        let op = match io.op {
            IoOp::Read => Op::Read,
            IoOp::Write => Op::Write,
            IoOp::Flush => Op::Flush,
            IoOp::Trim => Op::Unmap,
            IoOp::WriteZeroes { no_hole } => Op::WriteZeroes { unmap: !no_hole },
            // A hint that asks for nothing.
            IoOp::Cache => return self.nbd.done(now, client, io.tag, Ok(Done::All), data),
            IoOp::Status { .. } => Op::Status,
        };
        let Some(block_bytes) = block_bytes else {
            let gone =
                Failure { error: ErrorNumber::ESHUTDOWN, message: "the target has no such disk any more".into() };
            return self.nbd.done(now, client, io.tag, Err(gone), data);
        };
        if op == Op::Read {
            data.resize(io.len_bytes as usize, 0);
        }
        let tag = self.next_asked;
        self.next_asked += 1;
        self.asked.insert(tag, Asked { client, tag: io.tag, block_bytes });
        let block = u64::from(block_bytes);
        let request = request(op, io.offset_bytes / block, io.len_bytes / block_bytes, io.fua);
        let host = &mut self.hosts[(disk >> HOST_SHIFT) as usize];
        host.submit(now, disk & ((1 << HOST_SHIFT) - 1), tag, request, data);
    }
}

/// The name that Linux gives to a path; `through`: the virtual port that the disk is seen through.
pub(super) fn device_name(through: Option<Wwpn>, disk: &DiskView<'_>) -> String {
    let through = through.map(|wwpn| format!("0x{:016x}-", wwpn.0)).unwrap_or_default();
    format!("fc-{through}0x{:016x}-lun-{}", disk.target.0, lun_name(disk.lun))
}

/// The export of a disk that has said what it is.
fn export(host: u64, through: Option<Wwpn>, disk: &DiskView<'_>) -> Option<Export> {
    let found = disk.properties?;
    let thin = found.provisioning;
    let name = match &found.designator {
        Some(designator) => format!(", {designator}"),
        None => String::new(),
    };
    Some(Export {
        disk: host << HOST_SHIFT | disk.number,
        name: device_name(through, disk).into(),
        description: format!("{} {}{name}", found.vendor, found.product).into(),
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
    })
}

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
