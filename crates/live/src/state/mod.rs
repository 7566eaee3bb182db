//! What outlives a crash beside the disks: the zones of each switch, the addresses that it has learned, and virtual disks, in
//! SQLite ([`StateStore`]).
//!
//! A record is on stable storage when the call that keeps it comes back (write-ahead log, a sync with every transaction), so
//! whoever waits for the call waits for the record. Several processes, each with switches of its own, may have the file open.

mod agree;
mod volumes;

pub use agree::{Agreement, differences, merge};
pub use volumes::{KeptSegment, KeptVolume};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sanloom_api::zone_database::Database;
use sanloom_core::zoning::ZoneDatabase;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the tables (`PRAGMA user_version`).
const VERSION: u32 = 2;
/// How long another process may hold the file when it is opened.
const BUSY_AT_START: Duration = Duration::from_secs(5);
/// And from then on, while frames wait for us.
const BUSY: Duration = Duration::from_millis(250);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS zoning (
        switch    TEXT PRIMARY KEY,
        -- What the lab file said when both were last the same.
        lab       TEXT NOT NULL,
        committed TEXT NOT NULL,
        previous  TEXT,
        -- What is about to be committed. Nobody reads it: that it could be written shows that there is room.
        prepared  TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS address (
        switch    TEXT NOT NULL,
        port_name TEXT NOT NULL,
        port_id   INTEGER NOT NULL,
        PRIMARY KEY (switch, port_name),
        UNIQUE (switch, port_id)
    ) STRICT;
    -- What the names of its LUNs have that those of no other instance have.
    CREATE TABLE IF NOT EXISTS instance (
        only   INTEGER PRIMARY KEY CHECK (only = 1),
        number INTEGER NOT NULL
    ) STRICT;
    INSERT OR IGNORE INTO instance (only, number) VALUES (1, random() & 0x7fffffff);
";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// SQLite says so.
    #[error("cannot use {}: {error}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        error: rusqlite::Error,
    },
    /// A newer sanloom has written it.
    #[error("{} was written by a newer sanloom (version {version} of the tables)", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Somebody has removed a record.
    #[error("{} has no record of {switch} any more; end the instance and start it again", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The switch.
        switch: String,
    },
    /// A record is none.
    #[error("{} holds no zone database for {switch}: {reason}; remove the file, or start with --reset", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The switch.
        switch: String,
        /// What is wrong.
        reason: String,
    },
    /// Its volumes do not fit the lab.
    #[error("the volumes in {} do not fit the lab: {reason}; put back what is missing there", path.display())]
    Volumes {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The zones of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptZones {
    /// What the lab file said when both were last the same.
    pub lab: ZoneDatabase,
    /// What is committed.
    pub committed: ZoneDatabase,
    /// What was committed before: for a rollback.
    pub previous: Option<ZoneDatabase>,
}

/// The store of a lab.
#[derive(Debug)]
pub struct StateStore {
    path: PathBuf,
    connection: Connection,
    instance: u32,
}

impl StateStore {
    /// Opens a store; it is made if it is not there.
    ///
    /// # Errors
    /// When the file cannot be used, or is of a newer version.
    pub fn open(path: &Path) -> Result<StateStore, StateError> {
        let failed = |error| StateError::Sqlite { path: path.to_owned(), error };
        let connection = Connection::open(path).map_err(failed)?;
        let ready = || {
            connection.busy_timeout(BUSY_AT_START)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
        };
        let version = ready().map_err(failed)?;
        if version > VERSION {
            return Err(StateError::Newer { path: path.to_owned(), version });
        }
        let mut instance = 0;
        let mut store = StateStore { path: path.to_owned(), connection, instance };
        store.write(|transaction| {
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(volumes::TABLES)?;
            instance = transaction.query_row("SELECT number FROM instance", [], |row| row.get(0))?;
            transaction.pragma_update(None, "user_version", VERSION)
        })?;
        store.instance = instance;
        Ok(store)
    }

    /// The store is used from a loop now that cannot wait for long: a file that another process holds is an error soon.
    ///
    /// # Errors
    /// SQLite says so.
    pub fn hurry(&self) -> Result<(), StateError> {
        self.connection.busy_timeout(BUSY).map_err(|error| StateError::Sqlite { path: self.path.clone(), error })
    }

    /// Number of 31 bits that was drawn when the store was made. LUNs have it in their names, so that hosts which see two instances
    /// of a lab, or of two labs whose storage systems are called by number, take no two disks for one.
    pub fn instance(&self) -> u32 {
        self.instance
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, error: rusqlite::Error) -> StateError {
        StateError::Sqlite { path: self.path.clone(), error }
    }

    /// Changes the record of a switch.
    fn update(&self, switch: &str, update: &str, values: impl rusqlite::Params) -> Result<(), StateError> {
        let mut changed = 0;
        self.write(|transaction| {
            changed = transaction.execute(update, values)?;
            Ok(())
        })?;
        match changed {
            0 => Err(StateError::Missing { path: self.path.clone(), switch: switch.to_owned() }),
            _ => Ok(()),
        }
    }

    /// One transaction, durable when it is over.
    fn write(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), StateError> {
        let whole = || {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            work(&transaction)?;
            transaction.commit()
        };
        whole().map_err(|error| StateError::Sqlite { path: self.path.clone(), error })
    }

    /// The zones of a switch; nothing: it has never run.
    ///
    /// # Errors
    /// When the file cannot be read, or its record is no database.
    pub fn zones(&self, switch: &str) -> Result<Option<KeptZones>, StateError> {
        let failed = |error| StateError::Sqlite { path: self.path.clone(), error };
        let select = "SELECT lab, committed, previous FROM zoning WHERE switch = ?1";
        let row = self.connection.query_row(select, [switch], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
        });
        let Some((lab, committed, previous)) = row.optional().map_err(failed)? else { return Ok(None) };
        let read = |text: &str| {
            let database: Database = serde_json::from_str(text).map_err(|error| error.to_string())?;
            ZoneDatabase::try_from(&database).map_err(|error| error.to_string())
        };
        let damaged = |reason| StateError::Damaged { path: self.path.clone(), switch: switch.to_owned(), reason };
        Ok(Some(KeptZones {
            lab: read(&lab).map_err(damaged)?,
            committed: read(&committed).map_err(damaged)?,
            previous: previous.as_deref().map(read).transpose().map_err(damaged)?,
        }))
    }

    /// The zones of a switch from now on, with what the lab file says of them.
    ///
    /// # Errors
    /// They are not kept.
    pub fn agree(&self, switch: &str, zones: &KeptZones) -> Result<(), StateError> {
        let previous = zones.previous.as_ref().map(text);
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO zoning (switch, lab, committed, previous) VALUES (?1, ?2, ?3, ?4)";
            transaction.execute(insert, params![switch, text(&zones.lab), text(&zones.committed), previous])?;
            Ok(())
        })
    }

    /// Makes sure that there is room for a database before the fabric is asked to commit it.
    ///
    /// # Errors
    /// It could not be kept.
    pub fn prepare(&self, switch: &str, database: &ZoneDatabase) -> Result<(), StateError> {
        let update = "UPDATE zoning SET prepared = ?2 WHERE switch = ?1";
        self.update(switch, update, params![switch, text(database)])
    }

    /// A database is committed.
    ///
    /// # Errors
    /// It is not kept.
    pub fn commit(
        &self,
        switch: &str,
        committed: &ZoneDatabase,
        previous: Option<&ZoneDatabase>,
    ) -> Result<(), StateError> {
        let update = "UPDATE zoning SET committed = ?2, previous = ?3, prepared = NULL WHERE switch = ?1";
        self.update(switch, update, params![switch, text(committed), previous.map(text)])
    }

    /// The addresses that a switch has learned. A record that is none is left out.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn addresses(&self, switch: &str) -> Result<BTreeMap<Wwpn, FcId>, StateError> {
        let read = || {
            let mut select = self.connection.prepare("SELECT port_name, port_id FROM address WHERE switch = ?1")?;
            let rows = select.query_map([switch], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?)))?;
            let mut addresses = BTreeMap::new();
            for row in rows {
                let (name, id) = row?;
                if let (Ok(name), true) = (name.parse::<Wwpn>(), id <= 0xff_ffff) {
                    addresses.insert(name, FcId::new(id));
                }
            }
            Ok(addresses)
        };
        read().map_err(|error| StateError::Sqlite { path: self.path.clone(), error })
    }

    /// An address is that of a name from now on, and of no other.
    ///
    /// # Errors
    /// It is not kept.
    pub fn keep_address(&self, switch: &str, name: Wwpn, id: FcId) -> Result<(), StateError> {
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO address (switch, port_name, port_id) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, params![switch, name.to_string(), id.to_u32()])?;
            Ok(())
        })
    }

    /// Forgets learned addresses of a switch: those of these names, or all.
    ///
    /// # Errors
    /// They are not forgotten.
    pub fn forget_addresses(&self, switch: &str, names: Option<&[Wwpn]>) -> Result<(), StateError> {
        self.write(|transaction| {
            match names {
                None => _ = transaction.execute("DELETE FROM address WHERE switch = ?1", [switch])?,
                Some(names) => {
                    for name in names {
                        let delete = "DELETE FROM address WHERE switch = ?1 AND port_name = ?2";
                        transaction.execute(delete, params![switch, name.to_string()])?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// As the control interface shows it; `sqlite3` users can read it.
fn text(database: &ZoneDatabase) -> String {
    // Strings and maps of strings can always be written.
    serde_json::to_string(&Database::from(database)).unwrap_or_default()
}
