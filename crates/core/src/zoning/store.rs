//! The committed database and the one before it: [`ZoneStore`].

use super::database::ZoneDatabase;
use super::limits::ZoneLimits;
use super::problem::ZoneProblem;
use super::transaction::Transaction;

/// What a switch keeps of zoning between transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneStore {
    current: ZoneDatabase,
    previous: Option<ZoneDatabase>,
    limits: ZoneLimits,
}

impl ZoneStore {
    /// Begins with a database that has no predecessor.
    pub fn new(current: ZoneDatabase, limits: ZoneLimits) -> ZoneStore {
        ZoneStore { current, previous: None, limits }
    }

    /// What is committed.
    pub fn current(&self) -> &ZoneDatabase {
        &self.current
    }

    /// What a commit must stay below.
    pub fn limits(&self) -> &ZoneLimits {
        &self.limits
    }

    /// A transaction on what is committed now.
    pub fn begin(&self) -> Transaction {
        Transaction::begin(&self.current, self.limits)
    }

    /// Makes the outcome of a transaction the committed database. Nothing changes if there is a problem.
    ///
    /// # Errors
    /// Every problem of the outcome, or [`ZoneProblem::Stale`] alone if something else was committed meanwhile.
    pub fn commit(&mut self, transaction: &Transaction) -> Result<&ZoneDatabase, Vec<ZoneProblem>> {
        if *transaction.base() != self.current {
            return Err(vec![ZoneProblem::Stale]);
        }
        let outcome = transaction.commit()?;
        Ok(self.replace(outcome))
    }

    /// Takes over a database from elsewhere in the fabric: a merge or another switch's commit.
    pub fn replace(&mut self, database: ZoneDatabase) -> &ZoneDatabase {
        if database != self.current {
            self.previous = Some(std::mem::replace(&mut self.current, database));
        }
        &self.current
    }

    /// Goes back to the database before the last change. A second rollback undoes the first.
    ///
    /// # Errors
    /// [`ZoneProblem::NothingToRollBack`].
    pub fn rollback(&mut self) -> Result<&ZoneDatabase, ZoneProblem> {
        let previous = self.previous.take().ok_or(ZoneProblem::NothingToRollBack)?;
        Ok(self.replace(previous))
    }
}
