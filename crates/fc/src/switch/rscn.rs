//! Recipients and timing of RSCNs: [`RscnQueue`].
//!
//! ```text
//!          page              window over           LS_ACC, LS_RJT
//!   quiet ------> window ------------------> sent ------------------> quiet, or window
//!                    ^                        |                       if pages were added
//!                    |                        | no reply: sent again,
//!                    +------ LS_RJT: busy ----+ with the pages added meanwhile
//! ```
//!
//! An RSCN without a reply is repeated after E_D_TOV, twice, and then every R_A_TOV while the port
//! is logged in. Otherwise a host that misses a change would miss a target permanently.
//!
//! A recipient has at most one RSCN in flight, so a recipient behind a slow link gets fewer and
//! longer ones. Pages for the same address are merged. More than [`MAX_PAGES`] pages are replaced
//! by one page of the smallest area, domain or fabric that contains them.

use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::FcId;
use sanloom_wire::els::{AddressFormat, Els, LsRjtReason, Rscn, RscnPage};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of pages in one RSCN; beyond that, one full discovery is cheaper for a host.
pub(super) const MAX_PAGES: usize = 32;
/// Attempts sent E_D_TOV apart; later attempts are R_A_TOV apart.
const QUICK_ATTEMPTS: u8 = 3;

/// Recipients of one switch and their deadlines.
#[derive(Debug)]
pub(super) struct RscnQueue {
    window: Span,
    e_d_tov: Span,
    r_a_tov: Span,
    recipients: BTreeMap<FcId, Recipient>,
    /// Ends of windows. All windows have the same length, so they expire in the order of insertion.
    windows: VecDeque<(Instant, FcId)>,
    /// Reply deadlines in the order of expiry: of the quick attempts, and of the later ones.
    replies: [VecDeque<(Instant, FcId, u16)>; 2],
    next_ox_id: u16,
}

#[derive(Debug)]
struct Recipient {
    interest: Interest,
    pages: Pages,
    window_ends: Option<Instant>,
    sent: Option<Sent>,
}

#[derive(Debug)]
struct Sent {
    ox_id: u16,
    attempt: u8,
    pages: Pages,
}

/// Kinds of changes that a port registered for with SCR (FC-LS, state change registration).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interest {
    /// Changes that the fabric detects.
    pub(super) fabric: bool,
    /// Changes that an N_Port reports.
    pub(super) n_port: bool,
}

impl Interest {
    /// Interest for an SCR function; `None` if the standard does not define it.
    pub(super) fn of_function(function: u8) -> Option<Interest> {
        match function {
            1 => Some(Interest { fabric: true, n_port: false }),
            2 => Some(Interest { fabric: false, n_port: true }),
            3 => Some(Interest { fabric: true, n_port: true }),
            _ => None,
        }
    }
}

/// RSCN to be sent.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) to: FcId,
    pub(super) ox_id: u16,
    pub(super) rscn: Rscn,
    /// True if an earlier attempt got no reply.
    pub(super) repeated: bool,
}

/// Outcome of a reply to a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// Accepted.
    Accepted,
    /// Rejected as busy: it is repeated after a window.
    Busy,
    /// Rejected for another reason: it is not repeated.
    Rejected,
    /// The reply matches no notification in flight.
    Unknown,
}

impl Reply {
    /// Classifies a reply.
    pub(super) fn of(reply: &Els) -> Reply {
        match reply {
            Els::LsRjt(reject) if reject.reason == LsRjtReason::LOGICAL_BUSY => Reply::Busy,
            Els::LsRjt(_) => Reply::Rejected,
            _ => Reply::Accepted,
        }
    }
}

impl RscnQueue {
    pub(super) fn new(window: Span, e_d_tov: Span, r_a_tov: Span) -> RscnQueue {
        RscnQueue {
            window,
            e_d_tov,
            r_a_tov,
            recipients: BTreeMap::new(),
            windows: VecDeque::new(),
            replies: [VecDeque::new(), VecDeque::new()],
            next_ox_id: FIRST_OX_ID,
        }
    }

