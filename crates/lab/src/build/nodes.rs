//! Switches, hosts and storage, and their names.

use super::ports::BAD_PORT;
use super::workloads::CONFLICT;
use super::wwns::{self, host_name, port_name, storage_name, world_wide_name};
use super::{Where, adapters, backstore, infiniband, iscsi};
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::files;
use crate::forms;
use crate::schema;
use crate::value::Value;
use crate::{overrides, pattern, suggest, value};
use sanloom_fc::config::{
    Arbitration, CrossbarLimits, ErrorRecovery, Forwarding, Hba, Host, IoQueue, IoScheduler, IslChoice, Joining, Lun,
    MediumKind, Multipath, Node, PathPolicy, Picos, Priority, Processor, ProcessorPriority, ProcessorSharing, Queueing,
    Service, SlowDrain, SsdConfig, Storage, StoragePort, Switch, TimeDistribution, VirtualChannels, VirtualFabric,
};
use sanloom_fc::san::{Lab, MAX_NODES};
use sanloom_fc::switch::{LoginLimits, Policy};
use sanloom_storage::disk::{self, DiskConfig, WritePolicy};
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Code of a node that does not exist.
pub(crate) const UNKNOWN_NODE: &str = "unknown-node";

/// Limit on the ports of all hosts and storage together, and on all LUNs together.
const MAX_PARTS: usize = 1 << 20;

/// The nodes of a lab by name.
pub(crate) struct Names {
    by_name: BTreeMap<String, Node>,
}

impl Names {
    pub fn of(lab: &Lab) -> Names {
        let mut by_name = BTreeMap::new();
        let switches = lab.switches.iter().enumerate().map(|(i, s)| (&s.name, Node::Switch(i as u16)));
        let hosts = lab.hosts.iter().enumerate().map(|(i, h)| (&h.name, Node::Host(i as u16)));
        let storage = lab.storage.iter().enumerate().map(|(i, s)| (&s.name, Node::Storage(i as u16)));
        let loops = lab.loops.iter().enumerate().map(|(i, l)| (&l.name, Node::Loop(i as u16)));
        for (name, node) in switches.chain(hosts).chain(storage).chain(loops) {
            by_name.entry(name.clone()).or_insert(node);
        }
        Names { by_name }
    }

    /// The node with this name.
    pub fn get(&self, name: &str) -> Option<Node> {
        self.by_name.get(name).copied()
    }

    /// Returns the node with this name if `accept` allows its kind. Otherwise reports an error that
    /// names the `wanted` kind.
    pub fn find(
        &self,
        name: &str,
        wanted: &str,
        accept: fn(Node) -> bool,
        origin: &Origin,
        sink: &mut Sink,
    ) -> Option<Node> {
        let found = self.by_name.get(name).copied();
        if let Some(node) = found
            && accept(node)
        {
            return found;
        }
        if sink.repeats(UNKNOWN_NODE, origin) {
            return None;
        }
        let reason = match found {
            Some(node) => format!("`{name}` is a {}, a {wanted} was expected", noun(node)),
            None => format!("there is no {wanted} `{}`", value::cut(name)),
        };
        let known = || self.by_name.iter().filter(|&(_, &node)| accept(node)).map(|(name, _)| name.as_str());
        // Names that differ only in the number are not typing errors, so the remedy lists the
        // existing numbers.
        let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let mut family: Vec<&str> = known()
            .filter(|other| stem(other) == stem(name) && other.get(..stem(name)) == name.get(..stem(name)))
            .collect();
        family.sort_by_key(|name| (name.len(), *name));
        let remedy = match suggest::closest(name, known()) {
            _ if found.is_some() => format!("name a {wanted} that the file defines"),
            _ if family.len() > 1 && stem(name) > 0 => {
                format!("the file defines {}", overrides::few(&family))
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("name a {wanted} that the file defines"),
        };
        sink.error(UNKNOWN_NODE, origin, reason, remedy);
        None
    }
}

/// Returns the noun for a node in messages.
pub(super) fn noun(node: Node) -> &'static str {
    match node {
        Node::Switch(_) => "switch",
        Node::Host(_) => "host",
        Node::Storage(_) => "storage system",
        Node::Loop(_) => "loop",
    }
}

