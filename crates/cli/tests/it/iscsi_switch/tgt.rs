//! tgt as storage: a target with one LUN per size.

use crate::iscsi_switch::bed::Bed;
use sanloom_test_support::tgt::Tgtd;
use std::fs;

const TARGET: &str = "iqn.2026-11.net.example:tgt";

/// Runs until it is dropped.
pub struct Tgt {
    pub portal: String,
    luns: usize,
    _daemon: Tgtd,
}

/// Starts tgt with LUNs in files, from LUN 1 on.
pub fn start(bed: &Bed, sizes: &[u64]) -> Tgt {
    start_with(bed, sizes, &[])
}

/// Starts tgt with further settings of the target.
pub fn start_with(bed: &Bed, sizes: &[u64], more: &[&str]) -> Tgt {
    let daemon = Tgtd::start(&bed.folder);
    let mut steps = vec![format!("--op new --mode target --tid 1 -T {TARGET}")];
    for (lun, size) in (1..).zip(sizes) {
        let file = bed.path(&format!("tgt{lun}.img"));
        fs::File::create(&file).unwrap().set_len(*size).unwrap();
        steps.push(format!("--op new --mode logicalunit --tid 1 --lun {lun} -b {file}"));
    }
    steps.push("--op bind --mode target --tid 1 -I ALL".to_owned());
    steps.extend(more.iter().map(|step| format!("--op update --mode target --tid 1 {step}")));
    for step in steps {
        daemon.admin(&step.split_whitespace().collect::<Vec<_>>());
    }
    Tgt { portal: daemon.portal.clone(), luns: sizes.len(), _daemon: daemon }
}

impl Tgt {
    /// Returns its LUNs as back ends of a pool.
    pub fn back_ends(&self, pool: &str) -> String {
        self.back_ends_with(pool, "")
    }

    /// Returns its LUNs as back ends with further keys.
    pub fn back_ends_with(&self, pool: &str, keys: &str) -> String {
        let one = |lun| {
            format!(
                "[back_end.tgt{lun}]\npool = \"{pool}\"\ntarget = \"{TARGET}\"\nportals = \"{}\"\nlun = {lun}\n{keys}",
                self.portal
            )
        };
        (1..=self.luns).map(one).collect()
    }
}
