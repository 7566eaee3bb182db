//! Random hosts, storage systems, their links, and zones.

use super::Dice;
use super::switches::Fabrics;
use super::traffic::largest;
use sanloom_fc::config::{
    Bus, Duplex, ErrorRecovery, Hba, Host, HostProcessor, Interrupt, IoQueue, IoScheduler, Link, Lun, Multipath, Node,
    PathPolicy, Picos, Service, Storage, StoragePort, Zone, ZoneDefault, ZoneMember,
};
use sanloom_fc::san::Lab;
use sanloom_wire::{Wwnn, Wwpn};

/// Requirements for the nodes.
pub(super) struct Plan {
    /// Every node has a port in both fabrics, and there are no zones.
    pub dual: bool,
}

/// Features of hosts and storage systems used by a lab.
struct Swarm {
    policy: Vec<(PathPolicy, u64)>,
    scheduler: Vec<(IoScheduler, u64)>,
    merge: bool,
    interrupts: bool,
    bus: bool,
    cpu: bool,
    refuse: bool,
    small_frames: bool,
}

impl Plan {
    pub(super) fn draw(&self, dice: &mut Dice, lab: &mut Lab, fabrics: &Fabrics) {
        let swarm = Swarm {
            policy: dice.swarm(&[
                PathPolicy::RoundRobin,
                PathPolicy::LeastQueue,
                PathPolicy::ServiceTime,
                PathPolicy::Failover,
            ]),
            scheduler: dice.swarm(&[IoScheduler::Fifo, IoScheduler::Elevator]),
            merge: dice.chance(1, 3),
            interrupts: dice.chance(1, 3),
            bus: dice.chance(1, 4),
            cpu: dice.chance(1, 3),
            refuse: dice.chance(1, 4),
            small_frames: dice.chance(1, 4),
        };
        for number in 0..dice.range(1, 4) {
            let hbas = if self.dual { 2 } else { dice.range(1, 3) };
            lab.hosts.push(swarm.host(dice, number, hbas));
            for port in 0..hbas as u16 {
                self.attach(dice, lab, fabrics, Node::Host(number as u16), port);
            }
        }
        for number in 0..dice.range(1, 3) {
            let ports = if self.dual { 2 } else { dice.range(1, 3) };
            lab.storage.push(swarm.storage(dice, number, ports));
            for port in 0..ports as u16 {
                self.attach(dice, lab, fabrics, Node::Storage(number as u16), port);
            }
        }
        if !self.dual && dice.chance(1, 2) {
            zones(dice, lab);
        }
    }

    /// Links a port to a switch of its fabric, or leaves it dark. The first ports are always
    /// linked.
    fn attach(&self, dice: &mut Dice, lab: &mut Lab, fabrics: &Fabrics, node: Node, port: u16) {
        if !self.dual && port > 0 && dice.chance(1, 12) {
            return;
        }
        let fabric = usize::from(port) % fabrics.switches.len();
        let switch = dice.pick(&fabrics.switches[fabric]);
        fabrics.attach(dice, lab, node, port, switch);
    }
}

