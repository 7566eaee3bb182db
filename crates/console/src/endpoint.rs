//! Arguments that name an Ethernet port, a VLAN or an iSCSI node: [`PortName`], [`parse_vlan`],
//! [`parse_iscsi_name`].

use sanloom_live::initiator::Vlan;
use sanloom_live::ports::{Datagram, Driver, EthernetPort, Packet, PortError, Stream, Tap};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::iscsi::name;
use std::fmt;
use std::path::PathBuf;

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
    /// Parses the text of an argument.
    ///
    /// # Errors
    /// The reason, with the valid forms.
    pub fn parse(text: &str) -> Result<PortName, String> {
        Ok(match text.split_once(':') {
            None => PortName::Interface(text.to_owned()),
            Some(("tap", name)) => PortName::Tap(name.to_owned()),
            Some(("dgram", paths)) => {
                let (own, peer) = paths.split_once(',').ok_or("write it as dgram:OWN,PEER with two paths")?;
                PortName::Datagram(own.into(), peer.into())
            }
            Some(("stream", path)) => PortName::Stream(path.into()),
            Some(("fd", number)) => {
                PortName::Descriptor(number.parse().map_err(|_| format!("`{number}` is not a descriptor number"))?)
            }
            Some((kind, _)) => {
                return Err(format!(
                    "no port is called `{kind}:`; there are tap:, dgram:, stream:, fd: and interfaces"
                ));
            }
        })
    }

    /// Opens the port.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn open(&self) -> Result<EthernetPort, PortError> {
        let (name, driver) = match self {
            PortName::Interface(name) => (name.clone(), Driver::Packet(Packet::open(name)?)),
            PortName::Tap(name) => (name.clone(), Driver::Tap(Tap::open(name)?)),
            PortName::Datagram(own, peer) => (own.display().to_string(), Driver::Datagram(Datagram::bind(own, peer)?)),
            PortName::Stream(path) => (path.display().to_string(), Driver::Stream(Stream::connect(path))),
            PortName::Descriptor(number) => (format!("fd:{number}"), Driver::Datagram(Datagram::inherit(*number)?)),
        };
        Ok(EthernetPort::new(&name, driver))
    }

    /// MAC address of the port itself, if it has one.
    pub fn mac(&self) -> Option<MacAddr> {
        let (PortName::Interface(name) | PortName::Tap(name)) = self else { return None };
        std::fs::read_to_string(format!("/sys/class/net/{name}/address")).ok()?.trim().parse().ok()
    }
}

/// Parses a VLAN argument: a number, `none` or `auto`.
///
/// # Errors
/// The valid forms.
pub fn parse_vlan(text: &str) -> Result<Vlan, String> {
    match text {
        "none" => Ok(Vlan::Untagged),
        "auto" => Ok(Vlan::Discover),
        _ => match text.parse() {
            Ok(vlan @ 1..=4094) => Ok(Vlan::Tagged(vlan)),
            _ => Err("write a number from 1 to 4094, `none` or `auto`".to_owned()),
        },
    }
}

/// Parses the name of an iSCSI node.
///
/// # Errors
/// The reason, with an example.
pub fn parse_iscsi_name(text: &str) -> Result<String, String> {
    if name::is_valid(text) {
        return Ok(text.to_owned());
    }
    Err("write an iSCSI name such as iqn.2026-11.net.example:host, in lower case".to_owned())
}
