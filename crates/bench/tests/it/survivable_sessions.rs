//! `check` against `whatif` on random labs whose hosts reach storage over Ethernet or InfiniBand,
//! some of them over other networks as well: each failure cuts off the hosts that the report names,
//! and no other.
//!
//! ```text
//! cargo test -p sanloom-bench --test it survivable_sessions                    25 labs of each
//! SANLOOM_FIRST_SEED=500 SANLOOM_SEEDS=200 cargo test …                        other seeds
//! ```

use sanloom_bench::random_lab::Dice;
use sanloom_console::whatif::failure::{self, Cause};
use sanloom_console::whatif::trial::Plan;
use sanloom_fc::san::Lab;
use sanloom_lab::topology::{Reach, Report};
use std::collections::BTreeSet;

const LABS: u64 = 25;
/// Failures that are simulated of each lab.
const FAILURES: usize = 3;

#[test]
fn a_failure_in_ethernet_cuts_off_the_hosts_that_check_names() {
    judge_all(0xe7e, draw_ethernet);
}

#[test]
fn a_failure_in_infiniband_cuts_off_the_hosts_that_check_names() {
    judge_all(0x1b1b, draw_infiniband);
}

/// The same for hosts whose virtual links of FCoE cross the switches.
#[test]
fn a_failure_below_virtual_links_cuts_off_the_hosts_that_check_names() {
    judge_all(0xe7e, draw_fcoe);
}

/// The same for hosts of gateways in front of Fibre Channel.
#[test]
fn a_failure_around_a_gateway_cuts_off_the_hosts_that_check_names() {
    judge_all(0x6a7e, draw_gateways);
}

/// The same for hosts of virtualization switches with back ends over Ethernet.
#[test]
fn a_failure_around_a_virtualization_switch_cuts_off_the_hosts_that_check_names() {
    judge_all(0x701, draw_volumes);
}

fn judge_all(salt: u64, draw: fn(&mut Dice) -> String) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let first = number("SANLOOM_FIRST_SEED").unwrap_or(0);
    let seeds = number("SANLOOM_SEEDS").unwrap_or(LABS);
    let mut seen = [0_u64; 2];
    for seed in first..first + seeds {
        let mut dice = Dice::new(seed ^ salt);
        let text = draw(&mut dice);
        let loaded = sanloom_lab::load("random.toml", &text, &[]);
        let lab = loaded.unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes.render(false))).lab;
        judge(&lab, &mut dice, &mut seen).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{text}"));
    }
    println!("{seeds} labs: {} failures survived, {} cut hosts off", seen[0], seen[1]);
    assert!(seeds < LABS || seen.iter().all(|count| *count > seeds / 2), "the labs are too much alike: {seen:?}");
}

/// Returns a lab with up to three Ethernet switches in a row or a ring, hosts with one or two
/// interfaces, and an array. Some hosts also have an HBA.
fn draw_ethernet(dice: &mut Dice) -> String {
    let switches = dice.range(1, 3);
    let hosts = dice.range(1, 3);
    let mut text = format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
[ethernet_switch."tor{{1..{switches}}}"]
[switch.san]
[host."server{{1..{hosts}}}"]
multipath = {{ fast_io_fail = "1s", no_path_retry = 0 }}
[storage.array]
rate = "20k/s"
iscsi = {{ portals = ["192.0.2.1:3260", "198.51.100.1:3260"] }}
[[link]]
from = "array"
to = "san"
rate = "8GFC"
"#
    );
    let mut links = 0;
    let mut link = |text: &mut String, from: &str, to: u64, count: u64| {
        links += 1;
        let from = from.to_owned();
        *text += &format!(
            "[[link]]\nname = \"link{links}x{{1..{count}}}\"\nfrom = \"{from}\"\nto = \"tor{to}\"\nrate = \"10GbE\"\ncount = {count}\n"
        );
    };
    for switch in 2..=switches {
        let count = dice.range(1, 2);
        link(&mut text, &format!("tor{}", switch - 1), switch, count);
    }
    if switches == 3 && dice.chance(1, 2) {
        link(&mut text, "tor3", 1, 1);
    }
    for _ in 0..dice.range(1, 2) {
        link(&mut text, "array", dice.range(1, switches), 1);
    }
    for host in 1..=hosts {
        for _ in 0..dice.range(1, 2) {
            link(&mut text, &format!("server{host}"), dice.range(1, switches), 1);
        }
        if dice.chance(1, 4) {
            text += &format!("[[link]]\nfrom = \"server{host}\"\nto = \"san\"\nrate = \"8GFC\"\n");
        }
    }
    text += &format!(
        "[workload.load]\nhosts = \"server{{1..{hosts}}}\"\ntargets = \"array\"\nsize = \"4KiB\"\narrivals = \"constant 100/s\"\n"
    );
    text
}

