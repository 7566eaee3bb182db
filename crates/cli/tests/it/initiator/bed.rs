//! `sanloom up` and `sanloom initiator` as separate processes, in a folder of the test.

use crate::sanloom::Start;
use sanloom_test_support::started::{Folder, Process};
use std::fs;

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
    up: Option<Process>,
    initiator: Option<Process>,
    /// Removed after the processes have ended.
    pub folder: Folder,
}

impl Bed {
    /// Brings the lab up, and an initiator that captures its port.
    pub fn start(name: &str, carrier: &str) -> Bed {
        Bed::start_with(name, carrier, &[], true)
    }

    /// Starts the lab with changes to its text, with or without the initiator.
    pub fn start_with(name: &str, carrier: &str, changes: &[(&str, &str)], initiator: bool) -> Bed {
        let mut bed = Bed::not_started(name, carrier, changes);
        bed.start_fabric();
        if initiator {
            bed.start_initiator(&[]);
        }
        bed
    }

    /// Creates the lab with changes to its text, without starting it.
    pub fn not_started(name: &str, carrier: &str, changes: &[(&str, &str)]) -> Bed {
        let mut lab = LAB.replace("{carrier}", carrier);
        for (from, to) in changes {
            assert!(lab.contains(from));
            lab = lab.replace(from, to);
        }
        Bed::folder(name, &lab)
    }

    /// Creates a lab without starting it. `{folder}` in its text is replaced by the test's folder.
    pub fn folder(name: &str, lab: &str) -> Bed {
        let folder = Folder::new(name);
        fs::write(folder.join("lab.toml"), lab.replace("{folder}", &folder.display().to_string())).unwrap();
        Bed { up: None, initiator: None, folder }
    }

    pub fn start_fabric(&mut self) {
        self.up = Some(self.folder.sanloom(["up", &self.path("lab.toml")]));
    }

    pub fn start_initiator(&mut self, more: &[&str]) {
        let (lab, nbd, capture) = (self.path("lab.toml"), self.path("nbd.sock"), self.path("port.pcapng"));
        let arguments = ["initiator", &lab, "--host", "server1", "--nbd", &nbd, "--capture", &capture];
        self.initiator = Some(self.folder.sanloom([&arguments, more].concat()));
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// The address of an export for libnbd and QEMU.
    pub fn uri(&self, export: &str) -> String {
        sanloom_test_support::programs::uri(&self.folder.join("nbd.sock"), export)
    }

    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// Kills the fabric, as a crash would.
    pub fn kill_fabric(&mut self) {
        self.up.take().unwrap().kill();
    }

    /// Terminates both, as an administrator would.
    pub fn stop(&mut self) {
        for mut process in [self.initiator.take(), self.up.take()].into_iter().flatten() {
            process.stop();
        }
    }
}
