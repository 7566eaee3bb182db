//! Simulations of single failures, for `sanloom whatif`: [`failure`], [`trial`].

pub mod failure;
pub mod trial;

/// Result of a study that has no failure to simulate.
pub const NO_FAILURES: &str = "The lab has no element of these kinds, so no failure was simulated.";

/// Explains the row of a metadata server, which cuts hosts off and leaves throughput.
pub const NOTE_ON_SERVERS: &str = "Without a metadata server, hosts reach only the extents that their maps hold. \
                                   A host that starts then is cut off, because it cannot fetch a map.";

/// Returns whether a row is that of a metadata server.
pub fn is_server(row: &sanloom_api::results::WhatIfRow) -> bool {
    row.kind == failure::Kind::Server.word()
}
