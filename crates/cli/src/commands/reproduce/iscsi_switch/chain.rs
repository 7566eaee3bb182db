//! The stock chain: what a virtualization switch is without one, put together out of Debian packages.
//!
//! A host's requests end in `tgtd`, whose disk is a file that `qemu-storage-daemon` shows through FUSE; behind the file is
//! libiscsi, which logs in to another `tgtd` that has the data. Both targets agree to what our own ones do, and the file is
//! used without a cache, as a switch has none.

use super::bed::{PATIENCE, Place, Process, failed};
use crate::exit::Failure;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BACK: &str = "iqn.2026-11.example.sanloom:stock-back";
const FRONT: &str = "iqn.2026-11.example.sanloom:stock-chain";
const DISK_BYTES: u64 = 96 << 20;

/// As our own targets.
const AGREED: [(&str, &str); 6] = [
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxRecvDataSegmentLength", "262144"),
    ("FirstBurstLength", "262144"),
    ("MaxBurstLength", "1048576"),
    ("MaxOutstandingR2T", "8"),
];

/// The programs of the chain, and the Debian packages that they are in.
const PROGRAMS: [(&str, &str); 3] = [("tgtd", "tgt"), ("tgtadm", "tgt"), ("qemu-storage-daemon", "qemu-system-common")];

/// The chain, which ends when it is dropped.
pub(super) struct Chain {
    /// Where hosts log in. What counts is the time of the front `tgtd` and of the daemon behind it.
    pub(super) place: Place,
    folder: PathBuf,
    front: Option<Process>,
    middle: Option<Process>,
    _back: Process,
}

/// Why there can be no `tgtd` here; none: there can.
pub(super) fn no_target() -> Option<String> {
    lacks(&PROGRAMS[..2])
}

/// Why there can be no chain here; none: there can.
pub(super) fn missing() -> Option<String> {
    lacks(&PROGRAMS).or_else(|| (!Path::new("/dev/fuse").exists()).then(|| "there is no /dev/fuse".to_owned()))
}

fn lacks(programs: &[(&str, &str)]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| {
        let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        folders.any(|folder| folder.join(program).is_file())
    };
    if let Some((program, package)) = programs.iter().find(|(program, _)| !there(program)) {
        return Some(format!("there is no {program} (Debian package {package}, with qemu-block-extra)"));
    }
    (!rustix::process::geteuid().is_root()).then(|| "tgtd and FUSE need root".to_owned())
}

fn daemon(program: &str) -> Command {
    let mut command = Command::new(program);
    // Debian has tgtd where not every user looks.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn start(mut command: Command) -> Result<Process, Failure> {
    Ok(Process(command.spawn().map_err(|error| failed("the stock chain does not begin", error))?))
}

/// Tries until it is good or all patience is gone.
fn until(what: &str, mut good: impl FnMut() -> bool) -> Result<(), Failure> {
    let begun = Instant::now();
    while !good() {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::environment(format_args!("the stock chain does not begin: {what}")));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

impl Chain {
    /// Starts the chain with the files of this folder.
    ///
    /// # Errors
    /// When a part of it does not begin in time.
    pub(super) fn start(folder: &Path, front: SocketAddr, back: SocketAddr) -> Result<Chain, Failure> {
        let folder = folder.join("stock");
        let (data, file) = (folder.join("data"), folder.join("disk"));
        fs::create_dir_all(&folder).map_err(|error| failed("cannot make a folder", error))?;
        let made = File::create(&data).and_then(|data| data.set_len(DISK_BYTES)).and_then(|()| File::create(&file));
        made.map_err(|error| failed("cannot make a disk", error))?;
        let mut chain = Chain {
            place: Place { portal: front, target: FRONT.to_owned(), lun: 1, pids: Vec::new() },
            _back: target(&folder.join("back"), back, BACK, &data, &[])?,
            front: None,
            middle: None,
            folder,
        };
        let mut middle = daemon("qemu-storage-daemon");
        middle.arg("--blockdev");
        middle.arg(format!(
            "driver=iscsi,node-name=disk,transport=tcp,portal={back},target={BACK},lun=1,cache.direct=on"
        ));
        middle.arg("--export");
        middle.arg(format!("type=fuse,id=disk,node-name=disk,mountpoint={},writable=on", file.display()));
        let middle = chain.middle.insert(start(middle)?);
        chain.place.pids.push(middle.0.id());
        until("the file does not appear", || fs::metadata(&file).is_ok_and(|file| file.len() == DISK_BYTES))?;
        let front = target(&chain.folder.join("front"), front, FRONT, &file, &["--bsoflags", "direct"])?;
        chain.place.pids.push(chain.front.insert(front).0.id());
        Ok(chain)
    }
}

impl Drop for Chain {
    /// From the front, so that nobody writes to a file that is gone.
    fn drop(&mut self) {
        self.front = None;
        if let Some(mut middle) = self.middle.take() {
            // It takes its file out of the file system only if it is asked to end.
            let asked = rustix::process::kill_process(
                rustix::process::Pid::from_child(&middle.0),
                rustix::process::Signal::TERM,
            );
            let begun = Instant::now();
            while asked.is_ok() && begun.elapsed() < PATIENCE && matches!(middle.0.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(20));
            }
            drop(middle);
            if fs::metadata(self.folder.join("disk")).is_err() {
                let _ = daemon("umount").arg("-l").arg(self.folder.join("disk")).status();
            }
        }
    }
}

/// A `tgtd` with one disk, LUN 1, which hosts may log in to when this returns.
pub(super) fn target(
    socket: &Path,
    portal: SocketAddr,
    name: &str,
    disk: &Path,
    options: &[&str],
) -> Result<Process, Failure> {
    let mut command = daemon("tgtd");
    command.args(["-f", "--iscsi", &format!("portal={portal}")]).env("TGT_IPC_SOCKET", socket);
    let process = start(command)?;
    let step = |arguments: &[&str]| {
        let mut command = daemon("tgtadm");
        command.args(["--lld", "iscsi", "--tid", "1", "--mode"]).args(arguments).env("TGT_IPC_SOCKET", socket);
        until("tgtadm fails", || command.status().is_ok_and(|status| status.success()))
    };
    step(&["target", "--op", "new", "-T", name])?;
    let disk = disk.to_string_lossy();
    step(&[&["logicalunit", "--op", "new", "--lun", "1", "-b", &*disk], options].concat())?;
    for (key, value) in AGREED {
        step(&["target", "--op", "update", "--name", key, "--value", value])?;
    }
    step(&["target", "--op", "bind", "-I", "ALL"])?;
    Ok(process)
}
