//! Tests of conditions that lab files cannot express, and of the properties of [`Lab::validate`].

use crate::config::*;
use crate::san::*;
use sanloom_wire::{Wwnn, Wwpn};

/// Lab with one host, two switches with two links between them, and one disk.
fn lab() -> Lab {
    let switch = |name: &str, domain| Switch {
        name: name.into(),
        wwn: Switch::made_up_wwn(u16::from(domain) - 1),
        domain,
        ports: 8,
        rates: [None; 2],
        forwarding: Forwarding::CutThrough,
        queueing: Queueing::Fifo,
        arbitration: Arbitration::RoundRobin,
        latency: Picos::from_ns(700),
        crossbar: CrossbarLimits::default(),
        virtual_channels: None,
        quarantine: None,
        isl_choice: IslChoice::Exchange,
        isl_hash: IslHash::Plain,
        processor: None,
        policy: Default::default(),
        joining: Default::default(),
        virtual_fabric: None,
    };
    let link = |name: &str, a: (Node, u16), b: (Node, u16), bundle| Link {
        name: name.into(),
        ends: [a, b].map(|(node, port)| LinkEnd { node, port, bb_credit: 16, bb_sc_n: 0 }),
        rate: LineRate::Fc16,
        propagation: Picos::from_ns(50),
        bundle,
        fcoe: None,
    };
    let (sw1, sw2) = (Node::Switch(0), Node::Switch(1));
    Lab {
        name: "lab".into(),
        description: String::new(),
        run: Run {
            duration: Picos::SECOND,
            warmup: Picos::ZERO,
            seed: 1,
            sample_interval: Picos::from_ms(10),
            stop_issuing: None,
            until: None,
        },
        timers: Timers::default(),
        switches: vec![switch("sw1", 1), switch("sw2", 2)],
        loops: Vec::new(),
        hosts: vec![Host {
            name: "server1".into(),
            wwnn: Wwnn(1),
            hbas: vec![Hba { wwpn: Wwpn(2), receive_size_bytes: 2048, data_frames_in_flight: None }],
            queue: IoQueue {
                max_outstanding: 32,
                max_waiting: None,
                scheduler: IoScheduler::Fifo,
                merge_up_to_bytes: 0,
            },
            processor: HostProcessor::default(),
            cpu_per_io: Picos::ZERO,
            guest_cpu_per_io: Picos::ZERO,
            interrupt: None,
            bus: None,
            multipath: Multipath {
                policy: PathPolicy::RoundRobin,
                fast_io_fail: Picos::from_secs(5),
                dev_loss: Picos::from_secs(30),
                polling_interval: Picos::from_secs(5),
                no_path_retry: Some(12),
            },
            command_timeout: Picos::from_secs(5),
            retries: 5,
            recovery: ErrorRecovery::default(),
            discovery: true,
            virtual_machine: None,
            iscsi: crate::config::IscsiHost::of("server1"),
            srp: Default::default(),
        }],
        storage: vec![Storage {
            name: "disk1".into(),
            wwnn: Wwnn(3),
            ports: vec![StoragePort {
                wwpn: Wwpn(4),
                receive_size_bytes: 2048,
                sequence_overhead: Picos::ZERO,
                frame_overhead: Picos::ZERO,
            }],
            service: Service {
                time: Picos::from_us(10).into(),
                servers: 1,
                max_queued: 100,
                media_latency: Picos::ZERO,
            },
            luns: vec![Lun { blocks: 1000, block_bytes: 512 }],
            disk: None,
            ssd: None,
            backstore: Default::default(),
            protection: Default::default(),
            failures: Default::default(),
            controllers: Default::default(),
            max_burst_bytes: 65_536,
            interrupt: None,
            bus: None,
        }],
        links: vec![
            link("a", (Node::Host(0), 0), (sw1, 0), None),
            link("b", (Node::Storage(0), 0), (sw2, 0), None),
            link("ISL1", (sw1, 1), (sw2, 1), Some(1)),
            link("ISL2", (sw2, 2), (sw1, 2), Some(1)),
        ],
        ethernet_switches: vec![],
        ethernet_links: vec![],
        infiniband: Default::default(),
        zoning: Zoning { zones: vec![], default: ZoneDefault::Open },
        zone_database: Default::default(),
        zone_policy: Default::default(),
        zone_fabrics: Default::default(),
        zone_priorities: Default::default(),
        workloads: vec![Workload {
            name: "reads".into(),
            hosts: vec![0],
            targets: vec![Target { storage: 0, lun: 0 }],
            virtual_targets: Vec::new(),
            load: Load::Closed { depth: 1, think_time: Picos::ZERO.into() },
            size: SizeDistribution::Fixed(4096),
            read_share: 1.0,
            location: Location::Random,
            hot_set: None,
            span_bytes: None,
            start: Picos::ZERO,
            stop: None,
        }],
        faults: vec![],
        changes: vec![],
        expectations: vec![],
        live: Default::default(),
    }
}

fn kinds(lab: &Lab) -> Vec<ProblemKind> {
    lab.validate().into_iter().map(|p| p.kind).collect()
}

#[test]
fn accepts_a_good_lab_without_advice() {
    assert_eq!(lab().validate(), []);
    assert_eq!(lab().advice(), []);
}

#[test]
fn rejects_a_bundle_of_unlike_links() {
    let mut unlike = lab();
    unlike.links[3].rate = LineRate::Fc8;
    assert_eq!(kinds(&unlike), [ProblemKind::BadBundle]);
    let mut to_a_node = lab();
    to_a_node.links[0].bundle = Some(7);
    assert_eq!(kinds(&to_a_node), [ProblemKind::BadBundle]);
}

