//! A back-end LUN: [`LunPlan`], and what is known of it.

use super::host_port::HostPort;
use crate::iscsi::initiator::{PortalSeen, Remote};
use sanloom_api::volume::PortalRow;
use sanloom_core::disk::{self, Properties};
use sanloom_core::map::{LunId, Map};
use sanloom_wire::{FcId, Wwpn, lun};
use std::net::SocketAddr;

/// A back-end LUN.
#[derive(Clone, Debug)]
pub struct LunPlan {
    /// Its name.
    pub name: String,
    /// Who carries requests there.
    pub through: Through,
    /// LUN at its target.
    pub lun: u16,
    /// How it is used.
    pub disk: disk::DiskConfig,
    /// What it called itself when its extents were last used.
    pub identity: Option<String>,
}

/// Who carries requests to a back-end LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Our session with an iSCSI target, by index.
    Session(usize),
    /// A host port of ours, by index, that is logged in to this target port.
    Port(usize, Wwpn),
}

/// A back-end LUN that may have been reached.
#[derive(Debug)]
pub(super) struct BackEnd {
    pub(super) plan: LunPlan,
    /// Number of its disk at who carries requests there.
    pub(super) disk: u64,
    /// What it is, once it was reached.
    pub(super) found: Option<Box<Properties>>,
    /// Why it is not used.
    pub(super) refused: Option<String>,
}

impl BackEnd {
    /// It was reached, and is used.
    pub(super) fn is_there(&self) -> bool {
        self.found.is_some() && self.refused.is_none()
    }
}

/// What a back-end LUN is like now.
#[derive(Debug)]
pub struct BackEndSeen<'e> {
    /// Its name, and who carries requests there.
    pub plan: &'e LunPlan,
    /// Name of its target.
    pub target: String,
    /// The host port that is logged in to it, in a fabric.
    pub port: Option<PortSeen<'e>>,
    /// Where the target is, or why there is no session or login or the LUN is not used.
    pub path: Result<String, String>,
    /// The portal of the lab that has sent the session there, if that is another one.
    pub redirected_by: Option<SocketAddr>,
    /// What it is, once it was reached.
    pub found: Option<&'e Properties>,
    /// Portals of an iSCSI target, as they serve the LUN.
    pub portals: Vec<PortalRow>,
    /// Sessions or logins with the target that were begun, that were lost, and that were left for a better portal.
    pub sessions: [u64; 3],
    /// What was counted of its requests.
    pub counters: disk::Counters,
}

/// The host port through which a back-end LUN is reached.
#[derive(Clone, Copy, Debug)]
pub struct PortSeen<'e> {
    /// Its name in the lab.
    pub name: &'e str,
    /// Its port name.
    pub wwpn: Wwpn,
    /// Its address; zero without a login to the fabric.
    pub port_id: FcId,
}

const NOT_LISTED: &str = "the target does not list such a LUN";

impl<'e> BackEndSeen<'e> {
    /// A LUN of an iSCSI target.
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

    /// A LUN of a target port.
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
    /// The way to it if it is used.
    fn judge(
        &self,
        way: Result<String, String>,
        unusable: Option<disk::Error>,
        is_listed: bool,
    ) -> Result<String, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let way = way?;
        match unusable {
            Some(error) => Err(error.to_string()),
            None if !is_listed => Err(NOT_LISTED.to_owned()),
            None => Ok(way),
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

/// What a disk calls itself.
pub fn identity(found: &Properties) -> Option<String> {
    found.designator.as_ref().map(ToString::to_string)
}

/// Why a disk that was found cannot be the back end; otherwise its room is known to the map.
pub(super) fn refusal(map: &mut Map, id: LunId, plan: &LunPlan, found: &Properties) -> Option<String> {
    let pool = map.luns().find(|(lun, _)| *lun == id).and_then(|(_, lun)| map.pool(lun.config.pool));
    let wanted = pool.map_or(0, |pool| pool.block_bytes);
    if wanted != found.block_bytes {
        return Some(format!("its blocks have {} bytes, those of its pool {wanted}", found.block_bytes));
    }
    let in_use = map.lun_use(id).is_some_and(|lun| lun.is_taken());
    let name = identity(found);
    if in_use && plan.identity.is_some() && plan.identity != name {
        let [was, is] = [&plan.identity, &name].map(|name| name.as_deref().unwrap_or("a disk without a name"));
        return Some(format!("it is {is}, and volumes have extents of {was}"));
    }
    if found.write_protected {
        return Some("it is write protected".to_owned());
    }
    (!map.reached(id, found.blocks)).then(|| "it is smaller than what volumes have of it".to_owned())
}
