//! From a lab to a runtime: which ports are opened, which machines are made, what is attached to what.

mod hosts;
mod iscsi;
mod links;
mod state;
mod storage;
mod switches;
mod volumes;

pub(super) use links::{LinkChanges, Opened};
pub(crate) use state::Kept;
pub(crate) use storage::station_config;
pub(super) use storage::{masking, new_unit, unit_identity};
pub(crate) use switches::plan_switch;

use super::inject::Injector;
use super::{Runtime, UpError};
use crate::capture::Captures;
use crate::clock::Clock;
use crate::frame::Pool;
use crate::lldp;
use crate::poll::{Poller, Polling};
use crate::record::{AgentHead, Head, Recorder, Source, SwitchHead, VERSION};
use crate::state::{Agreement, StateStore};
use crate::storage::Backing;
use crate::storage::workers::Workers;
use crate::sys::batch::BATCH;
use sanloom_core::config::{Carrier, Ethernet, Lab, MediumKind, Node};
use sanloom_core::map::VolumeId;
use sanloom_core::time::Instant;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `sanloom up` was told beside the lab.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Run only this switch of the lab; the others run elsewhere. `None`: all.
    pub switch: Option<String>,
    /// What becomes of a lab file that differs from the store.
    pub agreement: Agreement,
    /// Where the inputs and outputs of the machines are recorded, and the lab as it was read.
    pub record: Option<(PathBuf, Source)>,
    /// Link and file of each port that is captured from the first frame on.
    pub captures: Vec<(String, PathBuf)>,
}

/// Where sockets and images of a lab are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    folder: PathBuf,
    control: PathBuf,
}

impl Places {
    /// The folder of a lab, and what counts from it. Without `[live] folder`: the user's runtime folder, or one in /tmp.
    pub fn of(lab: &Lab) -> Places {
        let folder = lab.live.folder.as_ref().map(PathBuf::from).unwrap_or_else(|| {
            let base = std::env::var_os("XDG_RUNTIME_DIR").map(|base| PathBuf::from(base).join("sanloom"));
            let user = rustix::process::getuid().as_raw();
            base.unwrap_or_else(|| PathBuf::from(format!("/tmp/sanloom-{user}"))).join(&lab.name)
        });
        let control = folder.join(lab.live.control.as_deref().unwrap_or("control.sock"));
        Places { folder, control }
    }

    /// Makes the folder of the instance, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self) -> Result<(), UpError> {
        fs::create_dir_all(&self.folder).map_err(|error| UpError::Folder { path: self.folder.clone(), error })
    }

    /// The folder of the instance.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The control socket. Each switch that runs alone has its own.
    pub fn control(&self, switch: Option<&str>) -> PathBuf {
        match switch {
            None => self.control.clone(),
            Some(name) => self.control.with_extension(format!("{name}.sock")),
        }
    }

    /// The store of zones and addresses, one for all switches of the lab.
    pub fn state(&self) -> PathBuf {
        self.folder.join("state.sqlite")
    }

    /// Path of a LUN's file.
    pub fn lun_file(&self, lab: &Lab, storage: u16, lun: usize) -> PathBuf {
        let medium = lab.live.medium(storage);
        let name = &lab.storage[usize::from(storage)].name;
        let file = medium.files.get(lun).cloned().unwrap_or_else(|| format!("{name}-lun{lun}.img"));
        self.folder.join(file)
    }

    /// Where the persistent reservations of a LUN are kept; nothing: they go with the process.
    pub fn reservations(&self, lab: &Lab, storage: u16, lun: usize) -> Option<PathBuf> {
        let in_file = lab.live.medium(storage).kind == MediumKind::File;
        in_file.then(|| self.lun_file(lab, storage, lun).with_extension("reservations"))
    }

    /// Where the persistent reservations of a volume are kept.
    pub fn volume_reservations(&self, volume: VolumeId) -> PathBuf {
        self.folder.join(format!("volume-{}.reservations", volume.0))
    }

    /// Our socket of a link, and that of the other end. `second`: we are at the end that the link names second, and another
    /// sanloom is at the first.
    pub fn sockets(&self, link: &str, ethernet: &Ethernet, second: bool) -> (PathBuf, PathBuf) {
        let named = |text: &Option<String>, ending: &str| {
            self.folder.join(text.clone().unwrap_or_else(|| format!("{}.{ending}", link.replace(['/', ':'], "_"))))
        };
        let (own, peer) = (named(&ethernet.address, "sock"), named(&ethernet.peer, "peer.sock"));
        if second { (peer, own) } else { (own, peer) }
    }
}

/// What only one port at a time can have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Resource {
    /// The path of a socket.
    Path(PathBuf),
    /// A network interface.
    Interface(String),
}

impl Places {
    /// What the switch's end of a link takes for itself; nothing: it connects to somebody else's socket, or has a descriptor.
    fn resource(&self, link: &str, ethernet: &Ethernet) -> Option<Resource> {
        match (ethernet.carrier, &ethernet.address, &ethernet.peer) {
            (Carrier::Stream, _, Some(_)) => None,
            (Carrier::Datagram | Carrier::Stream, ..) => Some(Resource::Path(self.sockets(link, ethernet, false).0)),
            (Carrier::Tap | Carrier::Packet, Some(name), _) => Some(Resource::Interface(name.clone())),
            (Carrier::Tap | Carrier::Packet | Carrier::Descriptor, ..) => None,
        }
    }
}

