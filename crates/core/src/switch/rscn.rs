//! Who hears of state changes, and when: [`RscnQueue`].
//!
//! ```text
//!             page                 window over            LS_ACC, LS_RJT
//!   quiet ------------> window ------------------> sent ------------------> quiet, or window if pages came meanwhile
//!                          ^                        |
//!                          |                        | no answer: again, with what came meanwhile
//!                          +------ LS_RJT: busy ----+
//! ```
//!
//! An RSCN without an answer is sent again after E_D_TOV, twice, and then every R_A_TOV for as long as the port is logged
//! in: a host that never hears of a change would miss a target for good.
//!
//! A recipient has at most one RSCN on its way, so one behind a slow link gets fewer and longer ones. Pages for the same
//! address are one page; more than [`MAX_PAGES`] become one page of the smallest area, domain or fabric that holds them.

use crate::time::{Instant, Span};
use sanloom_wire::FcId;
use sanloom_wire::els::{AddressFormat, Els, LsRjtReason, Rscn, RscnPage};
use std::collections::{BTreeMap, VecDeque};

/// Pages of one RSCN; with more, a host is better off asking for everything.
pub(super) const MAX_PAGES: usize = 32;
/// So often an RSCN is sent E_D_TOV apart; after that R_A_TOV apart.
const QUICK_ATTEMPTS: u8 = 3;

/// The recipients of one switch and their deadlines.
#[derive(Debug)]
pub(super) struct RscnQueue {
    window: Span,
    e_d_tov: Span,
    r_a_tov: Span,
    recipients: BTreeMap<FcId, Recipient>,
    /// Ends of windows; all windows are equally long, so they end in the order they began.
    windows: VecDeque<(Instant, FcId)>,
    /// Latest times of answers to quick attempts, likewise, and to the later ones.
    answers: [VecDeque<(Instant, FcId, u16)>; 2],
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

/// What a port registered for with SCR (FC-LS, state change registration).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interest {
    /// Changes that the fabric detects.
    pub(super) fabric: bool,
    /// Changes that an N_Port reports.
    pub(super) n_port: bool,
}

impl Interest {
    /// By function of SCR, nothing for one that the standard does not know.
    pub(super) fn of_function(function: u8) -> Option<Interest> {
        match function {
            1 => Some(Interest { fabric: true, n_port: false }),
            2 => Some(Interest { fabric: false, n_port: true }),
            3 => Some(Interest { fabric: true, n_port: true }),
            _ => None,
        }
    }
}

/// An RSCN to be sent.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) to: FcId,
    pub(super) ox_id: u16,
    pub(super) rscn: Rscn,
    /// It was sent before without an answer.
    pub(super) repeated: bool,
}

/// How a reply of a recipient ended a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// Accepted.
    Accepted,
    /// Rejected as busy: it comes again after a window.
    Busy,
    /// Rejected otherwise: it does not come again.
    Rejected,
    /// No such notification is on its way.
    Unknown,
}

impl Ended {
    /// By the reply that came.
    pub(super) fn of(reply: &Els) -> Ended {
        match reply {
            Els::LsRjt(reject) if reject.reason == LsRjtReason::LOGICAL_BUSY => Ended::Busy,
            Els::LsRjt(_) => Ended::Rejected,
            _ => Ended::Accepted,
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
            answers: [VecDeque::new(), VecDeque::new()],
            next_ox_id: FIRST_OX_ID,
        }
    }

    /// Registers a port, or changes what it registered for.
    pub(super) fn register(&mut self, id: FcId, interest: Interest) {
        let quiet = || Recipient { interest, pages: Pages::default(), window_ends: None, sent: None };
        self.recipients.entry(id).or_insert_with(quiet).interest = interest;
    }

