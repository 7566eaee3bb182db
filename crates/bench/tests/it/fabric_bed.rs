//! Convergence of fabrics with many switches, and propagation of later logins to all of them.

use sanloom_bench::fabric_bed::{FabricBed, FabricPlan};
use sanloom_scsi::time::{Instant, Span};

fn converge(bed: &mut FabricBed) {
    for _ in 0..120 {
        bed.run(Span::from_ms(500));
        if bed.check(2_000).is_ok() {
            return;
        }
    }
    panic!("after {:?}: {:?}", bed.now(), bed.check(2_000));
}

#[test]
fn twenty_switches_with_2000_n_ports_converge() {
    let mut bed = FabricBed::new(FabricPlan::new(20, 2_000, 20));
    bed.log_in_first();
    converge(&mut bed);
    let quiet = bed.traffic();
    assert!(bed.now() < Instant::ZERO + Span::from_secs(30), "{:?}", bed.now());
    assert_eq!((quiet.notifications, quiet.rscns), (0, 0), "nobody has changed since the others asked");
    assert_eq!(quiet.questions, 20 * 19, "every name server asks every other one once");

    bed.discover();
    bed.log_in_later(Span::from_ms(1));
    converge(&mut bed);
    let later = bed.traffic().since(quiet);
    assert!(later.rscns > 0 && later.ports_found > 0, "principals hear of new members and ask: {later:?}");
    assert!(later.notifications >= 20 * 19, "{later:?}");
}

#[test]
fn the_same_plan_gives_the_same_messages() {
    let [a, b] = [(), ()].map(|()| {
        let mut bed = FabricBed::new(FabricPlan::new(7, 300, 0));
        bed.log_in_first();
        converge(&mut bed);
        (bed.now(), bed.traffic())
    });
    assert_eq!(a, b);
}
