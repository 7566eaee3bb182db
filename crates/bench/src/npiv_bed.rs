//! The test bed of the NPIV paper, figure 7. Generator ports and a storage node are attached to one
//! switch. Each virtual port has a zone with itself and the storage. The command sequence of figure
//! 6 runs for one virtual port after the other.
//!
//! A card logs in only when its turn comes. The ports of later cards therefore take no part in the
//! comparisons of earlier ones, as in the document's counts.

use sanloom_fc::config::{
    Arbitration, CrossbarLimits, ErrorRecovery, Forwarding, Hba, Host, HostProcessor, IoQueue, IoScheduler, IslChoice,
    IslHash, LineRate, Link, LinkEnd, Lun, Multipath, Node, PathPolicy, Picos, Processor, Queueing, Service, Storage,
    StoragePort, Switch, Timers, VirtualMachine, Zone, ZoneDefault, ZoneMember, Zoning,
};
use sanloom_fc::nport::{FabricState, LoginScript};
use sanloom_fc::san::{Lab, Run};
use sanloom_fc::switch::{HardZoning, LoginLimits, NameLookup, Policy};
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_scsi::random::SplitMix64;
use sanloom_sim::world::{CommandLog, CommandRecord, World};
use sanloom_wire::{Wwnn, Wwpn};
use std::sync::Arc;

/// Number of virtual ports of each card in the NPIV paper, and the limit of its switch for a port.
pub const PER_PORT: u16 = 255;
/// Number of virtual ports that the switch of the NPIV paper supports.
pub const PER_SWITCH: u32 = 1_000;
/// Longest pause before a sequence in repetitions, in ps: the trigger of the cards is not exact.
const MAX_PAUSE_PS: u64 = 1_000_000_000;
/// Time after which an unfinished sequence is abandoned, in ps.
const TIME_LIMIT_PS: u64 = 60_000_000_000_000;
/// Interval of the checks whether a sequence has ended, in ps.
const STEP_PS: u64 = 1_000_000_000;
/// Switch port of the storage; the cards use the ports after it.
const STORAGE_PORT: u16 = 0;

/// Parameters of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bed {
    /// Computation of the permissions of hard zoning by the switch.
    pub hard_zoning: HardZoning,
    /// Lookup by which the switch detects port names that are in use.
    pub name_lookup: NameLookup,
    /// Processing costs of requests.
    pub processor: Processor,
    /// Number of cards.
    pub cards: u16,
    /// Virtual ports per card, at most 255.
    pub per_port: u16,
    /// Number of virtual ports that the switch accepts in all.
    pub per_switch: u32,
    /// Number of the repetition, which seeds a pause before each sequence; repetition 0 has no
    /// pauses.
    pub repetition: u64,
    /// True if all cards log in one virtual port at the same time, then the next. Otherwise, each
    /// card logs in all of its ports before the next card starts.
    pub in_step: bool,
}

/// The command sequence of one virtual port, from FDISC to the last step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// Number of the card, from 1.
    pub card: u16,
    /// Number of the virtual port, from 1.
    pub number: u16,
    /// Answered commands, in order.
    pub commands: Vec<CommandRecord>,
    /// Comparisons between addresses of two ports at the accepted FDISC, without those with the
    /// storage.
    pub comparisons: u64,
    /// Comparisons with the storage at the accepted FDISC.
    pub storage_comparisons: u64,
    /// Requests without a response in time.
    pub unanswered: u64,
    /// True if the sequence completed; otherwise it was abandoned after one minute.
    pub complete: bool,
}

impl Sequence {
    /// True if the switch rejected the last FDISC.
    pub fn is_rejected(&self) -> bool {
        self.commands.iter().rev().find(|record| record.command == "FDISC").is_some_and(|record| !record.accepted)
    }

    /// Comparisons between addresses of two ports at the accepted FDISC, with those with the
    /// storage.
    pub fn all_comparisons(&self) -> u64 {
        self.comparisons + self.storage_comparisons
    }

    /// Returns the time from the last accepted FDISC to its response, in ps.
    pub fn fdisc_ps(&self) -> Option<u64> {
        self.fdisc().map(|record| record.latency_ps)
    }

    fn fdisc(&self) -> Option<&CommandRecord> {
        self.commands.iter().rev().find(|record| record.command == "FDISC" && record.accepted)
    }
}

impl Bed {
    /// Number of physical ports that are logged in when the switch accepts its last virtual port:
    /// the storage, and the cards that have started by then.
    fn physical_logins(&self) -> u32 {
        let started = match self.in_step {
            true => self.cards.into(),
            false => self.per_switch.div_ceil(self.per_port.max(1).into()).min(self.cards.into()),
        };
        started + 1
    }

