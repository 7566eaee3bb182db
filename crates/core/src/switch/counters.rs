//! What a switch counts.

/// Events since the switch began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// FLOGIs accepted.
    pub fabric_logins: u64,
    /// FDISCs accepted.
    pub virtual_logins: u64,
    /// FLOGIs and FDISCs rejected.
    pub logins_rejected: u64,
    /// Of these, because as many are logged in as may be, or no address is free.
    pub login_limits: u64,
    /// Of those at a limit, because as many are logged in at the port as may be.
    pub port_limits: u64,
    /// Of those at a limit, because as many are logged in at the switch as may be.
    pub switch_limits: u64,
    /// Of the logins rejected, because another port has the name, or the login has none.
    pub names_rejected: u64,
    /// FLOGIs that came before the switch had a domain, repetitions included.
    pub logins_held: u64,
    /// LOGOs accepted by the F_Port.
    pub logouts: u64,
    /// Addresses taken away without a LOGO: port down, repeated login, name used elsewhere.
    pub implicit_logouts: u64,
    /// Logins with a port name that another port had.
    pub duplicate_names: u64,
    /// Ports that took no more logins because of one.
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
    /// Pages in them.
    pub rscn_pages: u64,
    /// Of these, repetitions, because the answer did not come in time.
    pub rscn_repeated: u64,
    /// RSCNs that the recipient rejected.
    pub rscn_rejected: u64,
    /// Link incidents of the switch's ports.
    pub link_incidents: u64,
    /// Reports of link incidents sent, repetitions included.
    pub incident_reports_sent: u64,
    /// Reports that nobody answered, or that gave way to later ones.
    pub incident_reports_lost: u64,
    /// Frames to a service that no service understands, or from an unknown sender.
    pub frames_discarded: u64,
    /// Updates received from other switches.
    pub peer_updates: u64,
    /// Of these, without effect: nothing new, out of date, or of an unreachable domain.
    pub peer_updates_ignored: u64,
}

/// Logins that were rejected, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoginRejects {
    /// As many are logged in at the port as may be.
    pub port_limit: u64,
    /// As many are logged in at the switch as may be.
    pub switch_limit: u64,
    /// No address of the port's area, or of the domain, is free.
    pub no_address: u64,
    /// Another port has the name, or there is none.
    pub name: u64,
    /// Anything else that is wrong with the request.
    pub other: u64,
}

impl LoginRejects {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.port_limit + self.switch_limit + self.no_address + self.name + self.other
    }

    /// Together with what was counted elsewhere.
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
    /// Logins that were rejected, by reason.
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

/// Work done since the switch began, for a driver that gives the switch a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Zone members looked at to find the zone-mates of a port.
    pub zone_members: u64,
    /// Objects of the name server looked at.
    pub objects: u64,
    /// Of the name server's objects, those looked at for a port name that is in use.
    pub names_searched: u64,
    /// Zone comparisons between N_Port_IDs of two ports of this switch ([`super::HardZoning::Standard`], `Modified`). What
    /// document 000 counts; it leaves out those with the storage port, see [`super::Switch::comparisons_with`].
    pub comparisons: u64,
    /// The same between N_Port_IDs of one port.
    pub own_port_comparisons: u64,
    /// The same with N_Port_IDs of other switches.
    pub remote_comparisons: u64,
    /// Entries that a logout took away although [`super::HardZoning::Modified`], as document 000 has it, would leave them.
    pub gap_entries: u64,
    /// Permissions put into or taken out of the forwarding table.
    pub permissions: u64,
    /// RSCN pages noted for a recipient.
    pub notifications: u64,
}

impl Work {
    /// What was done since `before`.
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
