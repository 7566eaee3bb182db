//! A folder of a test, with `sanloom up` as a switch and as storage behind it, in separate
//! processes.

use crate::sanloom::{SANLOOM, Start};
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::LiveWhich;
use sanloom_api::view::{Table, View};
use sanloom_api::volume::{CarriedRow, PathRow, SessionRow, VolumesView};
use sanloom_live::control::ask;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::run;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::wait;
use std::collections::BTreeSet;
use std::fs;

/// Target name for hosts.
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

    /// Number of host logins at the switch since the beginning of the test.
    pub fn host_logins(&self) -> usize {
        let log = self.log();
        // Sessions of the switch at back ends have other target names.
        let target = format!("target=\"{HOSTS_TARGET}\"");
        log.lines().filter(|line| line.contains(" session connection=") && line.contains(&target)).count()
    }

    /// Number of sessions at a back end that the switch has lost.
    pub fn lost_sessions(&self, back_end: &str) -> usize {
        let log = self.log();
        let target = format!("example.sanloom:{back_end}\"");
        log.lines().filter(|line| line.contains("the session ended") && line.contains(&target)).count()
    }

    /// A table of the switch, over its control socket.
    fn table(&self, which: LiveWhich) -> Table {
        let request = Request::Show { table: ShowTable::Live(which), switch: None };
        match ask(&self.folder.join("switch/control.sock"), &request).unwrap() {
            Answer::View(view) => view.table,
            other => panic!("{other:?}"),
        }
    }

    /// Rows of the back ends of the switch.
    pub fn paths(&self) -> Vec<PathRow> {
        match self.table(LiveWhich::Paths) {
            Table::Paths(table) => table.paths,
            other => panic!("{other:?}"),
        }
    }

    /// Rows of the sessions of hosts.
    pub fn sessions(&self) -> Vec<SessionRow> {
        match self.table(LiveWhich::Sessions) {
            Table::Sessions(table) => table.sessions.into_iter().filter(|row| !row.own).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the switch has lost more sessions with a back end than this.
    #[track_caller]
    pub fn wait_for_lost_session(&self, back_end: &str, lost: usize) {
        wait::until(|| format!("{back_end}: a loss after {lost}"), || self.lost_sessions(back_end) > lost);
    }

    /// Starts the lab of a file and waits until hosts can log in.
    pub fn up(&self, file: &str) -> Process {
        self.up_with(file, &[])
    }

    /// The same, with more arguments.
    fn up_with(&self, file: &str, more: &[&str]) -> Process {
        let file = self.path(file);
        self.folder.sanloom([&["up", file.as_str()], more].concat())
    }

    /// A metric of the switch without labels beside that of the lab.
    pub fn metric(&self, name: &str) -> u64 {
        let Ok(Answer::Metrics { text }) = ask(&self.folder.join("switch/control.sock"), &Request::Metrics) else {
            panic!("no metrics")
        };
        let line = text.lines().find(|line| line.starts_with(&format!("sanloom_{name}{{")));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
    }

    /// Starts our initiator at a portal of a switch, with the socket `nbd.sock`.
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
    /// Portal for hosts.
    pub portals: [String; 2],
    /// True if the lab permits the forwarding path.
    forward: bool,
    /// Threads of the switch: those of `SANLOOM_SWITCH_THREADS`, otherwise those of the test.
    /// `None`: the default of `sanloom up`.
    pub threads: Option<String>,
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
        Switch::start_as(bed, None, portals, forward, volumes)
    }

    /// The same as [`start_on`](Self::start_on), with this number of threads, unless
    /// `SANLOOM_SWITCH_THREADS` has another one.
    pub fn start_with_threads(bed: &'b Bed, threads: u32, forward: bool, volumes: &str) -> Switch<'b> {
        Switch::start_as(bed, Some(threads), [free_port(), free_port()], forward, volumes)
    }

    fn start_as(bed: &'b Bed, threads: Option<u32>, portals: [String; 2], forward: bool, volumes: &str) -> Switch<'b> {
        let lab = format!(
            "[live]\nfolder = \"{}\"\n[storage.switch]\nmedium = \"volumes\"\niscsi = {{ portals = [\"{}\", \"{}\"], forward = {forward} }}\n{volumes}",
            bed.path("switch"),
            portals[0],
            portals[1]
        );
        fs::write(bed.path("switch.toml"), lab).unwrap();
        let of_test = threads.map(|threads| threads.to_string());
        let threads = std::env::var("SANLOOM_SWITCH_THREADS").ok().or(of_test);
        let process = Switch::up(bed, threads.as_deref());
        Switch { bed, portals, forward, threads, process }
    }

    fn up(bed: &Bed, threads: Option<&str>) -> Process {
        let threads = threads.map(|threads| ["--threads", threads]);
        bed.up_with("switch.toml", threads.as_ref().map_or(&[], |arguments| arguments.as_slice()))
    }

    /// Waits until the volumes exist.
    pub fn wait_for(&self, volumes: &[&str]) {
        let there = || {
            let shown = self.table_of_volumes();
            volumes.iter().all(|name| shown.volumes.iter().any(|row| row.name == *name))
        };
        wait::until(|| format!("{volumes:?} in {:?}", self.table_of_volumes()), there);
    }

    /// Waits until reads and writes of the sessions of hosts are forwarded, if the lab permits it.
    #[track_caller]
    pub fn wait_for_forwarding(&self) {
        self.wait_for_forwarding_of(HOSTS_TARGET, "");
    }

    /// The same for the sessions with a target whose identifier ends like this.
    #[track_caller]
    pub fn wait_for_forwarding_of(&self, target: &str, isid: &str) {
        wait::until(
            || format!("a session of {isid} with {target} that is forwarded"),
            || {
                let is_open = !self.sessions_of(target, isid).is_empty();
                !self.forward || is_open && self.is_forwarded_or_closed(target, isid)
            },
        );
    }

    /// As [`wait_for_forwarding_of`](Self::wait_for_forwarding_of), for a session that others may
    /// close.
    #[track_caller]
    pub fn wait_for_forwarding_or_end_of(&self, target: &str, isid: &str) {
        wait::until(
            || format!("forwarding for each of {:?}", self.sessions_of(target, isid)),
            || self.is_forwarded_or_closed(target, isid),
        );
    }

    /// Every such session has sessions with all back ends, if the switch forwards at all.
    fn is_forwarded_or_closed(&self, target: &str, isid: &str) -> bool {
        let targets = self.bed.paths().into_iter().map(|row| row.target).filter(|target| target.starts_with("iqn."));
        let back_ends = targets.collect::<BTreeSet<_>>().len() as u64;
        !self.forward || self.sessions_of(target, isid).iter().all(|row| row.back_ends >= back_ends)
    }

    fn sessions_of(&self, target: &str, isid: &str) -> Vec<SessionRow> {
        let rows = self.bed.sessions().into_iter();
        rows.filter(|row| row.target == target && row.isid.ends_with(isid)).collect()
    }

    /// Number of commands of a volume that have accessed the medium, on both paths.
    fn commands(&self, volume: &str) -> u64 {
        self.carried(volume).iter().map(|row| row.commands).sum()
    }

    /// Waits until this number of further commands of a volume have accessed the medium.
    #[track_caller]
    pub fn wait_for_commands(&self, volume: &str, commands: u64) {
        let end = self.commands(volume) + commands;
        wait::until(|| format!("{} of {end} commands", self.commands(volume)), || self.commands(volume) >= end);
    }

    /// Appends text to the lab file, applies it, and returns the output.
    pub fn apply(&self, more: &str) -> String {
        let file = self.bed.path("switch.toml");
        let lab = fs::read_to_string(&file).unwrap() + more;
        fs::write(&file, lab).unwrap();
        run(SANLOOM, &["apply", &file])
    }

    /// Runs `sanloom volume` and returns its output.
    pub fn volume(&self, arguments: &[&str]) -> String {
        run(SANLOOM, &self.volume_arguments(arguments).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the answer of `sanloom volume show`.
    pub fn volumes(&self, arguments: &[&str]) -> VolumesView {
        let shown = self.volume(&[&["show", "--json"], arguments].concat());
        let view: View = serde_json::from_str(&shown).unwrap();
        match view.table {
            Table::Volumes(table) => table,
            other => panic!("{other:?}"),
        }
    }

    /// Table of all volumes, over the control socket.
    fn table_of_volumes(&self) -> VolumesView {
        match self.bed.table(LiveWhich::Volumes) {
            Table::Volumes(table) => table,
            other => panic!("{other:?}"),
        }
    }

    /// Commands and bytes of a volume on each path: forwarding, conventional.
    pub fn carried(&self, volume: &str) -> [CarriedRow; 2] {
        let shown = self.table_of_volumes();
        let row = shown.volumes.iter().find(|row| row.name == volume).unwrap();
        [row.forwarded, row.conventional]
    }

    /// Requires no traffic on a path that the lab disables, and at least this number of bytes on
    /// the other path.
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
        // Inserted after the name of the volume, if there is one.
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
        self.process = Switch::up(self.bed, self.threads.as_deref());
    }

    pub fn stop(&mut self) {
        self.process.stop();
    }
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
