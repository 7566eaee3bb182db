//! A request on a path of the caller's choice, past queues and path choice: to see whether the path works.

use super::World;
use super::host::{PROBE, TRIAL};
use sanloom_core::fcp::DataDirection;
use sanloom_core::fcp::initiator::{Command, Input};
use sanloom_core::time::Instant;
use sanloom_wire::cdb::Cdb;

impl World {
    /// Reads or writes the first `blocks` blocks of LUN 0 on a path of a host, given as number of the storage system among
    /// those that the host uses and number of the path. How it ends is counted in [`super::Path::tried`].
    pub fn try_path(&mut self, host: u16, system: u16, path: u16, write: bool, blocks: u16) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.hosts[usize::from(host)];
        let entry = node.paths.system(system);
        let (hba, address) = (path / entry.ports.max(1), entry.address(path));
        let lun = &self.lab.storage[usize::from(entry.storage)].luns[0];
        let (lba, blocks, fua) = (0, u32::from(blocks), false);
        let cdb = if write { Cdb::Write { lba, blocks, fua } } else { Cdb::Read { lba, blocks, fua } };
        let order = Command {
            tag: PROBE | TRIAL | u64::from(system) << 16 | u64::from(path),
            d_id: address.port_id,
            lun: [0; 8],
            cdb: cdb.to_bytes(),
            data_len: blocks * lun.block_bytes,
            direction: if write { DataDirection::Write } else { DataDirection::Read },
            frame_size_bytes: address.frame_bytes,
        };
        let nport = node.nports[usize::from(hba)];
        if let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator {
            initiator.handle(now, Input::Submit(order));
        }
        self.drain_initiator(nport);
        self.settle();
    }
}
