//! The paths of a gateway to the LUNs of an array.

use crate::host::{Choice, End, Input, Multipath};
use sanloom_fc::config::{Gateway, GatewayMode, Host};
use sanloom_fc::san::Lab;
use sanloom_wire::Wwpn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Paths from all N_Ports of a gateway, or from the virtual N_Ports of each of its hosts. The
/// policy is that of the host of the lab which has these ports.
#[derive(Default)]
pub(super) struct ArrayPaths {
    /// By host in transparent mode; `None` in proxy mode.
    of: BTreeMap<Option<u16>, Paths>,
}

struct Paths {
    /// N_Port and target port of each path.
    ports: Vec<(u16, Wwpn)>,
    multipath: Multipath,
}

impl ArrayPaths {
    /// Returns the paths of a gateway, none of which is up. `nport` returns the N_Port of a port
    /// name.
    pub(super) fn new(lab: &Lab, gateway: &Gateway, nport: &dyn Fn(Wwpn) -> Option<u16>) -> ArrayPaths {
        let Some(ports) = &gateway.through else { return ArrayPaths::default() };
        let paths = |initiators: &[Wwpn]| {
            let ports = ports.paths_from(initiators).into_iter();
            let ports: Vec<(u16, Wwpn)> = ports.filter_map(|[own, target]| Some((nport(own)?, target))).collect();
            let has_ports = |host: &&Host| host.hbas.iter().any(|hba| initiators.contains(&hba.wwpn));
            let config = lab.hosts.iter().find(has_ports)?.multipath;
            Some(Paths { multipath: Multipath::new(Arc::new(config), ports.len() as u16), ports })
        };
        let of = match gateway.mode {
            GatewayMode::Proxy => paths(&ports.initiators).map(|paths| (None, paths)).into_iter().collect(),
            GatewayMode::Transparent => {
                let own =
                    gateway.hosts.iter().filter_map(|own| Some((own.host, lab.hosts.get(usize::from(own.port))?)));
                let names = own.map(|(host, ports)| (host, ports.hbas.iter().map(|hba| hba.wwpn).collect::<Vec<_>>()));
                names.filter_map(|(host, names)| Some((Some(host), paths(&names)?))).collect()
            }
        };
        ArrayPaths { of }
    }

    /// Selects the path of a command with `bytes` of data of a host. Without a path that is up, it
    /// is the first one, on which the command fails. `None`: the host has no N_Port.
    pub(super) fn choose(&mut self, host: Option<u16>, bytes: u32) -> Option<Chosen> {
        let (key, paths) = self.paths_of(host)?;
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

    /// Takes note that an N_Port can, or can no longer, reach a target port.
    pub(super) fn changed(&mut self, now_ps: u64, nport: u16, target: Wwpn, is_up: bool) {
        for paths in self.of.values_mut() {
            let Some(path) = paths.ports.iter().position(|path| *path == (nport, target)) else { continue };
            let path = path as u16;
            paths.multipath.handle(now_ps, if is_up { Input::RemoteUp(path) } else { Input::RemoteDown(path) });
            // No command waits there, so only the changes of state are reported.
            while paths.multipath.poll_output().is_some() {}
        }
    }

    fn paths_of(&mut self, host: Option<u16>) -> Option<(Option<u16>, &mut Paths)> {
        let key = if self.of.contains_key(&None) { None } else { host };
        Some((key, self.of.get_mut(&key)?))
    }
}

/// The path of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    key: Option<u16>,
    path: u16,
    pub(super) nport: u16,
    pub(super) target: Wwpn,
    bytes: u32,
    is_up: bool,
}