pub(super) fn switches<'d>(
    document: &'d Document,
    budget: &mut Budget,
    sink: &mut Sink,
) -> (Vec<Switch>, Vec<Where<'d>>) {
    let elements = limited(document.named("switch", budget, sink), sink);
    let explicit = |e: &Element<'_>| -> Option<u8> {
        let first: u64 = e.integer("domain")?;
        u8::try_from(first.saturating_add(e.offset)).ok()
    };
    let taken: BTreeSet<u8> = elements.iter().filter_map(explicit).collect();
    let mut free = (1..=239_u8).filter(|domain| !taken.contains(domain));
    let uses = Uses::of(document, &elements);
    let mut switches = Vec::new();
    for element in &elements {
        let domain = match element.integer::<u64>("domain") {
            // If a range counts beyond the last domain, the validation of the lab reports it.
            Some(_) => explicit(element).unwrap_or(u8::MAX),
            None => free.next().unwrap_or(239),
        };
        let virtual_fabric = virtual_fabric(element, budget, sink);
        let highest = virtual_fabric.as_ref().and_then(|fabric| fabric.ports.last());
        switches.push(Switch {
            name: element.name.clone(),
            wwn: Wwnn(world_wide_name(element, "wwn", 1, Switch::made_up_wwn(switches.len() as u16).0)),
            domain,
            // 0 means as many as links need; the number is set when the links are known.
            ports: highest.map_or_else(|| element.integer("ports").unwrap_or(0), |last| last.saturating_add(1)),
            rates: [element.line_rate("min_rate"), element.line_rate("max_rate")],
            forwarding: element.choice("forwarding", schema::FORWARDINGS).unwrap_or(Forwarding::CutThrough),
            queueing: element.choice("queueing", schema::QUEUEINGS).unwrap_or(Queueing::Voq),
            arbitration: element.choice("arbitration", schema::ARBITRATIONS).unwrap_or(Arbitration::RoundRobin),
            latency: element.time("latency").unwrap_or_default(),
            crossbar: crossbar(element),
            virtual_channels: virtual_channels(element, uses),
            quarantine: element.flag("quarantine").then(|| slow_drain(element)),
            isl_choice: element.choice("isl_choice", schema::ISL_CHOICES).unwrap_or(IslChoice::Exchange),
            isl_hash: element.choice("isl_hash", schema::ISL_HASHES).unwrap_or_default(),
            policy: policy(element),
            joining: joining(element),
            virtual_fabric,
            processor: element.has_table("processor").then(|| Processor {
                sharing: element
                    .choice("processor.sharing", schema::PROCESSOR_SHARINGS)
                    .unwrap_or(ProcessorSharing::One),
                priority: element
                    .choice("processor.priority", schema::PROCESSOR_PRIORITIES)
                    .unwrap_or(ProcessorPriority::FabricFirst),
                per_command: element.time("processor.per_command").unwrap_or_default(),
                per_message: element.time("processor.per_message").unwrap_or_default(),
                per_login: element.time("processor.per_login").unwrap_or_default(),
                per_name_search: element.time("processor.per_name_search").unwrap_or_default(),
                per_comparison: element.time("processor.per_comparison").unwrap_or_default(),
            }),
        });
    }
    (switches, elements.into_iter().map(Where::new).collect())
}

/// Priorities that zones or quarantines of the lab use.
#[derive(Clone, Copy)]
struct Uses {
    high: bool,
    low: bool,
}

