//! `sanloom bench io`, directly at a target and through the PDU-copy ceiling.

use crate::iscsi::bed::Bed;
use crate::iscsi::raw::{pdu, read_pdu};
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::try_run;
use sanloom_test_support::qemu_io::write_and_verify;
use sanloom_test_support::started::Process;
use sanloom_test_support::wait;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The ceiling.
fn copier(listen: &str, to: &str, options: &[&str]) -> Process {
    let mut command = Command::new(SANLOOM);
    command.args(["bench", "pdu-copy", "--listen", listen, "--to", to]).args(options);
    let process = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    wait::until(|| "it does not listen".to_owned(), || TcpStream::connect(listen).is_ok());
    process
}

/// Success and output of the command.
fn bench(arguments: &[&str]) -> (bool, String) {
    let (good, output, errors) = try_run(SANLOOM, &[&["bench", "io"], arguments].concat());
    (good, if good { output } else { errors })
}

#[test]
fn requests_are_counted_on_every_path_and_negotiated_parameters_are_printed() {
    let mut bed = Bed::start("bench");
    let copy = free_port();
    let copier = copier(&copy, &bed.portals[0], &[]);
    let target = Bed::target("ram");
    let (direct, copied) = (format!("direct={}/{target}/1", bed.portals[0]), format!("copy={copy}/{target}/1"));
    let own = format!("direct={}", bed.id());
    let pid = format!("copy={}", copier.id());
    let common = [&direct, &copied, "--size=4K,256K", "--depth=1,8", "--seconds=0.05", "--rounds=2"];
    let more = ["--op=read,write", "--overwrite", "--sessions=2", "--random", "--pid", &own, "--pid", &pid, "--json"];
    let (good, output) = bench(&[&common[..], &more[..]].concat());
    assert!(good, "{output}");
    let report: serde_json::Value = serde_json::from_str(&output).expect("JSON alone");
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for row in cells.iter().flat_map(|cell| cell["paths"].as_array().unwrap()) {
        let number = |name: &str| row[name].as_f64().unwrap_or(0.0);
        assert!(number("mb_per_s") > 0.0 && number("iops") > 0.0 && number("ratio") > 0.0, "{row}");
        let latencies: Vec<f64> = row["latency_us"].as_array().unwrap().iter().filter_map(|us| us.as_f64()).collect();
        assert!(latencies.len() == 4 && latencies[0] > 0.0 && latencies.is_sorted(), "{row}");
        assert!(row["process_cpu_ms_per_gb"].is_f64());
    }
    let agreed = &report["paths"][0];
    assert_eq!((&agreed["send_bytes"], &agreed["initial_r2t"]), (&262_144.into(), &false.into()));
    assert_eq!(report["means"].as_array().unwrap().len(), 4);
    let (good, table) = bench(&[&direct, "--size=64K", "--depth=4", "--seconds=0.05", "--digests"]);
    assert!(good && table.contains("digests yes/yes") && table.contains("64 KiB"), "{table}");
    drop(copier);
    bed.stop();
    assert!(!bed.log().contains("WARN"));
}

#[needs("qemu-io")]
#[test]
fn every_mover_and_habit_of_a_forwarder_passes_data_unchanged() {
    let mut bed = Bed::start("movers");
    let all: [&[&str]; 6] = [
        &["--mover", "splice"],
        &["--mover", "io-uring"],
        &["--whole-pdus"],
        &["--single-pdus"],
        &["--single-reads"],
        &["--whole-pdus", "--single-pdus", "--single-reads"],
    ];
    for options in all {
        let copy = free_port();
        let copier = copier(&copy, &bed.portals[0], options);
        write_and_verify(&format!("iscsi://{copy}/{}/1", Bed::target("ram")));
        // More than the buffers hold, in both directions at once.
        let place = format!("{copy}/{}/1", Bed::target("ram"));
        let (good, output) = bench(&[
            &place,
            "--size=4K,1M",
            "--depth=1,16",
            "--op=read,write",
            "--overwrite",
            "--sessions=3",
            "--seconds=0.05",
            "--rounds=2",
        ]);
        assert!(good, "{options:?}: {output}");
        drop(copier);
    }
    bed.stop();
    let (good, _, why) = try_run(
        SANLOOM,
        &["bench", "pdu-copy", "--mover=splice", "--whole-pdus", "--listen=127.0.0.1:0", "--to=127.0.0.1:1"],
    );
    assert!(!good && why.contains("require --mover copy"), "{why}");
}

