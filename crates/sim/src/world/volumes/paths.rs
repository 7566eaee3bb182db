//! The paths of a gateway to the LUNs of an array, and to its back ends in Fibre Channel.

use crate::host::{Choice, End, Input, Multipath};
use sanloom_fc::config::{FcpBackEnd, Gateway, GatewayMode, Host};
use sanloom_fc::san::Lab;
use sanloom_scsi::map::LunId;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// User of paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PathsOf {
    /// All hosts, in proxy mode.
    All,
    /// A host, in transparent mode.
    Host(u16),
    /// A LUN of a back end of virtual disks.
    BackEnd(LunId),
}

impl PathsOf {
    /// Returns the host whose sessions depend on the paths, `Some(None)` for all hosts. Requests to
    /// back ends wait `retry_for` instead.
    fn hosts(self) -> Option<Option<u16>> {
        match self {
            PathsOf::All => Some(None),
            PathsOf::Host(host) => Some(Some(host)),
            PathsOf::BackEnd(_) => None,
        }
    }
}

/// Paths from all N_Ports of a gateway, or from the virtual N_Ports of each of its hosts. The
/// policy is that of the host of the lab which has these ports.
#[derive(Default)]
pub(super) struct ArrayPaths {
    of: BTreeMap<PathsOf, Paths>,
}

struct Paths {
    /// N_Port and target port of each path.
    ports: Vec<(u16, Wwpn)>,
    multipath: Multipath,
    /// True for each path that is up.
    is_up: Vec<bool>,
    /// Time since which no path is up, in ps; `None` before the first login, and after a logout.
    since_ps: Option<u64>,
    /// True if a login that existed before was lost: its hosts learn that it has returned.
    reports: bool,
    /// True if the gateway has ended the sessions of its hosts, because no path has returned.
    has_given_up: bool,
    /// True from a logout of the gateway to the next login.
    is_logged_out: bool,
}

impl Paths {
    /// Returns paths, none of which is up. Their policy is that of the host with the first port.
    fn new(lab: &Lab, paths: Vec<[Wwpn; 2]>, nport: &dyn Fn(Wwpn) -> Option<u16>) -> Option<Paths> {
        let first = paths.first()?[0];
        let has_port = |host: &&Host| host.hbas.iter().any(|hba| hba.wwpn == first);
        let config = lab.hosts.iter().find(has_port)?.multipath;
        let ports: Vec<(u16, Wwpn)> =
            paths.into_iter().filter_map(|[own, target]| Some((nport(own)?, target))).collect();
        Some(Paths {
            multipath: Multipath::new(Arc::new(config), ports.len() as u16),
            is_up: vec![false; ports.len()],
            since_ps: None,
            reports: false,
            has_given_up: false,
            is_logged_out: false,
            ports,
        })
    }

    /// Takes note of a change of a path. Returns true for the return of a lost login.
    fn changed(&mut self, now_ps: u64, path: u16, is_up: bool) -> bool {
        let was_any_up = self.is_up.contains(&true);
        self.is_up[usize::from(path)] = is_up;
        if is_up {
            (self.since_ps, self.has_given_up) = (None, false);
            return std::mem::take(&mut self.reports);
        }
        if was_any_up && !self.is_up.contains(&true) && !self.is_logged_out {
            (self.since_ps, self.reports) = (Some(now_ps), true);
        }
        false
    }
}

impl ArrayPaths {
    /// Returns the paths of a gateway, none of which is up. `nport` returns the N_Port of a port
    /// name.
    pub(super) fn new(lab: &Lab, gateway: &Gateway, nport: &dyn Fn(Wwpn) -> Option<u16>) -> ArrayPaths {
        let Some(ports) = &gateway.through else { return ArrayPaths::default() };
        let paths = |initiators: &[Wwpn]| Paths::new(lab, ports.paths_from(initiators), nport);
        let of = match gateway.mode {
            GatewayMode::Proxy => paths(&ports.initiators).map(|paths| (PathsOf::All, paths)).into_iter().collect(),
            GatewayMode::Transparent => {
                let own =
                    gateway.hosts.iter().filter_map(|own| Some((own.host, lab.hosts.get(usize::from(own.port))?)));
                let names = own.map(|(host, ports)| (host, ports.hbas.iter().map(|hba| hba.wwpn).collect::<Vec<_>>()));
                names.filter_map(|(host, names)| Some((PathsOf::Host(host), paths(&names)?))).collect()
            }
        };
        ArrayPaths { of }
    }

    /// Adds the paths to a LUN of a back end.
    pub(super) fn add_back_end(
        &mut self,
        lab: &Lab,
        lun: LunId,
        target: &FcpBackEnd,
        nport: &dyn Fn(Wwpn) -> Option<u16>,
    ) {
        let paths = Paths::new(lab, target.paths().collect(), nport);
        self.of.extend(paths.map(|paths| (PathsOf::BackEnd(lun), paths)));
    }

    /// Returns the user of the paths of a host.
    pub(super) fn user(&self, host: Option<u16>) -> Option<PathsOf> {
        if self.of.contains_key(&PathsOf::All) { Some(PathsOf::All) } else { host.map(PathsOf::Host) }
    }

