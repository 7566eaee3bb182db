//! A running instance (`sanloom up`) in the hands of an operator: its zones, its store, what a crash leaves of both,
//! injected faults, metrics.

mod apply;
mod bench;
mod captures;
mod durable;
mod ends;
mod examples;
mod forwarding;
mod inject;
mod instance;
mod links;
mod monitoring;
#[path = "../../../../tests/peer.rs"]
mod peer;
#[path = "../../../../tests/process.rs"]
mod process;
mod raw_port;
mod replay;
mod stalls;
#[path = "../../../../tests/started.rs"]
mod started;
mod store;
mod zones;
