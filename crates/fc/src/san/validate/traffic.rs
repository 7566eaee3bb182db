//! Validation of workloads, faults and expectations.

use super::Problems;
use crate::config::{
    Arrival, Fault, FaultKind, Load, Location, Lun, Picos, Rate, SizeDistribution, TimeDistribution, Workload,
};
use crate::san::{Lab, Place, ProblemKind, Section};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of blocks of a request, because READ(10) and WRITE(10) have a 16-bit count (SBC).
pub const MAX_BLOCKS: u64 = 65_535;
/// Maximum arrival rate in requests per second: one per nanosecond.
const MAX_RATE: f64 = 1e9;

pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, workload) in lab.workloads.iter().enumerate() {
        let place = Place::of(Section::Workload, index);
        if !names.insert(&workload.name) {
            problems.add(
                ProblemKind::DuplicateName,
                place,
                format!("two workloads have the name `{}`", workload.name),
                "give every workload a name of its own",
            );
        }
        validate_workload(lab, workload, place, problems);
    }
    let mut down: BTreeSet<u16> = BTreeSet::new();
    validate_moves(lab, problems);
    for (index, fault) in lab.faults.iter().enumerate() {
        validate_fault(lab, fault, Place::of(Section::Fault, index), &mut down, problems);
    }
    for (index, expectation) in lab.expectations.iter().enumerate() {
        let place = Place::of(Section::Expectation, index);
        let (min, max) = (expectation.min, expectation.max);
        if min.is_none() && max.is_none() {
            problems.add(
                ProblemKind::BadExpectation,
                place,
                format!("the expectation of `{}` has no bound", expectation.metric),
                "give `min`, `max` or both",
            );
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            problems.add(
                ProblemKind::BadExpectation,
                place.key("min"),
                format!("no number is at least {min} and at most {max}"),
                "exchange `min` and `max`",
            );
        }
    }
}

fn validate_workload(lab: &Lab, workload: &Workload, place: Place, problems: &mut Problems) {
    let name = &workload.name;
    if workload.hosts.is_empty() {
        problems.add(
            ProblemKind::NoTarget,
            place.key("hosts"),
            format!("the workload `{name}` has no hosts"),
            "name the hosts in `hosts`",
        );
    }
    if workload.targets.is_empty() {
        problems.add(
            ProblemKind::NoTarget,
            place.key("targets"),
            format!("the workload `{name}` has no target LUN"),
            "name storage systems or LUNs in `targets`",
        );
    }
    validate_load(&workload.load, place, problems);
    problems.share(place.key("read_share"), workload.read_share);
    if let Some(hot) = &workload.hot_set {
        problems.share(place.key("hot.requests"), hot.share_of_requests);
        problems.share(place.key("hot.space"), hot.share_of_space);
        problems.number(place.key("hot.items"), hot.items.into(), 1, 1 << 24);
        if !(0.0..=10.0).contains(&hot.zipf_exponent) {
            problems.add(
                ProblemKind::BadNumber,
                place.key("hot.zipf"),
                format!("a Zipf exponent of {} is outside its range", hot.zipf_exponent),
                "choose a number from 0 (uniform) to 10",
            );
        }
    }
    let end = workload.stop.unwrap_or(lab.run.duration);
    if lab.run.duration == Picos::ZERO {
        // The zero duration is reported already; no start would be early enough.
    } else if workload.start >= lab.run.duration {
        problems.add(
            ProblemKind::TimeOrder,
            place.key("start"),
            format!(
                "the workload `{name}` starts at {}, after the end of the run at {}",
                workload.start, lab.run.duration
            ),
            "start it earlier, or make the run longer",
        );
    } else if workload.start >= end {
        problems.add(
            ProblemKind::TimeOrder,
            place.key("stop"),
            format!("the workload `{name}` stops at {end}, before it starts at {}", workload.start),
            "choose an end after the start",
        );
    }
    validate_sizes(lab, workload, place, problems);
}