#[test]
fn rejects_a_link_without_credit() {
    let mut dry = lab();
    dry.links[0].ends[1].bb_credit = 0;
    assert_eq!(kinds(&dry), [ProblemKind::BadNumber]);
}

#[test]
fn rejects_indices_out_of_range_without_a_panic() {
    let mut wild = lab();
    wild.links[0].ends[0].node = Node::Host(9);
    wild.links[1].ends[1].node = Node::Switch(9);
    wild.workloads[0].hosts = vec![9];
    wild.workloads[0].targets = vec![Target { storage: 9, lun: 9 }];
    wild.faults = vec![Fault { at: Picos::ZERO, until: None, kind: FaultKind::LinkUp { link: 99 } }];
    let found = kinds(&wild);
    assert!(found.contains(&ProblemKind::NoSuchPort) && found.contains(&ProblemKind::NoTarget));
    wild.advice();
}

#[test]
fn rejects_rates_and_weights_that_are_not_numbers() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let mut odd = lab();
        odd.workloads[0].load = Load::Open(vec![Arrival::Poisson { rate: Rate(bad) }]);
        assert_eq!(kinds(&odd), [ProblemKind::BadNumber], "{bad}");
    }
    let mut odd = lab();
    odd.workloads[0].size = SizeDistribution::Weighted(vec![(4096, f64::NAN)]);
    assert_eq!(kinds(&odd), [ProblemKind::BadNumber]);
    odd.workloads[0].size = SizeDistribution::Weighted(vec![]);
    assert_eq!(kinds(&odd), [ProblemKind::BadNumber]);
    odd = lab();
    odd.workloads[0].read_share = f64::NAN;
    assert_eq!(kinds(&odd), [ProblemKind::BadNumber]);
}

#[test]
fn a_closed_default_zone_needs_zones() {
    let mut closed = lab();
    closed.zoning.default = ZoneDefault::Closed;
    assert_eq!(kinds(&closed), [ProblemKind::NotZoned]);
    closed.zoning.zones = vec![Zone {
        name: "z".into(),
        members: [2, 4].map(|name| ZoneMember::PortName(Wwpn(name))).to_vec(),
        principals: vec![],
    }];
    assert_eq!(kinds(&closed), []);
}

#[test]
fn reachability_needs_the_isl() {
    let mut cut = lab();
    cut.links.truncate(2);
    assert_eq!(kinds(&cut), [ProblemKind::Unreachable]);
}

#[test]
fn the_limits_of_a_lab_itself_hold() {
    let mut long = lab();
    long.run.duration = Picos(u64::MAX);
    long.run.sample_interval = Picos::SECOND;
    assert_eq!(kinds(&long)[0], ProblemKind::BadTime);
}

#[test]
fn every_host_that_is_cut_off_is_named() {
    let mut cut = lab();
    for name in ["server2", "server3"] {
        let mut host = cut.hosts[0].clone();
        host.name = name.into();
        host.wwnn.0 += 100 * cut.hosts.len() as u64;
        host.hbas[0].wwpn.0 += 100 * cut.hosts.len() as u64;
        cut.hosts.push(host);
    }
    cut.workloads[0].hosts = vec![0, 1, 2];
    let problems = cut.validate();
    assert_eq!(problems.iter().map(|p| p.kind).collect::<Vec<_>>(), [ProblemKind::Unreachable]);
    assert!(problems[0].reason.contains("`server2`, `server3`"), "{}", problems[0].reason);
    assert!(!problems[0].reason.contains("server1"), "{}", problems[0].reason);
}

#[test]
fn the_name_of_a_switch_is_unique() {
    for name in [lab().hosts[0].wwnn.0, lab().hosts[0].hbas[0].wwpn.0, lab().storage[0].ports[0].wwpn.0] {
        let mut shared = lab();
        shared.switches[0].wwn = Wwnn(name);
        let problems = shared.validate();
        assert_eq!(problems.iter().map(|p| p.kind).collect::<Vec<_>>(), [ProblemKind::DuplicateWwn], "{name:x}");
        assert!(problems[0].reason.contains("the same as `"), "{}", problems[0].reason);
    }
}

#[test]
fn the_ethernet_address_of_a_switch_has_the_vendor_of_its_name() {
    let mut switch = lab().switches[0].clone();
    let mac = |switch: &Switch| switch.fcf_mac(0x0102).to_string();
    // IEEE formats 1, 2, 5 and 6 with the vendor 00:05:1e, which becomes locally administered.
    for name in [0x1000_0005_1e00_0007, 0x2abc_0005_1e00_0007, 0x5000_51e0_0000_0007, 0x6000_51e0_0000_0007] {
        switch.wwn = Wwnn(name);
        assert_eq!(mac(&switch), "02:05:1e:07:01:02", "{name:x}");
    }
}

#[test]
fn a_run_of_zero_is_one_problem_of_its_duration() {
    let mut zero = lab();
    zero.run.duration = Picos::ZERO;
    zero.workloads[0].start = Picos::SECOND;
    zero.faults = vec![Fault { at: Picos::SECOND, until: None, kind: FaultKind::SwitchReset { switch: 0 } }];
    let problems = zero.validate();
    assert_eq!(problems.iter().map(|p| p.place.key).collect::<Vec<_>>(), ["duration"]);
    assert!(problems[0].reason.contains("zero"), "{}", problems[0].reason);
}
