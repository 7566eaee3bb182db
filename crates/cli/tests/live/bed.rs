//! What every test with a guest needs: [`Bed`] with a running `sanloom up`, [`Guest`], and [`check_capture`].
//!
//! Guests are hosts of the lab: `server1` at the link `server1-sw1`, with a port name of 20:00 and the address
//! 52:54:00:00:00:01, and so on.

use crate::descriptors::{AS_SEVEN, with_descriptor};
use crate::started::{Folder, Process};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A guest, all of it, takes no longer; a busy machine is three or four times slower than a quiet one.
const GUEST_SECONDS: u32 = 150;

/// What every lab here has: one host, whose link to the first switch ends in a guest.
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

/// The folder with the guest, or nothing where it cannot be made: then the test says so and ends. In CI that is a failure.
fn image() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::var_os("SANLOOM_GUEST").map_or_else(|| root().join("target/guest"), PathBuf::from);
        let built = Command::new(root().join("tests/guest/build.sh")).arg(&folder).output();
        match built {
            Ok(output) if output.status.success() => Ok(folder),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
    match folder {
        Ok(folder) => Some(folder),
        Err(reason) => {
            let required = std::env::var("SANLOOM_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(!required, "no guest: {reason}");
            println!("skipped: no guest: {reason}");
            None
        }
    }
}

/// Emulated machines side by side only make each other slow.
static ALONE: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder of a test, with a running `sanloom up` in it.
pub struct Bed {
    up: Option<Process>,
    /// Other processes of ours.
    others: Vec<Process>,
    /// Goes when the processes are gone.
    pub folder: Folder,
    image: &'static Path,
    _alone: MutexGuard<'static, ()>,
}

impl Bed {
    /// Starts a lab, which is `lab` behind [`COMMON`]. The port of each link of `captures` is captured. Nothing where there is
    /// no guest.
    pub fn start(name: &str, lab: &str, captures: &[&str]) -> Option<Bed> {
        Bed::start_changed(name, lab, &[], captures)
    }

    /// As [`start`](Bed::start), with changes to the text of the lab.
    pub fn start_changed(name: &str, lab: &str, changes: &[(&str, &str)], captures: &[&str]) -> Option<Bed> {
        let mut bed = Bed::changed(name, lab, changes)?;
        bed.start_again(captures);
        Some(bed)
    }

    /// The same with a socket that the lab calls the descriptor 7.
    pub fn start_on(name: &str, lab: &str, changes: &[(&str, &str)], captures: &[&str], seven: OwnedFd) -> Option<Bed> {
        let mut bed = Bed::changed(name, lab, changes)?;
        let arguments = bed.arguments(captures, None);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        bed.up = Some(with_descriptor(&bed.folder, seven, &arguments));
        Some(bed)
    }

    /// A lab with changes to its text that nobody runs yet.
    fn changed(name: &str, lab: &str, changes: &[(&str, &str)]) -> Option<Bed> {
        let bed = Bed::folder(name, lab)?;
        let path = bed.folder.join("lab.toml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{from} is not in the lab");
            text = text.replace(from, to);
        }
        fs::write(path, text).unwrap();
        Some(bed)
    }

    /// Starts each switch of a lab in a process of its own, with captures of the ports of these links.
    pub fn start_fabric(name: &str, lab: &str, switches: &[(&str, &[&str])]) -> Option<Bed> {
        let mut bed = Bed::folder(name, lab)?;
        for (switch, captures) in switches {
            bed.spawn(captures, Some(switch));
            bed.others.extend(bed.up.take());
        }
        Some(bed)
    }

    /// A lab that nobody runs yet.
    fn folder(name: &str, lab: &str) -> Option<Bed> {
        let image = image()?;
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Folder::new(name);
        let lab = [COMMON, lab].concat().replace("{folder}", &folder.display().to_string());
        fs::write(folder.join("lab.toml"), lab).unwrap();
        Some(Bed { up: None, others: Vec::new(), folder, image, _alone: alone })
    }

    /// Starts the lab of the bed, after its end.
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

    /// Starts a guest at a link, with other sockets than those of the link: its own, and whom it sends to.
    pub fn guest_with_sockets(&self, link: &str, sockets: [&str; 2], number: u8, script: &str) -> Guest {
        let [own, peer] = sockets.map(|ending| self.folder.path(&format!("{link}.{ending}")));
        let netdev = format!("dgram,local.type=unix,local.path={own},remote.type=unix,remote.path={peer}");
        self.guest_on(&netdev, Stdio::null(), link, number, script)
    }

    /// Starts a guest whose card is at this `-netdev` of QEMU; what is given as standard input, it has as descriptor 7.
    pub fn guest_on(&self, netdev: &str, seven: Stdio, link: &str, number: u8, script: &str) -> Guest {
        Guest::start(self, link, netdev, seven, &format!("52:54:00:00:00:{number:02x}"), script)
    }

    /// Starts an initiator of ours, in whose arguments `{folder}` is the folder of the bed, and waits for its disks. Its port
    /// is captured. Gives back the socket of its NBD server.
    pub fn start_initiator(&mut self, name: &str, arguments: &[&str]) -> PathBuf {
        let nbd = self.folder.join(format!("{name}.nbd.sock"));
        let folder = self.folder.display().to_string();
        let more = ["--nbd", "{folder}/{name}.nbd.sock", "--capture", "{folder}/{name}.pcapng"];
        let all = ["initiator"].iter().chain(arguments).chain(&more);
        let all = all.map(|argument| argument.replace("{folder}", &folder).replace("{name}", name));
        self.others.push(self.folder.sanloom(all));
        nbd
    }

    /// Ends the processes other than the lab as an administrator does.
    pub fn stop_others(&mut self) {
        self.others.drain(..).for_each(|mut process| process.stop());
    }

    /// The capture of the port of a link.
    pub fn capture(&self, link: &str) -> PathBuf {
        self.folder.join(format!("{link}.pcapng"))
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.folder.log()
    }

    /// A table of a switch in a process of its own.
    pub fn show_on(&self, table: &str, switch: &str) -> String {
        self.command(&["show", table, "--live", "--switch", switch])
    }

    /// A table of the running lab.
    pub fn show(&self, table: &str) -> String {
        self.command(&["show", table, "--live"])
    }

    /// Waits until a host is logged in, or is not any more.
    pub fn wait_for_login(&self, host: &str, logged_in: bool) {
        let begun = Instant::now();
        while self.show("flogi").contains(host) != logged_in {
            assert!(begun.elapsed() < Duration::from_secs(40), "{host} logged in: {}\n{}", !logged_in, self.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until it has logged something so often.
    pub fn wait_for_log(&self, what: &str, times: usize) {
        let begun = Instant::now();
        while self.log().matches(what).count() < times {
            assert!(begun.elapsed() < Duration::from_secs(40), "{what}, {times} times, is not logged:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command of the tool about the running lab; what it prints.
    pub fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sanloom"));
        let output = command.args(arguments).arg(self.folder.join("lab.toml")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.up.take().unwrap().kill();
    }

    /// Ends it as an administrator does, and checks that it ends well.
    pub fn stop(&mut self) {
        self.up.take().unwrap().stop();
    }
}

/// A running guest.
pub struct Guest {
    child: Child,
    monitor: PathBuf,
}

/// What a guest has said, and how its script ended.
pub struct Said {
    pub console: String,
    pub code: i32,
}

impl Guest {
    /// Starts a guest. Its port name is 20:00 and `mac`.
    fn start(bed: &Bed, link: &str, netdev: &str, seven: Stdio, mac: &str, script: &str) -> Guest {
        let file = bed.folder.join(format!("{link}.sh"));
        fs::write(&file, script).unwrap();
        let monitor = bed.folder.join(format!("{link}.monitor"));
        let mut command = Command::new("bash");
        command.args(AS_SEVEN).arg(root().join("tests/guest/run.sh"));
        command.arg(bed.image).arg(file).args([mac, netdev, &GUEST_SECONDS.to_string()]).arg(&monitor);
        let child = command.stdin(seven).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Guest { child, monitor }
    }

    /// Waits until it says a line that begins like this.
    pub fn hear(&mut self, beginning: &str) -> String {
        let mut heard = String::new();
        let output = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        loop {
            let line = heard.rsplit('\n').next().unwrap_or_default().to_owned();
            assert_eq!(output.read(&mut byte).unwrap(), 1, "the guest ended before it said {beginning}:\n{heard}");
            heard.push(char::from(byte[0]));
            if byte[0] == b'\n' && line.starts_with(beginning) {
                return heard;
            }
        }
    }

    /// Pulls the cable of its card, or puts it back.
    pub fn link(&self, up: bool) {
        let mut monitor = self.monitor();
        writeln!(monitor, "set_link n0 {}", if up { "on" } else { "off" }).unwrap();
        // The monitor echoes the command and comes back with its prompt twice: greeting, then when it is done.
        let mut said = String::new();
        let mut buffer = [0; 1024];
        while said.matches("(qemu)").count() < 2 {
            let got = monitor.read(&mut buffer).unwrap();
            said.push_str(&String::from_utf8_lossy(&buffer[..got]));
        }
    }

    /// Ends it, whatever it does.
    pub fn kill(mut self) {
        let mut monitor = self.monitor();
        writeln!(monitor, "quit").unwrap();
        // It closes the connection when it has read this far.
        let _ = monitor.read_to_end(&mut Vec::new());
        let _ = self.child.wait();
    }

    fn monitor(&self) -> UnixStream {
        let monitor = UnixStream::connect(&self.monitor).unwrap();
        monitor.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        monitor
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let mut console = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut console).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Said { console, code }
    }
}

impl Said {
    /// Checks that its script ended well.
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{}", self.console);
        self.console
    }
}

/// tshark finds nothing malformed in a capture, and every FCoE frame has a good CRC; at least `frames` of them are there.
pub fn check_capture(path: &Path, frames: usize) {
    let bad = captured(path, "_ws.malformed || fcoe.crc.status == 0");
    assert!(bad.is_empty(), "{bad:?}: frames that tshark calls malformed, or whose CRC is wrong");
    let good = captured(path, "fcoe.crc.status == 1").len();
    assert!(good >= frames, "{good} FCoE frames in {}, {frames} expected", path.display());
}

/// Numbers of the frames of a capture that a filter of tshark finds.
pub fn captured(path: &Path, filter: &str) -> Vec<u32> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    match command.output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().map(|number| number.parse().unwrap()).collect()
        }
        other => panic!("tshark: {other:?}"),
    }
}
