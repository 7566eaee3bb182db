//! Validation of individual switches, hosts and storage systems.

use super::traffic::times;
use super::{MAX_NODES, MAX_SWITCHES, Problems};
use crate::config::{
    Bus, EthernetNode, Host, HostProcessor, InfinibandNode, Interrupt, MediumKind, Node, Picos, Queueing, Storage,
    Switch,
};
use crate::fcp::initiator::MAX_EXCHANGES;
use crate::san::{Lab, Place, ProblemKind, Section};
use sanloom_storage::backstore::BackstoreError;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    limits(lab, problems);
    names(lab, problems);
    world_wide_names(lab, problems);
    switch_names(lab, problems);
    for (index, switch) in lab.switches.iter().enumerate() {
        validate_switch(switch, Place::of(Section::Switch, index), problems);
    }
    for (index, host) in lab.hosts.iter().enumerate() {
        validate_host(host, Place::of(Section::Host, index), problems);
        if let Some(vm) = &host.virtual_machine {
            hypervisor(lab, &host.name, vm.on, Place::of(Section::Host, index).key("on"), problems);
        }
    }
    for (index, storage) in lab.storage.iter().enumerate() {
        let virtual_disks = lab.live.medium(index as u16).kind == MediumKind::Volumes;
        validate_storage(storage, virtual_disks, Place::of(Section::Storage, index), problems);
    }
}

/// Advice about nodes without a link.
pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    let mut linked: Vec<Node> = lab.links.iter().flat_map(|l| l.ends.iter().map(|e| e.node)).collect();
    // The management network of metadata servers has no links.
    linked.extend(lab.live.out_of_band.keys().map(|storage| Node::Storage(*storage)));
    linked.extend(lab.live.stations.keys().map(|storage| Node::Storage(*storage)));
    let on_ethernet = |(_, host): &(usize, &Host)| host.hbas.iter().any(|hba| lab.live.uplinks.contains_key(&hba.wwpn));
    linked.extend(lab.hosts.iter().enumerate().filter(on_ethernet).map(|(number, _)| Node::Host(number as u16)));
    linked.extend(lab.ethernet_links.iter().flat_map(|link| link.ends).filter_map(|end| match end.node {
        EthernetNode::Host(host) => Some(Node::Host(host)),
        EthernetNode::Storage(storage) => Some(Node::Storage(storage)),
        EthernetNode::Forwarder(switch) => Some(Node::Switch(switch)),
        EthernetNode::Switch(_) => None,
    }));
    linked.extend(lab.infiniband.links.iter().flat_map(|link| link.ends).filter_map(|end| match end.node {
        InfinibandNode::Host(host) => Some(Node::Host(host)),
        InfinibandNode::Storage(storage) => Some(Node::Storage(storage)),
        InfinibandNode::Switch(_) => None,
    }));
    linked.sort_unstable();
    linked.dedup();
    let mut check = |node: Node, place: Place, name: &str| {
        if linked.binary_search(&node).is_err() {
            problems.add(
                ProblemKind::Unconnected,
                place,
                format!("no link ends at `{name}`"),
                "add a [[link]] for it, or leave it out",
            );
        }
    };
    for (i, s) in lab.switches.iter().enumerate().take(MAX_NODES) {
        check(Node::Switch(i as u16), Place::of(Section::Switch, i), &s.name);
    }
    let physical = |(_, host): &(usize, &Host)| host.virtual_machine.is_none();
    for (i, h) in lab.hosts.iter().enumerate().take(MAX_NODES).filter(physical) {
        check(Node::Host(i as u16), Place::of(Section::Host, i), &h.name);
    }
    let on_ip = |number: u16| lab.live.iscsi.contains_key(&number) || lab.live.srp.contains_key(&number);
    let on_fabric = |(number, _): &(usize, &Storage)| !on_ip(*number as u16);
    for (i, s) in lab.storage.iter().enumerate().take(MAX_NODES).filter(on_fabric) {
        check(Node::Storage(i as u16), Place::of(Section::Storage, i), &s.name);
    }
}

