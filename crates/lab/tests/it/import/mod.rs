//! Import of switch configurations: shapes of real outputs, with names and numbers of our own.

mod choices;
mod details;
mod fabrics;
mod foreign;
mod in_force;
mod large;
mod listed;
mod logical;
mod models;
mod nx_export;
mod nxos;
mod rest_files;
mod round_trip;
mod samples;
mod sessions;
mod trunks;
