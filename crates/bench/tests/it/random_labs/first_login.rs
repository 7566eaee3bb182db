//! Required state of a lab before its workloads start.

use sanloom_bench::random_lab::{Trial, first_unrest, generate, generate_plain};
use sanloom_fc::config::Picos;
use sanloom_fc::fabric::DropReason;
use sanloom_sim::net::Loss;
use sanloom_sim::world::World;
use std::sync::Arc;

/// Seeds with lost first queries between name servers. In the last five, a host's last queries are
/// still on the line when everything else has converged.
const FORMING: [u64; 9] = [1412, 2385, 3895, 4797, 8810292, 8820622, 8832849, 8834059, 8850602];

/// E_D_TOV that is long enough for a name server query to wait until all switches know the
/// requester.
const LONG_ENOUGH: Picos = Picos::from_ms(40);

#[test]
fn every_host_has_found_its_storage_when_the_workloads_begin() {
    let forming = FORMING.into_iter().map(generate_plain);
    for Trial { seed, lab, .. } in forming.chain((0..400).map(generate)) {
        let lab = Arc::new(lab);
        let mut world = World::new(lab.clone());
        world.log_in();
        if let Some(what) = first_unrest(&world) {
            panic!("seed {seed}: {what}");
        }
        let denied =
            world.net.fc.recorder.losses().iter().filter(|((_, loss), _)| *loss == Loss::Fib(DropReason::ZoneDenied));
        let denied: u64 = denied.map(|(_, lost)| lost.frames).sum();
        let in_vain = denied > 0 && lab.timers.e_d_tov >= LONG_ENOUGH;
        assert!(
            !in_vain,
            "seed {seed}: hard zoning stopped {denied} frames of hosts that were told of the port too early"
        );
    }
}
