//! From a world at the end of its run to the values of `sanloom-api`.

use crate::world::World;
use sanloom_api::results::Results;

/// The results of a run; `interrupted` if it was stopped before its time.
pub fn of(world: &World, interrupted: bool) -> Results {
    let mut results = Results::default();
    results.lab.interrupted = interrupted;
    results.lab.name = world.lab.name.clone();
    results
}
