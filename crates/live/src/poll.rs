//! Waiting for descriptors: [`Poller`], an epoll that remembers what it waits for.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::thread;
use std::time::{Duration, Instant};

/// What a descriptor is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    /// Something can be read.
    pub read: bool,
    /// Something can be written.
    pub write: bool,
}

/// What happened to a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happened {
    /// Number that [`Poller::set`] was given.
    pub token: u64,
    /// It can be read, or the peer is gone.
    pub readable: bool,
    /// It can be written, or the peer is gone.
    pub writable: bool,
}

/// Waits for descriptors, level-triggered.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// What each token waits for, on which descriptor.
    known: BTreeMap<u64, (RawFd, Interest)>,
    happened: Vec<Happened>,
}

impl Poller {
    /// Waits for nothing yet.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, known: BTreeMap::new(), happened: Vec::new() })
    }

    /// Waits for this from now on. A token whose descriptor was closed begins anew with another one.
    ///
    /// # Errors
    /// When the descriptor cannot be waited for.
    pub fn set(&mut self, token: u64, descriptor: Option<BorrowedFd<'_>>, interest: Interest) -> io::Result<()> {
        let Some(descriptor) = descriptor else {
            // The kernel has forgotten a closed descriptor itself.
            self.known.remove(&token);
            return Ok(());
        };
        let wanted = (descriptor.as_raw_fd(), interest);
        let before = self.known.insert(token, wanted);
        if before == Some(wanted) {
            return Ok(());
        }
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, interest.read);
        flags.set(EventFlags::OUT, interest.write);
        let data = EventData::new_u64(token);
        match epoll::modify(&self.epoll, descriptor, data, flags) {
            Err(rustix::io::Errno::NOENT) => Ok(epoll::add(&self.epoll, descriptor, data, flags)?),
            other => Ok(other?),
        }
    }

    /// Waits for nothing of this descriptor any more, not even for its end.
    pub fn remove(&mut self, token: u64, descriptor: BorrowedFd<'_>) {
        if self.known.remove(&token).is_some() {
            // It may have been closed and opened again, and so be unknown to the kernel.
            let _ = epoll::delete(&self.epoll, descriptor);
        }
    }

    /// The descriptor of a token was closed, and another one may have its number.
    pub fn forget(&mut self, token: u64) {
        self.known.remove(&token);
    }

    /// Waits as [`wait`](Self::wait) does; `light`: what is waited for may come at once, and is worth asking for without sleep.
    ///
    /// # Errors
    /// As there.
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

    /// Waits, at most this long, and says what happened.
    ///
    /// # Errors
    /// What the kernel says; an interruption is no error.
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
            // Copies: the kernel's struct is packed.
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

/// What takes longer is not worth keeping a processor from others.
const MOST_POLLING: Duration = Duration::from_micros(50);

/// For how long a poller asks again and again before the thread sleeps: being woken takes as long as a small request. It is as long as
/// that pays: what came later than that, with or without sleep, makes it shorter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polling {
    next: Duration,
}

impl Polling {
    /// Something has come after so long.
    fn learn(&mut self, waited: Duration) {
        self.next = if waited <= MOST_POLLING { MOST_POLLING } else { self.next / 2 };
    }
}

impl AsFd for Poller {
    /// Readable when [`Poller::wait`] would return at once: a poller can wait for another one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
