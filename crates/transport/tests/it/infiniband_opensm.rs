//! LIDs and forwarding tables against OpenSM on simulated fabrics of ibsim.

use crate::infiniband_fabrics::{FAMILIES, Family, Sample, draw, name, text};
use sanloom_test_support::needs;
use sanloom_test_support::started::Folder;
use sanloom_transport::infiniband::fabric::Guid;
use sanloom_transport::infiniband::lids::Lid;
use sanloom_transport::infiniband::manager::{Config, Subnet, bring_up};
use sanloom_transport::infiniband::routing::Engine;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Library that connects a program with ibsim instead of a device.
const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

/// Tables by the GUID of the switch: egress port by LID.
type Tables = BTreeMap<Guid, BTreeMap<Lid, u8>>;

/// Subnet as OpenSM has configured it.
struct Judged {
    /// Base and highest LID by the GUID of the end port.
    lids: BTreeMap<Guid, (Lid, Lid)>,
    tables: Tables,
    /// Engine that made the tables.
    engine: String,
}

/// Running ibsim, which ends on drop.
struct Simulator {
    process: Child,
    socket: String,
}

impl Simulator {
    fn start(folder: &Folder, net: &str) -> Simulator {
        static SOCKETS: AtomicU32 = AtomicU32::new(0);
        let file = folder.join("net");
        fs::write(&file, net).unwrap();
        // The names of its sockets begin with this, so that several simulators run side by side.
        let socket = format!("sanloom-{}-{}", std::process::id(), SOCKETS.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new("ibsim");
        command.args(["-s", "-n"]).arg(file).env("IBSIM_SOCKNAME", &socket).current_dir(&**folder);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("MaxMcastCap")), "ibsim does not start with:\n{net}");
        Simulator { process, socket }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs OpenSM once on a fabric.
fn judge(sample: &Sample, config: &Config) -> Judged {
    let folder = Folder::new("opensm");
    let simulator = Simulator::start(&folder, &text(&sample.fabric));
    let mut command = Command::new("opensm");
    command.args(["-o", "-D", "0x43", "-R", &config.engine.to_string(), "-l", &config.lmc.to_string()]);
    // A port GUID, because a host with several ports would be attached at its first one.
    let guid = sample.fabric.node(sample.manager.node).port_guid(sample.manager.port);
    command.arg("-g").arg(format!("{:#x}", guid.0)).arg("-f").arg(folder.join("log"));
    if !config.roots.is_empty() {
        let roots: Vec<String> = config.roots.iter().map(|root| format!("{:#x}\n", root.0)).collect();
        fs::write(folder.join("roots"), roots.concat()).unwrap();
        command.arg("-a").arg(folder.join("roots"));
    }
    command.env("OSM_TMP_DIR", &*folder).env("OSM_CACHE_DIR", &*folder).env("LD_PRELOAD", PRELOAD);
    command.env("SIM_HOST", name(sample.manager.node)).env("IBSIM_SOCKNAME", &simulator.socket);
    let output = command.current_dir(&*folder).stdin(Stdio::null()).output().unwrap();
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(log.contains("SUBNET UP"), "{}\n{log}", String::from_utf8_lossy(&output.stdout));
    let engine = log.lines().rev().find_map(|line| line.split_once(" tables configured")).unwrap().0;
    let engine = engine.rsplit(' ').next().unwrap().to_owned();
    Judged { lids: read_lids(&folder), tables: read_tables(&folder), engine }
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn read_lids(folder: &Path) -> BTreeMap<Guid, (Lid, Lid)> {
    let text = fs::read_to_string(folder.join("guid2lid")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(hexadecimal).collect();
            (Guid(numbers[0]), (numbers[1] as Lid, numbers[2] as Lid))
        })
        .collect()
}

fn read_tables(folder: &Path) -> Tables {
    let text = fs::read_to_string(folder.join("opensm-lfts.dump")).unwrap();
    let mut tables = Tables::new();
    let mut switch = Guid(0);
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" guid ") {
            switch = Guid(hexadecimal(rest.split(' ').next().unwrap()));
            tables.insert(switch, BTreeMap::new());
        } else if line.starts_with("0x") {
            let mut words = line.split(' ');
            let lid = hexadecimal(words.next().unwrap()) as Lid;
            let port = words.next().unwrap().parse().unwrap();
            tables.get_mut(&switch).unwrap().insert(lid, port);
        }
    }
    tables
}

