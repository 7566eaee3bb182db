//! Files that a lab names, beside the lab file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns the text of the file `name` in the folder of the lab file `label`, with at most one byte
/// more than `limit`. A lab without a file, such as standard input, has the current folder.
///
/// # Errors
/// The reason why it cannot be read, with the name.
pub(crate) fn beside(label: &str, name: &str, limit: usize) -> Result<String, String> {
    let path = Path::new(label).parent().unwrap_or(Path::new("")).join(name);
    let failed = |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    // Reading a pipe or a device could wait for ever.
    if !std::fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    File::open(&path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes)).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| format!("the file {} is not text in UTF-8", path.display()))
}
