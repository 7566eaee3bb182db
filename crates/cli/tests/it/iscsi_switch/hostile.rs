//! Hosts that violate the protocol, next to a well-behaved host. The tests send invalid logins,
//! floods of logins, wrong lengths, wrong digests, and randomly changed PDUs in every phase. The
//! well-behaved host is not affected.

use crate::iscsi::raw::{pdu, read_pdu};
use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::host::{BLOCK, Host, forget_most, memory, most_memory};
use crate::iscsi_switch::mutations::{Mutator, script};
use sanloom_test_support::ports::{free_port, unread_bytes};
use sanloom_test_support::wait::{self, TIMEOUT};
use sanloom_wire::iscsi::digest;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// A volume on the same back ends as that of the good host, and a disk in memory; both are
/// attacked.
const LAB: &str = r#"
[volume.v]
pool = "disks"
size = "24MiB"
width = 2
stripe = "256KiB"
storage = "switch"

[volume.w]
pool = "disks"
size = "24MiB"
width = 2
stripe = "64KiB"
storage = "attacked"

[storage.attacked]
medium = "volumes"
iscsi = { portals = "{portal}" }

[storage.plain]
lun_size = "64MiB"
iscsi = { portals = "{portal}" }

[storage.strict]
lun_size = "1MiB"
iscsi = { portals = "{portal}", data_digest = "always" }

[storage.private]
lun_size = "1MiB"
iscsi = { portals = "{portal}", initiators = "iqn.2026-11.net.example:only" }

[storage.moved]
lun_size = "1MiB"
iscsi = { portals = "{portal}", redirect = "127.0.0.1:3260" }

[storage.secret]
lun_size = "1MiB"
iscsi = { portals = "{portal}", chap_name = "server", chap_secret_file = "server.secret" }

[pool.disks]
extent = "1MiB"
"#;