/// Returns a lab with up to three Ethernet switches in a row or a ring, and one or two forwarders
/// in front of an array of Fibre Channel. Hosts have one or two interfaces and virtual links; the
/// array may have an iSCSI portal, too.
fn draw_fcoe(dice: &mut Dice) -> String {
    let (switches, forwarders, hosts) = (dice.range(1, 3), dice.range(1, 2), dice.range(1, 3));
    let has_iscsi = dice.chance(1, 3);
    let iscsi = if has_iscsi { "iscsi = { portals = \"192.0.2.1:3260\" }" } else { "" };
    let mut text = format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
[ethernet_switch."tor{{1..{switches}}}"]
pfc = 3
[switch."fcf{{1..{forwarders}}}"]
fcoe = {{ keep_alive = "250ms" }}
[host."server{{1..{hosts}}}"]
hbas = 2
multipath = {{ fast_io_fail = "1s", no_path_retry = 0 }}
[storage.array]
ports = 2
rate = "20k/s"
{iscsi}
[[link]]
name = "fibre{{1..2}}"
from = "array"
to = "fcf{{1..{forwarders}}}"
rate = "8GFC"
{}
"#,
        if forwarders == 1 { "count = 2" } else { "" }
    );
    let mut links = 0;
    let mut link = |text: &mut String, from: &str, to: u64| {
        links += 1;
        let ends = format!("name = \"link{links}\"\nfrom = \"{from}\"\nto = \"tor{to}\"");
        *text += &format!("[[link]]\n{ends}\nrate = \"10GbE\"\nmtu = 2500\n");
    };
    for switch in 2..=switches {
        link(&mut text, &format!("tor{}", switch - 1), switch);
    }
    if switches == 3 && dice.chance(1, 2) {
        link(&mut text, "tor3", 1);
    }
    for forwarder in 1..=forwarders {
        (0..dice.range(1, 2)).for_each(|_| link(&mut text, &format!("fcf{forwarder}"), dice.range(1, switches)));
    }
    if has_iscsi {
        link(&mut text, "array", dice.range(1, switches));
    }
    for host in 1..=hosts {
        (0..dice.range(1, 2)).for_each(|_| link(&mut text, &format!("server{host}"), dice.range(1, switches)));
        for _ in 0..dice.range(1, 2) {
            let forwarder = dice.range(1, forwarders);
            text +=
                &format!("[[link]]\nfrom = \"server{host}\"\nto = \"fcf{forwarder}\"\nethernet = {{ vlan = 100 }}\n");
        }
    }
    text += &format!(
        "[workload.load]\nhosts = \"server{{1..{hosts}}}\"\ntargets = \"array\"\nsize = \"4KiB\"\narrivals = \"constant 100/s\"\n"
    );
    text
}

