//! A host that writes and verifies with many commands under way, while everything around it fails: back ends and the switch itself are
//! killed, ways closed, connections cut inside data of reads and of writes, another host fetches slowly, the volume grows, and its pool too.
//! `SANLOOM_MINUTES` asks for more than a short round of each path.

use crate::bed::{self, Bed, HOSTS_TARGET, Switch, free_port};
use crate::gate::{Gate, Inside};
use crate::host::{BLOCK, Host, sense};
use crate::raw::{hear, pdu};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Commands under way at once.
const DEPTH: usize = 12;
/// From one region to the next; each is written and read as a whole.
const REGION_BYTES: u64 = 512 << 10;
/// Bytes of regions, one after the other: within a stripe, as long as one, over several, and at odd blocks.
const LENGTHS: [usize; 4] = [4 << 10, 64 << 10, 300 << 10, 8 * BLOCK + 256 * BLOCK];
/// What goes with a command, and in one Data-Out.
const SEGMENT_BYTES: usize = 64 << 10;
/// What the volume grows to before the third back end is there.
const EARLY_BYTES: u64 = 100 << 20;
/// And then: more than two back ends have. Each stripe needs two with room, which are left only until the first two are full.
const ALL_BYTES: u64 = 150 << 20;
/// For so long nothing has to work.
const PATIENCE: Duration = Duration::from_secs(30);
const BUSY: u8 = 8;
const CHECK_CONDITION: u8 = 2;
const UNIT_ATTENTION: u8 = 6;
const ABORTED_COMMAND: u8 = 0xb;

/// What the host knows of a region.
#[derive(Clone, Copy, Default)]
struct Region {
    /// The last version that was acknowledged; 0: zeros.
    version: u32,
    /// A version that was sent, and may be there or not, in part or whole.
    sent: Option<u32>,
    busy: bool,
}

/// A command under way.
struct Open {
    region: usize,
    write: bool,
    data: Vec<u8>,
}

struct Verifier {
    portal: String,
    /// Its commands are forwarded.
    forward: bool,
    connection: TcpStream,
    number: u32,
    regions: Vec<Region>,
    open: BTreeMap<[u8; 4], Open>,
    chance: Xoshiro256PlusPlus,
    last_good: Instant,
    /// Reads, writes, commands that have to be repeated, logins.
    counts: [u64; 4],
}

fn content(region: usize, version: u32) -> Vec<u8> {
    let words = LENGTHS[region % LENGTHS.len()] as u64 / 8;
    let word = |n: u64| if version == 0 { 0 } else { (region as u64) << 48 | u64::from(version) << 24 | n };
    (0..words).flat_map(|n| word(n).to_be_bytes()).collect()
}

