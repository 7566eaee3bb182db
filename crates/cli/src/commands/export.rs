//! `sanloom export zones`: the zones of a lab as commands for real switches.

use clap::Subcommand;
use sanloom_console::exit::Failure;
use sanloom_console::input::LabFile;
use sanloom_console::outputs::{Sets, is_stdout};
use sanloom_console::report::file;
use sanloom_console::{interrupt, output};
use sanloom_fc::config::MergeRules;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::{ObjectKind, ZoneDatabase};
use sanloom_lab::export::{self, Dialect, ExportNames, Inexpressible, SwitchZones};
use sanloom_lab::import::ALL_FABRICS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Options of `sanloom export`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Write the commands that bring the zones of a lab onto real switches, and those that undo it
    #[command(
        after_help = "Without --from the commands build the zones on switches that have none. Fabric OS asks before \
                      it saves or enables; a line `y` behind the command is the answer.\n\nExample:\n  sanloom export zones planned.toml --from imported.toml --format \
                      fos -o change.txt"
    )]
    Zones(Zones),
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Fabric OS
    Fos,
    /// NX-OS
    Nxos,
}

#[derive(clap::Args, Debug)]
struct Zones {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// Commands of this operating system
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Format,
    /// Lab with the present zones of the switches, usually an imported one [default: the switches
    /// have no zones]
    #[arg(long, value_name = "LAB")]
    from: Option<PathBuf>,
    /// Export only this configuration, its zones and their aliases, and enable it [default: all]
    #[arg(long, value_name = "NAME")]
    config: Option<String>,
    /// VSAN of the zones, for NX-OS [default: the only virtual fabric of the zones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4093))]
    vsan: Option<u16>,
    /// Virtual fabric of the zones, for Fabric OS [default: the only virtual fabric of the zones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128))]
    fid: Option<u16>,
    /// Write the commands to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the commands that undo the change to this file [default: beside `--output`, with
    /// `.undo` in its name]
    #[arg(long, value_name = "FILE")]
    undo: Option<PathBuf>,
    /// Replace the files of `--output` and `--undo` if they exist
    #[arg(long)]
    force: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// When a lab is invalid, the switches cannot have its zones, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let What::Zones(args) = &args.what;
    let outputs = [("--output", args.output.as_deref()), ("--undo", args.undo.as_deref())];
    output::one_stdout(&outputs)?;
    if is_stdout(args.undo.as_deref()) && args.output.is_none() {
        return Err(Failure::usage("the commands and those that undo them would be mixed; name a file with --output"));
    }
    let beside = args.output.as_deref().filter(|path| !is_stdout(Some(path))).map(undo_name);
    let undo = args.undo.clone().or(beside);
    output::replaceable(args.output.as_deref(), args.force)?;
    output::replaceable(undo.as_deref(), args.force)?;
    let after = lab(&args.file, &args.sets.set)?;
    let before = match &args.from {
        Some(path) => Some(lab(&LabFile { path: path.clone() }, &[])?),
        None => None,
    };
    let labs: Vec<&Loaded> = std::iter::once(&after).chain(&before).collect();
    let (dialect, fabric) = dialect(args, &labs)?;
    let new = part(args, fabric, &after, None)?;
    let (old, new) = match &before {
        Some(lab) => {
            let old = part(args, fabric, lab, Some(&new))?;
            let whole = [lab, &after].map(|lab| whole(fabric, &lab.lab));
            (export::with_shared(&old, &whole[0], &new), export::with_shared(&new, &whole[1], &old))
        }
        None => (dialect.fresh(&new), new),
    };
    let refused = |problems: Vec<Inexpressible>| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    };
    let new = export::on_switches(dialect, &new, &after.export_names).map_err(refused)?;
    let old = match &before {
        Some(lab) => export::on_switches(dialect, &old, &lab.export_names).map_err(refused)?,
        None => SwitchZones { database: old, is_undefined: false },
    };
    let script = export::script(dialect, &old, &new).map_err(refused)?;
    script.notes.iter().for_each(|note| output::note(note));
    if script.commands.is_empty() {
        output::note("the zones are the same; there is nothing to do");
    }
    match &args.output {
        Some(path) if !is_stdout(Some(path)) => output::written(file::write_text(path, &script.commands))?,
        _ => output::print(&script.commands)?,
    }
    match undo {
        Some(path) if is_stdout(Some(&path)) => output::print(&script.undo),
        Some(path) => output::written(file::write_text(&path, &script.undo)),
        None => {
            output::note("--undo FILE writes the commands that undo the change");
            Ok(())
        }
    }
}

/// A lab with the path of its file.
struct Loaded {
    path: String,
    lab: Lab,
    export_names: ExportNames,
}

/// Loads a lab. Warnings about its design have no effect on its zones.
fn lab(file: &LabFile, sets: &[sanloom_lab::Override]) -> Result<Loaded, Failure> {
    let path = file.label();
    let text = file.text()?;
    let loaded = interrupt::interruptible(|| sanloom_lab::load_to_explain(&path, &text, sets))?;
    Ok(Loaded { path, lab: loaded.lab, export_names: loaded.export_names })
}

/// Returns `change.undo.txt` for `change.txt`.
fn undo_name(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".undo");
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// Virtual fabrics of the zones that the commands are about.
fn fabrics(args: &Zones, labs: &[&Loaded]) -> BTreeSet<u16> {
    let is_exported = |lab: &Lab, zone: &String| {
        let config = args.config.as_ref().and_then(|config| lab.zone_database.defined.configs.get(config));
        args.config.is_none() || config.is_some_and(|zones| zones.contains(zone))
    };
    let of = |loaded: &&Loaded| {
        let own = loaded.lab.zone_fabrics.iter().filter(|(zone, _)| is_exported(&loaded.lab, zone));
        own.map(|(_, fabric)| *fabric).collect::<Vec<_>>()
    };
    labs.iter().flat_map(of).collect()
}

