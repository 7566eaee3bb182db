//! tgt as storage: a target with one LUN for each size.

use crate::bed::{Bed, free_port};
use crate::started::Process;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TARGET: &str = "iqn.2026-11.net.example:tgt";

/// Runs until it is dropped.
pub struct Tgt {
    pub portal: String,
    luns: usize,
    _daemon: Process,
}

/// Starts tgt with LUNs in files, from LUN 1 on.
pub fn start(bed: &Bed, sizes: &[u64]) -> Tgt {
    start_with(bed, sizes, &[])
}

/// The same, with more to be set of the target.
pub fn start_with(bed: &Bed, sizes: &[u64], more: &[&str]) -> Tgt {
    let (portal, socket) = (free_port(), bed.path("tgtd"));
    let mut command = Command::new("tgtd");
    command.args(["-f", "--iscsi", &format!("portal={portal}")]).env("TGT_IPC_SOCKET", &socket);
    let daemon = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut steps = vec![format!("--op new --mode target --tid 1 -T {TARGET}")];
    for (lun, size) in (1..).zip(sizes) {
        let file = bed.path(&format!("tgt{lun}.img"));
        fs::File::create(&file).unwrap().set_len(*size).unwrap();
        steps.push(format!("--op new --mode logicalunit --tid 1 --lun {lun} -b {file}"));
    }
    steps.push("--op bind --mode target --tid 1 -I ALL".to_owned());
    steps.extend(more.iter().map(|step| format!("--op update --mode target --tid 1 {step}")));
    let until = Instant::now() + Duration::from_secs(10);
    for step in steps {
        loop {
            let mut command = Command::new("tgtadm");
            command.args(["--lld", "iscsi"]).args(step.split_whitespace()).env("TGT_IPC_SOCKET", &socket);
            let output = command.output().unwrap();
            if output.status.success() {
                break;
            }
            assert!(Instant::now() < until, "{step}: {}", String::from_utf8_lossy(&output.stderr));
            thread::sleep(Duration::from_millis(100));
        }
    }
    Tgt { portal, luns: sizes.len(), _daemon: daemon }
}

impl Tgt {
    /// Its LUNs as back ends of a pool.
    pub fn back_ends(&self, pool: &str) -> String {
        self.back_ends_with(pool, "")
    }

    /// The same, with more keys.
    pub fn back_ends_with(&self, pool: &str, keys: &str) -> String {
        let one = |lun| {
            format!(
                "[back_end.tgt{lun}]\npool = \"{pool}\"\ntarget = \"{TARGET}\"\nportals = \"{}\"\nlun = {lun}\n{keys}",
                self.portal
            )
        };
        (1..=self.luns).map(one).collect()
    }
}
