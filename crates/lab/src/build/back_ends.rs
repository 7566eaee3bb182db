//! Back ends of a lab: LUNs of iSCSI targets, and LUNs in a Fibre Channel fabric that are reached
//! through a host port of the lab.

use super::iscsi::{address, check_name, expanded};
use super::nodes::Names;
use super::ports::{self, BAD_PORT};
use super::volumes::pool_of;
use super::workloads::{BAD_LUN, CONFLICT};
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_fc::config::{
    BackEnd, BackEndTarget, Chap, FcpBackEnd, GatewayPorts, IscsiBackEnd, Live, MediumKind, Node, Picos, Pool,
};
use sanloom_fc::san::Lab;
use sanloom_wire::Wwpn;

/// Code of a host port that `sanloom up` cannot provide.
pub(crate) const HOST_ELSEWHERE: &str = "host-elsewhere";

/// Keys of an iSCSI target, and keys of a Fibre Channel target port.
const ISCSI_KEYS: [&str; 9] = [
    "target",
    "portals",
    "initiator",
    "chap_name",
    "chap_secret_file",
    "target_chap_name",
    "target_chap_secret_file",
    "header_digest",
    "data_digest",
];
const FCP_KEYS: [&str; 2] = ["host", "target_port"];

/// Returns all back ends. `live` already holds the Ethernet ports and media of the lab.
pub(super) fn build(
    document: &Document,
    lab: &Lab,
    live: &Live,
    names: &Names,
    pools: &[Pool],
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<BackEnd> {
    let mut back_ends: Vec<BackEnd> = Vec::new();
    for element in document.named("back_end", budget, sink) {
        element.require_keys(sink);
        let pool = pool_of(&element, pools, sink);
        let retry_for = retry_for(&element, sink);
        let lun = element.integer("lun").unwrap_or(0);
        let target = if FCP_KEYS.iter().any(|key| element.is_given(key)) {
            fcp(&element, lab, live, names, lun, sink).map(BackEndTarget::Fcp)
        } else {
            iscsi(&element, budget, sink).map(|target| BackEndTarget::Iscsi(Box::new(target)))
        };
        if let (Some(pool), Some(target)) = (pool, target) {
            let new = BackEnd { name: element.name.clone(), pool, lun, retry_for, target };
            check_against(&element, &new, &back_ends, sink);
            back_ends.push(new);
        }
    }
    back_ends
}

/// Checks that no LUN is used by two back ends, and that back ends that share a session have the
/// same settings.
fn check_against(element: &Element<'_>, new: &BackEnd, back_ends: &[BackEnd], sink: &mut Sink) {
    let same = |other: &&BackEnd| match (&other.target, &new.target) {
        (BackEndTarget::Iscsi(a), BackEndTarget::Iscsi(b)) => a.name == b.name && other.lun == new.lun,
        (BackEndTarget::Fcp(a), BackEndTarget::Fcp(b)) => {
            let is_shared = |[_, port]: [Wwpn; 2]| b.paths().any(|[_, other]| port == other);
            a.paths().any(is_shared) && other.lun == new.lun
        }
        _ => false,
    };
    let key = if matches!(new.target, BackEndTarget::Fcp(_)) { "target_port" } else { "target" };
    if let Some(other) = back_ends.iter().find(same) {
        let reason = format!("`{}` is the same LUN of the same target", other.name);
        sink.error(CONFLICT, &element.origin(key), reason, "name each LUN once");
    }
    let BackEndTarget::Iscsi(target) = &new.target else { return };
    let differs = |other: &&BackEnd| {
        let BackEndTarget::Iscsi(is) = &other.target else { return false };
        let settings = |one: &IscsiBackEnd| (one.chap.clone(), one.header_digest, one.data_digest);
        (&is.name, &is.portals, &is.initiator) == (&target.name, &target.portals, &target.initiator)
            && (settings(is), other.retry_for) != (settings(target), new.retry_for)
    };
    if let Some(other) = back_ends.iter().find(differs) {
        let reason = format!("`{}` is at the same target with other values, and both share a session", other.name);
        let help = "give both the same CHAP, digests and retry_for, or different values of `initiator`";
        sink.error(CONFLICT, &element.origin("target"), reason, help);
    }
}

fn retry_for(element: &Element<'_>, sink: &mut Sink) -> Picos {
    let retry_for = element.time("retry_for").unwrap_or(Picos::from_secs(20));
    if retry_for < Picos::SECOND || retry_for > Picos::from_secs(600) {
        let reason = "the time must be 1 s to 600 s";
        sink.error(super::BAD_PERIOD, &element.origin("retry_for"), reason, "write retry_for = \"20s\"");
    }
    retry_for
}

fn iscsi(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> Option<IscsiBackEnd> {
    let text = |key| element.text(key).map(str::to_owned);
    for key in ["target", "portals"].into_iter().filter(|key| !element.is_given(key)) {
        if let Some(key) = element.def.key(key) {
            element.require(key, sink);
        }
    }
    let mut portals = Vec::new();
    for (text, origin) in expanded(element, "portals", budget, sink) {
        portals.extend(address(&text, &origin, sink));
    }
    for key in ["target", "initiator"] {
        if let Some(name) = element.text(key) {
            check_name(name, &element.origin(key), sink);
        }
    }
    let chap = Chap {
        name: text("chap_name"),
        secret_file: text("chap_secret_file"),
        own_name: text("target_chap_name"),
        own_secret_file: text("target_chap_secret_file"),
    };
    for (name, file) in [("chap_name", "chap_secret_file"), ("target_chap_name", "target_chap_secret_file")] {
        let (here, missing) = match (element.is_given(name), element.is_given(file)) {
            (true, false) => (name, file),
            (false, true) => (file, name),
            _ => continue,
        };
        let reason = format!("it needs `{missing}` too");
        sink.error(MISSING_KEY, &element.origin(here), reason, format!("add {missing} = \"…\""));
    }
    if chap.own_name.is_some() && chap.name.is_none() {
        let reason = "a target authenticates itself only if the initiator does too";
        sink.error(CONFLICT, &element.origin("target_chap_name"), reason, "add chap_name and chap_secret_file");
    }
    Some(IscsiBackEnd {
        name: text("target")?,
        portals: Some(portals).filter(|portals| !portals.is_empty())?,
        initiator: text("initiator")?,
        chap,
        header_digest: element.choice("header_digest", schema::DIGESTS).unwrap_or_default(),
        data_digest: element.choice("data_digest", schema::DIGESTS).unwrap_or_default(),
    })
}

fn fcp(element: &Element<'_>, lab: &Lab, live: &Live, names: &Names, lun: u16, sink: &mut Sink) -> Option<FcpBackEnd> {
    for key in ISCSI_KEYS.into_iter().filter(|key| element.is_given(key)) {
        let reason = format!("a LUN behind a target port has no `{key}`, which is a key of iSCSI targets");
        let help = "remove it, or remove `host` and `target_port`";
        sink.error(CONFLICT, &element.origin(key), reason, help);
    }
    for [given, missing, example] in [["host", "target_port", "array"], ["target_port", "host", "gateway"]] {
        if element.is_given(given) && !element.is_given(missing) {
            let help = format!("add it, for example {missing} = \"{example}\"");
            sink.error(MISSING_KEY, &element.origin(given), format!("it needs `{missing}` too"), help);
        }
    }
    let initiators =
        element.text("host").and_then(|text| host_ports(text, lab, live, names, &element.origin("host"), sink));
    let targets = element.text("target_port").and_then(|text| target_ports(text, lab, live, names, lun, element, sink));
    let ports = GatewayPorts { initiators: initiators?, targets: targets? };
    let mut paths = ports.paths_from(&ports.initiators).into_iter();
    let [initiator, target] = paths.next()?;
    Some(FcpBackEnd { initiator, target, more: paths.collect() })
}

/// Returns the host ports with which a gateway logs in: all of the host, unless one is named.
pub(super) fn host_ports(
    text: &str,
    lab: &Lab,
    live: &Live,
    names: &Names,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<Vec<Wwpn>> {
    let ports = match names.get(text) {
        Some(Node::Host(host)) => lab.hosts[usize::from(host)].hbas.len(),
        _ => 1,
    };
    if ports == 1 {
        return host_port(text, lab, live, names, origin, sink).map(|port| vec![port]);
    }
    let port = |port: usize| host_port(&format!("{text}:{port}"), lab, live, names, origin, sink);
    (0..ports).map(port).collect()
}

/// Returns the host port with which the instance logs in. No other part of the lab may use it.
pub(super) fn host_port(
    text: &str,
    lab: &Lab,
    live: &Live,
    names: &Names,
    origin: &Origin,
    sink: &mut Sink,
) -> Option<Wwpn> {
    let accept = |node| matches!(node, Node::Host(_));
    let end = ports::end(text, names, "host", accept, origin, sink)?;
    let Node::Host(number) = end.node else { return None };
    let host = &lab.hosts[usize::from(number)];
    let port = one_port(text, end.port, host.hbas.len(), origin, sink)?;
    let mut refuse = |reason: String, help: &str| {
        sink.error(HOST_ELSEWHERE, origin, reason, help);
        None
    };
    let name = value::cut(&host.name);
    if host.virtual_machine.is_some() {
        let help = "name a host with a link of its own";
        return refuse(format!("`{name}` is a virtual machine, whose ports are those of its hypervisor"), help);
    }
    let wwpn = host.hbas[usize::from(port)].wwpn;
    if live.uplinks.contains_key(&wwpn) {
        return Some(wwpn);
    }
    let here = |link: &&sanloom_fc::config::Link| {
        link.ends.iter().any(|end| (end.node, end.port) == (Node::Host(number), port))
    };
    let link = lab.links.iter().find(here);
    let help = match port {
        0 => "give the host `fcoe`, or a [[link]] to a switch without `ethernet`",
        _ => "add a [[link]] to a switch without `ethernet`",
    };
    match link {
        None => refuse(format!("no link begins at port {port} of `{name}`"), help),
        Some(link) if !link.ends.iter().any(|end| matches!(end.node, Node::Switch(_))) => {
            refuse(format!("the link `{}` does not lead from `{name}` to a switch", link.name), help)
        }
        Some(_) => Some(wwpn),
    }
}

/// Returns a port name that is given directly, or those of a storage system of the lab: all, unless
/// one is named.
fn target_ports(
    text: &str,
    lab: &Lab,
    live: &Live,
    names: &Names,
    lun: u16,
    element: &Element<'_>,
    sink: &mut Sink,
) -> Option<Vec<Wwpn>> {
    if let Ok(name) = text.parse::<Wwpn>() {
        return Some(vec![name]);
    }
    let origin = element.origin("target_port");
    let accept = |node| matches!(node, Node::Storage(_));
    let end = ports::end(text, names, "storage system", accept, &origin, sink)?;
    let Node::Storage(number) = end.node else { return None };
    let storage = &lab.storage[usize::from(number)];
    let ports = match end.port {
        None => storage.ports.iter().map(|port| port.wwpn).collect(),
        port => vec![storage.ports[usize::from(one_port(text, port, storage.ports.len(), &origin, sink)?)].wwpn],
    };
    if live.medium(number).kind == MediumKind::Volumes {
        let reason = format!("the LUNs of `{}` are virtual disks themselves", value::cut(&storage.name));
        sink.error(CONFLICT, &origin, reason, "name a storage system with LUNs of its own");
        return None;
    }
    if usize::from(lun) >= storage.luns.len() {
        let (name, last) = (value::cut(&storage.name), storage.luns.len().saturating_sub(1));
        let reason = format!("there is no LUN {lun}: the LUNs of `{name}` are 0 to {last}");
        sink.error(BAD_LUN, &element.origin("lun"), reason, format!("choose one of them, or set `luns` of `{name}`"));
    }
    Some(ports)
}

/// Returns the number of the named port among `count` ports.
pub(super) fn one_port(text: &str, port: Option<u16>, count: usize, origin: &Origin, sink: &mut Sink) -> Option<u16> {
    match port {
        Some(port) if usize::from(port) < count => Some(port),
        Some(_) => {
            ports::no_such_port(text, count, origin, sink);
            None
        }
        None if count == 1 => Some(0),
        None => {
            let help = format!("name one of them, for example {text}:0");
            sink.error(BAD_PORT, origin, format!("`{}` has several ports", value::cut(text)), help);
            None
        }
    }
}
