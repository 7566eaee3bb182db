//! Caches of a storage controller.
//!
//! - [`Directory`] holds the resident keys in the order of a replacement [`Policy`].
//! - [`Controller`] adds lines with dirty sectors, read-ahead, write-back and destaging.

mod controller;
mod directory;
mod index;
mod policy;
mod slots;

pub use controller::{
    Action, Controller, DestageOrder, DestageSettings, Extent, MAX_LINES, Purpose, ReadAheadSettings, Readiness,
    Reason, Response, Settings, SettingsError, Statistics, WriteMode,
};
pub use directory::{Access, Admission, Directory};
pub use policy::Policy;
