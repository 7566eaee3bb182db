//! CHAP secrets from files: [`read_pair`].

use sanloom_scsi::iscsi::chap::Credentials;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Minimum length; a shorter secret can be guessed from the messages (RFC 7143, section 12.1.3).
const MIN_SECRET_BYTES: usize = 12;
/// Read permission for all users.
const OTHERS_READ: u32 = 0o004;

/// Reason why a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret in {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The secret does not protect.
    #[error("the secret in {} is unsafe: {why}; choose another one", path.display())]
    Weak {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
}

/// A CHAP name, and the file with its secret.
pub type SecretSource<'a> = (Option<&'a str>, Option<PathBuf>);

/// Returns the names and secrets of the two directions, if they are configured. White space at the
/// end of a file is not part of the secret.
///
/// # Errors
/// A file cannot be read, a secret has less than 96 bits, or both are the same. RFC 7143, section
/// 12.1.3, forbids both if IPsec does not protect the connection, which cannot be checked here.
pub fn read_pair(one: SecretSource<'_>, other: SecretSource<'_>) -> Result<[Option<Credentials>; 2], SecretError> {
    let path = other.1.clone();
    let pair = [read(one)?, read(other)?];
    match (&pair, path) {
        ([Some(one), Some(other)], Some(path)) if one.secret == other.secret => {
            let why = "it is the same in both directions, so a peer could reflect the challenge";
            Err(SecretError::Weak { path, why })
        }
        _ => Ok(pair),
    }
}

fn read((name, path): SecretSource<'_>) -> Result<Option<Credentials>, SecretError> {
    let (Some(name), Some(path)) = (name, path) else { return Ok(None) };
    let secret = fs::read(&path).map_err(|error| SecretError::File { path: path.clone(), error })?;
    // Editors add white space after the last line.
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
        tracing::warn!(file = %path.display(), remedy, "all users of this machine can read this secret");
    }
}