fn validate_load(load: &Load, place: Place, problems: &mut Problems) {
    let arrivals = match load {
        Load::Closed { depth, think_time } => {
            problems.number(place.key("depth"), (*depth).into(), 1, 1 << 20);
            times(think_time, place.key("think_time"), Picos::from_secs(3600), problems);
            return;
        }
        Load::Trace(trace) => {
            problems.number(place.key("depth"), trace.depth.unwrap_or(1).into(), 1, 1 << 20);
            if !(1e-6..=1e6).contains(&trace.time_scale) {
                problems.add(
                    ProblemKind::BadNumber,
                    place.key("trace.time_scale"),
                    format!("times cannot be multiplied by {}", trace.time_scale),
                    "choose a factor from 0.000001 to 1000000; 0.5 replays twice as fast",
                );
            }
            return;
        }
        Load::Open(arrivals) => arrivals,
    };
    let place = place.key("arrivals");
    for arrival in arrivals {
        let reason = match *arrival {
            Arrival::Poisson { rate: Rate(rate) } | Arrival::Constant { rate: Rate(rate) } => {
                bad_rate(rate).then(|| format!("requests cannot arrive at {rate}/s"))
            }
            Arrival::Uniform { min, max } => {
                (max == Picos::ZERO || min > max).then(|| format!("requests cannot arrive {min} to {max} apart"))
            }
            Arrival::Normal { mean, .. } => (mean == Picos::ZERO).then(|| "a mean of 0s is too short".to_owned()),
            Arrival::Renewal(ref gaps) => {
                times(gaps, place, Picos::from_secs(3600), problems);
                (gaps.mean() == Picos::ZERO).then(|| "a mean of 0s is too short".to_owned())
            }
            Arrival::ParetoOnOff { rate: Rate(rate), on, off, shape } => {
                for mean in [on, off] {
                    times(&TimeDistribution::Pareto { mean, shape }, place, Picos::from_secs(3600), problems);
                }
                (bad_rate(rate) || on == Picos::ZERO || off == Picos::ZERO || rare(rate, on))
                    .then(|| format!("requests cannot arrive at {rate}/s for {on} and pause for {off}"))
            }
            Arrival::Markov { rates: [Rate(high), Rate(low)], stays } => {
                (bad_rate(high) || bad_rate(low) || stays.contains(&Picos::ZERO) || rare(high, stays[0])).then(|| {
                    format!("requests cannot arrive at {high}/s for {} and at {low}/s for {}", stays[0], stays[1])
                })
            }
            Arrival::OnOff { rate: Rate(rate), on, off } => (bad_rate(rate) || on == Picos::ZERO || off == Picos::ZERO)
                .then(|| format!("requests cannot arrive at {rate}/s for {on} and pause for {off}")),
        };
        if let Some(reason) = reason {
            problems.add(
                ProblemKind::BadNumber,
                place,
                reason,
                "choose rates above 0/s and up to 1G/s, and times above 0s with the shorter one first",
            );
        }
    }
    if arrivals.is_empty() {
        problems.add(
            ProblemKind::BadNumber,
            place,
            "there is no arrival process",
            "name at least one, such as \"poisson 2000/s\"",
        );
    }
}

/// Returns whether most phases of this length have no request, so that the search for the next
/// request would pass too many of them.
fn rare(rate: f64, phase: Picos) -> bool {
    rate * phase.as_secs_f64() < 1e-3
}

/// Checks a distribution of times with means up to `most`.
pub(super) fn times(times: &TimeDistribution, place: Place, most: Picos, problems: &mut Problems) {
    problems.time(place, times.mean(), Picos::ZERO, most);
    let reason = match *times {
        TimeDistribution::Uniform { min, max } if min > max => format!("no time lies between {min} and {max}"),
        TimeDistribution::Gamma { mean, deviation } | TimeDistribution::LogNormal { mean, deviation }
            if deviation.0 / 100 > mean.0 =>
        {
            format!("a deviation of {deviation} is more than 100 times the mean of {mean}")
        }
        TimeDistribution::Pareto { shape, .. } if !(shape > 1.0 && shape <= 100.0) => {
            format!("a Pareto distribution with the shape {shape} has no mean")
        }
        _ => return,
    };
    let remedy = "name the shorter time first, choose deviations of at most 100 means, and shapes above 1 up to 100";
    problems.add(ProblemKind::BadNumber, place, reason, remedy);
}

fn bad_rate(rate: f64) -> bool {
    !(rate > 0.0 && rate <= MAX_RATE)
}

