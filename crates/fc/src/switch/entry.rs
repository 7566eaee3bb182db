//! Name-server object of one port: [`NsEntry`].

use super::names::port_number;
use crate::fabric::PortIdentity;
use sanloom_scsi::time::Instant;
use sanloom_wire::FcId;
use sanloom_wire::ns::NsRecord;
use std::ops::Deref;
use std::sync::Arc;

/// Object of the name server (FC-GS, name server) and the time of its login.
///
/// The switch at which the port is logged in creates and changes the object. Other switches of the
/// same process share it, so a fabric stores each object once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NsEntry {
    /// The object.
    pub record: Arc<NsRecord>,
    /// Time of the login. It decides which of two ports with the same name stays.
    /// [`Instant::ZERO`]: the login was at another switch.
    pub logged_in_at: Instant,
}

/// Maximum number of FC-4 descriptors stored per port.
pub const MAX_DESCRIPTORS: usize = 8;

impl Deref for NsEntry {
    type Target = NsRecord;
    fn deref(&self) -> &NsRecord {
        &self.record
    }
}

impl NsEntry {
    /// Object of a port that is logged in at another switch.
    pub fn remote(record: Arc<NsRecord>) -> NsEntry {
        NsEntry { record, logged_in_at: Instant::ZERO }
    }

    /// Identity that zone members are compared with.
    pub fn identity(&self) -> PortIdentity {
        identity(&self.record)
    }

    /// Key that orders ports with the same name by login time; never equal for two ports.
    pub(super) fn precedence(&self) -> (Instant, FcId) {
        (self.logged_in_at, self.port_id)
    }

    /// Returns true if the change from `self` to `new` affects discovery and therefore needs an
    /// RSCN. Changes of names alone do not.
    pub(super) fn differs_for_discovery(&self, new: &NsEntry) -> bool {
        let features = |entry: &NsEntry| entry.extra.as_ref().map(|e| e.features.clone()).unwrap_or_default();
        self.types != new.types
            || self.fcp_features != new.fcp_features
            || self.listed != new.listed
            || self.port_name != new.port_name
            || features(self) != features(new)
    }
}

/// Removes everything that the port registered; the attributes from its login stay.
pub(super) fn deregister(record: &mut NsRecord) {
    record.listed = false;
    record.types = [0; 8];
    record.fcp_features = 0;
    record.extra = None;
}

/// Identity that zone members are compared with. The switch port number is derived from the F_Port
/// name.
pub(crate) fn identity(record: &NsRecord) -> PortIdentity {
    PortIdentity {
        port_id: record.port_id,
        port_name: record.port_name,
        node_name: record.node_name,
        domain: record.port_id.domain(),
        port: port_number(record.fabric_port_name).unwrap_or(PortIdentity::NO_PORT),
    }
}