    /// Returns whether a path to a LUN of a back end leads from an N_Port to a target port.
    pub(super) fn has(&self, lun: LunId, path: (u16, Wwpn)) -> bool {
        self.of.get(&PathsOf::BackEnd(lun)).is_some_and(|paths| paths.ports.contains(&path))
    }

    /// Returns the N_Port and the target port of the first path to a LUN of a back end that is up,
    /// or of the first one.
    pub(super) fn first(&self, lun: LunId) -> Option<(u16, Wwpn)> {
        let paths = self.of.get(&PathsOf::BackEnd(lun))?;
        let up = paths.is_up.iter().position(|is_up| *is_up).unwrap_or(0);
        paths.ports.get(up).copied()
    }

    /// Selects the path of a command with `bytes` of data. Without a path that is up, it is the
    /// first one, on which the command fails. `None`: the user has no N_Port.
    pub(super) fn choose(&mut self, key: PathsOf, bytes: u32) -> Option<Chosen> {
        let paths = self.of.get_mut(&key)?;
        let (path, is_up) = match paths.multipath.choose(bytes, |_| true) {
            Choice::Path(path) => (path, true),
            Choice::Busy | Choice::NoPath => (0, false),
        };
        let &(nport, target) = paths.ports.get(usize::from(path))?;
        Some(Chosen { key, path, nport, target, bytes, is_up })
    }

    /// Returns whether another path than the one of a command is up.
    pub(super) fn has_other(&self, chosen: &Chosen) -> bool {
        self.of.get(&chosen.key).is_some_and(|paths| paths.multipath.has_other_active(chosen.path))
    }

    /// Ends the use of a path by a command, which was sent at `sent_ps`.
    pub(super) fn release(&mut self, chosen: &Chosen, is_done: bool, [sent_ps, now_ps]: [u64; 2]) {
        let Some(paths) = self.of.get_mut(&chosen.key).filter(|_| chosen.is_up) else { return };
        let end = if is_done { End::Done { sent_ps, now_ps } } else { End::NotDone };
        paths.multipath.release(chosen.path, chosen.bytes, end);
    }

    /// Takes note that an N_Port can, or can no longer, reach a target port. Returns the hosts
    /// whose lost login has returned.
    pub(super) fn changed(&mut self, now_ps: u64, nport: u16, target: Wwpn, is_up: bool) -> Vec<Option<u16>> {
        let mut returned = Vec::new();
        for (user, paths) in &mut self.of {
            let Some(path) = paths.ports.iter().position(|path| *path == (nport, target)) else { continue };
            let path = path as u16;
            paths.multipath.handle(now_ps, if is_up { Input::RemoteUp(path) } else { Input::RemoteDown(path) });
            // No command waits there, so only the changes of state are reported.
            while paths.multipath.poll_output().is_some() {}
            if paths.changed(now_ps, path, is_up) {
                returned.extend(user.hosts());
            }
        }
        returned
    }

    /// Takes note that the virtual N_Ports of a host log out.
    pub(super) fn logs_out(&mut self, host: u16) {
        if let Some(paths) = self.of.get_mut(&PathsOf::Host(host)) {
            (paths.since_ps, paths.reports, paths.is_logged_out) = (None, false, true);
        }
    }

    /// Takes note that the virtual N_Ports of a host log in.
    pub(super) fn logs_in(&mut self, host: u16, now_ps: u64) {
        if let Some(paths) = self.of.get_mut(&PathsOf::Host(host)) {
            (paths.since_ps, paths.is_logged_out) = (Some(now_ps), false);
        }
    }

    /// Gives up the paths that have been down for `limit_ps`. Returns their hosts.
    pub(super) fn give_up(&mut self, now_ps: u64, limit_ps: u64) -> Vec<Option<u16>> {
        let mut given_up = Vec::new();
        for (user, paths) in &mut self.of {
            let Some(host) = user.hosts() else { continue };
            let is_over = paths.since_ps.is_some_and(|since_ps| since_ps.saturating_add(limit_ps) <= now_ps);
            if is_over && !std::mem::replace(&mut paths.has_given_up, true) {
                given_up.push(host);
            }
        }
        given_up
    }

    /// Returns the time in ps at which the next paths have been down for `limit_ps`.
    pub(super) fn next_limit_ps(&self, limit_ps: u64) -> Option<u64> {
        let waiting = self.of.iter().filter(|(user, paths)| user.hosts().is_some() && !paths.has_given_up);
        waiting.filter_map(|(_, paths)| paths.since_ps).min().map(|since_ps| since_ps.saturating_add(limit_ps))
    }

    /// Returns whether the paths of a host were given up, and none has returned.
    pub(super) fn has_given_up(&self, host: u16) -> bool {
        let paths = self.user(Some(host)).and_then(|user| self.of.get(&user));
        paths.is_some_and(|paths| paths.has_given_up)
    }
}

/// The path of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    key: PathsOf,
    path: u16,
    pub(super) nport: u16,
    pub(super) target: Wwpn,
    bytes: u32,
    is_up: bool,
}

impl Chosen {
    /// Returns whether the path was up when it was selected.
    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }
}