impl Uses {
    fn of(document: &Document, switches: &[Element<'_>]) -> Uses {
        let zones = document.list("zone");
        let has = |priority| zones.iter().any(|zone| zone.choice("priority", schema::PRIORITIES) == Some(priority));
        let quarantine = switches.iter().any(|switch| switch.flag("quarantine"));
        Uses { high: has(Priority::High), low: has(Priority::Low) || quarantine }
    }
}

/// Returns the virtual channels of a switch. Switches with virtual output queues have them unless
/// `virtual_channels.medium` is 0. Channels that the file asks for are kept with any queueing, so
/// that the validation of the lab can report them.
fn virtual_channels(element: &Element<'_>, uses: Uses) -> Option<VirtualChannels> {
    let medium = element.integer("virtual_channels.medium");
    let number = |key| element.integer::<u8>(key).is_some_and(|channels| channels > 0);
    let is_asked = element.flag("quarantine")
        || ["virtual_channels.medium", "virtual_channels.high", "virtual_channels.low"].into_iter().any(number);
    let queueing = element.choice("queueing", schema::QUEUEINGS).unwrap_or(Queueing::Voq);
    (medium != Some(0) && (is_asked || queueing == Queueing::Voq)).then(|| VirtualChannels {
        medium,
        high: element.integer("virtual_channels.high").unwrap_or(uses.high.into()),
        low: element.integer("virtual_channels.low").unwrap_or(uses.low.into()),
    })
}

fn slow_drain(element: &Element<'_>) -> SlowDrain {
    let default = SlowDrain::default();
    let permille = |share: f64| (share * 1000.0).round() as u32;
    SlowDrain {
        share_permille: element.number("slow_drain.share").map_or(default.share_permille, permille),
        window: element.time("slow_drain.window").unwrap_or(default.window),
        recovery: element.time("slow_drain.recovery").unwrap_or(default.recovery),
    }
}

fn crossbar(element: &Element<'_>) -> CrossbarLimits {
    let default = CrossbarLimits::default();
    let percent = element.number("crossbar.speedup").map(|speedup| (speedup * 100.0).round() as u32);
    CrossbarLimits {
        speedup_percent: percent.unwrap_or(default.speedup_percent),
        bandwidth_bit_per_s: element.bit_rate("crossbar.bandwidth"),
        egress_frames: element.integer("crossbar.egress_buffers").unwrap_or(default.egress_frames),
    }
}

/// Returns the virtual fabric of a switch with its ports of the chassis.
fn virtual_fabric(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> Option<VirtualFabric> {
    if !element.has_table("virtual_fabric") {
        return None;
    }
    let keys = ["virtual_fabric.chassis", "virtual_fabric.id", "virtual_fabric.ports"];
    let missing = keys.into_iter().filter_map(|key| element.def.key(key)).filter(|key| !element.is_given(key.path));
    missing.for_each(|key| element.require(key, sink));
    let mut ports = BTreeSet::new();
    for (text, origin) in element.patterns("virtual_fabric.ports") {
        for number in budget.expand(text, origin, sink)?.iter() {
            match number.parse::<u16>() {
                Ok(port) if port < u16::MAX => _ = ports.insert(port),
                _ => {
                    sink.error(
                        BAD_PORT,
                        origin,
                        format!("`{}` is not a port number", value::cut(number)),
                        "write numbers and ranges, such as [\"{0..15}\", \"20\"]",
                    );
                    return None;
                }
            }
        }
    }
    Some(VirtualFabric {
        chassis: element.text("virtual_fabric.chassis").unwrap_or("").to_owned(),
        // A missing VF_ID is reported separately.
        id: element.integer("virtual_fabric.id").unwrap_or(1),
        ports: ports.into_iter().collect(),
    })
}

fn joining(element: &Element<'_>) -> Joining {
    let default = Joining::default();
    Joining {
        priority: element.integer("fabric.priority").unwrap_or(default.priority),
        insistent: element.flag("fabric.insistent"),
        reconfigure: element.flag("fabric.reconfigure"),
        flow_control: element.choice("fabric.flow_control", schema::FLOW_CONTROLS).unwrap_or_default(),
        zoning: element.choice("fabric.zoning", schema::ZONING_SUPPORTS).unwrap_or(default.zoning),
        cost_rule: element.choice("fabric.cost", schema::COST_RULES).unwrap_or_default(),
    }
}

fn policy(element: &Element<'_>) -> Policy {
    Policy {
        addressing: element.choice("addressing", schema::ADDRESSINGS).unwrap_or_default(),
        limits: LoginLimits {
            per_port: element.integer("logins_per_port").unwrap_or(u32::MAX),
            per_switch: element.integer("logins_per_switch").unwrap_or(u32::MAX),
        },
        duplicate_names: element.choice("duplicate_names", schema::DUPLICATE_NAMES_CHOICES).unwrap_or_default(),
        hard_zoning: element.choice("hard_zoning", schema::HARD_ZONINGS).unwrap_or_default(),
        name_lookup: element.choice("name_lookup", schema::NAME_LOOKUPS).unwrap_or_default(),
        learn_addresses: element.flag("learn_addresses"),
        ..Policy::default()
    }
}

pub(super) fn hosts<'d>(document: &'d Document, budget: &mut Budget, sink: &mut Sink) -> (Vec<Host>, Vec<Where<'d>>) {
    let elements = limited(document.named("host", budget, sink), sink);
    let mut parts = Parts::default();
    let hosts = elements
        .iter()
        .enumerate()
        .map(|(index, e)| {
            let hbas: u64 = parts.count(e, "hbas", sink);
            wwns::check(e, hbas, sink);
            let frames = e.integer("data_frames_in_flight");
            let recovery = ErrorRecovery::default();
            let receive_size_bytes = receive_size(e);
            Host {
                name: e.name.clone(),
                wwnn: Wwnn(world_wide_name(e, "wwnn", 1, host_name(0x20, index, 0))),
                hbas: (0..hbas)
                    .map(|port| Hba {
                        wwpn: Wwpn(port_name(e, hbas, port, host_name(0x10, index, port + 1))),
                        receive_size_bytes,
                        data_frames_in_flight: frames,
                    })
                    .collect(),
                queue: IoQueue {
                    max_outstanding: e.integer("queue_depth").unwrap_or(32),
                    max_waiting: e.integer("max_waiting"),
                    scheduler: e.choice("scheduler", schema::SCHEDULERS).unwrap_or(IoScheduler::Fifo),
                    merge_up_to_bytes: e.size("max_io").unwrap_or(0) as u32,
                },
                processor: super::processor::processor(e),
                cpu_per_io: e.time("cpu_per_io").unwrap_or_default(),
                guest_cpu_per_io: e.time("guest_cpu_per_io").unwrap_or_default(),
                interrupt: adapters::interrupt(e),
                bus: adapters::bus(e),
                multipath: Multipath {
                    policy: e.choice("multipath.policy", schema::PATH_POLICIES).unwrap_or(PathPolicy::RoundRobin),
                    fast_io_fail: e.time("multipath.fast_io_fail").unwrap_or_default(),
                    dev_loss: e.time("multipath.dev_loss").unwrap_or_default(),
                    polling_interval: e.time("multipath.polling_interval").unwrap_or(Picos::from_secs(5)),
                    no_path_retry: e.integer("multipath.no_path_retry"),
                },
                command_timeout: e.time("command_timeout").unwrap_or(Picos::from_secs(30)),
                retries: e.integer("retries").unwrap_or(5),
                recovery: ErrorRecovery {
                    abort_timeout: e.time("abort_timeout").unwrap_or(recovery.abort_timeout),
                    reset_timeout: e.time("reset_timeout").unwrap_or(recovery.reset_timeout),
                    eh_deadline: e.time("eh_deadline"),
                    queue_ramp_up: e.time("queue_ramp_up").unwrap_or(recovery.queue_ramp_up),
                },
                discovery: e.flag("discovery"),
                // Set when the names of all hosts are known.
                virtual_machine: None,
                iscsi: iscsi::initiator(e, budget, sink),
                srp: infiniband::initiator(e),
            }
        })
        .collect();
    (hosts, elements.into_iter().map(Where::new).collect())
}

pub(super) fn storage<'d>(
    document: &'d Document,
    label: &str,
    budget: &mut Budget,
    sink: &mut Sink,
) -> (Vec<Storage>, Vec<Where<'d>>) {
    let elements = limited(document.named("storage", budget, sink), sink);
    let mut ports_left = Parts::default();
    let mut luns_left = Parts::default();
    let mut read = DiskFiles::new();
    let storage = elements
        .iter()
        .enumerate()
        .map(|(index, e)| {
            let ports: u64 = ports_left.count(e, "ports", sink);
            wwns::check(e, ports, sink);
            let virtual_disks = e.choice("medium", schema::MEDIA) == Some(MediumKind::Volumes);
            let luns = if virtual_disks { 0 } else { luns_left.count(e, "luns", sink) };
            let receive_size_bytes = receive_size(e);
            let block_bytes = e.size("block_size").unwrap_or(512) as u32;
            let disk = disk(e, label, &mut read, sink);
            let backstore = backstore::backstore(e, sink);
            let mut storage = Storage {
                name: e.name.clone(),
                wwnn: Wwnn(world_wide_name(e, "wwnn", 1, storage_name(index, 0))),
                ports: (0..ports)
                    .map(|port| StoragePort {
                        wwpn: Wwpn(port_name(e, ports, port, storage_name(index, port + 1))),
                        receive_size_bytes,
                        sequence_overhead: e.time("sequence_overhead").unwrap_or_default(),
                        frame_overhead: e.time("frame_overhead").unwrap_or_default(),
                    })
                    .collect(),
                service: Service {
                    time: service_time(e, sink),
                    servers: e.integer("servers").unwrap_or(1),
                    max_queued: e.integer("max_queued").unwrap_or(u32::MAX),
                    media_latency: e.time("media_latency").unwrap_or_default(),
                },
                controllers: backstore::controllers(e, ports, sink),
                luns: Vec::new(),
                disk: disk.map(Arc::new),
                ssd: ssd(e, sink).map(Arc::new),
                backstore,
                protection: backstore::protection(e, sink),
                failures: backstore::failures(e),
                max_burst_bytes: e.size("max_burst").unwrap_or(0) as u32,
                interrupt: adapters::interrupt(e),
                bus: adapters::bus(e),
            };
            let behind = storage.device().filter(|_| !e.is_given("lun_size"));
            // Validation reports a group that cannot be.
            let behind = behind.and_then(|(_, blocks)| storage.backstore.unit_blocks(blocks).ok());
            let bytes = behind.map(|blocks| blocks * 512).or(e.size("lun_size")).unwrap_or(0);
            let lun = Lun { blocks: bytes / u64::from(block_bytes.max(1)), block_bytes };
            storage.luns = vec![lun; luns as usize];
            storage
        })
        .collect();
    (storage, elements.into_iter().map(Where::new).collect())
}

