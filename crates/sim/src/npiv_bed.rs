//! The test bed of document 000, figure 7: generator ports and a storage node at one switch, a zone for each virtual port
//! that holds it and the storage, and the sequence of commands of figure 6 for one virtual port after the other.
//!
//! A card logs in when its turn comes, so the ports of later cards take no part in the comparisons of earlier ones, as in
//! the document's counts.

use crate::world::{CommandLog, CommandRecord, World};
use sanloom_core::config::{
    Arbitration, Forwarding, Hba, Host, IoQueue, IoScheduler, IslChoice, Lab, LineRate, Link, LinkEnd, Lun, Multipath,
    Node, PathPolicy, Picos, Processor, Queueing, Run, Service, Storage, StoragePort, Switch, Timers, VirtualMachine,
    Zone, ZoneDefault, ZoneMember, Zoning,
};
use sanloom_core::nport::{FabricState, LoginScript};
use sanloom_core::switch::{HardZoning, NameLookup, Policy};
use sanloom_core::zoning::ZoneDatabase;
use sanloom_wire::{Wwnn, Wwpn};
use std::sync::Arc;

/// Virtual ports of each card in document 000.
pub const PER_PORT: u16 = 255;
/// A sequence that is not over after this time, in ps, is given up.
const PATIENCE_PS: u64 = 60_000_000_000_000;
/// The bed looks this often whether a sequence is over, in ps.
const STEP_PS: u64 = 1_000_000_000;
/// Switch port of the storage; the cards are at the ports behind it.
const STORAGE_PORT: u16 = 0;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bed {
    /// How the switch works out the permissions of hard zoning.
    pub hard_zoning: HardZoning,
    /// How it finds out whether a port name is in use.
    pub name_lookup: NameLookup,
    /// What requests cost it.
    pub processor: Processor,
    /// Cards.
    pub cards: u16,
    /// Virtual ports of each, at most 255.
    pub per_port: u16,
    /// The cards take turns for each virtual port, in step; otherwise one card does all of its own before the next begins.
    pub in_step: bool,
}

/// One virtual port, from FDISC to the last step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// The card, from 1.
    pub card: u16,
    /// The virtual port, from 1.
    pub number: u16,
    /// Its commands that were answered, in order.
    pub commands: Vec<CommandRecord>,
    /// Comparisons between addresses of two ports at its accepted FDISC, those with the storage left out.
    pub comparisons: u64,
    /// Those with the storage.
    pub storage_comparisons: u64,
    /// Requests that were not answered in time.
    pub unanswered: u64,
    /// It is over; otherwise it was given up after a minute.
    pub complete: bool,
}

impl Sequence {
    /// Time from the last FDISC that was accepted to its answer, in ps.
    pub fn fdisc_ps(&self) -> Option<u64> {
        self.fdisc().map(|record| record.latency_ps)
    }

    fn fdisc(&self) -> Option<&CommandRecord> {
        self.commands.iter().rev().find(|record| record.command == "FDISC" && record.accepted)
    }
}

impl Bed {
    /// Runs the sequences. A card whose sequence does not come to an end does no more, and no card after it.
    pub fn run(&self) -> Vec<Sequence> {
        let mut world = World::new(Arc::new(self.lab()));
        world.command_log = Some(CommandLog::default());
        world.bring_up(self.cards);
        let until = world.net.now() + 1_000 * STEP_PS;
        world.run_until(until);
        let cards: Vec<u16> = (0..self.cards).collect();
        let waves: Vec<&[u16]> = if self.in_step { vec![&cards] } else { cards.chunks(1).collect() };
        let mut sequences = Vec::new();
        for wave in waves {
            for &card in wave {
                world.bring_up(card);
                self.wait(&mut world, &[card]);
            }
            for number in 1..=self.per_port {
                let done = self.sequence(&mut world, wave, number);
                let complete = done.iter().all(|sequence| sequence.complete);
                sequences.extend(done);
                if !complete {
                    return sequences;
                }
            }
        }
        sequences
    }

