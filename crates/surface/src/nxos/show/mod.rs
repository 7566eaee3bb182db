//! Commands that show something.

pub mod config;
pub mod devices;
pub mod interfaces;
pub mod logging;
pub mod parts;
pub mod pending;
pub mod system;
pub mod zones;

/// A line of dashes.
fn rule(width: usize) -> String {
    format!("{}\n", "-".repeat(width))
}
