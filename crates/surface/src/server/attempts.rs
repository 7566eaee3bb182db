//! Limits of logins: wrong passwords by address, right ones that are remembered, and the queue of
//! passwords that are hashed. See [`Users`](super::users::Users).

use super::users::Role;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Number of wrong passwords of an address within [`WINDOW`] after which it is refused.
pub(super) const MAX_FAILURES: u32 = 10;
/// Period over which wrong passwords are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses whose failures are counted.
const MAX_COUNTED: usize = 1_024;
/// Time for which a password that was right is not hashed again.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Maximum number of remembered passwords.
const MAX_REMEMBERED: usize = 32;
/// Maximum number of passwords that are hashed or wait for it, once there are [`MAX_FAILURES`]
/// wrong ones. Each occupies a thread of a server, and the other threads go on to serve clients
/// that have logged in.
pub(super) const MAX_WAITING: usize = super::workers::THREADS - 1;
/// Maximum number of addresses that are known for a right password.
pub(super) const MAX_PROVEN: usize = 64;
/// State of the limits.
#[derive(Default)]
pub(super) struct Guard {
    /// Wrong passwords of the last minute, by [`site`].
    pub(super) failures: BTreeMap<IpAddr, (Instant, u32)>,
    /// Passwords that are hashed or wait for it, by [`network`].
    pub(super) waiting: BTreeMap<IpAddr, usize>,
    /// Places that have sent a right password, by [`site`], the last one at the end.
    pub(super) proven: VecDeque<IpAddr>,
    remembered: Vec<Remembered>,
}

struct Remembered {
    fingerprint: [u8; 32],
    at: Instant,
    role: Role,
}

/// A place in the queue of the passwords that are hashed.
pub(super) struct Waiting<'a> {
    guard: &'a Mutex<Guard>,
    network: IpAddr,
}

impl Waiting<'_> {
    /// Takes a place. During a flood of wrong passwords there are [`MAX_WAITING`], and one for each
    /// network; an address that has sent a right password needs none of them. Returns `None` if
    /// there is no place.
    pub(super) fn enter(guard: &Mutex<Guard>, from: IpAddr) -> Option<Waiting<'_>> {
        let network = network(from);
        let mut entered = guard.lock().unwrap_or_else(PoisonError::into_inner);
        if entered.is_flooded() {
            let own = entered.waiting.get(&network).copied().unwrap_or_default();
            let is_full = entered.waiting.values().sum::<usize>() >= MAX_WAITING;
            if own > 0 || is_full && !entered.proven.contains(&site(from)) {
                return None;
            }
        }
        *entered.waiting.entry(network).or_default() += 1;
        Some(Waiting { guard, network })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = guard.waiting.entry(self.network) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// Key by which wrong passwords are counted: an address of IPv4, and the network of 64 bits of
/// IPv6, in which a client may take any address (RFC 4291, section 2.5.4).
fn site(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// Key of the queue of passwords: an address of IPv4, and the network of 48 bits of IPv6. A site
/// usually has all 65,536 networks of 64 bits in one (RFC 6177), so that a client can take a new
/// one for each password.
fn network(from: IpAddr) -> IpAddr {
    match site(from) {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
        address => address,
    }
}

impl Guard {
    /// Notes that a right password came from an address.
    pub(super) fn prove(&mut self, from: IpAddr) {
        let from = site(from);
        self.proven.retain(|known| *known != from);
        if self.proven.len() >= MAX_PROVEN {
            self.proven.pop_front();
        }
        self.proven.push_back(from);
    }

    pub(super) fn recall(&mut self, fingerprint: &[u8; 32]) -> Option<Role> {
        self.remembered.retain(|entry| entry.at.elapsed() < REMEMBERED);
        let mut found = None;
        for entry in &self.remembered {
            if bool::from(entry.fingerprint.ct_eq(fingerprint)) {
                found = Some(entry.role);
            }
        }
        found
    }

    /// Forgets the passwords that were right, after a change of the users.
    pub(super) fn forget(&mut self) {
        self.remembered.clear();
    }

    pub(super) fn remember(&mut self, fingerprint: [u8; 32], role: Role) {
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.remove(0);
        }
        self.remembered.push(Remembered { fingerprint, at: Instant::now(), role });
    }

    pub(super) fn is_blocked(&mut self, from: IpAddr) -> bool {
        self.failures.retain(|_, (since, _)| since.elapsed() < WINDOW);
        self.failures.get(&site(from)).is_some_and(|(_, count)| *count >= MAX_FAILURES)
    }

    /// True if all addresses together have sent as many wrong passwords as one may.
    fn is_flooded(&mut self) -> bool {
        self.failures.retain(|_, (since, _)| since.elapsed() < WINDOW);
        self.failures.values().map(|(_, count)| count).sum::<u32>() >= MAX_FAILURES
    }

    pub(super) fn count_failure(&mut self, from: IpAddr) {
        let from = site(from);
        if self.failures.len() >= MAX_COUNTED && !self.failures.contains_key(&from) {
            let oldest = self.failures.iter().min_by_key(|(_, (since, _))| *since).map(|(address, _)| *address);
            oldest.map(|address| self.failures.remove(&address));
        }
        self.failures.entry(from).or_insert_with(|| (Instant::now(), 0)).1 += 1;
    }
}
