//! Captures as tshark reads them.

use crate::programs::run;
use crate::started::Folder;
use std::path::Path;

/// Reads a capture with tshark and returns what it prints.
pub fn read(capture: &Path, arguments: &[&str]) -> String {
    run("tshark", &[&["-r", &capture.display().to_string()], arguments].concat())
}

/// Reads the bytes of a capture with tshark.
pub fn read_bytes(capture: &[u8], arguments: &[&str]) -> String {
    let folder = Folder::new("tshark");
    let file = folder.join("capture.pcapng");
    std::fs::write(&file, capture).unwrap();
    read(&file, arguments)
}

/// Numbers of the frames that match a display filter.
pub fn frames(capture: &Path, filter: &str) -> Vec<u32> {
    let numbers = read(capture, &["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    numbers.lines().map(|number| number.parse().unwrap()).collect()
}
