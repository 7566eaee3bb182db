//! The disks of an [`Initiator`] as NBD exports.

use super::Initiator;
use super::host::{DiskView, Event, Host, lun_name};
use crate::exports::{DiskWork, disk_work, export_of};
use crate::nbd::Work;
use sanloom_scsi::disk::{Done, Error, ErrorKind, Op, Request};
use sanloom_scsi::nbd::Export;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;

/// Bit position of the host's index in an export number; the disk's number is below it.
const HOST_SHIFT: u32 = 32;

impl Initiator {
    /// Passes requests of NBD clients to the disks and results back until both queues are empty.
    pub(super) fn serve(&mut self, now: Instant) {
        for (tag, data) in self.retry_waiting(now) {
            self.finish(now, tag, Err(Error { kind: ErrorKind::PathLost, sense: None }), data);
        }
        loop {
            if let Some(work) = self.nbd.next_work() {
                self.work(now, work);
                continue;
            }
            let event = self.adapters_mut().flat_map(|adapter| &mut adapter.hosts).find_map(Host::poll_event);
            match event {
                Some(Event::Disks) => {
                    let exports = if self.has_paths() { self.exports_by_designator(now) } else { self.exports() };
                    if exports != self.nbd.exports() {
                        self.nbd.set_exports(exports);
                    }
                }
                Some(Event::Done { tag, result, data }) => {
                    if let Some((result, data)) = self.ended(now, tag, result, data) {
                        self.finish(now, tag, result, data);
                    }
                }
                Some(Event::Answer { number, message }) => self.answered(now, number, message),
                None => return,
            }
        }
    }

    /// Returns the disks of the only Ethernet port.
    fn exports(&self) -> Vec<Export> {
        let disks = (0..).zip(&self.adapter.hosts).flat_map(|(number, host)| {
            // Disks of the physical port have the names that Linux uses. Names of other disks
            // include the virtual port.
            let through = (number > 0).then(|| host.login.wwpn());
            host.disks().filter_map(move |disk| export(number, through, &disk))
        });
        disks.collect()
    }

    /// Submits a request of the process itself for a disk of the physical port. `data` is as for
    /// [`Host::submit`]. Returns the number that [`next_finished`](Self::next_finished) reports.
    pub fn submit(&mut self, disk: u64, op: Op, lba: u64, blocks: u32, data: Vec<u8>) -> u64 {
        let tag = self.next_asked;
        self.next_asked += 1;
        let now = self.clock.now();
        self.adapter.hosts[0].submit(now, disk, Request { tag, op, lba, blocks, fua: false }, data);
        tag
    }

    /// Returns the next completed request of [`submit`](Self::submit) in order of completion:
    /// number, result and buffer.
    pub fn next_finished(&mut self) -> Option<(u64, Result<Done, Error>, Vec<u8>)> {
        self.finished.pop_front()
    }

    fn finish(&mut self, now: Instant, tag: u64, result: Result<Done, Error>, data: Vec<u8>) {
        match self.nbd_requests.remove(&tag) {
            Some(origin) => origin.answer(now, &mut self.nbd, result, data),
            None => self.finished.push_back((tag, result, data)),
        }
    }

    fn work(&mut self, now: Instant, work: Work) {
        let tag = self.next_asked;
        self.next_asked += 1;
        let Some(DiskWork { disk, origin, request, data }) = disk_work(now, &mut self.nbd, tag, work) else { return };
        self.nbd_requests.insert(tag, origin);
        if self.has_paths() {
            return self.submit_by_designator(now, disk as usize, request, data);
        }
        let host = &mut self.adapter.hosts[(disk >> HOST_SHIFT) as usize];
        host.submit(now, disk & ((1 << HOST_SHIFT) - 1), request, data);
    }
}

/// Returns the name that Linux gives to a path. `through` is the virtual port of the disk, if any.
pub(super) fn device_name(through: Option<Wwpn>, disk: &DiskView<'_>) -> String {
    let through = through.map(|wwpn| format!("0x{:016x}-", wwpn.0)).unwrap_or_default();
    format!("fc-{through}0x{:016x}-lun-{}", disk.target.0, lun_name(disk.lun))
}

/// Returns the export of a disk whose properties are known.
fn export(host: u64, through: Option<Wwpn>, disk: &DiskView<'_>) -> Option<Export> {
    let number = host << HOST_SHIFT | disk.number;
    disk.properties.map(|found| export_of(number, &device_name(through, disk), found))
}
