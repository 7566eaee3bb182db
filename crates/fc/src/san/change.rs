//! Scheduled changes of zones during a run: [`ScheduledChange`].

use crate::config::{Picos, Zoning};
use crate::zoning::ZoneEdit;

/// Transaction that an administrator commits at a switch; its zone server distributes it to the
/// whole fabric.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledChange {
    /// Time of the commit, relative to the start of the workloads.
    pub at: Picos,
    /// Index into `switches` of the switch with the commit.
    pub switch: u16,
    /// Edits in order, applied to the database that is committed there at that time.
    pub edits: Vec<ZoneEdit>,
    /// Effective zoning afterwards, provided that the run goes as the lab describes.
    pub expected: Zoning,
}
