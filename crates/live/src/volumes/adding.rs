//! Back ends that come: those of the lab, and those that come while volumes are in use.

use super::back_end::BackEnd;
use super::{BACK_ENDS, LunPlan, Through, VolumeEngine};
use crate::iscsi::initiator::{Remote, RemoteConfig};
use sanloom_core::map::{Freed, LunConfig, PoolId};
use sanloom_core::time::Instant;
use sanloom_wire::lun;

/// A LUN of an iSCSI target that is to be a back end.
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
    /// What it called itself when its extents were last used.
    pub identity: Option<String>,
    /// First and number of blocks that deleted volumes had of it, when it was there before.
    pub wipes: Vec<(u64, u64)>,
}

impl VolumeEngine {
    /// Another back end. Its room is known when it is reached.
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
        self.back_ends.push(BackEnd { plan, disk, found: None, refused: None });
        self.changes += 1;
    }

    /// The number of a target, which may be in use already.
    fn add_target(&mut self, config: RemoteConfig) -> usize {
        let known = self.remotes.iter().position(|remote| remote.config().is_same_way(&config));
        known.unwrap_or_else(|| self.join(config))
    }

    /// One more target, through initiator ports that none of the others uses there. Its number.
    pub(super) fn join(&mut self, config: RemoteConfig) -> usize {
        let same = |other: &RemoteConfig| (&other.target, &other.initiator) == (&config.target, &config.initiator);
        let twin = self.remotes.iter().filter(|remote| same(remote.config())).count();
        let before = self.ports.before().map(|port| self.ports.isid(twin, port)).collect();
        let number = self.remotes.len();
        self.remotes.push(Remote::at_port(config, BACK_ENDS + number as u64, self.ports.isid(twin, 0), before));
        self.twins.push(twin);
        number
    }
}
