//! Zones of a running switch, with the names of its lab: [`database`], [`edits`].

use crate::exit::Failure;
use sanloom_api::zone_database::{Database, Edit};
use sanloom_api::zoning::ZoneStatus;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;

/// Decodes a database from an answer of the instance.
///
/// # Errors
/// If it is no database.
pub fn database(database: &Database) -> Result<ZoneDatabase, Failure> {
    ZoneDatabase::try_from(database).map_err(|error| Failure::protocol(format_args!("the instance's zones: {error}")))
}

/// Reads a file of zone edits, with the names of the lab, for the zones defined on a running
/// switch. `label` is the name of the file in diagnostics.
///
/// # Errors
/// All errors of the file.
pub fn edits(lab: &Lab, status: &ZoneStatus, label: &str, text: &str) -> Result<Vec<Edit>, Failure> {
    let mut lab = lab.clone();
    lab.zone_database = database(status.working.as_ref().unwrap_or(&status.committed))?;
    lab.zoning = lab.zone_database.zoning();
    let edits = sanloom_lab::zone_edits(label, text, &lab)?;
    Ok(edits.iter().map(Edit::from).collect())
}
