//! Digests of iSCSI that one side of a session requires and the other refuses.

use super::Problems;
use crate::san::{IpPaths, Lab, Place, ProblemKind, Section};
use sanloom_scsi::iscsi::parameters::Digests;
use std::collections::BTreeSet;

/// Pairs of an initiator and a target of which one requires digests that the other refuses, so that
/// no login succeeds (RFC 7143, 13.1). Each host is named once.
pub(super) fn validate(lab: &Lab, problems: &mut Problems) {
    let mut named = BTreeSet::new();
    IpPaths::for_each_pair(lab, |_, host, storage, _| {
        let Some(target) = lab.live.iscsi.get(&storage) else { return true };
        let own = &lab.hosts[usize::from(host)];
        let offers = own.iscsi.offers;
        let pairs = [
            ("iscsi.header_digest", "header digest", offers.header_digest, target.header_digest),
            ("iscsi.data_digest", "data digest", offers.data_digest, target.data_digest),
        ];
        for (key, digest, near, far) in pairs {
            let (one, other) = match (near, far) {
                (Digests::Always, Digests::Never) => ("requires", "refuses"),
                (Digests::Never, Digests::Always) => ("refuses", "requires"),
                _ => continue,
            };
            if named.insert((key, host)) {
                problems.add(
                    ProblemKind::UnlikeDigests,
                    Place::of(Section::Host, usize::from(host)).key(key),
                    format!(
                        "`{}` {one} the {digest} and `{}` {other} it, so they have no session",
                        own.name,
                        lab.storage[usize::from(storage)].name
                    ),
                    "set one of them to \"either\"",
                );
            }
        }
        true
    });
}
