//! The iSCSI targets of a runtime, and the logins that they accept.

use super::{Builder, LabPaths, served};
use crate::iscsi::secret::read_pair;
use crate::iscsi::{IscsiServer, PortalPlan, TargetPlan};
use crate::runtime::UpError;
use sanloom_fc::config::{Chap, Iscsi, MediumKind};
use sanloom_fc::san::Lab;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::iscsi::target::{Access, Authentication, Node, Portal, Redirect, Target};

/// Portal group of all portals of a target, unless the lab configures groups. A session has one
/// connection.
pub(super) const PORTAL_GROUP: u16 = 1;

/// Portal groups of a target. Each is a port of its device, numbered after the Fibre Channel ports.
pub(super) fn portal_groups(lab: &Lab, storage: u16) -> Vec<u16> {
    let of = lab.live.port_groups.iter().filter(|group| group.storage == storage);
    match of.clone().next() {
        None => vec![PORTAL_GROUP],
        Some(_) => of.filter(|group| !group.portals.is_empty()).map(|group| group.number).collect(),
    }
}

impl Builder<'_> {
    pub(super) fn make_iscsi(&mut self) -> Result<(), UpError> {
        let lab = self.instance.lab.clone();
        if let Some(&storage) = lab.live.out_of_band.keys().next() {
            return Err(UpError::MetadataServer { storage: lab.storage[usize::from(storage)].name.clone() });
        }
        let mut node = Node::default();
        let (mut behind, mut portals) = (Vec::new(), Vec::<PortalPlan>::new());
        for (system, storage) in served(&lab, &self.instance.lab_switches).into_iter().enumerate() {
            let Some(iscsi) = lab.live.iscsi.get(&storage) else { continue };
            if lab.live.gateways.get(&storage).is_some_and(|gateway| gateway.through.is_some()) {
                return Err(UpError::Gateway { storage: lab.storage[usize::from(storage)].name.clone() });
            }
            let config = &lab.storage[usize::from(storage)];
            let target = target(&lab, storage, iscsi, self.lab_paths)?;
            for (address, portal) in iscsi.portals.iter().zip(&target.portals) {
                if portals.iter().all(|plan| plan.listen != *address) {
                    portals.push(PortalPlan { listen: *address, address: portal.address.clone(), group: portal.group });
                }
            }
            // Discovery is open to each initiator that may log in to a target.
            let Authentication { initiators, own } = &target.authentication;
            for one in initiators {
                if !node.discovery.initiators.contains(one) {
                    node.discovery.initiators.push(one.clone());
                }
            }
            node.discovery.own = node.discovery.own.or_else(|| own.clone());
            node.targets.push(target);
            let forward = iscsi.forward && lab.live.medium(storage).kind == MediumKind::Volumes;
            let ports = portal_groups(&lab, storage).into_iter().zip(config.ports.len() as u16..).collect();
            behind.push(TargetPlan { system, ports, forward });
        }
        if node.targets.is_empty() {
            return Ok(());
        }
        // If one target needs no authentication, neither does discovery.
        if node.targets.iter().any(|target| target.authentication.initiators.is_empty()) {
            node.discovery = Authentication::default();
        }
        let server = IscsiServer::listen(node, &portals, behind)
            .map_err(|(address, error)| UpError::Portal { address, error })?;
        server.watch(&mut self.poller).map_err(|error| UpError::System { what: "epoll", error })?;
        for plan in &portals {
            tracing::info!(portal = plan.address, "iSCSI");
        }
        self.instance.services.iscsi = Some(server);
        Ok(())
    }
}

/// Returns names and secrets of the two directions: `chap_name`, and that of the target.
pub(super) fn credentials(lab_paths: &LabPaths, chap: &Chap) -> Result<[Option<Credentials>; 2], UpError> {
    let secret_path = |file: &Option<String>| file.as_ref().map(|file| lab_paths.folder().join(file));
    let one = (chap.name.as_deref(), secret_path(&chap.secret_file));
    Ok(read_pair(one, (chap.own_name.as_deref(), secret_path(&chap.own_secret_file)))?)
}

fn target(lab: &Lab, storage: u16, iscsi: &Iscsi, lab_paths: &LabPaths) -> Result<Target, UpError> {
    let [initiators, own] = credentials(lab_paths, &iscsi.chap)?;
    let authentication = Authentication { initiators: initiators.into_iter().collect(), own };
    let groups = || lab.live.port_groups.iter().filter(|group| group.storage == storage);
    let portal = |address: &std::net::SocketAddr| {
        let group = groups().find(|group| group.portals.contains(address));
        Portal { address: address.to_string(), group: group.map_or(PORTAL_GROUP, |group| group.number) }
    };
    let access = match &iscsi.initiators[..] {
        [] => Access::Everybody,
        names => Access::Listed(names.iter().cloned().collect()),
    };
    Ok(Target {
        alias: iscsi.alias.clone(),
        portals: iscsi.portals.iter().map(portal).collect(),
        access,
        authentication,
        redirect: iscsi
            .redirect
            .map(|address| Redirect { address: address.to_string(), permanent: iscsi.redirect_permanent }),
        offers: Offers {
            header_digest: iscsi.header_digest,
            data_digest: iscsi.data_digest,
            receive_bytes: iscsi.max_segment_bytes,
            initial_r2t: iscsi.initial_r2t,
            immediate_data: iscsi.immediate_data,
            max_burst_bytes: iscsi.max_burst_bytes,
            first_burst_bytes: iscsi.first_burst_bytes,
            max_outstanding_r2t: iscsi.max_outstanding_r2t,
        },
        depth: iscsi.queue_depth,
        ..Target::new(&iscsi.name)
    })
}
