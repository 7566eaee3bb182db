//! Host ports of a runtime: initiators of the instance itself, for back ends in a fabric.

use super::switches::open;
use super::{LabPaths, mac_of};
use crate::initiator::host::Host;
use crate::initiator::host::description::description;
use crate::initiator::{Adapter, AdapterConfig, Vlan};
use crate::ports::EthernetPort;
use crate::runtime::UpError;
use crate::runtime::fabric::Fabric;
use crate::runtime::fabric::switch::Attachment;
use crate::volumes::{HostPort, Wire};
use sanloom_fc::config::{BackEnd, BackEndTarget, FcpBackEnd, Hba, Host as HostConfig, Node, Uplink};
use sanloom_fc::fcp::initiator::FcpInitiatorConfig;
use sanloom_fc::nport::NPortConfig;
use sanloom_fc::san::Lab;
use sanloom_scsi::disk::DiskConfig;
use sanloom_scsi::time::Span;
use sanloom_wire::Wwpn;

/// BB_Credit of a host port; without effect on Ethernet and inside the process.
const BB_CREDIT: u16 = 16;
/// Divisor of the time for which commands wait for a lost target. After the quotient, a command is
/// aborted and sent again, because a frame was lost.
const COMMAND_TIME_DIVISOR: u64 = 2;

/// Returns the index of the host port of the instance that is this port of a host, if it is one.
/// `here`: the switches of the process.
pub(super) fn host_port(lab: &Lab, here: &[u16], node: Node, port: u16) -> Option<usize> {
    let Node::Host(host) = node else { return None };
    // Volumes are served only by an instance of the whole lab.
    let wwpn =
        lab.hosts[usize::from(host)].hbas.get(usize::from(port)).filter(|_| here.len() == lab.switches.len())?.wwpn;
    lab.live.host_ports().iter().position(|port| *port == wwpn)
}

/// Creates the host ports of the lab that back ends refer to.
pub(super) fn make_hosts(fabric: &Fabric, lab: &Lab, lab_paths: &LabPaths) -> Result<Vec<HostPort>, UpError> {
    let ports = lab.live.host_ports();
    (0..).zip(ports).filter_map(|(number, wwpn)| make_host(fabric, lab, lab_paths, number, wwpn)).collect()
}

/// Creates a host port. `None` if the lab has no such port, which validation excludes.
fn make_host(
    fabric: &Fabric,
    lab: &Lab,
    lab_paths: &LabPaths,
    number: usize,
    wwpn: Wwpn,
) -> Option<Result<HostPort, UpError>> {
    let (config, port, hba) = lab.hosts.iter().find_map(|host| {
        let port = host.hbas.iter().position(|hba| hba.wwpn == wwpn)?;
        Some((host, port, &host.hbas[port]))
    })?;
    let name = if config.hbas.len() > 1 { format!("{}:{port}", config.name) } else { config.name.clone() };
    let made = host(lab, config, hba);
    if let Some(uplink) = lab.live.uplinks.get(&wwpn) {
        let adapter = adapter(lab_paths, config, hba, uplink, made);
        return Some(adapter.map(|adapter| HostPort::new(name, Wire::Ethernet(Box::new(adapter)))));
    }
    let (switch, port) = fabric.attached_to(Attachment::Host(number))?;
    Some(Ok(HostPort::new(name, Wire::Inside { switch, port, host: Box::new(made) })))
}

fn adapter(
    lab_paths: &LabPaths,
    config: &HostConfig,
    hba: &Hba,
    Uplink { ethernet, discovers_vlan }: &Uplink,
    host: Host,
) -> Result<Adapter, UpError> {
    let port = EthernetPort::new(&config.name, open(lab_paths, &config.name, ethernet, false)?);
    let vlan = match ethernet.vlan {
        _ if *discovers_vlan => Vlan::Discover,
        Some(vlan) => Vlan::Tagged(vlan),
        None => Vlan::Untagged,
    };
    let config =
        AdapterConfig { dcbx: ethernet.dcbx, vlan, ..AdapterConfig::new(mac_of(hba.wwpn), hba.wwpn, config.wwnn) };
    let made = Adapter::new(config, port, vec![host]);
    made.map_err(|error| UpError::System { what: "threads", error })
}

fn host(lab: &Lab, config: &HostConfig, hba: &Hba) -> Host {
    let (e_d_tov, r_a_tov) = (lab.timers.e_d_tov.to_span(), lab.timers.r_a_tov.to_span());
    let login = NPortConfig {
        wwpn: hba.wwpn,
        wwnn: config.wwnn,
        receive_size_bytes: hba.receive_size_bytes,
        bb_credit: BB_CREDIT,
        bb_sc_n: 0,
        initiator: true,
        target: false,
        symbolic_name: config.name.clone(),
        e_d_tov,
        r_a_tov,
        seed: hba.wwpn.0,
        virtual_port: None,
    };
    let through = |back_end: &&BackEnd| matches!(back_end.target, BackEndTarget::Fcp(FcpBackEnd { initiator, .. }) if initiator == hba.wwpn);
    let waits = lab.live.back_ends.iter().filter(through).map(|back_end| back_end.retry_for.to_span()).min();
    let waits = waits.unwrap_or(DiskConfig::default().dev_loss);
    let command_timeout = Span::from_ms(waits.as_ms() / COMMAND_TIME_DIVISOR).max(e_d_tov);
    let fcp = FcpInitiatorConfig {
        e_d_tov,
        r_a_tov,
        command_timeout,
        recovery: None,
        max_exchanges: u16::MAX,
        in_order: true,
    };
    let mut host = Host::new(login, fcp, DiskConfig::default());
    host.login.describe(description(&config.name, hba.wwpn.to_string()));
    host
}
