//! Import of switch configurations: shapes of real outputs, with names and numbers of our own.

mod large;
mod models;
mod round_trip;
mod samples;
