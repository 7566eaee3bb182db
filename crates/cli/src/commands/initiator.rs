//! `sanloom initiator`: a Fibre Channel or iSCSI host in user space, whose disks programs use
//! through NBD.

use super::iscsi_initiator;
use super::up::{log_to_stderr, report_ready};
use sanloom_console::endpoint::{PortName, parse_vlan};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::interrupt;
use sanloom_console::outputs::Sets;
use sanloom_fc::config::{Carrier, Ethernet, Node};
use sanloom_fc::san::Lab;
use sanloom_live::capture::CapturePoint;
use sanloom_live::control::Control;
use sanloom_live::initiator::{AdapterConfig, Initiator, InitiatorConfig, Vlan};
use sanloom_live::offload::{Checksum, Offloads, Placement};
use sanloom_live::runtime::plan::{LabPaths, mac_of};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::{Wwnn, Wwpn};
use std::path::PathBuf;

/// Options of `sanloom initiator`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  sanloom initiator lab.toml --host server1 --nbd /run/server1.sock")]
pub struct Args {
    /// Lab file that defines the host; without it, --port is required
    #[arg(value_name = "LAB")]
    lab: Option<PathBuf>,
    /// Name of the host in the lab
    #[arg(long, value_name = "NAME", requires = "lab")]
    host: Option<String>,
    /// Index of the host's port, from 0; several ports, as in `0,1`, are paths to the same disks
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0", requires = "host")]
    hba: Vec<u16>,
    /// Ethernet port: `eth1` (any interface), `tap:NAME`, `dgram:OWN,PEER` or `stream:PATH` (unix
    /// sockets), `fd:N`; several ports are paths to the same disks
    #[arg(long, value_name = "PORT", value_parser = PortName::parse)]
    port: Vec<PortName>,
    /// Socket of the NBD server
    #[arg(long, value_name = "SOCKET")]
    nbd: PathBuf,
    /// Ethernet address of each port, in their order [default: the interface's own, or from the
    /// host's port name]
    #[arg(long, value_name = "MAC")]
    mac: Vec<MacAddr>,
    /// Port name of each port, in their order [default: 20:00 and the Ethernet address]
    #[arg(long, value_name = "WWPN")]
    wwpn: Vec<Wwpn>,
    /// Node name [default: 10:00 and the Ethernet address]
    #[arg(long, value_name = "WWNN")]
    wwnn: Option<Wwnn>,
    /// Run as a station of a segment without a switch (VN2VN)
    #[arg(long)]
    vn2vn: bool,
    /// Wait until DCBX has agreed on lossless FCoE with the peer [default: from the lab]
    #[arg(long)]
    dcbx: bool,
    /// Wait until fcoemon, which runs DCBX for all VLANs of an interface, permits FCoE through the
    /// control socket
    #[arg(long, requires = "control", conflicts_with = "dcbx")]
    dcbx_of_fcoemon: bool,
    /// Answer VLAN requests on the VN2VN segment with the VLAN of --vlan
    #[arg(long, requires = "vn2vn")]
    vlan_responder: bool,
    /// Virtual port (NPIV): port name, and node name if it differs from the host's; may be repeated
    #[arg(long, value_name = "WWPN[@WWNN]", value_parser = parse_virtual_port, conflicts_with = "vn2vn")]
    virtual_port: Vec<(Wwpn, Option<Wwnn>)>,
    /// VLAN of FCoE: a number, `none`, or `auto` for discovery [default: none, or from the lab]
    #[arg(long, value_name = "VLAN", value_parser = parse_vlan)]
    vlan: Option<Vlan>,
    #[command(flatten)]
    over_tcp: iscsi_initiator::OverTcp,
    /// Name in fcoeadm and the other commands [default: the host of the lab, or the port]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Control socket for fcoeadm and the other commands [default: none]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// End, as with SIGTERM, when this parent process ends
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
    #[command(flatten)]
    offloads: OffloadArgs,
    /// Write `ready` and a newline to this descriptor when the disks can be used, and close it
    #[arg(long, value_name = "N")]
    ready_fd: Option<i32>,
    /// Write the frames of the port to a file (pcapng)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Filter of the log on standard error, for example info, debug or sanloom_live=debug
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// Log one JSON object in each line
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    sets: Sets,
}

