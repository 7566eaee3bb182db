//! Priority-based flow control between an instance and its peers.

use super::super::Runtime;
use super::super::plan::Options;
use super::super::work::Source;
use super::lab;
use crate::frame::FrameBuf;
use crate::lldp::Agent;
use crate::ports::egress::FULL;
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr, VlanTag};
use sanloom_wire::pause::PriorityPause;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LAB: &str = r#"
[timers]
hold_time = "5s"
[switch.sw1]
[host."server{1..2}"]
[[link]]
from = "server{1..2}"
to = "sw1"
ethernet = { carrier = "dgram", dcbx = true, vlan = 100 }
"#;
/// Priority of FCoE.
const FCOE: u8 = 3;
const STATION: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);

/// The other end of a port: a host that supports DCBX.
struct Peer {
    socket: UnixDatagram,
    agent: Agent,
}

impl Peer {
    fn new(folder: &Path, link: &str) -> Peer {
        let socket = UnixDatagram::bind(folder.join(format!("{link}.peer.sock"))).unwrap();
        socket.connect(folder.join(format!("{link}.sock"))).unwrap();
        socket.set_nonblocking(true).unwrap();
        Peer { socket, agent: Agent::new(STATION, link, true) }
    }

    fn send(&self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
    }

    fn pause(&self, stops: bool) {
        let mut bytes = Vec::new();
        PriorityPause::of(1 << FCOE, stops).emit(STATION, &mut bytes);
        self.send(&bytes);
    }

    /// Receives all frames, of which the agent gets LLDP.
    fn receive(&mut self, now: Instant) -> Vec<(EtherType, Vec<u8>)> {
        let (mut frames, mut bytes) = (Vec::new(), [0; 4_096]);
        while let Ok(len) = self.socket.recv(&mut bytes) {
            let (header, _) = EtherHeader::parse(&bytes[..len]).unwrap();
            if header.ether_type == EtherType::LLDP {
                let mut frame = crate::frame::Pool::default().take();
                frame.compose(&mut Vec::new(), |out| out.extend(&bytes[..len]));
                self.agent.frame_in(now, &frame);
            }
            frames.push((header.ether_type, bytes[..len].to_vec()));
        }
        while let Some(pdu) = self.agent.poll() {
            let mut out = Vec::new();
            self.agent.emit(&pdu, &mut out);
            self.send(&out);
        }
        frames
    }
}

struct Bench {
    runtime: Runtime,
    peers: [Peer; 2],
    /// Frames to queue in the next step: port and number.
    pending: Vec<(usize, u16)>,
}

impl Bench {
    /// Starts an instance and waits until DCBX has agreed at both ports.
    fn start(name: &str) -> Bench {
        let lab = lab(name, LAB);
        let folder = PathBuf::from(lab.live.folder.clone().expect("a folder"));
        let runtime = Runtime::up(lab, &Options::default()).unwrap();
        let peers = [1, 2].map(|server| Peer::new(&folder, &format!("server{server}-sw1")));
        let mut bench = Bench { runtime, peers, pending: Vec::new() };
        let start = std::time::Instant::now();
        while !(0..2).all(|port| bench.runtime.instance.ports[port].up) {
            assert!(start.elapsed() < Duration::from_secs(60), "DCBX does not agree");
            bench.step();
            let now = bench.runtime.clock.now();
            for peer in &mut bench.peers {
                if !peer.agent.may_begin() {
                    peer.agent.machine.handle(now, sanloom_fc::dcbx::Input::LinkUp);
                }
                peer.receive(now);
            }
        }
        bench
    }

    /// Steps, with the pending frames after the received ones.
    fn step(&mut self) {
        self.runtime.wait(true).unwrap();
        for (port, number) in std::mem::take(&mut self.pending) {
            self.queue(port, number);
        }
        self.runtime.step();
    }