    /// Runs the sequences. The run ends at the first sequence that does not complete.
    pub fn run(&self) -> Vec<Sequence> {
        let mut world = World::new(Arc::new(self.lab()));
        world.control.command_log = Some(CommandLog::default());
        world.bring_up(self.cards);
        let until = world.net.now() + 1_000 * STEP_PS;
        world.run_until(until);
        let cards: Vec<u16> = (0..self.cards).collect();
        let waves: Vec<&[u16]> = if self.in_step { vec![&cards] } else { cards.chunks(1).collect() };
        let mut sequences = Vec::new();
        let mut chance = SplitMix64(self.repetition);
        for wave in waves {
            for &card in wave {
                world.bring_up(card);
                self.wait(&mut world, &[card]);
            }
            for number in 1..=self.per_port {
                let done = self.sequence(&mut world, wave, number, &mut chance);
                let complete = done.iter().all(|sequence| sequence.complete);
                sequences.extend(done);
                if !complete {
                    return sequences;
                }
            }
        }
        sequences
    }

    /// Runs one sequence on each card of a wave at the same time.
    fn sequence(&self, world: &mut World, wave: &[u16], number: u16, chance: &mut SplitMix64) -> Vec<Sequence> {
        let logged = world.control.command_log.as_ref().map_or(0, |log| log.records().len());
        let with_storage = world.control.switches[0].machine.services().comparisons_with(STORAGE_PORT);
        let hosts: Vec<u16> = wave.iter().map(|&card| self.machine(card, number)).collect();
        let pause = |chance: &mut SplitMix64| if self.repetition == 0 { 0 } else { chance.below(MAX_PAUSE_PS) };
        let mut starts: Vec<(u64, u16)> = hosts.iter().map(|&host| (pause(chance), host)).collect();
        starts.sort_unstable();
        let now = world.net.now();
        for (pause, host) in starts {
            if pause > 0 {
                world.run_until(now + pause);
            }
            world.create_machine(host);
        }
        self.wait(world, &hosts);
        let with_storage = world.control.switches[0].machine.services().comparisons_with(STORAGE_PORT) - with_storage;
        let records = world.control.command_log.as_ref().map_or(&[][..], |log| &log.records()[logged..]);
        let sequence = |(&card, &host): (&u16, &u16)| {
            let of_card = records.iter().filter(|record| record.port == STORAGE_PORT + 1 + card);
            let mut sequence = Sequence {
                card: card + 1,
                number,
                commands: of_card.cloned().collect(),
                comparisons: 0,
                // All cards of a wave have the same number of addresses.
                storage_comparisons: with_storage / wave.len() as u64,
                unanswered: login_of(world, host).counters().timeouts,
                complete: login_of(world, host).state() == FabricState::Ready,
            };
            let compared = sequence.fdisc().map_or(0, |record| record.work.comparisons);
            sequence.comparisons = compared.saturating_sub(sequence.storage_comparisons);
            sequence
        };
        wave.iter().zip(&hosts).map(sequence).collect()
    }

    /// Runs until the ports of all these hosts are ready, or the time limit is reached.
    fn wait(&self, world: &mut World, hosts: &[u16]) {
        let limit = world.net.now() + TIME_LIMIT_PS;
        let ready = |world: &World| hosts.iter().all(|&host| login_of(world, host).state() == FabricState::Ready);
        while !ready(world) && world.net.now() < limit {
            let until = world.net.now() + STEP_PS;
            world.run_until(until);
        }
    }

    /// Returns the index of the host that represents a virtual port.
    fn machine(&self, card: u16, number: u16) -> u16 {
        self.cards + card * self.per_port + number - 1
    }

