//! `fcoeadm`: FCoE instances, their targets, units and statistics, in the layout of the Open-FCoE
//! slides.

use super::{MONITOR, RunFolder, ask, print_json, wwn};
use clap::ArgGroup;
use sanloom_api::control::{Answer, Request};
use sanloom_api::fcoe::{FcoeAnswer, FcoeRequest, Instance, PathState, Port, Statistics, Target, Unit};
use sanloom_console::exit::Failure;
use sanloom_console::quantity;
use sanloom_console::{interrupt, output};
use sanloom_live::control;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Help text of the Open-FCoE slides, followed by a description of each option.
const HELP: &str = concat!(
    "Version ",
    env!("CARGO_PKG_VERSION"),
    "
Usage: fcoeadm
      [-c|--create] <ethX>
      [-d|--destroy] <ethX>
      [-r|--reset] <ethX>
      [-S|--Scan] <ethX>
      [-i|--interface] [<ethX>]
      [-t|--target] [<ethX>]
      [-l|--lun] [<ethX>]
      [-s|--stats] <ethX> [<interval>]
      [-v|--version]
      [-h|--help]

{all-args}{after-help}"
);

/// Options of `fcoeadm`.
#[derive(clap::Args, Debug)]
#[command(version, disable_version_flag = true, help_template = HELP, group(ArgGroup::new("operation").required(true)))]
pub struct Args {
    /// Begin an instance on an interface
    #[arg(short, long, value_name = "ethX", group = "operation")]
    create: Option<String>,
    /// End the instance on an interface
    #[arg(short, long, value_name = "ethX", group = "operation")]
    destroy: Option<String>,
    /// Reset the instance on an interface, so that it logs in again
    #[arg(short, long, value_name = "ethX", group = "operation")]
    reset: Option<String>,
    /// Discover new targets and units
    #[arg(short = 'S', long = "Scan", value_name = "ethX", group = "operation")]
    scan: Option<String>,
    /// Show the instance on an interface, or all
    #[arg(short, long, value_name = "ethX", num_args = 0..=1, default_missing_value = "", group = "operation")]
    interface: Option<String>,
    /// Show the targets of an instance, or of all instances
    #[arg(short, long, value_name = "ethX", num_args = 0..=1, default_missing_value = "", group = "operation")]
    target: Option<String>,
    /// Show the units of the targets in detail
    #[arg(short, long, value_name = "ethX", num_args = 0..=1, default_missing_value = "", group = "operation")]
    lun: Option<String>,
    /// Show statistics, a line every INTERVAL seconds
    #[arg(short, long, value_names = ["ethX", "INTERVAL"], num_args = 1..=2, group = "operation")]
    stats: Option<Vec<String>>,
    /// Display version information
    #[arg(short, long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// Mode of the instance: `fabric` or `vn2vn`
    #[arg(short, long, value_name = "MODE", value_parser = ["fabric", "vn2vn"], default_value = "fabric")]
    mode: String,
    /// Number of lines of statistics [default: until Ctrl-C]
    #[arg(long, value_name = "LINES", requires = "stats", value_parser = quantity::count::<u64>(0..=u64::MAX))]
    count: Option<u64>,
    /// Print the complete state of the instances as JSON, regardless of the requested list
    #[arg(long, conflicts_with_all = ["create", "destroy", "reset", "scan"])]
    json: bool,
    #[command(flatten)]
    run: RunFolder,
}

/// Performs the requested operation.
///
/// # Errors
/// When no instance answers, or it rejects the request.
pub fn run(args: &Args) -> Result<(), Failure> {
    let monitor = |request| {
        let path = args.run.control(MONITOR);
        ask(&path, request).map_err(|failure| match path.exists() {
            true => failure,
            false => Failure::environment(format_args!("could not connect to fcoemon ({})", path.display())),
        })
    };
    if let Some(interface) = args.create.clone() {
        return monitor(FcoeRequest::Create { interface, vn2vn: args.mode == "vn2vn" }).map(drop);
    }
    if let Some(interface) = args.destroy.clone() {
        return monitor(FcoeRequest::Destroy { interface: interface.clone() })
            .map(drop)
            .or_else(|failure| stop(args, &interface, failure));
    }
    if let Some(interface) = args.reset.clone() {
        // Also resets instances that the monitor did not start.
        let (path, _) = args.run.instance(&interface)?;
        return ask(&path, FcoeRequest::Reset).map(drop);
    }
    if let Some(interface) = &args.scan {
        let (path, _) = args.run.instance(interface)?;
        return ask(&path, FcoeRequest::Scan).map(drop);
    }
    if let Some(stats) = &args.stats {
        return statistics(args, stats);
    }
    type Table = fn(&Instance, usize) -> String;
    let tables: [(&Option<String>, Table); 3] =
        [(&args.interface, interface), (&args.target, targets), (&args.lun, luns)];
    for (on, table) in tables {
        if let Some(on) = on {
            let found = args.run.instances_on(on)?;
            if args.json {
                let instances: Vec<&Instance> = found.iter().map(|(_, instance)| instance).collect();
                return print_json(&instances);
            }
            let text: String =
                found.iter().enumerate().map(|(number, (_, instance))| table(instance, number)).collect();
            let paths: String = match args.lun.is_some() {
                true => found.iter().map(|(_, instance)| paths(instance)).collect(),
                false => String::new(),
            };
            return output::print(&(text + &paths));
        }
    }
    Ok(())
}