    /// One sequence on each card of a wave.
    fn sequence(&self, world: &mut World, wave: &[u16], number: u16) -> Vec<Sequence> {
        let logged = world.command_log.as_ref().map_or(0, |log| log.records().len());
        let with_storage = world.switches[0].machine.services().comparisons_with(STORAGE_PORT);
        let hosts: Vec<u16> = wave.iter().map(|&card| self.machine(card, number)).collect();
        hosts.iter().for_each(|&host| world.create_machine(host));
        self.wait(world, &hosts);
        let with_storage = world.switches[0].machine.services().comparisons_with(STORAGE_PORT) - with_storage;
        let records = world.command_log.as_ref().map_or(&[][..], |log| &log.records()[logged..]);
        let sequence = |(&card, &host): (&u16, &u16)| {
            let of_card = records.iter().filter(|record| record.port == STORAGE_PORT + 1 + card);
            let mut sequence = Sequence {
                card: card + 1,
                number,
                commands: of_card.cloned().collect(),
                comparisons: 0,
                // Every card of a wave has as many addresses as the others.
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

    /// Until the ports of all these hosts are ready, or patience is over.
    fn wait(&self, world: &mut World, hosts: &[u16]) {
        let limit = world.net.now() + PATIENCE_PS;
        let ready = |world: &World| hosts.iter().all(|&host| login_of(world, host).state() == FabricState::Ready);
        while !ready(world) && world.net.now() < limit {
            let until = world.net.now() + STEP_PS;
            world.run_until(until);
        }
    }

    /// Index of the host that is a virtual port.
    fn machine(&self, card: u16, number: u16) -> u16 {
        self.cards + card * self.per_port + number - 1
    }

    fn lab(&self) -> Lab {
        let mut hosts: Vec<Host> = (0..self.cards).map(|card| host(card, None)).collect();
        for card in 0..self.cards {
            for number in 0..self.per_port {
                // Never created by itself: the bed does that.
                let start = Some(Picos(u64::MAX));
                let vm = VirtualMachine { on: card, number, start, script: LoginScript::Npiv };
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
            ends: [LinkEnd { node, port: 0, bb_credit: 16 }, LinkEnd { node: Node::Switch(0), port, bb_credit: 16 }],
            rate: LineRate::Fc2,
            propagation: Picos::from_ns(50),
            bundle: None,
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
            },
            timers: Timers::default(),
            switches: vec![Switch {
                name: "switch".to_owned(),
                wwn: Switch::made_up_wwn(0),
                domain: 1,
                ports: STORAGE_PORT + 1 + self.cards,
                forwarding: Forwarding::CutThrough,
                queueing: Queueing::Fifo,
                arbitration: Arbitration::RoundRobin,
                latency: Picos::from_ns(700),
                isl_choice: IslChoice::Exchange,
                processor: Some(self.processor),
                policy: Policy { hard_zoning: self.hard_zoning, name_lookup: self.name_lookup, ..Policy::default() },
                joining: Default::default(),
                virtual_fabric: None,
            }],
            hosts,
            storage: vec![storage()],
            links,
            zone_database: ZoneDatabase::of_zoning(&zoning, "bed"),
            zone_policy: Default::default(),
            zone_fabrics: Default::default(),
            zoning,
            workloads: Vec::new(),
            faults: Vec::new(),
            changes: Vec::new(),
            expectations: Vec::new(),
            live: Default::default(),
        }
    }
}

impl World {
    /// Brings one link up, with everything that logs in over it; for beds that do so one by one instead of
    /// [`World::log_in`].
    pub fn bring_up(&mut self, link: u16) {
        self.announce_link(link, true);
    }
}

fn login_of(world: &World, host: u16) -> &sanloom_core::nport::NPort {
    &world.nodes[usize::from(world.hosts[usize::from(host)].nports[0])].login
}

const STORAGE_NAME: Wwpn = Wwpn(0x5000_0000_0000_0001);

fn host(number: u16, virtual_machine: Option<VirtualMachine>) -> Host {
    let base = 0x1000_0000_0000_0000 + (u64::from(number) << 8);
    Host {
        name: format!("port{number}"),
        wwnn: Wwnn(base),
        hbas: vec![Hba { wwpn: Wwpn(base + 1), receive_size_bytes: 2048, data_frames_in_flight: None }],
        queue: IoQueue { max_outstanding: 1, max_waiting: None, scheduler: IoScheduler::Fifo, merge_up_to_bytes: 0 },
        cpu_per_io: Picos::ZERO,
        interrupt: None,
        bus: None,
        multipath: Multipath {
            policy: PathPolicy::RoundRobin,
            fast_io_fail: Picos::SECOND,
            dev_loss: Picos::SECOND,
            no_path_timeout: Picos::SECOND,
        },
        command_timeout: Picos::SECOND,
        retries: 0,
        discovery: false,
        virtual_machine,
    }
}

fn storage() -> Storage {
    Storage {
        name: "storage".to_owned(),
        wwnn: Wwnn(0x5000_0000_0000_0000),
        ports: vec![StoragePort { wwpn: STORAGE_NAME, receive_size_bytes: 2048, sequence_overhead: Picos::ZERO }],
        service: Service { time: Picos::from_us(10), servers: 1, max_queued: 64, media_latency: Picos::ZERO },
        luns: vec![Lun { blocks: 1024, block_bytes: 512 }],
        max_burst_bytes: 65_536,
    }
}
