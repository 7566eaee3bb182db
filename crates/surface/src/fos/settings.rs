//! Settings of a switch that only its management interfaces have: [`Shared`].

use super::counters::Rates;
use super::{SESSION_TTL, seconds};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of sessions in the default mode.
pub const OPEN_SESSIONS: u32 = 64;

/// Behaviour of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mode {
    /// Limits of a real switch: three sessions by default, and roles that a switch has.
    pub strict: bool,
    /// Addresses before version 8.2.1b are served, too.
    pub old_uris: bool,
    /// Requests that are answered by 503, as by a busy switch.
    pub burst: Option<Burst>,
}

/// A switch that is busy again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// Number of requests that are served between two bursts.
    pub served: u32,
    /// Number of requests of a burst, which are answered by 503.
    pub refused: u32,
}

/// The settings of one switch, shared by its interfaces. The fabric has no place for them, so they
/// last as long as the process.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    settings: Arc<Mutex<Settings>>,
    named: Arc<Mutex<Named>>,
}

/// Settings of the switches of an instance by their names.
type Named = BTreeMap<String, Arc<Mutex<Settings>>>;

/// Settings of one switch.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names that clients have given: of the switch, its chassis, its fabric, its ports
    /// (`port NUMBER`), and the banner.
    pub names: BTreeMap<String, String>,
    /// Number of the virtual fabric, which the prompt shows.
    pub fabric_id: u16,
    /// Time in seconds after which an unused zone transaction ends.
    pub lock_timeout_s: u32,
    /// Time in seconds after which an unused session ends.
    pub session_ttl_s: u32,
    /// Maximum number of sessions in strict mode.
    pub max_sessions: u32,
    /// Time after which an idle session of the command line ends; 0 is never.
    pub idle: Duration,
    /// Options that a client has set at the command line, and that have no effect in the fabric.
    pub options: BTreeMap<&'static str, String>,
    /// Time of the last reset of the counters of ports, with their values.
    pub zero: BTreeMap<u32, BTreeMap<&'static str, u64>>,
    /// Rates of ports. Numbers are those of the chassis, so logical switches share none.
    pub rates: BTreeMap<u32, Rates>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            names: BTreeMap::new(),
            fabric_id: 128,
            lock_timeout_s: 300,
            session_ttl_s: 7_200,
            max_sessions: 3,
            idle: seconds(600),
            options: BTreeMap::new(),
            zero: BTreeMap::new(),
            rates: BTreeMap::new(),
        }
    }
}

impl Shared {
    /// The settings.
    pub fn lock(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Default settings of another switch. Both share the names of the settings, because a client
    /// can change a logical switch at the address of another one of its chassis.
    pub fn beside(&self) -> Shared {
        Shared { settings: Arc::default(), ..self.clone() }
    }

    /// Makes these settings those of the switch with this name.
    pub fn register(&self, switch: &str) {
        self.named().insert(switch.to_owned(), self.settings.clone());
    }

    /// Settings of the switch with this name. A switch without any has those by default.
    pub fn of(&self, switch: &str) -> Shared {
        let settings = self.named().entry(switch.to_owned()).or_default().clone();
        Shared { settings, ..self.clone() }
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Idle time after which a session ends.
    pub fn session_ttl(&self) -> Duration {
        seconds(self.lock().session_ttl_s.clamp(*SESSION_TTL.start(), *SESSION_TTL.end()))
    }

    /// Maximum number of sessions in strict mode.
    pub fn max_sessions(&self) -> u32 {
        self.lock().max_sessions
    }

    /// Idle time after which a session of the command line ends, if it does.
    pub fn idle_timeout(&self) -> Option<Duration> {
        Some(self.lock().idle).filter(|idle| !idle.is_zero())
    }

    /// A name that a client has given.
    pub fn name(&self, of: &str) -> Option<String> {
        self.lock().names.get(of).cloned()
    }
}
