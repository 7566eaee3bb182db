//! `sanloom initiator`: a Fibre Channel or iSCSI host in user space, whose disks programs use through NBD.

use super::iscsi_initiator;
use super::up::{log_to_stderr, say_ready};
use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::interrupt;
use sanloom_core::config::{Carrier, Ethernet, Lab, Node};
use sanloom_live::capture::Place;
use sanloom_live::control::Control;
use sanloom_live::initiator::{Initiator, InitiatorConfig, Vlan};
use sanloom_live::offload::{Checksum, Offloads, Placement};
use sanloom_live::ports::{Datagram, Driver, EthernetPort, Packet, PortError, Stream, Tap};
use sanloom_live::runtime::plan::{Places, mac_of};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::{Wwnn, Wwpn};
use std::fmt;
use std::path::PathBuf;

/// Options of `sanloom initiator`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  sanloom initiator examples/fcoe-lab.toml --host server1 --nbd /tmp/server1.sock\n  \
                        sanloom initiator --port eth1 --vlan auto --nbd /run/san.sock\n  \
                        sanloom initiator --iscsi 127.0.0.1:3260/iqn.2026-11.example.sanloom:ram --nbd /run/san.sock\n  \
                        nbdinfo --list 'nbd+unix:///?socket=/tmp/server1.sock'"
)]
pub struct Args {
    /// Lab file with the host to be; without it, say --port
    #[arg(value_name = "LAB")]
    lab: Option<PathBuf>,
    /// Host of the lab to be
    #[arg(long, value_name = "NAME", requires = "lab")]
    host: Option<String>,
    /// Which port of the host, from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "host")]
    hba: u16,
    /// Ethernet port: `eth1` (any interface), `tap:NAME`, `dgram:OWN,PEER` or `stream:PATH` (unix sockets), `fd:N`
    #[arg(long, value_name = "PORT", value_parser = PortName::parse)]
    port: Option<PortName>,
    /// Socket of the NBD server
    #[arg(long, value_name = "SOCKET")]
    nbd: PathBuf,
    /// Ethernet address [default: the interface's own, or from the host's port name]
    #[arg(long, value_name = "MAC")]
    mac: Option<MacAddr>,
    /// Port name [default: 20:00 and the Ethernet address]
    #[arg(long, value_name = "WWPN")]
    wwpn: Option<Wwpn>,
    /// Node name [default: 10:00 and the Ethernet address]
    #[arg(long, value_name = "WWNN")]
    wwnn: Option<Wwnn>,
    /// Be a station of a segment without a switch (VN2VN)
    #[arg(long)]
    vn2vn: bool,
    /// Wait until DCBX has agreed with the other end that no frame of FCoE is lost [default: as the lab says]
    #[arg(long)]
    dcbx: bool,
    /// Wait until fcoemon, which speaks DCBX for all VLANs of an interface, says through the control socket that it has agreed
    #[arg(long, requires = "control", conflicts_with = "dcbx")]
    dcbx_of_fcoemon: bool,
    /// Tell who asks that the VN2VN segment is in the VLAN of --vlan
    #[arg(long, requires = "vn2vn")]
    vlan_responder: bool,
    /// Further, virtual port (NPIV): a port name, and a node name if it has one of its own; may be repeated
    #[arg(long, value_name = "WWPN[@WWNN]", value_parser = parse_virtual_port, conflicts_with = "vn2vn")]
    virtual_port: Vec<(Wwpn, Option<Wwnn>)>,
    /// VLAN of FCoE: a number, `none`, or `auto` to ask the fabric [default: none, or as the lab says]
    #[arg(long, value_name = "VLAN", value_parser = parse_vlan)]
    vlan: Option<Vlan>,
    #[command(flatten)]
    over_tcp: iscsi_initiator::OverTcp,
    /// What fcoeadm and others call it [default: the host of the lab, or the port]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Socket for fcoeadm and others [default: none]
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// End, as with SIGTERM, when this process ends, which has started us
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
    /// Which events are logged on standard error, for example info, debug or sanloom_live=debug
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// Log one JSON object in each line
    #[arg(long)]
    log_json: bool,
}

