//! Owners of zone transactions: [`Caller`] decides whether a zone request may use the open
//! transaction of a switch, and ends transactions whose time is over.

use super::{SwitchZones, ZoneFabric, status};
use crate::control::{Answer, ErrorKind, RequestError, RequestUser, ZONE_TIMEOUT_S, ZoneAction, ZoneClient};
use crate::zoning::ZoneTransaction;
use sanloom_fc::zoning::Transaction;
use sanloom_scsi::time::Instant;
use std::collections::VecDeque;

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

    /// Session of the owner; `None` for the clients of the control socket.
    pub fn session(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| &*owner.session)
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

/// Maximum number of lost transactions of a switch that are remembered.
const MAX_LOST: usize = 64;

/// Transactions of a switch that have ended without a request of their owners, the latest 64.
#[derive(Debug, Default)]
pub struct LostTransactions {
    /// Sessions (`None` for the control socket) with the reasons, oldest first.
    list: VecDeque<(Option<String>, String)>,
}

impl LostTransactions {
    /// Adds a transaction. A session has one entry at most.
    pub fn add(&mut self, session: Option<&str>, reason: &str) {
        self.take(session);
        if self.list.len() >= MAX_LOST {
            self.list.pop_front();
        }
        self.list.push_back((session.map(str::to_owned), reason.to_owned()));
    }

    fn position(&self, session: Option<&str>) -> Option<usize> {
        self.list.iter().position(|(owner, _)| owner.as_deref() == session)
    }

    /// Reason for the end of the transaction of a session.
    pub fn reason(&self, session: Option<&str>) -> Option<&str> {
        self.position(session).map(|at| &*self.list[at].1)
    }

    /// Removes the transaction of a session, and returns the reason for its end.
    pub fn take(&mut self, session: Option<&str>) -> Option<String> {
        let at = self.position(session)?;
        self.list.remove(at).map(|(_, reason)| reason)
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
    /// `is_changing`: the switch commits a change, which keeps its transaction.
    ///
    /// # Errors
    /// The operation would change the transaction of another client, the transaction of the sender
    /// was lost, or the committed database has another checksum.
    pub fn enter(
        &self,
        fabric: &mut dyn ZoneFabric,
        switch: usize,
        action: &ZoneAction,
        is_changing: bool,
    ) -> Result<(), RequestError> {
        let committed = fabric.machine(switch).zone_database();
        let open = fabric.zones(switch).open.as_ref().filter(|_| !is_changing);
        let ends = open.and_then(|open| match open.timeout_ns() {
            Some(limit) if open.idle_ns(self.now) >= limit => {
                Some(format!("it was not used for {} s", limit / 1_000_000_000))
            }
            Some(_) if open.transaction.base() != committed => {
                Some("another user has changed the zones of the fabric".to_owned())
            }
            _ => None,
        });
        let checksum = format!("{:032x}", committed.checksum());
        let name = fabric.name(switch).to_owned();
        if let Some(reason) = ends {
            fabric.zones_mut(switch).lose(&reason);
            fabric.transaction_ended(switch);
        }
        if let Some(open) = &mut fabric.zones_mut(switch).open {
            let owner = open.owner.as_ref();
            let own = open.session() == self.session();
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
        let needs_edits =
            matches!(action, ZoneAction::Edit { .. } | ZoneAction::Commit | ZoneAction::EditAndCommit { .. });
        if needs_edits && let Some(reason) = fabric.zones_mut(switch).lost.take(self.session()) {
            return Err(RequestError::from(format!(
                "no transaction is open at {name}: that of this client has ended, because {reason}, and its edits \
                 are lost; read the zones, and repeat the edits"
            )));
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

    /// Status of the zones of a switch for the sender.
    pub fn shown(&self, fabric: &dyn ZoneFabric, switch: usize) -> Answer {
        let mut answer = status(fabric, switch, self.now);
        if let Answer::Zones(status) = &mut answer {
            status.lost = fabric.zones(switch).lost.reason(self.session()).map(str::to_owned);
        }
        answer
    }

    /// True if the sender sees the pending edits of a switch: its own, or on the control socket
    /// those of any client.
    pub fn sees_edits(&self, zones: &SwitchZones) -> bool {
        self.client.is_none() || zones.open.as_ref().is_some_and(|open| open.session() == self.session())
    }

    /// Discards the transaction of a switch. Returns false if none is open, and the sender has not
    /// lost one. `by`: the user of the request.
    pub fn abort(&self, zones: &mut SwitchZones, by: Option<&RequestUser>) -> bool {
        // A surface passes the abort of an administrator on as one of the control socket, with the
        // user. The clients of the control socket then learn of it.
        let is_passed_on = self.client.is_none() && by.is_some();
        let was_lost = !is_passed_on && zones.lost.take(self.session()).is_some();
        match &zones.open {
            None => return was_lost,
            Some(open) if !is_passed_on && open.session() == self.session() => zones.open = None,
            Some(_) => {
                let by = by.map(|by| format!("the user {} of {}", by.user, by.interface));
                zones.lose(&format!("{} has aborted it", by.as_deref().unwrap_or("a user of the control socket")));
            }
        }
        true
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

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_fc::config::ZoneLimits;
    use sanloom_fc::zoning::ZoneDatabase;

    #[test]
    fn an_abort_over_http_leaves_the_control_socket_its_reason() {
        let caller = || Caller { client: None, checksum: None, now: Instant::ZERO };
        let jane = RequestUser { user: "jane".to_owned(), interface: "HTTP".to_owned() };
        let mut zones = SwitchZones::default();
        let open = |zones: &mut SwitchZones| {
            caller().keep(zones, Transaction::begin(&ZoneDatabase::default(), ZoneLimits::default()));
        };
        open(&mut zones);
        assert!(caller().abort(&mut zones, Some(&jane)) && zones.open.is_none());
        assert_eq!(zones.lost.reason(None), Some("the user jane of HTTP has aborted it"));
        // A second abort over HTTP has nothing to end, and does not hide the reason.
        assert!(!caller().abort(&mut zones, Some(&jane)));
        assert!(zones.lost.reason(None).is_some());
        // An abort of the control socket acknowledges the loss, and its own abort is no loss.
        assert!(caller().abort(&mut zones, None));
        open(&mut zones);
        assert!(caller().abort(&mut zones, None) && zones.open.is_none());
        assert_eq!(zones.lost.reason(None), None);
    }
}
