//! Findings about servers on the way of requests that are full: routers of IP, gateways, metadata
//! servers, single cores of hosts, and the request limit of SRP targets.

use super::limits::FULL;
use super::{list, percent, with_rates};
use crate::results::view::View;
use sanloom_api::results::{Candidate, Finding, FindingKind, HostResult, IpRouterResult, Measure, Results};
use sanloom_api::words::plural;
use sanloom_fc::config::{Affinity, EthernetNode, IpRouter, Picos};
use std::collections::BTreeSet;

/// Share of the commands that wait for the request limit, from which on it is worth a finding.
const WAITS: f64 = 0.5;
/// Largest queue of a router that the lab accepts.
const LARGEST_QUEUE: u32 = 1_000_000;
/// Largest request limit that the lab accepts.
const LARGEST_LIMIT: u16 = 4_095;
/// Largest map of a host that the lab accepts, in extents.
const LARGEST_MAP: u32 = 1 << 24;
/// Data that a remedy joins to one unit of work.
const BATCH: &str = "64KiB";

/// Returns the findings about all of them.
pub(super) fn find(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let mut found = routers(view, results);
    found.extend(gateways(view, results));
    found.extend(metadata(view, results));
    found.extend(cores(view, results));
    found.extend(request_limits(view, results));
    found
}

/// Returns half of a time.
fn half(time: Picos) -> Picos {
    Picos(time.0 / 2)
}

/// Routers of IP that drop packets, or that are busy all the time.
fn routers(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let routers = results.hosts.iter().zip(0u16..).filter_map(|(host, number)| {
        let config = view.world.lab.infiniband.ipoib.routers.get(&number)?;
        Some((&host.name, number, config, host.ip_router.as_ref()?))
    });
    let busy = routers.filter(|(.., work)| work.dropped > 0 || work.utilisation >= FULL);
    let finding = |(name, number, config, work): (&String, u16, &IpRouter, &IpRouterResult)| {
        let mut candidates = Vec::new();
        let queue = config.queue.saturating_mul(8).clamp(256, LARGEST_QUEUE);
        if work.dropped > 0 && queue > config.queue {
            candidates.push(Candidate {
                what: format!("a queue of {queue} packets in {name}"),
                set: vec![(format!("host.{name}.ip_router.queue"), queue.to_string())],
            });
        }
        if work.utilisation >= FULL {
            let usual = IpRouter::default().per_packet;
            let per_packet = if config.per_packet > usual { usual } else { Picos(config.per_packet.0 / 8) };
            candidates.push(Candidate {
                what: format!("a router {name} that needs {per_packet} for a packet"),
                set: vec![(format!("host.{name}.ip_router.per_packet"), per_packet.to_string())],
            });
        }
        Finding {
            kind: if work.dropped > 0 { FindingKind::CongestionLoss } else { FindingKind::Bottleneck },
            title: match work.dropped {
                0 => format!("The router {name} is saturated"),
                dropped => format!("the router {name} dropped {}", plural(dropped, "packet")),
            },
            detail: format!(
                "{name} passed on {} and was busy {} of the time; {} may wait at each interface",
                plural(work.forwarded, "packet"),
                percent(work.utilisation),
                plural(config.queue, "packet")
            ),
            candidates,
            measure: Measure::Victims,
            culprit: Some(name.clone()),
            victims: with_rates(&routed(view, results, number)),
            ..Finding::default()
        }
    };
    busy.map(finding).collect()
}

/// Returns the hosts whose sessions cross a router.
fn routed<'r>(view: &View<'_>, results: &'r Results, router: u16) -> Vec<&'r HostResult> {
    let interfaces = view.world.lab.ethernet_interfaces();
    let is_own =
        |end: &u16| interfaces.get(usize::from(*end)).is_some_and(|own| own.end.node == EthernetNode::Host(router));
    let plans = view.world.iscsi.iter().flat_map(|iscsi| iscsi.plans());
    let crossing = plans.filter(|plan| plan.via.iter().flatten().any(is_own));
    let hosts: BTreeSet<u16> = crossing.map(|plan| plan.host).collect();
    hosts.into_iter().filter_map(|host| results.hosts.get(usize::from(host))).collect()
}

/// Gateways whose processor is busy all the time.
fn gateways(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lab = &view.world.lab;
    let of = |(storage, number): (&sanloom_api::results::StorageResult, u16)| {
        let work = storage.gateway.as_ref().filter(|work| work.cpu_utilisation >= FULL)?;
        let cost = &lab.live.gateways.get(&number)?.cost;
        let keys = [
            ("per_command", cost.per_command),
            ("per_kib", cost.per_kib),
            ("per_pdu", cost.per_pdu),
            ("per_kib_forwarded", cost.per_kib_forwarded),
        ];
        let set = keys.into_iter().filter(|(_, time)| time.0 > 0);
        let set = set.map(|(key, time)| (format!("storage.{}.gateway.{key}", storage.name), half(time).to_string()));
        Some(Finding {
            kind: FindingKind::StorageBound,
            title: format!("The processor of the gateway {} is saturated", storage.name),
            detail: format!(
                "busy {} of the time with {} and {}",
                percent(work.cpu_utilisation),
                plural(work.conventional, "command"),
                plural(work.forwarded, "forwarded command")
            ),
            candidates: vec![Candidate {
                what: format!("a processor of {} that is twice as fast", storage.name),
                set: set.collect(),
            }],
            measure: Measure::Total,
            culprit: Some(storage.name.clone()),
            ..Finding::default()
        })
    };
    results.storage.iter().zip(0u16..).filter_map(of).collect()
}

