//! Whoever makes load on a path: [`Session`].

use super::super::ethernet::Folder;
use super::place::{At, FcoePlace};
use super::{Args, FcoeTerms, IscsiTerms, NbdTerms, Terms};
use crate::exit::Failure;
use crate::machine::thread_cpu;
use sanloom_core::iscsi::parameters::{Digests, Wishes};
use sanloom_live::initiator::InitiatorConfig;
use sanloom_live::initiator::load::{FcoeLoad, FcoeLoadConfig, Login};
use sanloom_live::iscsi::initiator::load::{Load, LoadConfig};
use sanloom_live::load::{LoadError, Served, Work};
use sanloom_live::nbd::load::NbdLoad;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What was done, and the processor time that it took.
type Outcome = Result<(Served, Duration), LoadError>;

/// Somebody who makes load.
pub(super) enum Session {
    Iscsi(Box<Load>),
    Nbd(Box<NbdLoad>),
    Fcoe(Fcoe),
}

impl Session {
    /// The sessions of a path, and what was agreed.
    pub(super) fn open(args: &Args, name: &str, at: &At, number: usize) -> Result<(Vec<Session>, Terms), Opening> {
        let (mut all, mut terms) = (Vec::new(), None);
        match at {
            At::Iscsi { portal, target, lun } => {
                let digests = if args.has_digests(name) { Digests::Always } else { Digests::Never };
                let [own, target_proof] = args.chap.credentials()?;
                let config = LoadConfig {
                    portal: *portal,
                    target: target.clone(),
                    lun: *lun,
                    initiator: args.iscsi_name.clone(),
                    wishes: Wishes { header_digest: digests, data_digest: digests, ..Wishes::default() },
                    own,
                    target_proof,
                };
                for _ in 0..args.sessions {
                    let load = Load::open(&config)?;
                    let agreed = load.parameters().copied().unwrap_or_default();
                    terms = Some(Terms::Iscsi(IscsiTerms::of(&agreed)));
                    all.push(Session::Iscsi(Box::new(load)));
                }
            }
            At::Nbd(config) => {
                for _ in 0..args.sessions {
                    let load = NbdLoad::open(config)?;
                    let (export_bytes, sizes) = load.export();
                    let (min_bytes, max_bytes) = (sizes.minimum, sizes.maximum);
                    terms = Some(Terms::Nbd(NbdTerms { export_bytes, min_bytes, max_bytes }));
                    all.push(Session::Nbd(Box::new(load)));
                }
            }
            At::Fcoe(place) => {
                let (fcoe, login) = Fcoe::open(place, args.sessions, number)?;
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

    /// Makes load, and says what processor time it took.
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

/// Why a path cannot be opened.
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

/// What a host over FCoE is to do.
type Job = (Work, Duration, u64);

/// A host over FCoE in a thread of its own, which speaks with the fabric also while other paths are measured. All sessions of the path
/// are requests of its one login.
pub(super) struct Fcoe {
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
    sessions: u32,
    /// Of the socket that every initiator has for NBD clients.
    _folder: Folder,
}

impl Fcoe {
    fn open(place: &FcoePlace, sessions: u32, number: usize) -> Result<(Fcoe, Login), Opening> {
        let folder = Folder::new(&format!("io-{number}"))?;
        let mut initiator = InitiatorConfig::new(place.mac, folder.path().join("nbd.sock"));
        initiator.adapter.vlan = place.vlan;
        initiator.adapter.wwpn = place.wwpn.unwrap_or(initiator.adapter.wwpn);
        let config = FcoeLoadConfig { initiator, target: place.target, lun: place.lun };
        let port = place.port.open().map_err(Failure::environment)?;
        let (jobs, job) = channel();
        let (outcome, outcomes) = channel();
        let (opened, opening) = channel();
        let host = move || match FcoeLoad::open(&config, port) {
            Ok(load) => {
                // Whoever opened us waits for it.
                let _ = opened.send(Ok(load.login()));
                serve(load, &job, &outcome);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("fcoe".to_owned()).spawn(host).map_err(Failure::environment)?;
        let login = opening.recv().map_err(|_| Failure::bug("the thread of a host has panicked"))??;
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

/// Does jobs until there will be no more, and logs out.
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
                if let Err(error) = load.tend() {
                    let _ = outcomes.send(Err(error));
                    break;
                }
            }
            Err(TryRecvError::Disconnected) => break,
        }
    }
    load.close();
}
