//! Management interfaces of the switches of a running lab: [`ManagementArgs`].

use crate::web::{LiveFabric, Login};
use sanloom_console::exit::Failure;
use sanloom_fc::san::Lab;
use sanloom_surface::Fabric;
use sanloom_surface::fos::{Burst, Mode, Room, Shared};
use sanloom_surface::server::{Listen, Server, tls};
use sanloom_surface::ssh::{self, Access, UserKeys};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Ports of a real switch: HTTP and HTTPS.
const REAL_PORTS: [u16; 2] = [80, 443];
/// Port of a real switch for SSH.
const REAL_SSH: u16 = 22;

/// Servers of the management interfaces. Dropping them closes all connections.
pub struct Management {
    _rest: Server,
    _ssh: Option<ssh::Server>,
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
        connect: impl Fn() -> LiveFabric + Clone + Send + Sync + 'static,
    ) -> Result<Option<Management>, Failure> {
        let Some((first, port)) = self.fos else { return Ok(None) };
        let (users, folder) = (login.users()?, login.folder.as_path());
        let mode = Mode { strict: self.fos_strict, old_uris: self.fos_old, burst: self.fos_busy };
        let ports = port.map_or(REAL_PORTS, |port| [port, port + 1]);
        let ssh_port = match self.fos_ssh {
            None => None,
            Some(given) => {
                Some(given.or(port.map_or(Some(REAL_SSH), |port| port.checked_add(2))).ok_or_else(|| {
                    Failure::usage("no port follows that of HTTPS; name the port of SSH with --fos-ssh PORT")
                })?)
            }
        };
        let address = |index: usize| Ipv4Addr::from(u32::from(first).wrapping_add(index as u32));
        let addresses: BTreeMap<&str, (usize, Ipv4Addr)> =
            lab.switches.iter().enumerate().map(|(index, switch)| (&*switch.name, (index, address(index)))).collect();
        let all: Vec<IpAddr> = addresses.values().map(|(_, address)| IpAddr::V4(*address)).collect();
        let identity = tls::identity(folder, &["localhost".to_owned()], &all).map_err(Failure::environment)?;
        let (mut listens, mut ssh_listens) = (Vec::new(), Vec::new());
        for (switch, (index, address)) in addresses.iter().filter(|(name, _)| only.is_none_or(|only| only == **name)) {
            let shared = Shared::default();
            if let Some(id) = u16::try_from(*index).ok().and_then(|index| lab.vf_id(index)) {
                shared.lock().fabric_id = id;
            }
            for (other, (_, address)) in &addresses {
                shared.lock().names.insert(format!("address {other}"), address.to_string());
            }
            let handler = Arc::new(Room::new(switch, mode, users.clone(), shared.clone()));
            tracing::info!(switch, %address, http = ports[0], https = ports[1], ssh = ssh_port, "management");
            for (port, tls) in [(ports[0], None), (ports[1], Some(identity.clone()))] {
                // Passwords leave the machine only encrypted.
                if tls.is_some() || address.is_loopback() {
                    listens.push(Listen { address: SocketAddr::from((*address, port)), tls, handler: handler.clone() });
                }
            }
            if let Some(port) = ssh_port {
                let address = SocketAddr::from((*address, port));
                ssh_listens.push(ssh::Listen { address, switch: (*switch).to_owned(), shared });
            }
        }
        let connect = move || -> Box<dyn Fabric> { Box::new(connect()) };
        let ssh = match ssh_port {
            None => None,
            Some(_) => {
                let keys = UserKeys::read(&folder.join("ssh-keys")).map_err(Failure::environment)?;
                let host_key = ssh::host_key(folder).map_err(Failure::environment)?;
                let access = Access { users, keys, host_key };
                Some(ssh::Server::start(ssh_listens, access, connect.clone()).map_err(Failure::environment)?)
            }
        };
        let rest = Server::start(listens, connect).map_err(Failure::environment)?;
        Ok(Some(Management { _rest: rest, _ssh: ssh }))
    }
}
