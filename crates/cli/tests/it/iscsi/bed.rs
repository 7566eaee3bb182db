//! `sanloom up` with iSCSI targets as a separate process, in a folder of the test.

use crate::sanloom::Start;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::started::{Folder, Process};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Targets in memory and in files; one with CHAP in both directions, one for a single initiator.
const LAB: &str = r#"
[live]
folder = "{folder}"

[storage.ram]
luns = 2
lun_size = "100MiB"
iscsi = { portals = ["{portal0}", "{portal1}"], alias = "Disks in memory" }

[storage.files]
lun_size = "64MiB"
medium = "file"
cache = "write-back"
iscsi = { portals = "{portal0}", max_segment = "8KiB", max_burst = "32KiB", first_burst = "16KiB", max_r2t = 1, queue_depth = 4 }

[storage.asked]
lun_size = "64MiB"
iscsi = { portals = "{portal0}", unasked_data = false, header_digest = "always", data_digest = "either" }

[storage.secret]
lun_size = "64MiB"

[storage.secret.iscsi]
portals = "{portal0}"
chap_name = "server"
chap_secret_file = "server.secret"
own_chap_name = "array"
own_chap_secret_file = "array.secret"

[storage.private]
lun_size = "64MiB"
iscsi = { portals = "{portal0}", initiators = "iqn.2026-11.net.example:only" }

[storage.moved]
lun_size = "64MiB"
iscsi = { portals = "{portal0}", redirect = "{portal1}" }
"#;

pub struct Bed {
    up: Option<Process>,
    /// Portals of the targets.
    pub portals: [String; 2],
    /// Removed after the process has ended.
    pub folder: Folder,
}

impl Bed {
    pub fn start(name: &str) -> Bed {
        let folder = Folder::new(name);
        for (name, secret) in [("server.secret", "sixteen letters!\n"), ("array.secret", "another sixteen.\n")] {
            fs::write(folder.join(name), secret).unwrap();
            fs::set_permissions(folder.join(name), Permissions::from_mode(0o600)).unwrap();
        }
        let portals = [free_port(), free_port()];
        let lab = LAB.replace("{folder}", &folder.display().to_string());
        let lab = lab.replace("{portal0}", &portals[0]).replace("{portal1}", &portals[1]);
        fs::write(folder.join("lab.toml"), lab).unwrap();
        let mut bed = Bed { up: None, portals, folder };
        bed.start_target();
        bed
    }

    pub fn start_target(&mut self) {
        self.up = Some(self.folder.sanloom(["up", &self.path("lab.toml")]));
    }

    /// The process that runs the lab.
    pub fn id(&self) -> u32 {
        self.up.as_ref().unwrap().id()
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// iSCSI name of a storage system of the lab.
    pub fn target(storage: &str) -> String {
        format!("iqn.2026-11.example.sanloom:{storage}")
    }

    /// URL of a disk in the form of libiscsi and QEMU.
    pub fn url(&self, storage: &str, lun: u16) -> String {
        format!("iscsi://{}/{}/{lun}", self.portals[0], Bed::target(storage))
    }

    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        self.up.take().unwrap().kill();
    }

    /// Terminates the process, as an administrator would.
    pub fn stop(&mut self) {
        self.up.take().unwrap().stop();
    }
}