/// Random overwrites of all pages of a preconditioned SSD.
const PRECONDITIONED_TURNS: u32 = 2;

/// Returns the SSD behind each LUN of a storage system.
fn ssd(element: &Element<'_>, sink: &mut Sink) -> Option<SsdConfig> {
    let Some(preset) = element.choice("ssd", schema::SSDS) else {
        for key in ["ssd_size", "ssd_state"].into_iter().filter(|key| element.is_given(key)) {
            sink.error(MISSING_KEY, &element.origin(key), "it needs `ssd` too", "add ssd = \"pm883\"");
        }
        return None;
    };
    if element.is_given("disk") {
        let reason = "the storage system has disks already";
        sink.error(CONFLICT, &element.origin("ssd"), reason, "remove `disk` or `ssd`");
    }
    let is_used = element.choice("ssd_state", schema::SSD_STATES).unwrap_or(true);
    Some(SsdConfig {
        drive: preset(element.size("ssd_size").unwrap_or(0)),
        preconditioned_turns: is_used.then_some(PRECONDITIONED_TURNS),
    })
}

/// Disks of the parameter files that have been read, by name; none for files with mistakes.
type DiskFiles = BTreeMap<String, Option<DiskConfig>>;

/// Code of a parameter file that cannot be read, or has a mistake.
pub(crate) const BAD_DISK: &str = "bad-disk";

