//! Import of switch configurations: shapes of real outputs, with names and numbers of our own.

mod choices;
mod details;
mod fabrics;
mod foreign;
mod in_force;
mod interfaces;
mod large;
mod listed;
mod logical;
mod long;
mod loops;
mod models;
mod nx_export;
mod nxos;
mod rest_files;
mod rest_order;
mod round_trip;
mod samples;
mod sessions;
mod trunks;
mod unread;
mod words;
