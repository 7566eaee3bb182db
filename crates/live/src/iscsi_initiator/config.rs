//! Configuration of an external target, [`RemoteConfig`], and its counters.

use sanloom_scsi::disk::DiskConfig;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::initiator::{LoginConfig, SessionConfig};
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::time::Span;
use std::net::SocketAddr;

/// Maximum duration of a login.
const LOGIN_TIME: Span = Span::from_secs(10);

/// A target, and its use.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Portals, at least one. The best reachable one is used.
    pub portals: Vec<SocketAddr>,
    /// iSCSI name of the target.
    pub target: String,
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// Credentials of the initiator.
    pub own: Option<Credentials>,
    /// Credentials that the target must prove.
    pub target_proof: Option<Credentials>,
    /// Parameters to request in the negotiation.
    pub offers: Offers,
    /// Limits and time-outs of disks.
    pub disk: DiskConfig,
    /// Behaviour of sessions.
    pub session: SessionConfig,
}

impl RemoteConfig {
    /// Returns whether one session can serve both configurations: same target, portals and
    /// initiator.
    pub fn is_same_way(&self, other: &RemoteConfig) -> bool {
        (&self.target, &self.portals, &self.initiator) == (&other.target, &other.portals, &other.initiator)
    }

    /// Returns the configuration of a login with this initiator session identifier.
    pub(crate) fn login(&self, isid: [u8; 6], offers: Offers, challenge: [u8; 16]) -> LoginConfig {
        LoginConfig {
            initiator: self.initiator.clone(),
            target: Some(self.target.clone()),
            isid,
            offers,
            own: self.own.clone(),
            target_proof: self.target_proof.clone(),
            challenge,
            timeout: LOGIN_TIME,
        }
    }
}

/// Counters of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemoteCounters {
    /// Sessions that were begun.
    pub logins: u64,
    /// Sessions that were lost.
    pub lost: u64,
    /// Sessions that were left for a better portal.
    pub moves: u64,
}
