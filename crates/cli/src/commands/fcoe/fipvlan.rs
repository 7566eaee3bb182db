//! `fipvlan`: discovery of the VLANs that carry FCoE, by port (the Open-FCoE slides).

use super::{RunFolder, print_json};
use sanloom_console::endpoint::PortName;
use sanloom_console::exit::{self, Failure};
use sanloom_console::output;
use sanloom_live::initiator::{FoundVlan, discover_vlans};
use sanloom_live::ports::EthernetPort;
use sanloom_live::sys::interface::{add_vlan, index_of};
use sanloom_wire::ether::MacAddr;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};

/// Help text of the Open-FCoE slides, followed by the additional options.
const HELP: &str = "Usage: fipvlan [ options ] [ network interfaces ]
Options:
-a, --auto           Auto select Ethernet interfaces
-c, --create         Create system VLAN devices
-s, --start          Start FCoE login automatically
-h, --help           Display this help and exit
-v, --version        Display version information

{all-args}{after-help}";

/// Options of `fipvlan`.
#[derive(clap::Args, Debug)]
#[command(version, disable_version_flag = true, help_template = HELP)]
pub struct Args {
    /// Auto select Ethernet interfaces: every one that is up
    #[arg(short, long)]
    auto: bool,
    /// Create system VLAN devices, as eth2.152-fcoe
    #[arg(short, long)]
    create: bool,
    /// Start FCoE login automatically: a host on each VLAN that is found
    #[arg(short, long)]
    start: bool,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunFolder,
    /// Source address of the requests [default: the interface's own]
    #[arg(long, value_name = "MAC")]
    mac: Option<MacAddr>,
    /// Display version information
    #[arg(short, long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// Network interfaces, or ports as `sanloom initiator --port` names them
    #[arg(value_name = "INTERFACE", required_unless_present = "auto", value_parser = PortName::parse)]
    interfaces: Vec<PortName>,
}

/// Discovers VLANs and prints the table.
///
/// # Errors
/// When a port cannot be opened, or a host cannot be started.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut ports = args.interfaces.clone();
    if args.auto {
        ports.extend(ethernet_interfaces().into_iter().map(PortName::Interface));
    }
    let mut opened = Vec::new();
    for name in &ports {
        let mac = args.mac.or_else(|| name.mac());
        let mac =
            mac.ok_or_else(|| Failure::usage(format_args!("{name} has no Ethernet address; give one with --mac")))?;
        match name.open() {
            Ok(port) => opened.push((name, mac, port)),
            // A port found by `--auto` that we cannot use is skipped.
            Err(error) if !args.interfaces.contains(name) => output::note(&format!("{name} is left out: {error}")),
            Err(error) => return Err(Failure::environment(error)),
        }
    }
    // In parallel, because a port without a forwarder takes seconds.
    let answers: Vec<_> = thread::scope(|scope| {
        let ask = |(name, mac, mut port): (_, MacAddr, EthernetPort)| {
            (name, mac, scope.spawn(move || discover_vlans(&mut port, mac)))
        };
        let asked: Vec<_> = opened.into_iter().map(ask).collect();
        let answer = |asked: ScopedJoinHandle<'_, _>| asked.join().unwrap_or_else(|panic| resume_unwind(panic));
        asked.into_iter().map(|(name, mac, asked)| (name, mac, answer(asked))).collect()
    });
    let mut rows = Vec::new();
    for (name, mac, found) in answers {
        let found = found.map_err(|error| Failure::environment(format_args!("cannot wait for {name}: {error}")))?;
        rows.extend(found.into_iter().map(|found| (name, mac, found)));
    }
    if rows.is_empty() {
        let message = "No Fibre Channel Forwarders Found".to_owned();
        return Err(Failure { code: exit::PROTOCOL, message, coloured: None });
    }
    match args.json {
        true => print_json(&rows.iter().map(Row::of).collect::<Vec<_>>())?,
        false => output::print(&table(&rows))?,
    }
    // Several forwarders may report the same VLAN.
    let mut done = BTreeSet::new();
    for (name, mac, found) in rows {
        if !done.insert((name.to_string(), found.vlan)) {
            continue;
        }
        let device = match name {
            PortName::Interface(parent) if args.create && found.vlan != 0 => Some(create(parent, found.vlan)?),
            _ if args.create && found.vlan != 0 => {
                return Err(Failure::usage(format_args!(
                    "{name} is not a network interface, so it has no VLAN devices"
                )));
            }
            _ => None,
        };
        if args.start {
            let instance = instance_name(&name.to_string(), found.vlan);
            // The VLAN device adds the tag to its frames.
            let (port, vlan) = match device {
                Some(device) => (device, 0),
                None => (name.to_string(), found.vlan),
            };
            start(&args.run, &instance, name, &port, mac, vlan)?;
        }
    }
    Ok(())
}

