//! Arguments that several commands share: the lab file, its overrides, and the number of threads.

use crate::exit::Failure;
use crate::output;
use sanloom_lab::{Diagnostic, LoadedLab, Override};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The lab file.
#[derive(clap::Args, Clone, Debug)]
pub struct LabFile {
    /// Lab file; `-` reads it from standard input
    #[arg(value_name = "LAB")]
    pub path: PathBuf,
}

/// Number of runs side by side.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Threads {
    /// Number of simulations that run at the same time; results do not depend on it [default: one
    /// for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

impl LabFile {
    /// The text of the file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self) -> Result<String, Failure> {
        read_text(&self.path)
    }

    /// Name of the input in messages.
    pub fn label(&self) -> String {
        if self.path == Path::new("-") { "standard input".into() } else { self.path.display().to_string() }
    }
}

/// Reads a lab with its overrides. Warnings go to standard error.
///
/// # Errors
/// All errors of the lab.
pub fn load(file: &LabFile, overrides: &[Override]) -> Result<LoadedLab, Failure> {
    let loaded = sanloom_lab::load(&file.label(), &file.text()?, overrides)?;
    warn(&loaded);
    Ok(loaded)
}

/// As [`load`], for verbs that explain zones: a workload without a permitted pair is a warning.
///
/// # Errors
/// All other errors of the lab.
pub fn load_to_explain(file: &LabFile, overrides: &[Override]) -> Result<LoadedLab, Failure> {
    let loaded = sanloom_lab::load_to_explain(&file.label(), &file.text()?, overrides)?;
    warn(&loaded);
    Ok(loaded)
}

/// As [`load`], for a lab on real ports.
///
/// # Errors
/// All errors of the lab.
pub fn load_running(file: &LabFile, overrides: &[Override]) -> Result<LoadedLab, Failure> {
    let loaded = sanloom_lab::load(&file.label(), &file.text()?, overrides)?;
    warnings_running(&loaded).for_each(show);
    Ok(loaded)
}

/// Shows the warnings of a lab on standard error.
pub fn warn(loaded: &LoadedLab) {
    loaded.warnings.iter().for_each(show);
}

/// Warnings of a lab on real ports, whose hosts need no workload.
pub fn warnings_running(loaded: &LoadedLab) -> impl Iterator<Item = &Diagnostic> {
    loaded.warnings.iter().filter(|warning| warning.code != "no-workload")
}

/// Shows a warning on standard error.
pub fn show(warning: &Diagnostic) {
    output::note(&warning.render(output::colours()));
}

/// Parses `key=value` of `--set`.
///
/// # Errors
/// When there is no equals sign.
pub fn parse_set(argument: &str) -> Result<Override, String> {
    Override::parse(argument)
        .filter(|set| !set.key.is_empty())
        .ok_or_else(|| "write it as key=value, for example run.seed=3".to_owned())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map(|_| bytes)
            .map_err(|error| Failure::environment(format_args!("cannot read standard input: {error}")))?
    } else {
        std::fs::read(path).map_err(|error| {
            let message = format!("cannot read the lab file {}: {error}", path.display());
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Failure::usage(message),
                _ => Failure::environment(message),
            }
        })?
    };
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format_args!(
            "the lab file {} is not text in UTF-8: byte {} does not fit",
            path.display(),
            error.utf8_error().valid_up_to()
        ))
    })
}
