//! Gateways of a lab: the keys `gateway` of storage systems, and the hosts with virtual N_Ports
//! that are added for them.

use super::back_ends::{host_ports, one_port};
use super::nodes::Names;
use super::workloads::CONFLICT;
use super::wwns::host_name;
use super::{Where, iscsi, ports};
use crate::check::MISSING_KEY;
use crate::diagnostic::Sink;
use crate::document::Budget;
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_fc::config::{
    AdapterProcessor, Gateway, GatewayCost, GatewayHost, GatewayMode, GatewayPorts, Hba, Host, HostProcessor,
    IscsiHost, Live, Lun, MediumKind, Node, Picos, TimeDistribution, VirtualMachine,
};
use sanloom_fc::san::Lab;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Name of the host with the virtual N_Port of `host` at `gateway`.
fn port_name(gateway: &str, host: &str) -> String {
    format!("{gateway}-{host}")
}

/// Gives gateways the LUNs of the storage behind them, and adds a host for each virtual N_Port.
/// Mistakes are reported by [`build`], except names that are taken.
pub(super) fn add_nodes<'d>(
    lab: &mut Lab,
    names: &Names,
    (hosts, storage): (&mut Vec<Where<'d>>, &[Where<'d>]),
    budget: &mut Budget,
    sink: &mut Sink,
) {
    let mut added = BTreeMap::new();
    for (number, place) in storage.iter().enumerate().filter(|(_, place)| place.element.has_table("gateway")) {
        let element = &*place.element;
        if let Some(luns) = luns_behind(element, lab, names) {
            lab.storage[number].luns = luns;
        }
        let on = element.text("gateway.host").and_then(|text| node_of(text, names));
        let Some(Node::Host(on)) = on.filter(|_| mode(element) == GatewayMode::Transparent) else { continue };
        if lab.hosts[usize::from(on)].virtual_machine.is_some() {
            continue;
        }
        let gateway = lab.storage[number].name.clone();
        for (name, origin) in iscsi::expanded(element, "gateway.hosts", budget, sink) {
            let full = lab.hosts.len() + lab.storage.len() + lab.switches.len() >= sanloom_fc::san::MAX_NODES;
            let is_known = matches!(names.get(&name), Some(Node::Host(_)));
            let own = port_name(&gateway, &name);
            if full || !is_known || added.get(&own) == Some(&number) {
                continue;
            }
            if names.get(&own).is_some() || added.insert(own.clone(), number).is_some() {
                let (own, name) = (value::cut(&own), value::cut(&name));
                let reason = format!("the virtual N_Port of `{name}` would be named `{own}`, but that name is taken");
                sink.error(CONFLICT, &origin, reason, format!("rename `{own}`, or the gateway"));
                continue;
            }
            let on_same = |host: &&Host| host.virtual_machine.is_some_and(|machine| machine.on == on);
            let count = lab.hosts.iter().filter(on_same).count() as u16;
            let carrier = &lab.hosts[usize::from(on)];
            // A gateway with all ports of its host has a virtual N_Port at each of them, and one
            // with a named port has all virtual N_Ports there.
            let (first, ports) = match named_port(element) {
                Some(port) => (port, 1),
                None => (count, carrier.hbas.len()),
            };
            let port = virtual_port(carrier, own, lab.hosts.len(), (on, first), ports);
            lab.hosts.push(port);
            // Problems of the host are those of its gateway.
            let element = place.element.clone();
            hosts.push(Where { exact: vec![("on", element.origin("gateway.host"))], element });
        }
    }
}

/// Returns a host with `ports` virtual N_Ports at `carrier`.
fn virtual_port(carrier: &Host, name: String, index: usize, (on, number): (u16, u16), ports: usize) -> Host {
    let receive_size_bytes = carrier.hbas.first().map_or(2048, |hba| hba.receive_size_bytes);
    let hba = |port: u64| {
        let wwpn = Wwpn(host_name(0x10, index, port));
        Hba { wwpn, receive_size_bytes, data_frames_in_flight: None }
    };
    Host {
        wwnn: Wwnn(host_name(0x20, index, 0)),
        hbas: (1..=ports.max(1) as u64).map(hba).collect(),
        processor: HostProcessor { hba: AdapterProcessor::default(), ..carrier.processor },
        bus: None,
        virtual_machine: Some(VirtualMachine {
            on,
            number,
            start: None,
            boot: TimeDistribution::Constant(Picos::ZERO),
            script: Default::default(),
        }),
        iscsi: IscsiHost::of(&name),
        name,
        ..carrier.clone()
    }
}

