//! The disks of an [`Initiator`] as NBD exports.

use super::Initiator;
use super::host::{DiskView, Event, Host, lun_name};
use crate::exports::{DiskWork, disk_work, export_of};
use crate::nbd::Work;
use sanloom_core::disk::{Done, Error, Op, Request};
use sanloom_core::nbd::Export;
use sanloom_core::time::Instant;
use sanloom_wire::Wwpn;

/// The number of an export is that of the host, and below it that of the disk.
const HOST_SHIFT: u32 = 32;

impl Initiator {
    /// Carries requests to the disks, and answers back, until there are none.
    pub(super) fn serve(&mut self, now: Instant) {
        loop {
            if let Some(work) = self.nbd.next_work() {
                self.work(now, work);
                continue;
            }
            match self.adapter.hosts.iter_mut().find_map(Host::poll_event) {
                Some(Event::Disks) => {
                    let disks = (0..).zip(&self.adapter.hosts).flat_map(|(number, host)| {
                        // The disks of the physical port have the names that Linux gives them; others say whose they are.
                        let through = (number > 0).then(|| host.login.wwpn());
                        host.disks().filter_map(move |disk| export(number, through, &disk))
                    });
                    let exports: Vec<Export> = disks.collect();
                    if exports != self.nbd.exports() {
                        self.nbd.set_exports(exports);
                    }
                }
                Some(Event::Done { tag, result, data }) => match self.asked.remove(&tag) {
                    Some(asked) => asked.answer(now, &mut self.nbd, result, data),
                    None => self.finished.push_back((tag, result, data)),
                },
                Some(Event::Answer { number, message }) => self.answered(now, number, message),
                None => return,
            }
        }
    }

    /// Does something with a disk of the physical port, by its number, beside what NBD clients ask. `data` as for [`Host::submit`].
    /// Says by which number [`next_finished`](Self::next_finished) calls it.
    pub fn submit(&mut self, disk: u64, op: Op, lba: u64, blocks: u32, data: Vec<u8>) -> u64 {
        let tag = self.next_asked;
        self.next_asked += 1;
        let now = self.clock.now();
        self.adapter.hosts[0].submit(now, disk, Request { tag, op, lba, blocks, fua: false }, data);
        tag
    }

    /// What became of a request of [`submit`](Self::submit), by its number, in the order in which they ended, and its buffer.
    pub fn next_finished(&mut self) -> Option<(u64, Result<Done, Error>, Vec<u8>)> {
        self.finished.pop_front()
    }

    fn work(&mut self, now: Instant, work: Work) {
        let tag = self.next_asked;
        self.next_asked += 1;
        let Some(DiskWork { disk, asked, request, data }) = disk_work(now, &mut self.nbd, tag, work) else { return };
        self.asked.insert(tag, asked);
        let host = &mut self.adapter.hosts[(disk >> HOST_SHIFT) as usize];
        host.submit(now, disk & ((1 << HOST_SHIFT) - 1), request, data);
    }
}

/// The name that Linux gives to a path; `through`: the virtual port that the disk is seen through.
pub(super) fn device_name(through: Option<Wwpn>, disk: &DiskView<'_>) -> String {
    let through = through.map(|wwpn| format!("0x{:016x}-", wwpn.0)).unwrap_or_default();
    format!("fc-{through}0x{:016x}-lun-{}", disk.target.0, lun_name(disk.lun))
}

/// The export of a disk that has said what it is.
fn export(host: u64, through: Option<Wwpn>, disk: &DiskView<'_>) -> Option<Export> {
    let number = host << HOST_SHIFT | disk.number;
    disk.properties.map(|found| export_of(number, &device_name(through, disk), found))
}
