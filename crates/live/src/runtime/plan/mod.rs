//! Construction of a runtime from a lab: ports to open, machines to create, and attachments.

mod fcip;
mod hosts;
mod iscsi;
mod srp;
mod state;
mod storage;
mod switches;
mod volumes;

pub(crate) use state::Kept;
pub(crate) use storage::station_config;
pub(super) use storage::{new_unit, unit_identity};
pub(crate) use switches::plan_switch;
pub(super) use switches::{End, fcf, open, open_port, update_vlans};
pub(super) use volumes::new_back_ends;

use super::instance::Instance;
use super::operations::{Operations, ports};
use super::pace::AnswerPace;
use super::spread::Spread;
use super::{Runtime, UpError};
use crate::clock::Clock;
use crate::lldp;
use crate::poll::{Poller, Polling};
use crate::record::{AgentHead, Head, Recorder, Source, SwitchHead, VERSION};
use crate::state::{Agreement, StateStore};
use sanloom_fc::config::{Carrier, Ethernet, MediumKind, Node};
use sanloom_fc::san::Lab;
use sanloom_scsi::map::VolumeId;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `sanloom up`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The only switch of the lab that this process runs; `None`: all switches.
    pub switch: Option<String>,
    /// Treatment of a lab file that differs from the store.
    pub agreement: Agreement,
    /// File of the recording, and the source of the lab.
    pub record: Option<(PathBuf, Source)>,
    /// Link and file of each capture that starts with the first frame.
    pub captures: Vec<(String, PathBuf)>,
    /// Threads that share the work of Ethernet ports; `None`: chosen by the processors and ports.
    pub threads: Option<usize>,
}

/// Folder that holds the runtime folder of each service of systemd (`sanloom@LAB.service`).
const SERVICES: &str = "/run/sanloom";
/// Folder that holds the state folder of each service.
const STATES: &str = "/var/lib/sanloom";
const CONTROL: &str = "control.sock";

/// Paths of the sockets and images of a lab.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabPaths {
    folder: PathBuf,
    /// Folder of sockets; equal to `folder`, except in a service.
    sockets: PathBuf,
    control: PathBuf,
}

impl LabPaths {
    /// Returns the paths of a lab. Without `[live] folder`, they are in the folders of the service
    /// that runs the lab, or in the user's runtime folder, or in /tmp.
    pub fn of(lab: &Lab) -> LabPaths {
        let service = || match own_service() {
            None => running_service(Path::new(SERVICES), Path::new(STATES), &lab.name),
            own => own,
        };
        let own = lab.live.folder.as_ref().map(|folder| (PathBuf::from(folder), PathBuf::from(folder)));
        let (sockets, folder) = own.or_else(service).unwrap_or_else(|| {
            let folder = LabPaths::base().join(&lab.name);
            (folder.clone(), folder)
        });
        let control = sockets.join(lab.live.control.as_deref().unwrap_or(CONTROL));
        LabPaths { folder, sockets, control }
    }

    /// Folder of all instances of this user: the user's runtime folder, or one in /tmp. A service
    /// has its own.
    pub fn base() -> PathBuf {
        if let Some((runtime, _)) = own_service() {
            return runtime;
        }
        let base = std::env::var_os("XDG_RUNTIME_DIR").map(|base| PathBuf::from(base).join("sanloom"));
        let user = rustix::process::getuid().as_raw();
        base.unwrap_or_else(|| PathBuf::from(format!("/tmp/sanloom-{user}")))
    }

    /// Folders of all instances that this user may look for: [`LabPaths::base`] and those of
    /// services.
    pub fn bases() -> Vec<PathBuf> {
        let services = fs::read_dir(SERVICES).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut bases = vec![LabPaths::base()];
        bases.extend(services);
        bases.dedup();
        bases
    }

    /// Path of the users of a lab. A service that does not run has its state folder only, which
    /// this user may be permitted to change.
    pub fn users(lab: &Lab) -> PathBuf {
        let paths = LabPaths::of(lab);
        let is_of_user = paths.folder == LabPaths::base().join(&lab.name) && !paths.control.exists();
        let of_service = stopped_service(Path::new(STATES), &lab.name).filter(|_| is_of_user);
        of_service.unwrap_or(paths.folder).join("users")
    }

    /// Creates the folders of the instance if they do not exist.
    ///
    /// # Errors
    /// A folder that cannot be created.
    pub fn make(&self) -> Result<(), UpError> {
        [&self.folder, &self.sockets].into_iter().try_for_each(|folder| {
            fs::create_dir_all(folder).map_err(|error| UpError::Folder { path: folder.clone(), error })
        })
    }

    /// Folder of the instance.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the control socket. Each switch that runs alone has its own.
    pub fn control(&self, switch: Option<&str>) -> PathBuf {
        match switch {
            None => self.control.clone(),
            Some(name) => self.control.with_extension(format!("{name}.sock")),
        }
    }

