//! What a node offers: targets, portals, who may use them ([`Node`]).

use crate::iscsi::chap::Credentials;
use crate::iscsi::parameters::Wishes;
use crate::time::Span;
use std::collections::BTreeSet;

/// An initiator that says nothing for this long is asked whether it is there.
pub(super) const PING: Span = Span::from_secs(30);

/// A network entity with targets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Its targets; [`super::SessionKey::target`] is the index.
    pub targets: Vec<Target>,
    /// Who has to prove itself before discovery.
    pub discovery: Authentication,
}

/// A target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// iSCSI name.
    pub name: String,
    /// What people call it.
    pub alias: Option<String>,
    /// Where it is reached.
    pub portals: Vec<Portal>,
    /// Who may log in.
    pub access: Access,
    /// Who has to prove itself, and how.
    pub authentication: Authentication,
    /// Logins are sent elsewhere.
    pub redirect: Option<Redirect>,
    /// What it wants of a session.
    pub wishes: Wishes,
    /// Commands of a session at once.
    pub depth: u16,
    /// Sessions at most; more are refused.
    pub max_sessions: u32,
    /// An initiator that says nothing for this long is asked whether it is there, and has as long again to answer.
    pub ping: Option<Span>,
}

impl Target {
    /// A target that everybody may use, without portals.
    pub fn new(name: &str) -> Target {
        Target {
            name: name.to_owned(),
            alias: None,
            portals: Vec::new(),
            access: Access::Everybody,
            authentication: Authentication::default(),
            redirect: None,
            wishes: Wishes::default(),
            depth: 128,
            max_sessions: 4096,
            ping: Some(PING),
        }
    }
}

/// Where a target is reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Portal {
    /// Address and port, as `SendTargets` tells them: `192.0.2.1:3260`, `[2001:db8::1]:3260`.
    pub address: String,
    /// Target portal group tag.
    pub group: u16,
}

/// Who may log in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// All initiators.
    #[default]
    Everybody,
    /// Those with these names. Others do not even see the target.
    Listed(BTreeSet<String>),
}

impl Access {
    /// The initiator may log in.
    pub fn allows(&self, initiator: &str) -> bool {
        match self {
            Access::Everybody => true,
            Access::Listed(names) => names.contains(initiator),
        }
    }
}

/// Who has to prove itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Authentication {
    /// Names and secrets of initiators; none: nobody has to prove anything.
    pub initiators: Vec<Credentials>,
    /// Our own, for initiators that want a proof too.
    pub own: Option<Credentials>,
}

/// Where logins are sent instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// Address and port.
    pub address: String,
    /// For ever, or for this time.
    pub permanent: bool,
}
