//! Captures of a running world.

use crate::labs::lab;
use crate::requests::{MS, Operated, PAIRS};
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::LiveWhich;
use sanloom_api::view::{CaptureRow, Table};
use sanloom_sim::capture::Capture;
use sanloom_sim::requests::Sink;
use sanloom_sim::run::{Blind, world_at};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Client of a stream. It disconnects when the receiver is dropped.
struct Client(Sender<Vec<u8>>);

impl Write for Client {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.0.send(block.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(lab: &mut Operated, link: &str) -> Receiver<Vec<u8>> {
    let (client, blocks) = channel();
    let sink: Sink = Box::new(Client(client));
    let request = Request::Capture { link: link.to_owned(), file: Some("(stream)".to_owned()) };
    let (answer, answers) = channel();
    lab.requests.request_into(&mut lab.world, request, Some(sink), answer);
    assert_eq!(answers.recv_timeout(Duration::from_secs(1)), Ok(Answer::Done));
    blocks
}

fn stop(link: &str) -> Request {
    Request::Capture { link: link.to_owned(), file: None }
}

fn rows(lab: &mut Operated) -> Vec<CaptureRow> {
    let Table::Captures(view) = lab.table(ShowTable::Live(LiveWhich::Captures)) else { panic!("no captures") };
    view.captures
}

/// Whole blocks of pcapng.
fn blocks(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(bytes[..length][length - 4..], bytes[4..8], "both lengths of a block");
        let (block, rest) = bytes.split_at(length);
        blocks.push(block.to_vec());
        bytes = rest;
    }
    blocks
}

/// Packet blocks of a capture that watches a link from the start, in 30 ms.
fn whole(
    text: &str,
    watch: fn(&mut sanloom_sim::world::World),
    begin: fn(&sanloom_fc::san::Lab, &mut Vec<u8>) -> Capture,
) -> Vec<Vec<u8>> {
    let lab = lab(text);
    let mut world = world_at(&lab, Some(0), &mut Blind);
    watch(&mut world);
    let mut bytes = Vec::new();
    let mut capture = begin(&lab, &mut bytes);
    let heads = blocks(&bytes).len();
    for _ in 0..30 {
        world.run_until(world.net.now() + MS);
        let observed = world.net.fc.recorder.take_observed();
        capture.add(&world, &observed, &mut bytes);
        world.net.ethernet.forget_observed();
        world.iscsi.iter_mut().for_each(|iscsi| iscsi.forget());
        world.fcip.iter_mut().for_each(|fcip| fcip.forget());
        world.net.fc.fcoe.forget();
    }
    capture.finish(&mut bytes);
    blocks(&bytes).split_off(heads)
}

/// Time of a packet block in ns.
fn time(block: &[u8]) -> u64 {
    let word = |at: usize| u64::from(u32::from_le_bytes(block[at..at + 4].try_into().unwrap()));
    word(12) << 32 | word(16)
}

/// Checks that a stream from 10 ms to 30 ms has the frames of a whole capture that begin later than
/// `after_ms` after its start. Another stream of the link has ended before. Returns the blocks.
fn streams_the_same(text: &str, link: &str, whole: &[Vec<u8>], after_ms: u64) -> Vec<Vec<u8>> {
    let mut lab = Operated::of(text);
    lab.run(4);
    let before = start(&mut lab, link);
    lab.run(5);
    assert!(matches!(lab.ask(stop(link)), Answer::Captured { frames: 1.. }) && before.try_iter().count() > 1);
    lab.run(1);
    let began = lab.world.net.now() / 1_000;
    let stream = start(&mut lab, link);
    lab.run(20);
    let Answer::Captured { frames } = lab.ask(stop(link)) else { panic!("the capture has not ended") };
    let mut blocks_of_stream: Vec<Vec<u8>> = stream.try_iter().collect();
    let head = blocks_of_stream.remove(0);
    assert_eq!(blocks(&head).len(), 2, "section and interface");
    assert_eq!(blocks_of_stream.len() as u64, frames);
    assert!(frames > 50, "{frames}");
    assert!(blocks_of_stream.iter().all(|block| time(block) >= began), "{link}: frames from before the stream");
    let late = |block: &&Vec<u8>| time(block) > began + after_ms * MS / 1_000;
    let (seen, expected) = (blocks_of_stream.iter().filter(late), whole.iter().filter(late));
    assert!(expected.clone().count() > 50);
    assert!(seen.eq(expected), "{link}: the stream has the frames of the whole capture from its start on");
    lab.world.check().unwrap();
    blocks_of_stream
}

#[test]
fn a_stream_of_a_port_has_the_frames_that_a_capture_of_the_whole_run_has() {
    let of_run = whole(PAIRS, |world| world.watch(0), |lab, bytes| Capture::new(lab, &[0], bytes));
    let name = lab(PAIRS).links[0].name.clone();
    streams_the_same(PAIRS, &name, &of_run, 0);
    streams_the_same(PAIRS, "sw1:0", &of_run, 0);
}

const TCP: &str = r#"
[run]
duration = "100ms"
[ethernet_switch.tor]
[host.server]
[storage.array]
iscsi = { portals = "192.0.2.1:3260" }
[[link]]
from = "server"
to = "tor"
rate = "10GbE"
[[link]]
from = "array"
to = "tor"
rate = "10GbE"
[workload.load]
hosts = "server"
targets = "array"
size = "4KiB"
"#;

#[test]
fn a_stream_of_an_ethernet_link_shows_sessions_that_began_before_it() {
    let begin =
        |lab: &sanloom_fc::san::Lab, bytes: &mut Vec<u8>| Capture::new(lab, &[], bytes).with_ethernet(lab, &[0], bytes);
    let of_run = whole(TCP, |world| sanloom_sim::world::ethernet::watch(world, 0), begin);
    let name = lab(TCP).ethernet_links[0].name.clone();
    streams_the_same(TCP, &name, &of_run, 0);
}

#[test]
fn a_stream_of_an_ethernet_link_shows_the_frames_of_fcip_connections_that_began_before_it() {
    let begin =
        |lab: &sanloom_fc::san::Lab, bytes: &mut Vec<u8>| Capture::new(lab, &[], bytes).with_ethernet(lab, &[0], bytes);
    let run = "duration = \"100ms\"\nwarmup = \"0s\"";
    let text = crate::fcip::text(10, "", run, "size = \"64KiB\"\ndepth = 1\nread_share = 0.5");
    let of_run = whole(&text, |world| sanloom_sim::world::ethernet::watch(world, 0), begin);
    // Frames that were on their way at its start are not in it.
    let blocks = streams_the_same(&text, "wan", &of_run, 5);
    assert!(blocks.iter().any(|block| block.len() > 1_000), "the frames have data");
}

#[test]
fn a_capture_ends_with_its_client_and_a_second_one_of_the_port_is_refused() {
    let mut lab = Operated::of(PAIRS);
    let stream = start(&mut lab, "sw1:0");
    lab.refused(Request::Capture { link: "sw1:0".to_owned(), file: Some("x".to_owned()) }, "captured already");
    lab.run(5);
    assert!(stream.try_iter().count() > 1 && rows(&mut lab).len() == 1);
    drop(stream);
    lab.run(5);
    assert_eq!(rows(&mut lab), []);
    lab.refused(stop("sw1:0"), "no capture of `sw1:0` is running");
    let again = start(&mut lab, "sw1:0");
    lab.run(5);
    assert!(again.try_iter().count() > 1);
}

#[test]
fn a_capture_into_a_file_is_complete_and_one_on_a_full_disk_is_reported() {
    let path = std::env::temp_dir().join(format!("sanloom-capture-{}.pcapng", std::process::id()));
    let mut lab = Operated::of(PAIRS);
    let file = Some(path.display().to_string());
    assert_eq!(lab.ask(Request::Capture { link: "sw1:0".to_owned(), file }), Answer::Done);
    lab.refused(Request::Capture { link: "sw1:1".to_owned(), file: Some("/dev/full".to_owned()) }, "cannot write");
    lab.run(20);
    let Answer::Captured { frames } = lab.ask(stop("sw1:0")) else { panic!("not ended") };
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(blocks(&written).len() as u64, frames + 2);
}