impl Runtime {
    /// Opens the ports of a lab, makes its machines, and lets them begin.
    ///
    /// # Errors
    /// When a port or a file cannot be opened, or the system does not give us what we need.
    pub fn up(lab: Arc<Lab>, options: &Options) -> Result<Runtime, UpError> {
        let places = Places::of(&lab);
        places.make()?;
        let system = |what| move |error| UpError::System { what, error };
        let lab_switches = chosen(&lab, options)?;
        let state = StateStore::open(&places.state())?;
        let kept = state::agree(&state, &lab, &lab_switches, options.agreement)?;
        state.hurry()?;
        let mut pool = Pool::default();
        let mut runtime = Runtime {
            clock: Clock::start(),
            ports: Vec::new(),
            segments: Vec::new(),
            stations: Vec::new(),
            switches: Vec::new(),
            systems: Vec::new(),
            iscsi: None,
            volumes: None,
            wanted_volumes: Vec::new(),
            captures: Captures::default(),
            poller: Poller::new().map_err(system("epoll"))?,
            workers: None,
            rung: false,
            called: true,
            polling: Polling::default(),
            spare: (0..BATCH).map(|_| pool.take()).collect(),
            pool,
            scratch: Vec::with_capacity(4_096),
            inside: VecDeque::new(),
            hold_time: lab.timers.hold_time.to_span(),
            next_look: Instant::ZERO,
            keep_again: Instant::ZERO,
            state,
            injector: Injector::default(),
            zone_changes: BTreeMap::new(),
            next_zone_change: 0,
            applying: None,
            recorder: None,
            lab_switches,
            lab,
        };
        let switches = runtime.make_switches(&places, kept)?;
        if let Some((path, source)) = &options.record {
            let head = runtime.recording_head(source, switches);
            let failed = |error| UpError::Record { path: path.clone(), error };
            runtime.recorder = Some(Recorder::create(path, &head).map_err(failed)?);
        }
        runtime.make_storage(&places)?;
        runtime.make_volumes(&places, options.agreement)?;
        runtime.make_iscsi(&places)?;
        if runtime.systems.iter().flat_map(|system| &system.media).any(is_slow) {
            runtime.workers = Some(Workers::start().map_err(system("threads"))?);
            runtime.watch_workers()?;
        }
        // Before the first frame.
        for (link, file) in &options.captures {
            runtime.capture(link, file)?;
        }
        let now = runtime.clock.now();
        runtime.begin(now);
        (0..runtime.ports.len()).for_each(|port| runtime.look_at_port(now, port));
        Ok(runtime)
    }

    /// What a replay needs to make the same machines; the switches and their ports are there already.
    fn recording_head(&self, source: &Source, switches: Vec<SwitchHead>) -> Head {
        let stations = served(&self.lab, &self.lab_switches);
        let stations = stations.into_iter().filter(|storage| self.lab.live.stations.contains_key(storage));
        let name = |storage: u16| self.lab.storage[usize::from(storage)].name.clone();
        let agents = self.ports.iter().enumerate().filter_map(|(number, port)| {
            let (mac, interface) = (port.agent.as_ref()?.mac().to_string(), port.ethernet.name.clone());
            Some((number, AgentHead { mac, interface, system: lldp::SYSTEM.to_owned() }))
        });
        Head {
            sanloom_recording: VERSION,
            source: source.clone(),
            switches,
            stations: stations.map(name).collect(),
            agents: agents.collect(),
        }
    }
}

/// The Ethernet address in a port name that was made of one, or one of our own that follows from it.
pub fn mac_of(wwpn: Wwpn) -> MacAddr {
    let [_, _, mac @ ..] = wwpn.0.to_be_bytes();
    let made_of_it = wwpn.0 >> 48 == 0x2000 && MacAddr(mac).is_station();
    if made_of_it { MacAddr(mac) } else { MacAddr([0x02, mac[1], mac[2], mac[3], mac[4], mac[5]]) }
}

fn is_slow(backing: &Backing) -> bool {
    matches!(backing, Backing::Local(medium) if medium.is_slow())
}

/// The switches that run here, by index in the lab.
fn chosen(lab: &Lab, options: &Options) -> Result<Vec<u16>, UpError> {
    let Some(name) = &options.switch else { return Ok((0..lab.switches.len() as u16).collect()) };
    let found = lab.switches.iter().position(|switch| switch.name == *name);
    found.map(|number| vec![number as u16]).ok_or_else(|| UpError::Unknown { what: "switch", name: name.clone() })
}

/// The storage systems that are served here, by index in the lab: those with a link inside the process to a switch that runs
/// here; stations and iSCSI targets, unless one switch of several runs alone.
fn served(lab: &Lab, switches: &[u16]) -> Vec<u16> {
    let whole = switches.len() == lab.switches.len();
    let is_inside = |system: u16| {
        let station = whole && lab.live.stations.contains_key(&system);
        station
            || lab.links.iter().enumerate().any(|(number, link)| {
                let ends = [link.ends[0].node, link.ends[1].node];
                let here = ends.iter().any(|node| matches!(node, Node::Switch(switch) if switches.contains(switch)));
                here && ends.contains(&Node::Storage(system)) && !lab.live.ethernet.contains_key(&number)
            })
    };
    let over_tcp = |system: &u16| lab.live.iscsi.contains_key(system) && (switches.len() == lab.switches.len());
    (0..lab.storage.len() as u16).filter(|system| is_inside(*system) || over_tcp(system)).collect()
}
