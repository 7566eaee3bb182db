//! Common parts of tests with a guest: [`Bed`] with a running `sanloom up`, [`Guest`], and
//! [`check_capture`].
//!
//! Guests are hosts of the lab: `server1` at the link `server1-sw1`, with a port name of 20:00 and
//! the address 52:54:00:00:00:01, and so on.

use crate::sanloom::{SANLOOM, Start};
use sanloom_test_support::guest::{Emulator, Guest, Machine};
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::{tshark, wait};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Time limit after which a hanging guest is ended, in seconds.
const GUEST_SECONDS: u32 = 600;

/// Common part of every lab: one host, whose link to the first switch ends in a guest.
const COMMON: &str = r#"
[live]
folder = "{folder}"

# A machine that is busy with something else may leave an emulated one alone for seconds.
[timers]
hold_time = "5s"

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;

/// A folder of a test, with a running `sanloom up` in it.
pub struct Bed {
    up: Option<Process>,
    /// Other processes started by the test.
    others: Vec<Process>,
    /// Removed after the processes have ended.
    pub folder: Folder,
    emulator: Emulator,
}

impl Bed {
    /// Starts a lab with the text of [`COMMON`] followed by `lab`. The port of each link in
    /// `captures` is captured.
    pub fn start(name: &str, lab: &str, captures: &[&str]) -> Bed {
        Bed::start_changed(name, lab, &[], captures)
    }

    /// As [`start`](Bed::start), with changes to the text of the lab.
    pub fn start_changed(name: &str, lab: &str, changes: &[(&str, &str)], captures: &[&str]) -> Bed {
        let mut bed = Bed::changed(name, lab, changes);
        bed.start_again(captures);
        bed
    }

    /// Starts a lab with an inherited socket, which it uses as descriptor 7.
    pub fn start_on(name: &str, lab: &str, changes: &[(&str, &str)], captures: &[&str], seven: OwnedFd) -> Bed {
        let mut bed = Bed::changed(name, lab, changes);
        let arguments = bed.arguments(captures, None);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        bed.up = Some(bed.folder.start_with_descriptor(SANLOOM, seven, &arguments));
        bed
    }

