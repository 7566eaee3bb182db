//! The stock chain: an iSCSI virtualization switch made of Debian packages.
//!
//! The requests of a host end in `tgtd`, whose disk is a file that `qemu-storage-daemon` exports
//! through FUSE. Behind the file is libiscsi, which is logged in to another `tgtd` with the data.
//! Both targets negotiate the same parameters as ours. The file has no cache, because a switch has
//! none.
//!
//! Every part is optional. If one is missing or does not start, the chain is left out, and the
//! reason quotes the output of that part.

use super::bed::DiskAddress;
use crate::process::{Process, TIME_LIMIT};
use crate::quote::quote;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BACK: &str = "iqn.2026-11.example.sanloom:stock-back";
const FRONT: &str = "iqn.2026-11.example.sanloom:stock-chain";
const DISK_BYTES: u64 = 96 << 20;
/// Part of the message of `tgtadm` if no `tgtd` accepts its connection.
const NO_DAEMON: &str = "tgt daemon";
/// Device of FUSE.
const FUSE: &str = "/dev/fuse";

/// Negotiated parameters of our own targets.
const AGREED: [(&str, &str); 6] = [
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxRecvDataSegmentLength", "262144"),
    ("FirstBurstLength", "262144"),
    ("MaxBurstLength", "1048576"),
    ("MaxOutstandingR2T", "8"),
];

/// Programs of the chain, and their Debian packages.
const PROGRAMS: [(&str, &str); 3] = [
    ("tgtd", "package tgt"),
    ("tgtadm", "package tgt"),
    ("qemu-storage-daemon", "packages qemu-system-common and qemu-block-extra"),
];

/// The chain, which ends when it is dropped.
pub(super) struct Chain {
    /// Portal of the front target. The counted processes are the front `tgtd` and the daemon behind
    /// it.
    pub(super) disk_address: DiskAddress,
    folder: PathBuf,
    front: Option<Process>,
    middle: Option<Process>,
    _back: Process,
}

/// Returns the reason if `tgtd` cannot run on this machine.
pub(super) fn no_target() -> Option<String> {
    lacks(&PROGRAMS[..2])
}

/// Returns the reason if the chain cannot run on this machine, as far as programs and devices show.
fn missing() -> Option<String> {
    lacks(&PROGRAMS).or_else(|| (!Path::new(FUSE).exists()).then(|| format!("there is no {FUSE}")))
}

fn lacks(programs: &[(&str, &str)]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| {
        let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        folders.any(|folder| folder.join(program).is_file())
    };
    if let Some((program, package)) = programs.iter().find(|(program, _)| !there(program)) {
        return Some(format!("{program} is not installed (Debian {package})"));
    }
    (!rustix::process::geteuid().is_root()).then(|| "tgtd requires root".to_owned())
}

fn daemon(program: &str) -> Command {
    let mut command = Command::new(program);
    // Debian installs tgtd into a folder that is not in the PATH of every user.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

impl Chain {
    /// Starts the chain with its files in a folder of this folder.
    ///
    /// # Errors
    /// The reason, if a part is missing or does not start.
    pub(super) fn start(folder: &Path, front: SocketAddr, back: SocketAddr) -> Result<Chain, String> {
        if let Some(reason) = missing() {
            return Err(reason);
        }
        let folder = folder.join("stock");
        let (data, file) = (folder.join("data"), folder.join("disk"));
        let made = fs::create_dir_all(&folder)
            .and_then(|()| File::create(&data))
            .and_then(|data| data.set_len(DISK_BYTES))
            .and_then(|()| File::create(&file));
        made.map_err(|error| format!("cannot create a disk in {}: {error}", folder.display()))?;
        let mut chain = Chain {
            disk_address: DiskAddress { portal: front, target: FRONT.to_owned(), lun: 1, pids: Vec::new() },
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
        let middle = chain.middle.insert(Process::start(middle, "qemu-storage-daemon", &chain.folder)?);
        chain.disk_address.pids.push(middle.id());
        middle.wait_until("it exported the disk through FUSE", || {
            fs::metadata(&file).is_ok_and(|file| file.len() == DISK_BYTES)
        })?;
        let front = target(&chain.folder.join("front"), front, FRONT, &file, &["--bsoflags", "direct"])?;
        chain.disk_address.pids.push(chain.front.insert(front).id());
        Ok(chain)
    }
}

impl Drop for Chain {
    /// Ends the front first, so that it does not write to a file that is gone.
    fn drop(&mut self) {
        self.front = None;
        if let Some(mut middle) = self.middle.take() {
            // The daemon unmounts its file only if it is asked to end.
            let terminated = rustix::process::kill_process(
                rustix::process::Pid::from_child(&middle.child),
                rustix::process::Signal::TERM,
            );
            let begun = Instant::now();
            while terminated.is_ok() && begun.elapsed() < TIME_LIMIT && matches!(middle.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(20));
            }
            drop(middle);
            if fs::metadata(self.folder.join("disk")).is_err() {
                let _ = daemon("umount").arg("-l").arg(self.folder.join("disk")).status();
            }
        }
    }
}

/// Starts a `tgtd` with one disk, LUN 1, that accepts logins when this function returns.
///
/// # Errors
/// The reason, if `tgtd` or `tgtadm` fails.
pub(super) fn target(
    socket: &Path,
    portal: SocketAddr,
    name: &str,
    disk: &Path,
    options: &[&str],
) -> Result<Process, String> {
    let mut command = daemon("tgtd");
    command.args(["-f", "--iscsi", &format!("portal={portal}")]).env("TGT_IPC_SOCKET", socket);
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let label = socket.file_name().unwrap_or_default().to_string_lossy();
    let mut process = Process::start(command, &format!("tgtd ({label})"), folder)?;
    let mut step = |arguments: &[&str]| {
        let mut command = daemon("tgtadm");
        command.args(["--lld", "iscsi", "--tid", "1", "--mode"]).args(arguments).env("TGT_IPC_SOCKET", socket);
        let step = format!("tgtadm --mode {}", arguments[..3].join(" "));
        process.wait_for(&format!("{step} succeeded"), || {
            let output = command.output().map_err(|error| format!("tgtadm cannot be started: {error}"))?;
            match output.status.success() {
                true => Ok(true),
                // The daemon does not accept connections yet; every other failure is final.
                false if String::from_utf8_lossy(&output.stderr).contains(NO_DAEMON) => Ok(false),
                false => Err(format!("{step} failed ({}){}", output.status, quote("it", &output.stderr))),
            }
        })
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
