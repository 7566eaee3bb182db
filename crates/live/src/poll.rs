//! Waiting for descriptors: [`Poller`], an epoll instance that stores its registrations.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::thread;
use std::time::{Duration, Instant};

/// Readiness for which a descriptor is registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    /// Wait until the descriptor is readable.
    pub read: bool,
    /// Wait until the descriptor is writable.
    pub write: bool,
}

/// Readiness event of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happened {
    /// Token passed to [`Poller::set`].
    pub token: u64,
    /// Readable, or the peer is gone.
    pub readable: bool,
    /// Writable, or the peer is gone.
    pub writable: bool,
}

/// Level-triggered epoll instance.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// Descriptor and interest of each token.
    known: BTreeMap<u64, (RawFd, Interest)>,
    happened: Vec<Happened>,
}

impl Poller {
    /// Creates a poller without registrations.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, known: BTreeMap::new(), happened: Vec::new() })
    }

    /// Sets the descriptor and interest of a token. A token whose descriptor was closed can be
    /// registered again with another one.
    ///
    /// # Errors
    /// When epoll does not support the descriptor.
    pub fn set(&mut self, token: u64, descriptor: Option<BorrowedFd<'_>>, interest: Interest) -> io::Result<()> {
        let Some(descriptor) = descriptor else {
            // The kernel has already removed the closed descriptor.
            self.known.remove(&token);
            return Ok(());
        };
        let wanted = (descriptor.as_raw_fd(), interest);
        if self.known.get(&token) == Some(&wanted) {
            return Ok(());
        }
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, interest.read);
        flags.set(EventFlags::OUT, interest.write);
        let data = EventData::new_u64(token);
        let outcome = match epoll::modify(&self.epoll, descriptor, data, flags) {
            Err(rustix::io::Errno::NOENT) => epoll::add(&self.epoll, descriptor, data, flags),
            other => other,
        };
        // Register only what the kernel has accepted, so that a call after an error tries again.
        match outcome {
            Ok(()) => _ = self.known.insert(token, wanted),
            Err(_) => _ = self.known.remove(&token),
        }
        Ok(outcome?)
    }

    /// Removes a descriptor from the poller, so that not even a hang-up is reported.
    pub fn remove(&mut self, token: u64, descriptor: BorrowedFd<'_>) {
        if self.known.remove(&token).is_some() {
            // The kernel may not know the descriptor, because it may have been closed and opened
            // again.
            let _ = epoll::delete(&self.epoll, descriptor);
        }
    }

    /// Discards the registration of a token whose descriptor was closed. Another descriptor may
    /// reuse its number.
    pub fn forget(&mut self, token: u64) {
        self.known.remove(&token);
    }

    /// Waits as [`wait`](Self::wait) does. With `light`, the event may arrive soon, so polling
    /// without sleep comes first.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll(&mut self, polling: &mut Polling, light: bool, timeout: Duration) -> io::Result<&[Happened]> {
        if !light || timeout.is_zero() {
            return self.wait(timeout);
        }
        let begun = Instant::now();
        while begun.elapsed() < polling.next {
            if !self.wait(Duration::ZERO)?.is_empty() {
                break;
            }
            thread::yield_now();
        }
        if self.happened.is_empty() {
            self.wait(timeout)?;
        }
        polling.learn(begun.elapsed());
        Ok(&self.happened)
    }

    /// Waits at most `timeout` and returns the events.
    ///
    /// # Errors
    /// Errors of `epoll_wait`, except interruption by a signal.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<&[Happened]> {
        self.happened.clear();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; 64];
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let events = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(&[]),
            Err(error) => return Err(error.into()),
        };
        self.happened.extend(events.iter().map(|event| {
            // Copied because the kernel's struct is packed.
            let (flags, data) = (event.flags, event.data);
            let gone = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Happened {
                token: data.u64(),
                readable: gone || flags.contains(EventFlags::IN),
                writable: gone || flags.contains(EventFlags::OUT),
            }
        }));
        Ok(&self.happened)
    }
}

/// Maximum time of polling without sleep. A longer wait does not justify occupying a processor.
const MOST_POLLING: Duration = Duration::from_micros(50);

/// Adaptive time of polling before the thread sleeps, because a wake-up takes as long as a small
/// request. A wait longer than 50 µs halves it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polling {
    next: Duration,
}

impl Polling {
    /// Adjusts the polling time after an event that arrived after `waited`.
    fn learn(&mut self, waited: Duration) {
        self.next = if waited <= MOST_POLLING { MOST_POLLING } else { self.next / 2 };
    }
}

impl AsFd for Poller {
    /// Readable when [`Poller::wait`] would return at once, so pollers can be nested.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_lasts_as_long_as_it_pays() {
        let mut polling = Polling::default();
        assert_eq!(polling.next, Duration::ZERO);
        polling.learn(Duration::from_micros(30));
        assert_eq!(polling.next, MOST_POLLING);
        let late = Duration::from_millis(1);
        (0..40).for_each(|_| polling.learn(late));
        assert_eq!(polling.next, Duration::ZERO);
    }

    #[test]
    fn an_interest_that_the_kernel_rejected_is_retried() {
        let mut poller = Poller::new().unwrap();
        let interest = Interest { read: true, write: false };
        // Regular files cannot be polled.
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(poller.set(5, Some(file.as_fd()), interest).is_err());
        assert!(poller.set(5, Some(file.as_fd()), interest).is_err(), "the second call repeats the registration");
        // The same descriptor number, now of a pipe.
        let (out, into) = rustix::pipe::pipe().unwrap();
        let mut number = file.into();
        rustix::io::dup2(&out, &mut number).unwrap();
        poller.set(5, Some(number.as_fd()), interest).unwrap();
        rustix::io::write(&into, b"x").unwrap();
        let seen = poller.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(seen.iter().map(|event| event.token).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn polling_returns_events_and_ends_at_its_time_limit() {
        let (mut poller, mut polling) = (Poller::new().unwrap(), Polling { next: MOST_POLLING });
        let (out, into) = rustix::pipe::pipe().unwrap();
        poller.set(5, Some(out.as_fd()), Interest { read: true, write: false }).unwrap();
        assert!(poller.poll(&mut polling, true, Duration::from_millis(1)).unwrap().is_empty());
        assert!(polling.next < MOST_POLLING);
        rustix::io::write(&into, b"x").unwrap();
        let events = poller.poll(&mut polling, true, Duration::from_secs(60)).unwrap();
        assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [5]);
    }
}
