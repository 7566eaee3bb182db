//! Configuration of an iSCSI target node: targets, portals and access rights ([`Node`]).

use crate::iscsi::chap::Credentials;
use crate::iscsi::parameters::Offers;
use crate::time::Span;
use std::collections::BTreeSet;

/// Default idle time after which an initiator is pinged.
pub(super) const PING: Span = Span::from_secs(30);

/// Network entity with its targets (RFC 7143, section 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Targets of the node; [`super::SessionKey::target`] is an index into this list.
    pub targets: Vec<Target>,
    /// Authentication required for discovery sessions.
    pub discovery: Authentication,
}

/// One iSCSI target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// iSCSI name, such as an IQN.
    pub name: String,
    /// TargetAlias: a name for people, sent at login.
    pub alias: Option<String>,
    /// Portals at which the target is reachable.
    pub portals: Vec<Portal>,
    /// Initiators that may log in.
    pub access: Access,
    /// Authentication required at login.
    pub authentication: Authentication,
    /// If present, logins are redirected there.
    pub redirect: Option<Redirect>,
    /// Parameters that the target offers in a session.
    pub offers: Offers,
    /// Depth of the command window of a session.
    pub depth: u16,
    /// Maximum number of sessions; further logins are refused.
    pub max_sessions: u32,
    /// Idle time after which an initiator is pinged; also the time allowed for the reply. `None`
    /// turns pings off.
    pub ping: Option<Span>,
}

impl Target {
    /// Creates a target without portals that all initiators may use.
    pub fn new(name: &str) -> Target {
        Target {
            name: name.to_owned(),
            alias: None,
            portals: Vec::new(),
            access: Access::Everybody,
            authentication: Authentication::default(),
            redirect: None,
            offers: Offers::default(),
            depth: 128,
            max_sessions: 4096,
            ping: Some(PING),
        }
    }
}

/// Portal at which a target is reachable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Portal {
    /// Address and port in the form of SendTargets: `192.0.2.1:3260`, `[2001:db8::1]:3260`.
    pub address: String,
    /// Target portal group tag.
    pub group: u16,
}

/// Initiators that may log in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// All initiators.
    #[default]
    Everybody,
    /// Initiators with these iSCSI names. The target is hidden from all others in discovery.
    Listed(BTreeSet<String>),
}

impl Access {
    /// Returns whether an initiator with this iSCSI name may log in.
    pub fn allows(&self, initiator: &str) -> bool {
        match self {
            Access::Everybody => true,
            Access::Listed(names) => names.contains(initiator),
        }
    }
}

/// Authentication that a target requires and offers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Authentication {
    /// CHAP names and secrets of initiators. If empty, no authentication is required.
    pub initiators: Vec<Credentials>,
    /// The target's own credentials, for initiators that require mutual CHAP.
    pub own: Option<Credentials>,
}

/// Portal to which logins are redirected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// Address and port, in the form of TargetAddress.
    pub address: String,
    /// True for "moved permanently", false for "moved temporarily".
    pub permanent: bool,
}
