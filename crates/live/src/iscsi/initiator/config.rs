//! A target of somebody's, as we use it: [`RemoteConfig`], and what was counted of it.

use sanloom_core::disk::DiskConfig;
use sanloom_core::iscsi::chap::Credentials;
use sanloom_core::iscsi::initiator::SessionConfig;
use sanloom_core::iscsi::parameters::Wishes;
use std::net::SocketAddr;

/// A target, and how it is used.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Where it is; the next one is tried when one is lost. At least one.
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

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemoteCounters {
    /// Sessions that were begun.
    pub logins: u64,
    /// Sessions that were lost.
    pub lost: u64,
}