fn validate_sizes(lab: &Lab, workload: &Workload, place: Place, problems: &mut Problems) {
    let is_trace = matches!(workload.load, Load::Trace(_));
    let mut luns: Vec<Lun> = Vec::new();
    for target in workload.named_targets() {
        let storage = lab.storage.get(usize::from(target.storage));
        match lab.lun(target.storage, target.lun) {
            Some(lun) => luns.push(lun),
            None => {
                problems.add(
                    ProblemKind::NoTarget,
                    place.key("targets"),
                    format!("`{}` has no LUN {}", storage.map_or("(no such storage)", |s| s.name.as_str()), target.lun),
                    "name a LUN that exists, or raise `luns`; numbers begin at 0",
                );
                return;
            }
        }
    }
    luns.sort_unstable_by_key(|l| (l.blocks, l.block_bytes));
    luns.dedup();
    let sizes = sizes(&workload.size);
    if sizes.is_empty() || sizes.iter().any(|&(_, weight)| !(0.0..=1e12).contains(&weight)) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("size"),
            "the sizes have no usable weights",
            "give every size a weight of 0 or more, for example { \"4KiB\" = 0.7, \"64KiB\" = 0.3 }",
        );
        return;
    }
    if sizes.iter().all(|&(_, weight)| weight == 0.0) {
        problems.add(
            ProblemKind::BadNumber,
            place.key("size"),
            "all sizes have the weight 0",
            "give at least one size a weight above 0",
        );
    }
    if let SizeDistribution::Uniform { min, max, .. } = workload.size
        && min > max
    {
        problems.add(
            ProblemKind::BadSize,
            place.key("size"),
            format!("no size lies between {min} and {max} bytes"),
            "make `min` at most as large as `max`",
        );
    }
    for lun in luns {
        let block = u64::from(lun.block_bytes.max(1));
        for &(size, _) in sizes.iter().filter(|_| !is_trace) {
            let reason = if size == 0 || size % block != 0 {
                format!("a request of {size} bytes is not a multiple of the block size of {block} bytes")
            } else if size / block > MAX_BLOCKS {
                format!("a request of {size} bytes has more blocks than READ(10) can request")
            } else if size > workload.span_bytes.unwrap_or(u64::MAX).min(lun.blocks.saturating_mul(block)) {
                format!("a request of {size} bytes does not fit into the LUN or `span`")
            } else {
                continue;
            };
            problems.add(
                ProblemKind::BadSize,
                place.key("size"),
                reason,
                format!("choose multiples of {block}B that fit, up to {}B", MAX_BLOCKS * block),
            );
            return;
        }
        let bytes = lun.blocks.saturating_mul(block);
        let aligned = |value: u64| value > 0 && value.is_multiple_of(block) && value <= bytes;
        if let Location::Strided { stride_bytes } = workload.location
            && !aligned(stride_bytes)
        {
            problems.add(
                ProblemKind::BadSize,
                place.key("stride"),
                format!("a stride of {stride_bytes} bytes does not fit a LUN of {bytes} bytes in blocks of {block}"),
                format!("choose a multiple of {block}B up to the size of the LUN"),
            );
            return;
        }
        if let Some(span) = workload.span_bytes
            && !aligned(span)
        {
            problems.add(
                ProblemKind::BadSize,
                place.key("span"),
                format!("a span of {span} bytes does not fit a LUN of {bytes} bytes in blocks of {block}"),
                format!("choose a multiple of {block}B up to the size of the LUN"),
            );
            return;
        }
    }
    // Requests of a trace are split.
    if !is_trace {
        in_flight(lab, workload, &sizes, place, problems);
    }
}

/// Extreme sizes of a distribution with their weights, which decide whether it fits.
fn sizes(size: &SizeDistribution) -> Vec<(u64, f64)> {
    match size {
        SizeDistribution::Fixed(bytes) => vec![(u64::from(*bytes), 1.0)],
        SizeDistribution::Weighted(list) => list.iter().map(|&(bytes, weight)| (u64::from(bytes), weight)).collect(),
        SizeDistribution::Uniform { min, max, step } => {
            vec![(u64::from(*step), 1.0), (u64::from(*min), 1.0), (u64::from(*max), 1.0)]
        }
        // Sizes are rounded up to 512 bytes, so this is the smallest.
        SizeDistribution::Exponential { max, .. } => vec![(512, 1.0), (u64::from(*max), 1.0)],
    }
}

