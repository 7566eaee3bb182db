//! Processors of hosts.

use super::Where;
use crate::diagnostic::{Finding, Origin, Severity, Sink};
use crate::element::Element;
use crate::schema;
use sanloom_fc::config::{
    AdapterProcessor, ChannelCost, DriverCost, EthernetNode, HostProcessor, InfinibandNode, IscsiHba, Node, Picos,
    StackCost,
};
use sanloom_fc::san::{Lab, ProblemKind};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the processor of a host and the costs of I/O on it.
pub(super) fn processor(e: &Element<'_>) -> HostProcessor {
    let default = HostProcessor::default();
    let time = |path: &str| e.time(path).unwrap_or(Picos::ZERO);
    let millionths = |path: &str| (e.number(path).unwrap_or(0.0) * 1e6).round() as u32;
    HostProcessor {
        cores: e.integer("processor.cores").unwrap_or(default.cores),
        affinity: e.choice("processor.affinity", schema::AFFINITIES).unwrap_or(default.affinity),
        lock_share_ppm: millionths("processor.lock_share"),
        coherence_share_ppm: millionths("processor.coherence_share"),
        fc: DriverCost {
            per_command: time("fc_cost.per_command"),
            per_kib_read: time("fc_cost.per_kib_read"),
            per_kib_written: time("fc_cost.per_kib_written"),
        },
        tcp: StackCost {
            per_command: time("tcp_cost.per_command"),
            per_segment_received: time("tcp_cost.per_segment_received"),
            per_segment_sent: time("tcp_cost.per_segment_sent"),
            batch_bytes: e.size("tcp_cost.batch").unwrap_or(0) as u32,
            copy_received: time("tcp_cost.copy_received"),
            copy_sent: time("tcp_cost.copy_sent"),
            checksum: time("tcp_cost.checksum"),
            interrupt: time("tcp_cost.interrupt"),
            interrupt_gap: time("tcp_cost.interrupt_gap"),
            min_interrupt_gap: e.time("tcp_cost.min_interrupt_gap"),
            interrupt_frames: e.integer("tcp_cost.interrupt_frames").unwrap_or(1),
        },
        ipoib: super::ipoib::cost(e),
        srp: ChannelCost { per_command: time("srp_cost.per_command"), per_completion: time("srp_cost.per_completion") },
        hba: AdapterProcessor {
            per_read: time("hba_processor.per_read"),
            per_write: time("hba_processor.per_write"),
            per_kib: time("hba_processor.per_kib"),
        },
        iscsi_hba: e.has_table("iscsi_hba").then(|| IscsiHba {
            per_command: time("iscsi_hba.per_command"),
            per_pdu: time("iscsi_hba.per_pdu"),
            per_kib: time("iscsi_hba.per_kib"),
            driver_per_command: time("iscsi_hba.driver_per_command"),
            driver_per_kib: time("iscsi_hba.driver_per_kib"),
        }),
    }
}

/// Warns about costs that have no effect for any host with this line of the file.
pub(super) fn advise(lab: &Lab, hosts: &[Where<'_>], sink: &mut Sink) {
    let links = Links::of(lab);
    // Reason of each line of costs, as long as no host with this line contradicts it.
    let mut lines: BTreeMap<Origin, Option<(&str, String)>> = BTreeMap::new();
    for (number, (place, host)) in (0..).zip(hosts.iter().zip(&lab.hosts)) {
        let element = &place.element;
        for table in COSTS.into_iter().filter(|table| element.gives_table(table)) {
            let mut keys = element.def.keys.iter().map(|key| key.path).filter(|path| element.is_given(path));
            let is_below = |path: &&str| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
            let Some(first) = keys.find(is_below) else { continue };
            let reason = links.lack(table, number, host.processor.iscsi_hba.is_some());
            let reason = reason.map(|reason| (table, reason.replace("HOST", &host.name)));
            let line = lines.entry(element.origin(first)).or_insert_with(|| reason.clone());
            *line = line.take().filter(|_| reason.is_some());
        }
    }
    for (origin, (table, reason)) in lines.into_iter().filter_map(|(origin, reason)| Some((origin, reason?))) {
        sink.add(Finding {
            severity: Severity::Warning,
            code: ProblemKind::UnusedCost.name(),
            origin,
            reason: format!("`{table}` has no effect, because {reason}"),
            remedy: format!("leave `{table}` out, or correct the links of the host"),
        });
    }
}

/// Costs of one fabric.
const COSTS: [&str; 5] = ["fc_cost", "hba_processor", "tcp_cost", "srp_cost", "ipoib_cost"];

/// Hosts with links of each fabric.
struct Links {
    fibre_channel: BTreeSet<u16>,
    ethernet: BTreeSet<u16>,
    infiniband: BTreeSet<u16>,
    ipoib: BTreeSet<u16>,
}

impl Links {
    fn of(lab: &Lab) -> Links {
        let fibre_channel = lab.links.iter().flat_map(|link| link.ends).filter_map(|end| match end.node {
            Node::Host(host) => Some(host),
            Node::Switch(_) | Node::Storage(_) | Node::Loop(_) => None,
        });
        // Virtual machines share the links of their hypervisor.
        let guests = (0..).zip(&lab.hosts).filter(|(_, host)| host.virtual_machine.is_some()).map(|(host, _)| host);
        let ethernet = lab.ethernet_links.iter().flat_map(|link| link.ends).filter_map(|end| match end.node {
            EthernetNode::Host(host) => Some(host),
            EthernetNode::Switch(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
        });
        let on_infiniband = |node: InfinibandNode| match node {
            InfinibandNode::Host(host) => Some(host),
            InfinibandNode::Switch(_) | InfinibandNode::Storage(_) => None,
        };
        let infiniband = lab.infiniband.links.iter().flat_map(|link| link.ends).map(|end| end.node);
        Links {
            fibre_channel: fibre_channel.chain(guests).collect(),
            ethernet: ethernet.collect(),
            infiniband: infiniband.filter_map(on_infiniband).collect(),
            ipoib: lab.infiniband.ipoib.nodes.keys().copied().filter_map(on_infiniband).collect(),
        }
    }

    /// Returns the reason why the costs have no effect for a host, which is `HOST` in it.
    fn lack(&self, table: &str, host: u16, has_iscsi_hba: bool) -> Option<&'static str> {
        match table {
            "fc_cost" | "hba_processor" => {
                (!self.fibre_channel.contains(&host)).then_some("`HOST` has no link of Fibre Channel")
            }
            "srp_cost" => (!self.infiniband.contains(&host)).then_some("`HOST` has no link of InfiniBand"),
            "ipoib_cost" => (!self.ipoib.contains(&host)).then_some("`HOST` has no IPoIB"),
            _ if self.ipoib.contains(&host) => None,
            _ if !self.ethernet.contains(&host) => Some("`HOST` has no link of Ethernet and no IPoIB"),
            _ => has_iscsi_hba.then_some("the iSCSI adapters of `HOST` end TCP themselves"),
        }
    }
}