fn limits(lab: &Lab, problems: &mut Problems) {
    if lab.switches.len() > MAX_SWITCHES {
        problems.add(
            ProblemKind::TooLarge,
            Place::of(Section::Switch, MAX_SWITCHES),
            format!("{} switches need one domain each, but a fabric has {MAX_SWITCHES} domains", lab.switches.len()),
            "use fewer and larger switches",
        );
    }
    let nodes = lab.switches.len() + lab.hosts.len() + lab.storage.len() + lab.loops.len();
    if nodes > MAX_NODES {
        problems.add(
            ProblemKind::TooLarge,
            Place::of(Section::Lab, 0),
            format!("{nodes} nodes are more than sanloom supports"),
            format!("stay at or below {MAX_NODES} switches, hosts, storage systems and loops"),
        );
    }
}

/// Checks that names of nodes are unique across all kinds, because links, zones and workloads refer
/// to nodes by name.
fn names(lab: &Lab, problems: &mut Problems) {
    let nodes = (lab.switches.iter().map(|s| &s.name).enumerate())
        .map(|(i, name)| (Section::Switch, i, name))
        .chain((lab.hosts.iter().enumerate()).map(|(i, h)| (Section::Host, i, &h.name)))
        .chain((lab.storage.iter().enumerate()).map(|(i, s)| (Section::Storage, i, &s.name)))
        .chain((lab.loops.iter().enumerate()).map(|(i, l)| (Section::Loop, i, &l.name)));
    let mut seen: BTreeMap<&str, Section> = BTreeMap::new();
    for (section, index, name) in nodes {
        if let Some(first) = seen.insert(name, section) {
            problems.add(
                ProblemKind::DuplicateName,
                Place::of(section, index),
                format!("`{name}` is already the name of a {}", noun(first)),
                "give every switch, host, storage system and loop a name of its own",
            );
        }
    }
}

fn noun(section: Section) -> &'static str {
    match section {
        Section::Switch => "switch",
        Section::Host => "host",
        Section::Loop => "loop",
        _ => "storage system",
    }
}

fn world_wide_names(lab: &Lab, problems: &mut Problems) {
    let hbas = lab
        .hosts
        .iter()
        .enumerate()
        .flat_map(|(i, h)| h.hbas.iter().map(move |hba| (Section::Host, i, &h.name, hba.wwpn)));
    let ports = lab
        .storage
        .iter()
        .enumerate()
        .flat_map(|(i, s)| s.ports.iter().map(move |port| (Section::Storage, i, &s.name, port.wwpn)));
    let mut seen: BTreeMap<Wwpn, &str> = BTreeMap::new();
    for (section, index, name, wwpn) in hbas.chain(ports) {
        let first = seen.insert(wwpn, name);
        let reason = match first {
            _ if wwpn == Wwpn(0) => format!("a port of `{name}` has the port name zero"),
            Some(first) => {
                format!("a port of `{name}` has the port name {wwpn}, the same as a port of `{first}`")
            }
            None => continue,
        };
        problems.add(
            ProblemKind::DuplicateWwn,
            Place::of(section, index).key("wwpn"),
            reason,
            "give every port a name of its own, or leave `wwpn` out",
        );
    }
}

fn switch_names(lab: &Lab, problems: &mut Problems) {
    let hosts = lab.hosts.iter().flat_map(|host| {
        let ports = host.hbas.iter().map(|hba| hba.wwpn.0);
        ports.chain([host.wwnn.0]).map(move |name| (name, &host.name))
    });
    let storage = lab.storage.iter().flat_map(|system| {
        let ports = system.ports.iter().map(|port| port.wwpn.0);
        ports.chain([system.wwnn.0]).map(move |name| (name, &system.name))
    });
    let nodes: BTreeMap<u64, &String> = hosts.chain(storage).collect();
    let mut seen: BTreeMap<MacAddr, &Switch> = BTreeMap::new();
    for (index, switch) in lab.switches.iter().enumerate() {
        let (name, wwn) = (&switch.name, switch.wwn);
        let reason = match seen.insert(switch.fcf_mac(0), switch) {
            _ if wwn == Wwnn(0) => format!("`{name}` has the world-wide name zero"),
            Some(first) if first.wwn == wwn => {
                format!("`{name}` has the world-wide name {wwn}, the same as `{}`", first.name)
            }
            Some(first) => format!("the Ethernet addresses of `{name}` would be the same as those of `{}`", first.name),
            None => match nodes.get(&wwn.0) {
                Some(node) => {
                    format!("`{name}` has the world-wide name {wwn}, the same as `{node}` or one of its ports")
                }
                None => continue,
            },
        };
        let help = "give the name of every switch a different last byte, or leave `wwn` out";
        problems.add(ProblemKind::DuplicateWwn, Place::of(Section::Switch, index).key("wwn"), reason, help);
    }
}