/// Checks that the data frames of the largest request fit into the HBA's limit of frames in flight,
/// because the request could never start otherwise.
fn in_flight(lab: &Lab, workload: &Workload, sizes: &[(u64, f64)], place: Place, problems: &mut Problems) {
    let largest = sizes.iter().map(|&(size, _)| size).max().unwrap_or(0);
    for &host in &workload.hosts {
        let Some(host) = lab.hosts.get(usize::from(host)) else {
            continue;
        };
        for hba in &host.hbas {
            let frames = largest.div_ceil(u64::from(hba.receive_size_bytes.max(1)));
            if let Some(limit) = hba.data_frames_in_flight
                && frames > u64::from(limit)
            {
                problems.add(
                    ProblemKind::BadSize,
                    place.key("size"),
                    format!(
                        "a request of {largest} bytes has {frames} data frames, but an HBA of `{}` allows {limit} in flight, so it can never start",
                        host.name
                    ),
                    "make the requests smaller or raise `data_frames_in_flight` of the host",
                );
                return;
            }
        }
    }
}

/// Checks that a host is a virtual machine, because only these move or stop.
fn virtual_machine(lab: &Lab, host: u16, place: Place, problems: &mut Problems) {
    let host = lab.hosts.get(usize::from(host));
    if host.is_some_and(|host| host.virtual_machine.is_some()) {
        return;
    }
    problems.add(
        ProblemKind::BadHypervisor,
        place.key("vm"),
        format!("`{}` is not a virtual machine", host.map_or("(no such host)", |h| &h.name)),
        "name a host that has the key `on`",
    );
}

/// Checks that a host does not use its own names or addresses as those of another.
fn different_hosts(lab: &Lab, host: u16, of: u16, place: Place, problems: &mut Problems) {
    if host == of {
        problems.add(
            ProblemKind::OwnIdentity,
            place.key("of"),
            format!(
                "`{}` already has its own names and addresses",
                lab.hosts.get(usize::from(host)).map_or("(no such host)", |h| &h.name)
            ),
            "name another host",
        );
    }
}

/// Checks that each virtual machine moves to a different hypervisor.
fn validate_moves(lab: &Lab, problems: &mut Problems) {
    let mut moves: Vec<(Picos, usize, u16, u16)> = Vec::new();
    for (index, fault) in lab.faults.iter().enumerate() {
        if let FaultKind::VmMove { host, to } = fault.kind {
            moves.push((fault.at, index, host, to));
        }
    }
    moves.sort_unstable();
    let mut on: BTreeMap<u16, u16> = BTreeMap::new();
    for (at, index, host, to) in moves {
        let machine = lab.hosts.get(usize::from(host));
        let Some((machine, at_first)) = machine.and_then(|machine| Some((machine, machine.virtual_machine?.on))) else {
            continue;
        };
        if on.insert(host, to).unwrap_or(at_first) == to {
            let name = lab.hosts.get(usize::from(to)).map_or("(no such host)", |host| &host.name);
            problems.add(
                ProblemKind::BadHypervisor,
                Place::of(Section::Fault, index).key("to"),
                format!("`{}` is already on `{name}` when it should move there at {at}", machine.name),
                "name another hypervisor, or leave the fault out",
            );
        }
    }
}

