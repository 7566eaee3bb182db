//! A running `sanloom up` without Ethernet ports: [`Instance`].

use crate::sanloom::{SANLOOM, Start};
use sanloom_api::control::{Answer, Request, ZoneAction};
use sanloom_api::zone_database::Edit;
use sanloom_api::zoning::ZoneStatus;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::wait;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// A folder with a lab, and the process that runs it.
pub struct Instance {
    up: Option<Process>,
    /// Switches that run in separate processes, by name.
    apart: Vec<(String, Process)>,
    initiator: Option<Process>,
    /// Removed after the processes have ended.
    pub folder: Folder,
}

/// Output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Requires exit code 0.
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Requires exit code 2 and this message.
    pub fn refused(self, why: &str) {
        assert_eq!(self.code, 2, "{self:?}");
        assert!(self.stderr.contains(why), "no `{why}` in {self:?}");
    }
}

impl Instance {
    /// Starts a lab.
    pub fn start(name: &str, lab: &str) -> Instance {
        let mut instance = Instance::folder(name, lab);
        instance.up(&[]);
        instance
    }

    /// Starts a lab with another command, built from the path of the lab and the folder, whose last
    /// word is sanloom.
    pub fn start_under(name: &str, lab: &str, command: impl Fn(&str, &Path) -> Command) -> Instance {
        let mut instance = Instance::folder(name, lab);
        let command = command(&instance.path("lab.toml"), &instance.folder);
        instance.up = Some(instance.folder.start(command));
        instance
    }

    /// Starts each switch of a lab in a separate process.
    pub fn start_apart(name: &str, lab: &str, switches: &[&str]) -> Instance {
        let mut instance = Instance::folder(name, lab);
        instance.up_apart(switches);
        instance
    }

    /// Creates a lab that is not running yet.
    fn folder(name: &str, lab: &str) -> Instance {
        let instance = Instance { up: None, apart: Vec::new(), initiator: None, folder: Folder::new(name) };
        instance.write_lab(lab);
        instance
    }

    /// Replaces the lab file.
    pub fn write_lab(&self, lab: &str) {
        let head = format!("[live]\nfolder = \"{}\"\n", self.folder.display());
        self.write("lab.toml", &(head + lab));
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// Address of the page of the process that was started last, from its log.
    pub fn page_url(&self) -> String {
        let log = self.log();
        let line = log.lines().rfind(|line| line.contains("page url=")).unwrap_or_else(|| panic!("{log}"));
        line.split('"').nth(1).unwrap().to_owned()
    }

    /// Starts the lab, and waits until it is ready.
    pub fn up(&mut self, more: &[&str]) {
        let lab = self.path("lab.toml");
        self.up = Some(self.folder.sanloom([&["up", &lab], more].concat()));
    }

    /// Starts each of these switches in a separate process.
    pub fn up_apart(&mut self, switches: &[&str]) {
        let lab = self.path("lab.toml");
        for switch in switches {
            let process = self.folder.sanloom(["up", &lab, "--switch", switch]);
            self.apart.push(((*switch).to_owned(), process));
        }
    }

    /// All running processes.
    fn take(&mut self) -> Vec<Process> {
        let apart = self.apart.drain(..).map(|(_, process)| process);
        self.initiator.take().into_iter().chain(self.up.take()).chain(apart).collect()
    }

    /// Starts a host of the lab in user space, and waits until it has its disks.
    pub fn start_initiator(&mut self, host: &str) {
        self.start_initiator_with(host, &[]);
    }

    /// The same with further arguments.
    pub fn start_initiator_with(&mut self, host: &str, more: &[&str]) {
        let (lab, nbd) = (self.path("lab.toml"), self.path("nbd.sock"));
        let arguments = ["initiator", &lab, "--host", host, "--nbd", &nbd];
        self.initiator = Some(self.folder.sanloom([&arguments, more].concat()));
    }

    /// Starts the lab with a limit on the size of its files.
    pub fn up_with_files_of(&mut self, kilobytes: u32) {
        let mut command = Command::new("bash");
        let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"");
        command.args(["-c", &script, "bash", SANLOOM, "up", &self.path("lab.toml")]);
        self.up = Some(self.folder.start(command));
    }

