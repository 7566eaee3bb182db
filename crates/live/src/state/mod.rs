//! State that survives a crash, apart from the disks, in SQLite ([`StateStore`]): the zones and
//! learned addresses of each switch, and virtual disks.
//!
//! A record is on stable storage when the writing call returns (write-ahead log, a sync per
//! transaction). Several processes, each with its own switches, may have the file open.

mod agree;
mod volumes;

pub use agree::{Agreement, differences, merge};
pub use volumes::{KeptSegment, KeptVolume};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sanloom_api::zone_database::Database;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the table schema (`PRAGMA user_version`).
const VERSION: u32 = 2;
/// Maximum wait for another process's lock when the store is opened.
const BUSY_AT_START: Duration = Duration::from_secs(5);
/// Maximum wait for another process's lock afterwards, because frames are delayed meanwhile.
const BUSY: Duration = Duration::from_millis(250);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS zoning (
        switch    TEXT PRIMARY KEY,
        -- Content of the lab file when file and store last agreed.
        lab       TEXT NOT NULL,
        committed TEXT NOT NULL,
        previous  TEXT,
        -- Database about to be committed. Never read; its write only shows that there is room for it.
        prepared  TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS address (
        switch    TEXT NOT NULL,
        port_name TEXT NOT NULL,
        port_id   INTEGER NOT NULL,
        PRIMARY KEY (switch, port_name),
        UNIQUE (switch, port_id)
    ) STRICT;
    -- Random number in the identifiers of LUNs, which distinguishes instances.
    CREATE TABLE IF NOT EXISTS instance (
        only   INTEGER PRIMARY KEY CHECK (only = 1),
        number INTEGER NOT NULL
    ) STRICT;
    INSERT OR IGNORE INTO instance (only, number) VALUES (1, random() & 0x7fffffff);
";

/// Reason why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// SQLite returned an error.
    #[error("cannot use {}: {error}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error.
        error: rusqlite::Error,
    },
    /// The file was written by a newer sanloom.
    #[error("{} was written by a newer sanloom (version {version} of the tables)", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The record of a switch was removed from the file.
    #[error("{} no longer has a record of {switch}; restart the instance", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The switch.
        switch: String,
    },
    /// The stored record is not a zone database.
    #[error("{} holds no zone database for {switch}: {reason}; remove the file, or start with --reset", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The switch.
        switch: String,
        /// The reason.
        reason: String,
    },
    /// The stored volumes do not match the lab.
    #[error("the volumes in {} do not match the lab: {reason}; add it to the lab again", path.display())]
    Volumes {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Zone databases of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptZones {
    /// Content of the lab file when file and store last agreed.
    pub lab: ZoneDatabase,
    /// Committed database.
    pub committed: ZoneDatabase,
    /// Database committed before, for a rollback.
    pub previous: Option<ZoneDatabase>,
}

/// State store of a lab.
#[derive(Debug)]
pub struct StateStore {
    path: PathBuf,
    connection: Connection,
    instance: u32,
}

impl StateStore {
    /// Opens a store and creates it if it does not exist.
    ///
    /// # Errors
    /// When the file cannot be used, or has a newer version.
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

    /// Shortens the lock wait to 250 ms, because the caller is now a loop that must not block. A
    /// file locked by another process then fails soon.
    ///
    /// # Errors
    /// Errors of SQLite.
    pub fn hurry(&self) -> Result<(), StateError> {
        self.connection.busy_timeout(BUSY).map_err(|error| StateError::Sqlite { path: self.path.clone(), error })
    }

    /// Random 31-bit number drawn when the store was created. LUN identifiers contain it, so that a
    /// host which sees two instances of a lab, or two labs with numbered storage systems, does not
    /// confuse their disks.
    pub fn instance(&self) -> u32 {
        self.instance
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, error: rusqlite::Error) -> StateError {
        StateError::Sqlite { path: self.path.clone(), error }
    }

    /// Updates the record of a switch.
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

    /// Runs one transaction, which is durable on return.
    fn write(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), StateError> {
        let whole = || {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            work(&transaction)?;
            transaction.commit()
        };
        whole().map_err(|error| StateError::Sqlite { path: self.path.clone(), error })
    }

    /// Returns the zones of a switch, or `None` if it has never run.
    ///
    /// # Errors
    /// When the file cannot be read, or its record is not a zone database.
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

    /// Stores the zones of a switch, together with the lab file's version.
    ///
    /// # Errors
    /// When the record is not stored.
    pub fn agree(&self, switch: &str, zones: &KeptZones) -> Result<(), StateError> {
        let previous = zones.previous.as_ref().map(text);
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO zoning (switch, lab, committed, previous) VALUES (?1, ?2, ?3, ?4)";
            transaction.execute(insert, params![switch, text(&zones.lab), text(&zones.committed), previous])?;
            Ok(())
        })
    }

    /// Checks that the store has room for a database before the fabric commits it.
    ///
    /// # Errors
    /// When the database could not be stored.
    pub fn prepare(&self, switch: &str, database: &ZoneDatabase) -> Result<(), StateError> {
        let update = "UPDATE zoning SET prepared = ?2 WHERE switch = ?1";
        self.update(switch, update, params![switch, text(database)])
    }

    /// Stores a committed database.
    ///
    /// # Errors
    /// When the record is not stored.
    pub fn commit(
        &self,
        switch: &str,
        committed: &ZoneDatabase,
        previous: Option<&ZoneDatabase>,
    ) -> Result<(), StateError> {
        let update = "UPDATE zoning SET committed = ?2, previous = ?3, prepared = NULL WHERE switch = ?1";
        self.update(switch, update, params![switch, text(committed), previous.map(text)])
    }

    /// Returns the learned addresses of a switch, without invalid records.
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

    /// Assigns an address to a port name and removes it from any other.
    ///
    /// # Errors
    /// When the record is not stored.
    pub fn keep_address(&self, switch: &str, name: Wwpn, id: FcId) -> Result<(), StateError> {
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO address (switch, port_name, port_id) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, params![switch, name.to_string(), id.to_u32()])?;
            Ok(())
        })
    }

    /// Removes learned addresses of a switch: those of the given names, or all.
    ///
    /// # Errors
    /// When the records are not removed.
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

/// JSON form of the control interface, which is readable with `sqlite3`.
fn text(database: &ZoneDatabase) -> String {
    // Serialisation cannot fail, because the value holds only strings and maps of strings.
    serde_json::to_string(&Database::from(database)).unwrap_or_default()
}
