//! Ethernet ports against plain sockets of the standard library, and against the kernel's own
//! interfaces.

use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::ports::{Datagram, Driver, EthernetPort, Packet, PortError, Stream, Tap, reason};
use sanloom_live::sys::batch::BATCH;
use sanloom_scsi::time::{Instant, Span};
use sanloom_test_support::{alone, needs, wait};
use sanloom_wire::ether::{MacAddr, VlanTag};
use sanloom_wire::pause::PriorityPause;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

const FRAME: &[u8] = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x89\x14payload of some bytes that fill a frame";

pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sanloom-ports-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Bench {
    port: EthernetPort,
    pool: Pool,
    room: Vec<FrameBuf>,
}

impl Bench {
    fn new(driver: Driver) -> Bench {
        let mut pool = Pool::default();
        let room = (0..BATCH).map(|_| pool.take()).collect();
        Bench { port: EthernetPort::new("port", driver), pool, room }
    }

    fn send(&mut self, frame: &[u8], tag: Option<VlanTag>) {
        let mut buffer = self.pool.take();
        buffer.fill(frame);
        buffer.tag = tag;
        self.port.push(Instant::ZERO, buffer);
        self.port.flush(&mut self.pool);
    }

    fn receive(&mut self) -> Vec<(Option<VlanTag>, Vec<u8>)> {
        match self.port.receive(&mut self.room) {
            Ok((got, _)) => self.room[..got].iter().map(|buffer| (buffer.tag, buffer.bytes().to_vec())).collect(),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                Vec::new()
            }
        }
    }
}

impl Bench {
    /// Receives until this number of our own frames has arrived. Frames of the kernel at the same
    /// interface are skipped.
    fn receive_ours(&mut self, count: usize) -> Vec<Option<VlanTag>> {
        let mut tags = Vec::new();
        let is_received = || {
            let ours = self.receive().into_iter().filter(|(_, bytes)| bytes.starts_with(FRAME));
            tags.extend(ours.map(|(tag, _)| tag));
            tags.len() >= count
        };
        wait::until(|| format!("{count} frames"), is_received);
        tags
    }
}

/// Repeats the frame, because the kernel drops frames in the first moment after an interface came
/// up.
fn warm_up(from: &mut Bench, to: &mut Bench) {
    let is_carried = || {
        from.send(FRAME, None);
        to.receive().iter().any(|(_, bytes)| bytes.starts_with(FRAME))
    };
    wait::until(|| "a frame through the interface".to_owned(), is_carried);
    while !to.receive().is_empty() {}
}

#[test]
fn datagrams_carry_a_frame_each_and_a_full_peer_loses_none() {
    let folder = Folder::new("datagram");
    let (ours, theirs) = (folder.path("switch"), folder.path("host"));
    let mut bench = Bench::new(Driver::Datagram(Datagram::bind(&ours, &theirs).unwrap()));
    bench.send(FRAME, None);
    assert_eq!(bench.port.drops.get(reason::NO_PEER), Some(&1));

    let host = UnixDatagram::bind(&theirs).unwrap();
    host.connect(&ours).unwrap();
    host.set_nonblocking(true).unwrap();
    host.send(FRAME).unwrap();
    assert_eq!(bench.receive(), [(None, FRAME.to_vec())]);
    assert!(bench.port.has_peer());

    // More frames than the kernel buffers for the peer.
    let count = 20_000;
    (0..count).for_each(|_| bench.send(FRAME, None));
    assert!(bench.port.egress.blocked && bench.port.egress.is_full());
    let mut got = 0;
    let mut buffer = [0; 4_096];
    while got < count {
        match host.recv(&mut buffer) {
            Ok(len) => {
                assert_eq!(buffer[..len], *FRAME);
                got += 1;
            }
            Err(_) => bench.port.flush(&mut bench.pool),
        }
    }
    assert_eq!((bench.port.sent.frames, bench.port.drops.len()), (count, 1));
}

