//! Management interfaces of the switches of a running lab: [`ManagementArgs`].

use crate::web::{LiveFabric, Login};
use sanloom_console::exit::Failure;
use sanloom_fc::san::Lab;
use sanloom_surface::Fabric;
use sanloom_surface::fos::{Burst, Mode, Rest, Shared};
use sanloom_surface::nxos::{self, NxApi};
use sanloom_surface::server::{Handler, Listen, Serial, Server, tls};
use sanloom_surface::snmp::{self, Agent};
use sanloom_surface::ssh::{self, Access, UserKeys};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Ports of a real switch: HTTP and HTTPS.
const REAL_PORTS: [u16; 2] = [80, 443];
/// Ports of NX-API on a real switch: HTTP and HTTPS.
const REAL_NXAPI: [u16; 2] = [8080, 8443];
/// Port of a real switch for SNMP.
const REAL_SNMP: u16 = 161;
/// Port of a real switch for SSH.
const REAL_SSH: u16 = 22;

/// Servers of the management interfaces. Dropping them closes all connections.
pub struct Management {
    _rest: Option<Server>,
    _ssh: Option<ssh::Server>,
    _snmp: Option<snmp::Server>,
}

/// Options of the management interfaces.
#[derive(clap::Args, Debug, Default)]
pub struct ManagementArgs {
    /// Serve the REST interface of Fabric OS for each switch, at an address of its own: this one
    /// for the first switch, the next for the second. A port sets HTTP, and the next one HTTPS; the
    /// default is the ports of a switch, 80 and 443 [default address: 127.1.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "127.1.0.1", value_parser = parse_address)]
    pub fos: Option<(Ipv4Addr, Option<u16>)>,
    /// Let the REST interface have the limits of a switch: three sessions, and no more
    #[arg(long, requires = "fos")]
    fos_strict: bool,
    /// Answer 503 as a busy switch does, in bursts: serve SERVED requests, refuse REFUSED, repeat
    #[arg(long, requires = "fos_strict", value_name = "SERVED:REFUSED", value_parser = parse_burst)]
    fos_busy: Option<Burst>,
    /// Serve addresses of versions before 8.2.1b, such as /rest/running/zoning, too
    #[arg(long, requires = "fos")]
    fos_old: bool,
    /// Serve the command line of Fabric OS over SSH, too, at the addresses of --fos and at this
    /// port [default: 22, or the port of --fos plus 2]
    #[arg(long, requires = "fos", value_name = "PORT", num_args = 0..=1, value_parser = clap::value_parser!(u16).range(1..))]
    fos_ssh: Option<Option<u16>>,
    /// Serve NX-API for each switch, at an address of its own as with --fos. A port sets HTTP, and
    /// the next one HTTPS; the default is 8080 and 8443 [default address: 127.1.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "127.1.0.1", value_parser = parse_address)]
    nxapi: Option<(Ipv4Addr, Option<u16>)>,
    /// Answer SNMP version 2c for each switch, at an address of its own as with --fos, read only;
    /// the default port is 161 [default address: 127.1.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "127.1.0.1", value_parser = parse_address)]
    snmp: Option<(Ipv4Addr, Option<u16>)>,
    /// Community of SNMP, instead of the file `snmp-community` in the folder of the lab
    #[arg(long, requires = "snmp", value_name = "COMMUNITY", value_parser = parse_community)]
    snmp_community: Option<String>,
}

fn parse_address(text: &str) -> Result<(Ipv4Addr, Option<u16>), String> {
    let (address, port) = match text.split_once(':') {
        Some((address, port)) => (address, Some(port)),
        None => (text, None),
    };
    let address = address.parse().map_err(|_| "write it as ADDRESS or ADDRESS:PORT, for example 127.1.0.1:8080")?;
    let port = port.map(|port| match port.parse() {
        Ok(number @ 1..=65_534) => Ok(number),
        _ => Err("the port is a number from 1 to 65534; HTTPS uses the next one"),
    });
    Ok((address, port.transpose()?))
}

