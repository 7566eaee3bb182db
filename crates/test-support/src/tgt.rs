//! The iSCSI target tgt as a process of its own.

use crate::ports::free_port;
use crate::started::Process;
use crate::wait;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running tgtd, which ends on drop.
pub struct Tgtd {
    /// Address at which it listens.
    pub portal: String,
    socket: PathBuf,
    _process: Process,
}

impl Tgtd {
    /// Starts tgtd at a free port. Its control socket is in `folder`.
    pub fn start(folder: &Path) -> Tgtd {
        let (portal, socket) = (free_port(), folder.join("tgtd"));
        let mut command = Command::new("tgtd");
        command.args(["-f", "--iscsi", &format!("portal={portal}")]).env("TGT_IPC_SOCKET", &socket);
        let process = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        Tgtd { portal, socket, _process: process }
    }

    /// Runs tgtadm until tgtd accepts the command: it needs a moment to start.
    pub fn admin(&self, arguments: &[&str]) {
        let mut command = Command::new("tgtadm");
        command.args(["--lld", "iscsi"]).args(arguments).env("TGT_IPC_SOCKET", &self.socket);
        wait::until(|| format!("tgtadm {arguments:?}"), || command.output().unwrap().status.success());
    }
}
