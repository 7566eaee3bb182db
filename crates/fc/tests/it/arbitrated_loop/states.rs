//! Every transition of the state machine of the plain engine, against a table that was written by
//! hand from FC-AL-2, clause 8, and figure 12 of the Seagate Fibre Channel Interface manual.

use super::agreement::random_plain_runs;
use super::plain::State::{self, *};
use std::collections::BTreeSet;

/// State, word that was received or sent, next state.
const TABLE: [(State, &str, State); 13] = [
    (Monitoring, "own ARB received while arbitrating", ArbitrationWon),
    (Monitoring, "own OPN received", Opened),
    (ArbitrationWon, "OPN sent", Open),
    (ArbitrationWon, "CLS sent", XmittedClose),
    (Open, "CLS sent", XmittedClose),
    (Open, "CLS sent", Transfer),
    (Open, "CLS received", ReceivedClose),
    (Transfer, "OPN sent", Open),
    (Opened, "CLS sent", XmittedClose),
    (Opened, "CLS received", ReceivedClose),
    (XmittedClose, "CLS received", Monitoring),
    (ReceivedClose, "CLS sent", Monitoring),
    // The login credit is not covered on the step of the CLS.
    (ReceivedClose, "CLS sent", XmittedClose),
];

/// Both ends close at once, and a port reads CLS on the step on which it sends its own, or before
/// an answer can arrive. Too rare for the runs of this test.
const AT_ONCE: [(State, State); 3] = [(Open, Monitoring), (Opened, Monitoring), (Transfer, Monitoring)];

#[test]
fn ports_change_their_state_only_as_the_standard_permits() {
    let permitted: BTreeSet<(State, State)> = TABLE.iter().map(|(from, _, to)| (*from, *to)).collect();
    let seen = random_plain_runs(400);
    let wrong: Vec<_> = seen.difference(&permitted).filter(|change| !AT_ONCE.contains(change)).collect();
    assert!(wrong.is_empty(), "not in the table: {wrong:?}");
    let missing: Vec<_> = permitted.difference(&seen).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}
