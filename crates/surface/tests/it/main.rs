//! Tests of the servers, of the management interfaces and of the page.

mod api;
mod client;
mod fos;
mod nxapi;
mod page;
mod server;
mod snmp;
mod ssh;
