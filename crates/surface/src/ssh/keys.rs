//! Keys of the server and public keys of users: [`host_keys`], [`UserKeys`].

use crate::server::users::random;
use p256::SecretKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::{EcdsaKeypair, Ed25519Keypair};
use russh::keys::{PrivateKey, PublicKey};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Returns the key of the server in a folder. If the folder has none, a key is made and stored
/// there, readable by its owner only.
///
/// # Errors
/// The file cannot be read or written, or holds no key.
pub fn host_key(folder: &Path) -> io::Result<PrivateKey> {
    stored(folder, "ssh_host_ed25519_key", || Ok(PrivateKey::from(Ed25519Keypair::from_seed(&random::<32>()?))))
}

/// Returns the keys of the server in a folder as [`host_key`] does: one of Ed25519, and one of
/// ECDSA on the curve P-256 (RFC 5656) for older clients.
///
/// # Errors
/// As those of [`host_key`].
pub fn host_keys(folder: &Path) -> io::Result<Vec<PrivateKey>> {
    Ok(vec![host_key(folder)?, stored(folder, "ssh_host_ecdsa_key", ecdsa)?])
}

/// Makes a key on the curve P-256.
fn ecdsa() -> io::Result<PrivateKey> {
    // A random number is outside of the range of the curve with a probability of 2^-32.
    for _ in 0..8 {
        if let Ok(secret) = SecretKey::from_slice(&random::<32>()?) {
            let public = secret.public_key().into();
            return Ok(PrivateKey::from(EcdsaKeypair::NistP256 { public, private: secret.into() }));
        }
    }
    Err(io::Error::other("the random numbers of the machine make no key"))
}

/// Key in a file of a folder, or a new one that is stored there.
fn stored(folder: &Path, name: &str, make: impl Fn() -> io::Result<PrivateKey>) -> io::Result<PrivateKey> {
    let path = folder.join(name);
    match fs::read(&path) {
        Ok(text) => PrivateKey::from_openssh(text).map_err(|error| {
            let path = path.display();
            let text = format!("{path} holds no private key for SSH: {error}; delete the file for a new one");
            io::Error::new(io::ErrorKind::InvalidData, text)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = make()?;
            let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
            fs::create_dir_all(folder)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

/// Public keys with which users log in.
#[derive(Debug, Default)]
pub struct UserKeys(Vec<(String, PublicKey)>);

impl UserKeys {
    /// Reads a table: one key in each line, as `NAME TYPE KEY`, in the form of OpenSSH. A file that
    /// does not exist has no keys.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid.
    pub fn read(path: &Path) -> io::Result<UserKeys> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(UserKeys::default()),
            Err(error) => return Err(error),
        };
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.split_once(char::is_whitespace).and_then(|(name, key)| {
                let key = PublicKey::from_openssh(key.trim()).ok()?;
                Some((name.to_owned(), key))
            });
            let Some(key) = key else {
                let (path, number) = (path.display(), number + 1);
                let text = format!(
                    "{path}:{number}: the line is no key; write it as NAME TYPE KEY, for example admin ssh-ed25519 AAAA…"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            keys.push(key);
        }
        Ok(UserKeys(keys))
    }

    /// True if the user may log in with the key.
    pub fn accept(&self, user: &str, key: &PublicKey) -> bool {
        self.0.iter().any(|(name, known)| name == user && known.key_data() == key.key_data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_of_the_server_is_made_once_and_only_its_owner_can_read_it() {
        let folder = std::env::temp_dir().join(format!("sanloom-ssh-key-{}", std::process::id()));
        let first = host_key(&folder).unwrap();
        let path = folder.join("ssh_host_ed25519_key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(host_key(&folder).unwrap().public_key(), first.public_key());
        fs::write(&path, "no key").unwrap();
        let error = host_key(&folder).unwrap_err().to_string();
        assert!(error.contains("delete the file for a new one"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
        assert_ne!(host_key(&folder).unwrap().public_key(), first.public_key());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_key_is_accepted_for_its_user_only_and_a_wrong_line_is_named() {
        let [ours, other] = [1, 2].map(|seed| PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32])));
        let path = std::env::temp_dir().join(format!("sanloom-user-keys-{}", std::process::id()));
        let text = ours.public_key().to_openssh().unwrap();
        fs::write(&path, format!("# keys\n\nada {text} ada@example\n")).unwrap();
        let keys = UserKeys::read(&path).unwrap();
        assert!(keys.accept("ada", ours.public_key()));
        assert!(!keys.accept("bob", ours.public_key()) && !keys.accept("ada", other.public_key()));
        fs::write(&path, format!("{text}\n")).unwrap();
        let error = UserKeys::read(&path).unwrap_err().to_string();
        assert!(error.contains(":1: the line is no key"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(!UserKeys::read(&path).unwrap().accept("ada", ours.public_key()));
    }
}
