//! Import of DiskSim's parameter files: `.parv`, `.diskspecs`, `.model` and `.seek`.
//!
//! Source of the syntax and of the meaning of each parameter: The DiskSim Simulation Environment
//! Version 4.0 Reference Manual, CMU-PDL-08-101, sections 2.1, 3.4.5 and 3.4.7.
//!
//! Where DiskSim has a part that this model lacks, the parameter is listed as ignored, with the
//! reason. The spares of a zone reduce its blocks as in DiskSim. Only the number of slipped blocks
//! is used, not their positions.

mod layout;
mod parameters;
mod syntax;

use super::config::DiskConfig;
use super::geometry::Geometry;
use std::fmt;
use syntax::{Block, Reader, Value};

/// Largest number of bytes of all files of an import.
pub const MAX_BYTES: usize = 16 << 20;

/// Largest depth of files and blocks.
const MAX_DEPTH: usize = 12;

/// Function that returns the text of a file by its name, or the reason why it cannot be read.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, String>;

/// Error of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportError {
    /// File and line, or the name of a disk.
    pub place: String,
    /// Description of the error.
    pub reason: String,
    /// Advice on how to correct it.
    pub remedy: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.reason, self.remedy)
    }
}

impl std::error::Error for ImportError {}

/// Parameter of a file that does not reach the model, or reaches it in another form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Name of the parameter.
    pub parameter: String,
    /// Its value in the file.
    pub value: String,
    /// Reason.
    pub reason: String,
}

/// An imported disk.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// Parameters of our model.
    pub config: DiskConfig,
    /// Parameters that were ignored or changed, in the order of the file.
    pub notes: Vec<Note>,
    /// Names of further disks of the file, which were not imported.
    pub others: Vec<String>,
}

/// Returns true if a file has the name of a DiskSim file.
pub fn is_disksim(file: &str) -> bool {
    [".parv", ".diskspecs", ".model"].iter().any(|end| file.ends_with(end))
}

/// Imports the first disk of a file. `files` returns the texts of the file and of the files that it
/// names, by their names.
///
/// # Errors
/// If a file cannot be read or has another syntax, or the disk is missing or impossible.
pub fn disksim(file: &str, files: Files<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader::new(files);
    let text = reader.text(file, file)?;
    let blocks = reader.blocks(file, &text, 0)?;
    let of = |kind: &str| blocks.iter().filter(|block| block.kind == kind).collect::<Vec<&Block>>();
    let error = |reason: &str, remedy: &str| ImportError {
        place: file.to_owned(),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    let disks = of("disksim_disk");
    let Some(disk) = disks.first() else {
        let remedy = match of("dm_disk").is_empty() {
            true => "give a .parv or .diskspecs file with a block disksim_disk",
            false => "give the .diskspecs file that names this model, because overheads and cache are there",
        };
        return Err(error("the file has no block disksim_disk", remedy));
    };
    let others = disks[1..].iter().map(|block| block.name.clone()).collect();
    let mut notes = Vec::new();
    let model = match disk.entries.iter().find(|entry| entry.key == "Model").map(|entry| &entry.value) {
        Some(Value::Block(model)) => model,
        _ => return Err(error("the disk has no model", "add Model = source FILE, or a block dm_disk")),
    };
    let buses = parameters::buses(&of("disksim_bus"), &of("disksim_ctlr"));
    let layout = layout::layout(model, &mut reader, &mut notes)?;
    let config = parameters::config(disk, layout, buses, &mut notes)?;
    Geometry::new(&config).map_err(|why| error(&why.to_string(), "correct the layout in the .model file"))?;
    Ok(Imported { config, notes, others })
}