/// Bytes of a header, and their offset.
type Fields<'a> = &'a [(usize, &'a [u8])];

fn target(storage: &str) -> String {
    format!("iqn.2026-11.example.sanloom:{storage}")
}

/// A switch with storage behind it, and the attacked portal.
fn start(bed: &Bed) -> (Switch<'_>, String, [sanloom_test_support::started::Process; 2]) {
    let (portals, attacked) = ([free_port(), free_port()], free_port());
    let behind = [bed::storage(bed, "first", &portals[0]), bed::storage(bed, "second", &portals[1])];
    fs::create_dir(bed.path("switch")).unwrap();
    fs::write(bed.path("switch/server.secret"), "sixteen letters!\n").unwrap();
    let back_ends = ["first", "second"].iter().zip(&portals).map(|(name, at)| bed::back_end(name, "disks", &[at]));
    let lab = LAB.replace("{portal}", &attacked) + &back_ends.collect::<String>();
    let switch = Switch::start(bed, &lab);
    switch.wait_for(&["v", "w"]);
    (switch, attacked, behind)
}

/// Composes the first request of a login with these fields beside its tag, and this text.
fn login(fields: Fields<'_>, text: &[u8]) -> Vec<u8> {
    let usual: [(usize, &[u8]); 5] =
        [(0, &[0x43, 0x87]), (8, &[0x80, 0, 0, 9, 0, 1]), (19, &[1]), (24, &[0; 4]), (27, &[1])];
    pdu(&[&usual, fields].concat(), text)
}

fn connect(portal: &str) -> TcpStream {
    let connection = TcpStream::connect(portal).unwrap();
    connection.set_nodelay(true).unwrap();
    connection.set_read_timeout(Some(TIMEOUT)).unwrap();
    connection
}

#[test]
fn every_refusal_of_a_login_has_the_status_of_the_standard() {
    let bed = Bed::new("refusals");
    let (mut switch, portal, _behind) = start(&bed);
    let names = |storage: &str| format!("InitiatorName=iqn.2026-11.net.example:raw\0TargetName={}\0", target(storage));
    let good = names("plain");
    let long = format!("InitiatorName=iqn.{}\0TargetName={}\0", "x".repeat(300), target("plain"));
    let kerberos = names("secret") + "AuthMethod=KRB5\0";
    let strange = format!("{good}SessionType=Strange\0");
    let wrong_stage: Fields<'_> = &[(1, &[0x8b])];
    // RFC 7143, 11.13.5: class and detail.
    #[rustfmt::skip]
    let cases: &[(&str, Fields<'_>, &str, [u8; 2])] = &[
        ("sent elsewhere", &[], &names("moved"), [1, 1]),
        ("a reserved stage", wrong_stage, &good, [2, 0]),
        ("from the last stage on", &[(1, &[0x8f])], &good, [2, 0]),
        ("text that goes on, and yet the next stage", &[(1, &[0xc7])], &good, [2, 0]),
        ("text without keys", &[], "no equals sign\0", [2, 0]),
        ("text that does not end", &[], &good[..good.len() - 1], [2, 0]),
        ("a name that is too long", &[], &long, [2, 0]),
        ("without the digests that are asked for", &[], &names("strict"), [2, 0]),
        ("no proof", &[], &names("secret"), [2, 1]),
        ("a proof that nobody knows", &[(1, &[0x81])], &kerberos, [2, 1]),
        ("a target for others", &[], &names("private"), [2, 2]),
        ("no such target", &[], &names("nobody"), [2, 3]),
        ("a version of the future", &[(2, &[9, 9])], &good, [2, 5]),
        ("no initiator", &[], &format!("TargetName={}\0", target("plain")), [2, 7]),
        ("no target", &[], "InitiatorName=iqn.2026-11.net.example:raw\0", [2, 7]),
        ("a session of no kind", &[], &strange, [2, 9]),
        ("a session that is not there", &[(14, &[0x12, 0x34])], &good, [2, 10]),
    ];
    for (name, fields, text, status) in cases {
        let mut connection = connect(&portal);
        connection.write_all(&login(fields, text.as_bytes())).unwrap();
        let answer = read_pdu(&mut connection).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((answer[0], &answer[36..38]), (0x23, &status[..]), "{name}");
        assert!(read_pdu(&mut connection).is_err(), "{name}: the connection is still there");
    }
    // A second connection of an existing session.
    let mut first = connect(&portal);
    first.write_all(&login(&[], good.as_bytes())).unwrap();
    let answer = read_pdu(&mut first).unwrap();
    assert_eq!(answer[36], 0);
    let mut second = connect(&portal);
    second.write_all(&login(&[(14, &answer[14..16]), (20, &[0, 2])], good.as_bytes())).unwrap();
    assert_eq!(read_pdu(&mut second).unwrap()[36..38], [2, 6]);
    // Text without a terminator.
    let mut endless = connect(&portal);
    let status = loop {
        endless.write_all(&login(&[(1, &[0x44])], &[b'x'; 8192])).unwrap();
        let answer = read_pdu(&mut endless).unwrap();
        if answer[36] != 0 {
            break [answer[36], answer[37]];
        }
    };
    assert_eq!(status, [3, 2]);
    // Within a login: another PDU type, another tag, and text that is too long, which is rejected
    // at once.
    let begun: Fields<'_> = &[(1, &[0x81])];
    let mut long = login(begun, b"");
    long[5..8].copy_from_slice(&[0, 0x20, 4]);
    let within = [
        ("another PDU", pdu(&[(0, &[0x40, 0x80]), (16, &[0xff; 8])], &[]), [2, 11]),
        ("another tag", login(&[(1, &[0x81]), (19, &[2])], b""), [2, 0]),
        ("a text of 8196 bytes", long.clone(), [2, 0]),
    ];
    for (name, bytes, status) in within {
        let mut connection = connect(&portal);
        connection.write_all(&login(begun, good.as_bytes())).unwrap();
        assert_eq!(read_pdu(&mut connection).unwrap()[36], 0, "{name}");
        connection.write_all(&bytes).unwrap();
        assert_eq!(
            read_pdu(&mut connection).unwrap_or_else(|error| panic!("{name}: {error}"))[36..38],
            status,
            "{name}"
        );
        assert!(read_pdu(&mut connection).is_err(), "{name}: the connection is still there");
    }
    let mut connection = connect(&portal);
    connection.write_all(&long).unwrap();
    assert_eq!(read_pdu(&mut connection).unwrap()[36..38], [2, 0]);
    // The log contains every rejected host, with its address and the reason.
    let line = bed.log().lines().find(|line| line.contains("authorization failure")).map(str::to_owned);
    let line = line.expect("a log line of the refusal");
    for part in ["login rejected", "peer=127.0.0.1:", "initiator=\"iqn.2026-11.net.example:raw\"", &target("private")] {
        assert!(line.contains(part), "{line}");
    }
    // A PDU that is not a login is not answered.
    for opcode in [0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x3e] {
        let mut connection = connect(&portal);
        connection.write_all(&pdu(&[(0, &[0x40 | opcode, 0x80])], &[])).unwrap();
        assert!(read_pdu(&mut connection).is_err(), "{opcode:#x} was answered before a login");
    }
    switch.stop();
    bed.folder.assert_no_errors();
}

/// Progress of the good host.
#[derive(Default)]
struct Good {
    rounds: AtomicU64,
    over: AtomicBool,
}

/// Time between two rounds of the good host, in which the attackers have the processor.
const PAUSE: Duration = Duration::from_millis(2);
/// Time for which an attacker waits for a response. Most of its PDUs have none.
const RESPONSE_TIME: Duration = Duration::from_millis(3);
/// Rounds of the good host during each attack.
const ROUNDS: u64 = 20;

impl Good {
    /// Writes, reads and compares until it is stopped.
    fn work(&self, mut host: Host) {
        while !self.over.load(Ordering::Relaxed) {
            let round = self.rounds.load(Ordering::Relaxed);
            let lba = (round * 131 % 300 * 128) as u32;
            let data: Vec<u8> = (0..64 << 10_u32).map(|at| (round as u32 + at / 512) as u8).collect();
            host.write(lba, &data);
            assert_eq!(host.answer().0, 0, "a write of the good host, round {round}");
            host.read(lba, (data.len() / BLOCK) as u16);
            let (status, read) = host.answer();
            assert!(status == 0 && read == data, "round {round}: status {status:#x}, or other data");
            self.rounds.fetch_add(1, Ordering::Relaxed);
            thread::sleep(PAUSE);
        }
    }

    /// Waits until the good host has completed [`ROUNDS`] further rounds.
    #[track_caller]
    fn wait(&self, worker: &ScopedJoinHandle<'_, ()>) {
        let end = self.rounds.load(Ordering::Relaxed) + ROUNDS;
        wait::until(
            || format!("round {end} of the good host"),
            || {
                assert!(!worker.is_finished(), "the good host has ended");
                self.rounds.load(Ordering::Relaxed) >= end
            },
        );
    }
}

/// Stops the good host on drop.
struct Over<'a>(&'a Good);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Logins that never complete: connections without data, with half a header, and with most of the
/// announced text. `work` runs while all of them are open.
fn flood(portal: &str, id: u32, work: impl FnOnce()) {
    const EACH: usize = 200;
    let before = memory(id);
    let mut whole = login(&[(1, &[0x44])], &[b'x'; 8192]);
    whole.truncate(8000);
    let all: Vec<TcpStream> = [&[][..], &whole[..20], &whole[..]]
        .iter()
        .flat_map(|bytes| (0..EACH).map(move |_| *bytes))
        .map(|bytes| {
            let mut connection = connect(portal);
            connection.write_all(bytes).unwrap();
            connection
        })
        .collect();
    wait::until(|| "the switch has read everything".to_owned(), || unread_bytes(portal) == 0);
    work();
    let each = memory(id).saturating_sub(before) / all.len() as u64;
    println!("{} logins that do not end: {each} KiB each", all.len());
    assert!(each <= 32, "{each} KiB for each login that does not end");
    drop(all);
    // Connections that close before they send anything.
    (0..1000).for_each(|_| drop(TcpStream::connect(portal).unwrap()));
}

/// Expected reaction to an invalid PDU: the session ends, or continues after this reject or status.
#[derive(PartialEq, Eq, Debug)]
enum Fate {
    Closed,
    Rejected(u8),
    Status(u8),
}

/// Skips responses to earlier commands.
fn fate(host: &mut Host) -> Fate {
    loop {
        let Ok(received) = read_pdu(&mut host.connection) else { return Fate::Closed };
        match received[0] {
            0x3f => return Fate::Rejected(received[2]),
            0x21 => return Fate::Status(received[3]),
            0x25 if received[1] & 1 != 0 => return Fate::Status(received[3]),
            _ => {}
        }
    }
}

/// Each invalid PDU is sent in a separate session, to a forwarded volume and to a disk.
fn lies(switch: &Switch<'_>, portal: &str) {
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    let word = u32::to_be_bytes;
    #[rustfmt::skip]
    let cases: &[(&str, Fields<'_>, usize, &[Fate])] = &[
        ("a segment of 16 MiB", &[(0, &[0x01, 0xa1]), (20, &word(1024)), (32, &write)], 0xff_ffff, &[Fate::Closed]),
        ("more than was agreed", &[(0, &[0x01, 0xa1]), (20, &word(1024)), (32, &write)], (256 << 10) + 4, &[Fate::Closed]),
        ("data of a read", &[(0, &[0x01, 0xc1]), (20, &word(512)), (32, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1])], 512,
            &[Fate::Rejected(4)]),
        ("more data than expected", &[(0, &[0x01, 0xa1]), (20, &word(512)), (32, &write)], 1024, &[Fate::Status(2), Fate::Rejected(4)]),
        ("an opcode of nobody", &[(0, &[0x5e, 0x80])], 0, &[Fate::Rejected(5)]),
        ("a response", &[(0, &[0x61, 0x80])], 0, &[Fate::Rejected(5), Fate::Rejected(4)]),
        ("a login in full feature phase", &[(0, &[0x43, 0x87])], 0, &[Fate::Closed]),
        ("SNACK", &[(0, &[0x10, 0x80])], 0, &[Fate::Rejected(3)]),
        ("data of no command", &[(0, &[0x05, 0x80]), (16, &word(0x77)), (20, &word(5))], 512, &[Fate::Status(0)]),
        ("nothing expected", &[(0, &[0x01, 0xa1]), (32, &write)], 0, &[Fate::Status(0), Fate::Status(2)]),
        ("4 GiB expected", &[(0, &[0x01, 0xc1]), (20, &[0xff; 4]), (32, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1])], 0, &[Fate::Status(0)]),
        ("an address behind the end", &[(0, &[0x01, 0xc1]), (20, &word(512)), (32, &[0x28, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1])], 0,
            &[Fate::Status(2)]),
    ];
    for storage in ["attacked", "plain"] {
        for (name, fields, bytes, fates) in cases {
            let mut host = Host::log_in_to(portal, &target(storage), 3, "");
            host.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
            if storage == "attacked" {
                switch.wait_for_forwarding_of(&target(storage), &Host::isid(3));
            }
            let number = host.number.to_be_bytes();
            let own: [(usize, &[u8]); 2] = [(16, &[0x55, 0, 0, 1]), (24, &number)];
            let mut lie = pdu(&[&own, *fields].concat(), &[]);
            lie[5..8].copy_from_slice(&(*bytes as u32).to_be_bytes()[1..]);
            host.connection.write_all(&lie).unwrap();
            // The connection may be closed before all bytes are read.
            if *bytes <= 1024 {
                host.connection.write_all(&vec![0xee; *bytes]).unwrap();
            }
            // The PDU is not answered and consumes no command number.
            if *name == "data of no command" {
                host.send(0x80, 0, &[0; 6], &[]);
            }
            let fate = fate(&mut host);
            assert!(fates.contains(&fate), "{name} to {storage}: {fate:?}");
        }
    }
}

/// A PDU with digests, one of which may be wrong.
fn with_digests(fields: Fields<'_>, data: &[u8], wrong: Option<&str>) -> Vec<u8> {
    let mut sent = pdu(fields, data);
    let mut of_head = digest::of(&sent[..48]);
    let mut of_data = digest::of(&sent[48..]);
    of_head[1] ^= u8::from(wrong == Some("header"));
    of_data[2] ^= u8::from(wrong == Some("data")) << 7;
    sent.splice(48..48, of_head);
    if !data.is_empty() {
        sent.extend(of_data);
    }
    sent
}

/// Reads the next PDU of a target with digests, and verifies them.
fn hear_with_digests(connection: &mut TcpStream) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut head = vec![0; 52];
    connection.read_exact(&mut head).ok()?;
    assert_eq!(head[48..], digest::of(&head[..48]), "the digest of an answer");
    let len = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
    let mut data = vec![0; if len > 0 { len.next_multiple_of(4) + 4 } else { 0 }];
    connection.read_exact(&mut data).unwrap();
    Some((head, data))
}