/// Offloads of the Open-FCoE slides, in software.
#[derive(clap::Args, Debug)]
struct OffloadArgs {
    /// Implementation of the CRC
    #[arg(long, value_name = "HOW", value_parser = ["simd", "table"], default_value = "simd")]
    crc: String,
    /// Placement of read data: directly in the buffer of the request (`unlimited`), the same for at
    /// most 512 concurrent reads of at least 4 KiB (`document`), or through another buffer (`off`)
    #[arg(long, value_name = "HOW", value_parser = ["unlimited", "document", "off"], default_value = "unlimited")]
    placement: String,
    /// Compose the header of each data frame anew instead of copying a prototype
    #[arg(long)]
    no_segmentation: bool,
}

impl OffloadArgs {
    fn offloads(&self) -> Offloads {
        Offloads {
            checksum: if self.crc == "table" { Checksum::Table } else { Checksum::Simd },
            placement: match self.placement.as_str() {
                "off" => Placement::Off,
                "document" => Placement::DOCUMENT,
                _ => Placement::Unlimited,
            },
            segmentation: !self.no_segmentation,
        }
    }
}

fn parse_virtual_port(text: &str) -> Result<(Wwpn, Option<Wwnn>), String> {
    let (port, node) = text.split_once('@').map_or((text, None), |(port, node)| (port, Some(node)));
    let wrong = |name: &str| format!("`{name}` is not a world wide name; write eight bytes as 25:00:00:00:00:00:01:01");
    let node = node.map(|node| node.parse().map_err(|_| wrong(node))).transpose()?;
    Ok((port.parse().map_err(|_| wrong(port))?, node))
}

/// Runs an initiator.
///
/// # Errors
/// When the lab is invalid, or the port or the socket cannot be opened.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(target) = &args.over_tcp.iscsi {
        log_to_stderr(&args.log, args.log_json)?;
        return iscsi_initiator::run(&args.over_tcp, target.clone(), &args.nbd, args.ready_fd);
    }
    if args.over_tcp.chap.is_given() {
        return Err(Failure::usage("CHAP requires an iSCSI host: add --iscsi, or remove --chap-name"));
    }
    let (config, ports) = configure(args)?;
    log_to_stderr(&args.log, args.log_json)?;
    if let Some(parent) = args.parent {
        end_with(parent)?;
    }
    let mut open = Vec::with_capacity(ports.len());
    for port in &ports {
        open.push(port.open().map_err(Failure::environment)?);
    }
    let first = open.remove(0);
    let mut initiator = Initiator::with_ports(config, first, open).map_err(Failure::environment)?;
    if let Some(file) = &args.capture {
        let now = initiator.clock.now();
        let name = initiator.adapter.port.name.clone();
        initiator.adapter.captures.start(now, CapturePoint::Ethernet(0), &name, file).map_err(|error| {
            Failure::environment(format_args!("cannot write the capture {}: {error}", file.display()))
        })?;
    }
    let control =
        args.control.as_deref().map(|path| Control::listen(path, None)).transpose().map_err(Failure::environment)?;
    tracing::info!(port = initiator.adapter.port.name, nbd = %args.nbd.display(), "up");
    let mut announced = args.ready_fd.is_none();
    let mut unannounced = Ok(());
    let bell = control.as_ref().map(Control::bell);
    let outcome = initiator.run(bell, |initiator| {
        if !announced && initiator.is_ready() {
            announced = true;
            unannounced = args.ready_fd.map_or(Ok(()), report_ready);
        }
        let stop = control.as_ref().is_some_and(|control| !initiator.answer(control));
        unannounced.is_ok() && !stop && !interrupt::requested()
    });
    initiator.shut_down();
    tracing::info!("down");
    unannounced?;
    outcome.map_err(|error| Failure::environment(format_args!("cannot wait for the port: {error}")))?;
    match initiator.adapter.captures.failed().first() {
        Some(failed) => Err(Failure::environment(failed)),
        None => Ok(()),
    }
}

/// Maximum number of Ethernet ports of a host.
const MAX_PORTS: usize = 8;

