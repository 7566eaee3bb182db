//! FCIP: two processes joined over TCP, with a wide-area network between them that delays, cuts and
//! splits.

use crate::sanloom::{SANLOOM, Start};
use sanloom_api::view::{Dark, PortRow, Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{first_export, run};
use sanloom_test_support::qemu_io::write_and_verify;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::{tshark, wait};
use sanloom_wire::fcip::{HEADER_BYTES, Head, PORT};
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Two sites. Addresses and folder are to be replaced.
pub const LAB: &str = r#"
[live]
folder = "{folder}"

[timers]
hold_time = "5s"

[switch."{near,far}"]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.disk1]
lun_size = "64MiB"

[[link]]
from = "server1"
to = "near"
ethernet = { carrier = "stream" }

[[link]]
from = "disk1"
to = "far"

[[isl]]
from = "near"
to = "far"
name = "tunnel"
fcip = { listen = "{listen}", peer = "{peer}", keep_alive = "1s" }

[[zone]]
name = "both"
members = ["server1", "disk1"]
"#;

/// A wide-area network in front of the listening end: it delays bytes and passes them on in pieces.
struct Wan {
    address: SocketAddr,
    /// No connection is accepted, and the existing ones are closed.
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    capture: Arc<Mutex<Capture>>,
}

impl Wan {
    fn start(target: SocketAddr, delay: Duration, piece: usize) -> Wan {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wan = Wan {
            address: listener.local_addr().unwrap(),
            cut: Arc::default(),
            open: Arc::default(),
            capture: Arc::new(Mutex::new(Capture::new())),
        };
        let (cut, open, capture) = (wan.cut.clone(), wan.open.clone(), wan.capture.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(target) else { continue };
                let connection = capture.lock().unwrap().connect();
                for (from, to, side) in [(&client, &server, 0), (&server, &client, 1)] {
                    let [from, to] = [from, to].map(|stream| stream.try_clone().unwrap());
                    to.set_nodelay(true).unwrap();
                    open.lock().unwrap().push(from.try_clone().unwrap());
                    let (sender, receiver) = mpsc::channel();
                    let capture = capture.clone();
                    thread::spawn(move || deliver(receiver, to, delay, piece));
                    thread::spawn(move || carry(from, &sender, &capture, (connection, side)));
                }
            }
        });
        wan
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn heal(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, to: &Sender<(Instant, Vec<u8>)>, capture: &Mutex<Capture>, at: (usize, usize)) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(got @ 1..) = from.read(&mut buffer) {
        capture.lock().unwrap().push(at, &buffer[..got]);
        if to.send((Instant::now(), buffer[..got].to_vec())).is_err() {
            return;
        }
    }
}