/// Offloads of document 002, in software.
#[derive(clap::Args, Debug)]
struct OffloadArgs {
    /// How CRCs are computed
    #[arg(long, value_name = "HOW", value_parser = ["simd", "table"], default_value = "simd")]
    crc: String,
    /// Where read data go: to their place at once (`unlimited`), so in 512 contexts for reads from 4 KiB on (`document`), or through
    /// a buffer (`off`)
    #[arg(long, value_name = "HOW", value_parser = ["unlimited", "document", "off"], default_value = "unlimited")]
    placement: String,
    /// Make each frame of data with a header of its own, not from one prototype
    #[arg(long)]
    no_segmentation: bool,
    /// Threads that check received frames, chosen by exchange [default: none]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=64))]
    receive_threads: u8,
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
            threads: self.receive_threads,
        }
    }
}

/// An Ethernet port of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortName {
    /// Any interface.
    Interface(String),
    /// A tap interface.
    Tap(String),
    /// Unix datagram sockets: ours and the other end's.
    Datagram(PathBuf, PathBuf),
    /// A unix stream socket to connect to.
    Stream(PathBuf),
    /// A datagram socket that the parent process opened.
    Descriptor(i32),
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortName::Interface(name) => f.write_str(name),
            PortName::Tap(name) => write!(f, "tap:{name}"),
            PortName::Datagram(own, peer) => write!(f, "dgram:{},{}", own.display(), peer.display()),
            PortName::Stream(path) => write!(f, "stream:{}", path.display()),
            PortName::Descriptor(number) => write!(f, "fd:{number}"),
        }
    }
}

impl PortName {
    /// From the text of an argument.
    pub(super) fn parse(text: &str) -> Result<PortName, String> {
        Ok(match text.split_once(':') {
            None => PortName::Interface(text.to_owned()),
            Some(("tap", name)) => PortName::Tap(name.to_owned()),
            Some(("dgram", paths)) => {
                let (own, peer) = paths.split_once(',').ok_or("write it as dgram:OWN,PEER with two paths")?;
                PortName::Datagram(own.into(), peer.into())
            }
            Some(("stream", path)) => PortName::Stream(path.into()),
            Some(("fd", number)) => {
                PortName::Descriptor(number.parse().map_err(|_| format!("`{number}` is no number of a descriptor"))?)
            }
            Some((kind, _)) => {
                return Err(format!(
                    "no port is called `{kind}:`; there are tap:, dgram:, stream:, fd: and interfaces"
                ));
            }
        })
    }

    pub(super) fn open(&self) -> Result<EthernetPort, PortError> {
        let (name, driver) = match self {
            PortName::Interface(name) => (name.clone(), Driver::Packet(Packet::open(name)?)),
            PortName::Tap(name) => (name.clone(), Driver::Tap(Tap::open(name)?)),
            PortName::Datagram(own, peer) => (own.display().to_string(), Driver::Datagram(Datagram::bind(own, peer)?)),
            PortName::Stream(path) => (path.display().to_string(), Driver::Stream(Stream::connect(path))),
            PortName::Descriptor(number) => (format!("fd:{number}"), Driver::Datagram(Datagram::inherit(*number)?)),
        };
        Ok(EthernetPort::new(&name, driver))
    }

    /// The address that the port has without us.
    pub(super) fn mac(&self) -> Option<MacAddr> {
        let (PortName::Interface(name) | PortName::Tap(name)) = self else { return None };
        std::fs::read_to_string(format!("/sys/class/net/{name}/address")).ok()?.trim().parse().ok()
    }
}

