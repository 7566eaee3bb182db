//! Closed forms of the mean time to data loss.

use super::{Component, Reliability};

/// Mean time to data loss of `disks` disks in groups of `group`, each of which tolerates
/// `tolerated` failures: MTTF^(m+1) / (N (G-1) … (G-m) MTTR^m).
///
/// Patterson, Gibson, Katz (1988), "A case for redundant arrays of inexpensive disks", section 7,
/// for one failure; Chen et al. (1994), section 3.4.1, for two.
pub fn mttdl_h(disks: f64, group: f64, tolerated: u32, mttf_h: f64, mttr_h: f64) -> f64 {
    let partners = (1..=tolerated).map(|lost| (group - f64::from(lost)) * mttr_h / mttf_h);
    mttf_h / disks / partners.product::<f64>()
}

impl Component {
    /// Mean time until all copies have failed, for repairs that are short: a mirror of so many
    /// disks.
    fn closed_form_h(&self) -> f64 {
        let copies = f64::from(self.copies);
        mttdl_h(copies, copies, self.copies - 1, self.mttf_h, self.mttr_h)
    }
}

impl Reliability {
    /// Mean time to data loss by the closed form. A rebuild without redundancy fails by a read
    /// error, too, and the rates of groups and components add up. Spares are always at hand.
    ///
    /// The form holds if (members × repair time) is short against the time between failures. It
    /// returns a time that is too short otherwise.
    pub fn closed_form_h(&self) -> f64 {
        let organisation = self.organisation;
        let members = f64::from(organisation.members);
        let first_per_h = f64::from(self.disks()) / self.mttf_h;
        let next = |lost: u32| (members - f64::from(lost)) * self.mttr_h / self.mttf_h;
        let all_but_last: f64 = (1..organisation.tolerated).map(next).product();
        let last = match organisation.tolerated {
            0 => 1.0,
            tolerated => next(tolerated) + self.rebuild_error(),
        };
        let disks_per_h = first_per_h * all_but_last * last;
        let others_per_h: f64 = self.components.iter().map(|component| 1.0 / component.closed_form_h()).sum();
        1.0 / (disks_per_h + others_per_h)
    }
}
