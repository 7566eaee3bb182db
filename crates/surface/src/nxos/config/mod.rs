//! Commands that change something.

pub mod devices;
pub mod interfaces;
pub mod system;
pub mod zones;