/// Returns a lab with one or two gateways between Ethernet and a fabric of up to three switches in
/// a row or a ring. Each has a port of its own there, or virtual ones for its hosts. A host uses
/// one gateway.
fn draw_gateways(dice: &mut Dice) -> String {
    let (switches, gateways, hosts) = (dice.range(1, 3), dice.range(1, 2), dice.range(1, 3));
    let mut text = format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
[switch."sw{{1..{switches}}}"]
[ethernet_switch."tor{{1..2}}"]
[host."server{{1..{hosts}}}"]
retries = 0
command_timeout = "2s"
multipath = {{ fast_io_fail = "1s", no_path_retry = 0 }}
[storage.array]
ports = 2
rate = "20k/s"
"#
    );
    let mut links = 0;
    let mut link = |text: &mut String, from: &str, to: &str, rate: &str, count: u64| {
        links += 1;
        let name = format!("name = \"link{links}x{{1..{count}}}\"");
        *text += &format!("[[link]]\n{name}\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ncount = {count}\n");
    };
    for switch in 2..=switches {
        let count = dice.range(1, 2);
        link(&mut text, &format!("sw{}", switch - 1), &format!("sw{switch}"), "8GFC", count);
    }
    if switches == 3 && dice.chance(1, 2) {
        link(&mut text, "sw3", "sw1", "8GFC", 1);
    }
    (0..2).for_each(|_| link(&mut text, "array", &format!("sw{}", dice.range(1, switches)), "8GFC", 1));
    link(&mut text, "tor1", "tor2", "10GbE", 1);
    // Hosts of each gateway.
    let mut of_gateway = vec![Vec::new(); gateways as usize];
    for host in 1..=hosts {
        of_gateway[dice.index(gateways as usize)].push(format!("\"server{host}\""));
        (0..dice.range(1, 2)).for_each(|_| {
            link(&mut text, &format!("server{host}"), &format!("tor{}", dice.range(1, 2)), "10GbE", 1);
        });
    }
    for (number, hosts) in (1..).zip(&of_gateway) {
        let list = format!("[{}]", hosts.join(", "));
        let mode = match dice.chance(1, 2) && !hosts.is_empty() {
            true => format!("mode = \"transparent\", hosts = {list}, "),
            false => String::new(),
        };
        let grain = ["command", "pdu", "frame"][dice.index(3)];
        let (ports, target) = match dice.chance(1, 2) {
            true => (2, "array".to_owned()),
            false => (1, format!("array:{}", dice.range(0, 1))),
        };
        text += &format!(
            "[host.port{number}]\nhbas = {ports}\n[storage.gateway{number}]\niscsi = {{ portals = \"192.0.2.{number}:3260\" }}\n\
             gateway = {{ {mode}forwarding = \"{grain}\", host = \"port{number}\", target_port = \"{target}\" }}\n"
        );
        (0..ports).for_each(|_| {
            link(&mut text, &format!("port{number}"), &format!("sw{}", dice.range(1, switches)), "8GFC", 1);
        });
        link(&mut text, &format!("gateway{number}"), &format!("tor{}", dice.range(1, 2)), "10GbE", 1);
        if !hosts.is_empty() {
            text += &format!(
                "[workload.load{number}]\nhosts = {list}\ntargets = \"gateway{number}\"\nsize = \"4KiB\"\n\
                 arrivals = \"constant 100/s\"\n"
            );
        }
    }
    text
}

/// Returns a lab with a virtualization switch between two Ethernet switches, with one or two
/// interfaces. Each of its volumes is on a disk of its own, and each host uses one.
fn draw_volumes(dice: &mut Dice) -> String {
    let (hosts, disks) = (dice.range(1, 3), dice.range(1, 2));
    let mut text = format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
[ethernet_switch."tor{{1..2}}"]
[host."server{{1..{hosts}}}"]
retries = 0
command_timeout = "2s"
multipath = {{ fast_io_fail = "1s", no_path_retry = 0 }}
[storage.virtual]
medium = "volumes"
iscsi = {{ portals = "192.0.2.1:3260" }}
"#
    );
    let mut links = 0;
    let mut link = |text: &mut String, from: &str, to: u64, count: u64| {
        links += 1;
        let name = format!("name = \"link{links}x{{1..{count}}}\"");
        *text += &format!("[[link]]\n{name}\nfrom = \"{from}\"\nto = \"tor{to}\"\nrate = \"10GbE\"\ncount = {count}\n");
    };
    link(&mut text, "tor1", 2, dice.range(1, 2));
    (0..dice.range(1, 2)).for_each(|_| link(&mut text, "virtual", dice.range(1, 2), 1));
    for disk in 1..=disks {
        text += &format!(
            "[storage.disk{disk}]\nrate = \"20k/s\"\niscsi = {{ portals = \"192.0.2.1{disk}:3260\" }}\n[pool.pool{disk}]\n\
             [back_end.disk{disk}]\npool = \"pool{disk}\"\ntarget = \"iqn.2026-11.example.sanloom:disk{disk}\"\n\
             portals = \"192.0.2.1{disk}:3260\"\nretry_for = \"1s\"\n[volume.volume{disk}]\npool = \"pool{disk}\"\n\
             size = \"16MiB\"\nstorage = \"virtual\"\nlun = {}\n",
            disk - 1
        );
        link(&mut text, &format!("disk{disk}"), dice.range(1, 2), 1);
    }
    for host in 1..=hosts {
        (0..dice.range(1, 2)).for_each(|_| link(&mut text, &format!("server{host}"), dice.range(1, 2), 1));
        text += &format!(
            "[workload.load{host}]\nhosts = \"server{host}\"\ntargets = \"virtual:lun{}\"\nsize = \"4KiB\"\n\
             arrivals = \"constant 100/s\"\n",
            dice.range(0, disks - 1)
        );
    }
    text
}

