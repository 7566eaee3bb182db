//! The tools of the Open-FCoE slides, for hosts in user space. Each tool is a subcommand,
//! and sanloom called by the tool's name runs it directly.
//!
//! | tool | function |
//! |---|---|
//! | [`fcoemon`] | starts and stops instances according to files and to requests of `fcoeadm` |
//! | [`fcoeadm`] | shows instances, their targets, units and statistics; creates, destroys, resets, scans |
//! | [`fipvlan`] | discovers the VLANs that carry FCoE |
//! | [`fcnsq`] | queries the name server |
//! | [`fcping`] | sends ECHO to a port |
//! | [`esxcli`] | two lists in the layout of ESX |
//!
//! An instance `NAME` has two sockets in the [`RunFolder`]: `NAME.ctl` for the tools, and
//! `NAME.sock` of its NBD server.

pub mod esxcli;
pub mod fcnsq;
pub mod fcoeadm;
pub mod fcoemon;
pub mod fcping;
mod files;
pub mod fipvlan;
mod watch;

use sanloom_api::control::{Answer, Request};
use sanloom_api::fcoe::{FcoeAnswer, FcoeRequest, Instance};
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::report::{file, json};
use sanloom_live::control;
use std::path::{Path, PathBuf};

/// Extension of control sockets.
const CONTROL: &str = "ctl";
/// Name of the monitor's control socket.
const MONITOR: &str = "fcoemon";

/// Folder of the sockets of instances.
#[derive(clap::Args, Clone, Debug)]
pub struct RunFolder {
    /// Folder of the sockets of FCoE instances
    #[arg(long = "run-folder", value_name = "FOLDER", default_value = "/run/sanloom-fcoe")]
    folder: PathBuf,
}

impl RunFolder {
    fn control(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{CONTROL}"))
    }

    fn nbd(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sock"))
    }

    fn make(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.folder).map_err(|error| {
            Failure::environment(format_args!("cannot create the folder {}: {error}", self.folder.display()))
        })
    }

    /// Returns the instances that answer, ordered by name, with their control sockets.
    fn instances(&self) -> Vec<(PathBuf, Instance)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_instance = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == CONTROL)
                && path.file_stem().is_some_and(|stem| stem != MONITOR)
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_instance).collect();
        paths.sort();
        let found = paths.into_iter().filter_map(|path| describe(&path).map(|instance| (path, instance)));
        // Further ports of a host have the same socket.
        let each = |(path, mut instance): (PathBuf, Instance)| {
            let others = std::mem::take(&mut instance.others);
            std::iter::once(instance).chain(others).map(move |instance| (path.clone(), instance))
        };
        found.flat_map(each).collect()
    }

    /// Returns the instances whose interface, VLAN device or own name is `interface`; all if it is
    /// empty.
    fn instances_on(&self, interface: &str) -> Result<Vec<(PathBuf, Instance)>, Failure> {
        let mut found = self.instances();
        found.retain(|(path, instance)| {
            let names = [instance.name.as_str(), &instance.interface];
            interface.is_empty()
                || names.contains(&interface)
                || path.file_stem().is_some_and(|stem| stem == interface)
                || instance.name.strip_prefix(interface).is_some_and(|rest| rest.starts_with('.'))
        });
        match (found.is_empty(), interface) {
            (false, _) => Ok(found),
            (true, "") => Err(Failure::environment("no FCoE interfaces created.")),
            (true, name) => Err(Failure::environment(format_args!("no connection created on interface {name}"))),
        }
    }

    /// Returns the only instance on an interface.
    fn instance(&self, interface: &str) -> Result<(PathBuf, Instance), Failure> {
        let mut found = self.instances_on(interface)?;
        Ok(found.remove(0))
    }
}

fn describe(path: &Path) -> Option<Instance> {
    match ask(path, FcoeRequest::Describe) {
        Ok(Some(FcoeAnswer::Instance(instance))) => Some(*instance),
        _ => None,
    }
}

/// Sends a request to an instance or the monitor. Returns `None` if it is done without an answer.
fn ask(path: &Path, request: FcoeRequest) -> Result<Option<FcoeAnswer>, Failure> {
    let answer = control::ask(path, &Request::Fcoe(request))
        .map_err(|error| Failure::environment(format_args!("no process answers at {}: {error}", path.display())))?;
    match answer {
        Answer::Done => Ok(None),
        Answer::Fcoe(answer) => Ok(Some(answer)),
        Answer::Failed(error) => Err(Failure::protocol(error.reason)),
        _ => Err(Failure::environment(format_args!(
            "the process that answers at {} is not an FCoE instance",
            path.display()
        ))),
    }
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    output::written(file::stdout(|out| json::write_value(out, value)))
}

/// Formats a port or node name as fcoeadm does.
fn wwn(name: u64) -> String {
    format!("0x{name:016X}")
}

/// Parses a hexadecimal number, optionally with `0x` or colons.
fn hex(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches("0x").trim_start_matches("0X").replace(':', "");
    u64::from_str_radix(&digits, 16).map_err(|_| format!("`{text}` is not a hexadecimal number"))
}

/// Parses an FC-ID.
fn fc_id(text: &str) -> Result<u32, String> {
    match hex(text)? {
        id @ 0..=0xff_ffff => Ok(id as u32),
        _ => Err(format!("`{text}` exceeds the three bytes of an FC-ID")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help pages of the Open-FCoE slides, without the text that is cut off on the slide. Our
    /// additions follow below.
    #[test]
    fn help_begins_as_that_of_the_document() {
        use clap::CommandFactory;
        let fcoeadm = [
            "Usage: fcoeadm",
            "[-c|--create] <ethX>",
            "[-d|--destroy] <ethX>",
            "[-r|--reset] <ethX>",
            "[-S|--Scan] <ethX>",
            "[-i|--interface] [<ethX>]",
            "[-t|--target] [<ethX>]",
            "[-l|--lun] [<ethX>]",
            "[-s|--stats] <ethX> [<interval>]",
            "[-v|--version]",
            "[-h|--help]",
        ];
        let fipvlan = [
            "Usage: fipvlan [ options ] [ network interfaces ]",
            "Options:",
            "-a, --auto           Auto select Ethernet interfa",
            "-c, --create         Create system VLAN devices",
            "-s, --start          Start FCoE login automatic",
            "-h, --help           Display this help and exit",
            "-v, --version        Display version information",
        ];
        for (tool, lines, skip) in [("fcoeadm", &fcoeadm[..], 1), ("fipvlan", &fipvlan, 0)] {
            let mut command = crate::args::Cli::command();
            let page = command.find_subcommand_mut(tool).unwrap().render_help().to_string();
            assert_eq!(skip == 1, page.starts_with(concat!("Version ", env!("CARGO_PKG_VERSION"), "\n")), "{page}");
            for (line, expected) in page.lines().skip(skip).zip(lines) {
                assert!(line.trim_start().starts_with(expected), "{expected} in {page}");
            }
            assert!(page.contains("--run-folder") && page.contains("--json"), "{page}");
        }
    }

    #[test]
    fn numbers_are_hexadecimal() {
        assert_eq!(fc_id("0xBF0027"), Ok(0xbf0027));
        assert_eq!(fc_id("bf0027"), Ok(0xbf0027));
        assert_eq!(hex("20:00:00:1b:21:90:98:5a"), Ok(0x2000_001b_2190_985a));
        assert!(fc_id("1000000").is_err() && hex("x").is_err());
        assert_eq!(wwn(0x2000_001b_2190_985a), "0x2000001B2190985A");
    }
}
