//! Counters of a switch.

/// Counts of events since the switch started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// FLOGIs accepted.
    pub fabric_logins: u64,
    /// FDISCs accepted.
    pub virtual_logins: u64,
    /// FLOGIs and FDISCs rejected.
    pub logins_rejected: u64,
    /// Logins rejected because a login limit was reached or no address was free; part of
    /// `logins_rejected`.
    pub login_limits: u64,
    /// Logins rejected by the limit per port; part of `login_limits`.
    pub port_limits: u64,
    /// Logins rejected by the limit per switch; part of `login_limits`.
    pub switch_limits: u64,
    /// Logins rejected because the port name was in use or zero; part of `logins_rejected`.
    pub names_rejected: u64,
    /// FLOGIs received before the switch had a domain, repetitions included.
    pub logins_held: u64,
    /// LOGOs accepted by the F_Port.
    pub logouts: u64,
    /// Addresses released without a LOGO: port down, repeated login, or name in use elsewhere.
    pub implicit_logouts: u64,
    /// Logins with a port name that another port was using.
    pub duplicate_names: u64,
    /// Ports blocked after a duplicate name
    /// ([`DuplicateNames::Block`](super::DuplicateNames::Block)).
    pub ports_blocked: u64,
    /// Other extended link services accepted.
    pub els_accepted: u64,
    /// Other extended link services rejected.
    pub els_rejected: u64,
    /// CT requests accepted.
    pub ct_accepted: u64,
    /// CT requests rejected.
    pub ct_rejected: u64,
    /// RSCNs sent, repetitions included.
    pub rscn_sent: u64,
    /// Pages in the RSCNs sent.
    pub rscn_pages: u64,
    /// RSCNs repeated because no reply arrived in time; part of `rscn_sent`.
    pub rscn_repeated: u64,
    /// RSCNs that the recipient rejected.
    pub rscn_rejected: u64,
    /// Link incidents of the switch's ports.
    pub link_incidents: u64,
    /// Reports of link incidents sent, repetitions included.
    pub incident_reports_sent: u64,
    /// Incident reports that got no reply or were replaced by later ones.
    pub incident_reports_lost: u64,
    /// Frames with a payload that the addressed service does not support, or from an unknown
    /// sender.
    pub frames_discarded: u64,
    /// Updates received from other switches.
    pub peer_updates: u64,
    /// Peer updates without effect: nothing new, out of date, or for an unreachable domain.
    pub peer_updates_ignored: u64,
}

/// Rejected logins by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoginRejects {
    /// The limit of logins per port was reached.
    pub port_limit: u64,
    /// The limit of logins per switch was reached.
    pub switch_limit: u64,
    /// No address of the port's area, or of the domain, is free.
    pub no_address: u64,
    /// The port name is zero or in use by another port.
    pub name: u64,
    /// Any other error in the request.
    pub other: u64,
}

impl LoginRejects {
    /// Sum over all reasons.
    pub fn total(&self) -> u64 {
        self.port_limit + self.switch_limit + self.no_address + self.name + self.other
    }

    /// Adds the counts of another switch or interval.
    pub fn plus(&self, more: LoginRejects) -> LoginRejects {
        LoginRejects {
            port_limit: self.port_limit + more.port_limit,
            switch_limit: self.switch_limit + more.switch_limit,
            no_address: self.no_address + more.no_address,
            name: self.name + more.name,
            other: self.other + more.other,
        }
    }
}

impl Counters {
    /// Rejected logins by reason.
    pub fn login_rejects(&self) -> LoginRejects {
        LoginRejects {
            port_limit: self.port_limits,
            switch_limit: self.switch_limits,
            no_address: self.login_limits - self.port_limits - self.switch_limits,
            name: self.names_rejected,
            other: self.logins_rejected - self.login_limits - self.names_rejected,
        }
    }
}

/// Work units since the switch started, for a driver that models the switch's processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Zone members examined to find the zone-mates of a port.
    pub zone_members: u64,
    /// Name-server objects examined.
    pub objects: u64,
    /// Name-server objects examined in searches for a port name in use.
    pub names_searched: u64,
    /// Zone comparisons between N_Port_IDs of two ports of this switch
    /// ([`super::HardZoning::Standard`], `Modified`).
    ///
    /// The NPIV paper counts these, except the comparisons with the storage port; for those see
    /// [`super::Switch::comparisons_with`].
    pub comparisons: u64,
    /// Zone comparisons between N_Port_IDs of one port.
    pub own_port_comparisons: u64,
    /// Zone comparisons with N_Port_IDs of other switches.
    pub remote_comparisons: u64,
    /// Entries removed by a logout that the algorithm of the NPIV paper
    /// ([`super::HardZoning::Modified`]) would leave in place.
    pub gap_entries: u64,
    /// Permissions added to or removed from the forwarding table.
    pub permissions: u64,
    /// RSCN pages queued, counted once per recipient.
    pub notifications: u64,
}

impl Work {
    /// Work done since `before`.
    pub fn since(&self, before: Work) -> Work {
        Work {
            zone_members: self.zone_members - before.zone_members,
            objects: self.objects - before.objects,
            names_searched: self.names_searched - before.names_searched,
            comparisons: self.comparisons - before.comparisons,
            own_port_comparisons: self.own_port_comparisons - before.own_port_comparisons,
            remote_comparisons: self.remote_comparisons - before.remote_comparisons,
            gap_entries: self.gap_entries - before.gap_entries,
            permissions: self.permissions - before.permissions,
            notifications: self.notifications - before.notifications,
        }
    }
}
