//! Load generators of a path: [`Session`].

use super::super::ethernet::Folder;
use super::path_spec::{At, FcoeSpec, PathSpec};
use super::{Args, FcoeTerms, IscsiTerms, NbdTerms, Terms};
use crate::load::fcoe::{FcoeLoad, FcoeLoadConfig, Login};
use crate::load::iscsi::{Load, LoadConfig};
use crate::load::nbd::NbdLoad;
use crate::load::{LoadError, Served, Work};
use sanloom_console::exit::Failure;
use sanloom_console::machine::thread_cpu;
use sanloom_live::initiator::InitiatorConfig;
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Completed requests, and the processor time that they took.
type Outcome = Result<(Served, Duration), LoadError>;

/// Load generator over one transport.
pub(super) enum Session {
    Iscsi(Box<Load>),
    Nbd(Box<NbdLoad>),
    Fcoe(Fcoe),
}

impl Session {
    /// Opens the sessions of a path; returns them with the negotiated parameters.
    pub(super) fn open(args: &Args, spec: &PathSpec, number: usize) -> Result<(Vec<Session>, Terms), Opening> {
        let (mut all, mut terms) = (Vec::new(), None);
        let PathSpec { name, at, more, .. } = spec;
        let sessions = spec.sessions.unwrap_or(args.sessions);
        match at {
            At::Iscsi { portal, target, lun } => {
                let digests = if args.has_digests(name) { Digests::Always } else { Digests::Never };
                let [own, target_proof] = args.chap.credentials()?;
                let config = LoadConfig {
                    portal: *portal,
                    target: target.clone(),
                    lun: *lun,
                    initiator: args.iscsi_name.clone(),
                    offers: Offers { header_digest: digests, data_digest: digests, ..Offers::default() },
                    own,
                    target_proof,
                };
                let portals = [&[*portal], more.as_slice()].concat();
                for portal in portals.into_iter().cycle().take(sessions as usize) {
                    let load = Load::open(&LoadConfig { portal, ..config.clone() })?;
                    let agreed = load.parameters().copied().unwrap_or_default();
                    terms = Some(Terms::Iscsi(IscsiTerms::of(&agreed)));
                    all.push(Session::Iscsi(Box::new(load)));
                }
            }
            At::Nbd(config) => {
                for _ in 0..sessions {
                    let load = NbdLoad::open(config)?;
                    let (export_bytes, sizes) = load.export();
                    let (min_bytes, max_bytes) = (sizes.minimum, sizes.maximum);
                    terms = Some(Terms::Nbd(NbdTerms { export_bytes, min_bytes, max_bytes }));
                    all.push(Session::Nbd(Box::new(load)));
                }
            }
            At::Fcoe(spec) => {
                let (fcoe, login) = Fcoe::open(spec, sessions, number)?;
                terms = Some(Terms::Fcoe(FcoeTerms {
                    port_id: login.port_id.to_string(),
                    target_id: login.target_id.to_string(),
                    receive_bytes: login.receive_bytes,
                    max_transfer_bytes: login.max_transfer_bytes,
                }));
                all.push(Session::Fcoe(fcoe));
            }
        }
        let terms = terms.ok_or_else(|| Failure::bug("a path without a session"))?;
        Ok((all, terms))
    }

    /// Runs load, and returns the processor time of this thread with the result.
    pub(super) fn run(&mut self, work: Work, time: Duration, seed: u64) -> Outcome {
        let cpu = thread_cpu();
        let served = match self {
            Session::Iscsi(load) => load.run(work, time, seed)?,
            Session::Nbd(load) => load.run(work, time, seed)?,
            Session::Fcoe(fcoe) => return fcoe.run(work, time, seed),
        };
        Ok((served, thread_cpu().saturating_sub(cpu)))
    }
}

/// Reason why a path cannot be opened.
pub(super) enum Opening {
    Load(LoadError),
    Other(Failure),
}

impl From<LoadError> for Opening {
    fn from(error: LoadError) -> Opening {
        Opening::Load(error)
    }
}

impl From<Failure> for Opening {
    fn from(failure: Failure) -> Opening {
        Opening::Other(failure)
    }
}

/// Load for a host over FCoE: work, time, seed.
type Job = (Work, Duration, u64);

/// A host over FCoE with its own thread, which keeps the fabric login alive while other paths are
/// measured. All sessions of the path share this login.
pub(super) struct Fcoe {
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
    sessions: u32,
    /// Holds the NBD socket, which every initiator opens.
    _folder: Folder,
}

impl Fcoe {
    fn open(spec: &FcoeSpec, sessions: u32, number: usize) -> Result<(Fcoe, Login), Opening> {
        let folder = Folder::new(&format!("io-{number}"))?;
        let mut initiator = InitiatorConfig::new(spec.mac, folder.path().join("nbd.sock"));
        initiator.adapter.vlan = spec.vlan;
        initiator.adapter.wwpn = spec.wwpn.unwrap_or(initiator.adapter.wwpn);
        let config = FcoeLoadConfig { initiator, target: spec.target, lun: spec.lun };
        let port = spec.port.open().map_err(Failure::environment)?;
        let (jobs, job) = channel();
        let (outcome, outcomes) = channel();
        let (opened, opening) = channel();
        let host = move || match FcoeLoad::open(&config, port) {
            Ok(load) => {
                // `open` waits for this message.
                let _ = opened.send(Ok(load.login()));
                serve(load, &job, &outcome);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("fcoe".to_owned()).spawn(host).map_err(Failure::environment)?;
        let login = opening.recv().map_err(|_| Failure::bug("the thread of an FCoE host has panicked"))??;
        Ok((Fcoe { jobs: Some(jobs), outcomes, thread: Some(thread), sessions, _folder: folder }, login))
    }

    fn run(&mut self, work: Work, time: Duration, seed: u64) -> Outcome {
        let gone = || LoadError::Session("the host has ended".to_owned());
        let work = Work { depth: work.depth * self.sessions, ..work };
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send((work, time, seed)).map_err(|_| gone())?;
        self.outcomes.recv().map_err(|_| gone())?
    }
}

impl Drop for Fcoe {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs jobs until the sender is dropped, then logs out.
fn serve(mut load: FcoeLoad, jobs: &Receiver<Job>, outcomes: &Sender<Outcome>) {
    loop {
        match jobs.try_recv() {
            Ok((work, time, seed)) => {
                let cpu = thread_cpu();
                let served = load.run(work, time, seed);
                let outcome = served.map(|served| (served, thread_cpu().saturating_sub(cpu)));
                if outcomes.send(outcome).is_err() {
                    break;
                }
            }
            Err(TryRecvError::Empty) => {
                if let Err(error) = load.step() {
                    let _ = outcomes.send(Err(error));
                    break;
                }
            }
            Err(TryRecvError::Disconnected) => break,
        }
    }
    load.close();
}
