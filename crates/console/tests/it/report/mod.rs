//! Reports: what a reader sees, and what must never reach him.

mod design;
mod files;
mod fixture;
mod html;
mod terminal;
