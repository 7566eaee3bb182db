//! Caches of a storage controller.
//!
//! - [`Directory`] holds the resident keys in the order of a replacement [`Policy`].

mod directory;
mod index;
mod policy;
mod slots;

pub use directory::{Access, Admission, Directory};
pub use policy::Policy;