/// Returns the configuration of the host and its Ethernet ports, of which there is at least one.
fn configure(args: &Args) -> Result<(InitiatorConfig, Vec<PortName>), Failure> {
    let lab = args.lab.clone().map(|path| input::load_running(&LabFile { path }, &args.sets.set)).transpose()?;
    let hbas = lab.iter().flat_map(|loaded| args.hba.iter().map(move |hba| host_of(&loaded.lab, args, *hba)));
    let from_lab = hbas.collect::<Result<Vec<_>, _>>()?;
    let count = args.port.len().max(from_lab.len());
    let too_many = args.mac.len().max(args.wwpn.len()) > count.max(1);
    let some_missing = args.port.len() > 1 && !from_lab.is_empty() && args.port.len() != from_lab.len();
    if count > MAX_PORTS || too_many || some_missing {
        return Err(Failure::usage(format_args!(
            "give --port, --hba, --mac and --wwpn once for each of at most {MAX_PORTS} ports"
        )));
    }
    let (mut adapters, mut ports) = (Vec::new(), Vec::new());
    let mut first_lab = None;
    let mut labs = from_lab.into_iter();
    for number in 0..count {
        let (of_lab, port_of_lab) = labs.next().unzip();
        let port = match (args.port.get(number), port_of_lab) {
            (Some(port), _) => port.clone(),
            (None, Some(port)) => port?,
            (None, None) => break,
        };
        let mac = args.mac.get(number).copied().or(of_lab.as_ref().map(|host: &HostOfLab| host.mac));
        let mac = mac.or_else(|| port.mac());
        let mac =
            mac.ok_or_else(|| Failure::usage("the port has no Ethernet address of its own; give it one with --mac"))?;
        adapters.push(adapter(args, number, mac, of_lab.as_ref()));
        ports.push(port);
        first_lab = first_lab.or(of_lab);
    }
    if adapters.is_empty() {
        return Err(Failure::usage("use --port, a lab with --host, or --iscsi"));
    }
    let adapter = adapters.remove(0);
    if adapter.vn2vn && adapter.vlan == Vlan::Discover {
        return Err(Failure::usage("a VN2VN segment has no VLAN discovery; give the number of the VLAN with --vlan"));
    }
    let mut config = InitiatorConfig::new(adapter.mac, args.nbd.clone());
    config.name = args.name.clone().or(first_lab.as_ref().map(|host| host.name.clone()));
    if let Some(host) = first_lab {
        config.symbolic_name = host.name;
    }
    let node = adapter.wwnn;
    config.virtual_ports = args.virtual_port.iter().map(|(port, own)| (*port, own.unwrap_or(node))).collect();
    // All ports belong to one node.
    adapters.iter_mut().for_each(|other| other.wwnn = node);
    (config.adapter, config.others) = (adapter, adapters);
    Ok((config, ports))
}

/// Returns the configuration of an Ethernet port by its number.
fn adapter(args: &Args, number: usize, mac: MacAddr, from_lab: Option<&HostOfLab>) -> AdapterConfig {
    let mut adapter = AdapterConfig::named_by(mac);
    if let Some(host) = from_lab {
        (adapter.wwpn, adapter.wwnn, adapter.vlan) = (host.wwpn, host.wwnn, host.vlan);
    }
    adapter.wwpn = args.wwpn.get(number).copied().unwrap_or(adapter.wwpn);
    adapter.wwnn = args.wwnn.unwrap_or(adapter.wwnn);
    adapter.vlan = args.vlan.unwrap_or(adapter.vlan);
    adapter.dcbx = args.dcbx || from_lab.is_some_and(|host| host.dcbx);
    adapter.waits_for_permission = args.dcbx_of_fcoemon;
    adapter.vlan_responder = args.vlan_responder;
    adapter.vn2vn = args.vn2vn;
    adapter.offloads = args.offloads.offloads();
    adapter
}

/// Ends this process when its parent ends or has already ended. The parent-death signal is
/// unsuitable, because it is sent for each thread of the parent; a second one would end us before
/// the logout.
fn end_with(parent: u32) -> Result<(), Failure> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
    let gone = || Failure::environment(format_args!("the parent process {parent} has ended"));
    let pid = Pid::from_raw(parent.cast_signed()).ok_or_else(gone)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())?;
    // The parent may have ended earlier, and its number may belong to another process now.
    if getppid() != Some(pid) {
        return Err(gone());
    }
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) == Err(Errno::INTR) {}
        interrupt::request();
    });
    Ok(())
}

/// The lab's settings of a host.
struct HostOfLab {
    name: String,
    mac: MacAddr,
    wwpn: Wwpn,
    wwnn: Wwnn,
    vlan: Vlan,
    dcbx: bool,
}