fn parse_community(text: &str) -> Result<String, String> {
    snmp::check_community(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

fn parse_burst(text: &str) -> Result<Burst, String> {
    let numbers =
        text.split_once(':').and_then(|(served, refused)| Some((served.parse().ok()?, refused.parse().ok()?)));
    match numbers {
        Some((served, refused)) if served > 0 && refused > 0 => Ok(Burst { served, refused }),
        _ => Err("write it as SERVED:REFUSED with two positive numbers, for example 20:3".to_owned()),
    }
}

impl ManagementArgs {
    /// Serves the interfaces, if they are requested.
    ///
    /// # Errors
    /// An address is in use, or a file cannot be read or written.
    pub fn serve(
        &self,
        login: &Login,
        lab: &Lab,
        only: Option<&str>,
        fabric: &LiveFabric,
    ) -> Result<Option<Management>, Failure> {
        if self.fos.is_none() && self.nxapi.is_none() && self.snmp.is_none() {
            return Ok(None);
        }
        let folder = login.folder.as_path();
        let with_login = self.fos.is_some() || self.nxapi.is_some();
        let users = with_login.then(|| login.users()).transpose()?;
        let mode = Mode { strict: self.fos_strict, old_uris: self.fos_old, burst: self.fos_busy };
        let ssh_port = match (self.fos_ssh, self.fos) {
            (None, _) | (_, None) => None,
            (Some(given), Some((_, port))) => {
                Some(given.or(port.map_or(Some(REAL_SSH), |port| port.checked_add(2))).ok_or_else(|| {
                    Failure::usage("no port follows that of HTTPS; name the port of SSH with --fos-ssh PORT")
                })?)
            }
        };
        let address = |first: Ipv4Addr, index: usize| Ipv4Addr::from(u32::from(first).wrapping_add(index as u32));
        let firsts = [self.fos, self.nxapi].into_iter().flatten().map(|(first, _)| first);
        let all: BTreeSet<IpAddr> =
            firsts.flat_map(|first| (0..lab.switches.len()).map(move |index| address(first, index).into())).collect();
        let all: Vec<IpAddr> = all.into_iter().collect();
        let identity = || tls::identity(folder, &["localhost".to_owned()], &all).map_err(Failure::environment);
        let identity = with_login.then(identity).transpose()?;
        let community = self.snmp.map(|_| self.community(folder)).transpose()?;
        let (mut listens, mut ssh_listens, mut agents) = (Vec::new(), Vec::new(), Vec::new());
        let mut chassis: BTreeMap<&str, nxos::Shared> = BTreeMap::new();
        let switches: BTreeMap<&str, (usize, Option<&str>)> = (lab.switches.iter().enumerate())
            .map(|(index, switch)| {
                (&*switch.name, (index, switch.virtual_fabric.as_ref().map(|fabric| &*fabric.chassis)))
            })
            .collect();
        let instance = Shared::default();
        if let Some((first, _)) = self.fos.or(self.nxapi).or(self.snmp) {
            for (switch, (index, _)) in &switches {
                instance.set_address(switch, address(first, *index).into());
            }
        }
        for (&switch, &(index, of)) in switches.iter().filter(|(name, _)| only.is_none_or(|only| only == **name)) {
            let shared = instance.at(switch, of);
            if let Some(id) = u16::try_from(index).ok().and_then(|index| lab.vf_id(index)) {
                shared.lock().fabric_id = id;
            }
            let mut listen = |address: Ipv4Addr, ports: [u16; 2], handler: Arc<dyn Handler>| {
                tracing::info!(switch, %address, http = ports[0], https = ports[1], "management");
                for (port, tls) in [(ports[0], None), (ports[1], identity.clone())] {
                    // Passwords leave the machine only encrypted.
                    if tls.is_some() || address.is_loopback() {
                        let handler = handler.clone();
                        listens.push(Listen { address: SocketAddr::from((address, port)), tls, handler });
                    }
                }
            };
            if let (Some((first, port)), Some(users)) = (self.fos, &users) {
                let rest = Rest::new(switch, mode, users.clone(), shared.clone());
                let ports = port.map_or(REAL_PORTS, |port| [port, port + 1]);
                listen(address(first, index), ports, Arc::new(Serial::new(rest)));
            }
            if let (Some((first, port)), Some(users)) = (self.nxapi, &users) {
                let settings = chassis.entry(of.unwrap_or(switch)).or_default().clone();
                let nxapi = NxApi::new(switch, users.clone(), shared.clone(), settings);
                let ports = port.map_or(REAL_NXAPI, |port| [port, port + 1]);
                listen(address(first, index), ports, Arc::new(Serial::new(nxapi)));
            }
            if let (Some((first, port)), Some(community)) = (self.snmp, &community) {
                let address = SocketAddr::from((address(first, index), port.unwrap_or(REAL_SNMP)));
                tracing::info!(switch, %address, "SNMP agent");
                if !address.ip().is_loopback() {
                    tracing::warn!(%address, "SNMP version 2c sends its community in plain text");
                }
                agents.push(snmp::Listen { address, agent: Agent::new(switch, community, shared.clone()) });
            }
            if let (Some(port), Some((first, _))) = (ssh_port, self.fos) {
                let address = SocketAddr::from((address(first, index), port));
                tracing::info!(switch, %address, "SSH");
                ssh_listens.push(ssh::Listen { address, switch: switch.to_owned(), shared });
            }
        }
        let connect = || {
            let fabric = fabric.for_server();
            move || -> Box<dyn Fabric> { Box::new(fabric.clone()) }
        };
        let ssh = match (ssh_port, users) {
            (None, _) | (_, None) => None,
            (Some(_), Some(users)) => {
                let keys = UserKeys::read(&folder.join("ssh-keys")).map_err(Failure::environment)?;
                let host_keys = ssh::host_keys(folder).map_err(Failure::environment)?;
                let access = Access { users, keys, host_keys };
                Some(ssh::Server::start(ssh_listens, access, connect()).map_err(Failure::environment)?)
            }
        };
        let snmp = match agents.is_empty() {
            true => None,
            false => Some(snmp::Server::start(agents, connect()).map_err(Failure::environment)?),
        };
        let rest = match listens.is_empty() {
            true => None,
            false => Some(Server::start(listens, connect()).map_err(Failure::environment)?),
        };
        Ok(Some(Management { _rest: rest, _ssh: ssh, _snmp: snmp }))
    }

    /// The community of SNMP: that of the option, or of the file. There is no default.
    fn community(&self, folder: &Path) -> Result<String, Failure> {
        if let Some(community) = &self.snmp_community {
            return Ok(community.clone());
        }
        let path = folder.join("snmp-community");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::usage(format_args!(
                    "SNMP has no default community; give one with --snmp-community COMMUNITY, or write it to {}",
                    path.display()
                )));
            }
            Err(error) => return Err(Failure::environment(format_args!("{}: {error}", path.display()))),
        };
        parse_community(&text).map_err(|rule| Failure::usage(format_args!("{}: {rule}", path.display())))
    }
}
