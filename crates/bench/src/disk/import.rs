//! `sanloom disk import`: a file of DiskSim as a parameter file.

use super::input;
use clap::Subcommand;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::report::file;
use sanloom_storage::disk::import::Imported;
use std::path::PathBuf;

/// Options of `sanloom disk`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Convert a parameter file of DiskSim 4.0 to a parameter file of sanloom, with a list of the
    /// parameters that the model lacks
    #[command(
        after_help = "FILE is a .parv or .diskspecs file; the .model and .seek files that it names are read from its \
                      folder. Only the .parv file describes the bus\n\nExample:\n  sanloom disk import cheetah9LP.parv -o \
                      cheetah.toml"
    )]
    Import(Import),
}

#[derive(clap::Args, Debug)]
struct Import {
    /// Parameter file of DiskSim
    #[arg(value_name = "FILE")]
    file: String,
    /// Write the parameters to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// If the file cannot be imported or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Import(args) = &args.command;
    let imported = input::imported(&args.file)?;
    let text = text(&args.file, &imported)?;
    match &args.output {
        Some(path) => output::written(file::write_text(path, &text)),
        None => output::print(&text),
    }
}

/// Returns the parameter file, with the ignored parameters as comments in front.
fn text(file: &str, imported: &Imported) -> Result<String, Failure> {
    let mut text = format!("# Imported from {file}. Keep the copyright notice of that file with this one.\n");
    if !imported.notes.is_empty() {
        text.push_str("#\n# Ignored or changed parameters:\n");
    }
    for note in &imported.notes {
        text.push_str(&format!("# - {} = {}: {}\n", note.parameter, note.value, note.reason));
    }
    if !imported.others.is_empty() {
        text.push_str(&format!("#\n# Further disks of the file, not imported: {}\n", imported.others.join(", ")));
    }
    text.push('\n');
    text.push_str(&toml::to_string(&imported.config).map_err(Failure::bug)?);
    Ok(text)
}