pub(super) fn parse_vlan(text: &str) -> Result<Vlan, String> {
    match text {
        "none" => Ok(Vlan::Untagged),
        "auto" => Ok(Vlan::Discover),
        _ => match text.parse() {
            Ok(vlan @ 1..=4094) => Ok(Vlan::Tagged(vlan)),
            _ => Err("write a number from 1 to 4094, `none` or `auto`".to_owned()),
        },
    }
}

fn parse_virtual_port(text: &str) -> Result<(Wwpn, Option<Wwnn>), String> {
    let (port, node) = text.split_once('@').map_or((text, None), |(port, node)| (port, Some(node)));
    let wrong = |name: &str| format!("`{name}` is no name; write eight bytes as 25:00:00:00:00:00:01:01");
    let node = node.map(|node| node.parse().map_err(|_| wrong(node))).transpose()?;
    Ok((port.parse().map_err(|_| wrong(port))?, node))
}

/// Runs an initiator.
///
/// # Errors
/// When the lab is wrong, or the system does not let us open the port or the socket.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(target) = &args.over_tcp.iscsi {
        log_to_stderr(&args.log, args.log_json)?;
        return iscsi_initiator::run(&args.over_tcp, target.clone(), &args.nbd, args.ready_fd);
    }
    if args.over_tcp.chap.is_given() {
        return Err(Failure::usage("CHAP is for hosts over TCP: say --iscsi too, or leave --chap-name out"));
    }
    let from_lab = args.lab.as_ref().map(|path| host_of(path.clone(), args)).transpose()?;
    let (from_lab, port_of_lab) = from_lab.unzip();
    let port = match (&args.port, port_of_lab) {
        (Some(port), _) => port.clone(),
        (None, Some(port)) => port?,
        (None, None) => return Err(Failure::usage("say --port, a lab and --host, or --iscsi")),
    };
    let mac = args.mac.or(from_lab.as_ref().map(|host| host.mac)).or_else(|| port.mac());
    let mac =
        mac.ok_or_else(|| Failure::usage("the port has no Ethernet address of its own; give it one with --mac"))?;
    let mut config = InitiatorConfig::new(mac, args.nbd.clone());
    config.name = args.name.clone().or(from_lab.as_ref().map(|host| host.name.clone()));
    let adapter = &mut config.adapter;
    if let Some(host) = &from_lab {
        (adapter.wwpn, adapter.wwnn, adapter.vlan) = (host.wwpn, host.wwnn, host.vlan);
        config.symbolic_name = host.name.clone();
    }
    adapter.wwpn = args.wwpn.unwrap_or(adapter.wwpn);
    adapter.wwnn = args.wwnn.unwrap_or(adapter.wwnn);
    adapter.vlan = args.vlan.unwrap_or(adapter.vlan);
    adapter.dcbx = args.dcbx || from_lab.as_ref().is_some_and(|host| host.dcbx);
    adapter.waits_for_permission = args.dcbx_of_fcoemon;
    adapter.vlan_responder = args.vlan_responder;
    adapter.vn2vn = args.vn2vn;
    if adapter.vn2vn && adapter.vlan == Vlan::Discover {
        return Err(Failure::usage("no forwarder names the VLAN of a VN2VN segment; write its number behind --vlan"));
    }
    adapter.offloads = args.offloads.offloads();
    let node = adapter.wwnn;
    config.virtual_ports = args.virtual_port.iter().map(|(port, own)| (*port, own.unwrap_or(node))).collect();
    log_to_stderr(&args.log, args.log_json)?;
    if let Some(parent) = args.parent {
        end_with(parent)?;
    }
    let mut initiator =
        Initiator::new(config, port.open().map_err(Failure::environment)?).map_err(Failure::environment)?;
    if let Some(file) = &args.capture {
        let now = initiator.clock.now();
        let name = initiator.adapter.port.name.clone();
        initiator.adapter.captures.start(now, Place::Ethernet(0), &name, file).map_err(|error| {
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
            unannounced = args.ready_fd.map_or(Ok(()), say_ready);
        }
        let stop = control.as_ref().is_some_and(|control| !initiator.answer(control));
        unannounced.is_ok() && !stop && !interrupt::requested()
    });
    initiator.shut_down();
    tracing::info!("down");
    unannounced?;
    outcome.map_err(|error| Failure::environment(format_args!("cannot wait for the port: {error}")))
}

