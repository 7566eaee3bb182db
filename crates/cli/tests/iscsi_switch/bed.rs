//! A folder of a test, and `sanloom up` as a switch and as storage behind it, in processes of their own.

use crate::peer::run;
use crate::started::{Folder, Process};
use sanloom_api::view::{Table, View};
use sanloom_api::volume::{CarriedRow, VolumesView};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

pub const SANLOOM: &str = env!("CARGO_BIN_EXE_sanloom");

/// What hosts log in at.
pub const HOSTS_TARGET: &str = "iqn.2026-11.example.sanloom:switch";

/// A folder.
pub struct Bed {
    pub folder: Folder,
}

impl Bed {
    pub fn new(name: &str) -> Bed {
        Bed { folder: Folder::new(name) }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// Logins of hosts at the switch, since the beginning of the test.
    pub fn host_logins(&self) -> usize {
        let log = self.log();
        // Sessions of the switch at back ends have other targets.
        let target = format!("target=\"{HOSTS_TARGET}\"");
        log.lines().filter(|line| line.contains(" session connection=") && line.contains(&target)).count()
    }

    /// How often the switch has lost a session at a back end.
    pub fn lost_sessions(&self, back_end: &str) -> usize {
        let log = self.log();
        let target = format!("example.sanloom:{back_end}\"");
        log.lines().filter(|line| line.contains("the session is gone") && line.contains(&target)).count()
    }

    /// Starts the lab of a file, and waits until hosts can log in.
    pub fn up(&self, file: &str) -> Process {
        self.folder.sanloom(["up", &self.path(file)])
    }

    /// Our own initiator at a portal of a switch, with the socket `nbd.sock`.
    pub fn initiator(&self, portal: &str) -> Process {
        self.initiator_with(portal, &[])
    }

    /// The same, with more arguments.
    pub fn initiator_with(&self, portal: &str, more: &[&str]) -> Process {
        let target = format!("{portal}/{HOSTS_TARGET}");
        let arguments = ["initiator", "--iscsi", &target, "--nbd", &self.path("nbd.sock")];
        self.folder.sanloom([&arguments, more].concat())
    }
}

/// The switch.
pub struct Switch<'b> {
    bed: &'b Bed,
    /// Where hosts find it.
    pub portals: [String; 2],
    process: Process,
}

impl<'b> Switch<'b> {
    /// A switch with these pools, back ends and volumes; its storage system is called `switch`.
    pub fn start(bed: &'b Bed, volumes: &str) -> Switch<'b> {
        Switch::start_on(bed, true, volumes)
    }

    /// The same, with or without the forwarding path.
    pub fn start_on(bed: &'b Bed, forward: bool, volumes: &str) -> Switch<'b> {
        Switch::start_at(bed, [free_port(), free_port()], forward, volumes)
    }

    /// The same, at these portals.
    pub fn start_at(bed: &'b Bed, portals: [String; 2], forward: bool, volumes: &str) -> Switch<'b> {
        let lab = format!(
            "[live]\nfolder = \"{}\"\n[storage.switch]\nmedium = \"volumes\"\niscsi = {{ portals = [\"{}\", \"{}\"], forward = {forward} }}\n{volumes}",
            bed.path("switch"),
            portals[0],
            portals[1]
        );
        fs::write(bed.path("switch.toml"), lab).unwrap();
        let process = bed.up("switch.toml");
        Switch { bed, portals, process }
    }

    /// Waits until volumes are there.
    pub fn wait_for(&self, volumes: &[&str]) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let shown = self.volumes(&[]);
            if volumes.iter().all(|name| shown.volumes.iter().any(|row| row.name == *name)) {
                return;
            }
            assert!(Instant::now() < until, "{shown:?}\n{}", self.bed.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Adds something to the end of the lab file, and applies that; what is printed.
    pub fn apply(&self, more: &str) -> String {
        let file = self.bed.path("switch.toml");
        let lab = fs::read_to_string(&file).unwrap() + more;
        fs::write(&file, lab).unwrap();
        run(SANLOOM, &["apply", &file])
    }

    /// `sanloom volume`; what it prints.
    pub fn volume(&self, arguments: &[&str]) -> String {
        run(SANLOOM, &self.volume_arguments(arguments).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What `sanloom volume show` knows.
    pub fn volumes(&self, arguments: &[&str]) -> VolumesView {
        let shown = self.volume(&[&["show", "--json"], arguments].concat());
        let view: View = serde_json::from_str(&shown).unwrap();
        match view.table {
            Table::Volumes(table) => table,
            other => panic!("{other:?}"),
        }
    }

    /// Commands and bytes of a volume on each path: forwarded, conventional.
    pub fn carried(&self, volume: &str) -> [CarriedRow; 2] {
        let shown = self.volumes(&[]);
        let row = shown.volumes.iter().find(|row| row.name == volume).unwrap();
        [row.forwarded, row.conventional]
    }

    /// Nothing went one of the ways that the lab has forbidden, and at least so many bytes did go the one it wants.
    pub fn assert_path(&self, volume: &str, forward: bool, read_bytes: u64, written_bytes: u64) {
        let [forwarded, conventional] = self.carried(volume);
        let there = if forward { forwarded } else { conventional };
        assert!(
            there.read_bytes >= read_bytes && there.written_bytes >= written_bytes,
            "{forwarded:?} {conventional:?}"
        );
        assert!(forward || forwarded.commands == 0, "{forwarded:?}");
    }

    /// The arguments of `sanloom volume`, with the lab.
    pub fn volume_arguments(&self, arguments: &[&str]) -> Vec<String> {
        let lab = self.bed.path("switch.toml");
        let mut all = vec!["volume".to_owned()];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        // Behind the name of the volume, where there is one.
        let at = if arguments[0] == "show" { 2 } else { 3 };
        all.insert(at, lab);
        all
    }

    pub fn url_at(&self, portal: &str, lun: u16) -> String {
        format!("iscsi://{portal}/{HOSTS_TARGET}/{lun}")
    }

    pub fn url(&self, lun: u16) -> String {
        self.url_at(&self.portals[0], lun)
    }

    /// Number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn restart(&mut self) {
        self.process = self.bed.up("switch.toml");
    }

    pub fn stop(&mut self) {
        self.process.stop();
    }
}

/// A port that nobody listens at.
pub fn free_port() -> String {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string()
}

/// Storage of our own in files, behind a switch.
pub fn storage(bed: &Bed, name: &str, portal: &str) -> Process {
    let lab = format!(
        "[live]\nfolder = \"{}\"\n[storage.{name}]\nlun_size = \"64MiB\"\nmedium = \"file\"\niscsi = {{ portals = \"{portal}\" }}\n",
        bed.path(name)
    );
    let file = format!("{name}.toml");
    fs::write(bed.path(&file), lab).unwrap();
    bed.up(&file)
}

/// The back end that [`storage`] is, at these portals.
pub fn back_end(name: &str, pool: &str, portals: &[&str]) -> String {
    format!(
        "[back_end.{name}]\npool = \"{pool}\"\ntarget = \"iqn.2026-11.example.sanloom:{name}\"\nportals = {portals:?}\n"
    )
}