/// Refuses a virtual fabric that the labs do not have: its zones would be none.
fn known(fabric: u16, option: &str, labs: &[&Loaded]) -> Result<(), Failure> {
    let of = |loaded: &&Loaded| {
        let switches = (0..loaded.lab.switches.len() as u16).filter_map(|switch| loaded.lab.vf_id(switch));
        switches.chain(loaded.lab.zone_fabrics.values().copied()).collect::<Vec<u16>>()
    };
    let fabrics: BTreeSet<u16> = labs.iter().flat_map(of).collect();
    if fabrics.is_empty() || fabrics.contains(&fabric) {
        return Ok(());
    }
    let listed: Vec<String> = fabrics.iter().map(ToString::to_string).collect();
    Err(Failure::usage(format!("the lab has no virtual fabric {fabric}; choose with {option}: {}", listed.join(", "))))
}

/// The dialect of the commands, and the virtual fabric of their zones.
fn dialect(args: &Zones, labs: &[&Loaded]) -> Result<(Dialect, Option<u16>), Failure> {
    let fabrics = fabrics(args, labs);
    let only = fabrics.first().copied().filter(|_| fabrics.len() == 1);
    let listed = || fabrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let choose = |option| {
        Failure::usage(format!("the zones are in several virtual fabrics; choose with {option}: {}", listed()))
    };
    match (args.format, args.vsan, args.fid) {
        (Format::Fos, Some(_), _) => {
            return Err(Failure::usage("--vsan belongs to --format nxos; Fabric OS has --fid"));
        }
        (Format::Nxos, _, Some(_)) => return Err(Failure::usage("--fid belongs to --format fos; NX-OS has --vsan")),
        (Format::Fos, None, Some(fid)) => known(fid, "--fid", labs)?,
        (Format::Nxos, Some(vsan), None) => known(vsan, "--vsan", labs)?,
        (Format::Fos | Format::Nxos, None, None) => {}
    }
    if args.format == Format::Fos {
        return match args.fid.or(only) {
            None if fabrics.len() > 1 => Err(choose("--fid")),
            fabric => Ok((Dialect::FabricOs, fabric)),
        };
    }
    let Some(vsan) = args.vsan.or(only) else {
        return Err(match fabrics.is_empty() {
            true => Failure::usage("the zones have no virtual fabric; name their VSAN with --vsan"),
            false => choose("--vsan"),
        });
    };
    let is_enhanced = labs[0].lab.zone_policy.merge_rules == MergeRules::ENHANCED;
    Ok((Dialect::NxOs { vsan, is_enhanced }, Some(vsan)))
}

/// All zones of a lab in a virtual fabric.
fn whole(fabric: Option<u16>, lab: &Lab) -> ZoneDatabase {
    match fabric {
        Some(fabric) => export::of_virtual_fabric(&lab.zone_database, &lab.zone_fabrics, fabric),
        None => lab.zone_database.clone(),
    }
}

/// The part of the zones of a lab that the commands are about. `new`: that part of the lab that the
/// commands lead to, if `lab` is the one that they begin with.
fn part(args: &Zones, fabric: Option<u16>, lab: &Loaded, new: Option<&ZoneDatabase>) -> Result<ZoneDatabase, Failure> {
    let Loaded { path, lab, export_names } = lab;
    let database = whole(fabric, lab);
    let real = |config: &String| {
        let key = (ObjectKind::Config, config.clone());
        let is_undefined = export_names.only_in_force.contains(&key);
        export_names.names.get(&key).filter(|real| is_undefined && database.defined.configs.contains_key(*real))
    };
    if let Some(real) = args.config.as_ref().and_then(real) {
        let config = args.config.as_deref().unwrap_or_default();
        return Err(Failure::usage(format_args!(
            "`{config}` stands for the zones in force of `{real}`, and is no configuration of the switches; name \
             `{real}` with --config"
        )));
    }
    let configs: Vec<&str> = database.defined.configs.keys().map(String::as_str).collect();
    if let Some(config) = &args.config {
        if let Some(new) = new {
            let zones = new.defined.configs.get(config).cloned().unwrap_or_default();
            let enabled = export::in_force(lab, &database, config, &zones)
                .map_err(|problem| Failure::usage(format!("{path}: {problem}")))?;
            return Ok(export::only_config(&database, config, enabled.as_deref()));
        }
        if !configs.contains(&config.as_str()) {
            let remedy = sanloom_lab::closest(config, configs.iter().copied());
            let remedy =
                remedy.map_or_else(|| format!("it has {}", configs.join(", ")), |near| format!("did you mean {near}?"));
            return Err(Failure::usage(format_args!(
                "the lab `{}` has no configuration `{config}`; {remedy}",
                lab.name
            )));
        }
        return Ok(export::only_config(&database, config, Some(config)));
    }
    let joined = database.effective.as_ref().is_some_and(|effective| effective.name == ALL_FABRICS);
    if joined {
        let own: Vec<&str> = configs.into_iter().filter(|name| *name != ALL_FABRICS).collect();
        return Err(Failure::usage(format_args!(
            "`{}` joins the zones of several fabrics; choose the configuration of one with --config: {}",
            ALL_FABRICS,
            own.join(", ")
        )));
    }
    Ok(database)
}
