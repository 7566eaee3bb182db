//! Exchange of name-server changes between switches: [`PeerUpdate`].

use super::Switch;
use super::entry::NsEntry;
use sanloom_scsi::time::Instant;
use sanloom_wire::FcId;

/// Update from one switch to the others.
///
/// [`crate::names::NameExchange`] takes it from [`super::Output::Peer`] and carries it as SW_RSCN
/// and inter-switch queries. The receiving switch gets it as [`super::Input::Peer`].
///
/// - Updates of one sender arrive at one receiver in the order they were sent.
/// - An update for a domain without a route is ignored and counted.
/// - When a domain gets a route, all its objects are queried.
/// - Known objects cause no change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerUpdate {
    /// A port logged in, or its object changed.
    ///
    /// It is sent at the login and, from the first FC-4 registration on, with every change. Names
    /// registered before the types are sent together with the types.
    Object(NsEntry),
    /// A port logged out.
    Removed {
        /// Address of the port.
        port_id: FcId,
    },
    /// The next object has the name of this port of another switch and replaces it.
    Supersedes {
        /// Address of the replaced port.
        port_id: FcId,
    },
    /// Another port has the name of this local port and takes precedence, so the local one is
    /// logged out. No switch sends this update; the component that delivers updates generates it.
    Superseded {
        /// Address of the local port.
        port_id: FcId,
    },
    /// A whole domain is gone: its switch restarted without becoming unreachable. No switch sends
    /// this update; loss of all routes to a domain has the same effect.
    DomainGone {
        /// Domain that is gone.
        domain: u8,
    },
}

impl Switch {
    /// Applies an update from another switch.
    pub(super) fn peer(&mut self, now: Instant, update: PeerUpdate) {
        self.out.counters.peer_updates += 1;
        let took_effect = match update {
            PeerUpdate::Object(entry) => self.remote_object(now, entry),
            PeerUpdate::Removed { port_id } => {
                let (mut cx, directory, _) = self.services(now);
                !cx.identity.owns(port_id) && directory.remove_remote(&mut cx, port_id)
            }
            PeerUpdate::Superseded { port_id } => self.superseded(now, port_id),
            PeerUpdate::DomainGone { domain } => {
                let (mut cx, directory, _) = self.services(now);
                directory.remove_domain(&mut cx, domain)
            }
            PeerUpdate::Supersedes { .. } => false,
        };
        self.out.counters.peer_updates_ignored += u64::from(!took_effect);
    }

    /// Logs out a local port whose name logged in elsewhere. Returns true if it was logged in.
    fn superseded(&mut self, now: Instant, id: FcId) -> bool {
        let logged_in = self.logins.contains(id);
        if logged_in {
            self.evict(now, id);
            self.addresses.hold(id, now + self.identity.r_a_tov);
        }
        logged_in
    }

    /// Applies an object of another switch. Returns true if something changed.
    fn remote_object(&mut self, now: Instant, entry: NsEntry) -> bool {
        let (id, name) = (entry.port_id, entry.port_name);
        let (mut cx, directory, _) = self.services(now);
        if !directory.accepts_remote(&cx, id) {
            return false;
        }
        match directory.objects.get(id) {
            Some(old) if old.entry == entry => return false,
            // The address was given to another port, and no removal of the old one was received.
            Some(old) if old.entry.port_name != name => _ = directory.remove_remote(&mut cx, id),
            _ => {}
        }
        directory.objects.remove_shadow(id);
        while let Some(other) = self.directory.objects.id_of(name).filter(|other| *other != id) {
            if self.directory.keeps_name(other, &entry) {
                let (mut cx, directory, _) = self.services(now);
                directory.remove_remote(&mut cx, id);
                directory.objects.shadow(entry);
                return true;
            }
            if !self.superseded(now, other) {
                self.evict(now, other);
            }
        }
        let (mut cx, directory, _) = self.services(now);
        directory.add_remote(&mut cx, entry);
        true
    }
}
