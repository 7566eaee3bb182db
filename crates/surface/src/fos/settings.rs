//! Settings of a switch that only its management interfaces have: [`Shared`].

use super::counters::Rates;
use super::{SESSION_TTL, seconds};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of sessions in the default mode, unless a client has set another one.
const OPEN_SESSIONS: u32 = 64;
/// Maximum number of sessions in strict mode, unless a client has set another one.
const STRICT_SESSIONS: u32 = 3;

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

/// The settings of one switch and its chassis, shared by all interfaces of the instance. A logical
/// switch has the same settings at every address of its chassis. The fabric has no place for them,
/// so they last as long as the process.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    settings: Arc<Mutex<Settings>>,
    chassis: Arc<Mutex<Chassis>>,
    instance: Arc<Mutex<Instance>>,
}

/// Settings and addresses of an instance.
#[derive(Debug, Default)]
struct Instance {
    /// Settings by the name of the switch.
    switches: BTreeMap<String, Arc<Mutex<Settings>>>,
    /// Settings by the name of the chassis, or of a switch without virtual fabrics.
    chassis: BTreeMap<String, Arc<Mutex<Chassis>>>,
    /// Addresses of the interfaces by the name of the switch.
    addresses: BTreeMap<String, IpAddr>,
}

/// Settings of one chassis.
#[derive(Clone, Debug)]
pub struct Chassis {
    /// Name that a client has given.
    pub name: Option<String>,
    /// Time in seconds after which an unused session ends.
    pub session_ttl_s: u32,
    /// Maximum number of sessions that a client has set.
    pub max_sessions: Option<u32>,
}

impl Default for Chassis {
    fn default() -> Chassis {
        Chassis { name: None, session_ttl_s: 7_200, max_sessions: None }
    }
}

/// Settings of one switch.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names that clients have given: of the switch, its fabric, its ports (`port NUMBER`), and the
    /// banner.
    pub names: BTreeMap<String, String>,
    /// Number of the virtual fabric, which the prompt shows.
    pub fabric_id: u16,
    /// Time in seconds after which an unused zone transaction ends.
    pub lock_timeout_s: u32,
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
            idle: seconds(600),
            options: BTreeMap::new(),
            zero: BTreeMap::new(),
            rates: BTreeMap::new(),
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The settings of the switch.
    pub fn lock(&self) -> MutexGuard<'_, Settings> {
        locked(&self.settings)
    }

    /// The settings of its chassis.
    pub fn chassis(&self) -> MutexGuard<'_, Chassis> {
        locked(&self.chassis)
    }

    /// Settings of a switch of the instance. `chassis`: the chassis of a logical switch.
    pub fn at(&self, switch: &str, chassis: Option<&str>) -> Shared {
        let chassis = self.instance().chassis.entry(chassis.unwrap_or(switch).to_owned()).or_default().clone();
        Shared { chassis, ..self.of(switch) }
    }

    /// Makes these settings those of the switch with this name.
    pub fn register(&self, switch: &str) {
        self.instance().switches.insert(switch.to_owned(), self.settings.clone());
    }

    /// Settings of the switch with this name in the same chassis. A switch without any has those by
    /// default.
    pub fn of(&self, switch: &str) -> Shared {
        let settings = self.instance().switches.entry(switch.to_owned()).or_default().clone();
        Shared { settings, ..self.clone() }
    }

    /// Name of a switch of the instance for people: the one that a client has given, or that of the
    /// lab.
    pub fn name_of(&self, switch: &str) -> String {
        let settings = self.instance().switches.get(switch).cloned();
        let given = settings.and_then(|settings| locked(&settings).names.get("switch").cloned());
        given.unwrap_or_else(|| switch.to_owned())
    }

    /// Name that a client has given to a chassis of the instance.
    pub fn chassis_name(&self, chassis: &str) -> Option<String> {
        let settings = self.instance().chassis.get(chassis).cloned()?;
        locked(&settings).name.clone()
    }

    /// Sets the address of the interfaces of a switch.
    pub fn set_address(&self, switch: &str, address: IpAddr) {
        self.instance().addresses.insert(switch.to_owned(), address);
    }

    /// Address of the interfaces of a switch.
    pub fn address(&self, switch: &str) -> Option<IpAddr> {
        self.instance().addresses.get(switch).copied()
    }

    fn instance(&self) -> MutexGuard<'_, Instance> {
        locked(&self.instance)
    }

    /// Idle time after which a session ends.
    pub fn session_ttl(&self) -> Duration {
        seconds(self.chassis().session_ttl_s.clamp(*SESSION_TTL.start(), *SESSION_TTL.end()))
    }

    /// Maximum number of sessions: the one that a client has set, or that of the mode.
    pub fn max_sessions(&self, mode: Mode) -> u32 {
        let default = if mode.strict { STRICT_SESSIONS } else { OPEN_SESSIONS };
        self.chassis().max_sessions.unwrap_or(default)
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