/// Checks that a virtual machine is on a host that is not a virtual machine itself.
pub(super) fn hypervisor(lab: &Lab, name: &str, on: u16, place: Place, problems: &mut Problems) {
    let reason = match lab.hosts.get(usize::from(on)) {
        Some(host) if host.virtual_machine.is_none() => return,
        Some(host) => format!("`{}` is a virtual machine itself, so `{name}` cannot be on it", host.name),
        None => format!("the virtual machine `{name}` is on a host that does not exist"),
    };
    problems.add(ProblemKind::BadHypervisor, place, reason, "name a host that has links");
}

fn validate_switch(switch: &Switch, place: Place, problems: &mut Problems) {
    channels(switch, place, problems);
    if let [Some(lowest), Some(highest)] = switch.rates
        && lowest > highest
    {
        problems.add(
            ProblemKind::BadNumber,
            place.key("min_rate"),
            format!("`{}` has no rate from {lowest} to {highest}", switch.name),
            "make `min_rate` at most `max_rate`",
        );
    }
    problems.number(place.key("domain"), switch.domain.into(), 1, 239);
    problems.number(place.key("ports"), switch.ports.into(), 1, 65_535);
    problems.time(place.key("latency"), switch.latency, Picos::ZERO, Picos::SECOND);
    if let Some(processor) = &switch.processor {
        let times = [
            ("processor.per_command", processor.per_command),
            ("processor.per_message", processor.per_message),
            ("processor.per_login", processor.per_login),
            ("processor.per_name_search", processor.per_name_search),
            ("processor.per_comparison", processor.per_comparison),
        ];
        for (key, time) in times {
            problems.time(place.key(key), time, Picos::ZERO, Picos::from_secs(60));
        }
    }
}

/// Checks the virtual channels of a switch and its quarantine of slow devices.
fn channels(switch: &Switch, place: Place, problems: &mut Problems) {
    let key = if switch.quarantine.is_some() { "quarantine" } else { "virtual_channels" };
    if switch.virtual_channels.is_some() && switch.queueing != Queueing::Voq {
        problems.add(
            ProblemKind::NoChannels,
            place.key(key),
            "virtual channels need virtual output queues".to_owned(),
            "set `queueing = \"voq\"`, or leave this key out",
        );
    } else if switch.virtual_channels.is_none() && switch.quarantine.is_some() {
        problems.add(
            ProblemKind::NoChannels,
            place.key(key),
            "a quarantine needs virtual channels, and `virtual_channels.medium` is 0".to_owned(),
            "leave `virtual_channels.medium` out, or set it to 1 or more",
        );
    }
    let Some(slow) = switch.quarantine else { return };
    if !(1..=1_000).contains(&slow.share_permille) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("slow_drain.share"),
            "a share of time is at most 1".to_owned(),
            "write a share between 0.001 and 1",
        );
    }
    for (time, key) in [(slow.window, "slow_drain.window"), (slow.recovery, "slow_drain.recovery")] {
        problems.time(place.key(key), time, Picos::from_us(1), Picos::from_secs(1_000_000));
    }
}

