//! A host writes and verifies with many commands in flight during failures of everything around it.
//! Back ends and the switch are killed, paths closed, and connections cut within data of reads and
//! writes. Another host reads slowly, and the volume and its pool grow.
//!
//! `SANLOOM_MINUTES` sets a longer duration than a short round of each path.

use crate::iscsi::raw::{pdu, read_pdu};
use crate::iscsi_switch::bed::{self, Bed, HOSTS_TARGET, Switch};
use crate::iscsi_switch::gate::{Gate, Inside};
use crate::iscsi_switch::gateway::wait_for_path;
use crate::iscsi_switch::host::{BLOCK, Host, sense};
use crate::sanloom::SANLOOM;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::wait::{self, TIMEOUT};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of commands in flight.
const DEPTH: usize = 12;
/// Distance between regions; each region is written and read as a whole.
const REGION_BYTES: u64 = 512 << 10;
/// Region lengths in bytes, used in turn: within a stripe, exactly one, over several, and at odd
/// blocks.
const LENGTHS: [usize; 4] = [4 << 10, 64 << 10, 300 << 10, 8 * BLOCK + 256 * BLOCK];
/// Maximum immediate data, and maximum length of a Data-Out.
const SEGMENT_BYTES: usize = 64 << 10;
/// Volume size before the third back end is added.
const EARLY_BYTES: u64 = 100 << 20;
/// Volume size afterwards, which exceeds two back ends. A stripe requires two back ends with free
/// space, which exist only until the first two are full.
const ALL_BYTES: u64 = 150 << 20;
/// Time before a command that was answered with BUSY is repeated.
const BUSY_PAUSE: Duration = Duration::from_millis(2);
/// Time for which the slow host reads nothing after each PDU.
const SLOW_PAUSE: Duration = Duration::from_millis(30);
/// Number of failures of a short round, two of each kind, and number of commands after each.
const FAILURES: u64 = 12;
const COMMANDS: u64 = 100;
const BUSY: u8 = 8;
const CHECK_CONDITION: u8 = 2;
const UNIT_ATTENTION: u8 = 6;
const ABORTED_COMMAND: u8 = 0xb;

/// State of a region, as known to the host.
#[derive(Clone, Copy, Default)]
struct Region {
    /// Last acknowledged version; 0: zeros.
    version: u32,
    /// Version of an unacknowledged write, which may be present completely, partly, or not at all.
    sent: Option<u32>,
    busy: bool,
}

/// An in-flight command.
struct Open {
    region: usize,
    write: bool,
    data: Vec<u8>,
}

struct Verifier {
    portal: String,
    /// True if its commands are forwarded.
    forward: bool,
    connection: TcpStream,
    number: u32,
    regions: Vec<Region>,
    open: BTreeMap<[u8; 4], Open>,
    chance: Xoshiro256PlusPlus,
    last_good: Instant,
    /// Number of reads, writes, repeated commands, and logins.
    counts: [u64; 4],
    /// Number of reads and writes, for the test.
    finished: Arc<AtomicU64>,
}

fn content(region: usize, version: u32) -> Vec<u8> {
    let words = LENGTHS[region % LENGTHS.len()] as u64 / 8;
    let word = |n: u64| if version == 0 { 0 } else { (region as u64) << 48 | u64::from(version) << 24 | n };
    (0..words).flat_map(|n| word(n).to_be_bytes()).collect()
}

impl Verifier {
    fn new(portal: &str, forward: bool, seed: u64, finished: Arc<AtomicU64>) -> Verifier {
        Verifier {
            portal: portal.to_owned(),
            forward,
            connection: log_in(portal, 1).connection,
            number: 1,
            regions: Vec::new(),
            open: BTreeMap::new(),
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            last_good: Instant::now(),
            counts: [0; 4],
            finished,
        }
    }

    /// Runs until `stop`, then reads every region once more. The size of the volume may grow
    /// meanwhile.
    fn run(mut self, size: &AtomicU64, stop: &AtomicBool) -> [u64; 4] {
        while !stop.load(Ordering::Relaxed) {
            self.regions.resize((size.load(Ordering::Relaxed) / REGION_BYTES) as usize, Region::default());
            while self.open.len() < DEPTH {
                let region = self.chance.random_range(0..self.regions.len());
                let write = self.chance.random_range(0..2) == 0;
                self.begin(region, write);
            }
            self.go_on();
        }
        for region in 0..self.regions.len() {
            let reads = self.counts[0];
            while self.counts[0] == reads || self.regions[region].busy {
                self.begin(region, false);
                self.go_on();
            }
        }
        while !self.open.is_empty() {
            self.go_on();
        }
        self.counts
    }