    /// Registers a port or changes its interest.
    pub(super) fn register(&mut self, id: FcId, interest: Interest) {
        let quiet = || Recipient { interest, pages: Pages::default(), window_ends: None, sent: None };
        self.recipients.entry(id).or_insert_with(quiet).interest = interest;
    }

    /// Registered ports, sorted.
    pub(super) fn recipients(&self) -> impl ExactSizeIterator<Item = FcId> + '_ {
        self.recipients.keys().copied()
    }

    /// Removes a port and its pending pages.
    pub(super) fn deregister(&mut self, id: FcId) {
        self.recipients.remove(&id);
    }

    /// Adds a page for `changed` to the next RSCN of `id`. Returns true if `id` is registered for
    /// this kind of change.
    pub(super) fn notify(&mut self, now: Instant, id: FcId, changed: FcId, by_n_port: bool) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return false;
        };
        let registered = if by_n_port { recipient.interest.n_port } else { recipient.interest.fabric };
        if registered {
            recipient.pages.add(changed);
            self.open_window(now, id);
        }
        registered
    }

    /// Replaces the pages of the next RSCN of `id` by one for the whole fabric. Returns true if
    /// `id` is registered for changes that the fabric detects.
    pub(super) fn notify_of_all(&mut self, now: Instant, id: FcId) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id).filter(|recipient| recipient.interest.fabric) else {
            return false;
        };
        recipient.pages = Pages { ids: Vec::new(), all: Some((AddressFormat::Fabric, FcId::ZERO)) };
        self.open_window(now, id);
        true
    }

    /// Handles a reply of `id` to an RSCN.
    pub(super) fn reply(&mut self, now: Instant, id: FcId, ox_id: u16, reply: Reply) -> Reply {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return Reply::Unknown;
        };
        match recipient.sent.take_if(|sent| sent.ox_id == ox_id) {
            None => Reply::Unknown,
            Some(sent) => {
                if reply == Reply::Busy {
                    recipient.pages.merge(&sent.pages);
                }
                if !recipient.pages.is_empty() {
                    self.open_window(now, id);
                }
                reply
            }
        }
    }

    /// Returns the next RSCN that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Notification> {
        self.drop_expired();
        if let Some((_, id)) = pop_if(&mut self.windows, |(at, _)| *at <= now) {
            let recipient = self.recipients.get_mut(&id)?;
            recipient.window_ends = None;
            let pages = std::mem::take(&mut recipient.pages);
            return Some(self.send(now, id, pages, 1));
        }
        let overdue = |queue| pop_if(queue, |(at, _, _): &(Instant, FcId, u16)| *at <= now);
        let (_, id, _) = self.replies.iter_mut().find_map(overdue)?;
        let recipient = self.recipients.get_mut(&id)?;
        let sent = recipient.sent.take()?;
        let mut pages = std::mem::take(&mut recipient.pages);
        pages.merge(&sent.pages);
        Some(self.send(now, id, pages, sent.attempt.saturating_add(1)))
    }

    /// Earliest time at which [`due`](RscnQueue::due) has a result.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let window = self.windows.front().map(|(at, _)| *at);
        let replies = self.replies.iter().filter_map(|queue| queue.front());
        window.into_iter().chain(replies.map(|(at, _, _)| *at)).min()
    }

    /// Drops the deadlines at the front that no longer apply.
    pub(super) fn drop_expired(&mut self) {
        let recipients = &self.recipients;
        let over = |(at, id): &(Instant, FcId)| recipients.get(id).is_none_or(|r| r.window_ends != Some(*at));
        while pop_if(&mut self.windows, over).is_some() {}
        let over = |(_, id, ox_id): &(Instant, FcId, u16)| {
            let sent = recipients.get(id).and_then(|r| r.sent.as_ref());
            sent.is_none_or(|sent| sent.ox_id != *ox_id)
        };
        for queue in &mut self.replies {
            while pop_if(queue, over).is_some() {}
        }
    }

    fn open_window(&mut self, now: Instant, id: FcId) {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return;
        };
        if recipient.window_ends.is_none() && recipient.sent.is_none() {
            let ends = now + self.window;
            recipient.window_ends = Some(ends);
            self.windows.push_back((ends, id));
        }
    }

    /// Allocates the OX_ID of an exchange originated by the switch.
    pub(super) fn ox_id(&mut self) -> u16 {
        let ox_id = self.next_ox_id;
        self.next_ox_id = if ox_id == LAST_OX_ID { FIRST_OX_ID } else { ox_id + 1 };
        ox_id
    }

    fn send(&mut self, now: Instant, to: FcId, pages: Pages, attempt: u8) -> Notification {
        let ox_id = self.ox_id();
        let rscn = pages.to_rscn();
        if let Some(recipient) = self.recipients.get_mut(&to) {
            recipient.sent = Some(Sent { ox_id, attempt, pages });
            let (queue, timeout) = match attempt < QUICK_ATTEMPTS {
                true => (0, self.e_d_tov),
                false => (1, self.r_a_tov),
            };
            self.replies[queue].push_back((now + timeout, to, ox_id));
        }
        Notification { to, ox_id, rscn, repeated: attempt > 1 }
    }
}