/// Returns the disk of a parameter file beside the lab file `label`, and reports all its mistakes.
fn disk_file(element: &Element<'_>, name: &str, label: &str, sink: &mut Sink) -> Option<DiskConfig> {
    let origin = element.origin("disk");
    let text = match files::beside(label, name, disk::file::MAX_BYTES) {
        Ok(text) => text,
        Err(reason) => {
            let remedy =
                "give a file in the folder of the lab file; `sanloom reproduce disks --print cheetah-9lp` prints one";
            sink.error(BAD_DISK, &origin, reason, remedy);
            return None;
        }
    };
    let mistakes = match disk::file::read(&text) {
        Ok(config) => return Some(config),
        Err(mistakes) => mistakes,
    };
    for mistake in mistakes.iter() {
        let reason = format!("{name}, line {}, column {}: {}", mistake.line, mistake.column, mistake.reason);
        sink.error(BAD_DISK, &origin, reason, mistake.remedy.as_str());
    }
    None
}

/// Returns the disk behind each LUN of a storage system.
fn disk(element: &Element<'_>, label: &str, read: &mut DiskFiles, sink: &mut Sink) -> Option<DiskConfig> {
    if !element.is_given("disk") {
        for key in
            ["disk_scheduler", "disk_interface", "disk_write_cache"].into_iter().filter(|key| element.is_given(key))
        {
            sink.error(MISSING_KEY, &element.origin(key), "it needs `disk` too", "add disk = \"cheetah-9lp\"");
        }
    }
    let mut config = match element.text("disk") {
        // A range of storage systems reads its file once.
        Some(name) if read.contains_key(name) => read.get(name).cloned().flatten()?,
        Some(name) => {
            let config = disk_file(element, name, label, sink);
            read.insert(name.to_owned(), config.clone());
            config?
        }
        None => element.choice("disk", schema::DISKS)?(),
    };
    if let Some(scheduler) = element.choice("disk_scheduler", schema::DISK_SCHEDULERS) {
        config.queue.scheduler = scheduler;
    }
    if let Some(bit_per_s) = element.bit_rate("disk_interface") {
        let block_ms = 512.0 * 8.0 * 1e3 / bit_per_s as f64;
        config.bus = disk::Bus { read_block_ms: block_ms, write_block_ms: block_ms };
    }
    if element.is_given("disk_write_cache") {
        if !element.flag("disk_write_cache") {
            config.cache.write = WritePolicy::Through;
        } else if config.cache.write == WritePolicy::Through {
            let reason = format!("the disk `{}` has no write cache", config.name);
            sink.error(CONFLICT, &element.origin("disk_write_cache"), reason, "leave this key out");
        }
    }
    Some(config)
}

