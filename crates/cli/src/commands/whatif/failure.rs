//! The failures that are tried.

use sanloom_core::config::{Fault, FaultKind, Lab, Node, Picos};

/// One thing that fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Single {
    /// Its name.
    pub name: String,
    /// `link`, `switch` or `hba`.
    pub word: &'static str,
    /// What happens to it.
    pub kind: FaultKind,
}

/// When it fails: after a third of the run, and not within the warm-up, which no result shows.
pub fn time(lab: &Lab) -> Picos {
    Picos((lab.run.duration.0 / 3).max(lab.run.warmup.0))
}

/// Every link, switch and HBA.
pub fn all(lab: &Lab) -> Vec<Single> {
    let mut failures = Vec::new();
    for (link, index) in lab.links.iter().zip(0..) {
        failures.push(Single { name: link.name.clone(), word: "link", kind: FaultKind::LinkDown { link: index } });
    }
    for (switch, index) in lab.switches.iter().zip(0..) {
        failures.push(Single {
            name: switch.name.clone(),
            word: "switch",
            kind: FaultKind::SwitchReset { switch: index },
        });
    }
    for (link, index) in lab.links.iter().zip(0..) {
        for (end, number) in link.ends.iter().zip(0..) {
            let Node::Host(host) = end.node else {
                continue;
            };
            let Some(host) = lab.hosts.get(usize::from(host)) else {
                continue;
            };
            failures.push(Single {
                name: format!("{}:{}", host.name, end.port),
                word: "hba",
                kind: FaultKind::PortDown { link: index, end: number },
            });
        }
    }
    failures
}

/// Takes the lab's own faults out, because a failure beside them would be a double one; returns how many there were.
pub fn clear(lab: &mut Lab) -> usize {
    std::mem::take(&mut lab.faults).len()
}

/// Makes a failure that lasts to the end of the run the only fault of the lab.
pub fn inject(lab: &mut Lab, at: Picos, kind: FaultKind) {
    lab.faults = vec![Fault { at, until: None, kind }];
}