/// Removes and returns the first item if the condition holds for it.
pub(super) fn pop_if<T>(queue: &mut VecDeque<T>, condition: impl Fn(&T) -> bool) -> Option<T> {
    queue.front().is_some_and(condition).then(|| queue.pop_front())?
}

/// First and last OX_ID of exchanges originated by the switch. FFFF is not a valid OX_ID.
const FIRST_OX_ID: u16 = 0x8000;
const LAST_OX_ID: u16 = 0xfffe;

/// Addresses to be reported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Pages {
    /// Sorted; at most [`MAX_PAGES`], and empty while `all` replaces them.
    ids: Vec<FcId>,
    all: Option<(AddressFormat, FcId)>,
}

impl Pages {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.all.is_none()
    }

    fn add(&mut self, id: FcId) {
        if let Some(all) = self.all {
            self.all = Some(widen(all, id));
            return;
        }
        let Err(at) = self.ids.binary_search(&id) else {
            return;
        };
        self.ids.insert(at, id);
        if self.ids.len() > MAX_PAGES {
            let port = (AddressFormat::Port, id);
            self.all = Some(self.ids.drain(..).fold(port, widen));
        }
    }

    fn merge(&mut self, other: &Pages) {
        other.ids.iter().for_each(|id| self.add(*id));
        if let Some((format, address)) = other.all {
            let ids = self.ids.drain(..);
            let all = ids.chain(self.all.map(|(_, address)| address)).fold((format, address), widen);
            let widest = self.all.map_or(format, |(own, _)| own).max(all.0);
            self.all = Some((widest, trim(widest, all.1)));
        }
    }

    fn to_rscn(&self) -> Rscn {
        let page = |(format, address)| RscnPage { qualifier: 0, format, address };
        let ports = self.ids.iter().map(|id| page((AddressFormat::Port, *id)));
        Rscn { pages: ports.chain(self.all.map(page)).collect() }
    }
}

/// Smallest scope that also contains `id`.
fn widen((format, address): (AddressFormat, FcId), id: FcId) -> (AddressFormat, FcId) {
    let needed = if id.domain() != address.domain() {
        AddressFormat::Fabric
    } else if id.area() != address.area() {
        AddressFormat::Domain
    } else if id.port() != address.port() {
        AddressFormat::Area
    } else {
        AddressFormat::Port
    };
    let format = format.max(needed);
    (format, trim(format, address))
}

/// Address with the parts below its format set to zero.
fn trim(format: AddressFormat, address: FcId) -> FcId {
    match format {
        AddressFormat::Port => address,
        AddressFormat::Area => FcId::from_parts(address.domain(), address.area(), 0),
        AddressFormat::Domain => FcId::from_parts(address.domain(), 0, 0),
        AddressFormat::Fabric => FcId::ZERO,
    }
}