fn validate_host(host: &Host, place: Place, problems: &mut Problems) {
    problems.number(place.key("hbas"), host.hbas.len() as u64, 1, 256);
    for hba in &host.hbas {
        receive_size(place, hba.receive_size_bytes, problems);
        if hba.data_frames_in_flight == Some(0) {
            problems.number(place.key("data_frames_in_flight"), 0, 1, u32::MAX.into());
        }
    }
    let queue = &host.queue;
    let most = u32::from(MAX_EXCHANGES);
    if !(1..=most).contains(&queue.max_outstanding) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("queue_depth"),
            format!(
                "`queue_depth` cannot be {}, because an HBA has {most} exchange identifiers (OX_ID) for commands",
                queue.max_outstanding
            ),
            format!("choose a number from 1 to {most}"),
        );
    }
    if !queue.merge_up_to_bytes.is_multiple_of(512) {
        problems.add(
            ProblemKind::BadSize,
            place.key("max_io"),
            format!("a merged request cannot have {} bytes", queue.merge_up_to_bytes),
            "choose a multiple of 512B",
        );
    }
    validate_adapters(host.interrupt.as_ref(), host.bus.as_ref(), place, problems);
    problems.time(place.key("cpu_per_io"), host.cpu_per_io, Picos::ZERO, Picos::SECOND);
    validate_processor(&host.processor, place, problems);
    problems.time(place.key("guest_cpu_per_io"), host.guest_cpu_per_io, Picos::ZERO, Picos::SECOND);
    problems.time(place.key("command_timeout"), host.command_timeout, Picos::from_us(1), Picos::from_secs(3600));
    let (recovery, longest) = (&host.recovery, Picos::from_secs(3600));
    problems.time(place.key("abort_timeout"), recovery.abort_timeout, Picos::from_us(1), longest);
    problems.time(place.key("reset_timeout"), recovery.reset_timeout, Picos::from_us(1), longest);
    problems.time(place.key("queue_ramp_up"), recovery.queue_ramp_up, Picos::from_us(1), longest);
    if let Some(deadline) = recovery.eh_deadline {
        problems.time(place.key("eh_deadline"), deadline, Picos::ZERO, longest);
    }
    let multipath = &host.multipath;
    problems.time(place.key("multipath.polling_interval"), multipath.polling_interval, Picos::from_us(1), longest);
    if multipath.fast_io_fail > multipath.dev_loss {
        problems.add(
            ProblemKind::TimeOrder,
            place.key("multipath.fast_io_fail"),
            format!("`fast_io_fail` ({}) comes after `dev_loss` ({})", multipath.fast_io_fail, multipath.dev_loss),
            "make `fast_io_fail` at most as long as `dev_loss`",
        );
    }
}

/// Largest number of disks of a storage system.
const MAX_DISKS: u64 = 16_384;

/// Largest number of latent sector errors of a RAID group per hour.
const MAX_LATENT_ERRORS_PER_HOUR: f64 = 1e6;

fn validate_backstore(storage: &Storage, blocks: u64, place: Place, problems: &mut Problems) {
    match storage.backstore.check(blocks) {
        Ok(()) => {}
        Err(error @ BackstoreError::Cache(_)) => problems.add(
            ProblemKind::BadNumber,
            place.key("controller_cache.size"),
            error.to_string(),
            "choose other values in `controller_cache`",
        ),
        Err(error) => problems.add(
            ProblemKind::BadNumber,
            place.key("raid.level"),
            error.to_string(),
            "choose another `raid.disks`, `raid.groups` or `raid.chunk`",
        ),
    }
    if let Err(error) = storage.protection.check(storage.backstore.raid.map(|raid| raid.level)) {
        let remedy = "choose another `raid.consistency`";
        problems.add(ProblemKind::BadNumber, place.key("raid.consistency"), error.to_string(), remedy);
    }
    let members = storage.backstore.raid.map_or(1, |raid| u64::from(raid.members));
    if let Some(interval_ps) = storage.protection.scrub_interval_ps {
        let longest = Picos::from_secs(100 * 24 * 3600);
        problems.time(place.key("raid.scrub"), Picos(interval_ps), Picos::from_ms(1), longest);
    }
    let errors = storage.protection.latent_errors_per_hour;
    let most = MAX_LATENT_ERRORS_PER_HOUR / members as f64;
    if !(0.0..=most).contains(&errors) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("latent_errors_per_hour"),
            format!("{errors} is outside 0 to {most}"),
            "choose a lower rate",
        );
    }
    let disks = members * storage.luns.len() as u64;
    if disks > MAX_DISKS {
        problems.add(
            ProblemKind::BadNumber,
            place.key("luns"),
            format!("{disks} disks are too many for one storage system"),
            format!("use at most {MAX_DISKS}, with fewer LUNs or smaller RAID groups"),
        );
    }
}