/// Wrong digests: in a header they end the session; in data they end the command, after a reject
/// (RFC 7143, 7.7 and 7.8). With `apart`, the data are in a separate PDU.
fn digests(switch: &Switch<'_>, portal: &str) {
    const TAG: [u8; 4] = [0x55, 0, 0, 1];
    let data = [0x5d; BLOCK];
    for storage in ["attacked", "plain"] {
        for (what, apart) in [("none", false), ("none", true), ("header", false), ("data", false), ("data", true)] {
            let mut host = Host::log_in_to(portal, &target(storage), 4, "HeaderDigest=CRC32C\0DataDigest=CRC32C\0");
            for round in 0..4 {
                let number = host.number.to_be_bytes();
                host.number += 1;
                let wrong = Some(what).filter(|_| round == 3);
                let command: [(usize, &[u8]); 5] = [
                    (0, &[0x01, if apart { 0x21 } else { 0xa1 }]),
                    (16, &TAG),
                    (20, &[0, 0, 2, 0]),
                    (24, &number),
                    (32, &[0x2a, 0, 0, 0, 0, 9, 0, 0, 1, 0]),
                ];
                let out: [(usize, &[u8]); 3] = [(0, &[0x05, 0x80]), (16, &TAG), (20, &[0xff; 4])];
                let sent = match apart {
                    true => [with_digests(&command, &[], None), with_digests(&out, &data, wrong)].concat(),
                    false => with_digests(&command, &data, wrong),
                };
                host.connection.write_all(&sent).unwrap();
                let mut output = Vec::new();
                let last = loop {
                    let Some((head, data)) = hear_with_digests(&mut host.connection) else { break Fate::Closed };
                    if head[0] == 0x3f {
                        assert_eq!(
                            (data[0] & 0x3f, &data[16..20]),
                            (if apart { 5 } else { 1 }, &TAG[..]),
                            "its header"
                        );
                        output.push(head[2]);
                    }
                    if head[0] == 0x21 {
                        // Sense data follow their length.
                        let is_crc = head[3] == 2 && (data[4] & 0xf, data[14], data[15]) == (0xb, 0x47, 0x05);
                        assert_eq!(is_crc, wrong == Some("data"), "{data:02x?}");
                        break Fate::Status(head[3]);
                    }
                };
                let expected = match wrong {
                    Some("header") => (Fate::Closed, vec![]),
                    Some("data") => (Fate::Status(2), vec![2]),
                    // The first command reports a unit attention.
                    _ if round == 0 => (Fate::Status(2), vec![]),
                    _ => (Fate::Status(0), vec![]),
                };
                assert_eq!((last, output), expected, "{what} is wrong, apart: {apart}, round {round}, {storage}");
                // Further commands are forwarded.
                if storage == "attacked" && round == 1 {
                    switch.wait_for_forwarding_of(&target(storage), &Host::isid(4));
                }
            }
        }
    }
}

