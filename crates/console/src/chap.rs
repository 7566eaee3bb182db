//! Options of CHAP of an initiator: [`Chap`].

use crate::exit::Failure;
use sanloom_live::iscsi::secret::read_pair;
use sanloom_scsi::iscsi::chap::Credentials;
use std::path::PathBuf;

/// CHAP credentials of both directions.
#[derive(clap::Args, Debug, Default)]
pub struct Chap {
    /// Name that is proved to the target (CHAP)
    #[arg(long, value_name = "NAME", requires = "chap_secret_file")]
    chap_name: Option<String>,
    /// File with the secret of --chap-name, at least 12 bytes
    #[arg(long, value_name = "FILE", requires = "chap_name")]
    chap_secret_file: Option<PathBuf>,
    /// Name that the target has to prove (mutual CHAP)
    #[arg(long, value_name = "NAME", requires_all = ["target_chap_secret_file", "chap_name"])]
    target_chap_name: Option<String>,
    /// File with the secret of --target-chap-name, another one than that of --chap-name
    #[arg(long, value_name = "FILE", requires = "target_chap_name", alias = "target-secret-file")]
    target_chap_secret_file: Option<PathBuf>,
}

impl Chap {
    /// An option was given.
    pub fn is_given(&self) -> bool {
        self.chap_name.is_some()
    }

    /// Returns our credentials, and those that the target has to prove.
    ///
    /// # Errors
    /// When a secret cannot be read, or is too weak.
    pub fn credentials(&self) -> Result<[Option<Credentials>; 2], Failure> {
        let own = (self.chap_name.as_deref(), self.chap_secret_file.clone());
        let theirs = (self.target_chap_name.as_deref(), self.target_chap_secret_file.clone());
        read_pair(own, theirs).map_err(Failure::environment)
    }
}
