//! `sanloom schema`: a JSON Schema of the lab file.

use sanloom_console::exit::Failure;
use sanloom_console::output;

/// Options of `sanloom schema`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Prints the schema.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(_args: &Args) -> Result<(), Failure> {
    output::print(&sanloom_lab::json_schema())
}