/// Returns a lab with one to four InfiniBand switches in a row, a ring or a tree, any routing
/// engine, hosts with one or two interfaces, and an array. Some hosts also have an HBA or a NIC.
fn draw_infiniband(dice: &mut Dice) -> String {
    let switches = dice.range(1, 4);
    let hosts = dice.range(1, 3);
    let routing = ["minhop", "updn", "ftree"][dice.index(3)];
    let roots = if dice.chance(1, 2) { "roots = \"ib1\"\n" } else { "" };
    let (routing, roots) = match routing {
        "minhop" => (routing, ""),
        _ => (routing, roots),
    };
    let mut text = format!(
        r#"
[run]
duration = "6s"
warmup = "0s"
[subnet]
routing = "{routing}"
{roots}
[infiniband_switch."ib{{1..{switches}}}"]
[ethernet_switch.tor]
[switch.san]
[host."server{{1..{hosts}}}"]
multipath = {{ fast_io_fail = "1s", no_path_retry = 0 }}
[storage.array]
rate = "20k/s"
srp = {{}}
iscsi = {{ portals = ["192.0.2.1:3260"] }}
[[link]]
from = "array"
to = "san"
rate = "8GFC"
[[link]]
from = "array"
to = "tor"
rate = "10GbE"
"#
    );
    let mut links = 0;
    let mut link = |text: &mut String, from: &str, to: u64, count: u64| {
        links += 1;
        let from = from.to_owned();
        *text += &format!(
            "[[link]]\nname = \"link{links}x{{1..{count}}}\"\nfrom = \"{from}\"\nto = \"ib{to}\"\nrate = \"4xQDR\"\ncount = {count}\n"
        );
    };
    let is_tree = dice.chance(1, 2);
    for switch in 2..=switches {
        let count = dice.range(1, 2);
        link(&mut text, &format!("ib{}", if is_tree { dice.range(1, switch - 1) } else { switch - 1 }), switch, count);
    }
    if switches > 2 && dice.chance(1, 2) {
        link(&mut text, &format!("ib{switches}"), 1, 1);
    }
    for _ in 0..dice.range(1, 2) {
        link(&mut text, "array", dice.range(1, switches), 1);
    }
    for host in 1..=hosts {
        for _ in 0..dice.range(1, 2) {
            link(&mut text, &format!("server{host}"), dice.range(1, switches), 1);
        }
        match dice.range(1, 6) {
            1 => text += &format!("[[link]]\nfrom = \"server{host}\"\nto = \"san\"\nrate = \"8GFC\"\n"),
            2 => text += &format!("[[link]]\nfrom = \"server{host}\"\nto = \"tor\"\nrate = \"10GbE\"\n"),
            _ => {}
        }
    }
    text += &format!(
        "[workload.load]\nhosts = \"server{{1..{hosts}}}\"\ntargets = \"array\"\nsize = \"4KiB\"\narrivals = \"constant 100/s\"\n"
    );
    text
}

fn judge(lab: &Lab, dice: &mut Dice, seen: &mut [u64; 2]) -> Result<(), String> {
    let (report, reach) = (Report::of(lab, &[]), Reach::of(lab, &[]));
    let mut state = lab.clone();
    failure::clear(&mut state);
    let causes: BTreeSet<Cause> = failure::all(&state, &[]).iter().map(|single| single.cause).collect();
    let mut causes: Vec<Cause> = causes.into_iter().collect();
    let plan = Plan::new(state);
    for _ in 0..FAILURES.min(causes.len()) {
        let cause = causes.swap_remove(dice.index(causes.len()));
        let part = cause.part(lab).expect("no batteries");
        let lost: BTreeSet<u16> = reach.cut_off(part).keys().map(|(host, _)| *host).collect();
        let point = report.single_points.iter().find(|point| point.part == part);
        if point.map_or(0, |point| point.hosts) != lost.len() {
            return Err(format!("{cause:?} is {point:?}, but {lost:?} are cut off"));
        }
        let trial = plan.fail(cause, 0).expect("nobody interrupts");
        // The ports of a gateway in the fabric are hosts without a workload.
        let is_used = |number: u16| lab.workloads.iter().any(|workload| workload.hosts.contains(&number));
        for (number, host) in (0..).zip(&trial.hosts).filter(|(number, _)| is_used(*number)) {
            let works = trial.recovered_ps.is_some() && host.bytes > 0;
            if works == lost.contains(&number) {
                return Err(format!("{cause:?}: host {number}: {host:?} of {trial:?}, cut off: {lost:?}"));
            }
        }
        seen[usize::from(!lost.is_empty())] += 1;
    }
    // A host with a single link to all its storage has no second path without a common link.
    let points = report.single_points.iter().filter(|point| point.name.starts_with("link"));
    if points.count() > 0 && report.hosts_without_two_paths.is_empty() {
        return Err(format!("{:?}", report.single_points));
    }
    Ok(())
}
