//! Meaning of SANLOOM_REQUIRE_PEERS, for the probes of tests and for xtask.

/// True if a missing peer is an error: the variable is set to anything but empty or `0`.
pub fn peers_are_required() -> bool {
    std::env::var("SANLOOM_REQUIRE_PEERS").is_ok_and(|value| !value.is_empty() && value != "0")
}
