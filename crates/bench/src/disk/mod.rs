//! Disks of the user: parameter files, import, and calibration.

pub mod calibrate;
pub mod import;
pub(crate) mod input;
