//! Clients that violate the protocol: single bytes, wrong lengths, no reads, too many requests.

use crate::nbd::local::{Bed, DISK_BYTES};
use sanloom_live::nbd::NbdServer;
use sanloom_scsi::nbd::Limits;
use sanloom_test_support::wait;
use sanloom_wire::nbd::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A client with an open export, without structured replies.
fn opened(bed: &Bed, export: &str) -> UnixStream {
    let mut stream = UnixStream::connect(&bed.socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut greeting = [0; Greeting::BYTES];
    stream.read_exact(&mut greeting).unwrap();
    Greeting::parse(&greeting).unwrap();
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    ClientOption::ExportName(export.into()).emit(&mut bytes);
    stream.write_all(&bytes).unwrap();
    let mut answer = [0; ExportAnswer::BYTES];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(ExportAnswer::parse(&answer).unwrap().size_bytes, DISK_BYTES);
    stream
}

fn request(command: Command, cookie: u64, offset_bytes: u64, len_bytes: u32) -> [u8; Request::BYTES] {
    Request { flags: 0, command, cookie, offset_bytes, len_bytes }.to_bytes()
}

fn reply(stream: &mut UnixStream) -> SimpleReply {
    let mut bytes = [0; SimpleReply::BYTES];
    stream.read_exact(&mut bytes).unwrap();
    SimpleReply::parse(&bytes).unwrap()
}

#[test]
fn bytes_that_come_one_by_one_are_the_same_bytes() {
    let bed = Bed::start("drops");
    let mut stream = opened(&bed, "ram");
    let data: Vec<u8> = (0..1024).map(|n| n as u8).collect();
    for byte in request(Command::WRITE, 1, 512, 1024).iter().chain(&data) {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(reply(&mut stream), SimpleReply { error: ErrorNumber::NONE, cookie: 1 });
    stream.write_all(&request(Command::READ, 2, 512, 1024)).unwrap();
    assert_eq!(reply(&mut stream).error, ErrorNumber::NONE);
    let mut back = vec![0; 1024];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, data);
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let bed = Bed::start_with("burst", Limits { max_in_flight: 4, ..Limits::default() });
    let mut stream = opened(&bed, "ram");
    let mut bytes = Vec::new();
    for number in 0..2_000_u64 {
        bytes.extend_from_slice(&request(Command::WRITE, number, number % 100 * 512, 512));
        bytes.extend_from_slice(&[number as u8; 512]);
    }
    let mut writer = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    let mut seen: Vec<u64> = (0..2_000)
        .map(|_| reply(&mut stream))
        .map(|reply| {
            assert_eq!(reply.error, ErrorNumber::NONE);
            reply.cookie
        })
        .collect();
    sender.join().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..2_000).collect::<Vec<_>>());
}

#[test]
fn large_writes_and_reads_go_through() {
    let bed = Bed::start("large");
    let mut stream = opened(&bed, "file");
    let data: Vec<u8> = (0..MAX_PAYLOAD_BYTES).map(|n| (n >> 9) as u8).collect();
    stream.write_all(&request(Command::WRITE, 1, 0, MAX_PAYLOAD_BYTES)).unwrap();
    stream.write_all(&data).unwrap();
    assert_eq!(reply(&mut stream).error, ErrorNumber::NONE);
    // A write of one byte too many is read, discarded and rejected.
    stream.write_all(&request(Command::WRITE, 2, 0, MAX_PAYLOAD_BYTES + 4096)).unwrap();
    stream.write_all(&data).unwrap();
    stream.write_all(&[1; 4096]).unwrap();
    assert_eq!(reply(&mut stream), SimpleReply { error: ErrorNumber::EINVAL, cookie: 2 });
    stream.write_all(&request(Command::READ, 3, 0, MAX_PAYLOAD_BYTES)).unwrap();
    assert_eq!(reply(&mut stream).error, ErrorNumber::NONE);
    let mut back = vec![0; data.len()];
    stream.read_exact(&mut back).unwrap();
    assert!(back == data);
}

#[test]
fn a_client_that_reads_nothing_neither_delays_others_nor_fills_memory() {
    let bed = Bed::start("greedy");
    let mut greedy = opened(&bed, "look");
    greedy.set_nonblocking(true).unwrap();
    // The client requests 128 GiB, until the server stops reading.
    let mut sent = 0;
    for number in 0..4_096 {
        if greedy.write_all(&request(Command::READ, number, 0, MAX_PAYLOAD_BYTES)).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent > 2);
    let mut polite = opened(&bed, "ram");
    for number in 0..100 {
        polite.write_all(&request(Command::READ, number, 0, 512)).unwrap();
        assert_eq!(reply(&mut polite).cookie, number);
        polite.read_exact(&mut [0; 512]).unwrap();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim();
    let kib: u64 = resident.trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kib < 1 << 20, "{kib} KiB are held for a client that fetches nothing");
}

#[test]
fn unread_answers_are_delivered_when_the_client_reads() {
    const EACH: u32 = 8 << 20;
    let bed = Bed::start_with("late", Limits { max_in_flight_bytes: 256 << 20, ..Limits::default() });
    let mut stream = opened(&bed, "look");
    // All heads arrive with one read, and their data are three times the server's limit.
    let heads: Vec<u8> = (0..24).flat_map(|number| request(Command::READ, number, 0, EACH)).collect();
    stream.write_all(&heads).unwrap();
    // The first reply shows that the server has received the requests.
    wait::until(|| "a reply".to_owned(), || rustix::io::ioctl_fionread(&stream).unwrap() > 0);
    let mut data = vec![0; EACH as usize];
    for number in 0..24 {
        assert_eq!(reply(&mut stream).cookie, number);
        stream.read_exact(&mut data).unwrap();
    }
}

#[test]
fn noise_and_broken_connections_do_not_harm_the_server() {
    let mut bed = Bed::start("noise");
    for number in 0..50_u8 {
        let mut stream = UnixStream::connect(&bed.socket).unwrap();
        let noise: Vec<u8> = (0..200_u8).map(|byte| byte.wrapping_mul(number).wrapping_add(number)).collect();
        let _ = stream.write_all(&noise);
        let mut broken = opened(&bed, "ram");
        broken.write_all(&request(Command::WRITE, 1, 0, 4096)).unwrap();
        broken.write_all(&[number; 100]).unwrap();
    }
    let mut stream = opened(&bed, "ram");
    stream.write_all(&request(Command::READ, 1, 0, 4096)).unwrap();
    assert_eq!(reply(&mut stream).error, ErrorNumber::NONE);
    let mut data = [1; 4096];
    stream.read_exact(&mut data).unwrap();
    assert_eq!(data, [0; 4096], "half a write writes nothing");
    assert!(bed.stop().protocol_errors >= 49);
}

#[test]
fn a_path_in_use_is_rejected_and_an_unused_socket_is_replaced() {
    let mut bed = Bed::start("paths");
    let refused = NbdServer::listen(&bed.socket, Vec::new(), Limits::default()).expect_err("it is in use");
    assert!(refused.to_string().contains("in use"), "{refused}");
    let file = bed.folder.join("file");
    std::fs::write(&file, "precious").unwrap();
    let refused = NbdServer::listen(&file, Vec::new(), Limits::default()).expect_err("it is a file");
    assert!(refused.to_string().contains("not a socket"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let dead = bed.folder.join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    NbdServer::listen(&dead, Vec::new(), Limits::default()).expect("nobody listens there");
    bed.stop();
}