    /// Path of the store of zones and addresses, shared by all switches of the lab.
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

    /// Path of a LUN's persistent reservations; `None` if they end with the process.
    pub fn reservations(&self, lab: &Lab, storage: u16, lun: usize) -> Option<PathBuf> {
        let in_file = lab.live.medium(storage).kind == MediumKind::File;
        in_file.then(|| self.lun_file(lab, storage, lun).with_extension("reservations"))
    }

    /// Path of a volume's persistent reservations.
    pub fn volume_reservations(&self, volume: VolumeId) -> PathBuf {
        self.folder.join(format!("volume-{}.reservations", volume.0))
    }

    /// Paths of the sockets of a link: that of this end, then that of the other. `second`: this is
    /// the end that the link names second, and another sanloom has the first.
    pub fn sockets(&self, link: &str, ethernet: &Ethernet, second: bool) -> (PathBuf, PathBuf) {
        let named = |text: &Option<String>, ending: &str| {
            self.sockets.join(text.clone().unwrap_or_else(|| format!("{}.{ending}", link.replace(['/', ':'], "_"))))
        };
        let (own, peer) = (named(&ethernet.address, "sock"), named(&ethernet.peer, "peer.sock"));
        if second { (peer, own) } else { (own, peer) }
    }
}

/// Runtime and state folder of the service `sanloom@LAB` of systemd that this process is; `None`
/// outside of one.
fn own_service() -> Option<(PathBuf, PathBuf)> {
    // A unit with several folders has them separated by colons; the first one counts.
    let first = |name| {
        let folders = std::env::var(name).ok()?;
        folders.split(':').next().filter(|folder| folder.starts_with('/')).map(PathBuf::from)
    };
    // Other services have such folders as well, and run labs as part of their work.
    std::env::var_os("SANLOOM_SERVICE")?;
    Some((first("RUNTIME_DIRECTORY")?, first("STATE_DIRECTORY")?))
}

/// Folders of the running service of a lab. systemd removes the runtime folder at its end.
fn running_service(services: &Path, states: &Path, lab: &str) -> Option<(PathBuf, PathBuf)> {
    let runtime = folder_of(services, lab).filter(|folder| folder.join(CONTROL).exists())?;
    Some((runtime, states.join(lab)))
}

/// State folder of the service of a lab, if this user may change its files: root, and the user of
/// the service.
fn stopped_service(states: &Path, lab: &str) -> Option<PathBuf> {
    let folder = folder_of(states, lab)?;
    let owner = fs::metadata(&folder).ok().filter(fs::Metadata::is_dir)?.uid();
    let user = rustix::process::geteuid();
    (user.is_root() || user.as_raw() == owner).then_some(folder)
}

/// Folder of a lab in one for all labs. The name of a lab is free text, and must not lead out of
/// it.
fn folder_of(all: &Path, lab: &str) -> Option<PathBuf> {
    let folder = all.join(lab);
    let is_inside = folder.parent() == Some(all) && folder.file_name().is_some_and(|name| name == lab);
    is_inside.then_some(folder)
}

/// A resource that only one port at a time can use.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Resource {
    /// The path of a socket.
    Path(PathBuf),
    /// A network interface.
    Interface(String),
}

impl LabPaths {
    /// Returns the resource that the switch's end of a link uses exclusively. `None` if it connects
    /// to a socket of the peer, or inherits a descriptor.
    pub(super) fn resource(&self, link: &str, ethernet: &Ethernet) -> Option<Resource> {
        match (ethernet.carrier, &ethernet.address, &ethernet.peer) {
            (Carrier::Stream, _, Some(_)) => None,
            (Carrier::Datagram | Carrier::Stream, ..) => Some(Resource::Path(self.sockets(link, ethernet, false).0)),
            (Carrier::Tap | Carrier::Packet, Some(name), _) => Some(Resource::Interface(name.clone())),
            (Carrier::Tap | Carrier::Packet | Carrier::Descriptor, ..) => None,
        }
    }
}

/// Parts of an instance under construction.
struct Builder<'p> {
    instance: Instance,
    lab_paths: &'p LabPaths,
    poller: Poller,
    clock: Clock,
}

