//! `sanloom fmt`: the canonical layout of lab files.

use sanloom_console::exit::Failure;
use sanloom_console::input::LabFile;
use sanloom_console::output;
use sanloom_console::report::file;
use std::path::{Path, PathBuf};

/// Options of `sanloom fmt`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Lab files; `-` formats standard input to standard output
    #[arg(value_name = "LAB", required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; exit with code 1 if a file is not formatted
    #[arg(long)]
    check: bool,
}

/// Formats the files.
///
/// # Errors
/// If a file is not TOML, cannot be read or written, or is not formatted under `--check`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut differs = false;
    for path in &args.files {
        let lab = LabFile { path: path.clone() };
        let text = lab.text()?;
        let formatted = sanloom_lab::format(&lab.label(), &text)?;
        let changed = formatted != text;
        match (args.check, path == Path::new("-")) {
            (true, _) if changed => output::note(&format!("{} is not formatted", lab.label())),
            (true, _) => {}
            (false, true) => output::print(&formatted)?,
            (false, false) if changed => {
                file::write_text(path, &formatted)?;
                output::print(&format!("{} formatted\n", lab.label()))?;
            }
            (false, false) => {}
        }
        differs |= changed;
    }
    match args.check && differs {
        true => Err(Failure::expectation()),
        false => Ok(()),
    }
}
