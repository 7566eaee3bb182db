//! FCIP over a network that delays, reorders and loses packets: two network namespaces, joined by
//! two taps whose frames the test carries.

use crate::live::fcip::LAB;
use crate::sanloom::{SANLOOM, Start};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_live::ports::Tap;
use sanloom_test_support::needs;
use sanloom_test_support::programs::{first_export, run};
use sanloom_test_support::qemu_io::write_and_verify;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::{alone, wait};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Delay of a packet, evenly distributed, in microseconds.
const DELAY_US: std::ops::Range<u64> = 1_000..3_000;
/// One packet of so many is lost.
const LOSS: u32 = 500;

/// Number of packets that have overtaken an earlier one, and that were lost.
#[derive(Default)]
struct Counts {
    overtaken: AtomicU64,
    lost: AtomicU64,
}

/// Carries the frames from one tap to the other, in an order of its own.
fn carry(mut from: File, mut to: File, seed: u64, counts: &Counts) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pending: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>> = BinaryHeap::new();
    let (mut next, mut latest) = (0, 0);
    let mut buffer = vec![0; 4_096];
    loop {
        while let Ok(got) = from.read(&mut buffer) {
            if random.random_range(0..LOSS) == 0 {
                counts.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let due = Instant::now() + Duration::from_micros(random.random_range(DELAY_US));
            pending.push(Reverse((due, next, buffer[..got].to_vec())));
            next += 1;
        }
        while pending.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            let Some(Reverse((_, number, frame))) = pending.pop() else { break };
            counts.overtaken.fetch_add(u64::from(number < latest), Ordering::Relaxed);
            latest = latest.max(number);
            let _ = to.write(&frame);
        }
        thread::sleep(Duration::from_micros(100));
    }
}

fn file(tap: &Tap) -> File {
    File::from(tap.socket().try_clone_to_owned().unwrap())
}

/// TCP repairs what the network does: the fabric is one, and all data are right.
#[needs("namespace", "nbdinfo", "qemu-io")]
#[test]
fn a_network_that_reorders_and_loses_packets_damages_nothing() {
    if !alone::in_network("live::fcip_packets::a_network_that_reorders_and_loses_packets_damages_nothing") {
        return;
    }
    run("ip", &["link", "set", "lo", "up"]);
    let taps = [Tap::open("near").unwrap(), Tap::open("far").unwrap()];
    let files = [file(&taps[0]), file(&taps[1])];
    // The far end lives in a namespace of its own, which a sleeping process holds.
    let holder = Process(Command::new("unshare").args(["-n", "sleep", "600"]).spawn().unwrap());
    let holder_id = holder.id().to_string();
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let theirs = || fs::read_link(format!("/proc/{holder_id}/ns/net")).is_ok_and(|net| net != own);
    wait::until(|| "another namespace".to_owned(), theirs);
    run("ip", &["link", "set", "far", "netns", &holder_id]);
    run("ip", &["address", "add", "10.9.0.1/24", "dev", "near"]);
    run("ip", &["link", "set", "near", "up"]);
    let far = |arguments: &[&str]| run("nsenter", &[&["-t", &holder_id, "-n", "ip"], arguments].concat());
    far(&["link", "set", "lo", "up"]);
    far(&["address", "add", "10.9.0.2/24", "dev", "far"]);
    far(&["link", "set", "far", "up"]);
    let counts: Arc<Counts> = Arc::default();
    let [near_file, far_file] = files;
    for (seed, from, to) in
        [(1, near_file.try_clone().unwrap(), far_file.try_clone().unwrap()), (2, far_file, near_file)]
    {
        let counts = counts.clone();
        thread::spawn(move || carry(from, to, seed, &counts));
    }

    let folder = Folder::new("fcip-packets");
    let address = "10.9.0.1:3225".to_owned();
    let values = [("{folder}", folder.display().to_string()), ("{listen}", address.clone()), ("{peer}", address)];
    let lab = values.iter().fold(LAB.to_owned(), |text, (from, to)| text.replace(from, to));
    fs::write(folder.join("lab.toml"), lab).unwrap();
    let path = folder.path("lab.toml");
    let _near = folder.sanloom(["up", &path, "--switch", "near"]);
    let mut enter = Command::new("nsenter");
    enter.args(["-t", &holder_id, "-n", SANLOOM, "up", &path, "--switch", "far"]);
    let _far = folder.start(enter);
    let show = |table: &str| run(SANLOOM, &["show", table, "--live", "--switch", "near", &path]);
    wait::until(|| show("ports"), || show("ns").contains("disk1"));
    let nbd = folder.path("nbd.sock");
    let _initiator = folder.sanloom(["initiator", &path, "--host", "server1", "--nbd", &nbd]);
    let export = first_export(&folder.join("nbd.sock"));
    for _ in 0..3 {
        write_and_verify(&export);
    }
    let [overtaken, lost] = [&counts.overtaken, &counts.lost].map(|count| count.load(Ordering::Relaxed));
    assert!(overtaken > 1_000 && lost > 10, "{overtaken} packets overtaken, {lost} lost");
    assert!(show("ports").contains(" up "), "{}", show("ports"));
    assert!(!folder.log().contains("FCIP link down"), "{}", folder.log());
}