/// Returns the name of an instance in a VLAN, which is also the name of its sockets.
pub(super) fn instance_name(interface: &str, vlan: u16) -> String {
    format!("{interface}.{vlan}-fcoe").replace(['/', ':', ','], "_")
}

/// Creates a VLAN device and brings it up. An existing device is kept.
fn create(parent: &str, vlan: u16) -> Result<String, Failure> {
    let device = format!("{parent}.{vlan}-fcoe");
    if index_of(&device).is_err() {
        add_vlan(parent, &device, vlan)
            .map_err(|error| Failure::environment(format_args!("cannot create the VLAN device {device}: {error}")))?;
        output::print(&format!("Created VLAN device {device}\n"))?;
    }
    Ok(device)
}

/// A row of the table.
#[derive(serde::Serialize)]
struct Row {
    interface: String,
    vlan: u16,
    fcf: String,
}

impl Row {
    fn of((name, _, FoundVlan { vlan, fcf }): &(&PortName, MacAddr, FoundVlan)) -> Row {
        Row { interface: name.to_string(), vlan: *vlan, fcf: fcf.to_string() }
    }
}

/// Formats the table in the layout of the Open-FCoE slides.
fn table(rows: &[(&PortName, MacAddr, FoundVlan)]) -> String {
    let mut text = String::from("Fibre Channel Forwarders Discovered\ninterface       | VLAN | FCF MAC          \n");
    text += &"-".repeat(42);
    text.push('\n');
    for (name, _, FoundVlan { vlan, fcf }) in rows {
        let _ = writeln!(text, "{:<15} | {vlan:<4} | {fcf}", name.to_string());
    }
    text
}

/// Starts a host as a separate process, which continues after this command.
fn start(run: &RunFolder, instance: &str, on: &PortName, port: &str, mac: MacAddr, vlan: u16) -> Result<(), Failure> {
    run.make()?;
    let cannot = |error| Failure::environment(format_args!("cannot start {instance}: {error}"));
    let vlan = if vlan == 0 { "none".to_owned() } else { vlan.to_string() };
    let name = on.to_string();
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(["initiator", "--port", port, "--name", &name, "--mac", &mac.to_string(), "--vlan", &vlan]);
    command.arg("--nbd").arg(run.nbd(instance)).arg("--control").arg(run.control(instance));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().map_err(cannot)?;
    output::print(&format!("Starting FCoE on interface {instance} (process {})\n", child.id()))
}

/// Returns the names of the Ethernet interfaces that are up, without loopback and VLAN devices.
pub(super) fn ethernet_interfaces() -> Vec<String> {
    const ETHERNET: &str = "1";
    let folder = std::path::Path::new("/sys/class/net");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let read = |name: &str, file: &str| std::fs::read_to_string(folder.join(name).join(file)).unwrap_or_default();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| read(name, "type").trim() == ETHERNET && read(name, "operstate").trim() == "up")
        .filter(|name| !read(name, "uevent").contains("DEVTYPE=vlan"))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_of_the_document() {
        let eth2 = PortName::Interface("eth2".into());
        let fcf = MacAddr([0x00, 0x0d, 0xec, 0x6d, 0x8f, 0x00]);
        let text = table(&[(&eth2, MacAddr::ZERO, FoundVlan { vlan: 152, fcf })]);
        assert_eq!(
            text,
            "Fibre Channel Forwarders Discovered\n\
             interface       | VLAN | FCF MAC          \n\
             ------------------------------------------\n\
             eth2            | 152  | 00:0d:ec:6d:8f:00\n"
        );
    }
}
