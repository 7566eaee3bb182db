//! State that all connections of a server share, [`Shared`], and that of each thread, [`Local`].

use super::{Behind, Stores, TargetPlan};
use crate::session::INPUT_BYTES;
use crate::session::buffers::Spare;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::front_offers;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::iscsi::target::{ConnectionId, Directory, Node, SessionKey};
use sanloom_scsi::scsi::{Ends, IoTag};
use std::collections::BTreeMap;
use std::sync::Arc;

/// State of one step that the calls of all connections lock.
#[derive(Debug)]
pub(super) struct Common<'s> {
    pub(super) shared: &'s mut Shared,
    pub(super) stores: Stores<'s>,
}

/// Memory of one thread that serves connections.
#[derive(Debug)]
pub(super) struct Local {
    /// Input buffer of the connection that reads.
    pub(super) input: Vec<u8>,
    pub(super) buffers: Spare,
}

impl Default for Local {
    fn default() -> Local {
        Local { input: vec![0; INPUT_BYTES], buffers: Spare::default() }
    }
}

/// State that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) node: Arc<Node>,
    /// Configured offers of each target, without regard to back ends.
    offers: Vec<Offers>,
    /// Parameters of the back ends to which `node` is currently adapted.
    matched: Vec<Parameters>,
    /// Storage of each target.
    pub(super) behind: Vec<TargetPlan>,
    pub(super) directory: Directory,
    /// Tasks of other sessions to end, with the connection that requests it.
    pub(super) ends: Vec<(Behind, ConnectionId, Ends)>,
    /// Connections whose session was replaced by another one.
    pub(super) replaced: Vec<ConnectionId>,
    /// Targets that were reset.
    pub(super) resets: Vec<Behind>,
    /// Connections whose task management waits for the ends of other sessions' tasks.
    pub(super) ending: Vec<(Behind, u64)>,
    /// Unfinished writes of sessions that are over, indexed by connection number.
    pub(super) writing: BTreeMap<u64, (SessionKey, Vec<IoTag>)>,
    /// Connections whose login response waits for such writes.
    pub(super) waiting: Vec<u64>,
}

impl Shared {
    pub(super) fn new(node: Node, behind: Vec<TargetPlan>) -> Shared {
        Shared {
            offers: node.targets.iter().map(|target| target.offers).collect(),
            matched: Vec::new(),
            node: Arc::new(node),
            behind,
            directory: Directory::default(),
            ends: Vec::new(),
            replaced: Vec::new(),
            resets: Vec::new(),
            ending: Vec::new(),
            writing: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Returns whether an ended session of this initiator port has unfinished writes.
    pub(super) fn is_writing_for(&self, key: &SessionKey) -> bool {
        self.writing.values().any(|(of, _)| of == key)
    }

    /// Storage of a session; `None` in discovery.
    pub(super) fn behind(&self, key: &SessionKey) -> Option<Behind> {
        self.behind.get(usize::from(key.target?)).map(|plan| plan.behind(key.group))
    }

    /// Handles the end of an I/O of an ended session.
    pub(super) fn write_ended(&mut self, id: u64, tag: IoTag) {
        if let Some((_, tags)) = self.writing.get_mut(&id) {
            tags.retain(|of| *of != tag);
            if tags.is_empty() {
                self.writing.remove(&id);
            }
        }
    }

    /// Adapts the offers for logins to the parameters of the back ends, so that PDUs can be
    /// forwarded unchanged.
    pub(super) fn match_back_ends(&mut self, stores: &Stores<'_>) {
        let backs: Vec<Parameters> = stores.volumes.iter().flat_map(|engine| engine.parameters()).collect();
        if backs == self.matched {
            return;
        }
        let node = Arc::make_mut(&mut self.node);
        for ((target, offers), behind) in node.targets.iter_mut().zip(&self.offers).zip(&self.behind) {
            if behind.forward {
                target.offers = front_offers(*offers, &backs);
            }
        }
        self.matched = backs;
    }
}
