//! The bed: storage, switches, reference forwarders, links of 1 Gb/s and, if possible, the stock
//! chain, each in its own process.

use super::Behind;
use super::chain::{self, Chain};
use crate::live_lab::{self, free_ports, iscsi_name};
use crate::process::{Process, failed, program};
use sanloom_api::volume::VolumeRow;
use sanloom_console::exit::Failure;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;

/// A disk that hosts log in to.
pub(super) struct DiskAddress {
    pub(super) portal: SocketAddr,
    pub(super) target: String,
    pub(super) lun: u16,
    /// Processes between host and storage whose processor time is counted.
    pub(super) pids: Vec<u32>,
}

/// All processes, and the disks at the end of each path.
pub(super) struct Bed {
    folder: PathBuf,
    processes: Vec<Process>,
    /// The stock chain, or the reason why there is none.
    pub(super) chain: Result<Chain, String>,
    /// The storage itself.
    pub(super) direct: DiskAddress,
    /// The same storage behind the reference forwarder.
    pub(super) ceiling: DiskAddress,
    /// The switch without the forwarding path.
    pub(super) conventional: DiskAddress,
    /// The switch with the forwarding path.
    pub(super) forwarding: DiskAddress,
    /// Volumes that are striped over two back ends, without the forwarding path and with it.
    pub(super) striped: [DiskAddress; 2],
    /// Our own target, also if other targets are behind the switches.
    pub(super) own: DiskAddress,
    /// Reference forwarders with other movers and with known inefficiencies.
    pub(super) movers: Vec<(&'static str, DiskAddress)>,
    /// Paths over links of 1 Gb/s: storage behind one link; then the reference forwarder, the
    /// switch without the forwarding path, and the switch with it, each between two links.
    pub(super) links: [DiskAddress; 4],
}

/// 1 Gb/s, as the links of the iSCSI switch paper.
const LINK_BYTES_PER_SECOND: u32 = 125_000_000;

impl Drop for Bed {
    fn drop(&mut self) {
        self.processes.clear();
        self.chain = Err(String::new());
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// LUN of a disk; LUN 0 of `tgtd` is a controller.
fn lun_of(disk: &str) -> u16 {
    u16::from(disk.starts_with("tgt"))
}

fn disk_address(portal: SocketAddr, target: &str) -> DiskAddress {
    DiskAddress { portal, target: iscsi_name(target), lun: lun_of(target), pids: Vec::new() }
}

/// Reference forwarders that `--ablation` compares, and their options.
const MOVERS: [(&str, &[&str]); 6] = [
    ("splice", &["--mover", "splice"]),
    ("io_uring", &["--mover", "io-uring"]),
    ("store and forward", &["--whole-pdus"]),
    ("PDU by PDU", &["--single-pdus"]),
    ("read by read", &["--single-reads"]),
    ("all three", &["--whole-pdus", "--single-pdus", "--single-reads"]),
];
/// Disks of our own storage: direct, conventional, forwarding, links, conventional links, and two
/// for each striped volume.
const DISKS: usize = 9;

/// A free port for each listener of the bed.
struct Ports(Vec<SocketAddr>);

impl Ports {
    fn new() -> Result<Ports, Failure> {
        free_ports(DISKS + 20 + MOVERS.len()).map(Ports)
    }

    fn next(&mut self) -> Result<SocketAddr, Failure> {
        self.0.pop().ok_or_else(|| Failure::bug("the bed has more listeners than it planned"))
    }
}

fn storage_lab(portals: &[SocketAddr]) -> String {
    let mut lab = String::new();
    for (number, portal) in (1..).zip(portals) {
        let _ = writeln!(lab, "[storage.disk{number}]\nlun_size = \"128MiB\"\niscsi = {{ portals = \"{portal}\" }}");
    }
    lab
}

/// Parts of the lab of a switch.
struct SwitchLab<'a> {
    name: &'a str,
    portal: SocketAddr,
    /// Disk behind LUN 0.
    disk: (&'a str, SocketAddr),
    /// Disks behind the striped volume, LUN 1.
    striped: Option<[(&'a str, SocketAddr); 2]>,
    forward: bool,
}

fn switch_lab(lab: &SwitchLab<'_>) -> String {
    let SwitchLab { name, portal, disk, striped, forward } = lab;
    let back_end = |name: &str, pool: &str, (disk, portal): (&str, SocketAddr)| {
        format!(
            "[back_end.{name}]\npool = \"{pool}\"\ntarget = \"{}\"\nportals = \"{portal}\"\nlun = {}\n",
            iscsi_name(disk),
            lun_of(disk)
        )
    };
    let mut text = format!(
        "[storage.{name}]\nmedium = \"volumes\"\n\
         iscsi = {{ portals = \"{portal}\", forward = {forward} }}\n[pool.one]\nextent = \"1MiB\"\n{}\
         [volume.volume]\npool = \"one\"\nsize = \"96MiB\"\nstorage = \"{name}\"\nlun = 0\n",
        back_end("disk", "one", *disk),
    );
    if let Some([left, right]) = striped {
        let _ = write!(
            text,
            "[pool.two]\nextent = \"1MiB\"\n{}{}[volume.striped]\npool = \"two\"\nsize = \"96MiB\"\nwidth = 2\n\
             stripe = \"64KiB\"\nstorage = \"{name}\"\nlun = 1\n",
            back_end("left", "two", *left),
            back_end("right", "two", *right)
        );
    }
    text
}

impl Bed {
    /// Starts all processes; `movers`: also the forwarders of [`MOVERS`].
    pub(super) fn start(behind: Behind, movers: bool) -> Result<Bed, Failure> {
        if let Some(why) = chain::no_target().filter(|_| behind == Behind::Tgt) {
            return Err(Failure::environment(format_args!("--behind tgt: {why}")));
        }
        let folder = std::env::temp_dir().join(format!("sanloom-iscsi-switch-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| failed("cannot create a folder", error))?;
        let mut ports = Ports::new()?;
        let own: Vec<SocketAddr> = (0..DISKS).map(|_| ports.next()).collect::<Result<_, _>>()?;
        let names: Vec<String> = (1..=DISKS).map(|number| format!("disk{number}")).collect();
        let disk = |number: usize| (names[number - 1].as_str(), own[number - 1]);
        let disks = match behind {
            Behind::Own => [disk(1), disk(2), disk(3)],
            Behind::Tgt => [("tgt1", ports.next()?), ("tgt2", ports.next()?), ("tgt3", ports.next()?)],
        };
        let mut bed = Bed {
            folder: folder.clone(),
            processes: Vec::new(),
            chain: Chain::start(&folder, ports.next()?, ports.next()?),
            direct: disk_address(disks[0].1, disks[0].0),
            ceiling: disk_address(ports.next()?, disks[0].0),
            conventional: disk_address(ports.next()?, "conventional"),
            forwarding: disk_address(ports.next()?, "forwarding"),
            striped: [disk_address(own[0], "conventional"), disk_address(own[0], "forwarding")],
            own: disk_address(own[0], "disk1"),
            movers: Vec::new(),
            links: [
                disk_address(ports.next()?, disk(4).0),
                disk_address(ports.next()?, disk(4).0),
                disk_address(ports.next()?, "slow-links"),
                disk_address(ports.next()?, "links"),
            ],
        };
        bed.up("storage", &storage_lab(&own))?;
        for (name, portal) in disks.into_iter().filter(|_| behind == Behind::Tgt) {
            let data = folder.join(format!("{name}.data"));
            let made = File::create(&data).and_then(|data| data.set_len(128 << 20));
            made.map_err(|error| failed("cannot create a disk", error))?;
            let target = chain::target(&folder.join(name), portal, &iscsi_name(name), &data, &[]);
            bed.processes.push(target.map_err(|why| Failure::environment(format_args!("--behind tgt: {why}")))?);
        }
        for (forward, name, behind, striped) in
            [(false, "conventional", disks[1], [disk(6), disk(7)]), (true, "forwarding", disks[2], [disk(8), disk(9)])]
        {
            let portal = if forward { bed.forwarding.portal } else { bed.conventional.portal };
            let lab = SwitchLab { name, portal, disk: behind, striped: Some(striped), forward };
            let pids = vec![bed.up(name, &switch_lab(&lab))?];
            bed.striped[usize::from(forward)] =
                DiskAddress { portal, lun: 1, pids: pids.clone(), ..disk_address(portal, name) };
            let disk_address = if forward { &mut bed.forwarding } else { &mut bed.conventional };
            disk_address.pids = pids;
        }
        bed.ceiling.pids = vec![bed.copy(bed.ceiling.portal, disks[0].1, &[])?];
        bed.start_links(&mut ports, disk(4), disk(5))?;
        for (name, options) in MOVERS.into_iter().filter(|_| movers) {
            let portal = ports.next()?;
            let pids = vec![bed.copy(portal, disks[0].1, options)?];
            bed.movers.push((name, DiskAddress { pids, ..disk_address(portal, disks[0].0) }));
        }
        for (switch, volume) in [
            ("conventional", "volume"),
            ("conventional", "striped"),
            ("forwarding", "volume"),
            ("forwarding", "striped"),
            ("slow-links", "volume"),
            ("links", "volume"),
        ] {
            live_lab::wait_for_volume(&bed.lab(switch), volume)?;
        }
        Ok(bed)
    }

    /// Starts the links of 1 Gb/s, and what is between them: a link is a forwarder with a rate
    /// limit.
    fn start_links(
        &mut self,
        ports: &mut Ports,
        disk: (&str, SocketAddr),
        slow_disk: (&str, SocketAddr),
    ) -> Result<(), Failure> {
        let rate = format!("--bytes-per-second={LINK_BYTES_PER_SECOND}");
        let link = |bed: &mut Bed, listen: SocketAddr, to: SocketAddr| bed.copy(listen, to, &[&rate]).map(drop);
        link(self, self.links[0].portal, disk.1)?;
        // The link behind, the device, and the link in front of it.
        let (behind, device) = (ports.next()?, ports.next()?);
        link(self, behind, disk.1)?;
        self.links[1].pids = vec![self.copy(device, behind, &[])?];
        link(self, self.links[1].portal, device)?;
        for (index, name, disk, forward) in [(2, "slow-links", slow_disk, false), (3, "links", disk, true)] {
            let (behind, portal) = (ports.next()?, ports.next()?);
            link(self, behind, disk.1)?;
            let lab = SwitchLab { name, portal, disk: (disk.0, behind), striped: None, forward };
            self.links[index].pids = vec![self.up(name, &switch_lab(&lab))?];
            link(self, self.links[index].portal, portal)?;
        }
        Ok(())
    }

    /// Starts a lab, and waits until it is ready; returns its process number.
    fn up(&mut self, name: &str, lab: &str) -> Result<u32, Failure> {
        let process = live_lab::up(&self.folder, name, lab, &[])?;
        let pid = process.id();
        self.processes.push(process);
        Ok(pid)
    }

    /// Starts a reference forwarder; returns its process number.
    fn copy(&mut self, listen: SocketAddr, to: SocketAddr, options: &[&str]) -> Result<u32, Failure> {
        let mut command = program()?;
        command.args(["bench", "pdu-copy", "--listen", &listen.to_string(), "--to", &to.to_string()]);
        command.args(options).stdout(Stdio::null());
        let name = format!("pdu-copy {}", listen.port());
        let mut process = Process::start(command, &name, &self.folder).map_err(Failure::environment)?;
        process
            .wait_until("it accepted connections", || TcpStream::connect(listen).is_ok())
            .map_err(Failure::environment)?;
        let pid = process.id();
        self.processes.push(process);
        Ok(pid)
    }

    fn lab(&self, name: &str) -> PathBuf {
        live_lab::file(&self.folder, name)
    }

    /// Returns a volume of a switch, if the switch has it already.
    pub(super) fn volume(&self, switch: &str, volume: &str) -> Result<Option<VolumeRow>, Failure> {
        live_lab::volume(&self.lab(switch), volume)
    }
}