impl Swarm {
    fn host(&self, dice: &mut Dice, number: u64, hbas: u64) -> Host {
        let base = 0x1000_0000_0000_0000 + (number << 8);
        let hba = |dice: &mut Dice, port| Hba {
            wwpn: Wwpn(base + 1 + port),
            receive_size_bytes: self.receive_size(dice),
            data_frames_in_flight: None,
        };
        let fast_io_fail = Picos::from_us(dice.spread(500, 50_000));
        Host {
            name: format!("host{number}"),
            wwnn: Wwnn(base),
            hbas: (0..hbas).map(|port| hba(dice, port)).collect(),
            queue: IoQueue {
                max_outstanding: dice.spread(1, 64) as u32,
                max_waiting: self.refuse.then(|| dice.spread(1, 32) as u32),
                scheduler: dice.weighted(&self.scheduler),
                merge_up_to_bytes: if self.merge { dice.range(1, 256) as u32 * 512 } else { 0 },
            },
            processor: HostProcessor::default(),
            cpu_per_io: Picos::from_ns(if self.cpu { dice.spread(100, 50_000) } else { 0 }),
            guest_cpu_per_io: Picos::ZERO,
            interrupt: self.interrupts.then(|| Interrupt {
                cost: Picos::from_ns(dice.range(0, 10_000)),
                max_frames: dice.range(1, 16) as u32,
                max_wait: Picos::from_us(dice.range(0, 500)),
                min_wait: None,
            }),
            bus: self.bus.then(|| Bus {
                bits: dice.pick(&[32, 64, 128]),
                clock_hz: dice.pick(&[33_000_000, 66_000_000, 133_000_000, 1_000_000_000]),
                shared_by: dice.range(1, 3) as u16,
                duplex: dice.pick(&[Duplex::Half, Duplex::Full]),
            }),
            multipath: Multipath {
                policy: dice.weighted(&self.policy),
                fast_io_fail,
                dev_loss: Picos(fast_io_fail.0 + Picos::from_us(dice.range(0, 200_000)).0),
                polling_interval: Picos::from_us(dice.spread(100, 100_000)),
                no_path_retry: Some(dice.range(0, 4) as u32),
            },
            command_timeout: Picos::from_us(dice.spread(5_000, 300_000)),
            retries: dice.range(0, 6) as u8,
            recovery: ErrorRecovery {
                abort_timeout: Picos::from_us(dice.spread(5_000, 300_000)),
                reset_timeout: Picos::from_us(dice.spread(5_000, 300_000)),
                eh_deadline: dice.chance(1, 2).then(|| Picos::from_us(dice.spread(1_000, 1_000_000))),
                queue_ramp_up: Picos::from_us(dice.spread(100, 300_000)),
            },
            discovery: true,
            virtual_machine: None,
            iscsi: sanloom_fc::config::IscsiHost::of("host"),
            srp: Default::default(),
        }
    }

    fn storage(&self, dice: &mut Dice, number: u64, ports: u64) -> Storage {
        let base = 0x5000_0000_0000_0000 + (number << 8);
        let port = |dice: &mut Dice, port| StoragePort {
            wwpn: Wwpn(base + 1 + port),
            receive_size_bytes: self.receive_size(dice),
            frame_overhead: Picos::ZERO,
            sequence_overhead: Picos::from_ns(if dice.chance(1, 4) { dice.range(1, 5_000) } else { 0 }),
        };
        let block_bytes = if dice.chance(3, 4) { 512 } else { 4096 };
        Storage {
            name: format!("storage{number}"),
            wwnn: Wwnn(base),
            ports: (0..ports).map(|number| port(dice, number)).collect(),
            service: Service {
                time: Picos::from_us(dice.spread(5, 300)).into(),
                servers: dice.range(1, 4) as u32,
                max_queued: if self.refuse { dice.spread(1, 16) as u32 } else { 4096 },
                media_latency: Picos::from_us(if dice.chance(1, 2) { 0 } else { dice.range(1, 300) }),
            },
            luns: (0..dice.range(1, 4)).map(|_| Lun { blocks: dice.range(4096, 65_536), block_bytes }).collect(),
            disk: None,
            ssd: None,
            backstore: Default::default(),
            protection: Default::default(),
            failures: Default::default(),
            controllers: Default::default(),
            max_burst_bytes: 512 * dice.spread(1, 256) as u32,
            interrupt: self.interrupts.then_some(Interrupt {
                cost: Picos::from_us(2),
                max_frames: 4,
                max_wait: Picos::from_us(50),
                min_wait: None,
            }),
            bus: self.bus.then_some(Bus { bits: 64, clock_hz: 133_000_000, shared_by: 2, duplex: Duplex::Half }),
        }
    }

    fn receive_size(&self, dice: &mut Dice) -> u16 {
        if self.small_frames { 4 * dice.range(64, 528) as u16 } else { dice.pick(&[2048, 2112]) }
    }
}