    /// Queues a frame of FCoE, as if it came from the other port.
    fn queue(&mut self, port: usize, number: u16) {
        let now = self.runtime.clock.now();
        let frame: FrameBuf = {
            let mut frame = self.runtime.instance.ports.compose(|out| {
                EtherHeader { to: STATION, from: STATION, tag: None, ether_type: EtherType::FCOE }.emit(out);
                out.extend(number.to_be_bytes());
                out.resize(2_000, 0);
            });
            frame.tag = Some(VlanTag { priority: FCOE, drop_eligible: false, vlan: 100 });
            frame
        };
        self.runtime.instance.push_ethernet(now, port, Source::Ethernet(1 - port), frame);
    }

    /// Steps, and returns the frames that a peer has received meanwhile.
    fn received(&mut self, peer: usize) -> Vec<(EtherType, Vec<u8>)> {
        self.step();
        let now = self.runtime.clock.now();
        self.peers[peer].receive(now)
    }
}

fn fcoe(frames: &[(EtherType, Vec<u8>)]) -> Vec<u16> {
    let of_type = frames.iter().filter(|(ether_type, _)| *ether_type == EtherType::FCOE);
    of_type.map(|(_, bytes)| u16::from_be_bytes([bytes[18], bytes[19]])).collect()
}

fn pauses(frames: &[(EtherType, Vec<u8>)]) -> Vec<PriorityPause> {
    let of_type = frames.iter().filter(|(ether_type, _)| *ether_type == EtherType::MAC_CONTROL);
    of_type.map(|(_, bytes)| PriorityPause::parse(bytes).unwrap()).collect()
}

#[test]
fn a_paused_peer_receives_nothing_of_its_priority_and_loses_nothing() {
    let mut bench = Bench::start("paused");
    for number in 0..100 {
        // A pause that arrives in the step of a frame holds it back, however slow the machine is.
        bench.peers[0].pause(true);
        bench.pending.push((0, number));
        let frames = bench.received(0);
        assert_eq!(fcoe(&frames), Vec::<u16>::new(), "frame {number}");
    }
    bench.peers[0].pause(false);
    let mut numbers = Vec::new();
    while numbers.len() < 100 {
        numbers.extend(fcoe(&bench.received(0)));
    }
    assert!(numbers.iter().copied().eq(0..100), "{numbers:?}");
    let ethernet = &bench.runtime.instance.ports[0].ethernet;
    assert_eq!((ethernet.pauses_received, ethernet.drops.len()), (101, 0), "{:?}", ethernet.drops);
}

#[test]
fn a_port_whose_frames_find_a_full_queue_pauses_its_peer_until_there_is_room() {
    let mut bench = Bench::start("pausing");
    assert_eq!(pauses(&bench.received(1)), Vec::new());
    for number in 0..FULL as u16 {
        bench.pending.push((0, number));
        if number % 64 == 63 {
            bench.peers[0].pause(true);
            let asked = pauses(&bench.received(1));
            let expected = if number + 1 < FULL as u16 { &[][..] } else { &[PriorityPause::of(1 << FCOE, true)] };
            assert_eq!(asked, expected, "frame {number}");
        }
    }
    // The pause is repeated while it lasts.
    let mut repeated = 0;
    while repeated < 3 {
        bench.peers[0].pause(true);
        let asked = pauses(&bench.received(1));
        assert!(asked.iter().all(|pause| *pause == PriorityPause::of(1 << FCOE, true)), "{asked:?}");
        repeated += asked.len();
    }
    bench.peers[0].pause(false);
    let (mut numbers, mut asked) = (Vec::new(), Vec::new());
    while numbers.len() < FULL || asked.is_empty() {
        numbers.extend(fcoe(&bench.received(0)));
        let now = bench.runtime.clock.now();
        let more = pauses(&bench.peers[1].receive(now));
        asked.extend(more.into_iter().filter(|pause| pause.quanta == [0; 8]));
    }
    assert!(numbers.iter().copied().eq(0..FULL as u16), "every frame has arrived in its order");
    assert_eq!(asked, [PriorityPause::of(1 << FCOE, false)]);
}
