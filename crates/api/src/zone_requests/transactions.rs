//! Owners of zone transactions: [`Caller`] decides whether a zone request may use the open
//! transaction of a switch, and ends transactions whose time is over.

use super::{SwitchZones, ZoneFabric};
use crate::control::{ErrorKind, RequestError, RequestUser, ZONE_TIMEOUT_S, ZoneAction, ZoneClient};
use crate::zoning::ZoneTransaction;
use sanloom_fc::zoning::Transaction;
use sanloom_scsi::time::Instant;

/// Uncommitted edits of a switch, with their owner.
#[derive(Debug)]
pub struct OpenTransaction {
    /// The edits.
    pub transaction: Transaction,
    /// Number since the start of the switch, from 1.
    token: u32,
    /// The client that owns it; `None` for the clients of the control socket.
    owner: Option<ZoneClient>,
    /// Last request of the owner.
    used: Instant,
}

impl OpenTransaction {
    /// Time in nanoseconds after the owner's last request at which the transaction ends.
    fn timeout_ns(&self) -> Option<u64> {
        let owner = self.owner.as_ref()?;
        Some(u64::from(owner.timeout_s.unwrap_or(ZONE_TIMEOUT_S)) * 1_000_000_000)
    }

    fn idle_ns(&self, now: Instant) -> u64 {
        now.as_ns().saturating_sub(self.used.as_ns())
    }

    /// Description for an answer.
    pub fn shown(&self, now: Instant, database_bytes: u64) -> ZoneTransaction {
        let seconds = |ns: u64| u32::try_from(ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
        ZoneTransaction {
            token: self.token,
            owner: self.owner.clone(),
            timeout_s: self.timeout_ns().map(seconds),
            remaining_s: self.timeout_ns().map(|limit| seconds(limit.saturating_sub(self.idle_ns(now)))),
            database_bytes,
        }
    }
}

/// The sender of a zone request.
#[derive(Debug)]
pub struct Caller {
    client: Option<ZoneClient>,
    checksum: Option<String>,
    /// Time of the request.
    pub now: Instant,
}

impl Caller {
    /// Separates the sender of a request from its operation.
    ///
    /// # Errors
    /// The client has no session.
    pub fn of(action: ZoneAction, now: Instant) -> Result<(Caller, ZoneAction), String> {
        match action {
            ZoneAction::As { client, .. } if client.session.is_empty() => {
                Err("the client of a zone request has no session; name one in `session`".to_owned())
            }
            ZoneAction::As { client, checksum, action } => {
                Ok((Caller { client: Some(client), checksum, now }, *action))
            }
            action => Ok((Caller { client: None, checksum: None, now }, action)),
        }
    }

    /// The client for the event log, if the request names one.
    pub fn user(&self) -> Option<RequestUser> {
        let ZoneClient { user, interface, .. } = self.client.as_ref()?;
        Some(RequestUser { user: user.clone(), interface: interface.clone() })
    }

    fn session(&self) -> Option<&str> {
        self.client.as_ref().map(|client| &*client.session)
    }

    /// Ends the transaction of a switch if its time is over, and renews it if the sender owns it.
    ///
    /// # Errors
    /// The operation would change the transaction of another client, or the committed database has
    /// another checksum.
    pub fn enter(&self, fabric: &mut dyn ZoneFabric, switch: usize, action: &ZoneAction) -> Result<(), RequestError> {
        let committed = fabric.machine(switch).zone_database();
        let ends = fabric.zones(switch).open.as_ref().is_some_and(|open| {
            let late = open.timeout_ns().is_some_and(|limit| open.idle_ns(self.now) >= limit);
            late || open.owner.is_some() && open.transaction.base() != committed
        });
        let checksum = format!("{:032x}", committed.checksum());
        let name = fabric.name(switch).to_owned();
        if ends {
            fabric.zones_mut(switch).open = None;
            fabric.transaction_ended(switch);
        }
        if let Some(open) = &mut fabric.zones_mut(switch).open {
            let owner = open.owner.as_ref();
            let own = owner.map(|owner| &*owner.session) == self.session();
            let allowed = match action {
                ZoneAction::Show | ZoneAction::Preview { .. } => true,
                // An administrator of the instance may end any transaction.
                ZoneAction::Abort => self.client.is_none(),
                _ => false,
            };
            if own {
                open.used = self.now;
            } else if !allowed {
                let by = match owner {
                    Some(owner) => format!("the user {} of {}", owner.user, owner.interface),
                    None => "the control socket".to_owned(),
                };
                let reason = format!(
                    "an outstanding transaction of {by} is open at {name}; wait for its end, or end it with \
                     `sanloom zone abort`"
                );
                return Err(RequestError { reason, kind: ErrorKind::Transaction });
            }
        }
        match &self.checksum {
            Some(expected) if !expected.eq_ignore_ascii_case(&checksum) => {
                let reason =
                    format!("the checksum {expected} is not that of the zone database of {name}; read the zones again");
                Err(reason.into())
            }
            _ => Ok(()),
        }
    }

    /// Stores the edited transaction of a switch. A new transaction belongs to the sender.
    pub fn keep(&self, zones: &mut SwitchZones, transaction: Transaction) {
        match &mut zones.open {
            Some(open) => open.transaction = transaction,
            None => {
                zones.transactions = zones.transactions.wrapping_add(1).max(1);
                let token = zones.transactions;
                zones.open = Some(OpenTransaction { transaction, token, owner: self.client.clone(), used: self.now });
            }
        }
    }
}
