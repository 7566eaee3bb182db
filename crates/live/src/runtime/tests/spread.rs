//! Ethernet ports whose work several threads share.

use super::super::Runtime;
use super::super::plan::Options;
use super::{ends, lab};
use crate::frame::Pool;
use sanloom_fc::exchange::data_header;
use sanloom_fc::fabric::{FibDelta, PortMode};
use sanloom_fc::fip::BindingChange;
use sanloom_wire::FcId;
use sanloom_wire::ether::{ETHER_BYTES, EtherType, FcMap, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

const LAB: &str = r#"
[timers]
hold_time = "5s"
[switch.sw1]
domain = 1
[host."h{0..3}"]
[[link]]
from = "h{0..3}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;
const PORTS: u16 = 4;
/// Frames that each host sends.
const FRAMES: u16 = 4_000;

fn id(port: u16) -> FcId {
    FcId::new(0x01_0000 | u32::from(port) << 8)
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Done {
    /// Numbers of the frames from each host to each host, in the order of arrival.
    arrived: BTreeMap<(FcId, u16), Vec<u16>>,
    /// Dropped frames of each port, by reason.
    drops: Vec<BTreeMap<&'static str, u64>>,
    forwarded: u64,
    /// A full queue has held a port back.
    was_held: bool,
    /// Received frames of each port.
    received: Vec<u64>,
}

struct Bench {
    runtime: Runtime,
    peers: Vec<UnixDatagram>,
    folder: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    /// Starts an instance whose tables have all hosts as logged in.
    fn start(name: &str, threads: usize) -> Bench {
        let lab = lab(name, LAB);
        let folder = PathBuf::from(lab.live.folder.clone().expect("a folder"));
        let mut runtime = Runtime::up(lab, &Options { threads: Some(threads), ..Options::default() }).unwrap();
        let peer = |port: u16| {
            let socket = UnixDatagram::bind(folder.join(format!("h{port}-sw1.peer.sock"))).unwrap();
            socket.connect(folder.join(format!("h{port}-sw1.sock"))).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let peers: Vec<UnixDatagram> = (0..PORTS).map(peer).collect();
        let instance = &mut runtime.instance;
        let fib = &mut instance.fabric.switches[0].fib;
        [FibDelta::Domain { domain: Some(1) }, FibDelta::ZoningOff].iter().for_each(|delta| fib.apply(delta));
        for port in 0..PORTS {
            fib.apply(&FibDelta::PortMode { port, mode: PortMode::F });
            fib.apply(&FibDelta::OwnId { port, id: id(port) });
            instance.fabric.segments[usize::from(port)].bindings.apply(BindingChange::Bind { port_id: id(port), port });
        }
        let mut bench = Bench { runtime, peers, folder };
        while !(0..usize::from(PORTS)).all(|port| bench.runtime.instance.ports[port].light) {
            bench.step();
        }
        bench
    }

    fn step(&mut self) {
        self.runtime.step();
        self.runtime.wait(true).unwrap();
    }

    /// Sends frames of all hosts through the switch until no more arrive.
    fn exchange(&mut self) -> Done {
        let mut done = Done::default();
        let mut next = [0; PORTS as usize];
        let mut scratch = [0; 4_096];
        let mut idle = 0;
        // The sinks are full for a while in each cycle, so that queues fill and hold ports back.
        for step in 0_u64.. {
            for (from, next) in (0..PORTS).zip(&mut next) {
                while *next < FRAMES && self.send(from, *next) {
                    *next += 1;
                }
            }
            self.step();
            done.was_held |= self.runtime.instance.ports.iter().any(|port| port.held > 0);
            let before = done.arrived.values().map(Vec::len).sum::<usize>();
            let reads = if step % 300 < 100 { 0 } else { 32 };
            for (port, peer) in (0..).zip(&self.peers) {
                for _ in 0..reads {
                    let Ok(len) = peer.recv(&mut scratch) else { break };
                    // The forwarder also advertises itself.
                    if scratch[12..14] != EtherType::FCOE.0.to_be_bytes() {
                        continue;
                    }
                    let Some((_, s_id, ox_id)) = fcoe::addresses(&scratch[ETHER_BYTES..len]) else { continue };
                    assert!(Fcoe::parse(&scratch[ETHER_BYTES..len]).is_ok_and(|pdu| pdu.crc_is_right()));
                    done.arrived.entry((s_id, port)).or_default().push(ox_id);
                }
            }
            let arrived = done.arrived.values().map(Vec::len).sum::<usize>();
            idle = if arrived == before && reads > 0 && next == [FRAMES; 4] { idle + 1 } else { 0 };
            if idle > 150 {
                break;
            }
        }
        let instance = &self.runtime.instance;
        done.forwarded = instance.fabric.switches[0].forwarded;
        for port in instance.ports.iter() {
            done.drops.push(port.ethernet.drops.clone().into_iter().collect());
            done.received.push(port.ethernet.received.frames);
        }
        done
    }

    /// Sends a frame whose OX_ID is its number. Returns false if the socket is full.
    fn send(&self, from: u16, number: u16) -> bool {
        let fcf = self.runtime.instance.fabric.segments[usize::from(from)].mac();
        let (mut s_id, mut d_id) = (id(from), id((from + 1 + number % 3) % PORTS));
        match number % 17 {
            // No such destination, a stolen source, a service of the switch.
            3 => d_id = FcId::new(0x01_7700),
            7 => s_id = id((from + 1) % PORTS),
            11 => d_id = FcId::FABRIC_CONTROLLER,
            _ => {}
        }
        let mut frame = Pool::default().take();
        frame.fill_fcoe(&data_header(s_id, d_id, number, 0xffff, 0, 0, 0, true, false), &[number as u8; 256]);
        readdress(frame.bytes_mut(), fcf, MacAddr::fpma(FcMap::DEFAULT, s_id));
        if number % 17 == 13 {
            // Another protocol.
            frame.bytes_mut()[12..14].copy_from_slice(&[0x08, 0x00]);
        }
        self.peers[usize::from(from)].send(frame.bytes()).is_ok()
    }

    fn phases(&self) -> u64 {
        self.runtime.instance.spread.phases()
    }
}

/// Runs a part of a test in a thread of its own, which belongs to one group of threads only.
fn run<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(body).join().unwrap()
}

#[test]
fn several_threads_forward_drop_and_count_the_same_frames_in_the_same_order_as_one() {
    ends(|| {
        let one = run(|| Bench::start("spread-1", 1).exchange());
        for threads in [2, 3] {
            let (several, phases) = run(move || {
                let mut bench = Bench::start(&format!("spread-{threads}"), threads);
                (bench.exchange(), bench.phases())
            });
            assert_eq!(several, one, "{threads} threads");
            assert!(phases > 50, "{phases} phases with several threads");
        }
        let ordered = |numbers: &Vec<u16>| numbers.is_sorted() && numbers.len() > 100;
        assert_eq!((one.arrived.len(), one.was_held), (12, true));
        assert!(one.arrived.values().all(ordered), "{:?}", one.arrived);
    });
}

#[test]
fn a_port_that_is_disabled_forwards_nothing_with_several_threads() {
    ends(|| {
        let (done, phases) = run(|| {
            let mut bench = Bench::start("spread-disabled", 2);
            bench.runtime.instance.fabric.segments[2].disabled = true;
            (bench.exchange(), bench.phases())
        });
        assert!(phases > 50, "{phases} phases with several threads");
        assert!(done.arrived.keys().all(|(from, _)| *from != id(2)), "{:?}", done.arrived.keys());
        assert_eq!(
            done.drops[2].get(crate::runtime::forward::reason::DISABLED).copied().map(|n| n > 3_000),
            Some(true)
        );
    });
}