    fn lab(&self) -> Lab {
        let mut hosts: Vec<Host> = (0..self.cards).map(|card| host(card, None)).collect();
        for card in 0..self.cards {
            for number in 0..self.per_port {
                // The lab never creates the machine, because the bed does.
                let start = Some(Picos(u64::MAX));
                let vm =
                    VirtualMachine { on: card, number, start, boot: Picos::ZERO.into(), script: LoginScript::Npiv };
                hosts.push(host(hosts.len() as u16, Some(vm)));
            }
        }
        let zone = |host: &Host| {
            let members = vec![ZoneMember::PortName(host.hbas[0].wwpn), ZoneMember::PortName(STORAGE_NAME)];
            Zone { name: host.name.clone(), members, principals: Vec::new() }
        };
        let zones = hosts.iter().filter(|host| host.virtual_machine.is_some()).map(zone).collect();
        let zoning = Zoning { zones, default: ZoneDefault::Closed };
        let link = |node, port| Link {
            name: format!("link{port}"),
            ends: [
                LinkEnd { node, port: 0, bb_credit: 16, bb_sc_n: 0 },
                LinkEnd { node: Node::Switch(0), port, bb_credit: 16, bb_sc_n: 0 },
            ],
            rate: LineRate::Fc2,
            propagation: Picos::from_ns(50),
            bundle: None,
            fcoe: None,
        };
        let mut links: Vec<Link> =
            (0..self.cards).map(|card| link(Node::Host(card), STORAGE_PORT + 1 + card)).collect();
        links.push(link(Node::Storage(0), STORAGE_PORT));
        Lab {
            name: "npiv-bed".to_owned(),
            description: String::new(),
            run: Run {
                duration: Picos::SECOND,
                warmup: Picos::ZERO,
                seed: 1,
                sample_interval: Picos::SECOND,
                stop_issuing: None,
                until: None,
            },
            timers: Timers::default(),
            switches: vec![Switch {
                name: "switch".to_owned(),
                wwn: Switch::made_up_wwn(0),
                domain: 1,
                ports: STORAGE_PORT + 1 + self.cards,
                rates: [None; 2],
                forwarding: Forwarding::CutThrough,
                queueing: Queueing::Fifo,
                arbitration: Arbitration::RoundRobin,
                latency: Picos::from_ns(700),
                crossbar: CrossbarLimits::default(),
                virtual_channels: None,
                quarantine: None,
                isl_choice: IslChoice::Exchange,
                isl_hash: IslHash::default(),
                processor: Some(self.processor),
                policy: Policy {
                    hard_zoning: self.hard_zoning,
                    name_lookup: self.name_lookup,
                    limits: LoginLimits {
                        // The limits count the physical ports, too: that of the card, of all cards,
                        // and of the storage.
                        per_port: u32::from(PER_PORT) + 1,
                        per_switch: self.per_switch.saturating_add(self.physical_logins()),
                    },
                    ..Policy::default()
                },
                joining: Default::default(),
                virtual_fabric: None,
            }],
            hosts,
            storage: vec![storage()],
            loops: Vec::new(),
            links,
            ethernet_switches: Vec::new(),
            ethernet_links: Vec::new(),
            infiniband: Default::default(),
            zone_database: ZoneDatabase::of_zoning(&zoning, "bed"),
            zone_policy: Default::default(),
            zone_fabrics: Default::default(),
            zone_priorities: Default::default(),
            zoning,
            workloads: Vec::new(),
            faults: Vec::new(),
            changes: Vec::new(),
            expectations: Vec::new(),
            live: Default::default(),
        }
    }
}

fn login_of(world: &World, host: u16) -> &sanloom_fc::nport::NPort {
    &world.nports.nodes[usize::from(world.hosts.nodes[usize::from(host)].nports[0])].login
}

const STORAGE_NAME: Wwpn = Wwpn(0x5000_0000_0000_0001);

fn host(number: u16, virtual_machine: Option<VirtualMachine>) -> Host {
    let base = 0x1000_0000_0000_0000 + (u64::from(number) << 8);
    Host {
        name: format!("port{number}"),
        wwnn: Wwnn(base),
        hbas: vec![Hba { wwpn: Wwpn(base + 1), receive_size_bytes: 2048, data_frames_in_flight: None }],
        queue: IoQueue { max_outstanding: 1, max_waiting: None, scheduler: IoScheduler::Fifo, merge_up_to_bytes: 0 },
        processor: HostProcessor::default(),
        cpu_per_io: Picos::ZERO,
        guest_cpu_per_io: Picos::ZERO,
        interrupt: None,
        bus: None,
        multipath: Multipath {
            policy: PathPolicy::RoundRobin,
            fast_io_fail: Picos::SECOND,
            dev_loss: Picos::SECOND,
            polling_interval: Picos::SECOND,
            no_path_retry: Some(1),
        },
        command_timeout: Picos::SECOND,
        retries: 0,
        recovery: ErrorRecovery::default(),
        discovery: false,
        virtual_machine,
        iscsi: sanloom_fc::config::IscsiHost::of("port"),
        srp: Default::default(),
    }
}

fn storage() -> Storage {
    Storage {
        name: "storage".to_owned(),
        wwnn: Wwnn(0x5000_0000_0000_0000),
        ports: vec![StoragePort {
            wwpn: STORAGE_NAME,
            receive_size_bytes: 2048,
            sequence_overhead: Picos::ZERO,
            frame_overhead: Picos::ZERO,
        }],
        service: Service { time: Picos::from_us(10).into(), servers: 1, max_queued: 64, media_latency: Picos::ZERO },
        luns: vec![Lun { blocks: 1024, block_bytes: 512 }],
        disk: None,
        ssd: None,
        backstore: Default::default(),
        protection: Default::default(),
        failures: Default::default(),
        controllers: Default::default(),
        max_burst_bytes: 65_536,
        interrupt: None,
        bus: None,
    }
}