#[test]
fn a_peer_that_comes_back_at_its_path_is_found() {
    let folder = Folder::new("again");
    let (ours, theirs) = (folder.path("switch"), folder.path("host"));
    let mut bench = Bench::new(Driver::Datagram(Datagram::bind(&ours, &theirs).unwrap()));
    for _ in 0..3 {
        let host = UnixDatagram::bind(&theirs).unwrap();
        bench.port.check_peer();
        bench.send(FRAME, None);
        assert_eq!(host.recv(&mut [0; 4_096]).unwrap(), FRAME.len());
        drop(host);
        std::fs::remove_file(&theirs).unwrap();
        bench.port.check_peer();
        assert!(!bench.port.has_peer());
    }
}

/// The file system reuses the inode of a removed socket for the next one, which cannot send while
/// we are connected to the old one.
#[test]
fn a_peer_replaced_between_two_checks_is_detected() {
    let folder = Folder::new("another");
    let (ours, theirs) = (folder.path("switch"), folder.path("host"));
    let mut bench = Bench::new(Driver::Datagram(Datagram::bind(&ours, &theirs).unwrap()));
    for _ in 0..20 {
        let _ = std::fs::remove_file(&theirs);
        let host = UnixDatagram::bind(&theirs).unwrap();
        bench.port.check_peer();
        host.connect(&ours).unwrap();
        host.send(FRAME).unwrap();
        assert_eq!(bench.receive(), [(None, FRAME.to_vec())]);
    }
    // The previous process has left its socket file.
    bench.port.check_peer();
    assert!(!bench.port.has_peer());
}

#[test]
fn a_socket_in_use_is_kept_and_an_unused_one_is_replaced() {
    let folder = Folder::new("stale");
    let (ours, theirs) = (folder.path("switch"), folder.path("host"));
    let living = UnixDatagram::bind(&ours).unwrap();
    assert!(matches!(Datagram::bind(&ours, &theirs), Err(PortError::InUse { .. })));
    drop(living);
    assert!(Datagram::bind(&ours, &theirs).is_ok());
    std::fs::write(folder.path("file"), "precious").unwrap();
    assert!(matches!(Stream::listen(&folder.path("file")), Err(PortError::NotASocket { .. })));
}

#[test]
fn streams_put_a_length_in_front_and_cut_frames_wherever_they_arrive() {
    let folder = Folder::new("stream");
    let path = folder.path("switch");
    let mut bench = Bench::new(Driver::Stream(Stream::listen(&path).unwrap()));
    let mut host = UnixStream::connect(&path).unwrap();
    bench.port.check_peer();
    let framed = [&(FRAME.len() as u32).to_be_bytes()[..], FRAME].concat();
    // Two frames, one of them in pieces, with an overlong frame between them.
    let too_long = [&3_000u32.to_be_bytes()[..], &[7; 3_000]].concat();
    let all = [framed.clone(), too_long, framed.clone()].concat();
    let mut got = Vec::new();
    for piece in all.chunks(700) {
        host.write_all(piece).unwrap();
        got.extend(bench.receive().into_iter().filter(|(_, bytes)| !bytes.is_empty()));
    }
    assert_eq!(got, [(None, FRAME.to_vec()), (None, FRAME.to_vec())]);
    assert_eq!(bench.port.drops.get(reason::TOO_LONG), Some(&1));

    let tag = VlanTag { priority: 3, drop_eligible: false, vlan: 100 };
    bench.send(FRAME, Some(tag));
    let mut answer = vec![0; 4 + FRAME.len() + 4];
    host.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], (FRAME.len() as u32 + 4).to_be_bytes());
    assert_eq!(answer[16..20], [0x81, 0x00, 0x60, 100]);
    drop(host);
    assert!(bench.receive().is_empty() && !bench.port.has_peer());
}

#[test]
fn a_stream_whose_peer_stops_in_a_frame_goes_on_with_whole_frames_after_the_hold_time() {
    let folder = Folder::new("stops");
    let path = folder.path("switch");
    let mut bench = Bench::new(Driver::Stream(Stream::listen(&path).unwrap()));
    let mut host = UnixStream::connect(&path).unwrap();
    bench.port.check_peer();
    // Long frames until the peer accepts no more, then short ones.
    let long = [FRAME, &[7; 1_937]].concat();
    while !bench.port.egress.blocked {
        bench.send(&long, None);
    }
    (0..10).for_each(|_| bench.send(FRAME, None));
    let hold_time = Span::from_ms(500);
    let lost = bench.port.egress.expire(Instant::ZERO + Span::from_secs(1), hold_time, &mut bench.pool);
    assert!((10..=11).contains(&lost), "{lost} frames: all but one of which the peer may have a part");
    host.set_nonblocking(true).unwrap();
    let (mut got, mut room) = (Vec::new(), [0; 65_536]);
    let mut read = |host: &mut UnixStream| {
        while let Ok(len) = host.read(&mut room) {
            got.extend(&room[..len]);
        }
    };
    read(&mut host);
    bench.send(FRAME, None);
    read(&mut host);
    let mut rest = &got[..];
    let mut last = 0;
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        last = u32::from_be_bytes(*length) as usize;
        assert!([FRAME.len(), long.len()].contains(&last), "{last}");
        rest = &more[last..];
    }
    assert_eq!(last, FRAME.len());
}