/// Number of PDUs of one attacker.
const PDUS: usize = 1500;
/// Number of PDUs of one session, which usually ends earlier.
const IN_SESSION: usize = 24;

/// Sends randomly changed PDUs. Returns the number of responses by opcode.
fn attack(switch: &Switch<'_>, portal: &str, storage: &str, seed: u64) -> BTreeMap<u8, usize> {
    let mut output = BTreeMap::new();
    let mut mutator = Mutator::new(seed);
    let mut sent = 0;
    for session in 0_u16.. {
        if sent >= PDUS {
            break;
        }
        let number = 0x100 + (seed % 0xf00) as u16 * 16 + session % 8;
        let mut host = Host::log_in_to(portal, &target(storage), number, "");
        host.send(0x80, 0, &[0; 6], &[]);
        // A reset of the target by the other attacker ends this session too.
        if read_pdu(&mut host.connection).is_err() {
            continue;
        }
        // Every other session is forwarded, after its sessions with the back ends have started.
        if storage == "attacked" && session % 2 == 0 {
            switch.wait_for_forwarding_or_end_of(&target(storage), &Host::isid(number));
        }
        host.connection.set_read_timeout(Some(RESPONSE_TIME)).unwrap();
        let script = script(host.number);
        'session: for pdus in mutator.session(&script, IN_SESSION).chunks(4) {
            sent += pdus.len();
            if host.connection.write_all(&pdus.concat()).is_err() {
                break;
            }
            loop {
                match read_pdu(&mut host.connection) {
                    Ok(received) => *output.entry(received[0]).or_default() += 1,
                    Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => break,
                    Err(_) => break 'session,
                }
            }
        }
    }
    // Changed login PDUs.
    for pdu in
        mutator.logins(&login(&[], format!("InitiatorName=iqn.x:y\0TargetName={}\0", target(storage)).as_bytes()))
    {
        let mut connection = connect(portal);
        connection.set_read_timeout(Some(RESPONSE_TIME)).unwrap();
        if connection.write_all(&pdu).is_ok()
            && let Ok(received) = read_pdu(&mut connection)
        {
            *output.entry(received[0]).or_default() += 1;
        }
    }
    output
}