/// We end when our parent does, or have been told too late. Its death signal would not do: it comes for each thread of the parent that
/// dies with us as its child, and the second one ends us before we have logged out.
fn end_with(parent: u32) -> Result<(), Failure> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
    let gone = || Failure::environment(format_args!("process {parent}, which has started us, is gone"));
    let pid = Pid::from_raw(parent.cast_signed()).ok_or_else(gone)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())?;
    // Before, the number may have become that of another process.
    if getppid() != Some(pid) {
        return Err(gone());
    }
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) == Err(Errno::INTR) {}
        interrupt::request();
    });
    Ok(())
}

/// What a lab says about a host.
struct HostOfLab {
    name: String,
    mac: MacAddr,
    wwpn: Wwpn,
    wwnn: Wwnn,
    vlan: Vlan,
    dcbx: bool,
}

/// What the lab says about the host, and which port it has, if the lab says so.
fn host_of(path: PathBuf, args: &Args) -> Result<(HostOfLab, Result<PortName, Failure>), Failure> {
    let lab = input::load_running(&LabFile { path }, &[])?.lab;
    let names = || lab.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(name) = &args.host else {
        return Err(Failure::usage(format_args!("say which host with --host: {}", names())));
    };
    let Some(index) = lab.hosts.iter().position(|host| host.name == *name) else {
        return Err(Failure::usage(format_args!("the lab has no host `{name}`; it has {}", names())));
    };
    let host = &lab.hosts[index];
    let Some(hba) = host.hbas.get(usize::from(args.hba)) else {
        return Err(Failure::usage(format_args!("the host `{name}` has {} ports, counted from 0", host.hbas.len())));
    };
    let node = Node::Host(index as u16);
    let link = lab.links.iter().position(|link| link.ends.iter().any(|end| end.node == node && end.port == args.hba));
    let ethernet = link.and_then(|link| Some((link, lab.live.ethernet.get(&link)?)));
    let vlan = ethernet.and_then(|(_, ethernet)| ethernet.vlan).map_or(Vlan::Untagged, Vlan::Tagged);
    let dcbx = ethernet.is_some_and(|(_, ethernet)| ethernet.dcbx);
    let port = match ethernet {
        Some((link, ethernet)) => port_of(&lab, &lab.links[link].name, ethernet),
        None => Err(Failure::usage(format_args!(
            "no Ethernet link of the lab leads to this port of `{name}`; give the link `ethernet`, or say --port"
        ))),
    };
    let (wwpn, wwnn) = (hba.wwpn, host.wwnn);
    Ok((HostOfLab { name: name.clone(), mac: mac_of(wwpn), wwpn, wwnn, vlan, dcbx }, port))
}

/// The host's end of a link, whose other end `sanloom up` opens.
fn port_of(lab: &Lab, link: &str, ethernet: &Ethernet) -> Result<PortName, Failure> {
    let (switch, host) = Places::of(lab).sockets(link, ethernet, false);
    match (ethernet.carrier, &ethernet.address, &ethernet.peer) {
        (Carrier::Datagram, ..) => Ok(PortName::Datagram(host, switch)),
        (Carrier::Stream, ..) => Ok(PortName::Stream(switch)),
        // Whoever does not hold the tap hears it as an interface.
        (Carrier::Tap, Some(name), _) | (Carrier::Packet, _, Some(name)) => Ok(PortName::Interface(name.clone())),
        (Carrier::Packet | Carrier::Tap | Carrier::Descriptor, ..) => Err(Failure::usage(format_args!(
            "the lab does not say which interface is the host's end of the link `{link}`; say --port"
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
        // A group address is nobody's.
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