#[test]
fn a_stream_that_connects_waits_for_its_listener() {
    let folder = Folder::new("connects");
    let path = folder.path("other");
    let mut bench = Bench::new(Driver::Stream(Stream::connect(&path)));
    assert!(!bench.port.has_peer());
    let listener = UnixListener::bind(&path).unwrap();
    bench.port.check_peer();
    assert!(bench.port.has_peer());
    let (mut other, _) = listener.accept().unwrap();
    bench.send(FRAME, None);
    let mut frame = vec![0; 4 + FRAME.len()];
    other.read_exact(&mut frame).unwrap();
    assert_eq!(frame[4..], *FRAME);
}

/// Sends a pause from one port to the other, and returns what arrives.
fn pause(from: &mut Bench, to: &mut Bench) -> PriorityPause {
    let mut bytes = Vec::new();
    PriorityPause::of(1 << 3, true).emit(MacAddr([2, 0, 0, 0, 0, 1]), &mut bytes);
    let mut frame = from.pool.take();
    frame.fill(&bytes);
    from.port.egress.push_control(Instant::ZERO, frame);
    from.port.flush(&mut from.pool);
    let mut found = None;
    let is_there = || {
        found = to.receive().iter().find_map(|(_, bytes)| PriorityPause::parse(bytes).ok());
        found.is_some()
    };
    wait::until(|| "a pause through the interface".to_owned(), is_there);
    found.unwrap()
}

/// In a separate network namespace, which requires root: a veth pair with a packet socket at each
/// end, and a tap interface.
#[needs("namespace")]
#[test]
fn packet_sockets_keep_their_tags_and_taps_reach_the_kernel() {
    if !alone::in_network("ports::packet_sockets_keep_their_tags_and_taps_reach_the_kernel") {
        return;
    }
    let ip = |arguments: &str| {
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success(), "ip {arguments}");
    };
    ip("link add left type veth peer name right");
    ip("link set left up mtu 2500");
    ip("link set right up mtu 2500");
    let mut left = Bench::new(Driver::Packet(Packet::open("left").unwrap()));
    let mut right = Bench::new(Driver::Packet(Packet::open("right").unwrap()));
    let tag = VlanTag { priority: 3, drop_eligible: false, vlan: 100 };
    warm_up(&mut left, &mut right);
    left.send(FRAME, Some(tag));
    left.send(FRAME, None);
    assert_eq!(right.receive_ours(2), [Some(tag), None]);
    assert_eq!(pause(&mut left, &mut right), PriorityPause::of(1 << 3, true));
    ip("link set left down");
    let is_down = || {
        left.port.check_peer();
        right.port.check_peer();
        !left.port.has_peer() && !right.port.has_peer()
    };
    wait::until(|| "the carrier is lost".to_owned(), is_down);
    assert!(matches!(Packet::open("nowhere"), Err(PortError::Interface { .. })));

    let mut tap = Bench::new(Driver::Tap(Tap::open("tap0").unwrap()));
    assert!(tap.port.has_peer());
    let mut kernel = Bench::new(Driver::Packet(Packet::open("tap0").unwrap()));
    warm_up(&mut kernel, &mut tap);
    tap.send(FRAME, None);
    assert_eq!(kernel.receive_ours(1), [None]);
    assert_eq!(pause(&mut tap, &mut kernel), PriorityPause::of(1 << 3, true));
    kernel.send(FRAME, Some(tag));
    assert_eq!(tap.receive_ours(1), [Some(tag)]);
}