/// Runs `SANLOOM_SEEDS` campaigns from `SANLOOM_FIRST_SEED` on.
#[test]
fn hosts_that_send_invalid_pdus_disturb_no_other_and_cost_little() {
    let number = |name: &str, or| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok()).unwrap_or(or);
    let first = number("SANLOOM_FIRST_SEED", 1);
    let bed = Bed::new("nonsense");
    let (mut switch, portal, _behind) = start(&bed);
    let id = switch.id();
    let host = Host::ready(&switch, &switch.portals[1], 2);
    // Memory used once remains allocated.
    drop(Host::ready(&switch, &switch.portals[1], 5));
    forget_most(id);
    let before = memory(id);
    let good = Good::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(host));
        let stop = Over(&good);
        flood(&portal, id, || good.wait(&worker));
        lies(&switch, &portal);
        digests(&switch, &portal);
        for seed in first..first + number("SANLOOM_SEEDS", 1) {
            println!("seed {seed}");
            let output: Vec<BTreeMap<u8, usize>> = thread::scope(|attackers| {
                let (switch, portal) = (&switch, &portal);
                let all = [("attacked", 0), ("attacked", 1), ("plain", 2)].map(|(storage, number)| {
                    let seed = seed.wrapping_mul(4).wrapping_add(number);
                    attackers.spawn(move || attack(switch, portal, storage, seed))
                });
                good.wait(&worker);
                all.into_iter().map(|attacker| attacker.join().unwrap()).collect()
            });
            println!("answered, by opcode: {output:x?}");
            for output in &output {
                // Responses, rejects, data, and requests for data.
                assert!([0x21, 0x25, 0x31, 0x3f].iter().all(|opcode| output.contains_key(opcode)), "{output:x?}");
            }
            good.wait(&worker);
        }
        drop(stop);
        worker.join().unwrap();
    });
    let rounds = good.rounds.into_inner();
    let most = most_memory(id).saturating_sub(before);
    println!("{rounds} rounds of the good host, {most} KiB more at most");
    assert!(most < 64 << 10, "{most} KiB");
    // Ended sessions use no resources.
    wait::until(
        || format!("{} KiB are left", memory(id).saturating_sub(before)),
        || memory(id).saturating_sub(before) <= 16 << 10,
    );
    // The attacked volume and disk still work.
    for storage in ["attacked", "plain"] {
        let mut host = Host::log_in_to(&portal, &target(storage), 3, "");
        host.until_good(|host| host.write(0, &[0x3c; 64 << 10]));
        assert!(host.until_good(|host| host.read(0, 128)).iter().all(|byte| *byte == 0x3c));
    }
    switch.assert_path("v", true, rounds * (60 << 10), rounds * (60 << 10));
    assert!(switch.carried("w")[0].commands > 100, "{:?}", switch.carried("w"));
    switch.stop();
    bed.folder.assert_no_errors();
}