/// Raises the timers for long links. With one credit, each frame takes a round trip, and each burst
/// of a write takes another one over the whole path. A command needs time for the sixteen frames
/// that one block may require and for all bursts of the largest request, and a switch must hold
/// frames for as long. It also needs time for the data of all commands of all hosts, which may
/// share one slow link. Otherwise no request could ever complete: the host would abort each attempt
/// and try again when its path checker finds the path good. If its aborts are late too, it resets
/// the LUN, and thereby ends the commands of all other hosts again and again. The other timers keep
/// their ratios.
pub(super) fn allow_for_distance(lab: &mut Lab) {
    let round_trip = |link: &Link| 2 * (link.propagation.0 + link.rate.time_of(2_200).0);
    let longest = lab.links.iter().map(round_trip).max().unwrap_or(0);
    // A virtual channel may have a single credit. All buffers of the links before it may then be
    // full of frames for it.
    let buffers = lab.links.iter().flat_map(|link| &link.ends).map(|end| u64::from(end.bb_credit)).max().unwrap_or(0);
    let behind_channel = if lab.links.iter().any(|link| lab.has_channels(link)) { 4 * buffers * longest } else { 0 };
    let frame_time = |link: &Link| {
        let of_link = link.ends.iter().map(|end| u64::from(end.bb_credit)).min().unwrap_or(1);
        let credits = if lab.has_channels(link) { 1 } else { of_link };
        (round_trip(link) / credits.max(1)).max(link.rate.time_of(2_200).0)
    };
    let slowest = lab.links.iter().map(frame_time).max().unwrap_or(0);
    // All buffers of a switch may be full of frames for its slowest link. If the last frame of a
    // large read waited for longer than the hold time, each attempt would lose it.
    let buffers_of = |switch: usize| {
        let ends = lab.links.iter().flat_map(|link| &link.ends);
        ends.filter(|end| end.node == Node::Switch(switch as u16)).map(|end| u64::from(end.bb_credit)).sum::<u64>()
    };
    let behind_switch = slowest * (0..lab.switches.len()).map(buffers_of).max().unwrap_or(0);
    let sizes = lab.workloads.iter().map(|workload| u64::from(largest(&workload.size))).max().unwrap_or(0);
    let storage_ports = lab.storage.iter().flat_map(|storage| &storage.ports).map(|port| port.receive_size_bytes);
    let smallest_of_storage = storage_ports.min().unwrap_or(2_112);
    let data_of = |host: &Host| {
        let smallest = host.hbas.iter().map(|hba| hba.receive_size_bytes).min().unwrap_or(2_112);
        let frame_bytes = u64::from(smallest.min(smallest_of_storage));
        let frames = sizes.max(u64::from(host.queue.merge_up_to_bytes)).div_ceil(frame_bytes);
        u64::from(host.queue.max_outstanding) * frames * slowest
    };
    let data: u64 = lab.hosts.iter().map(data_of).sum();
    let merged = lab.hosts.iter().map(|host| u64::from(host.queue.merge_up_to_bytes)).max().unwrap_or(0);
    let smallest_burst = lab.storage.iter().map(|storage| u64::from(storage.max_burst_bytes)).min().unwrap_or(512);
    let bursts = sizes.max(merged).div_ceil(smallest_burst.max(1)).max(8);
    let least = Picos::from_ms(5).0 + (16 + bursts * 7) * longest + 2 * data;
    for host in &mut lab.hosts {
        host.command_timeout.0 = host.command_timeout.0.max(least);
    }
    let timers = &mut lab.timers;
    timers.hold_time.0 = timers.hold_time.0.max(20 * longest).max(behind_channel).max(behind_switch);
    timers.e_d_tov.0 = timers.e_d_tov.0.max(timers.hold_time.0 * 3 / 2);
    // Login requests wait in the port behind the data of all commands, and must be answered within
    // 2 R_A_TOV.
    timers.r_a_tov.0 = timers.r_a_tov.0.max(2 * timers.e_d_tov.0 + Picos::from_ms(1).0).max(1_000 * longest);
}

/// Puts each HBA into a zone with some of the storage ports. The first HBA and the first storage
/// port always share a zone.
fn zones(dice: &mut Dice, lab: &mut Lab) {
    if dice.chance(1, 2) {
        lab.zoning.default = ZoneDefault::Closed;
    } else if lab.hosts.len().is_multiple_of(2) {
        lab.zoning.default = ZoneDefault::Open;
    }
    let named = ZoneMember::PortName;
    let ports: Vec<ZoneMember> = lab.storage.iter().flat_map(|s| s.ports.iter().map(|port| named(port.wwpn))).collect();
    let hbas: Vec<ZoneMember> = lab.hosts.iter().flat_map(|h| h.hbas.iter().map(|hba| named(hba.wwpn))).collect();
    let share = dice.range(1, 4);
    for (number, &hba) in hbas.iter().enumerate() {
        let mut members = vec![hba];
        members.extend(
            ports.iter().enumerate().filter(|&(port, _)| number + port == 0 || dice.chance(share, 4)).map(|p| p.1),
        );
        if members.len() > 1 {
            lab.zoning.zones.push(Zone { name: format!("zone{number}"), members, principals: Vec::new() });
        }
    }
    if dice.chance(1, 4) {
        lab.zoning.zones.push(Zone { name: "all-hosts".to_owned(), members: hbas, principals: Vec::new() });
    }
}