/// Metadata servers that are busy all the time.
fn metadata(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let lab = &view.world.lab;
    let of = |(storage, number): (&sanloom_api::results::StorageResult, u16)| {
        let work = storage.metadata.as_ref().filter(|work| work.utilisation >= FULL)?;
        let config = lab.live.out_of_band.get(&number)?;
        let name = &storage.name;
        let entries = config.entries.saturating_mul(64).clamp(1_024, LARGEST_MAP);
        let mut candidates = Vec::new();
        if entries > config.entries {
            candidates.push(Candidate {
                what: format!("maps of {entries} extents in the hosts of {name}"),
                set: vec![(format!("storage.{name}.out_of_band.entries"), entries.to_string())],
            });
        }
        let service = half(config.service);
        candidates.push(Candidate {
            what: format!("a metadata server {name} that needs {service} for a message"),
            set: vec![(format!("storage.{name}.out_of_band.service"), service.to_string())],
        });
        Some(Finding {
            kind: FindingKind::StorageBound,
            title: format!("The metadata server {name} is saturated"),
            detail: format!(
                "busy {} of the time with {}; {} of the requests found their extent in the map of the host, and \
                 the others waited {:.1} ms on average",
                percent(work.utilisation),
                plural(work.messages, "message"),
                percent(work.hit_share),
                work.miss_latency.mean_us / 1e3
            ),
            candidates,
            measure: Measure::Total,
            culprit: Some(name.clone()),
            ..Finding::default()
        })
    };
    results.storage.iter().zip(0u16..).filter_map(of).collect()
}

/// Hosts with one core that is busy all the time, while the processor as a whole is not.
fn cores(view: &View<'_>, results: &Results) -> Option<Finding> {
    let lab = &view.world.lab;
    let nodes = view.world.hosts.nodes.iter().zip(&lab.hosts).zip(&results.hosts);
    let mut full: Vec<_> = nodes
        .filter(|(_, host)| host.cpu_utilisation < FULL)
        .map(|((node, config), host)| (node.cpu.busiest(view.now_ps).min(1.0), config, host))
        .filter(|(share, ..)| *share >= FULL)
        .collect();
    full.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (share, worst, result) = full.first()?;
    let names: Vec<String> = full.iter().map(|(_, config, _)| config.name.clone()).collect();
    let set = |key: &str, value: &str| -> Vec<(String, String)> {
        names.iter().map(|name| (format!("host.{name}.{key}"), value.to_owned())).collect()
    };
    let mut candidates = Vec::new();
    if full.iter().any(|(_, config, _)| config.processor.affinity != Affinity::Spread) {
        candidates.push(Candidate {
            what: "work that is spread over all cores".to_owned(),
            set: set("processor.affinity", "spread"),
        });
    }
    if full.iter().any(|(_, config, _)| config.processor.tcp.copy_received.0 > 0) {
        candidates.push(Candidate {
            what: "no copy of data that arrive, as with an adapter that places them".to_owned(),
            set: set("tcp_cost.copy_received", "0s"),
        });
    }
    if full.iter().any(|(_, config, _)| config.processor.tcp.batch_bytes == 0) {
        candidates.push(Candidate {
            what: format!("segments joined to batches of {BATCH}"),
            set: set("tcp_cost.batch", BATCH),
        });
    }
    if names.len() > 16 {
        candidates.clear();
    }
    Some(Finding {
        kind: FindingKind::Bottleneck,
        title: match names.len() {
            1 => format!("One core of {} is saturated", worst.name),
            all => format!("One core is saturated in {all} hosts"),
        },
        detail: format!(
            "{}: the busiest of {} is busy {} of the time, but all together only {}; a NIC has one receive queue \
             and one core for it",
            list(&names),
            plural(u32::from(worst.processor.cores), "core"),
            percent(*share),
            percent(result.cpu_utilisation)
        ),
        candidates,
        measure: Measure::Total,
        culprit: Some(worst.name.clone()),
        culprits: names,
        ..Finding::default()
    })
}

/// SRP targets whose request limit makes most commands wait, although the storage has room.
fn request_limits(view: &View<'_>, results: &Results) -> Vec<Finding> {
    let targets = &view.world.lab.infiniband.targets;
    let of = |(storage, number): (&sanloom_api::results::StorageResult, u16)| {
        let target = targets.get(&number).filter(|_| storage.utilisation < FULL)?;
        let behind = format!(">{}:", storage.name);
        let own = results.srp_channels.iter().filter(|channel| channel.name.contains(&behind));
        let (channels, waits, requests) =
            own.fold((0, 0, 0), |sum, channel| (sum.0 + 1, sum.1 + channel.credit_waits, sum.2 + channel.requests));
        let limit = target.request_limit.saturating_mul(4).clamp(64, LARGEST_LIMIT);
        if requests == 0 || (waits as f64) < WAITS * requests as f64 || limit <= target.request_limit {
            return None;
        }
        Some(Finding {
            kind: FindingKind::Bottleneck,
            title: format!("The request limit of {} makes commands wait", storage.name),
            detail: format!(
                "{waits} of {} waited on {}, because a channel may have {} outstanding; the controller is busy {} of \
                 the time",
                plural(requests, "request"),
                plural(channels, "channel"),
                plural(target.request_limit, "request"),
                percent(storage.utilisation)
            ),
            candidates: vec![Candidate {
                what: format!("a request limit of {limit} in {}", storage.name),
                set: vec![(format!("storage.{}.srp.request_limit", storage.name), limit.to_string())],
            }],
            measure: Measure::Total,
            culprit: Some(storage.name.clone()),
            ..Finding::default()
        })
    };
    results.storage.iter().zip(0u16..).filter_map(of).collect()
}
