//! Requests to a running instance (`sanloom up`) through its control socket.

use sanloom_api::control::{Answer, ErrorKind, Request, RequestError};
use sanloom_console::exit::Failure;
use sanloom_fc::san::Lab;
use sanloom_live::control;
use sanloom_live::runtime::plan::LabPaths;
use std::io;
use std::path::Path;

/// Sends a request to the instance of a lab: to the process of this switch, or to the process of
/// the whole lab.
///
/// # Errors
/// When no instance is running, or its answer is invalid.
pub fn ask(lab: &Lab, switch: Option<&str>, request: &Request) -> Result<Answer, Failure> {
    let lab_paths = LabPaths::of(lab);
    if let Some(of_switch) = switch.map(|name| lab_paths.control(Some(name))) {
        match control::ask(&of_switch, request) {
            // No such process was started, or it has ended and left its socket.
            Err(error) if is_absent(&error) => {}
            outcome => return outcome.map_err(|error| unanswered(&of_switch, &error)),
        }
    }
    let whole = lab_paths.control(None);
    control::ask(&whole, request).map_err(|error| unanswered(&whole, &error))
}

fn unanswered(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::environment(format_args!("no instance answers at {path}: {error}; start it with `sanloom up`"))
}

/// True if no process listens at the socket.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Returns the failure for a request that the instance did not execute.
pub fn rejected(RequestError { reason, kind }: RequestError) -> Failure {
    match kind {
        ErrorKind::Usage | ErrorKind::Transaction => Failure::usage(reason),
        ErrorKind::Environment => Failure::environment(reason),
    }
}

/// Returns the failure for an answer that does not fit the request.
pub fn unexpected_answer() -> Failure {
    Failure::protocol("the instance sent an unexpected answer; restart it if it runs another version of sanloom")
}

/// Sends a request that must succeed.
///
/// # Errors
/// As [`ask`], and when the instance rejects the request.
pub fn command(lab: &Lab, switch: Option<&str>, request: &Request) -> Result<Answer, Failure> {
    match ask(lab, switch, request)? {
        Answer::Failed(error) => Err(rejected(error)),
        answer => Ok(answer),
    }
}