/// Subnet in the form of the judge.
fn ours(sample: &Sample, subnet: &Subnet) -> Judged {
    let guid = |end: sanloom_transport::infiniband::fabric::PortId| sample.fabric.node(end.node).port_guid(end.port);
    let lids = subnet.lids.iter().map(|(end, range)| (guid(end), (range.base, range.base + range.count - 1)));
    let tables = subnet.tables.iter().map(|(node, table)| (sample.fabric.node(*node).guid, table.iter().collect()));
    Judged { lids: lids.collect(), tables: tables.collect(), engine: subnet.engine.to_string() }
}

/// Compares one fabric and returns the first difference.
fn compare(sample: &Sample, config: &Config) -> Result<(), String> {
    let judged = judge(sample, config);
    let subnet = bring_up(&sample.fabric, sample.manager, config).unwrap();
    let ours = ours(sample, &subnet);
    if ours.engine != judged.engine {
        return Err(format!("engine {} ({:?}) instead of {}", ours.engine, subnet.refusal, judged.engine));
    }
    if ours.lids != judged.lids {
        return Err(format!("LIDs\n ours {:?}\ntheirs {:?}", ours.lids, judged.lids));
    }
    let mut differences = String::new();
    for (guid, theirs) in &judged.tables {
        for lid in 1..=subnet.lids.highest() {
            let (ours, theirs) = (ours.tables[guid].get(&lid), theirs.get(&lid));
            if ours != theirs {
                let end = subnet.lids.port(lid);
                let node = sample.fabric.nodes().iter().position(|node| node.guid == *guid);
                differences += &format!("n{node:?}: LID {lid} of {end:?}: {ours:?} instead of {theirs:?}\n");
            }
        }
    }
    if ours.tables.len() != judged.tables.len() || !differences.is_empty() {
        return Err(format!("tables\n{differences}"));
    }
    Ok(())
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |value| value.parse().unwrap())
}

/// Compares random fabrics of all families; `SANLOOM_SEEDS` sets their number.
fn campaign(default: u64, families: &[Family], config: impl Fn(u64, &Sample) -> Config) {
    let first = number("SANLOOM_FIRST_SEED", 1);
    let seeds = first..first + number("SANLOOM_SEEDS", default);
    let (mut compared, mut replaced) = (0, 0);
    let mut wrong = Vec::new();
    for seed in seeds {
        let family = families[seed as usize % families.len()];
        let sample = draw(family, seed);
        let config = config(seed, &sample);
        compared += 1;
        replaced += u32::from(bring_up(&sample.fabric, sample.manager, &config).unwrap().refusal.is_some());
        if let Err(difference) = compare(&sample, &config) {
            wrong.push(format!("seed {seed}, {family:?}, {config:?}: {difference}"));
        }
    }
    println!("{compared} fabrics compared, {} equal, {replaced} refused by the engine", compared - wrong.len());
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
}

#[needs("opensm", "ibsim")]
#[test]
fn minhop_tables_equal_those_of_opensm() {
    campaign(16, &FAMILIES, |_, _| Config::default());
}

#[needs("opensm", "ibsim")]
#[test]
fn updn_tables_equal_those_of_opensm() {
    campaign(12, &FAMILIES, |_, _| Config { engine: Engine::UpDown, ..Config::default() });
}

/// GUID of a random switch.
fn a_root(seed: u64, sample: &Sample) -> Guid {
    let switches: Vec<Guid> =
        sample.fabric.nodes().iter().filter(|node| node.is_switch()).map(|node| node.guid).collect();
    switches[seed as usize % switches.len()]
}

#[needs("opensm", "ibsim")]
#[test]
fn updn_tables_with_named_roots_equal_those_of_opensm() {
    campaign(8, &[Family::Graph], |seed, sample| Config {
        engine: Engine::UpDown,
        roots: vec![a_root(seed, sample)],
        ..Config::default()
    });
}

#[needs("opensm", "ibsim")]
#[test]
fn ftree_tables_equal_those_of_opensm() {
    let families = [Family::TwoLevels, Family::ThreeLevels];
    campaign(12, &families, |_, _| Config { engine: Engine::FatTree, ..Config::default() });
}

#[needs("opensm", "ibsim")]
#[test]
fn tables_with_several_lids_per_port_equal_those_of_opensm() {
    campaign(12, &FAMILIES, |seed, _| Config { lmc: 1 + (seed % 7) as u8, ..Config::default() });
}