fn deliver(from: Receiver<(Instant, Vec<u8>)>, mut to: TcpStream, delay: Duration, piece: usize) {
    for (since, bytes) in from {
        thread::sleep((since + delay).saturating_duration_since(Instant::now()));
        for part in bytes.chunks(piece) {
            if to.write_all(part).is_err() {
                return;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The streams of the network as a capture. Wireshark 4.0 dissects the first frame of a segment
/// only, so each unit of the stream is a segment.
struct Capture {
    file: Vec<u8>,
    packets: u64,
    /// Unread bytes and next sequence number, by connection and side.
    streams: Vec<[(Vec<u8>, u32); 2]>,
}

impl Capture {
    fn new() -> Capture {
        let mut file = Vec::new();
        Section { application: "sanloom test", comment: None }.emit(&mut file);
        let resolution = Resolution::Nanoseconds;
        Interface { name: "wan", description: None, link_type: LINKTYPE_ETHERNET, resolution }.emit(&mut file);
        Capture { file, packets: 0, streams: Vec::new() }
    }

    fn connect(&mut self) -> usize {
        self.streams.push([(Vec::new(), 1), (Vec::new(), 1)]);
        self.streams.len() - 1
    }

    fn push(&mut self, (connection, side): (usize, usize), bytes: &[u8]) {
        self.streams[connection][side].0.extend_from_slice(bytes);
        loop {
            let unread = &self.streams[connection][side].0;
            let Some(head) = unread.get(..HEADER_BYTES) else { return };
            let len = Head::parse(head).expect("each unit begins where the one before it ends").bytes();
            if unread.len() < len {
                return;
            }
            let unit: Vec<u8> = self.streams[connection][side].0.drain(..len).collect();
            self.segment((connection, side), &unit);
        }
    }

    fn segment(&mut self, (connection, side): (usize, usize), payload: &[u8]) {
        let ports = [(40_000 + connection as u16).to_be_bytes(), PORT.to_be_bytes()];
        let mut tcp = [ports[side], ports[1 - side]].concat();
        let streams = &mut self.streams[connection];
        tcp.extend(streams[side].1.to_be_bytes());
        tcp.extend(streams[1 - side].1.to_be_bytes());
        tcp.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        streams[side].1 = streams[side].1.wrapping_add(payload.len() as u32);
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let frame = [&[0; 12], &[8, 0][..], &ip, &tcp].concat();
        self.packets += 1;
        let time = self.packets * 1_000;
        Packet { interface: 0, time, direction: None, crc_error: false, comment: None, data: &frame }
            .emit(&mut self.file);
    }
}

/// Both sites with the network between them, and a host at the near one.
struct Sites {
    /// Initiator, near, far.
    processes: Vec<Process>,
    wan: Wan,
    folder: Folder,
}

impl Sites {
    fn start(name: &str, delay: Duration, piece: usize) -> Sites {
        let folder = Folder::new(name);
        let listen = free_port();
        let wan = Wan::start(listen.parse().unwrap(), delay, piece);
        let values =
            [("{folder}", folder.display().to_string()), ("{listen}", listen), ("{peer}", wan.address.to_string())];
        let lab = values.iter().fold(LAB.to_owned(), |text, (from, to)| text.replace(from, to));
        fs::write(folder.join("lab.toml"), lab).unwrap();
        let path = folder.path("lab.toml");
        let up = |switch| folder.sanloom(["up", &path, "--switch", switch]);
        let mut processes = vec![up("far"), up("near")];
        let sites = Sites { processes: Vec::new(), wan, folder };
        sites.wait_for_one_fabric();
        let (path, nbd) = (sites.folder.path("lab.toml"), sites.folder.path("nbd.sock"));
        processes.push(sites.folder.sanloom(["initiator", &path, "--host", "server1", "--nbd", &nbd]));
        processes.reverse();
        Sites { processes, ..sites }
    }

    fn show(&self, table: &str, switch: &str) -> String {
        run(SANLOOM, &["show", table, "--live", "--switch", switch, &self.folder.path("lab.toml")])
    }

    fn table(&self, table: &str, switch: &str) -> Table {
        let json =
            run(SANLOOM, &["show", table, "--json", "--live", "--switch", switch, &self.folder.path("lab.toml")]);
        serde_json::from_str::<View>(&json).unwrap_or_else(|error| panic!("{error}: {json}")).table
    }

    /// The port of the tunnel at a switch.
    fn tunnel(&self, switch: &str) -> PortRow {
        let Table::Ports(view) = self.table("ports", switch) else { panic!("another table") };
        view.ports.into_iter().find(|row| row.fcip.is_some()).expect("a port with FCIP")
    }

    fn wait_for_one_fabric(&self) {
        let whole = || self.show("ns", "near").contains("disk1");
        wait::until(|| format!("{}\n{}", self.show("ports", "near"), self.show("fabric", "near")), whole);
    }

    fn export(&self) -> String {
        first_export(&self.folder.join("nbd.sock"))
    }

    fn stop(&mut self) {
        self.processes.iter_mut().for_each(Process::stop);
    }
}

#[needs("nbdinfo", "qemu-io", "tshark")]
#[test]
fn the_fabric_is_one_before_a_cut_segmented_in_between_and_one_again_after_it() {
    let mut sites = Sites::start("fcip-cut", Duration::from_millis(5), 700);
    let ports = sites.show("ports", "near");
    assert!(ports.contains("VE ") && ports.contains("FCIP") && ports.contains("listens at"), "{ports}");
    assert!(sites.show("ports", "far").contains("connects to"), "{}", sites.show("ports", "far"));
    assert!(sites.show("zone", "near").contains("both"), "{}", sites.show("zone", "near"));
    let export = sites.export();
    write_and_verify(&export);

    sites.wan.cut();
    let segmented = || !sites.show("ns", "near").contains("disk1") && !sites.show("ns", "far").contains("server1");
    wait::until(|| sites.show("fabric", "near"), segmented);
    let ports = sites.show("ports", "far");
    assert!(ports.contains("VE, connecting") || ports.contains("VE, waiting"), "{ports}");

    sites.wan.heal();
    sites.wait_for_one_fabric();
    let export = sites.export();
    write_and_verify(&export);
    let near = sites.tunnel("near").port;
    let connections = || {
        let Table::Counters(view) = sites.table("counters", "near") else { panic!("another table") };
        let row = view.counters.into_iter().find(|row| row.of == near).expect("counters of the tunnel");
        row.counters["FCIP connections"]
    };
    assert_eq!(connections(), 2, "one before the cut and one after it");

    let lab = sites.folder.path("lab.toml");
    run(SANLOOM, &["port", "disable", &near, &lab]);
    wait::until(|| sites.show("fabric", "near"), segmented);
    let disabled = sites.tunnel("near");
    assert_eq!((disabled.dark, disabled.fcip.unwrap().state), (Some(Dark::Disabled), "disabled".to_owned()));
    // The other end tries again and again, and gets no answer.
    assert_ne!(sites.tunnel("far").fcip.unwrap().state, "up");
    run(SANLOOM, &["port", "enable", &near, &lab]);
    sites.wait_for_one_fabric();
    assert_eq!(sites.tunnel("near").fcip.unwrap().state, "up");
    assert_eq!(connections(), 3);
    sites.stop();

    let file = sites.folder.join("wan.pcapng");
    fs::write(&file, &sites.wan.capture.lock().unwrap().file).unwrap();
    // Wireshark misreads padded names in MR. Reassembly is off, because both connections use the
    // same exchange numbers.
    let arguments = ["-d", AS_FCIP, "-o", "fc.reassemble:FALSE", "-Y", "_ws.malformed && swils.opcode != 0x22"];
    let malformed = tshark::read(&file, &arguments);
    assert!(malformed.is_empty(), "{malformed}");
    let count = |filter: &str| tshark::read(&file, &["-d", AS_FCIP, "-Y", filter]).lines().count();
    assert!(count("fcip.pflags.sf == 1") >= 6, "each connection has a special frame and its echo");
    // ELP, zones, routes, commands, data.
    for filter in ["swils.opcode == 0x10", "swils.opcode == 0x22", "swils.opcode == 0x14", "scsi_sbc.opcode == 0x2a"] {
        assert!(count(&format!("fcip && {filter}")) > 0, "no {filter}");
    }
    assert!(count("fcip && fc.r_ctl == 0x01") > 1_000, "data");
}

const AS_FCIP: &str = "tcp.port==3225,fcip";

/// The far end is stopped as by a power failure behind a network that reports nothing: the near end
/// finds out by its keep-alive.
#[needs("nbdinfo", "qemu-io")]
#[test]
fn a_silent_far_end_is_found_by_the_keep_alive() {
    let sites = Sites::start("fcip-silent", Duration::from_millis(1), 64 << 10);
    let far = sites.processes[2].id().to_string();
    run("kill", &["-STOP", &far]);
    wait::until(|| sites.show("ports", "near"), || !sites.show("ns", "near").contains("disk1"));
    let log = sites.folder.log();
    assert!(log.contains("nothing received for twice K_A_TOV"), "{log}");
    run("kill", &["-CONT", &far]);
    sites.wait_for_one_fabric();
}
