//! Paths of the command line: [`PathSpec`].

use crate::load::nbd::NbdLoadConfig;
use sanloom_console::endpoint::{PortName, parse_iscsi_name, parse_vlan};
use sanloom_live::initiator::Vlan;
use sanloom_live::runtime::plan::mac_of;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use std::fmt;
use std::net::SocketAddr;

/// Forms of a path on the command line.
pub(super) const FORMS: &str =
    "[NAME=]ADDRESS:PORT/TARGET[/LUN] | [NAME=]fcoe:WWPN/LUN[,KEY=VALUE]@PORT | [NAME=]nbd+unix:///EXPORT?socket=PATH";

/// A path with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PathSpec {
    pub(super) name: String,
    pub(super) at: At,
    /// Sessions, if they are not those of the command line.
    pub(super) sessions: Option<u32>,
    /// Further portals of an iSCSI disk; sessions use all of them in turn.
    pub(super) more: Vec<SocketAddr>,
}

/// Address of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum At {
    /// A logical unit of an iSCSI target.
    Iscsi { portal: SocketAddr, target: String, lun: u16 },
    /// A logical unit of a target port of a fabric.
    Fcoe(FcoeSpec),
    /// An export.
    Nbd(NbdLoadConfig),
}

/// A logical unit of a target port, and the identity of our host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FcoeSpec {
    pub(super) target: Wwpn,
    pub(super) lun: u16,
    pub(super) vlan: Vlan,
    pub(super) wwpn: Option<Wwpn>,
    pub(super) mac: MacAddr,
    pub(super) port: PortName,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Iscsi { portal, target, lun } => write!(f, "{portal}/{target}/{lun}"),
            At::Fcoe(FcoeSpec { target, lun, port, .. }) => write!(f, "fcoe:{target}/{lun}@{port}"),
            At::Nbd(config) => write!(f, "nbd+unix:///{}?socket={}", config.export, config.socket.display()),
        }
    }
}

pub(super) fn parse_path(text: &str) -> Result<PathSpec, String> {
    // An iSCSI address contains no equals sign; the other forms begin with their scheme.
    let is_named = !is_fcoe(text) && !is_nbd(text);
    let (name, rest) = match text.split_once('=').filter(|_| is_named) {
        Some(("", _)) => return Err("the name of the path in front of = is empty".to_owned()),
        Some((name, rest)) => (name, rest),
        None => (text, text),
    };
    let at = match rest {
        _ if is_fcoe(rest) => At::Fcoe(parse_fcoe(rest)?),
        _ if is_nbd(rest) => At::Nbd(parse_nbd(rest)?),
        _ => parse_iscsi(rest)?,
    };
    Ok(PathSpec { name: name.to_owned(), at, sessions: None, more: Vec::new() })
}

fn is_fcoe(text: &str) -> bool {
    text.starts_with("fcoe:")
}

fn is_nbd(text: &str) -> bool {
    text.starts_with("nbd:") || text.starts_with("nbd+")
}

