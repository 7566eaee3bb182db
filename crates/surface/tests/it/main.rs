//! Tests of the servers, of the management interfaces and of the page.

mod api;
mod client;
mod console;
mod fos;
mod fos_bodies;
mod fos_shared;
mod fos_zone_bodies;
mod nxapi;
mod nxapi_zones;
mod page;
mod reference;
mod server;
mod snmp;
mod ssh;
