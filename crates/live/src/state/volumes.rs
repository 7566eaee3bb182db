//! Virtual disks in the store: their properties, their extent maps, and the storage systems that
//! serve them.
//!
//! Each change is one transaction, so that after a crash the map is either the old or the new one.
//! Extents refer to back ends by name, so that a lab file may list the back ends in another order.

use super::{StateError, StateStore};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use sanloom_scsi::map::{Segment, Shape, VolumeId};
use serde::{Deserialize, Serialize};

pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pool (
        name          TEXT PRIMARY KEY,
        block_bytes   INTEGER NOT NULL,
        extent_blocks INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS back_end (
        name     TEXT PRIMARY KEY,
        -- Identity of the disk when its extents were last used.
        identity TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS volume (
        id            INTEGER PRIMARY KEY,
        name          TEXT NOT NULL UNIQUE,
        pool          TEXT NOT NULL,
        -- 1: linear.
        width         INTEGER NOT NULL,
        stripe_blocks INTEGER NOT NULL,
        blocks        INTEGER NOT NULL,
        segments      TEXT NOT NULL,
        thin          INTEGER NOT NULL,
        write_back    INTEGER NOT NULL,
        storage       TEXT,
        lun           INTEGER,
        UNIQUE (storage, lun)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS volume_number (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        next INTEGER NOT NULL
    ) STRICT;
    -- Blocks that deleted volumes had, and that have not been wiped.
    CREATE TABLE IF NOT EXISTS wipe (
        back_end TEXT NOT NULL,
        lba      INTEGER NOT NULL,
        blocks   INTEGER NOT NULL,
        PRIMARY KEY (back_end, lba)
    ) STRICT;
    -- Initiator ports that sessions with back ends may have: see `InitiatorPorts`.
    CREATE TABLE IF NOT EXISTS initiator_ports (
        only  INTEGER PRIMARY KEY CHECK (only = 1),
        count INTEGER NOT NULL
    ) STRICT;
    -- Volumes of lab files that were created once: they are not created again when an operator has deleted them.
    CREATE TABLE IF NOT EXISTS declared_volume (name TEXT PRIMARY KEY) STRICT;
";

/// A volume as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptVolume {
    pub id: VolumeId,
    pub name: String,
    /// Name of its pool.
    pub pool: String,
    /// Allocation scheme.
    pub shape: Shape,
    /// Size in blocks.
    pub blocks: u64,
    /// Extent map of its blocks.
    pub segments: Vec<KeptSegment>,
    /// True if its back ends can unmap blocks.
    pub thin: bool,
    /// True if its back ends have a volatile cache.
    pub write_back: bool,
    /// Storage system that serves the volume, and the LUN there.
    pub served: Option<(String, u16)>,
}

/// A run of a volume, with its back ends by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptSegment {
    /// Blocks per column.
    pub column_blocks: u64,
    /// Blocks per stripe.
    pub stripe_blocks: u64,
    /// Back end and first block of each column.
    pub columns: Vec<(String, u64)>,
}

impl KeptSegment {
    /// Converts a segment; `name` returns the back end of a LUN.
    pub fn of<'n>(segment: &Segment, name: impl Fn(sanloom_scsi::map::LunId) -> &'n str) -> KeptSegment {
        KeptSegment {
            column_blocks: segment.column_blocks,
            stripe_blocks: segment.stripe_blocks,
            columns: segment.columns.iter().map(|place| (name(place.lun).to_owned(), place.lba)).collect(),
        }
    }
}

impl StateStore {
    /// Returns all volumes, ordered by number.
    ///
    /// # Errors
    /// When the file cannot be read or holds invalid data.
    pub fn volumes(&self) -> Result<Vec<KeptVolume>, StateError> {
        let read = || {
            let mut select = self.connection.prepare(
                "SELECT id, name, pool, width, stripe_blocks, blocks, segments, thin, write_back, storage, lun
                 FROM volume ORDER BY id",
            )?;
            let rows = select.query_map([], volume)?;
            rows.collect::<rusqlite::Result<Vec<KeptVolume>>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// Returns the number for the next volume.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_volume(&self) -> Result<VolumeId, StateError> {
        let select = "SELECT next FROM volume_number";
        let next = self.connection.query_row(select, [], |row| row.get(0)).optional();
        Ok(VolumeId(next.map_err(|error| self.failed(error))?.unwrap_or(0)))
    }

    /// Number of initiator ports that sessions with back ends may have used since the last shutdown
    /// that closed all sessions.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn initiator_ports(&self) -> Result<u16, StateError> {
        let select = "SELECT count FROM initiator_ports";
        let count = self.connection.query_row(select, [], |row| row.get(0)).optional();
        Ok(count.map_err(|error| self.failed(error))?.unwrap_or(0))
    }

