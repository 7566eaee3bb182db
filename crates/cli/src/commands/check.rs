//! `sanloom check`: all errors of a lab file, or its topology.

use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets, is_stdout};
use sanloom_console::report::terminal::design;
use sanloom_console::report::{check, file};
use sanloom_console::{interrupt, output};
use sanloom_lab::topology;
use std::path::PathBuf;

/// Options of `sanloom check`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// Draw the topology into this file, `-` for standard output, which then has no text [default:
    /// no drawing]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

/// Checks a lab.
///
/// # Errors
/// All errors of the lab, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    output::one_stdout(&[args.json.named(), ("--svg", args.svg.as_deref())])?;
    let text = args.file.text()?;
    let checked = interrupt::interruptible(|| sanloom_lab::check(&args.file.label(), &text, &args.sets.set));
    let (loaded, report) = match checked {
        Ok(checked) => checked,
        Err(mistakes) => {
            args.json.write(&check::mistakes(&mistakes))?;
            return Err(mistakes.into());
        }
    };
    args.json.write(&check::passed(&loaded, &report))?;
    if !args.json.is_stdout() {
        input::warn(&loaded);
    }
    if !args.json.is_stdout() && !is_stdout(args.svg.as_deref()) {
        output::print(&format!(
            "{}: no mistakes{}\n\n{}",
            loaded.lab.name,
            match loaded.warnings.len() {
                0 => String::new(),
                n => format!(", {}", plural(n, "warning")),
            },
            design::render(&report, output::width())
        ))?;
    }
    if let Some(path) = &args.svg {
        output::written(file::write_text(path, &topology::svg(&loaded.lab, &loaded.isolated, None)))?;
    }
    Ok(())
}
