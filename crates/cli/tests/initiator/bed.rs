//! `sanloom up` and `sanloom initiator` as processes of their own, in a folder of the test.

use crate::started::started;
use std::fs;

use std::path::PathBuf;
use std::process::{Child, Command};

/// One switch, a host on a unix socket, and storage in memory and in files.
const LAB: &str = r#"
[live]
folder = "{folder}"

[switch.sw1]
domain = 1
fcoe = { priority = 1, keep_alive = "2s" }

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"
wwnn = "10:00:52:54:00:00:00:01"

[storage.ram]
luns = 2
lun_size = "64MiB"

[storage.files]
lun_size = "64MiB"
medium = "file"

[[link]]
from = "server1"
to = "sw1"
rate = "10GFC"
ethernet = { carrier = "{carrier}" }

[[link]]
from = "{ram,files}"
to = "sw1"
rate = "10GFC"
"#;

pub struct Bed {
    pub folder: PathBuf,
    up: Option<Child>,
    initiator: Option<Child>,
}

impl Bed {
    /// Brings the lab up, and an initiator that captures its port.
    pub fn start(name: &str, carrier: &str) -> Bed {
        Bed::start_with(name, carrier, &[], true)
    }

    /// With changes to the text of the lab, and with or without the initiator.
    pub fn start_with(name: &str, carrier: &str, changes: &[(&str, &str)], initiator: bool) -> Bed {
        let mut lab = LAB.replace("{carrier}", carrier);
        for (from, to) in changes {
            assert!(lab.contains(from));
            lab = lab.replace(from, to);
        }
        let mut bed = Bed::folder(name, &lab);
        bed.start_fabric();
        if initiator {
            bed.start_initiator(&[]);
        }
        bed
    }

    /// A lab that nobody runs yet. `{folder}` in its text is the folder of the test.
    pub fn folder(name: &str, lab: &str) -> Bed {
        let folder = std::env::temp_dir().join(format!("sanloom-initiator-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("lab.toml"), lab.replace("{folder}", &folder.display().to_string())).unwrap();
        Bed { folder, up: None, initiator: None }
    }

    pub fn start_fabric(&mut self) {
        let lab = self.path("lab.toml");
        self.up = Some(self.spawn(&["up", &lab]));
    }

    pub fn start_initiator(&mut self, more: &[&str]) {
        let (lab, nbd, capture) = (self.path("lab.toml"), self.path("nbd.sock"), self.path("port.pcapng"));
        let arguments = ["initiator", &lab, "--host", "server1", "--nbd", &nbd, "--capture", &capture];
        self.initiator = Some(self.spawn(&[&arguments, more].concat()));
    }

    /// Starts sanloom, and waits until it says that it is ready.
    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sanloom"));
        command.args(arguments);
        started(command, &self.folder.join("log"))
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The address of an export for libnbd and QEMU.
    pub fn uri(&self, export: &str) -> String {
        crate::peer::uri(&self.folder.join("nbd.sock"), export)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// The fabric ends as in a crash.
    pub fn kill_fabric(&mut self) {
        let mut up = self.up.take().unwrap();
        up.kill().unwrap();
        up.wait().unwrap();
    }

    /// Both end as an administrator ends them.
    pub fn stop(&mut self) {
        for mut child in [self.initiator.take(), self.up.take()].into_iter().flatten() {
            assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
            assert_eq!(child.wait().unwrap().code(), Some(0), "{}", self.log());
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for mut child in [self.initiator.take(), self.up.take()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}\nkept: {}", self.log(), self.folder.display());
        } else {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
