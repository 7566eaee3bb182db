//! Operation of a running instance (`sanloom up`): zones, the store, recovery of both after a
//! crash, injected faults, and metrics.

mod apply;
mod background;
mod bench;
mod captures;
mod durable;
mod ends;
#[cfg(feature = "surface")]
mod events;
mod examples;
mod forwarding;
#[cfg(feature = "surface")]
mod fos;
#[cfg(feature = "surface")]
mod fos_ansible;
#[cfg(feature = "surface")]
mod fos_collectors;
mod fos_forms;
#[cfg(feature = "surface")]
mod fos_shapes;
#[cfg(feature = "surface")]
mod fos_ssh;
mod inject;
mod instance;
mod links;
mod monitoring;
#[cfg(feature = "surface")]
mod nxapi;
mod nxapi_roles;
mod page;
mod raw_port;
mod replay;
#[cfg(feature = "surface")]
mod scripts;
#[cfg(feature = "surface")]
mod simulated;
#[cfg(feature = "surface")]
mod snmp;
mod stalls;
mod store;
mod traces;
#[cfg(feature = "surface")]
mod transactions;
#[cfg(feature = "surface")]
mod users;
mod zoned;
mod zones;
