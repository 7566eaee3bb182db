//! Committed database and its predecessor: [`ZoneStore`].

use super::database::ZoneDatabase;
use super::problem::ZoneProblem;
use super::transaction::Transaction;
use crate::config::ZoneLimits;

/// Zoning state of a switch between transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneStore {
    current: ZoneDatabase,
    previous: Option<ZoneDatabase>,
    limits: ZoneLimits,
}

impl ZoneStore {
    /// Returns a store without a predecessor to roll back to.
    pub fn new(current: ZoneDatabase, limits: ZoneLimits) -> ZoneStore {
        ZoneStore { current, previous: None, limits }
    }

    /// Committed database.
    pub fn current(&self) -> &ZoneDatabase {
        &self.current
    }

    /// Limits that every commit is checked against.
    pub fn limits(&self) -> &ZoneLimits {
        &self.limits
    }

    /// Begins a transaction on the committed database.
    pub fn begin(&self) -> Transaction {
        Transaction::begin(&self.current, self.limits)
    }

    /// Commits the result of a transaction. If there is a problem, nothing changes.
    ///
    /// # Errors
    /// Every problem of the result, or [`ZoneProblem::Stale`] alone if the committed database
    /// changed after the transaction began.
    pub fn commit(&mut self, transaction: &Transaction) -> Result<&ZoneDatabase, Vec<ZoneProblem>> {
        if *transaction.base() != self.current {
            return Err(vec![ZoneProblem::Stale]);
        }
        let outcome = transaction.commit()?;
        Ok(self.replace(outcome))
    }

    /// Adopts a database from elsewhere in the fabric: a merge or another switch's commit.
    pub fn replace(&mut self, database: ZoneDatabase) -> &ZoneDatabase {
        if database != self.current {
            self.previous = Some(std::mem::replace(&mut self.current, database));
        }
        &self.current
    }

    /// Restores the database before the last change. A second rollback undoes the first.
    ///
    /// # Errors
    /// [`ZoneProblem::NothingToRollBack`].
    pub fn rollback(&mut self) -> Result<&ZoneDatabase, ZoneProblem> {
        let previous = self.previous.take().ok_or(ZoneProblem::NothingToRollBack)?;
        Ok(self.replace(previous))
    }
}
