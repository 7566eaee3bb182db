//! Arguments that several commands share: the lab file, its overrides, and the number of threads.

use crate::exit::Failure;
use crate::{interrupt, output};
use sanloom_lab::{Diagnostic, LoadedLab, Override};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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
    #[arg(long, value_name = "N", value_parser = parse_positive::<NonZeroUsize>)]
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
    let text = file.text()?;
    let loaded = interrupt::interruptible(|| sanloom_lab::load(&file.label(), &text, overrides))?;
    warn(&loaded);
    Ok(loaded)
}

/// As [`load`], for verbs that explain zones: a workload without a permitted pair is a warning.
///
/// # Errors
/// All other errors of the lab.
pub fn load_to_explain(file: &LabFile, overrides: &[Override]) -> Result<LoadedLab, Failure> {
    let text = file.text()?;
    let loaded = interrupt::interruptible(|| sanloom_lab::load_to_explain(&file.label(), &text, overrides))?;
    warn(&loaded);
    Ok(loaded)
}

/// As [`load`], for a lab on real ports.
///
/// # Errors
/// All errors of the lab.
pub fn load_running(file: &LabFile, overrides: &[Override]) -> Result<LoadedLab, Failure> {
    let text = file.text()?;
    let loaded = interrupt::interruptible(|| sanloom_lab::load(&file.label(), &text, overrides))?;
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

/// Parses a number that is at least 1.
///
/// # Errors
/// When it is 0, or no number, or too large.
pub fn parse_positive<T: FromStr>(argument: &str) -> Result<T, String> {
    argument.parse().map_err(|_| "write a whole number from 1 on".to_owned())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => format!("the lab file {}", path.display()),
    };
    let bytes = interrupt::interruptible(|| read_bytes(path)).map_err(|error| {
        let message = format!("cannot read {name}: {error}");
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Failure::usage(message),
            _ => Failure::environment(message),
        }
    })?;
    if bytes.len() > sanloom_lab::MAX_BYTES {
        let limit = sanloom_lab::MAX_BYTES >> 20;
        return Err(Failure::usage(format_args!(
            "{name} has more than {limit} MiB; use ranges such as \"server{{1..1000}}\" instead of a table for each node"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::usage(format_args!("{name} is not text in UTF-8: byte {place} does not fit"))
    })
}

/// Largest output of a switch that is read, in bytes.
const MAX_OUTPUT: u64 = 1 << 30;

/// Reads the output of a switch, or standard input for `-`. A byte order mark decides between UTF-8
/// and UTF-16; bytes that are neither are replaced.
///
/// # Errors
/// When it cannot be read, or is too long.
pub fn read_output(path: &Path) -> Result<String, Failure> {
    let read = |limit: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match path == Path::new("-") {
            true => io::stdin().lock().take(limit).read_to_end(&mut bytes)?,
            false => File::open(path)?.take(limit).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    };
    let bytes = interrupt::interruptible(|| read(MAX_OUTPUT + 1)).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Failure::usage(message),
            _ => Failure::environment(message),
        }
    })?;
    if bytes.len() as u64 > MAX_OUTPUT {
        return Err(Failure::usage(format_args!("{} has more than 1 GiB; split it", path.display())));
    }
    Ok(decoded(&bytes))
}

/// Text in the encoding that its byte order mark names; UTF-8 without one (RFC 2781 4.3).
fn decoded(bytes: &[u8]) -> String {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes).into_owned(),
    };
    let pairs = bytes[2..].chunks(2).map(|pair| match pair {
        [first, second] => unit([*first, *second]),
        // The file ends within a character.
        _ => 0xfffd,
    });
    char::decode_utf16(pairs).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Reads a file or standard input, up to one byte more than the limit of a lab file.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let limit = sanloom_lab::MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    match path == Path::new("-") {
        true => io::stdin().lock().take(limit).read_to_end(&mut bytes)?,
        false => File::open(path)?.take(limit).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn the_byte_order_mark_decides_the_encoding() {
        let text = "sw1 ä\u{1f600}\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = [0xff, 0xfe].into_iter().chain(units.iter().flat_map(|u| u.to_le_bytes())).collect();
        let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(units.iter().flat_map(|u| u.to_be_bytes())).collect();
        assert_eq!(decoded(&little), text);
        assert_eq!(decoded(&big), text);
        assert_eq!(decoded(text.as_bytes()), text);
        assert_eq!(decoded(&little[..little.len() - 1]), "sw1 ä\u{1f600}\u{fffd}");
        assert_eq!(decoded(&[0xff, 0xfe, 0x00, 0xd8]), "\u{fffd}");
        assert_eq!(decoded(b"a\xff"), "a\u{fffd}");
    }
}