fn mode(element: &Element<'_>) -> GatewayMode {
    element.choice("gateway.mode", schema::GATEWAY_MODES).unwrap_or_default()
}

/// Returns the port of its host that a gateway names. A wrong one is reported by [`build`].
fn named_port(element: &Element<'_>) -> Option<u16> {
    let (_, port) = element.text("gateway.host")?.split_once(':')?;
    Some(port.parse().unwrap_or(0))
}

/// Returns the node of a name that may have a port number.
fn node_of(text: &str, names: &Names) -> Option<Node> {
    names.get(text.split_once(':').map_or(text, |(name, _)| name))
}

fn luns_behind(element: &Element<'_>, lab: &Lab, names: &Names) -> Option<Vec<Lun>> {
    let Some(Node::Storage(behind)) = node_of(element.text("gateway.target_port")?, names) else { return None };
    Some(lab.storage[usize::from(behind)].luns.clone())
}

/// Returns all gateways, by index of their storage system.
pub(super) fn build(
    lab: &Lab,
    live: &Live,
    names: &Names,
    storage: &[Where<'_>],
    budget: &mut Budget,
    sink: &mut Sink,
) -> BTreeMap<u16, Gateway> {
    let given = (0..).zip(storage).filter(|(_, place)| place.element.has_table("gateway"));
    given.map(|(number, place)| (number, gateway(number, &place.element, (lab, live), names, budget, sink))).collect()
}

fn gateway(
    number: u16,
    element: &Element<'_>,
    (lab, live): (&Lab, &Live),
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Gateway {
    let time = |key| element.time(key).unwrap_or(Picos::ZERO);
    let name = value::cut(&element.name);
    let mut conflict = |key: &str, reason: String, remedy: &str| {
        sink.error(CONFLICT, &element.origin(key), reason, remedy);
    };
    if !live.iscsi.contains_key(&number) && !lab.infiniband.targets.contains_key(&number) {
        let remedy = "add iscsi = { portals = \"192.0.2.1:3260\" } or srp = {}, or remove `gateway`";
        conflict("gateway", format!("no host reaches the gateway `{name}` over iSCSI or SRP"), remedy);
    }
    let has_volumes = live.medium(number).kind == MediumKind::Volumes;
    let is_through = element.is_given("gateway.host") || element.is_given("gateway.target_port");
    if has_volumes && is_through {
        let key = if element.is_given("gateway.host") { "gateway.host" } else { "gateway.target_port" };
        let reason = format!("the LUNs of `{name}` are virtual disks, whose back ends name the storage behind");
        conflict(key, reason, "remove it, or remove `medium`");
    }
    if !has_volumes && !is_through {
        let reason = format!("nothing is behind the gateway `{name}`");
        conflict("gateway", reason, "add `host` and `target_port`, or medium = \"volumes\" and back ends");
    }
    for key in ["luns", "lun_size"].into_iter().filter(|key| is_through && element.is_given(key)) {
        let reason = format!("the LUNs of `{name}` are those of `target_port`");
        conflict(key, reason, "leave it out");
    }
    let mode = mode(element);
    let lists_hosts = element.is_given("gateway.hosts");
    if mode == GatewayMode::Transparent && (has_volumes || !is_through) {
        let reason = "a virtual disk has no LUN of its own in the fabric".to_owned();
        conflict(
            "gateway.mode",
            reason,
            "use mode = \"proxy\", or name `host` and `target_port` of LUNs that appear as they are",
        );
    } else if mode == GatewayMode::Proxy && lists_hosts {
        let reason = "in proxy mode, all hosts share the N_Port of the gateway".to_owned();
        conflict("gateway.hosts", reason, "remove it, or use mode = \"transparent\"");
    }
    if mode == GatewayMode::Transparent && !lists_hosts {
        let remedy = "add hosts = \"server{1..4}\"";
        sink.error(MISSING_KEY, &element.origin("gateway.mode"), "it needs `hosts` too", remedy);
    }
    for [given, missing, example] in [["host", "target_port", "array"], ["target_port", "host", "router"]] {
        let [own, other] = [given, missing].map(|key| format!("gateway.{key}"));
        if element.is_given(&own) && !element.is_given(&other) {
            let help = format!("add it, for example {missing} = \"{example}\"");
            sink.error(MISSING_KEY, &element.origin(&own), format!("it needs `{missing}` too"), help);
        }
    }
    Gateway {
        grain: element.choice("gateway.forwarding", schema::GRAINS).unwrap_or_default(),
        mode,
        through: through(number, element, (lab, live), names, sink),
        hosts: virtual_hosts(number, element, lab, names, budget, sink),
        path_timeout: path_timeout(element, is_through, sink),
        cost: GatewayCost {
            per_command: time("gateway.per_command"),
            per_kib: time("gateway.per_kib"),
            per_pdu: time("gateway.per_pdu"),
            per_kib_forwarded: time("gateway.per_kib_forwarded"),
        },
    }
}

fn path_timeout(element: &Element<'_>, is_through: bool, sink: &mut Sink) -> Picos {
    let key = "gateway.path_timeout";
    let timeout = element.time(key).unwrap_or(Gateway::PATH_TIMEOUT);
    if timeout > Picos::from_secs(600) {
        sink.error(
            super::BAD_PERIOD,
            &element.origin(key),
            "the time must be 0 s to 600 s",
            "write path_timeout = \"30s\"",
        );
    }
    if element.is_given(key) && !is_through {
        let reason = "requests of virtual disks wait `retry_for` of their back end for a path";
        sink.error(CONFLICT, &element.origin(key), reason, "set `retry_for` of the back ends, or name `target_port`");
    }
    timeout
}

/// Returns the ports between the gateway and the storage behind it: one of each node if its port is
/// named, and otherwise all.
fn through(
    number: u16,
    element: &Element<'_>,
    (lab, live): (&Lab, &Live),
    names: &Names,
    sink: &mut Sink,
) -> Option<GatewayPorts> {
    let host = element.text("gateway.host");
    let initiators = host.and_then(|text| host_ports(text, lab, live, names, &element.origin("gateway.host"), sink));
    let text = element.text("gateway.target_port")?;
    let origin = element.origin("gateway.target_port");
    let accept = |node| matches!(node, Node::Storage(_));
    let end = ports::end(text, names, "storage system", accept, &origin, sink)?;
    let Node::Storage(behind) = end.node else { return None };
    let storage = &lab.storage[usize::from(behind)];
    let is_virtual = live.medium(behind).kind == MediumKind::Volumes;
    if is_virtual || behind == number {
        let reason = match is_virtual {
            true => format!("the LUNs of `{}` are virtual disks themselves", value::cut(&storage.name)),
            false => "a gateway is not behind itself".to_owned(),
        };
        sink.error(CONFLICT, &origin, reason, "name a storage system with LUNs of its own");
        return None;
    }
    let targets = match end.port {
        None => storage.ports.iter().map(|port| port.wwpn).collect(),
        port => vec![storage.ports[usize::from(one_port(text, port, storage.ports.len(), &origin, sink)?)].wwpn],
    };
    Some(GatewayPorts { initiators: initiators?, targets })
}

fn virtual_hosts(
    number: u16,
    element: &Element<'_>,
    lab: &Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<GatewayHost> {
    let gateway = &lab.storage[usize::from(number)].name;
    let mut hosts = Vec::new();
    for (name, origin) in iscsi::expanded(element, "gateway.hosts", budget, sink) {
        let Some(Node::Host(host)) = names.find(&name, "host", |node| matches!(node, Node::Host(_)), &origin, sink)
        else {
            continue;
        };
        if let Some(Node::Host(port)) = names.get(&port_name(gateway, &name)) {
            hosts.push(GatewayHost { host, port });
        }
    }
    hosts
}
