//! HTTPS with a certificate that sanloom signs itself: [`identity`].

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// First line of a file with a certificate of our own making: its names and addresses, and its
/// fingerprint, because a user may put another certificate below the line.
const MADE_FOR: &str = "# Made by sanloom for ";
const FINGERPRINT: &str = ", SHA-256 ";
/// Maximum number of names and addresses that a renewed certificate keeps from earlier ones.
const MAX_KEPT: usize = 256;

/// Returns the configuration of TLS with the certificate in a folder. If the folder has none, a
/// certificate for the names and addresses is made and stored there, readable by its owner only. A
/// certificate that was made here is renewed, with a new key, if a name or an address is missing;
/// it keeps the earlier ones. A certificate of the user never changes.
///
/// # Errors
/// The files cannot be read or written, or hold no certificate and key.
pub fn identity(folder: &Path, names: &[String], addresses: &[IpAddr]) -> io::Result<Arc<ServerConfig>> {
    let path = folder.join("surface.pem");
    let addresses = addresses.iter().filter(|address| !address.is_unspecified()).map(IpAddr::to_string);
    let subjects: Vec<String> = names.iter().cloned().chain(addresses).collect();
    let text = match fs::read(&path) {
        Ok(text) => match renewal(&text, &subjects) {
            None => text,
            Some(subjects) => {
                tracing::info!(file = %path.display(), names = subjects.join(", "), "certificate renewed");
                make(&path, &subjects)?
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            make(&path, &subjects)?
        }
        Err(error) => return Err(error),
    };
    configuration(&text).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} holds no certificate with its key: {error}; delete the file for a new one", path.display()),
        )
    })
}

/// Makes a certificate, and stores it in the place of an earlier one.
fn make(path: &Path, subjects: &[String]) -> io::Result<Vec<u8>> {
    let text = self_signed(subjects).map_err(io::Error::other)?;
    let new = path.with_extension(format!("pem.{}", std::process::id()));
    // A process with the same number has left it.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let stored = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    match stored {
        Ok(()) => Ok(text.into_bytes()),
        Err(error) => {
            let _ = fs::remove_file(&new);
            Err(error)
        }
    }
}

/// Names and addresses of the certificate that replaces a stored one. `None` if the stored one has
/// all `subjects`, or was not made here: the first line has the fingerprint of what was.
fn renewal(text: &[u8], subjects: &[String]) -> Option<Vec<String>> {
    let first = std::str::from_utf8(text).ok()?.lines().next()?;
    let (earlier, of) = first.strip_prefix(MADE_FOR)?.split_once(FINGERPRINT)?;
    let chain = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>().ok()?;
    if !matches!(&chain[..], [own] if fingerprint(own) == of) {
        return None;
    }
    let mut all: Vec<String> =
        earlier.split(", ").filter(|name| !name.is_empty()).take(MAX_KEPT).map(str::to_owned).collect();
    let missing: Vec<String> = subjects.iter().filter(|subject| !all.contains(subject)).cloned().collect();
    all.extend(missing.iter().cloned());
    (!missing.is_empty()).then_some(all)
}

/// SHA-256 of a certificate, in hexadecimal digits.
fn fingerprint(certificate: &[u8]) -> String {
    Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn configuration(text: &[u8]) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error + Send + Sync>> {
    let chain = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(text)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn self_signed(subjects: &[String]) -> Result<String, rcgen::Error> {
    let mut params = CertificateParams::new(subjects)?;
    params.distinguished_name.push(DnType::CommonName, "sanloom");
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let (names, of) = (subjects.join(", "), fingerprint(certificate.der()));
    Ok(format!("{MADE_FOR}{names}{FINGERPRINT}{of}\n{}{}", certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_certificate_is_made_once_and_renewed_for_a_new_address_unless_it_is_of_the_user() {
        let folder = std::env::temp_dir().join(format!("sanloom-tls-{}", std::process::id()));
        let addresses = ["127.0.0.1".parse().unwrap()];
        identity(&folder, &["localhost".to_owned()], &addresses).unwrap();
        let path = folder.join("surface.pem");
        let first = fs::read(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        identity(&folder, &["localhost".to_owned()], &addresses).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first);
        // A new address renews it; the earlier names stay, so that two callers agree on one.
        let renewed = |names: &[&str], addresses: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            let before = fs::read(&path).unwrap();
            identity(&folder, &names, &addresses).unwrap();
            fs::read(&path).unwrap() != before
        };
        assert!(renewed(&[], &["192.0.2.1"]) && renewed(&["san.example"], &["::1"]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!renewed(&["localhost", "san.example"], &["127.0.0.1", "192.0.2.1", "::1", "0.0.0.0"]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // One of the user never changes, below our line or without it.
        let line = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "sanloom");
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap().pem() + &key.serialize_pem();
        for text in [format!("{line}\n{own}"), own] {
            fs::write(&path, text).unwrap();
            assert!(!renewed(&[], &["192.0.2.3"]));
        }
        fs::write(&path, "no certificate").unwrap();
        let error = identity(&folder, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("delete the file for a new one"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