fn validate_processor(processor: &HostProcessor, place: Place, problems: &mut Problems) {
    problems.number(place.key("processor.cores"), processor.cores.into(), 1, 1_024);
    let (fc, tcp, hba) = (&processor.fc, &processor.tcp, &processor.hba);
    for (key, time) in [
        ("fc_cost.per_command", fc.per_command),
        ("fc_cost.per_kib_read", fc.per_kib_read),
        ("fc_cost.per_kib_written", fc.per_kib_written),
        ("tcp_cost.per_command", tcp.per_command),
        ("tcp_cost.per_segment_received", tcp.per_segment_received),
        ("tcp_cost.per_segment_sent", tcp.per_segment_sent),
        ("tcp_cost.copy_received", tcp.copy_received),
        ("tcp_cost.copy_sent", tcp.copy_sent),
        ("tcp_cost.checksum", tcp.checksum),
        ("tcp_cost.interrupt", tcp.interrupt),
        ("tcp_cost.interrupt_gap", tcp.interrupt_gap),
        ("hba_processor.per_read", hba.per_read),
        ("hba_processor.per_write", hba.per_write),
        ("hba_processor.per_kib", hba.per_kib),
        ("srp_cost.per_command", processor.srp.per_command),
        ("srp_cost.per_completion", processor.srp.per_completion),
    ] {
        problems.time(place.key(key), time, Picos::ZERO, Picos::SECOND);
    }
    if let Some(shortest) = tcp.min_interrupt_gap {
        problems.time(place.key("tcp_cost.min_interrupt_gap"), shortest, Picos::ZERO, tcp.interrupt_gap);
    }
    let ipoib = processor.ipoib.unwrap_or_default();
    let adapter = processor.iscsi_hba.unwrap_or_default();
    for (key, time) in [
        ("ipoib_cost.per_packet_received", ipoib.per_packet_received),
        ("ipoib_cost.per_packet_sent", ipoib.per_packet_sent),
        ("iscsi_hba.per_command", adapter.per_command),
        ("iscsi_hba.per_pdu", adapter.per_pdu),
        ("iscsi_hba.per_kib", adapter.per_kib),
        ("iscsi_hba.driver_per_command", adapter.driver_per_command),
        ("iscsi_hba.driver_per_kib", adapter.driver_per_kib),
    ] {
        problems.time(place.key(key), time, Picos::ZERO, Picos::SECOND);
    }
}

fn validate_adapters(interrupt: Option<&Interrupt>, bus: Option<&Bus>, place: Place, problems: &mut Problems) {
    if let Some(interrupt) = interrupt {
        problems.number(place.key("interrupt.max_frames"), interrupt.max_frames.into(), 1, 65_535);
        problems.time(place.key("interrupt.cost"), interrupt.cost, Picos::ZERO, Picos::SECOND);
        problems.time(place.key("interrupt.max_wait"), interrupt.max_wait, Picos::ZERO, Picos::SECOND);
        if let Some(shortest) = interrupt.min_wait {
            problems.time(place.key("interrupt.min_wait"), shortest, Picos::ZERO, interrupt.max_wait);
        }
    }
    if let Some(bus) = bus {
        if !matches!(bus.bits, 8 | 16 | 32 | 64 | 128 | 256) {
            problems.add(
                ProblemKind::BadNumber,
                place.key("bus.bits"),
                format!("a bus cannot be {} bits wide", bus.bits),
                "choose 8, 16, 32, 64, 128 or 256",
            );
        }
        if !(1_000_000..=100_000_000_000).contains(&bus.clock_hz) {
            problems.add(
                ProblemKind::BadNumber,
                place.key("bus.clock"),
                format!("a bus clock of {} Hz is outside its range", bus.clock_hz),
                "choose a clock from 1MHz to 100GHz",
            );
        }
        problems.number(place.key("bus.shared_by"), bus.shared_by.into(), 1, 256);
    }
}