    /// Stores how many initiator ports sessions with back ends may use.
    ///
    /// # Errors
    /// When the number is not stored; further ports must then not be used.
    pub fn keep_initiator_ports(&self, count: u16) -> Result<(), StateError> {
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO initiator_ports (only, count) VALUES (1, ?1)";
            transaction.execute(insert, [count]).map(drop)
        })
    }

    /// Stores the current state of a volume. `declared` marks a volume that comes from a lab file.
    ///
    /// # Errors
    /// When the record is not stored; dependent changes must then not be made.
    pub fn keep_volume(&self, volume: &KeptVolume, declared: bool) -> Result<(), StateError> {
        self.write(|transaction| {
            insert(transaction, volume)?;
            if declared {
                transaction.execute("INSERT OR IGNORE INTO declared_volume (name) VALUES (?1)", [&volume.name])?;
            }
            let next = "INSERT INTO volume_number (only, next) VALUES (1, ?1)
                        ON CONFLICT (only) DO UPDATE SET next = max(next, ?1)";
            transaction.execute(next, [volume.id.0 + 1])?;
            Ok(())
        })
    }

    /// Removes a volume. Its blocks are added to [the blocks to wipe](Self::wipes).
    ///
    /// # Errors
    /// When the volume is still stored; nothing else must then be changed.
    pub fn drop_volume(&self, id: VolumeId) -> Result<(), StateError> {
        self.write(|transaction| {
            let select = "SELECT segments FROM volume WHERE id = ?1";
            let text = transaction.query_row(select, [id.0], |row| row.get::<_, String>(0)).optional()?;
            let segments: Vec<KeptSegment> = text.map_or(Ok(Vec::new()), |text| parsed(&text, 0))?;
            for segment in &segments {
                for (back_end, lba) in &segment.columns {
                    let insert = "INSERT OR REPLACE INTO wipe (back_end, lba, blocks) VALUES (?1, ?2, ?3)";
                    transaction.execute(insert, params![back_end, *lba as i64, segment.column_blocks as i64])?;
                }
            }
            transaction.execute("DELETE FROM volume WHERE id = ?1", [id.0]).map(drop)
        })
    }

    /// Returns blocks of deleted volumes that have not been wiped: back end, first block, and
    /// number of blocks.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn wipes(&self) -> Result<Vec<(String, u64, u64)>, StateError> {
        let read = || {
            let mut select =
                self.connection.prepare("SELECT back_end, lba, blocks FROM wipe ORDER BY back_end, lba")?;
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64));
            select.query_map([], row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// Records that these blocks of a back end were wiped.
    ///
    /// # Errors
    /// When the blocks are still stored as not wiped; they must then not be allocated.
    pub fn wiped(&self, back_end: &str, lba: u64, blocks: u64) -> Result<(), StateError> {
        let (first, end) = (lba as i64, (lba + blocks) as i64);
        self.write(|transaction| {
            let select = "SELECT lba, lba + blocks FROM wipe WHERE back_end = ?1 AND lba < ?3 AND lba + blocks > ?2";
            let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let mut found = transaction.prepare(select)?;
            let runs = found.query_map(params![back_end, first, end], row)?.collect::<rusqlite::Result<Vec<_>>>()?;
            for (from, to) in runs {
                transaction.execute("DELETE FROM wipe WHERE back_end = ?1 AND lba = ?2", params![back_end, from])?;
                // The remaining blocks before and after the wiped range.
                for (from, to) in [(from, first), (end, to)].into_iter().filter(|(from, to)| from < to) {
                    let insert = "INSERT OR REPLACE INTO wipe (back_end, lba, blocks) VALUES (?1, ?2, ?3)";
                    transaction.execute(insert, params![back_end, from, to - from])?;
                }
            }
            Ok(())
        })
    }

    /// Returns whether a volume of the lab file has been created before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn was_declared(&self, name: &str) -> Result<bool, StateError> {
        let select = "SELECT 1 FROM declared_volume WHERE name = ?1";
        let row = self.connection.query_row(select, [name], |_| Ok(())).optional();
        Ok(row.map_err(|error| self.failed(error))?.is_some())
    }

    /// Returns the stored block size in bytes and extent size in blocks of a pool. Stores the given
    /// values if there are none yet.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn agree_pool(&self, name: &str, block_bytes: u32, extent_blocks: u64) -> Result<(u32, u64), StateError> {
        self.write(|transaction| {
            let insert = "INSERT OR IGNORE INTO pool (name, block_bytes, extent_blocks) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, params![name, block_bytes, extent_blocks as i64]).map(drop)
        })?;
        let select = "SELECT block_bytes, extent_blocks FROM pool WHERE name = ?1";
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
        self.connection.query_row(select, [name], row).map_err(|error| self.failed(error))
    }

    /// Removes the record of a pool without volumes.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn forget_pool(&self, name: &str) -> Result<(), StateError> {
        self.write(|transaction| transaction.execute("DELETE FROM pool WHERE name = ?1", [name]).map(drop))
    }

    /// Returns the identity that a back end reported when its extents were last used.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn identity(&self, back_end: &str) -> Result<Option<String>, StateError> {
        let select = "SELECT identity FROM back_end WHERE name = ?1";
        let row = self.connection.query_row(select, [back_end], |row| row.get(0)).optional();
        Ok(row.map_err(|error| self.failed(error))?.flatten())
    }

    /// Stores the identity that a back end reports.
    ///
    /// # Errors
    /// When the record is not stored.
    pub fn keep_identity(&self, back_end: &str, identity: Option<&str>) -> Result<(), StateError> {
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO back_end (name, identity) VALUES (?1, ?2)";
            transaction.execute(insert, params![back_end, identity]).map(drop)
        })
    }
}

