//! Part of a switch that its services share: [`Context`].

use super::identity::Identity;
use super::login_table::LoginTable;
use super::outbox::Outbox;
use sanloom_scsi::time::Instant;

/// Time of the input, read access to the own ports, and the queue for outputs.
pub(super) struct Context<'s> {
    pub(super) now: Instant,
    pub(super) identity: &'s Identity,
    pub(super) logins: &'s LoginTable,
    pub(super) out: &'s mut Outbox,
}