fn validate_storage(storage: &Storage, virtual_disks: bool, place: Place, problems: &mut Problems) {
    validate_adapters(storage.interrupt.as_ref(), storage.bus.as_ref(), place, problems);
    problems.number(place.key("ports"), storage.ports.len() as u64, 1, 256);
    for port in &storage.ports {
        receive_size(place, port.receive_size_bytes, problems);
        problems.time(place.key("sequence_overhead"), port.sequence_overhead, Picos::ZERO, Picos::SECOND);
        problems.time(place.key("frame_overhead"), port.frame_overhead, Picos::ZERO, Picos::from_ms(1));
    }
    let service = &storage.service;
    let time = service.time.mean();
    if time == Picos::ZERO || time > Picos::from_secs(1000) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("rate"),
            format!("a controller time of {time} per command is outside its range"),
            "choose a rate between 0.001/s and 1G/s",
        );
    }
    times(&service.time, place.key("service_time"), Picos::from_secs(1000), problems);
    problems.number(place.key("servers"), service.servers.into(), 1, 65_535);
    let controllers = &storage.controllers;
    problems.time(place.key("controllers.takeover"), controllers.takeover, Picos::ZERO, Picos::from_secs(3600));
    problems.time(place.key("controllers.forward"), controllers.forward, Picos::ZERO, Picos::from_secs(1));
    if let Some(failback) = controllers.failback {
        problems.time(place.key("controllers.failback"), failback, Picos::ZERO, Picos::from_secs(24 * 3600));
    }
    problems.time(place.key("media_latency"), service.media_latency, Picos::ZERO, Picos::from_secs(60));
    let fewest = if virtual_disks { 0 } else { 1 };
    problems.number(place.key("luns"), storage.luns.len() as u64, fewest, 16_384);
    if let Some(Err(error)) = storage.ssd.as_ref().map(|ssd| ssd.drive.check()) {
        problems.add(
            ProblemKind::BadSize,
            place.key("ssd_size"),
            error.to_string(),
            "make `ssd_size` smaller; a simulation needs 2 MiB of memory for each GiB of an SSD",
        );
    }
    let failures = &storage.failures;
    problems.time(place.key("failures.replacement"), failures.replacement, Picos::ZERO, Picos::from_secs(100 * 86_400));
    for (key, number, least, most) in [
        ("failures.mttf_hours", failures.mttf_h, 1.0, 1e9),
        ("failures.errors_per_bit", failures.errors_per_bit, 0.0, 1e-6),
    ] {
        if !(least..=most).contains(&number) {
            let reason = format!("{number} is outside its range");
            problems.add(ProblemKind::BadNumber, place.key(key), reason, format!("choose {least} to {most}"));
        }
    }
    if let Some((_, blocks)) = storage.device() {
        validate_backstore(storage, blocks, place, problems);
    }
    let mut luns = storage.luns.clone();
    luns.dedup();
    for lun in luns {
        if !lun.block_bytes.is_power_of_two() || !(512..=65_536).contains(&lun.block_bytes) {
            problems.add(
                ProblemKind::BadSize,
                place.key("block_size"),
                format!("a block cannot have {} bytes", lun.block_bytes),
                "choose a power of two from 512B to 64KiB; usual are \"512B\" and \"4KiB\"",
            );
        }
        let bytes = u128::from(lun.blocks) * u128::from(lun.block_bytes);
        if let Some((name, blocks)) = storage.device()
            && let Ok(blocks) = storage.backstore.unit_blocks(blocks)
            && bytes > 512 * u128::from(blocks)
        {
            let capacity = 512 * u128::from(blocks);
            let behind = match (&storage.backstore.raid, &storage.ssd) {
                (Some(_), _) => "RAID group of devices",
                (None, Some(_)) => "SSD",
                (None, None) => "disk",
            };
            problems.add(
                ProblemKind::BadSize,
                place.key("lun_size"),
                format!("a LUN of {bytes} bytes does not fit on the {behind} `{name}` of {capacity} bytes"),
                "make it smaller, or leave it out: a LUN then has the size of what is behind it",
            );
        }
        if lun.blocks == 0 {
            problems.add(
                ProblemKind::BadSize,
                place.key("lun_size"),
                "a LUN has no blocks",
                "make `lun_size` at least one `block_size`",
            );
        }
    }
    let burst = storage.max_burst_bytes;
    if burst < 512 || !burst.is_multiple_of(512) {
        problems.add(
            ProblemKind::BadSize,
            place.key("max_burst"),
            format!("one XFER_RDY cannot request {burst} bytes"),
            "choose a multiple of 512B",
        );
    }
}

/// Checks a receive data field size: a multiple of four from 256 to 2112 (FC-FS).
fn receive_size(place: Place, bytes: u16, problems: &mut Problems) {
    if !(256..=2112).contains(&bytes) || !bytes.is_multiple_of(4) {
        problems.add(
            ProblemKind::BadSize,
            place.key("receive_size"),
            format!("a frame's data field cannot have {bytes} bytes"),
            "choose a multiple of 4 from 256B to 2112B",
        );
    }
}
