//! Secrets of CHAP, from files: [`read_pair`].

use sanloom_core::iscsi::chap::Credentials;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A shorter secret can be guessed from what passes on the wire (RFC 7143, section 12.1.3).
const MIN_SECRET_BYTES: usize = 12;
/// Permission of everybody to read.
const OTHERS_READ: u32 = 0o004;

/// Why a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Its file.
    #[error("cannot read the secret in {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It protects nothing.
    #[error("the secret in {} is of no use: {why}; put another one there", path.display())]
    Weak {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
}

/// A name that is proved, and the file with its secret.
pub type Place<'a> = (Option<&'a str>, Option<PathBuf>);

/// The names and secrets of both directions, where there are both. White space at the end of a file is none of its secret.
///
/// # Errors
/// When a file cannot be read, a secret has less than 96 bits, or both are the same: RFC 7143, section 12.1.3, forbids both where
/// IPsec does not protect the connection, and we cannot know that.
pub fn read_pair(one: Place<'_>, other: Place<'_>) -> Result<[Option<Credentials>; 2], SecretError> {
    let path = other.1.clone();
    let pair = [read(one)?, read(other)?];
    match (&pair, path) {
        ([Some(one), Some(other)], Some(path)) if one.secret == other.secret => {
            let why = "the other direction has the same one, and so proves nothing";
            Err(SecretError::Weak { path, why })
        }
        _ => Ok(pair),
    }
}

fn read((name, path): Place<'_>) -> Result<Option<Credentials>, SecretError> {
    let (Some(name), Some(path)) = (name, path) else { return Ok(None) };
    let secret = fs::read(&path).map_err(|error| SecretError::File { path: path.clone(), error })?;
    // What an editor puts behind the last line is none of the secret.
    let secret = secret.trim_ascii_end().to_vec();
    if secret.len() < MIN_SECRET_BYTES {
        return Err(SecretError::Weak { path, why: "it has less than 96 bits (12 bytes)" });
    }
    warn_of_readers(&path);
    Ok(Some(Credentials { name: name.to_owned(), secret }))
}

fn warn_of_readers(path: &Path) {
    if fs::metadata(path).is_ok_and(|file| file.mode() & OTHERS_READ != 0) {
        let remedy = format!("chmod o-r {}", path.display());
        tracing::warn!(file = %path.display(), remedy, "everybody on this machine can read this secret");
    }
}
