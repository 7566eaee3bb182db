//! Live labs of beds, each in a process of this program: [`up`] starts one, [`volume`] queries it.

use crate::process::{Process, TIME_LIMIT, failed, program};
use sanloom_api::view::{Table, View};
use sanloom_api::volume::VolumeRow;
use sanloom_console::exit::Failure;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Returns free TCP ports of the loopback address. All are open at the same time, so that no two
/// are equal.
///
/// # Errors
/// If the system has no free port.
pub(crate) fn free_ports(count: usize) -> Result<Vec<SocketAddr>, Failure> {
    let listeners = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners: Result<Vec<TcpListener>, _> = listeners.collect();
    let ports = listeners.and_then(|all| all.iter().map(TcpListener::local_addr).collect());
    ports.map_err(|error| failed("no TCP port is free", error))
}

/// Returns the target name of a storage system whose lab sets none.
pub(crate) fn iscsi_name(storage: &str) -> String {
    format!("iqn.2026-11.example.sanloom:{storage}")
}

/// Returns the lab file that [`up`] writes.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.toml"))
}

/// Starts a lab with further arguments of `sanloom up`, and waits until it is ready. Its state is
/// in the folder `name`, below `folder`.
///
/// # Errors
/// If a file cannot be written, or the lab is not ready within [`TIME_LIMIT`].
pub(crate) fn up(folder: &Path, name: &str, lab: &str, more: &[&str]) -> Result<Process, Failure> {
    let (file, ready) = (file(folder, name), folder.join(format!("{name}.ready")));
    let lab = format!("[live]\nfolder = {:?}\n{lab}", folder.join(name));
    fs::write(&file, lab).map_err(|error| failed("cannot write a lab", error))?;
    let output = File::create(&ready).map_err(|error| failed("cannot write a file", error))?;
    let mut command = program()?;
    command.arg("up").arg(&file).args(["--ready-fd", "1"]).args(more).stdout(output);
    let mut process = Process::start(command, name, folder).map_err(Failure::environment)?;
    let is_ready = || fs::read_to_string(&ready).is_ok_and(|text| text.starts_with("ready\n"));
    process.wait_until("it was ready", is_ready).map_err(Failure::environment)?;
    Ok(process)
}

/// Returns a volume of a running lab, by the lab's file. `None` if the lab does not have it yet.
///
/// # Errors
/// If this program cannot be started.
pub(crate) fn volume(lab: &Path, volume: &str) -> Result<Option<VolumeRow>, Failure> {
    let output = program()?.args(["volume", "show"]).arg(lab).arg("--json").output();
    let output = output.map_err(|error| failed("cannot start this program", error))?;
    let view: Option<View> = sanloom_api::json::from_slice(&output.stdout).ok();
    Ok(match view.map(|view| view.table) {
        Some(Table::Volumes(table)) => table.volumes.into_iter().find(|row| row.name == volume),
        _ => None,
    })
}

/// Waits until a running lab serves a volume.
///
/// # Errors
/// If the volume is not served within [`TIME_LIMIT`].
pub(crate) fn wait_for_volume(lab: &Path, name: &str) -> Result<(), Failure> {
    let begun = Instant::now();
    while volume(lab, name)?.is_none_or(|volume| volume.served.is_none()) {
        if begun.elapsed() > TIME_LIMIT {
            return Err(Failure::environment(format_args!(
                "the volume `{name}` of {} is not served after {} s",
                lab.display(),
                TIME_LIMIT.as_secs()
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
