//! A target of somebody's, as we use it: [`RemoteConfig`], and what was counted of it.

use sanloom_core::disk::DiskConfig;
use sanloom_core::iscsi::chap::Credentials;
use sanloom_core::iscsi::initiator::{LoginConfig, SessionConfig};
use sanloom_core::iscsi::parameters::Wishes;
use sanloom_core::time::Span;
use std::net::SocketAddr;

/// A login that takes longer is given up.
const LOGIN_TIME: Span = Span::from_secs(10);

/// A target, and how it is used.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Where it is; one at a time is used, the best one that can be reached. At least one.
    pub portals: Vec<SocketAddr>,
    /// Its iSCSI name.
    pub target: String,
    /// Ours.
    pub initiator: String,
    /// What we prove.
    pub own: Option<Credentials>,
    /// What the target has to prove.
    pub target_proof: Option<Credentials>,
    /// What is wanted of the session.
    pub wishes: Wishes,
    /// How disks are used.
    pub disk: DiskConfig,
    /// How sessions behave.
    pub session: SessionConfig,
}

impl RemoteConfig {
    /// One session is enough for both: the same target, through the same portals, from the same initiator.
    pub fn is_same_way(&self, other: &RemoteConfig) -> bool {
        (&self.target, &self.portals, &self.initiator) == (&other.target, &other.portals, &other.initiator)
    }

    /// A login as an initiator port of this identifier.
    pub(in crate::iscsi) fn login(&self, isid: [u8; 6], wishes: Wishes, challenge: [u8; 16]) -> LoginConfig {
        LoginConfig {
            initiator: self.initiator.clone(),
            target: Some(self.target.clone()),
            isid,
            wishes,
            own: self.own.clone(),
            target_proof: self.target_proof.clone(),
            challenge,
            timeout: LOGIN_TIME,
        }
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemoteCounters {
    /// Sessions that were begun.
    pub logins: u64,
    /// Sessions that were lost.
    pub lost: u64,
    /// Sessions that were left for a better portal.
    pub moves: u64,
}
