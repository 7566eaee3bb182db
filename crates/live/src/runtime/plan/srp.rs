//! The SRP targets of a runtime on RoCEv2.

use super::iscsi::portal_groups;
use super::{Builder, served};
use crate::runtime::UpError;
use crate::srp::{SrpServer, TargetPlan};
use sanloom_fc::config::srp_target_port;

impl Builder<'_> {
    pub(super) fn make_srp(&mut self) -> Result<(), UpError> {
        let lab = self.instance.lab.clone();
        let mut targets = Vec::new();
        for (system, storage) in served(&lab, &self.instance.lab_switches).into_iter().enumerate() {
            let Some(srp) = lab.live.srp.get(&storage) else { continue };
            let config = &lab.storage[usize::from(storage)];
            let groups = if lab.live.iscsi.contains_key(&storage) { portal_groups(&lab, storage).len() } else { 0 };
            targets.push(TargetPlan {
                name: config.name.clone(),
                system,
                port: (config.ports.len() + groups) as u16,
                portals: srp.portals.clone(),
                id: srp_target_port(config.wwnn.0),
                initiators: srp.initiators.clone(),
                request_limit: lab.infiniband.targets.get(&storage).cloned().unwrap_or_default().request_limit,
            });
        }
        // The adapter has the GUID of the first target.
        let Some(id) = targets.first().map(|target| u128::from_be_bytes(target.id)) else { return Ok(()) };
        let guid = id as u64;
        let server =
            SrpServer::listen(targets, guid).map_err(|(address, error)| UpError::SrpPortal { address, error })?;
        server.watch(&mut self.poller).map_err(|error| UpError::System { what: "epoll", error })?;
        for target in server.targets() {
            let id = u128::from_be_bytes(target.id);
            for portal in &target.portals {
                let (id_ext, ioc_guid) = (format!("{:016x}", id >> 64), format!("{:016x}", id as u64));
                tracing::info!(storage = target.name, dest = %portal, id_ext, ioc_guid, "SRP");
            }
        }
        self.instance.services.srp = Some(server);
        Ok(())
    }
}