    /// Creates a lab with changes to its text, without starting it.
    fn changed(name: &str, lab: &str, changes: &[(&str, &str)]) -> Bed {
        let bed = Bed::folder(name, lab);
        let path = bed.folder.join("lab.toml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{from} is not in the lab");
            text = text.replace(from, to);
        }
        fs::write(path, text).unwrap();
        bed
    }

    /// Starts each switch of a lab in a separate process, with captures of the ports of these
    /// links.
    pub fn start_fabric(name: &str, lab: &str, switches: &[(&str, &[&str])]) -> Bed {
        let mut bed = Bed::folder(name, lab);
        for (switch, captures) in switches {
            bed.spawn(captures, Some(switch));
            bed.others.extend(bed.up.take());
        }
        bed
    }

    /// Creates a lab without starting it.
    fn folder(name: &str, lab: &str) -> Bed {
        let emulator = Emulator::new();
        let folder = Folder::new(name);
        let lab = [COMMON, lab].concat().replace("{folder}", &folder.display().to_string());
        fs::write(folder.join("lab.toml"), lab).unwrap();
        Bed { up: None, others: Vec::new(), folder, emulator }
    }

    /// Restarts the lab of the bed after its end.
    pub fn start_again(&mut self, captures: &[&str]) {
        self.spawn(captures, None);
    }

    fn spawn(&mut self, captures: &[&str], switch: Option<&str>) {
        self.up = Some(self.folder.sanloom(self.arguments(captures, switch)));
    }

    fn arguments(&self, captures: &[&str], switch: Option<&str>) -> Vec<String> {
        let mut arguments = vec!["up".to_owned(), self.folder.path("lab.toml")];
        arguments.extend(switch.into_iter().flat_map(|name| ["--switch".to_owned(), name.to_owned()]));
        for link in captures {
            arguments.extend(["--capture".to_owned(), format!("{link}={}", self.capture(link).display())]);
        }
        arguments
    }

    /// Starts a guest at the link from `name` to the first switch. Its port name ends in `number`.
    pub fn guest(&self, name: &str, number: u8, script: &str) -> Guest {
        self.guest_at(&format!("{name}-sw1"), number, script)
    }

    /// Starts a guest at a link.
    pub fn guest_at(&self, link: &str, number: u8, script: &str) -> Guest {
        self.guest_with_sockets(link, ["peer.sock", "sock"], number, script)
    }

    /// Starts a guest at a link with the given sockets instead of those of the link: the guest's
    /// own, and its peer's.
    pub fn guest_with_sockets(&self, link: &str, sockets: [&str; 2], number: u8, script: &str) -> Guest {
        let [own, peer] = sockets.map(|ending| self.folder.path(&format!("{link}.{ending}")));
        let netdev = format!("dgram,local.type=unix,local.path={own},remote.type=unix,remote.path={peer}");
        self.guest_on(&netdev, Stdio::null(), link, number, script)
    }

    /// Starts a guest whose network card uses this `-netdev` of QEMU. The given standard input
    /// becomes descriptor 7.
    pub fn guest_on(&self, netdev: &str, seven: Stdio, link: &str, number: u8, script: &str) -> Guest {
        let mac = format!("52:54:00:00:00:{number:02x}");
        let machine = Machine { mac: &mac, netdev, seven, seconds: GUEST_SECONDS };
        self.emulator.start(&self.folder, link, machine, script)
    }

    /// Starts one of our initiators and waits for its disks. `{folder}` in its arguments is
    /// replaced by the folder of the bed. Its port is captured. Returns the socket of its NBD
    /// server.
    pub fn start_initiator(&mut self, name: &str, arguments: &[&str]) -> PathBuf {
        let nbd = self.folder.join(format!("{name}.nbd.sock"));
        let folder = self.folder.display().to_string();
        let more = ["--nbd", "{folder}/{name}.nbd.sock", "--capture", "{folder}/{name}.pcapng"];
        let all = ["initiator"].iter().chain(arguments).chain(&more);
        let all = all.map(|argument| argument.replace("{folder}", &folder).replace("{name}", name));
        self.others.push(self.folder.sanloom(all));
        nbd
    }

    /// Terminates the processes other than the lab, as an administrator would.
    pub fn stop_others(&mut self) {
        self.others.drain(..).for_each(|mut process| process.stop());
    }

    /// Path of the capture of a link's port.
    pub fn capture(&self, link: &str) -> PathBuf {
        self.folder.join(format!("{link}.pcapng"))
    }

    /// Log of the lab.
    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// Table of a switch in a separate process.
    pub fn show_on(&self, table: &str, switch: &str) -> String {
        self.command(&["show", table, "--live", "--switch", switch])
    }

    /// A table of the running lab.
    pub fn show(&self, table: &str) -> String {
        self.command(&["show", table, "--live"])
    }

    /// Waits until a host is logged in, or logged out.
    pub fn wait_for_login(&self, host: &str, logged_in: bool) {
        let shown = || self.show("flogi").contains(host) == logged_in;
        wait::until(|| format!("{host} logged in: {logged_in}"), shown);
    }

    /// Waits until the log contains a text this number of times.
    pub fn wait_for_log(&self, what: &str, times: usize) {
        let logged = || self.log().matches(what).count() >= times;
        wait::until(|| format!("{what}, logged {times} times"), logged);
    }

    /// Runs a command of the tool for the running lab and returns its output.
    pub fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(SANLOOM);
        let output = command.args(arguments).arg(self.folder.join("lab.toml")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Kills the lab, as a crash would.
    pub fn kill(&mut self) {
        self.up.take().unwrap().kill();
    }

    /// Terminates the lab, as an administrator would, and checks its exit code.
    pub fn stop(&mut self) {
        self.up.take().unwrap().stop();
    }
}

/// Requires that tshark finds nothing malformed in a capture, and at least `frames` FCoE frames,
/// all with a valid CRC.
pub fn check_capture(path: &Path, frames: usize) {
    let bad = tshark::frames(path, "_ws.malformed || fcoe.crc.status == 0");
    assert!(bad.is_empty(), "{bad:?}: frames that tshark calls malformed, or whose CRC is wrong");
    let good = tshark::frames(path, "fcoe.crc.status == 1").len();
    assert!(good >= frames, "{good} FCoE frames in {}, {frames} expected", path.display());
}