#[test]
fn digests_are_those_of_the_paths_that_are_named() {
    let mut bed = Bed::start("digests-named");
    let place = |name: &str| format!("{name}={}/{}/1", bed.portals[0], Bed::target("ram"));
    let (good, output) =
        bench(&[&place("plain"), &place("safe"), "--digests=safe", "--size=4K", "--depth=1", "--seconds=0.05"]);
    let digests = |name: &str| output.lines().find(|line| line.trim_start().starts_with(&format!("{name}: "))).unwrap();
    assert!(good && digests("plain").ends_with("no/no") && digests("safe").ends_with("yes/yes"), "{output}");
    let (good, output) = bench(&[&place("plain"), "--digests=safe"]);
    assert!(!good && output.contains("no path has this name; the paths are plain"), "{output}");
    bed.stop();
}

#[test]
fn measurements_that_are_impossible_are_reported_with_the_reason() {
    let mut bed = Bed::start("bench-refused");
    let place = |storage: &str, lun: u16| format!("{}/{}/{lun}", bed.portals[0], Bed::target(storage));
    let cases: [(&[&str], &str); 7] = [
        (&[&place("ram", 0), "--op=write"], "--overwrite"),
        (&[&place("ram", 0), &place("ram", 0)], "give them names"),
        (&[&place("ram", 0), "--pid=other=1"], "no path has this name"),
        (&[&place("ram", 9)], "the unit rejected READ CAPACITY with status 02"),
        (&[&place("nothing", 0)], "target not found"),
        (&[&place("private", 0)], "authorization failure"),
        (&["127.0.0.1:1/iqn.2026-11.net.example:disk"], "no connection"),
    ];
    for (arguments, reason) in cases {
        let (good, output) = bench(arguments);
        assert!(!good && output.contains(reason), "{arguments:?}: {output}");
    }
    bed.stop();
}

/// Time between two NOP-Ins. A target is given up after several of them
/// without an answer.
const NOP_PAUSE: Duration = Duration::from_millis(500);

/// Starts a target that stops reading. Data from `portal` pass until they contain a block, and are
/// replaced by NOP-Ins afterwards, which `sent` counts. Returns its address.
fn nop_only_target(portal: &str, sent: Arc<AtomicU32>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, portal) = (listener.local_addr().unwrap().to_string(), portal.to_owned());
    thread::spawn(move || -> io::Result<()> {
        let mut initiator = listener.accept()?.0;
        let mut target = TcpStream::connect(portal)?;
        let (mut from, mut to) = (initiator.try_clone()?, target.try_clone()?);
        thread::spawn(move || io::copy(&mut from, &mut to));
        let mut numbers = Vec::new();
        loop {
            let received = read_pdu(&mut target)?;
            if received[0] == 0x25 && received.len() > 512 {
                break;
            }
            numbers = received[24..36].to_vec();
            initiator.write_all(&received)?;
        }
        // StatSN of the next response, ExpCmdSN, MaxCmdSN.
        numbers[3] = numbers[3].wrapping_add(1);
        let tag = [0xff; 4];
        loop {
            initiator.write_all(&pdu(&[(0, &[0x20, 0x80]), (16, &tag), (20, &tag), (24, &numbers)], &[]))?;
            sent.fetch_add(1, Ordering::Relaxed);
            thread::sleep(NOP_PAUSE);
        }
    });
    address
}

#[test]
fn a_target_that_sends_only_nop_in_times_out() {
    let mut bed = Bed::start("bench-talkative");
    let sent = Arc::new(AtomicU32::new(0));
    let path = format!("{}/{}/0", nop_only_target(&bed.portals[0], sent.clone()), Bed::target("ram"));
    let (good, output) = bench(&[&path, "--size=64K", "--depth=4", "--seconds=0.05"]);
    assert!(!good && output.contains("has made no progress for 10 s"), "{output}");
    // It has sent PDUs until it was given up.
    assert!(sent.load(Ordering::Relaxed) > 2, "{sent:?} NOP-Ins");
    bed.stop();
}
