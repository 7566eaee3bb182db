//! Reports: required content, and content that must not appear.

mod design;
mod files;
mod fixture;
mod html;
mod terminal;
