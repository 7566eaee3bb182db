//! Results as somebody wants to see them: tables on a terminal, JSON, CSV, and one HTML file.
//!
//! Everything here takes [`sanloom_api::results`] and gives text; only [`mod@file`] and [`folder`] touch the disk.

pub mod csv;
pub mod figure9;
pub mod file;
pub mod folder;
pub mod format;
pub mod html;
pub mod json;
pub mod plot;
pub mod terminal;
