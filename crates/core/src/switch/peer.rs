//! How name-server changes reach the other switches: [`PeerUpdate`].

use super::entry::NsEntry;
use sanloom_wire::FcId;
use std::sync::Arc;

/// What one switch tells the others.
///
/// It stands for what SW_RSCN and the inter-switch name-server queries will carry between domain controllers. Until those
/// exist the driver takes it from [`super::Output::Peer`] and delivers it, as [`super::Input::Peer`], to every switch
/// that the sender can reach. The driver's duties:
///
/// - updates of one sender arrive at one receiver in the order they were sent;
/// - an update takes no longer than a frame would along the shortest path. So it comes before the first frame of the port
///   that it announces, and hard zoning lets that frame pass;
/// - a switch that has no route to the sender's domain does not get it. (It would be ignored and counted.)
///
/// A switch that reaches a new domain sends all its objects again, so nothing else has to be kept for a switch that was
/// away. Objects that are known already change nothing.
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