    /// Starts a read or a write of a region that has no command in flight. A region with a partial
    /// write is written first.
    fn begin(&mut self, number: usize, write: bool) {
        let region = &mut self.regions[number];
        if std::mem::replace(&mut region.busy, true) {
            return;
        }
        let version = region.sent.or(write.then_some(region.version + 1));
        region.sent = version;
        let lba = (number as u64 * REGION_BYTES / BLOCK as u64) as u32;
        let bytes = LENGTHS[number % LENGTHS.len()];
        let tag = self.number.to_be_bytes();
        self.number += 1;
        let data = version.map(|version| content(number, version)).unwrap_or_default();
        let (flags, opcode) = if version.is_some() { (0xa1, 0x2a) } else { (0xc1, 0x28) };
        let ([a, b, c, d], [high, low]) = (lba.to_be_bytes(), ((bytes / BLOCK) as u16).to_be_bytes());
        let expected = (bytes as u32).to_be_bytes();
        let cdb = [opcode, 0, a, b, c, d, 0, high, low, 0];
        let fields: [(usize, &[u8]); 5] = [(0, &[0x01, flags]), (16, &tag), (20, &expected), (24, &tag), (32, &cdb)];
        let sent = self.connection.write_all(&pdu(&fields, &data[..data.len().min(SEGMENT_BYTES)]));
        self.open.insert(tag, Open { region: number, write: version.is_some(), data });
        if sent.is_err() {
            self.log_in_again();
        }
    }

    fn go_on(&mut self) {
        if !self.open.is_empty() && self.read_pdu().is_err() {
            self.log_in_again();
        }
        assert!(self.last_good.elapsed() < TIMEOUT, "nothing has worked for {TIMEOUT:?}: {:?}", self.counts);
    }

    /// Repeats unacknowledged commands, as a host does.
    fn log_in_again(&mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            self.regions[open.region].busy = false;
        }
        self.connection = log_in(&self.portal, 1).connection;
        self.number = 1;
        self.counts[3] += 1;
    }

    /// The next PDU of the switch.
    fn read_pdu(&mut self) -> io::Result<()> {
        let received = read_pdu(&mut self.connection)?;
        let word = |at: usize| u32::from_be_bytes(received[at..at + 4].try_into().unwrap());
        let tag: [u8; 4] = received[16..20].try_into().unwrap();
        let Some(open) = self.open.get_mut(&tag) else { return Ok(()) };
        match received[0] {
            // R2T.
            0x31 => {
                let (from, wanted) = (word(40) as usize, word(44) as usize);
                for (number, at) in (0_u32..).zip((from..from + wanted).step_by(SEGMENT_BYTES)) {
                    let end = (at + SEGMENT_BYTES).min(from + wanted);
                    let last = if end == from + wanted { 0x80 } else { 0 };
                    let fields: [(usize, &[u8]); 5] = [
                        (0, &[0x05, last]),
                        (16, &tag),
                        (20, &received[20..24]),
                        (36, &number.to_be_bytes()),
                        (40, &(at as u32).to_be_bytes()),
                    ];
                    self.connection.write_all(&pdu(&fields, &open.data[at..end]))?;
                }
                return Ok(());
            }
            // Data-In.
            0x25 => {
                let len = word(4) as usize & 0xff_ffff;
                assert_eq!(word(40) as usize, open.data.len(), "data of a read are in order");
                open.data.extend_from_slice(&received[48..48 + len]);
                if received[1] & 1 == 0 {
                    return Ok(());
                }
            }
            0x21 => {}
            other => panic!("{other:#x}"),
        }
        let (status, open) = (received[3], self.open.remove(&tag).unwrap());
        let region = &mut self.regions[open.region];
        region.busy = false;
        if status != 0 {
            // A lost path is reported to forwarded hosts; commands on the conventional path wait
            // for it.
            let [key, ..] = sense(&received);
            let is_known = match status {
                BUSY => self.forward,
                CHECK_CONDITION => key == UNIT_ATTENTION || (self.forward && key == ABORTED_COMMAND),
                _ => false,
            };
            assert!(is_known, "status {status:#x}, sense {:02x?}", sense(&received));
            self.counts[2] += 1;
            if status == BUSY {
                thread::sleep(BUSY_PAUSE);
            }
            return Ok(());
        }
        self.last_good = Instant::now();
        self.counts[usize::from(open.write)] += 1;
        self.finished.fetch_add(1, Ordering::Relaxed);
        if let (true, Some(version)) = (open.write, region.sent.take()) {
            region.version = version;
            return Ok(());
        }
        let expected = content(open.region, region.version);
        let wrong = expected.iter().zip(&open.data).position(|(a, b)| a != b);
        assert!(
            open.data.len() == expected.len() && wrong.is_none(),
            "region {}, version {}: byte {wrong:?} of {} is wrong",
            open.region,
            region.version,
            open.data.len()
        );
        Ok(())
    }
}