/// Stops an instance that the monitor did not start.
fn stop(args: &Args, interface: &str, failure: Failure) -> Result<(), Failure> {
    let Ok((path, _)) = args.run.instance(interface) else { return Err(failure) };
    match control::ask(&path, &Request::Stop) {
        Ok(Answer::Done) => Ok(()),
        _ => Err(failure),
    }
}

/// Formats the Ethernet port and its FC ports. For a port without hardware, its driver is shown
/// instead.
fn interface(instance: &Instance, number: usize) -> String {
    let mut text = String::new();
    let serial = instance.mac.replace(':', "").to_uppercase();
    let driver = driver_of(&instance.interface).unwrap_or_else(|| "sanloom".to_owned());
    let _ = writeln!(text, "    Description:      Ethernet port {}", instance.interface);
    let _ = writeln!(text, "    Revision:         {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "    Manufacturer:     sanloom");
    let _ = writeln!(text, "    Serial Number:    {serial}");
    let _ = writeln!(text, "    Driver:           {driver} {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "    Number of Ports:  {}\n", instance.ports.len());
    for (index, port) in instance.ports.iter().enumerate() {
        let fabric = instance.fcf.as_ref().map_or(0, |fcf| fcf.fabric_name);
        let _ = writeln!(text, "        Symbolic Name:     {} over {}", port.symbolic_name, instance.name);
        let _ = writeln!(text, "        OS Device Name:    {}", host_name(number, index));
        let _ = writeln!(text, "        Node Name:         {}", wwn(port.node_name));
        let _ = writeln!(text, "        Port Name:         {}", wwn(port.port_name));
        let _ = writeln!(text, "        FabricName:        {}", wwn(fabric));
        let _ = writeln!(text, "        Speed:             {}", speed_of(instance.speed_mbit_per_s));
        let _ = writeln!(text, "        Supported Speed:   {}", speed_of(instance.speed_mbit_per_s));
        let _ = writeln!(text, "        MaxFrameSize:      {}", port.max_frame_bytes);
        let _ = writeln!(text, "        FC-ID (Port ID):   {}", id(port.port_id));
        let _ = writeln!(text, "        State:             {}\n", state(instance, port));
    }
    text
}

fn state(instance: &Instance, port: &Port) -> &'static str {
    match (instance.link, port.port_id) {
        (_, Some(_)) => "Online",
        (true, None) => "Offline",
        (false, None) => "Linkdown",
    }
}

fn id(port_id: Option<u32>) -> String {
    port_id.map_or_else(|| "Unknown".to_owned(), |id| format!("0x{id:06X}"))
}

/// Hosts are numbered in the order of the instances.
fn host_name(number: usize, index: usize) -> String {
    match index {
        0 => format!("host{number}"),
        _ => format!("host{number}.{index}"),
    }
}

fn driver_of(interface: &str) -> Option<String> {
    let link = std::fs::read_link(Path::new("/sys/class/net").join(interface).join("device/driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

fn speed_of(mbit_per_s: Option<u32>) -> String {
    match mbit_per_s {
        Some(megabits) if megabits >= 1_000 => format!("{} Gbit", megabits / 1_000),
        Some(megabits) => format!("{megabits} Mbit"),
        None => "Unknown".to_owned(),
    }
}

fn targets(instance: &Instance, number: usize) -> String {
    each_target(instance, number, |text, target, _| {
        if target.units.is_empty() {
            return;
        }
        let rule = |width: usize| "-".repeat(width);
        let _ = writeln!(text, "    LUN ID  Device Name   Capacity   Block Size  Description");
        let _ = writeln!(text, "    {}  {}  {}  {}  {}", rule(6), rule(11), rule(10), rule(10), rule(28));
        for unit in &target.units {
            let (size, blocks) = (capacity(unit), unit.block_bytes);
            let _ =
                writeln!(text, "{:>10}  {:<11}  {size:>10}  {blocks:>7}     {}", unit.lun, unit.device, about(unit));
        }
        text.push('\n');
    })
}

fn luns(instance: &Instance, number: usize) -> String {
    each_target(instance, number, |text, target, index| {
        for unit in &target.units {
            let _ = writeln!(text, "    LUN #{} Information:", unit.lun);
            let _ = writeln!(text, "        OS Device Name:     {}", unit.device);
            let _ = writeln!(text, "        Description:        {}", about(unit));
            let own = instance.ports.iter().find(|port| port.targets.contains(target)).and_then(|port| port.port_id);
            let _ = writeln!(text, "        Ethernet Port FCID: {}", id(own));
            let _ = writeln!(text, "        Target FCID:        {}", id(target.port_id));
            let _ = writeln!(text, "        Target ID:          {index}");
            let _ = writeln!(text, "        LUN ID:             {}\n", unit.lun);
            let _ = writeln!(text, "        Capacity:           {}", capacity(unit));
            let _ = writeln!(text, "        Capacity in Blocks: {}", unit.blocks);
            let _ = writeln!(text, "        Block Size:         {} bytes", unit.block_bytes);
            let _ =
                writeln!(text, "        Status:             {}\n", if unit.ready { "Attached" } else { "Detached" });
        }
    })
}

/// Formats the disks with several paths, with the state of each path.
fn paths(instance: &Instance) -> String {
    let mut text = String::new();
    for disk in &instance.disks {
        let _ = writeln!(text, "    Disk {} has {} paths:", disk.device, disk.paths.len());
        for path in &disk.paths {
            let state = match path.state {
                PathState::Active => "active",
                PathState::Enabled => "enabled",
                PathState::Failed => "failed",
            };
            let (from, to) = (wwn(path.host_port), wwn(path.target_port));
            let _ = writeln!(text, "        {from} -> {to} LUN {:<4} {state}", path.lun);
        }
        text.push('\n');
    }
    text
}

fn each_target(instance: &Instance, number: usize, units: impl Fn(&mut String, &Target, usize)) -> String {
    let mut text = String::new();
    for port in &instance.ports {
        for (index, target) in port.targets.iter().enumerate() {
            let _ = writeln!(text, "    Interface:        {}", instance.name);
            let _ = writeln!(text, "    Roles:            FCP Target");
            let _ = writeln!(text, "    Node Name:        {}", wwn(target.node_name));
            let _ = writeln!(text, "    Port Name:        {}", wwn(target.port_name));
            let _ = writeln!(text, "    Target ID:        {index}");
            let _ = writeln!(text, "    MaxFrameSize:     {}", target.max_frame_bytes);
            let _ = writeln!(text, "    OS Device Name:   rport-{number}:0-{index}");
            let _ = writeln!(text, "    FC-ID (Port ID):  {}", id(target.port_id));
            let _ = writeln!(text, "    State:            {}\n", target.port_id.map_or("Not Present", |_| "Online"));
            units(&mut text, target, index);
        }
    }
    text
}

fn about(unit: &Unit) -> String {
    format!("{} {} (rev {})", unit.vendor, unit.product, unit.revision)
}

/// Formats the capacity in binary units (multiples of 1024), as in the document.
fn capacity(unit: &Unit) -> String {
    let mut size = unit.blocks as f64 * f64::from(unit.block_bytes);
    let mut names = ["B", "KB", "MB", "GB", "TB", "PB"].into_iter();
    let mut name = names.next().unwrap_or_default();
    while size >= 1_024.0 {
        let Some(next) = names.next() else { break };
        (size, name) = (size / 1_024.0, next);
    }
    format!("{size:.2} {name}")
}

fn statistics(args: &Args, stats: &[String]) -> Result<(), Failure> {
    let [interface, interval @ ..] = stats else { return Ok(()) };
    let seconds = match interval.first().map(|text| text.parse::<u64>()) {
        None => 1,
        Some(Ok(seconds @ 1..=86_400)) => seconds,
        Some(_) => return Err(Failure::usage("the interval is a whole number of seconds, from 1 on")),
    };
    let (path, instance) = args.run.instance(interface)?;
    if !args.json {
        output::print(&heading(&instance.name, seconds))?;
    }
    for line in 1_u64.. {
        let Some(FcoeAnswer::Instance(instance)) = ask(&path, FcoeRequest::Describe)? else { break };
        match args.json {
            true => print_json(&instance.statistics)?,
            false => output::print(&row(&instance.statistics))?,
        }
        if args.count == Some(line) {
            break;
        }
        if !interrupt::pause(Duration::from_secs(seconds)) {
            break;
        }
    }
    Ok(())
}

/// Width and both heading lines of each column.
const COLUMNS: [(usize, &str, &str); 14] = [
    (7, "", "Seconds"),
    (9, "", "TxFrames"),
    (12, "", "TxBytes"),
    (9, "", "RxFrames"),
    (14, "", "RxBytes"),
    (4, "Err", "Frms"),
    (4, "Inv", "CRC"),
    (4, "IvTx", "Byte"),
    (4, "Link", "Fail"),
    (4, "Cntl", "Reqs"),
    (9, "Input", "Requests"),
    (9, "Input", "MBytes"),
    (9, "Output", "Requests"),
    (9, "Output", "MBytes"),
];

fn heading(name: &str, seconds: u64) -> String {
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = COLUMNS.iter().enumerate().map(|(index, (width, ..))| format!("{:<width$}", cell(index)));
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned() + "\n"
    };
    let upper = line(&|index| COLUMNS[index].1.to_owned());
    let title = format!("{name:<15} interval: {seconds}");
    let upper = format!("{title}{}", upper.get(title.len()..).unwrap_or_default());
    upper + &line(&|index| COLUMNS[index].2.to_owned()) + &line(&|index| "-".repeat(COLUMNS[index].0))
}

fn row(counted: &Statistics) -> String {
    let values = [
        counted.seconds,
        counted.tx_frames,
        counted.tx_bytes,
        counted.rx_frames,
        counted.rx_bytes,
        counted.error_frames,
        counted.invalid_crcs,
        // Always 0, because no line code is simulated whose transmission words could be invalid.
        0,
        counted.link_failures,
        counted.control_requests,
        counted.input_requests,
        counted.input_megabytes,
        counted.output_requests,
        counted.output_megabytes,
    ];
    let cells = values.iter().zip(COLUMNS).map(|(value, (width, ..))| format!("{value:<width$}"));
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target shown in the document.
    fn instance() -> Instance {
        let unit = |lun: u32| Unit {
            lun: lun.to_string(),
            device: format!("/dev/sd{}", char::from(b'b' + lun as u8)),
            vendor: "DGC".into(),
            product: "RAID 5".into(),
            revision: "0430".into(),
            blocks: 16 << 20,
            block_bytes: 512,
            ready: true,
        };
        let target = Target {
            port_name: 0x5006_0162_3b20_2280,
            node_name: 0x5006_0160_bb20_2280,
            port_id: Some(0x2701ef),
            max_frame_bytes: 2048,
            units: (0..2).map(unit).collect(),
        };
        let port = Port {
            symbolic_name: "fcoe v0.1".into(),
            node_name: 0x1000_001b_2190_985a,
            port_name: 0x2000_001b_2190_985a,
            port_id: Some(0x270027),
            vn_mac: Some("0e:fc:00:27:00:27".into()),
            max_frame_bytes: 2112,
            targets: vec![target],
        };
        Instance {
            name: "eth2.152-fcoe".into(),
            interface: "eth2".into(),
            mac: "00:1b:21:90:98:58".into(),
            vlan: Some(152),
            priority: 3,
            vn2vn: false,
            link: true,
            speed_mbit_per_s: None,
            dcbx: None,
            fcf: None,
            nbd: "/run/x".into(),
            ports: vec![port],
            statistics: Statistics::default(),
            others: Vec::new(),
            disks: Vec::new(),
        }
    }

    #[test]
    fn the_layout_is_the_one_of_the_document() {
        insta::assert_snapshot!("interface", interface(&instance(), 4));
        insta::assert_snapshot!("targets", targets(&instance(), 9));
        insta::assert_snapshot!("luns", luns(&instance(), 9));
        insta::assert_snapshot!("statistics", heading("eth3", 3) + &row(&instance().statistics));
    }
}
