//! Storage, two switches, a forwarder that does nothing else and, where it can be, the stock chain, in processes of their own.

use super::Behind;
use super::chain::{self, Chain};
use crate::exit::Failure;
use sanloom_api::view::{Table, View};
use sanloom_api::volume::VolumeRow;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What everything has to begin in.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A process that ends with the bed.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Something that hosts log in at.
pub(super) struct Place {
    pub(super) portal: SocketAddr,
    pub(super) target: String,
    pub(super) lun: u16,
    /// The processes in between.
    pub(super) pids: Vec<u32>,
}

/// All of it.
pub(super) struct Bed {
    folder: PathBuf,
    processes: Vec<Process>,
    /// The chain of Debian packages, or why there is none.
    pub(super) chain: Result<Chain, String>,
    /// The storage itself.
    pub(super) direct: Place,
    /// The same storage, behind the forwarder.
    pub(super) ceiling: Place,
    /// The switch without the forwarding path, and with it.
    pub(super) conventional: Place,
    pub(super) forwarding: Place,
    /// Our own target, whatever is behind.
    pub(super) own: Place,
    /// Forwarders that move data in other ways, or do something worse.
    pub(super) movers: Vec<(&'static str, Place)>,
    /// Storage behind a link.
    pub(super) link: Place,
    /// The same behind a link, a forwarder that does nothing else, and a link.
    pub(super) copied_links: Place,
    /// And with a switch that forwards between the links.
    pub(super) links: Place,
}

/// 1 Gb/s, as the links of document 003.
const LINK_BYTES_PER_SECOND: u32 = 125_000_000;

impl Drop for Bed {
    fn drop(&mut self) {
        self.processes.clear();
        self.chain = Err(String::new());
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn failed(what: &str, error: impl Display) -> Failure {
    Failure::environment(format_args!("{what}: {error}"))
}

fn program() -> Result<Command, Failure> {
    Ok(Command::new(std::env::current_exe().map_err(|error| failed("cannot find this program", error))?))
}

fn iscsi_name(storage: &str) -> String {
    format!("iqn.2026-11.example.sanloom:{storage}")
}

/// `tgtd` has no LUN 0 for a disk.
fn lun_of(disk: &str) -> u16 {
    u16::from(disk.starts_with("tgt"))
}

/// Forwarders that are compared, and what they are told.
const MOVERS: [(&str, &[&str]); 6] = [
    ("splice", &["--mover", "splice"]),
    ("io_uring", &["--mover", "io-uring"]),
    ("store and forward", &["--whole-pdus"]),
    ("PDU by PDU", &["--single-pdus"]),
    ("read by read", &["--single-reads"]),
    ("all three", &["--whole-pdus", "--single-pdus", "--single-reads"]),
];

fn storage_lab(folder: &Path, portals: &[SocketAddr; 4]) -> String {
    let mut lab = format!("[live]\nfolder = {:?}\n", folder.join("storage"));
    for (number, portal) in (1..).zip(portals) {
        lab += &format!("[storage.disk{number}]\nlun_size = \"128MiB\"\niscsi = {{ portals = \"{portal}\" }}\n");
    }
    lab
}

fn switch_lab(
    folder: &Path,
    name: &str,
    portal: SocketAddr,
    (disk, behind): (&str, SocketAddr),
    forward: bool,
) -> String {
    format!(
        "[live]\nfolder = {:?}\n[storage.{name}]\nmedium = \"volumes\"\n\
         iscsi = {{ portals = \"{portal}\", forward = {forward} }}\n[pool.pool]\nextent = \"1MiB\"\n\
         [back_end.disk]\npool = \"pool\"\ntarget = \"{}\"\nportals = \"{behind}\"\nlun = {}\n\
         [volume.volume]\npool = \"pool\"\nsize = \"96MiB\"\nstorage = \"{name}\"\nlun = 0\n",
        folder.join(name),
        iscsi_name(disk),
        lun_of(disk),
    )
}

impl Bed {
    /// `movers`: the other forwarders, too.
    pub(super) fn start(behind: Behind, movers: bool) -> Result<Bed, Failure> {
        if let Some(why) = chain::no_target().filter(|_| behind == Behind::Tgt) {
            return Err(Failure::environment(format_args!("--behind tgt: {why}")));
        }
        let folder = std::env::temp_dir().join(format!("sanloom-iscsi-switch-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| failed("cannot make a folder", error))?;
        // All open at once, so that no two are the same.
        let listeners = (0..19 + MOVERS.len()).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listeners: Result<Vec<TcpListener>, _> = listeners.collect();
        let ports = listeners.and_then(|all| all.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>());
        let ports: Vec<SocketAddr> = ports.map_err(|error| failed("no port is free", error))?;
        let Some((ports, others)) = ports.split_first_chunk() else {
            return Err(Failure::bug("more ports were asked for"));
        };
        let [copy, slow, fast, front, back, link, after, paced, before, ports @ ..]: [SocketAddr; 19] = *ports;
        let [copied_after, copied, copied_before, tgt1, tgt2, tgt3, ours @ ..] = ports;
        let ours: [SocketAddr; 4] = ours;
        // What hosts log in to end to end, and what is behind the two switches.
        let disks = match behind {
            Behind::Own => [("disk1", ours[0]), ("disk2", ours[1]), ("disk3", ours[2])],
            Behind::Tgt => [("tgt1", tgt1), ("tgt2", tgt2), ("tgt3", tgt3)],
        };
        let place =
            |portal, disk: &str| Place { portal, target: iscsi_name(disk), lun: lun_of(disk), pids: Vec::new() };
        let mut bed = Bed {
            folder: folder.clone(),
            processes: Vec::new(),
            chain: match chain::missing() {
                Some(why) => Err(why),
                None => Ok(Chain::start(&folder, front, back)?),
            },
            direct: place(disks[0].1, disks[0].0),
            ceiling: place(copy, disks[0].0),
            own: place(ours[0], "disk1"),
            movers: Vec::new(),
            conventional: place(slow, "conventional"),
            forwarding: place(fast, "forwarding"),
            link: place(link, "disk4"),
            copied_links: place(copied_before, "disk4"),
            links: place(before, "links"),
        };
        bed.up("storage", &storage_lab(&folder, &ours))?;
        for (disk, portal) in disks.into_iter().filter(|_| behind == Behind::Tgt) {
            let data = folder.join(format!("{disk}.data"));
            let made = File::create(&data).and_then(|data| data.set_len(128 << 20));
            made.map_err(|error| failed("cannot make a disk", error))?;
            bed.processes.push(chain::target(&folder.join(disk), portal, &iscsi_name(disk), &data, &[])?);
        }
        let lab = switch_lab(&folder, "conventional", slow, disks[1], false);
        bed.conventional.pids = vec![bed.up("conventional", &lab)?];
        let lab = switch_lab(&folder, "forwarding", fast, disks[2], true);
        bed.forwarding.pids = vec![bed.up("forwarding", &lab)?];
        bed.ceiling.pids = vec![bed.copy(copy, disks[0].1, &[])?];
        let rate = format!("--bytes-per-second={LINK_BYTES_PER_SECOND}");
        let links = [(link, ours[3]), (after, ours[3]), (before, paced)];
        for (listen, to) in links.into_iter().chain([(copied_after, ours[3]), (copied_before, copied)]) {
            bed.copy(listen, to, &[&rate])?;
        }
        bed.copied_links.pids = vec![bed.copy(copied, copied_after, &[])?];
        for ((name, told), listen) in MOVERS.into_iter().zip(others).filter(|_| movers) {
            let pids = vec![bed.copy(*listen, disks[0].1, told)?];
            bed.movers.push((name, Place { pids, ..place(*listen, disks[0].0) }));
        }
        let lab = switch_lab(&folder, "links", paced, ("disk4", after), true);
        bed.links.pids = vec![bed.up("links", &lab)?];
        for name in ["conventional", "forwarding", "links"] {
            bed.until(|bed| Ok(bed.volume(name)?.is_some_and(|volume| volume.served.is_some())))?;
        }
        Ok(bed)
    }

    fn until(&self, mut there: impl FnMut(&Bed) -> Result<bool, Failure>) -> Result<(), Failure> {
        let begun = Instant::now();
        while !there(self)? {
            if begun.elapsed() > PATIENCE {
                return Err(Failure::environment("the switch does not begin in time"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Starts a lab, and waits until it is up. Its process.
    fn up(&mut self, name: &str, lab: &str) -> Result<u32, Failure> {
        let file = self.lab(name);
        fs::write(&file, lab).map_err(|error| failed("cannot write a lab", error))?;
        let mut command = program()?;
        command.arg("up").arg(&file).args(["--ready-fd", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed("cannot start this program", error))?;
        let (pid, output) = (child.id(), child.stdout.take());
        self.processes.push(Process(child));
        let mut line = String::new();
        // It says so, or ends.
        let _ = output.map(|output| BufReader::new(output).read_line(&mut line));
        if line == "ready\n" { Ok(pid) } else { Err(Failure::environment(format_args!("`{name}` does not come up"))) }
    }

    /// A forwarder that does nothing else.
    fn copy(&mut self, listen: SocketAddr, to: SocketAddr, told: &[&str]) -> Result<u32, Failure> {
        let mut command = program()?;
        command.args(["bench", "pdu-copy", "--listen", &listen.to_string(), "--to", &to.to_string()]);
        command.args(told);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| failed("cannot start this program", error))?;
        let pid = child.id();
        self.processes.push(Process(child));
        self.until(|_| Ok(TcpStream::connect(listen).is_ok()))?;
        Ok(pid)
    }

    fn lab(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.toml"))
    }

    /// The volume of a switch, once it is there.
    pub(super) fn volume(&self, switch: &str) -> Result<Option<VolumeRow>, Failure> {
        let output = program()?.args(["volume", "show"]).arg(self.lab(switch)).arg("--json").output();
        let output = output.map_err(|error| failed("cannot start this program", error))?;
        let view: Option<View> = serde_json::from_slice(&output.stdout).ok();
        Ok(match view.map(|view| view.table) {
            Some(Table::Volumes(mut table)) => table.volumes.pop(),
            _ => None,
        })
    }
}