    /// Ports that registered, sorted.
    pub(super) fn recipients(&self) -> impl ExactSizeIterator<Item = FcId> + '_ {
        self.recipients.keys().copied()
    }

    /// Forgets a port and what it was to be told.
    pub(super) fn forget(&mut self, id: FcId) {
        self.recipients.remove(&id);
    }

    /// Notes that `id`, if registered for the kind of change, is to be told of `changed`. True if it is.
    pub(super) fn notify(&mut self, now: Instant, id: FcId, changed: FcId, by_n_port: bool) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return false;
        };
        let wanted = if by_n_port { recipient.interest.n_port } else { recipient.interest.fabric };
        if wanted {
            recipient.pages.add(changed);
            self.open_window(now, id);
        }
        wanted
    }

    /// Notes that `id`, if registered for changes that the fabric detects, is to be told that anything may have changed.
    pub(super) fn notify_of_all(&mut self, now: Instant, id: FcId) -> bool {
        let Some(recipient) = self.recipients.get_mut(&id).filter(|recipient| recipient.interest.fabric) else {
            return false;
        };
        recipient.pages = Pages { ids: Vec::new(), all: Some((AddressFormat::Fabric, FcId::ZERO)) };
        self.open_window(now, id);
        true
    }

    /// A reply to an RSCN came from `id`.
    pub(super) fn answered(&mut self, now: Instant, id: FcId, ox_id: u16, reply: Ended) -> Ended {
        let Some(recipient) = self.recipients.get_mut(&id) else {
            return Ended::Unknown;
        };
        match recipient.sent.take_if(|sent| sent.ox_id == ox_id) {
            None => Ended::Unknown,
            Some(sent) => {
                if reply == Ended::Busy {
                    recipient.pages.merge(&sent.pages);
                }
                if !recipient.pages.is_empty() {
                    self.open_window(now, id);
                }
                reply
            }
        }
    }

    /// An RSCN whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Notification> {
        self.tidy();
        if let Some((_, id)) = pop_if(&mut self.windows, |(at, _)| *at <= now) {
            let recipient = self.recipients.get_mut(&id)?;
            recipient.window_ends = None;
            let pages = std::mem::take(&mut recipient.pages);
            return Some(self.send(now, id, pages, 1));
        }
        let overdue = |queue| pop_if(queue, |(at, _, _): &(Instant, FcId, u16)| *at <= now);
        let (_, id, _) = self.answers.iter_mut().find_map(overdue)?;
        let recipient = self.recipients.get_mut(&id)?;
        let sent = recipient.sent.take()?;
        let mut pages = std::mem::take(&mut recipient.pages);
        pages.merge(&sent.pages);
        Some(self.send(now, id, pages, sent.attempt.saturating_add(1)))
    }

    /// When [`due`](RscnQueue::due) has something.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let window = self.windows.front().map(|(at, _)| *at);
        let answers = self.answers.iter().filter_map(|queue| queue.front());
        window.into_iter().chain(answers.map(|(at, _, _)| *at)).min()
    }

    /// Drops deadlines in front that nobody waits for any more.
    pub(super) fn tidy(&mut self) {
        let recipients = &self.recipients;
        let over = |(at, id): &(Instant, FcId)| recipients.get(id).is_none_or(|r| r.window_ends != Some(*at));
        while pop_if(&mut self.windows, over).is_some() {}
        let over = |(_, id, ox_id): &(Instant, FcId, u16)| {
            let sent = recipients.get(id).and_then(|r| r.sent.as_ref());
            sent.is_none_or(|sent| sent.ox_id != *ox_id)
        };
        for queue in &mut self.answers {
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

    /// Number of an exchange that the switch originates.
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
            self.answers[queue].push_back((now + timeout, to, ox_id));
        }
        Notification { to, ox_id, rscn, repeated: attempt > 1 }
    }
}

pub(super) fn pop_if<T>(queue: &mut VecDeque<T>, wanted: impl Fn(&T) -> bool) -> Option<T> {
    queue.front().is_some_and(wanted).then(|| queue.pop_front())?
}

/// Exchanges that the switch originates. FFFF is not a number.
const FIRST_OX_ID: u16 = 0x8000;
const LAST_OX_ID: u16 = 0xfffe;

/// Addresses to be reported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Pages {
    /// Sorted; at most [`MAX_PAGES`], and empty when `all` stands for them.
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
            let widest = self.all.map_or(format, |(mine, _)| mine).max(all.0);
            self.all = Some((widest, trim(widest, all.1)));
        }
    }

    fn to_rscn(&self) -> Rscn {
        let page = |(format, address)| RscnPage { qualifier: 0, format, address };
        let ports = self.ids.iter().map(|id| page((AddressFormat::Port, *id)));
        Rscn { pages: ports.chain(self.all.map(page)).collect() }
    }
}

/// The smallest scope that also holds `id`.
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

/// The address with the parts below its format zero.
fn trim(format: AddressFormat, address: FcId) -> FcId {
    match format {
        AddressFormat::Port => address,
        AddressFormat::Area => FcId::from_parts(address.domain(), address.area(), 0),
        AddressFormat::Domain => FcId::from_parts(address.domain(), 0, 0),
        AddressFormat::Fabric => FcId::ZERO,
    }
}
