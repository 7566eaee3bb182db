//! Back-end LUNs: [`LunPlan`] with their configuration, and their state.

use super::host_port::HostPort;
use crate::iscsi_initiator::{PortalSeen, Remote};
use sanloom_api::volume::PortalRow;
use sanloom_scsi::disk::{self, Properties};
use sanloom_scsi::map::{LunId, Map};
use sanloom_wire::{FcId, Wwpn, lun};
use std::net::SocketAddr;

/// A back-end LUN.
#[derive(Clone, Debug)]
pub struct LunPlan {
    /// Its name.
    pub name: String,
    /// Carrier of its requests.
    pub through: Through,
    /// LUN at its target.
    pub lun: u16,
    /// Limits and time-outs.
    pub disk: disk::DiskConfig,
    /// Identity of the disk when its extents were last used.
    pub identity: Option<String>,
}

/// Carrier of the requests to a back-end LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Session of this instance with an iSCSI target, by index.
    Session(usize),
    /// Host port of this instance, by index, that is logged in to this target port.
    Port(usize, Wwpn),
}

/// A back-end LUN, reached or not.
#[derive(Debug)]
pub(super) struct BackEnd {
    pub(super) plan: LunPlan,
    /// Number of its disk at the carrier of its requests.
    pub(super) disk: u64,
    /// Properties of the disk, once it was reached.
    pub(super) found: Option<Box<Properties>>,
    /// Reason why it is not used.
    pub(super) refused: Option<String>,
}

impl BackEnd {
    /// Returns whether it was reached and is used.
    pub(super) fn is_there(&self) -> bool {
        self.found.is_some() && self.refused.is_none()
    }
}

/// State of a back-end LUN.
#[derive(Debug)]
pub struct BackEndSeen<'e> {
    /// Configuration.
    pub plan: &'e LunPlan,
    /// Name of its target.
    pub target: String,
    /// The host port that is logged in to it, for a LUN in a fabric.
    pub port: Option<PortSeen<'e>>,
    /// Address of the target, or the reason why there is no session or login, or why the LUN is not
    /// used.
    pub path: Result<String, String>,
    /// The portal of the lab that redirected the session, if it did.
    pub redirected_by: Option<SocketAddr>,
    /// Properties of the disk, once it was reached.
    pub found: Option<&'e Properties>,
    /// Portals of an iSCSI target, with their access states for the LUN.
    pub portals: Vec<PortalRow>,
    /// Sessions or logins with the target: begun, lost, and left for a better portal.
    pub sessions: [u64; 3],
    /// Counters of its requests.
    pub counters: disk::Counters,
}

/// The host port through which a back-end LUN is reached.
#[derive(Clone, Copy, Debug)]
pub struct PortSeen<'e> {
    /// Name in the lab.
    pub name: &'e str,
    /// World wide port name.
    pub wwpn: Wwpn,
    /// N_Port ID; zero without a login to the fabric.
    pub port_id: FcId,
}

const NOT_LISTED: &str = "the target does not list this LUN";

impl<'e> BackEndSeen<'e> {
    /// Returns the state of a LUN of an iSCSI target.
    pub(super) fn of_session(back_end: &'e BackEnd, remote: &'e Remote) -> BackEndSeen<'e> {
        let counters = remote.counters();
        let place = remote.place();
        let redirected_by = place.ok().and_then(|(_, portal)| portal);
        let path = place.map(|(address, _)| address.to_string()).map_err(str::to_owned);
        let path = back_end.judge(path, remote.unusable(back_end.disk), remote.lists(back_end.disk));
        BackEndSeen {
            plan: &back_end.plan,
            target: remote.config().target.clone(),
            port: None,
            path,
            redirected_by,
            found: back_end.found.as_deref(),
            portals: lun::to_bytes(back_end.plan.lun).map_or_else(Vec::new, |lun| {
                remote.portals(lun).map(|seen| portal_row(&seen, back_end.found.as_deref())).collect()
            }),
            sessions: [counters.logins, counters.lost, counters.moves],
            counters: remote.disk_counters(back_end.disk),
        }
    }

    /// Returns the state of a LUN of a Fibre Channel target port.
    pub(super) fn of_port(back_end: &'e BackEnd, port: &'e HostPort, target: Wwpn) -> BackEndSeen<'e> {
        let host = port.host();
        let path = port.path(target).map(|port_id| port_id.to_string());
        let path = back_end.judge(path, host.unusable(back_end.disk), host.lists(back_end.disk));
        let seen = host.target(target);
        let (name, wwpn, port_id) = (port.name.as_str(), host.login.wwpn(), host.port_id());
        BackEndSeen {
            plan: &back_end.plan,
            target: target.to_string(),
            port: Some(PortSeen { name, wwpn, port_id }),
            path,
            redirected_by: None,
            found: back_end.found.as_deref(),
            portals: Vec::new(),
            sessions: seen.map_or([0; 3], |seen| [seen.logins, seen.lost, 0]),
            counters: host.disk_counters(back_end.disk),
        }
    }
}

impl BackEnd {
    /// Returns the path if the LUN is used, otherwise the reason.
    fn judge(
        &self,
        path: Result<String, String>,
        unusable: Option<disk::Error>,
        is_listed: bool,
    ) -> Result<String, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let path = path?;
        match unusable {
            Some(error) => Err(error.to_string()),
            None if !is_listed => Err(NOT_LISTED.to_owned()),
            None => Ok(path),
        }
    }
}

fn portal_row(seen: &PortalSeen<'_>, found: Option<&Properties>) -> PortalRow {
    PortalRow {
        portal: seen.portal.to_string(),
        used: seen.used,
        group: seen.group.map(|group| group.number),
        state: match (seen.group, found.map(|found| found.has_port_groups)) {
            (Some(group), _) => group.state.to_string(),
            (None, Some(false)) => "none".to_owned(),
            (None, _) => String::new(),
        },
        preferred: seen.group.is_some_and(|group| group.preferred),
    }
}

/// Returns the identity that a disk reports.
pub fn identity(found: &Properties) -> Option<String> {
    found.designator.as_ref().map(ToString::to_string)
}

/// Returns why a disk cannot be the back end. If it can, its size is passed to the map.
pub(super) fn refusal(map: &mut Map, id: LunId, plan: &LunPlan, found: &Properties) -> Option<String> {
    let pool = map.luns().find(|(lun, _)| *lun == id).and_then(|(_, lun)| map.pool(lun.config.pool));
    let wanted = pool.map_or(0, |pool| pool.block_bytes);
    if wanted != found.block_bytes {
        return Some(format!("its blocks have {} bytes, but those of its pool have {wanted}", found.block_bytes));
    }
    let in_use = map.lun_use(id).is_some_and(|lun| lun.is_taken());
    let name = identity(found);
    if in_use && plan.identity.is_some() && plan.identity != name {
        let [was, is] = [&plan.identity, &name].map(|name| name.as_deref().unwrap_or("a disk without a name"));
        return Some(format!("it is {is}, but volumes have extents on {was}"));
    }
    if found.write_protected {
        return Some("it is write protected".to_owned());
    }
    (!map.reached(id, found.blocks)).then(|| "it is smaller than the extents that volumes have on it".to_owned())
}
