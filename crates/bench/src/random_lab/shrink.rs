//! Reduction of a failing lab.

use super::Trial;
use sanloom_fc::san::Lab;
use std::time::{Duration, Instant};

/// Time of the search, after which the smallest lab so far is good enough. It leaves the report to
/// tests that end a lab that hangs.
const SEARCH: Duration = Duration::from_secs(40);

/// Removes elements as long as `fails` stays true: faults first, then workloads and their hosts.
/// The lab always passes `Lab::validate`. The search ends after 40 s.
pub fn shrink(trial: &Trial, fails: impl FnMut(&Trial) -> bool) -> Trial {
    let smaller = |best: &Trial| -> Vec<Candidate<Trial>> {
        let candidate = |cut: Cut| -> Candidate<Trial> {
            Box::new(move |best| {
                let mut lab = best.lab.clone();
                cut(&mut lab);
                (lab != best.lab && lab.validate().is_empty()).then(|| Trial { lab, ..best.clone() })
            })
        };
        cuts(&best.lab).into_iter().map(candidate).collect()
    };
    reduce(trial.clone(), smaller, fails)
}

/// Makes a smaller lab of a lab; `None` if the lab would not be smaller, or not valid.
pub type Candidate<T> = Box<dyn Fn(&T) -> Option<T>>;

/// Replaces a failing lab by the first of its candidates that fails, too, until there is none. The
/// search ends after 40 s.
pub fn reduce<T>(mut best: T, candidates: impl Fn(&T) -> Vec<Candidate<T>>, mut fails: impl FnMut(&T) -> bool) -> T {
    let end = Instant::now() + SEARCH;
    loop {
        let in_time = candidates(&best).into_iter().take_while(|_| Instant::now() < end);
        let smaller = in_time.filter_map(|candidate| candidate(&best)).find(&mut fails);
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

type Cut = Box<dyn Fn(&mut Lab)>;

fn cuts(lab: &Lab) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    for fault in 0..lab.faults.len() {
        cuts.push(Box::new(move |lab| {
            lab.faults.remove(fault);
        }));
    }
    for change in 0..lab.changes.len() {
        cuts.push(Box::new(move |lab| {
            lab.changes.remove(change);
        }));
    }
    for switch in 0..lab.switches.len() {
        cuts.push(Box::new(move |lab| lab.switches[switch].joining = Default::default()));
    }
    for (workload, work) in lab.workloads.iter().enumerate() {
        cuts.push(Box::new(move |lab| {
            lab.workloads.remove(workload);
        }));
        if work.hosts.len() > 1 {
            for host in 0..work.hosts.len() {
                cuts.push(Box::new(move |lab| {
                    lab.workloads[workload].hosts.remove(host);
                }));
            }
        }
        if work.targets.len() > 1 {
            for target in 0..work.targets.len() {
                cuts.push(Box::new(move |lab| {
                    lab.workloads[workload].targets.remove(target);
                }));
            }
        }
        cuts.push(Box::new(move |lab| lab.workloads[workload].hot_set = None));
    }
    for host in 0..lab.hosts.len() {
        cuts.push(Box::new(move |lab| lab.hosts[host].bus = None));
        cuts.push(Box::new(move |lab| lab.hosts[host].interrupt = None));
        cuts.push(Box::new(move |lab| lab.hosts[host].queue.merge_up_to_bytes = 0));
        cuts.push(Box::new(move |lab| lab.hosts[host].cpu_per_io.0 = 0));
    }
    cuts
}
