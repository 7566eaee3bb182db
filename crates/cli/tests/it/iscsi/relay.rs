//! A relay in front of a portal that records its traffic in a capture file, because capturing on
//! the loopback requires privileges.

use sanloom_test_support::programs::run;
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Maximum segment length, so that the length fits the IP header.
const SEGMENT_BYTES: usize = 32 << 10;

/// Nothing in a capture is malformed to Wireshark.
pub fn assert_well_formed(file: &str) {
    let malformed = run("tshark", &["-r", file, "-Y", "_ws.malformed"]);
    // QEMU requests 64 bytes of page 83, and Wireshark reports a truncated list of names as
    // malformed.
    let is_malformed = |line: &&str| line.contains("alformed") && !line.contains("Inquiry Response Data");
    let malformed: Vec<&str> = malformed.lines().filter(is_malformed).collect();
    assert!(malformed.is_empty(), "{file}: {malformed:#?}");
}

/// Returns Wireshark's decoding of a capture. Requires no malformed packet and valid checksums and
/// digests.
pub fn dissect(file: &str) -> String {
    assert_well_formed(file);
    let text = run("tshark", &["-r", file, "-V"]);
    for bad in ["[incorrect", "Bad CRC32"] {
        assert!(!text.contains(bad), "{bad:?} in {file}");
    }
    text
}

/// Recorded traffic.
pub struct Capture {
    file: Vec<u8>,
    packets: u64,
    connections: u16,
}

/// Starts a relay to `portal`. Returns its address and the recorded traffic.
pub fn start(portal: &str) -> (String, Arc<Mutex<Capture>>) {
    let mut file = Vec::new();
    Section { application: "sanloom test", comment: None }.emit(&mut file);
    let resolution = Resolution::Nanoseconds;
    Interface { name: "relay", description: None, link_type: LINKTYPE_ETHERNET, resolution }.emit(&mut file);
    let capture = Arc::new(Mutex::new(Capture { file, packets: 0, connections: 0 }));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (portal, shared) = (portal.to_owned(), capture.clone());
    thread::spawn(move || {
        for initiator in listener.incoming() {
            let (Ok(initiator), Ok(target)) = (initiator, TcpStream::connect(&portal)) else { return };
            let number = {
                let mut capture = shared.lock().unwrap();
                capture.connections += 1;
                capture.connections
            };
            let sequence = Arc::new(Mutex::new([1; 2]));
            for (from, to, side) in [(&initiator, &target, 0), (&target, &initiator, 1)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (shared, sequence) = (shared.clone(), sequence.clone());
                thread::spawn(move || carry(from, to, side, number, &shared, &sequence));
            }
        }
    });
    (address, capture)
}

fn carry(
    mut from: TcpStream,
    mut to: TcpStream,
    side: usize,
    connection: u16,
    capture: &Mutex<Capture>,
    sequence: &Mutex<[u32; 2]>,
) {
    let mut buffer = vec![0; SEGMENT_BYTES];
    while let Ok(got) = from.read(&mut buffer) {
        if got == 0 {
            break;
        }
        capture.lock().unwrap().push(connection, side, &mut sequence.lock().unwrap(), &buffer[..got]);
        if to.write_all(&buffer[..got]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl Capture {
    fn push(&mut self, connection: u16, side: usize, sequence: &mut [u32; 2], payload: &[u8]) {
        let ports = [(40_000 + connection).to_be_bytes(), 3260_u16.to_be_bytes()];
        let mut tcp = [ports[side], ports[1 - side]].concat();
        tcp.extend(sequence[side].to_be_bytes());
        tcp.extend(sequence[1 - side].to_be_bytes());
        tcp.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        sequence[side] = sequence[side].wrapping_add(payload.len() as u32);
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let frame = [&[0; 12], &[8, 0][..], &ip, &tcp].concat();
        self.packets += 1;
        let time = self.packets * 1000;
        Packet { interface: 0, time, direction: None, crc_error: false, comment: None, data: &frame }
            .emit(&mut self.file);
    }

    /// Writes the capture into a file.
    pub fn save(&self, file: &str) {
        fs::write(file, &self.file).unwrap();
    }
}
