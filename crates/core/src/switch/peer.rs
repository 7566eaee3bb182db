//! How name-server changes reach the other switches: [`PeerUpdate`].

use super::entry::NsEntry;
use sanloom_wire::FcId;
use std::sync::Arc;

/// What one switch tells the others.
///
/// [`crate::names::NameExchange`] takes it from [`super::Output::Peer`] and carries it as SW_RSCN and inter-switch queries; at
/// the other end it comes as [`super::Input::Peer`]. Updates of one sender arrive at one receiver in the order they were
/// sent. One of a domain without a route is ignored and counted; a domain that gets a route is asked for all its objects.
/// Objects that are known already change nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerUpdate {
    /// A port logged in, or its object changed. Sent at the login and, from the first FC-4 registration on, with every
    /// change; names that a port registers before its types travel with those.
    Object(Arc<NsEntry>),
    /// A port is gone.
    Removed {
        /// Its address.
        port_id: FcId,
    },
    /// The object that comes next has the name of this port of another switch and takes its place.
    Supersedes {
        /// Address of the other port.
        port_id: FcId,
    },
    /// Another port has the name of this one of ours, and that one stays: ours is logged out. No switch sends it; whoever
    /// delivers updates finds out.
    Superseded {
        /// Address of the port.
        port_id: FcId,
    },
    /// A whole domain is gone: its switch restarted without becoming unreachable. No switch sends it; loss of all routes
    /// to a domain has the same effect.
    DomainGone {
        /// The domain.
        domain: u8,
    },
}
