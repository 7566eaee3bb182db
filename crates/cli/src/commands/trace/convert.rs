//! `sanloom trace convert`: a trace in another format.

use super::Input;
use clap::builder::PossibleValuesParser;
use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::report::file;
use sanloom_storage::trace::{Format, Lost, TraceError, TraceReader, TraceWriter, WRITABLE};
use std::io::{self, Write};
use std::path::PathBuf;

/// Options of `sanloom trace convert`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// New file; `-` is standard output
    #[arg(value_name = "OUTPUT", default_value = "-")]
    output: PathBuf,
    /// Format of the new file
    #[arg(long = "to", value_name = "FORMAT", value_parser = writable())]
    to_format: String,
}

pub(super) fn writable() -> PossibleValuesParser {
    PossibleValuesParser::new(WRITABLE.map(Format::word))
}

/// Copies the requests. An error of the trace is kept in `failed`, because the outcome is that of
/// the output.
fn copy(
    reader: &mut TraceReader<'_>,
    out: &mut dyn Write,
    format: Format,
    failed: &mut Option<TraceError>,
) -> io::Result<Lost> {
    let keep = |error: TraceError, failed: &mut Option<TraceError>| {
        *failed = Some(error);
        io::Error::other("the trace is invalid")
    };
    let mut writer = TraceWriter::new(out, format).map_err(|error| keep(error, failed))?;
    while let Some(request) = reader.next() {
        let request = request.map_err(|error| keep(error, failed))?;
        let name = reader.devices().get(request.device as usize).map_or("0", String::as_str);
        writer.write(&request, name)?;
    }
    writer.finish()
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Some(format) = Format::from_word(&args.to_format) else { return Err(Failure::usage("--to names the format")) };
    let mut reader = args.input.open()?;
    let (mut failed, mut lost) = (None, Lost::default());
    let written = file::write(&args.output, |out| {
        lost = copy(&mut reader, out, format, &mut failed)?;
        Ok(())
    });
    if let Some(error) = failed {
        return Err(args.input.failure(&error));
    }
    output::written(written)?;
    for (count, noun, reason) in [
        (lost.left_out, "request", "left out, because the format has no trims and flushes; fio-3 and blkparse have"),
        (lost.enlarged, "request", "enlarged to whole blocks of 512 bytes"),
        (lost.cut, "arrival", "cut to the unit of the format"),
        (lost.times, "request", "written without response or think time"),
    ] {
        if count > 0 {
            output::note(&format!("note: {}: {reason}", plural(count, noun)));
        }
    }
    Ok(())
}