fn validate_fault(lab: &Lab, fault: &Fault, place: Place, down: &mut BTreeSet<u16>, problems: &mut Problems) {
    let end = lab.run.duration;
    if end == Picos::ZERO {
        // The zero duration is reported already; no fault would be early enough.
    } else if fault.at >= end {
        problems.add(
            ProblemKind::FaultOutsideRun,
            place.key("at"),
            format!("the fault occurs at {}, but the run ends at {end}", fault.at),
            "choose an earlier time, or make the run longer",
        );
    } else if let Some(until) = fault.until {
        if until <= fault.at {
            problems.add(
                ProblemKind::TimeOrder,
                place.key("until"),
                format!("the fault ends at {until}, which is not after its start at {}", fault.at),
                "choose an end after the start",
            );
        } else if until > end {
            problems.add(
                ProblemKind::FaultOutsideRun,
                place.key("until"),
                format!("the fault ends at {until}, but the run ends at {end}"),
                "leave out the end of a fault that does not end, or make the run longer",
            );
        }
    }
    if let FaultKind::LostRRdy { link, .. }
    | FaultKind::SlowReceiver { link, .. }
    | FaultKind::WithheldCredits { link, .. } = fault.kind
        && let Some(link) = lab.links.get(usize::from(link)).filter(|link| link.loop_end().is_some())
    {
        problems.add(
            ProblemKind::BadLoop,
            place.key("link"),
            format!("the link `{}` of a loop has no credits that a fault could change", link.name),
            "name a link to a switch, or use \"frame-loss\" or \"link-down\"",
        );
    }
    match fault.kind {
        FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => {
            if fault.until.is_none() {
                down.insert(link);
            }
        }
        FaultKind::LinkUp { link } => {
            if !down.remove(&link) {
                let name = lab.links.get(usize::from(link)).map_or("(no such link)", |l| &l.name);
                problems.add(
                    ProblemKind::LinkNotDown,
                    place,
                    format!("the link `{name}` comes up at {} but did not go down before", fault.at),
                    "add a fault of the kind \"link-down\" at an earlier time, or leave this one out",
                );
            }
        }
        FaultKind::FrameLoss { probability, .. }
        | FaultKind::CrcErrors { probability, .. }
        | FaultKind::LostRRdy { probability, .. } => {
            problems.share(place.key("probability"), probability);
        }
        FaultKind::SlowReceiver { delay, .. } => {
            problems.time(place.key("delay"), delay, Picos(1), Picos::from_secs(3600));
        }
        FaultKind::VmMove { host, to } => {
            virtual_machine(lab, host, place, problems);
            let name = lab.hosts.get(usize::from(host)).map_or("(no such host)", |h| &h.name);
            super::nodes::hypervisor(lab, name, to, place.key("to"), problems);
        }
        FaultKind::VmStop { host } => virtual_machine(lab, host, place, problems),
        FaultKind::DuplicateName { host, of } => {
            virtual_machine(lab, host, place, problems);
            different_hosts(lab, host, of, place, problems);
        }
        FaultKind::ForeignAddress { host, of } => different_hosts(lab, host, of, place, problems),
        FaultKind::DiskFailure { storage, member, .. } => disk_failure(lab, storage, member, place, problems),
        FaultKind::LatentError { storage, member, block, .. } => {
            disk_failure(lab, storage, member, place, problems);
            let device = lab.storage.get(usize::from(storage)).and_then(|storage| storage.device());
            if let Some((model, blocks)) = device.filter(|(_, blocks)| block >= *blocks) {
                let reason = format!("a {model} has no block {block}");
                problems.add(
                    ProblemKind::NoDisk,
                    place.key("block"),
                    reason,
                    format!("choose 0 to {}", blocks.saturating_sub(1)),
                );
            }
        }
        FaultKind::CacheBattery { storage } => {
            let storage = lab.storage.get(usize::from(storage));
            if storage.is_none_or(|storage| storage.device().is_none() || storage.backstore.cache.is_none()) {
                problems.add(
                    ProblemKind::NoDisk,
                    place.key("storage"),
                    "the storage system has no cache with a battery",
                    "add `controller_cache` to it, or leave this fault out",
                );
            }
        }
        FaultKind::ControllerFailure { storage, controller } => {
            let count = lab.storage.get(usize::from(storage)).map_or(0, |storage| storage.controllers.count);
            if controller >= count {
                problems.add(
                    ProblemKind::NoDisk,
                    place.key("controller"),
                    format!("the storage system has no controller {controller}"),
                    match count {
                        0 | 1 => "choose 0, or add `controllers` to it".to_owned(),
                        _ => format!("choose 0 to {}, or add controllers to it", count - 1),
                    },
                );
            }
        }
        FaultKind::Ethernet(kind) => super::ethernet::fault(lab, fault, kind, place, problems),
        FaultKind::Infiniband(kind) => super::infiniband::fault(lab, fault, kind, place, problems),
        FaultKind::SwitchReset { .. }
        | FaultKind::WithheldCredits { .. }
        | FaultKind::PowerFailure { .. }
        | FaultKind::OutOfBand(_) => {}
    }
}

fn disk_failure(lab: &Lab, storage: u16, member: u32, place: Place, problems: &mut Problems) {
    let Some(storage) = lab.storage.get(usize::from(storage)) else { return };
    if storage.device().is_none() {
        let reason = format!("`{}` has no disks that could fail", storage.name);
        let remedy = "add `disk` to the storage system, or leave this fault out";
        problems.add(ProblemKind::NoDisk, place.key("lun"), reason, remedy);
        return;
    }
    let members = storage.backstore.raid.map_or(1, |raid| raid.members);
    if member >= members {
        let reason = format!("the LUNs of `{}` have no disk {member}", storage.name);
        let remedy = format!("choose 0 to {}", members - 1);
        problems.add(ProblemKind::NoDisk, place.key("member"), reason, remedy);
    }
}