impl Runtime {
    /// Opens the ports of a lab, creates its machines, and starts them.
    ///
    /// # Errors
    /// A port or file that cannot be opened, or a missing system resource.
    pub fn up(lab: Arc<Lab>, options: &Options) -> Result<Runtime, UpError> {
        let lab_paths = LabPaths::of(&lab);
        lab_paths.make()?;
        let lab_switches = chosen(&lab, options)?;
        let state = StateStore::open(&lab_paths.state())?;
        let kept = state::agree(&state, &lab, &lab_switches, options.agreement)?;
        state.hurry()?;
        let poller = Poller::new().map_err(|error| UpError::System { what: "epoll", error })?;
        let instance = Instance::new(lab, lab_switches, state);
        let mut builder = Builder { instance, lab_paths: &lab_paths, poller, clock: Clock::start() };
        let switches = builder.make_switches(kept)?;
        if let Some((path, source)) = &options.record {
            let head = recording_head(&builder.instance, source, switches);
            let failed = |error| UpError::Record { path: path.clone(), error };
            builder.instance.recording.start(Recorder::create(path, &head).map_err(failed)?);
        }
        builder.make_storage()?;
        builder.make_volumes(options.agreement)?;
        builder.make_iscsi()?;
        builder.make_srp()?;
        let Builder { mut instance, mut poller, clock, .. } = builder;
        instance.services.start_workers(&mut poller)?;
        instance.spread = Spread::new(options.threads.unwrap_or(0));
        // Captures start before the first frame.
        for (link, file) in &options.captures {
            ports::start_capture(&mut instance, clock.now(), link, file, None)?;
        }
        let now = clock.now();
        instance.begin(now);
        instance.check_peers(now, &mut poller);
        let operations = Operations::default();
        let polling = Polling::default();
        Ok(Runtime {
            instance,
            operations,
            clock,
            poller,
            polling,
            called: true,
            pace: AnswerPace::default(),
            awake: Instant::ZERO,
            next_check: Instant::ZERO,
        })
    }
}

/// Returns the head of a recording. The switches and their ports exist already.
fn recording_head(instance: &Instance, source: &Source, switches: Vec<SwitchHead>) -> Head {
    let Instance { lab, lab_switches, ports, .. } = instance;
    let stations = served(lab, lab_switches);
    let stations = stations.into_iter().filter(|storage| lab.live.stations.contains_key(storage));
    let name = |storage: u16| lab.storage[usize::from(storage)].name.clone();
    let agents = ports.iter().enumerate().filter_map(|(number, port)| {
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

/// Returns the Ethernet address in a port name that was derived from one; otherwise a local address
/// derived from the name.
pub fn mac_of(wwpn: Wwpn) -> MacAddr {
    let [_, _, mac @ ..] = wwpn.0.to_be_bytes();
    let made_of_it = wwpn.0 >> 48 == 0x2000 && MacAddr(mac).is_station();
    if made_of_it { MacAddr(mac) } else { MacAddr([0x02, mac[1], mac[2], mac[3], mac[4], mac[5]]) }
}

/// Returns the switches of this process, by index in the lab.
fn chosen(lab: &Lab, options: &Options) -> Result<Vec<u16>, UpError> {
    let Some(name) = &options.switch else { return Ok((0..lab.switches.len() as u16).collect()) };
    let found = lab.switches.iter().position(|switch| switch.name == *name);
    found.map(|number| vec![number as u16]).ok_or_else(|| UpError::Unknown { what: "switch", name: name.clone() })
}

/// Returns the storage systems of this process, by index in the lab: systems with a link inside the
/// process to one of its switches. Stations, iSCSI and SRP targets are included, unless the process
/// runs only one of several switches.
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
    let is_target = |system: &u16| lab.live.iscsi.contains_key(system) || lab.live.srp.contains_key(system);
    let over_ip = |system: &u16| is_target(system) && switches.len() == lab.switches.len();
    (0..lab.storage.len() as u16).filter(|system| is_inside(*system) || over_ip(system)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_service_is_found_by_the_name_of_its_lab() {
        let base = std::env::temp_dir().join(format!("sanloom-services-{}", std::process::id()));
        let (services, states) = (base.join("run"), base.join("lib"));
        fs::create_dir_all(services.join("san")).unwrap();
        assert_eq!(running_service(&services, &states, "san"), None, "the service has no socket");
        fs::write(services.join("san").join(CONTROL), "").unwrap();
        fs::write(base.join(CONTROL), "").unwrap();
        let found = running_service(&services, &states, "san");
        assert_eq!(found, Some((services.join("san"), states.join("san"))));
        for outside in ["..", ".", "", "san/..", "san/../..", "other"] {
            assert_eq!(running_service(&services, &states, outside), None, "{outside:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn the_state_folder_of_a_stopped_service_is_found_by_the_name_of_its_lab() {
        let states = std::env::temp_dir().join(format!("sanloom-states-{}", std::process::id()));
        fs::create_dir_all(states.join("san")).unwrap();
        fs::write(states.join("file"), "").unwrap();
        let found = stopped_service(&states, "san");
        let outside = ["..", ".", "", "san/..", "san/../..", "file", "other"].map(|lab| stopped_service(&states, lab));
        fs::remove_dir_all(&states).unwrap();
        assert_eq!(found, Some(states.join("san")));
        assert!(outside.iter().all(Option::is_none), "{outside:?}");
    }
}