/// Logs in as soon as the portal accepts connections.
fn log_in(portal: &str, session: u16) -> Host {
    wait::value(|| format!("a login at {portal}"), || Host::try_log_in(portal, HOSTS_TARGET, session, "").ok())
}

/// Reads large amounts of data slowly. Returns the number of received PDUs.
fn slow_host(portal: &str, stop: &AtomicBool) -> u64 {
    let mut received = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let mut host = log_in(portal, 2);
        (0..16).for_each(|number| _ = read(&mut host, number));
        while !stop.load(Ordering::Relaxed) && read_pdu(&mut host.connection).is_ok() {
            received += 1;
            if received.is_multiple_of(16) {
                // Other commands may have failed; some data always arrive.
                _ = read(&mut host, (received % 16) as u32);
            }
            thread::sleep(SLOW_PAUSE);
        }
    }
    received
}

/// Requests 1 MiB. If the connection has been closed, the next read reports it.
fn read(host: &mut Host, number: u32) -> io::Result<()> {
    let ([a, b, c, d], tag) = ((number * 2048).to_be_bytes(), host.number.to_be_bytes());
    host.number += 1;
    let cdb = [0x28, 0, a, b, c, d, 0, 8, 0, 0];
    let fields: [(usize, &[u8]); 5] =
        [(0, &[0x01, 0xc1]), (16, &tag), (20, &(1_u32 << 20).to_be_bytes()), (24, &tag), (32, &cdb)];
    host.connection.write_all(&pdu(&fields, &[]))
}

/// Part of the campaign that is over, up to 1: of the time in `SANLOOM_MINUTES`, or of
/// [`FAILURES`].
fn part_over(begun: Instant, failures: u64) -> f64 {
    let minutes = std::env::var("SANLOOM_MINUTES").ok().map(|text| text.parse::<u64>().expect("a number of minutes"));
    minutes.map_or(failures as f64 / FAILURES as f64, |minutes| begun.elapsed().as_secs_f64() / (60 * minutes) as f64)
}

#[test]
fn a_host_verifies_at_depth_while_everything_around_it_fails() {
    endure(true);
}

#[test]
fn a_host_verifies_at_depth_while_everything_around_it_fails_conventionally() {
    endure(false);
}

