//! `sanloom initiator --iscsi`: an iSCSI host, whose disks programs use through NBD.

use super::up::report_ready;
use sanloom_console::chap::Chap;
use sanloom_console::endpoint::parse_iscsi_name;
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_live::iscsi_initiator::{IscsiInitiator, IscsiInitiatorConfig, RemoteConfig};
use sanloom_scsi::disk::DiskConfig;
use sanloom_scsi::iscsi::initiator::SessionConfig;
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::nbd::Limits;
use std::net::SocketAddr;
use std::path::Path;

/// Options of `sanloom initiator` that do not apply to iSCSI. Each option here that requires
/// `--iscsi` also conflicts with them, because clap does not demand an option that conflicts with a
/// given one.
const FIBRE_CHANNEL: [&str; 17] = [
    "lab",
    "host",
    "hba",
    "port",
    "capture",
    "mac",
    "wwpn",
    "wwnn",
    "vn2vn",
    "dcbx",
    "virtual_port",
    "vlan",
    "name",
    "control",
    "crc",
    "placement",
    "no_segmentation",
];

/// Options of an iSCSI host.
#[derive(clap::Args, Debug)]
pub struct OverTcp {
    /// iSCSI target instead of a Fibre Channel port, such as
    /// 127.0.0.1:3260/iqn.2026-11.net.example:disk
    #[arg(long, value_name = "ADDRESS:PORT/NAME", value_parser = parse_target, conflicts_with_all = FIBRE_CHANNEL)]
    pub iscsi: Option<(SocketAddr, String)>,
    /// iSCSI name of this initiator
    #[arg(long, value_name = "NAME", value_parser = parse_iscsi_name, conflicts_with_all = FIBRE_CHANNEL, default_value = "iqn.2026-11.example.sanloom:initiator")]
    iscsi_name: String,
    #[command(flatten)]
    pub chap: Chap,
    /// CRC-32C behind headers and data
    #[arg(long, requires = "iscsi", conflicts_with_all = FIBRE_CHANNEL)]
    digests: bool,
}

fn parse_target(text: &str) -> Result<(SocketAddr, String), String> {
    let wanted = "write it as 127.0.0.1:3260/iqn.2026-11.net.example:disk";
    let (address, target) = text.split_once('/').ok_or(wanted)?;
    Ok((address.parse().map_err(|_| wanted)?, parse_iscsi_name(target)?))
}

/// Runs an iSCSI host until it is terminated.
///
/// # Errors
/// When a secret cannot be read or is too weak, or the socket cannot be opened.
pub fn run(
    args: &OverTcp,
    (portal, target): (SocketAddr, String),
    nbd: &Path,
    ready_fd: Option<i32>,
) -> Result<(), Failure> {
    let digests = if args.digests { Digests::Always } else { Digests::Either };
    let [own, target_proof] = args.chap.credentials()?;
    let remote = RemoteConfig {
        portals: vec![portal],
        target,
        initiator: args.iscsi_name.clone(),
        own,
        target_proof,
        offers: Offers { header_digest: digests, data_digest: digests, ..Offers::default() },
        disk: DiskConfig::default(),
        session: SessionConfig::default(),
    };
    tracing::info!(%portal, target = remote.target, nbd = %nbd.display(), "up");
    let config = IscsiInitiatorConfig { remote, nbd: nbd.to_owned(), limits: Limits::default() };
    let mut initiator = IscsiInitiator::new(config).map_err(Failure::environment)?;
    let mut announced = ready_fd.is_none();
    let mut unannounced = Ok(());
    let outcome = initiator.run(|initiator| {
        if !announced && initiator.is_ready() {
            announced = true;
            unannounced = ready_fd.map_or(Ok(()), report_ready);
        }
        unannounced.is_ok() && !interrupt::requested()
    });
    initiator.shut_down();
    tracing::info!("down");
    unannounced?;
    outcome.map_err(|error| Failure::environment(format_args!("cannot wait for the target: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_an_address_and_a_name() {
        let target = parse_target("127.0.0.1:3260/iqn.2026-11.net.example:disk");
        assert_eq!(target, Ok(("127.0.0.1:3260".parse().unwrap(), "iqn.2026-11.net.example:disk".into())));
        assert!(parse_target("[::1]:3260/eui.02004567a425678d").is_ok());
        for wrong in ["127.0.0.1:3260", "127.0.0.1/iqn.2026-11.net.example:disk", "127.0.0.1:3260/disk"] {
            assert!(parse_target(wrong).is_err(), "{wrong}");
        }
    }
}