fn parse_iscsi(text: &str) -> Result<At, String> {
    let wanted =
        "write it as 127.0.0.1:3260/iqn.2026-11.net.example:disk/0, with NAME= in front if you want to name it";
    let mut parts = text.splitn(3, '/');
    let (portal, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let lun = parts.next().map_or(Ok(0), str::parse).map_err(|_| wanted)?;
    let portal = portal.parse().map_err(|_| wanted)?;
    Ok(At::Iscsi { portal, target: parse_iscsi_name(target)?, lun })
}

fn parse_fcoe(text: &str) -> Result<FcoeSpec, String> {
    let wanted = "write it as fcoe:50:00:00:00:00:00:00:01/0@eth1, with ,vlan= ,wwpn= ,mac= in front of @ if necessary";
    let (who, port) = text.trim_start_matches("fcoe:").split_once('@').ok_or(wanted)?;
    let port = PortName::parse(port)?;
    let mut words = who.split(',');
    let (target, lun) = words.next().and_then(|unit| unit.split_once('/')).ok_or(wanted)?;
    let (target, lun) = (target.parse().map_err(|_| wanted)?, lun.parse().map_err(|_| wanted)?);
    let (mut vlan, mut wwpn, mut mac) = (Vlan::Untagged, None, None);
    for word in words {
        let (key, value) = word.split_once('=').ok_or(wanted)?;
        let wrong = |_| format!("`{value}` is not a valid {key}");
        match key {
            "vlan" => vlan = parse_vlan(value)?,
            "wwpn" => wwpn = Some(value.parse::<Wwpn>().map_err(|error| wrong(error.to_string()))?),
            "mac" => mac = Some(value.parse::<MacAddr>().map_err(|error| wrong(error.to_string()))?),
            _ => return Err(format!("`{key}` is unknown; use vlan, wwpn or mac")),
        }
    }
    let mac = mac.or_else(|| wwpn.map(mac_of)).or_else(|| port.mac());
    let mac = mac.ok_or("the port has no Ethernet address of its own; add ,wwpn=20:00:… or ,mac=… in front of @")?;
    Ok(FcoeSpec { target, lun, vlan, wwpn, mac, port })
}

fn parse_nbd(text: &str) -> Result<NbdLoadConfig, String> {
    let wanted = "write it as nbd+unix:///EXPORT?socket=PATH";
    let (export, socket) = text
        .strip_prefix("nbd+unix:///")
        .and_then(|rest| rest.split_once("?socket="))
        .filter(|(_, socket)| !socket.is_empty())
        .ok_or(wanted)?;
    let (export, socket) = (unescaped(export).ok_or(wanted)?, unescaped(socket).ok_or(wanted)?);
    Ok(NbdLoadConfig { socket: socket.into(), export })
}

/// Decodes percent-encoding (RFC 3986, clause 2.1).
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_name_an_address_a_target_and_a_lun() {
        let path_spec = parse_path("near=[::1]:3260/iqn.2026-11.net.example:disk/3").unwrap();
        assert_eq!((path_spec.name.as_str(), path_spec.at.to_string().ends_with(":disk/3")), ("near", true));
        let text = "127.0.0.1:3260/iqn.2026-11.net.example:disk";
        let path_spec = parse_path(text).unwrap();
        assert_eq!((path_spec.name.as_str(), path_spec.at.to_string()), (text, format!("{text}/0")));
        for wrong in [
            "",
            "=127.0.0.1:1/iqn.2026-11.net.example:disk",
            "127.0.0.1/x",
            "a=b",
            "127.0.0.1:1/iqn.2026-11.net.example:disk/x",
        ] {
            assert!(parse_path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_over_fcoe_identifies_our_host() {
        let text = "fcoe:50:00:00:00:00:00:00:01/2,vlan=152,wwpn=20:00:52:54:00:00:00:01@dgram:/a,/b";
        let path_spec = parse_path(text).unwrap();
        assert_eq!(path_spec.name, text);
        let At::Fcoe(fcoe) = path_spec.at else { panic!("{path_spec:?}") };
        assert_eq!((fcoe.lun, fcoe.vlan, fcoe.mac.to_string()), (2, Vlan::Tagged(152), "52:54:00:00:00:01".to_owned()));
        assert_eq!(fcoe.port, PortName::Datagram("/a".into(), "/b".into()));
        let named = parse_path("far=fcoe:50:00:00:00:00:00:00:01/0,mac=02:00:00:00:00:07@stream:/s").unwrap();
        assert_eq!(named.name, "far");
        assert_eq!(named.at.to_string(), "fcoe:50:00:00:00:00:00:00:01/0@stream:/s");
        for wrong in [
            "fcoe:50:00:00:00:00:00:00:01/0@dgram:/a,/b",
            "fcoe:50:00:00:00:00:00:00:01/0",
            "fcoe:x/0@eth0",
            "fcoe:50:00:00:00:00:00:00:01@eth0",
            "fcoe:50:00:00:00:00:00:00:01/0,mtu=9@eth0",
            "fcoe:50:00:00:00:00:00:00:01/0,mac=x@eth0",
        ] {
            assert!(parse_path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_nbd_address_may_have_escapes() {
        let path_spec = parse_path("nbd+unix:///iqn%3Adisk-lun-0?socket=/tmp/a%20b.sock").unwrap();
        let config = NbdLoadConfig { socket: "/tmp/a b.sock".into(), export: "iqn:disk-lun-0".to_owned() };
        assert_eq!(path_spec.at, At::Nbd(config));
        assert_eq!(parse_path("disk=nbd+unix:///?socket=/s").unwrap().name, "disk");
        for wrong in [
            "nbd://host/x",
            "nbd+unix:///x",
            "nbd+unix:///x?socket=",
            "nbd+unix:///%4?socket=/s",
            "nbd+unix:///%+4?socket=/s",
        ] {
            assert!(parse_path(wrong).is_err(), "{wrong}");
        }
    }
}