fn insert(transaction: &Transaction<'_>, volume: &KeptVolume) -> rusqlite::Result<()> {
    let (width, stripe_blocks) = match volume.shape {
        Shape::Linear => (1, 0),
        Shape::Striped { width, stripe_blocks } => (width, stripe_blocks),
    };
    // Serialisation cannot fail, because the value holds only numbers and strings.
    let segments = serde_json::to_string(&volume.segments).unwrap_or_default();
    let (storage, lun) = match &volume.served {
        Some((storage, lun)) => (Some(storage), Some(lun)),
        None => (None, None),
    };
    // A name or LUN of another volume must cause an error and not replace that volume's row.
    let insert = "INSERT INTO volume
                  (id, name, pool, width, stripe_blocks, blocks, segments, thin, write_back, storage, lun)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                  ON CONFLICT (id) DO UPDATE SET
                  name = ?2, pool = ?3, width = ?4, stripe_blocks = ?5, blocks = ?6, segments = ?7, thin = ?8, write_back = ?9,
                  storage = ?10, lun = ?11";
    transaction.execute(
        insert,
        params![
            volume.id.0,
            volume.name,
            volume.pool,
            width,
            stripe_blocks,
            volume.blocks as i64,
            segments,
            volume.thin,
            volume.write_back,
            storage,
            lun
        ],
    )?;
    Ok(())
}

/// Parses the segments of a volume from a column.
fn parsed(text: &str, column: usize) -> rusqlite::Result<Vec<KeptSegment>> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}

fn volume(row: &Row<'_>) -> rusqlite::Result<KeptVolume> {
    let (width, stripe_blocks) = (row.get(3)?, row.get(4)?);
    let segments = parsed(&row.get::<_, String>(6)?, 6)?;
    Ok(KeptVolume {
        id: VolumeId(row.get(0)?),
        name: row.get(1)?,
        pool: row.get(2)?,
        shape: if width == 1 { Shape::Linear } else { Shape::Striped { width, stripe_blocks } },
        blocks: row.get::<_, i64>(5)? as u64,
        segments,
        thin: row.get(7)?,
        write_back: row.get(8)?,
        served: row.get::<_, Option<String>>(9)?.zip(row.get::<_, Option<u16>>(10)?),
    })
}
