//! VLAN discovery of an interface in a separate thread: [`Watch`].

use super::files::Wanted;
use sanloom_console::endpoint::PortName;
use sanloom_live::initiator::{Seen, VlanWatch};
use sanloom_wire::ether::MacAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between attempts to open an interface that does not exist yet.
const AGAIN: Duration = Duration::from_secs(1);
/// Interval between checks of the end flag while waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// State shared by both threads.
#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    ends: AtomicBool,
}

/// Watch of an interface; VLAN discovery runs until it is dropped.
pub(super) struct Watch {
    of: (PortName, Option<MacAddr>, bool),
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn begin(wanted: &Wanted) -> Watch {
        let of = (wanted.port.clone(), wanted.mac, wanted.dcb);
        let shared = Arc::new(Shared::default());
        let (what, with) = (of.clone(), shared.clone());
        let spawned = thread::Builder::new().spawn(move || watch(&what, &with));
        if let Err(error) = &spawned {
            tracing::error!(interface = %wanted.port, %error, "VLAN discovery cannot start");
        }
        Watch { of, shared, thread: spawned.ok() }
    }

    /// Returns whether the watch fits this configuration.
    pub(super) fn is_of(&self, wanted: &Wanted) -> bool {
        wanted.has_many_vlans() && (&wanted.port, wanted.mac, wanted.dcb) == (&self.of.0, self.of.1, self.of.2)
    }

    pub(super) fn seen(&self) -> Seen {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch((port, mac, dcb): &(PortName, Option<MacAddr>, bool), shared: &Shared) {
    let go_on = || !shared.ends.load(Relaxed);
    let mut last_error = String::new();
    while go_on() {
        if let Err(why) = watch_once(port, *mac, *dcb, shared)
            && std::mem::replace(&mut last_error, why.clone()) != why
        {
            tracing::error!(interface = %port, why, "VLAN discovery cannot start");
        }
        shared.seen.lock().unwrap_or_else(PoisonError::into_inner).may_begin = false;
        for _ in 0..AGAIN.as_millis() / CHECK_INTERVAL.as_millis() {
            if go_on() {
                thread::sleep(CHECK_INTERVAL);
            }
        }
    }
}

fn watch_once(port: &PortName, mac: Option<MacAddr>, dcb: bool, shared: &Shared) -> Result<(), String> {
    let mac = mac.or_else(|| port.mac()).ok_or("it has no Ethernet address; is it there?")?;
    let mut watch = VlanWatch::open(&port.to_string(), mac, dcb).map_err(|error| error.to_string())?;
    let outcome = watch.run(|seen| {
        let mut known = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        known.may_begin = seen.may_begin;
        // Without a reply, the result from before the interface was reopened remains valid.
        if !seen.vlans.is_empty() && known.vlans != seen.vlans {
            tracing::info!(interface = %port, vlans = ?seen.vlans, "VLANs of FCoE");
            known.vlans.clone_from(&seen.vlans);
        }
        !shared.ends.load(Relaxed)
    });
    outcome.map_err(|error| error.to_string())
}
