//! Commands that change something.

pub mod devices;
pub mod interfaces;
mod members;
pub mod system;
pub mod zones;