fn endure(forward: bool) {
    let bed = Bed::new(&format!("endurance-{forward}"));
    let portals = [free_port(), free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let mut second = bed::storage(&bed, "second", &portals[1]);
    // Two paths to the first back end, one to the second.
    let gates = [&portals[0], &portals[0], &portals[1]].map(|portal| Gate::to(portal));
    let lab = format!(
        "[pool.disks]\nextent = \"256KiB\"\n{}{}{}",
        bed::back_end("first", "disks", &[&gates[0].address, &gates[1].address]),
        bed::back_end("second", "disks", &[&gates[2].address]),
        "[volume.v]\npool = \"disks\"\nsize = \"64MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\n",
    );
    let mut switch = Switch::start_on(&bed, forward, &lab);
    switch.wait_for(&["v"]);
    let (size, stop) = (Arc::new(AtomicU64::new(64 << 20)), Arc::new(AtomicBool::new(false)));
    let portal = switch.portals[0].clone();
    let finished = Arc::new(AtomicU64::new(0));
    let verifier = thread::spawn({
        let (size, stop, finished) = (size.clone(), stop.clone(), finished.clone());
        move || Verifier::new(&portal, forward, 7, finished).run(&size, &stop)
    });
    let wait_for_commands = |more: u64| {
        let now = || finished.load(Ordering::Relaxed);
        let end = now() + more;
        wait::until(
            || format!("{} of {end} commands", now()),
            || {
                assert!(!verifier.is_finished(), "the verifier has ended");
                now() >= end
            },
        );
    };
    let portal = switch.portals[1].clone();
    let slow = thread::spawn({
        let stop = stop.clone();
        move || slow_host(&portal, &stop)
    });
    let begun = Instant::now();
    let mut third = None;
    let (mut kills, mut carried) = (0, [0; 2]);
    let mut count = |switch: &Switch<'_>| {
        switch.assert_path("v", forward, 0, 0);
        let row = switch.carried("v")[usize::from(!forward)];
        carried = [carried[0] + row.read_bytes, carried[1] + row.written_bytes];
        carried
    };
    for round in 0.. {
        let over = part_over(begun, round as u64);
        if over >= 1.0 {
            break;
        }
        match round % 6 {
            0 => cut(&gates[..2], Inside::Read),
            1 => cut(&gates[2..], Inside::Write),
            2 => {
                second.kill();
                wait_for_path(&bed, "second", |row| row.portal.is_none());
                second = bed::storage(&bed, "second", &portals[1]);
            }
            3 => cut(&gates[..2], Inside::Write),
            4 => {
                count(&switch);
                switch.kill();
                switch.restart();
                kills += 1;
            }
            _ => {
                let direction = round / 6 % 2;
                gates[direction].close(true);
                wait_for_path(&bed, "first", |row| row.portals[1 - direction].used);
                gates[direction].close(false);
            }
        }
        assert!(!slow.is_finished(), "the slow host has ended");
        if third.is_none() && over > 0.3 {
            third = Some(bed::storage(&bed, "third", &portals[2]));
            let output = switch.apply(&bed::back_end("third", "disks", &[&portals[2]]));
            assert!(output.contains("back end third"), "{output}");
        }
        let larger = size.load(Ordering::Relaxed) + (1 << 20);
        if larger <= if third.is_some() { ALL_BYTES } else { EARLY_BYTES } {
            extend(&switch, larger);
            size.store(larger, Ordering::Relaxed);
        }
        wait_for_commands(COMMANDS);
    }
    let third = third.expect("the pool has grown");
    if size.load(Ordering::Relaxed) < ALL_BYTES {
        extend(&switch, ALL_BYTES);
        size.store(ALL_BYTES, Ordering::Relaxed);
        wait_for_commands(10 * COMMANDS);
    }
    stop.store(true, Ordering::Relaxed);
    let [reads, writes, again, logins] = verifier.join().unwrap();
    let fetched = slow.join().unwrap();
    let cuts = [Inside::Read, Inside::Write].map(|inside| gates.iter().map(|gate| gate.cuts(inside)).sum::<u32>());
    let lost = ["first", "second"].map(|back_end| bed.lost_sessions(back_end));
    println!(
        "{reads} reads, {writes} writes, {again} repeated, {logins} logins again; {fetched} PDUs fetched slowly; \
         cut in reads and writes: {cuts:?}; sessions lost: {lost:?}; the switch was killed {kills} times"
    );
    assert!(reads > 100 && writes > 100 && fetched > 50, "{reads} {writes} {fetched}");
    assert!(cuts.iter().all(|cuts| *cuts > 0) && lost.iter().all(|lost| *lost > 1), "{cuts:?} {lost:?}");
    let carried = count(&switch);
    assert!(kills > 0 && carried.iter().all(|bytes| *bytes > 4 << 20), "{kills} {carried:?}");
    switch.stop();
    bed.folder.assert_no_errors();
    drop(third);
}

/// Cuts a connection within data.
fn cut(gates: &[Gate], inside: Inside) {
    let cuts = || gates.iter().map(|gate| gate.cuts(inside)).sum::<u32>();
    let before = cuts();
    gates.iter().for_each(|gate| gate.cut_inside(Some(inside)));
    wait::until(|| format!("a cut within a {inside:?}"), || cuts() > before);
    gates.iter().for_each(|gate| gate.cut_inside(None));
}

/// The free space of a back end is known only after it has been reached.
fn extend(switch: &Switch<'_>, bytes: u64) {
    let arguments = switch.volume_arguments(&["extend", "v", "--size", &format!("{bytes}B")]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_extended = || {
        let (good, _, err) = crate::iscsi_switch::try_run(SANLOOM, &arguments);
        assert!(good || err.contains("was not reached yet"), "{err}");
        good
    };
    wait::until(|| format!("{bytes} bytes"), is_extended);
}
