//! Changes of zones while a lab runs: [`ScheduledChange`].

use super::units::Picos;
use super::zoning::Zoning;
use crate::zoning::ZoneEdit;

/// A transaction that an administrator commits at a switch; its zone server carries it to the whole fabric.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledChange {
    /// When, counted from the start of the workloads.
    pub at: Picos,
    /// Index into `switches`: where it is committed.
    pub switch: u16,
    /// What is edited, in order, in what is committed there at that time.
    pub edits: Vec<ZoneEdit>,
    /// What is in force afterwards, if everything goes as the lab says.
    pub expected: Zoning,
}
