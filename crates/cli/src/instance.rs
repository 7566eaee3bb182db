//! Speaking to a running instance (`sanloom up`) through its control socket.

use sanloom_api::control::{Answer, Request};
use sanloom_console::exit::Failure;
use sanloom_fc::san::Lab;
use sanloom_live::control;
use sanloom_live::runtime::plan::Places;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Asks the instance of a lab: the one that runs all of it, else the one that runs this switch
/// alone.
///
/// # Errors
/// When none is running, or it says no word that we know.
pub fn ask(lab: &Lab, switch: Option<&str>, request: &Request) -> Result<Answer, Failure> {
    let places = Places::of(lab);
    if let Some(alone) = switch.map(|name| places.control(Some(name))) {
        match control::ask(&alone, request) {
            // None was started, or it is gone and has left its socket.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            outcome => return outcome.map_err(|error| unanswered(&alone, &error)),
        }
    }
    let whole = places.control(None);
    control::ask(&whole, request).map_err(|error| unanswered(&whole, &error))
}

fn unanswered(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::environment(format_args!("no instance answers at {path}: {error}; start it with `sanloom up`"))
}

/// Asks, and takes nothing but success for an answer.
///
/// # Errors
/// As [`ask`], and when the instance refuses.
pub fn command(lab: &Lab, switch: Option<&str>, request: &Request) -> Result<Answer, Failure> {
    match ask(lab, switch, request)? {
        Answer::Failed { reason } => Err(Failure::usage(reason)),
        answer => Ok(answer),
    }
}