    /// The process that runs the lab.
    pub fn id(&self) -> u32 {
        self.up.as_ref().unwrap().id()
    }

    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// Kills a switch that runs in a separate process.
    pub fn crash_one(&self, switch: &str) {
        let (_, process) = self.apart.iter().find(|(name, _)| name == switch).unwrap();
        assert!(Command::new("kill").args(["-KILL", &process.id().to_string()]).status().unwrap().success());
    }

    /// Restarts a killed switch.
    pub fn up_again(&mut self, switch: &str) {
        let at = self.apart.iter().position(|(name, _)| name == switch).unwrap();
        self.apart.remove(at).1.wait().unwrap();
        self.up_apart(&[switch]);
    }

    /// Kills the process without waiting for its end.
    pub fn crash(&self) {
        let id = self.up.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        self.take().iter_mut().for_each(Process::kill);
    }

    /// Terminates the process, as an administrator would.
    pub fn stop(&mut self) {
        self.take().iter_mut().for_each(Process::stop);
    }

    /// Runs `sanloom down`. Returns its output, and the exit code of the process that ran the lab.
    pub fn down(&mut self) -> (Ran, Option<i32>) {
        let mut up = self.up.take().unwrap();
        std::thread::scope(|scope| {
            let ended = scope.spawn(move || up.wait().unwrap().code());
            (self.run("down LAB"), ended.join().unwrap())
        })
    }

    /// Runs a command of the tool. `LAB` is replaced by the lab file, `@name` by a file in the
    /// folder.
    pub fn run(&self, line: &str) -> Ran {
        let argument = |word: &str| match word.strip_prefix('@') {
            Some(file) => self.path(file),
            None if word == "LAB" => self.path("lab.toml"),
            None => word.to_owned(),
        };
        let mut command = Command::new(SANLOOM);
        let output = command.args(line.split_whitespace().map(argument)).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Sends a request through the control socket.
    pub fn ask(&self, request: &Request) -> io::Result<Answer> {
        let alone = match request {
            Request::Zone { switch: Some(switch), .. } => self.apart.iter().find(|(name, _)| name == switch),
            _ => None,
        };
        let socket = alone.map_or("control.sock".to_owned(), |(name, _)| format!("control.{name}.sock"));
        sanloom_live::control::ask(&self.folder.join(socket), request)
    }

    /// Sends an operation on zones, to the switch of the lab or to this one.
    pub fn zone(&self, switch: Option<&str>, action: ZoneAction) -> io::Result<Answer> {
        self.ask(&Request::Zone { switch: switch.map(str::to_owned), by: None, action })
    }

    /// Creates an alias and commits it. Returns the answer to the commit.
    pub fn commit_alias(&self, switch: Option<&str>, name: &str, members: Vec<String>) -> io::Result<Answer> {
        self.commit(switch, vec![Edit::CreateAlias { name: name.to_owned(), members }])
    }

    /// Commits changes. Returns the answer to the commit.
    pub fn commit(&self, switch: Option<&str>, edits: Vec<Edit>) -> io::Result<Answer> {
        match self.zone(switch, ZoneAction::Edit { edits })? {
            Answer::Zones(_) => self.zone(switch, ZoneAction::Commit),
            other => panic!("{other:?}"),
        }
    }

    /// The zones of a switch.
    pub fn zones(&self, switch: &str) -> ZoneStatus {
        match self.zone(Some(switch), ZoneAction::Show).unwrap() {
            Answer::Zones(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a condition holds.
    pub fn wait(&self, what: &str, holds: impl Fn(&Instance) -> bool) {
        wait::until(|| what.to_owned(), || holds(self));
    }
}
