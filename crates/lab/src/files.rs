//! Files that a lab names, beside the lab file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Returns the path of the file `name` in the folder of the lab file `label`. A lab without a file,
/// such as standard input, has the current folder.
pub(crate) fn path_beside(label: &str, name: &str) -> PathBuf {
    Path::new(label).parent().unwrap_or(Path::new("")).join(name)
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("the file {} cannot be read: {error}", path.display())
}

/// Opens a file.
///
/// # Errors
/// The reason why it cannot be read, with the name.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    // Reading a pipe or a device could wait for ever.
    if !std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    File::open(path).map_err(|error| unreadable(path, &error))
}

/// Returns the text of the file `name` in the folder of the lab file `label`, with at most one byte
/// more than `limit`.
///
/// # Errors
/// The reason why it cannot be read, with the name.
pub(crate) fn beside(label: &str, name: &str, limit: usize) -> Result<String, String> {
    let path = path_beside(label, name);
    let mut bytes = Vec::new();
    let read = open(&path)?.take(limit as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(&path, &error))?;
    String::from_utf8(bytes).map_err(|_| format!("the file {} is not text in UTF-8", path.display()))
}
