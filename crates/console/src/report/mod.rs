//! Presentation of results: tables on a terminal, JSON, CSV, and one HTML file.
//!
//! The functions convert [`sanloom_api::results`] to text; only [`mod@file`] and [`folder`] write
//! to the disk.

pub mod check;
pub mod csv;
pub mod figure9;
pub mod file;
pub mod folder;
pub mod format;
pub mod html;
pub mod json;
pub mod plot;
mod routers;
pub mod rows;
pub mod terminal;
