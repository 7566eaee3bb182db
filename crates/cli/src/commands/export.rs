//! `sanloom export zones`: the zones of a lab as commands for real switches.

use clap::Subcommand;
use sanloom_console::exit::Failure;
use sanloom_console::input::LabFile;
use sanloom_console::output;
use sanloom_console::outputs::{Sets, is_stdout};
use sanloom_console::report::file;
use sanloom_fc::config::MergeRules;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_lab::export::{self, Dialect};
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
                      it saves or enables.\n\nExample:\n  sanloom export zones planned.toml --from imported.toml --format \
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
    /// Write the commands to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the commands that undo the change to this file [default: beside `--output`, with
    /// `.undo` in its name]
    #[arg(long, value_name = "FILE")]
    undo: Option<PathBuf>,
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
    let after = lab(&args.file, &args.sets.set)?;
    let before = match &args.from {
        Some(path) => Some(lab(&LabFile { path: path.clone() }, &[])?),
        None => None,
    };
    let labs: Vec<&Lab> = std::iter::once(&after).chain(&before).collect();
    let dialect = dialect(args, &labs)?;
    let new = part(args, dialect, &after, true)?;
    let old = match &before {
        Some(lab) => part(args, dialect, lab, false)?,
        None => dialect.fresh(&new),
    };
    let script = export::zone_commands(dialect, &old, &new).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    })?;
    if script.commands.is_empty() {
        output::note("the zones are the same; there is nothing to do");
    }
    match &args.output {
        Some(path) if !is_stdout(Some(path)) => output::written(file::write_text(path, &script.commands))?,
        _ => output::print(&script.commands)?,
    }
    let beside = args.output.as_deref().filter(|path| !is_stdout(Some(path))).map(undo_name);
    match args.undo.clone().or(beside) {
        Some(path) if is_stdout(Some(&path)) => output::print(&script.undo),
        Some(path) => output::written(file::write_text(&path, &script.undo)),
        None => {
            output::note("--undo FILE writes the commands that undo the change");
            Ok(())
        }
    }
}

/// Loads a lab. Warnings about its design have no effect on its zones.
fn lab(file: &LabFile, sets: &[sanloom_lab::Override]) -> Result<Lab, Failure> {
    Ok(sanloom_lab::load_to_explain(&file.label(), &file.text()?, sets)?.lab)
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

fn dialect(args: &Zones, labs: &[&Lab]) -> Result<Dialect, Failure> {
    if args.format == Format::Fos {
        return match args.vsan {
            Some(_) => Err(Failure::usage("--vsan belongs to --format nxos")),
            None => Ok(Dialect::FabricOs),
        };
    }
    let vsans: BTreeSet<u16> = labs.iter().flat_map(|lab| lab.zone_fabrics.values().copied()).collect();
    let only = vsans.first().copied().filter(|_| vsans.len() == 1);
    let Some(vsan) = args.vsan.or(only) else {
        let listed: Vec<String> = vsans.iter().map(ToString::to_string).collect();
        return Err(Failure::usage(match listed.is_empty() {
            true => "the zones have no virtual fabric; name their VSAN with --vsan".to_owned(),
            false => format!("the zones are in several virtual fabrics; choose with --vsan: {}", listed.join(", ")),
        }));
    };
    let is_enhanced = labs[0].zone_policy.merge_rules == MergeRules::ENHANCED;
    Ok(Dialect::NxOs { vsan, is_enhanced })
}

/// The part of the zones of a lab that the commands are about.
fn part(args: &Zones, dialect: Dialect, lab: &Lab, is_new: bool) -> Result<ZoneDatabase, Failure> {
    let mut database = lab.zone_database.clone();
    if let Dialect::NxOs { vsan, .. } = dialect {
        database = export::of_virtual_fabric(&database, &lab.zone_fabrics, vsan);
    }
    let configs: Vec<&str> = database.defined.configs.keys().map(String::as_str).collect();
    if let Some(config) = &args.config {
        if is_new && !configs.contains(&config.as_str()) {
            let remedy = sanloom_lab::closest(config, configs.iter().copied());
            let remedy =
                remedy.map_or_else(|| format!("it has {}", configs.join(", ")), |near| format!("did you mean {near}?"));
            return Err(Failure::usage(format_args!(
                "the lab `{}` has no configuration `{config}`; {remedy}",
                lab.name
            )));
        }
        return Ok(export::only_config(&database, config, is_new));
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