/// Returns the lab's settings of the host, and its port if the lab defines one.
fn host_of(lab: &Lab, args: &Args, hba_number: u16) -> Result<(HostOfLab, Result<PortName, Failure>), Failure> {
    let names = || lab.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(name) = &args.host else {
        return Err(Failure::usage(format_args!("select a host with --host: {}", names())));
    };
    let Some(index) = lab.hosts.iter().position(|host| host.name == *name) else {
        return Err(Failure::usage(format_args!("the lab has no host `{name}`; it has {}", names())));
    };
    let host = &lab.hosts[index];
    let Some(hba) = host.hbas.get(usize::from(hba_number)) else {
        return Err(Failure::usage(format_args!("the host `{name}` has {} ports, counted from 0", host.hbas.len())));
    };
    let node = Node::Host(index as u16);
    let link = lab.links.iter().position(|link| link.ends.iter().any(|end| end.node == node && end.port == hba_number));
    let ethernet = link.and_then(|link| Some((link, lab.live.ethernet.get(&link)?)));
    let vlan = ethernet.and_then(|(_, ethernet)| ethernet.vlan).map_or(Vlan::Untagged, Vlan::Tagged);
    let dcbx = ethernet.is_some_and(|(_, ethernet)| ethernet.dcbx);
    let port = match ethernet {
        Some((link, ethernet)) => port_of(lab, &lab.links[link].name, ethernet),
        None => Err(Failure::usage(format_args!(
            "no Ethernet link of the lab leads to this port of `{name}`; add `ethernet` to the link, or use --port"
        ))),
    };
    let (wwpn, wwnn) = (hba.wwpn, host.wwnn);
    Ok((HostOfLab { name: name.clone(), mac: mac_of(wwpn), wwpn, wwnn, vlan, dcbx }, port))
}

/// Returns the host's end of a link; `sanloom up` opens the other end.
fn port_of(lab: &Lab, link: &str, ethernet: &Ethernet) -> Result<PortName, Failure> {
    let (switch, host) = LabPaths::of(lab).sockets(link, ethernet, false);
    match (ethernet.carrier, &ethernet.address, &ethernet.peer) {
        (Carrier::Datagram, ..) => Ok(PortName::Datagram(host, switch)),
        (Carrier::Stream, ..) => Ok(PortName::Stream(switch)),
        // A process that does not own the tap uses it as an interface.
        (Carrier::Tap, Some(name), _) | (Carrier::Packet, _, Some(name)) => Ok(PortName::Interface(name.clone())),
        (Carrier::Packet | Carrier::Tap | Carrier::Descriptor, ..) => Err(Failure::usage(format_args!(
            "the lab does not name the interface at the host's end of the link `{link}`; use --port"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_names() {
        let parse = |text| PortName::parse(text);
        assert_eq!(parse("eth1"), Ok(PortName::Interface("eth1".into())));
        assert_eq!(parse("tap:t0"), Ok(PortName::Tap("t0".into())));
        assert_eq!(parse("dgram:/a,/b"), Ok(PortName::Datagram("/a".into(), "/b".into())));
        assert_eq!(parse("stream:/s"), Ok(PortName::Stream("/s".into())));
        assert_eq!(parse("fd:7"), Ok(PortName::Descriptor(7)));
        for wrong in ["dgram:/a", "fd:x", "serial:0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for text in ["eth1", "tap:t0", "dgram:/a,/b", "stream:/s", "fd:7"] {
            assert_eq!(parse(text).map(|port| port.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn an_address_follows_from_a_port_name() {
        assert_eq!(mac_of(Wwpn(0x2000_5254_0000_0001)).to_string(), "52:54:00:00:00:01");
        assert_eq!(mac_of(Wwpn(0x5000_0972_0800_0001)).to_string(), "02:72:08:00:00:01");
        // The address must not be a group address.
        assert_eq!(mac_of(Wwpn(0x2000_0154_0000_0001)).to_string(), "02:54:00:00:00:01");
    }

    #[test]
    fn vlans_are_numbers_or_words() {
        assert_eq!(parse_vlan("auto"), Ok(Vlan::Discover));
        assert_eq!(parse_vlan("none"), Ok(Vlan::Untagged));
        assert_eq!(parse_vlan("152"), Ok(Vlan::Tagged(152)));
        for wrong in ["0", "4095", "x"] {
            assert!(parse_vlan(wrong).is_err());
        }
    }
}
