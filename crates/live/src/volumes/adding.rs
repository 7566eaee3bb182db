//! Addition of back ends, both those of the lab and those added while volumes are in use.

use super::back_end::BackEnd;
use super::{BACK_ENDS, LunPlan, Through, VolumeEngine};
use crate::iscsi_initiator::{Remote, RemoteConfig};
use sanloom_scsi::map::{Freed, LunConfig, PoolId};
use sanloom_scsi::time::Instant;
use sanloom_wire::lun;

/// A LUN of an iSCSI target that becomes a back end.
#[derive(Clone, Debug)]
pub struct NewBackEnd {
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: PoolId,
    /// Its target.
    pub target: RemoteConfig,
    /// LUN there.
    pub lun: u16,
    /// Identity of the disk when its extents were last used.
    pub identity: Option<String>,
    /// First block and number of blocks of ranges that belonged to deleted volumes.
    pub wipes: Vec<(u64, u64)>,
}

impl VolumeEngine {
    /// Adds a back end. Its size is known once it is reached.
    pub fn add(&mut self, now: Instant, new: NewBackEnd) {
        let NewBackEnd { name, pool, target, lun, identity, wipes } = new;
        let disk_config = target.disk;
        let number = self.add_target(target);
        let map = self.volumes.map_mut();
        let id = map.add_lun(LunConfig { name: name.as_str().into(), pool });
        let wipes: Vec<Freed> = wipes.into_iter().map(|(lba, blocks)| Freed { lun: id, lba, blocks }).collect();
        map.restore_wiping(&wipes);
        let only = identity.as_deref().filter(|_| !wipes.is_empty());
        let disk = self.remotes[number].expect(now, lun::to_bytes(lun).unwrap_or_default(), only);
        let plan = LunPlan { name, through: Through::Session(number), lun, disk: disk_config, identity };
        debug_assert_eq!(
            usize::from(id.0),
            self.back_ends.len(),
            "the map and the engine number back ends differently"
        );
        self.back_ends.push(BackEnd { plan, disk, found: None, refused: None });
        self.changes += 1;
    }

    /// Returns the number of a target, which may exist already.
    fn add_target(&mut self, config: RemoteConfig) -> usize {
        let known = self.remotes.iter().position(|remote| remote.config().is_same_way(&config));
        known.unwrap_or_else(|| self.join(config))
    }

    /// Adds a target, with initiator ports that no other session uses there. Returns its number.
    pub(super) fn join(&mut self, config: RemoteConfig) -> usize {
        let same = |other: &RemoteConfig| (&other.target, &other.initiator) == (&config.target, &config.initiator);
        let twin = self.remotes.iter().filter(|remote| same(remote.config())).count();
        let before = self.ports.before().map(|port| self.ports.isid(twin, port)).collect();
        let number = self.remotes.len();
        self.remotes.push(Remote::at_port(config, BACK_ENDS + number as u64, self.ports.isid(twin, 0), before));
        self.twins.push(twin);
        debug_assert_eq!(self.twins.len(), self.remotes.len(), "each target has a number of twins");
        number
    }
}