fn service_time(element: &Element<'_>, sink: &mut Sink) -> TimeDistribution {
    if let Some(times) = element.times("service_time") {
        if element.is_given("rate") {
            let reason = "`rate` and `service_time` both give the time of a command";
            sink.error(CONFLICT, &element.origin("service_time"), reason, "remove one of them");
        }
        return times;
    }
    TimeDistribution::Constant(match element.get("rate") {
        Some((Value::PerSecond(rate), _)) if *rate > 0 => forms::per_second(*rate).period(),
        _ => Picos::ZERO,
    })
}

fn receive_size(element: &Element<'_>) -> u16 {
    element.size("receive_size").map_or(2048, |bytes| bytes as u16)
}

/// Limits the number of nodes to the maximum of sanloom and reports the excess once.
fn limited<'d>(mut elements: Vec<Element<'d>>, sink: &mut Sink) -> Vec<Element<'d>> {
    if let Some(first) = elements.get(MAX_NODES) {
        sink.error(
            pattern::TOO_MANY,
            &first.header,
            format!("the file has {} nodes of this kind", elements.len()),
            format!("stay at or below {MAX_NODES} nodes in all"),
        );
        elements.truncate(MAX_NODES);
    }
    elements
}

/// Total number of ports or LUNs of all nodes, which limits what a file can request.
#[derive(Default)]
struct Parts {
    total: usize,
    is_reported: bool,
}

impl Parts {
    fn count(&mut self, element: &Element<'_>, key: &'static str, sink: &mut Sink) -> u64 {
        let wanted: u64 = element.integer(key).unwrap_or(1);
        self.total = self.total.saturating_add(wanted as usize);
        if self.total <= MAX_PARTS {
            return wanted;
        }
        if self.is_reported {
            return 1;
        }
        self.is_reported = true;
        sink.error(
            pattern::TOO_MANY,
            &element.origin(key),
            format!("`{key}` of all nodes together are more than {MAX_PARTS}"),
            "choose a smaller number",
        );
        1
    }
}
