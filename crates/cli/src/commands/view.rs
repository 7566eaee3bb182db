//! `sanloom view`: a page of finished runs.

use super::compare::read_results;
use crate::web::{Drawing, WebArgs, serve_results};
use sanloom_api::results::Results;
use sanloom_console::exit::Failure;
use sanloom_surface::server::Bytes;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `sanloom view`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Results of one or two runs: JSON files of `sanloom sim --json=FILE`, or report folders
    #[arg(value_name = "RESULT", required = true, num_args = 1..=2)]
    results: Vec<PathBuf>,
    /// Address and port of the page; except at a loopback address, it needs a login
    #[arg(long, visible_alias = "web", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    at: SocketAddr,
}

/// Serves the page until Ctrl-C.
///
/// # Errors
/// When results cannot be read, or the address is in use.
pub fn run(args: &Args) -> Result<(), Failure> {
    let results = args.results.iter().map(|path| read_results(path)).collect::<Result<Vec<_>, _>>()?;
    let drawing = results.first().map(drawing).transpose()?;
    let bytes = results.iter().map(document).collect::<Result<Vec<_>, _>>()?;
    match drawing {
        // The user names the files and the address, so no other login is necessary on loopback.
        Some(drawing) => serve_results(&WebArgs::at(args.at, args.at.ip().is_loopback()), drawing, bytes),
        None => Ok(()),
    }
}

/// Results as JSON.
pub(super) fn document(results: &Results) -> Result<Bytes, Failure> {
    serde_json::to_vec(results).map(Bytes::from).map_err(Failure::environment)
}

/// The drawing of the lab of a run.
fn drawing(results: &Results) -> Result<Drawing, Failure> {
    let Some(text) = &results.lab.source else {
        return Err(Failure::usage("the results do not contain their lab; write them again with `sanloom sim`"));
    };
    let loaded = sanloom_lab::load_to_explain(&results.lab.name, text, &[])?;
    Ok(Drawing::new(Arc::new(loaded.lab), loaded.isolated))
}