impl Verifier {
    fn new(portal: &str, forward: bool, seed: u64) -> Verifier {
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
        }
    }

    /// Until `stop`, and then until every region was read once more. The size of the volume may grow meanwhile.
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

    /// Begins a read or a write of a region, unless one is under way. What may be there in part is written first.
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
        if !self.open.is_empty() && self.hear().is_err() {
            self.log_in_again();
        }
        assert!(self.last_good.elapsed() < PATIENCE, "nothing has worked for {PATIENCE:?}: {:?}", self.counts);
    }

    /// What was not answered is repeated, as a host does.
    fn log_in_again(&mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            self.regions[open.region].busy = false;
        }
        self.connection = log_in(&self.portal, 1).connection;
        self.number = 1;
        self.counts[3] += 1;
    }

    /// The next PDU of the switch.
    fn hear(&mut self) -> io::Result<()> {
        let heard = hear(&mut self.connection)?;
        let word = |at: usize| u32::from_be_bytes(heard[at..at + 4].try_into().unwrap());
        let tag: [u8; 4] = heard[16..20].try_into().unwrap();
        let Some(open) = self.open.get_mut(&tag) else { return Ok(()) };
        match heard[0] {
            // R2T.
            0x31 => {
                let (from, wanted) = (word(40) as usize, word(44) as usize);
                for (number, at) in (0_u32..).zip((from..from + wanted).step_by(SEGMENT_BYTES)) {
                    let end = (at + SEGMENT_BYTES).min(from + wanted);
                    let last = if end == from + wanted { 0x80 } else { 0 };
                    let fields: [(usize, &[u8]); 5] = [
                        (0, &[0x05, last]),
                        (16, &tag),
                        (20, &heard[20..24]),
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
                open.data.extend_from_slice(&heard[48..48 + len]);
                if heard[1] & 1 == 0 {
                    return Ok(());
                }
            }
            0x21 => {}
            other => panic!("{other:#x}"),
        }
        let (status, open) = (heard[3], self.open.remove(&tag).unwrap());
        let region = &mut self.regions[open.region];
        region.busy = false;
        if status != 0 {
            // A path that is gone says so to who was forwarded; commands on the other one wait for it.
            let [key, ..] = sense(&heard);
            let is_known = match status {
                BUSY => self.forward,
                CHECK_CONDITION => key == UNIT_ATTENTION || (self.forward && key == ABORTED_COMMAND),
                _ => false,
            };
            assert!(is_known, "status {status:#x}, sense {:02x?}", sense(&heard));
            self.counts[2] += 1;
            if status == BUSY {
                thread::sleep(Duration::from_millis(2));
            }
            return Ok(());
        }
        self.last_good = Instant::now();
        self.counts[usize::from(open.write)] += 1;
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

/// Logs in as soon as somebody is there.
fn log_in(portal: &str, session: u16) -> Host {
    let until = Instant::now() + PATIENCE;
    loop {
        match Host::try_log_in(portal, HOSTS_TARGET, session, "") {
            Ok(host) => return host,
            Err(error) => assert!(Instant::now() < until, "nobody lets us in: {error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a lot, and fetches it slowly. How many PDUs it has heard.
fn slow_host(portal: &str, stop: &AtomicBool) -> u64 {
    let mut heard = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let mut host = log_in(portal, 2);
        (0..16).for_each(|number| _ = read(&mut host, number));
        while !stop.load(Ordering::Relaxed) && hear(&mut host.connection).is_ok() {
            heard += 1;
            if heard.is_multiple_of(16) {
                // Others may have failed; there is always something to fetch.
                _ = read(&mut host, (heard % 16) as u32);
            }
            thread::sleep(Duration::from_millis(30));
        }
    }
    heard
}

/// Asks for a MiB; somebody may have closed the connection, which is heard then.
fn read(host: &mut Host, number: u32) -> io::Result<()> {
    let ([a, b, c, d], tag) = ((number * 2048).to_be_bytes(), host.number.to_be_bytes());
    host.number += 1;
    let cdb = [0x28, 0, a, b, c, d, 0, 8, 0, 0];
    let fields: [(usize, &[u8]); 5] =
        [(0, &[0x01, 0xc1]), (16, &tag), (20, &(1_u32 << 20).to_be_bytes()), (24, &tag), (32, &cdb)];
    host.connection.write_all(&pdu(&fields, &[]))
}

fn duration() -> Duration {
    let minutes = std::env::var("SANLOOM_MINUTES").ok().map(|text| text.parse::<u64>().expect("a number of minutes"));
    minutes.map_or(Duration::from_secs(11), |minutes| Duration::from_secs(60 * minutes))
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
    // Two ways to the first back end, one to the second.
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
    let verifier = thread::spawn({
        let (size, stop) = (size.clone(), stop.clone());
        move || Verifier::new(&portal, forward, 7).run(&size, &stop)
    });
    let portal = switch.portals[1].clone();
    let slow = thread::spawn({
        let stop = stop.clone();
        move || slow_host(&portal, &stop)
    });
    let (begun, whole) = (Instant::now(), duration());
    let mut third = None;
    let (mut kills, mut carried) = (0, [0; 2]);
    let mut count = |switch: &Switch<'_>| {
        switch.assert_path("v", forward, 0, 0);
        let row = switch.carried("v")[usize::from(!forward)];
        carried = [carried[0] + row.read_bytes, carried[1] + row.written_bytes];
        carried
    };
    for round in 0.. {
        if begun.elapsed() >= whole {
            break;
        }
        match round % 6 {
            0 => cut(&gates[..2], Inside::Read),
            1 => cut(&gates[2..], Inside::Write),
            2 => {
                second.kill();
                thread::sleep(Duration::from_millis(500));
                second = bed::storage(&bed, "second", &portals[1]);
            }
            3 => cut(&gates[..2], Inside::Write),
            4 => {
                count(&switch);
                switch.kill();
                thread::sleep(Duration::from_millis(200));
                switch.restart();
                kills += 1;
            }
            _ => {
                let way = round / 6 % 2;
                gates[way].close(true);
                thread::sleep(Duration::from_millis(500));
                gates[way].close(false);
            }
        }
        assert!(!verifier.is_finished() && !slow.is_finished());
        if third.is_none() && begun.elapsed() > whole / 3 {
            third = Some(bed::storage(&bed, "third", &portals[2]));
            let said = switch.apply(&bed::back_end("third", "disks", &[&portals[2]]));
            assert!(said.contains("back end third"), "{said}");
        }
        let larger = size.load(Ordering::Relaxed) + (1 << 20);
        if larger <= if third.is_some() { ALL_BYTES } else { EARLY_BYTES } {
            extend(&switch, larger);
            size.store(larger, Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(200));
    }
    let third = third.expect("the pool has grown");
    if size.load(Ordering::Relaxed) < ALL_BYTES {
        extend(&switch, ALL_BYTES);
        size.store(ALL_BYTES, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(1));
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
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
    drop(third);
}

/// Cuts a connection in the middle of data, if any pass within a while.
fn cut(gates: &[Gate], inside: Inside) {
    let cuts = || gates.iter().map(|gate| gate.cuts(inside)).sum::<u32>();
    let (before, until) = (cuts(), Instant::now() + Duration::from_secs(2));
    gates.iter().for_each(|gate| gate.cut_inside(Some(inside)));
    while cuts() == before && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    gates.iter().for_each(|gate| gate.cut_inside(None));
}

/// The room of a back end is known when it is reached.
fn extend(switch: &Switch<'_>, bytes: u64) {
    let arguments = switch.volume_arguments(&["extend", "v", "--size", &format!("{bytes}B")]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let until = Instant::now() + PATIENCE;
    loop {
        let (good, _, err) = crate::try_run(bed::SANLOOM, &arguments);
        if good {
            return;
        }
        assert!(err.contains("was not reached yet") && Instant::now() < until, "{err}");
        thread::sleep(Duration::from_millis(100));
    }
}
