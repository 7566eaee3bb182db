//! The topology report compared with a search that removes one component at a time.

use proptest::prelude::*;
use sanloom_fc::config::{FaultKind, Link, Node};
use sanloom_fc::san::Lab;
use sanloom_lab::topology::{HostLuns, Part, Reach, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// LUNs of every disk.
const LUNS: u16 = 2;

/// A random fabric.
#[derive(Clone, Debug)]
struct Fabric {
    switches: usize,
    isls: Vec<(usize, usize)>,
    /// Switch of each port.
    hosts: Vec<Vec<usize>>,
    disks: Vec<Vec<usize>>,
    /// Hypervisor and number of virtual ports.
    machines: Vec<(usize, usize)>,
    /// Members of each zone: a node (hosts, then machines, then disks) and a port of it.
    zones: Vec<Vec<(usize, usize)>>,
    /// Numbers of ISLs that are dark at the start, and of links of hosts and storage.
    dark: Vec<usize>,
    dark_links: Vec<usize>,
    /// For each mask a host port, and the disk and LUN that it sees.
    masks: Vec<((usize, usize), usize, u16)>,
    /// The key `default`, if it is given.
    default: Option<&'static str>,
}

impl Fabric {
    /// Name of a member of a zone.
    fn member(&self, (node, port): (usize, usize)) -> String {
        let (hosts, machines) = (self.hosts.len(), self.machines.len());
        let node = node % (hosts + machines + self.disks.len());
        if node < hosts {
            format!("h{node}:{}", port % self.hosts[node].len())
        } else if node < hosts + machines {
            format!("vm{}:{}", node - hosts, port % self.machines[node - hosts].1)
        } else {
            let disk = node - hosts - machines;
            format!("d{disk}:{}", port % self.disks[disk].len())
        }
    }

    fn masks(&self) -> BTreeSet<(String, usize, u16)> {
        let of_host =
            |(node, port): (usize, usize)| self.member((node % (self.hosts.len() + self.machines.len()), port));
        self.masks.iter().map(|(port, disk, lun)| (of_host(*port), disk % self.disks.len(), *lun)).collect()
    }

    /// Returns whether masks show a LUN to a host port.
    fn shows(&self, port: &str, disk: usize, lun: u16) -> bool {
        let masks = self.masks();
        !self.is_masked(disk) || masks.contains(&(port.to_owned(), disk, lun))
    }

    fn is_masked(&self, disk: usize) -> bool {
        self.masks().iter().any(|mask| mask.1 == disk)
    }

    fn zones(&self) -> Vec<BTreeSet<String>> {
        self.zones.iter().map(|zone| zone.iter().map(|member| self.member(*member)).collect()).collect()
    }

    fn text(&self) -> String {
        let switches = self.switches;
        let mut text = format!("[switch.\"sw{{1..{switches}}}\"]\n");
        let mut links = 0;
        for (section, noun, count, nodes) in
            [("host", "h", "hbas", &self.hosts), ("storage", "d", "ports", &self.disks)]
        {
            for (i, ports) in nodes.iter().enumerate() {
                let _ = writeln!(text, "[{section}.{noun}{i}]\n{count} = {}", ports.len());
                if section == "storage" {
                    let _ = writeln!(text, "luns = {LUNS}");
                }
                for switch in ports {
                    let to = switch % switches + 1;
                    let _ = writeln!(text, "[[link]]\nname = \"n{links}\"\nfrom = \"{noun}{i}\"\nto = \"sw{to}\"");
                    links += 1;
                }
            }
        }
        for (i, (on, hbas)) in self.machines.iter().enumerate() {
            let _ = writeln!(text, "[host.vm{i}]\non = \"h{}\"\nhbas = {hbas}", on % self.hosts.len());
        }
        let isls: Vec<(usize, usize)> =
            self.isls.iter().map(|(a, b)| (a % switches + 1, b % switches + 1)).filter(|(a, b)| a != b).collect();
        for (i, (a, b)) in isls.iter().enumerate() {
            let _ = writeln!(text, "[[isl]]\nname = \"isl{i}\"\nfrom = \"sw{a}\"\nto = \"sw{b}\"");
        }
        let isls = isls.len();
        let dark = self.dark.iter().filter(|_| isls > 0).map(|dark| format!("isl{}", dark % isls));
        let dark = dark.chain(self.dark_links.iter().map(|dark| format!("n{}", dark % links)));
        for dark in dark.collect::<BTreeSet<_>>() {
            let _ = writeln!(text, "[[fault]]\nkind = \"link-down\"\nlink = \"{dark}\"\nat = \"0s\"");
        }
        for (port, disk, lun) in self.masks() {
            let _ = writeln!(text, "[[mask]]\nhosts = \"{port}\"\ntargets = \"d{disk}:lun{lun}\"");
        }
        for (i, zone) in self.zones().iter().enumerate() {
            let _ = writeln!(
                text,
                "[[zone]]\nname = \"z{i}\"\nmembers = [{}]",
                zone.iter().map(|m| format!("\"{m}\"")).collect::<Vec<_>>().join(", ")
            );
        }
        if let Some(default) = self.default {
            let _ = writeln!(text, "[zoning]\ndefault = \"{default}\"");
        }
        text
    }

    fn lab(&self) -> Lab {
        sanloom_lab::load("random.toml", &self.text(), &[]).unwrap_or_else(|e| panic!("{e}")).lab
    }

    /// The rule in words, on the zones as the file writes them.
    fn permits(&self, one: &str, other: &str) -> bool {
        let zones = self.zones();
        let zoned = |port: &str| zones.iter().any(|zone| zone.contains(port));
        match (zoned(one), zoned(other)) {
            (true, true) => zones.iter().any(|zone| zone.contains(one) && zone.contains(other)),
            (false, false) => match self.default {
                Some(default) => default == "open",
                None => zones.is_empty(),
            },
            _ => false,
        }
    }

    /// Hosts, storage and LUNs with a permitted pair of ports that is joined without the part that
    /// is gone.
    fn joined(&self, lab: &Lab, gone: Option<Part>) -> BTreeSet<(u16, u16, u16)> {
        let dark: BTreeSet<String> = lab
            .faults
            .iter()
            .filter_map(|fault| match fault.kind {
                FaultKind::LinkDown { link } => Some(lab.links[usize::from(link)].name.clone()),
                _ => None,
            })
            .collect();
        let is_gone = |index: usize, link: &Link| {
            dark.contains(&link.name)
                || match gone {
                    Some(Part::Link(l)) => l == index,
                    Some(Part::Switch(s)) => link.ends.iter().any(|e| e.node == Node::Switch(s)),
                    Some(Part::Hba(h, port)) => link.ends.iter().any(|e| e.node == Node::Host(h) && e.port == port),
                    Some(Part::StoragePort(s, port)) => {
                        link.ends.iter().any(|e| e.node == Node::Storage(s) && e.port == port)
                    }
                    // Parts that these fabrics do not have.
                    Some(_) | None => false,
                }
        };
        let lit: Vec<&Link> =
            lab.links.iter().enumerate().filter(|(index, link)| !is_gone(*index, link)).map(|(_, link)| link).collect();
        // Colours of switches spread until nothing changes.
        let mut colour: Vec<usize> = (0..lab.switches.len()).collect();
        for _ in 0..lab.switches.len() {
            for link in &lit {
                if let [Node::Switch(a), Node::Switch(b)] = link.ends.map(|e| e.node) {
                    let least = colour[usize::from(a)].min(colour[usize::from(b)]);
                    colour[usize::from(a)] = least;
                    colour[usize::from(b)] = least;
                }
            }
        }
        let at = |node: Node, port: u16| {
            let link = lit.iter().find(|link| link.ends.iter().any(|e| e.node == node && e.port == port))?;
            link.ends.iter().find_map(|e| match e.node {
                Node::Switch(s) => Some(colour[usize::from(s)]),
                _ => None,
            })
        };
        let mut luns = BTreeSet::new();
        for (h, host) in (0..).zip(&lab.hosts) {
            for port in 0..host.hbas.len() as u16 {
                let (node, hba) = match host.virtual_machine {
                    Some(vm) => (vm.on, vm.carrier(port, lab.hosts[usize::from(vm.on)].hbas.len())),
                    None => (h, port),
                };
                let Some(from) = at(Node::Host(node), hba) else { continue };
                for (s, storage) in (0..).zip(&lab.storage) {
                    for target in 0..storage.ports.len() as u16 {
                        let names = [format!("{}:{port}", host.name), format!("{}:{target}", storage.name)];
                        if at(Node::Storage(s), target) == Some(from) && self.permits(&names[0], &names[1]) {
                            let shown = (0..LUNS).filter(|lun| self.shows(&names[0], usize::from(s), *lun));
                            luns.extend(shown.map(|lun| (h, s, lun)));
                        }
                    }
                }
            }
        }
        luns
    }
}

fn parts(lab: &Lab) -> Vec<Part> {
    let switches = (0..lab.switches.len() as u16).map(Part::Switch);
    let links = (0..lab.links.len()).map(Part::Link);
    let physical = lab.hosts.iter().zip(0..).filter(|(h, _)| h.virtual_machine.is_none());
    let hbas = physical.flat_map(|(h, i)| (0..h.hbas.len() as u16).map(move |p| Part::Hba(i, p)));
    let ports = (lab.storage.iter().zip(0..))
        .flat_map(|(s, i)| (0..s.ports.len() as u16).map(move |p| Part::StoragePort(i, p)));
    switches.chain(links).chain(hbas).chain(ports).collect()
}

fn any_fabric() -> impl Strategy<Value = Fabric> {
    let ports = || prop::collection::vec(prop::collection::vec(0usize..6, 1..3), 1..4);
    let zones = prop::collection::vec(prop::collection::vec((0usize..12, 0usize..3), 1..6), 0..6);
    let masks = prop::collection::vec(((0usize..12, 0usize..3), 0usize..4, 0..LUNS), 0..8);
    (
        1usize..6,
        prop::collection::vec((0usize..6, 0usize..6), 0..9),
        ports(),
        ports(),
        prop::collection::vec((0usize..4, 1usize..4), 0..4),
        prop_oneof![Just(Vec::new()), zones],
        (prop::collection::vec(0usize..9, 0..2), prop::collection::vec(0usize..9, 0..2)),
        prop_oneof![Just(Vec::new()), masks],
        prop::sample::select(&[None, None, Some("open"), Some("closed"), Some("auto")][..]),
    )
        .prop_map(|(switches, isls, hosts, disks, machines, zones, (dark, dark_links), masks, default)| {
            let default = if default == Some("auto") { None } else { default };
            Fabric { switches, isls, hosts, disks, machines, zones, dark, dark_links, masks, default }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn single_points_and_disjoint_paths_are_those_of_a_search(fabric in any_fabric()) {
        let lab = fabric.lab();
        let report = Report::of(&lab, &[]);
        let reach = Reach::of(&lab, &[]);
        let whole = fabric.joined(&lab, None);
        let mut expected: BTreeMap<Part, usize> = BTreeMap::new();
        let mut fragile: BTreeSet<(u16, u16)> = BTreeSet::new();
        for part in parts(&lab) {
            let left = fabric.joined(&lab, Some(part));
            let lost: BTreeSet<u16> = whole.difference(&left).map(|(h, ..)| *h).collect();
            if !lost.is_empty() {
                expected.insert(part, lost.len());
            }
            if matches!(part, Part::Link(_)) {
                fragile.extend(whole.difference(&left).map(|(h, s, _)| (*h, *s)));
            }
            prop_assert_eq!(flat(&reach.cut_off(part)), &whole - &left);
        }
        prop_assert_eq!(flat(reach.joined()), whole.clone());
        let found: BTreeMap<Part, usize> = report.single_points.iter().map(|p| (p.part, p.hosts)).collect();
        prop_assert_eq!(found, expected);
        let has_path = |h: u16, s: u16| (0..LUNS).any(|lun| whole.contains(&(h, s, lun)));
        let dark = lab.links_down_at_start();
        // LUNs that a port with light sees, and none with a path.
        let lacks_path = |h: u16, s: u16| {
            let ports = lab.attached_ports();
            let lit = ports.iter().filter(|port| port.node == Node::Host(h) && !dark.contains(&(port.link as u16)));
            let names: Vec<String> = lit.map(|port| format!("{}:{}", lab.hosts[usize::from(h)].name, port.port)).collect();
            let is_seen = |lun: u16| names.iter().any(|name| fabric.shows(name, usize::from(s), lun));
            (0..LUNS).any(|lun| is_seen(lun) && !whole.contains(&(h, s, lun)))
        };
        // Every pair is in exactly one row. A pair has one disjoint path exactly if a single link
        // can cut off one of its LUNs.
        let mut pairs = 0;
        for row in &report.paths {
            pairs += row.pairs;
            if row.hosts.len() == 1 && row.storage.len() == 1 {
                let (h, s) = (row.hosts[0], row.storage[0]);
                let is_short = !has_path(h, s) || lacks_path(h, s);
                prop_assert_eq!(row.disjoint == 0, is_short);
                prop_assert_eq!(row.disjoint == 1, !is_short && fragile.contains(&(h, s)));
            }
        }
        // Zones and masks determine which pairs are meant; without them every pair is.
        let is_meant = |h: u16, s: u16| {
            (fabric.zones.is_empty() && !fabric.is_masked(usize::from(s))) || has_path(h, s)
        };
        let all = (0..lab.hosts.len() as u16).flat_map(|h| (0..lab.storage.len() as u16).map(move |s| (h, s)));
        prop_assert_eq!(pairs, all.filter(|(h, s)| is_meant(*h, *s)).count() as u64);
    }
}

fn flat(luns: &HostLuns) -> BTreeSet<(u16, u16, u16)> {
    luns.iter().flat_map(|((h, s), luns)| luns.iter().map(|lun| (*h, *s, *lun))).collect()
}

/// Two fabrics, and zones for the first HBA of every host only.
const HALF_ZONED: &str = "[switch.\"sw{a,b}\"]\n[host.\"h{1..4}\"]\nhbas = 2\n[storage.disk]\nports = 2\n\
    [[link]]\nfrom = \"h{1..4}:0\"\nto = \"swa\"\n[[link]]\nfrom = \"h{1..4}:1\"\nto = \"swb\"\n\
    [[link]]\nfrom = \"disk:{0,1}\"\nto = \"sw{a,b}\"\n\
    [[zone]]\nname = \"z{1..4}\"\nmembers = [\"h{1..4}:0\", \"disk:0\"]\n\
    [workload.w]\nhosts = \"h{1..4}\"\ntargets = \"disk\"\n";

#[test]
fn a_path_that_no_zone_permits_is_no_second_path() {
    let loaded = sanloom_lab::load("x.toml", HALF_ZONED, &[]).unwrap();
    let report = Report::of(&loaded.lab, &loaded.isolated);
    assert_eq!(report.hosts_without_two_paths, ["h1", "h2", "h3", "h4"]);
    assert_eq!((report.paths[0].port_pairs, report.paths[0].disjoint), (1, 1));
    let points: Vec<&str> = report.single_points.iter().map(|point| point.name.as_str()).collect();
    assert!(["swa", "disk:0", "disk:0-swa", "h1:0", "h1:0-swa"].iter().all(|name| points.contains(name)), "{points:?}");
    assert!(!points.contains(&"swb"), "{points:?}");
    assert_eq!(report.redundancy()[0], "4 hosts without two paths that share no link: h{1..4}");
}

#[test]
fn a_zone_of_one_virtual_fabric_is_no_path_in_another() {
    let text = "[switch.a]\nvirtual_fabric = { chassis = \"c\", id = 1, ports = \"{0..7}\" }\n\
        [switch.b]\nvirtual_fabric = { chassis = \"c\", id = 2, ports = \"{8..15}\" }\n\
        [host.h]\nhbas = 2\n[storage.d]\nports = 2\n\
        [[link]]\nfrom = \"h:{0,1}\"\nto = \"{a,b}\"\n[[link]]\nfrom = \"d:{0,1}\"\nto = \"{a,b}\"\n\
        [[zone]]\nname = \"both\"\nmembers = [\"h\", \"d\"]\n[workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let ports = |text: &str| {
        let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
        Report::of(&loaded.lab, &[]).paths[0].port_pairs
    };
    let text = text.replace("[\"h\", \"d\"]", "[\"h:{0,1}\", \"d:{0,1}\"]");
    assert_eq!(ports(&text), 2);
    let of_one = text.replace("name = \"both\"", "name = \"both\"\nvirtual_fabric = 1");
    // In virtual fabric 2 no zone is in force, so its default zone is open; once closed, one path
    // is left.
    assert_eq!(ports(&of_one), 2);
    assert_eq!(ports(&format!("{of_one}[zoning]\ndefault = \"closed\"\n")), 1);
}

#[test]
fn a_mask_that_hides_every_lun_leaves_no_path() {
    let text = "[switch.s]\n[host.h]\nhbas = 2\n[storage.d]\nports = 2\n[[link]]\nfrom = \"{h,d}:{0,1}\"\nto = \"s\"\n\
        [[mask]]\nhosts = \"h:0\"\ntargets = \"d:lun0\"\n[workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let report = Report::of(&loaded.lab, &[]);
    assert_eq!((report.paths[0].port_pairs, report.paths[0].disjoint), (2, 1));
    assert!(report.single_points.iter().any(|point| point.name == "h:0"));
}

/// A host with Fibre Channel alone depends on each part of it; a host with a channel of SRP or a
/// session of iSCSI beside does not.
#[test]
fn a_part_of_fibre_channel_is_no_single_point_of_a_host_with_another_network() {
    let text = |more: &str| {
        let links = "[[link]]\nfrom = \"h\"\nto = \"s\"\n[[link]]\nfrom = \"d\"\nto = \"s\"\n";
        format!("[switch.s]\n[host.h]\n[storage.d]\n{links}[workload.w]\nhosts = \"h\"\ntargets = \"d\"\n{more}")
    };
    let judge = |text: &str| {
        let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
        let report = Report::of(&loaded.lab, &[]);
        (report.single_points.len(), report.hosts_without_two_paths.len())
    };
    assert_eq!(judge(&text("")), (5, 1));
    let joined = |table: &str, switch: &str, rate: &str| {
        let link = |from: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"x\"\nrate = \"{rate}\"\n");
        let text = text(&format!("[{switch}.x]\n{}{}", link("h"), link("d")));
        judge(&text.replace("[storage.d]\n", &format!("[storage.d]\n{table} = {{}}\n")))
    };
    assert_eq!(joined("srp", "infiniband_switch", "4xEDR"), (0, 0));
    assert_eq!(joined("iscsi", "ethernet_switch", "10GbE"), (0, 0));
}

#[test]
fn a_lun_that_only_one_port_sees_has_no_second_path() {
    let text = |hosts: &str| {
        format!(
            "[switch.s]\n[host.h]\nhbas = 2\n[storage.d]\nports = 2\nluns = 2\n\
             [[link]]\nfrom = \"{{h,d}}:{{0,1}}\"\nto = \"s\"\n[[mask]]\nhosts = \"h\"\ntargets = \"d:lun0\"\n\
             [[mask]]\nhosts = \"{hosts}\"\ntargets = \"d:lun1\"\n[workload.w]\nhosts = \"h\"\ntargets = \"d\"\n"
        )
    };
    let report = |hosts: &str| {
        let loaded = sanloom_lab::load("x.toml", &text(hosts), &[]).unwrap_or_else(|e| panic!("{e}"));
        let report = Report::of(&loaded.lab, &[]);
        let points: Vec<String> = report.single_points.iter().map(|point| point.name.clone()).collect();
        (report.paths[0].disjoint, points)
    };
    assert_eq!(report("h"), (2, vec!["s".to_owned()]));
    assert_eq!(report("h:1"), (1, ["s", "h:1-s", "h:1"].map(str::to_owned).to_vec()));
}

#[test]
fn masks_of_iscsi_hosts_hide_nothing_from_fibre_channel() {
    let text = "[switch.s]\n[host.h]\n[storage.d]\n[[link]]\nfrom = \"{h,d}\"\nto = \"s\"\n\
        [[mask]]\nhosts = \"iqn.2026-11.net.example:one\"\ntargets = \"d:lun0\"\n\
        [workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(Report::of(&loaded.lab, &[]).paths[0].port_pairs, 1);
}

#[test]
fn virtual_machines_have_the_paths_and_the_single_points_of_their_hypervisor() {
    let text = "[switch.\"sw{1..2}\"]\n[host.hypervisor]\nhbas = 2\n[host.\"vm{1..4}\"]\non = \"hypervisor\"\n\
        [storage.disk]\nports = 2\n[[link]]\nfrom = \"hypervisor:{0,1}\"\nto = \"sw{1..2}\"\n\
        [[link]]\nfrom = \"disk:{0,1}\"\nto = \"sw{1..2}\"\n[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n\
        [workload.w]\nhosts = \"vm{1..4}\"\ntargets = \"disk\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!((report.hosts, report.hbas, report.virtual_machines), (1, 2, 4));
    assert_eq!((report.paths[0].pairs, report.paths[0].port_pairs, report.paths[0].disjoint), (4, 2, 1));
    let points: Vec<(&str, usize)> = report.single_points.iter().map(|p| (p.name.as_str(), p.hosts)).collect();
    let expected = [
        ("sw1", 2),
        ("sw2", 2),
        ("hypervisor:0-sw1", 2),
        ("hypervisor:1-sw2", 2),
        ("hypervisor:0", 2),
        ("hypervisor:1", 2),
    ];
    assert_eq!(points, expected);
    assert_eq!(report.isl_groups[0].behind_bytes_per_s, [3.4e9, 3.4e9], "the machines share the line of their HBA");
}

#[test]
fn traffic_over_two_cores_counts_half_for_each() {
    let text = "[switch.\"edge{1..2}\"]\n[switch.\"core{1..2}\"]\n[host.\"h{1..4}\"]\n[storage.\"d{1..4}\"]\n\
        [[link]]\nfrom = \"h{1..4}\"\nto = \"edge1\"\n[[link]]\nfrom = \"d{1..4}\"\nto = \"edge2\"\n\
        [[isl]]\nfrom = \"edge{1..2}\"\nto = \"core1\"\n[[isl]]\nfrom = \"edge{1..2}\"\nto = \"core2\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!(report.isl_groups.len(), 4);
    for group in &report.isl_groups {
        assert_eq!(group.behind_bytes_per_s, [2.0 * 1.7e9; 2]);
        assert_eq!(group.oversubscription, 2.0);
    }
    assert_eq!((report.paths[0].shortest, report.paths[0].links, report.paths[0].disjoint), (2, 4, 1));
}

#[test]
fn traffic_that_stays_at_its_edge_does_not_load_isls() {
    let text = "[switch.\"sw{1..2}\"]\n[host.\"h{1..2}\"]\n[storage.\"d{1..2}\"]\n\
        [[link]]\nfrom = \"{h,d}{1..2}\"\nto = \"sw{1..2}\"\nspread = \"round-robin\"\n\
        [[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n\
        [workload.\"own{1..2}\"]\nhosts = \"h{1..2}\"\ntargets = \"d{1..2}\"\n";
    let lab = sanloom_lab::load("x.toml", text, &[]).unwrap().lab;
    let report = Report::of(&lab, &[]);
    assert_eq!(report.isl_groups[0].behind_bytes_per_s, [0.0; 2]);
    assert_eq!(report.paths[0].links, 2);
    // The ISL and the other switch are not single points of failure.
    assert!(report.single_points.iter().all(|p| p.name != "ISL1"));
}

#[test]
fn the_report_counts_costs_as_the_switches_do() {
    // From edge1 to edge2, the direct link is 2GFC, and the detour over a core is 16GFC.
    let lab = |cost: &str| {
        let text = format!(
            "[switch.\"*\"]\nfabric = {{ cost = \"{cost}\" }}\n[switch.\"edge{{1..2}}\"]\n[switch.core]\n[host.h]\n[storage.d]\n\
            [[link]]\nfrom = \"h\"\nto = \"edge1\"\n[[link]]\nfrom = \"d\"\nto = \"edge2\"\n\
            [[isl]]\nfrom = \"edge1\"\nto = \"edge2\"\nrate = \"2GFC\"\n\
            [[isl]]\nfrom = \"edge{{1..2}}\"\nto = \"core\"\nrate = \"16GFC\"\n"
        );
        Report::of(&sanloom_lab::load("x.toml", &text, &[]).unwrap().lab, &[])
    };
    // Standard: 500 for the direct link, 62 + 62 over the core. Brocade: 500 per link, so the
    // direct link is cheaper.
    assert_eq!([lab("standard"), lab("brocade")].map(|report| report.paths[0].links), [4, 3]);
}

#[test]
fn a_cost_rule_of_one_switch_applies_to_traffic_that_leaves_the_switch() {
    // Only edge1 uses Brocade's rule: its own traffic takes the direct link, the return traffic
    // goes over the core.
    let text = "[switch.edge1]\nfabric = { cost = \"brocade\" }\n[switch.edge2]\n[switch.core]\n[host.h]\n[storage.d]\n\
        [[link]]\nfrom = \"h\"\nto = \"edge1\"\n[[link]]\nfrom = \"d\"\nto = \"edge2\"\n\
        [[isl]]\nfrom = \"edge1\"\nto = \"edge2\"\nrate = \"2GFC\"\n\
        [[isl]]\nfrom = \"edge{1..2}\"\nto = \"core\"\nrate = \"16GFC\"\n";
    let report = Report::of(&sanloom_lab::load("x.toml", text, &[]).unwrap().lab, &[]);
    let loaded: Vec<[bool; 2]> =
        report.isl_groups.iter().map(|group| group.behind_bytes_per_s.map(|b| b > 0.0)).collect();
    assert_eq!(loaded.iter().flatten().filter(|used| **used).count(), 3, "{loaded:?}");
}

#[test]
fn no_path_uses_a_link_that_will_be_isolated() {
    let text = "[switch.a]\ndomain = 1\n[switch.b]\ndomain = 2\n[switch.alien]\ndomain = 3\n\
        fabric = { flow_control = \"vendor\" }\n[host.h]\nhbas = 2\n[storage.d]\nports = 2\n\
        [[link]]\nfrom = \"h:{0,1}\"\nto = \"{a,alien}\"\n[[link]]\nfrom = \"d:{0,1}\"\nto = \"b\"\n\
        [[isl]]\nfrom = \"a\"\nto = \"b\"\n[[isl]]\nfrom = \"alien\"\nto = \"b\"\nname = \"refused\"\n\
        [workload.w]\nhosts = \"h\"\ntargets = \"d\"\n";
    let loaded = sanloom_lab::load("x.toml", text, &[]).unwrap();
    let codes: Vec<&str> = loaded.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!((codes, &loaded.isolated[..]), (vec!["isolated-link"], &[5][..]));
    let report = Report::of(&loaded.lab, &loaded.isolated);
    assert_eq!((report.isls, report.isolated.as_deref()), (2, Some("refused")));
    assert_eq!(report.fabrics, ["a, b", "alien"]);
    // One HBA reaches two ports of the array. Over the other switch there would be two routes.
    assert_eq!((report.paths[0].port_pairs, report.paths[0].disjoint), (2, 1));
    assert_eq!(report.hosts_without_two_paths, ["h"]);
}

/// Two fabrics, and hosts with an HBA in each.
const DUAL: &str = "[switch.\"{A,B}\"]\n[host.\"h{1..3}\"]\nhbas = 2\n[storage.\"d{1..2}\"]\nports = 2\n\
    [[link]]\nfrom = \"h{1..3}:0\"\nto = \"A\"\n[[link]]\nfrom = \"h{1..3}:1\"\nto = \"B\"\n\
    [[link]]\nfrom = \"d{1..2}:0\"\nto = \"A\"\n[[link]]\nfrom = \"d{1..2}:1\"\nto = \"B\"\n";

fn verdict(text: &str) -> Vec<String> {
    let (loaded, report) = sanloom_lab::check("x.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report, Report::of(&loaded.lab, &loaded.isolated));
    report.redundancy()
}

/// A zone of one host port and one storage port.
fn zone(name: &str, members: [&str; 2]) -> String {
    format!("[[zone]]\nname = \"{name}\"\nmembers = {members:?}\n")
}

#[test]
fn hosts_that_reach_no_storage_are_counted_and_named() {
    let good = zone("a", ["h1:0", "d1:0"]) + &zone("b", ["h1:1", "d1:1"]);
    let rest = "Each of the other 2 hosts has two paths without a common link to all its storage.";
    let second = zone("a2", ["h2:0", "d1:0"]) + &zone("b2", ["h2:1", "d1:1"]);
    // In no zone, and zoned only across the fabrics.
    let crossed = zone("c", ["h3:0", "d1:1"]) + &zone("d", ["h3:1", "d1:0"]);
    for third in ["", &crossed] {
        let verdict = verdict(&format!("{DUAL}{good}{second}{third}"));
        let expected = ["1 host reaches no storage: h3", rest, "No single point of failure for the other 2 hosts."];
        assert_eq!(verdict, expected);
    }
    let alone = verdict(&format!("{DUAL}{good}"));
    assert_eq!(alone[0], "2 hosts reach no storage: h2, h3");
    assert_eq!(alone[1], "The other host has two paths without a common link to all its storage.");
    assert_eq!(verdict(DUAL)[0], "Every host has two paths without a common link to all its storage.");
}

#[test]
fn the_verdict_does_not_cover_hosts_without_a_workload() {
    let text = format!(
        "{DUAL}[host.solo]\n[[link]]\nfrom = \"solo\"\nto = \"A\"\n\
         [workload.w]\nhosts = \"h{{1..3}}\"\ntargets = \"d{{1..2}}\"\n"
    );
    let expected = [
        "1 host has no workload and has not been judged: solo",
        "Each of the other 3 hosts has two paths without a common link to all its storage.",
        "No single point of failure for the other 3 hosts.",
    ];
    assert_eq!(verdict(&text), expected);
}

#[test]
fn a_switch_that_is_reset_at_the_start_for_good_carries_no_path() {
    let work = "[workload.w]\nhosts = \"h{1..3}\"\ntargets = \"d{1..2}\"\n";
    let fault = "[[fault]]\nat = \"0s\"\nkind = \"switch-reset\"\nswitch = \"A\"\n";
    let verdict = verdict(&format!("{DUAL}{work}{fault}"));
    assert_eq!(verdict[0], "3 hosts without two paths that share no link: h{1..3}");
    assert!(verdict.iter().any(|line| line == "Single point of failure: switch B cuts off 3 hosts"), "{verdict:?}");
}

#[test]
fn a_chassis_with_several_switches_is_a_single_point_of_failure() {
    let switch = |name: &str, id: u32, ports: &str| {
        format!("[switch.{name}]\nvirtual_fabric = {{ chassis = \"box\", id = {id}, ports = \"{ports}\" }}\n")
    };
    let text = switch("A", 1, "{0..7}") + &switch("B", 2, "{8..15}") + DUAL.split_once('\n').unwrap().1;
    let verdict = verdict(&text);
    assert_eq!(verdict[1..], ["Single point of failure: chassis box cuts off 3 hosts"]);
}

#[test]
fn limits_of_the_warnings_can_be_overridden() {
    let set = sanloom_lab::Override { key: "check.fan_in".to_owned(), value: "0.5".to_owned() };
    let (loaded, _) = sanloom_lab::check("x.toml", DUAL, &[set]).unwrap_or_else(|e| panic!("{e}"));
    assert!(loaded.warnings.iter().any(|warning| warning.code == "fan-in"), "{:?}", loaded.warnings);
}
