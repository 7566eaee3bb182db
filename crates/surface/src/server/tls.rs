//! HTTPS with a certificate that sanloom signs itself: [`identity`].

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// Returns the configuration of TLS with the certificate in a folder. If the folder has none, a
/// certificate for the names and addresses is made and stored there, readable by its owner only.
///
/// # Errors
/// The files cannot be read or written, or hold no certificate and key.
pub fn identity(folder: &Path, names: &[String], addresses: &[IpAddr]) -> io::Result<Arc<ServerConfig>> {
    let path = folder.join("surface.pem");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = self_signed(names, addresses).map_err(io::Error::other)?;
            fs::create_dir_all(folder)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())?;
            text.into_bytes()
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

fn configuration(text: &[u8]) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error + Send + Sync>> {
    let chain = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(text)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn self_signed(names: &[String], addresses: &[IpAddr]) -> Result<String, rcgen::Error> {
    let addresses = addresses.iter().filter(|address| !address.is_unspecified()).map(IpAddr::to_string);
    let subjects: Vec<String> = names.iter().cloned().chain(addresses).collect();
    let mut params = CertificateParams::new(subjects)?;
    params.distinguished_name.push(DnType::CommonName, "sanloom");
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_certificate_is_made_once_and_only_its_owner_can_read_the_key() {
        let folder = std::env::temp_dir().join(format!("sanloom-tls-{}", std::process::id()));
        let addresses = ["127.0.0.1".parse().unwrap()];
        identity(&folder, &["localhost".to_owned()], &addresses).unwrap();
        let path = folder.join("surface.pem");
        let first = fs::read(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        identity(&folder, &["localhost".to_owned()], &addresses).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first);
        fs::write(&path, "no certificate").unwrap();
        let error = identity(&folder, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("delete the file for a new one"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
