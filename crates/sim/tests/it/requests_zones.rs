//! Zone changes of a running world that are disturbed.

use crate::requests::{Operated, PAIRS, status};
use sanloom_api::control::{Answer, ErrorKind, Request, ZoneAction, ZoneClient};
use sanloom_api::zone_database::Edit;
use sanloom_fc::config::{Link, Node};
use std::sync::mpsc::Receiver;

fn edit() -> ZoneAction {
    ZoneAction::Edit { edits: vec![Edit::CreateAlias { name: "z9".to_owned(), members: vec!["1,1".to_owned()] }] }
}

#[track_caller]
fn failed(answers: &Receiver<Answer>) -> (String, ErrorKind) {
    match answers.try_recv() {
        Ok(Answer::Failed(error)) => (error.reason, error.kind),
        other => panic!("{other:?}"),
    }
}

/// A lab whose switch sw2 restarts at 10 ms for 20 ms.
fn restarting() -> Operated {
    Operated::of(&format!(
        "{PAIRS}\n[[fault]]\nat = \"10ms\"\nfor = \"20ms\"\nkind = \"switch-reset\"\nswitch = \"sw2\"\n"
    ))
}

#[test]
fn a_commit_at_a_switch_that_restarts_is_answered() {
    let mut lab = restarting();
    let before = lab.zones("sw2").checksum;
    status(lab.zone("sw2", edit()).try_recv().unwrap());
    // The other switch does not get the change, so it cannot end before the restart.
    let Answer::View(_) = lab.ask(Request::Inject {
        port: isl(&lab),
        matches: "length >= 0".to_owned(),
        act: "drop".to_owned(),
        count: None,
    }) else {
        panic!("the rule is refused")
    };
    let committed = lab.zone("sw2", ZoneAction::Commit);
    lab.run(5);
    assert!(committed.try_recv().is_err(), "the commit goes on");
    lab.run(10);
    let (reason, _) = failed(&committed);
    assert!(reason.contains("not committed: this switch restarts"), "{reason}");
    // It loses its transaction, too.
    assert_eq!(lab.zones("sw2").working, None);
    let (reason, _) = failed(&lab.zone("sw2", ZoneAction::Commit));
    assert!(reason.contains("no transaction is open at sw2"), "{reason}");
    lab.ask(Request::ClearInjections { port: None });
    lab.run(60);
    assert_eq!(lab.zones("sw2").checksum, before);
    status(lab.zone("sw2", edit()).try_recv().unwrap());
    let committed = lab.zone("sw2", ZoneAction::Commit);
    lab.run(60);
    assert_ne!(status(committed.try_recv().unwrap()).checksum, before);
}

/// Returns the port of sw2 at the ISL.
fn isl(lab: &Operated) -> String {
    let ends = |link: &Link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    let link = lab.world.lab.links.iter().find(|link| ends(link)).expect("an ISL");
    let end = link.ends.iter().find(|end| end.node == Node::Switch(1)).expect("an end at sw2");
    format!("sw2:{}", end.port)
}

#[test]
fn a_transaction_does_not_change_while_it_is_committed() {
    let mut lab = Operated::of(PAIRS);
    status(lab.zone("sw1", edit()).try_recv().unwrap());
    let committed = lab.zone("sw1", ZoneAction::Commit);
    assert!(committed.try_recv().is_err(), "the commit takes time");
    let client = ZoneClient { session: "s".to_owned(), ..ZoneClient::default() };
    for action in [edit(), ZoneAction::Abort, ZoneAction::Commit, ZoneAction::Rollback] {
        let (reason, kind) = failed(&lab.zone("sw1", action.clone()));
        assert!(reason.contains("sw1 has a change of the zones in progress"), "{action:?}: {reason}");
        assert_eq!(kind, ErrorKind::Transaction);
    }
    let of_other = ZoneAction::As { client, checksum: None, action: Box::new(edit()) };
    assert_eq!(failed(&lab.zone("sw1", of_other)).1, ErrorKind::Transaction);
    status(lab.zone("sw1", ZoneAction::Show).try_recv().unwrap());
    lab.run(50);
    let after = status(committed.try_recv().unwrap());
    assert!(after.committed.aliases.contains_key("z9") && after.working.is_none());
    status(lab.zone("sw1", ZoneAction::Rollback).recv_timeout_after(&mut lab));
}

/// Waits for an answer in virtual time.
trait InVirtualTime {
    fn recv_timeout_after(self, lab: &mut Operated) -> Answer;
}

impl InVirtualTime for Receiver<Answer> {
    fn recv_timeout_after(self, lab: &mut Operated) -> Answer {
        lab.run(50);
        self.try_recv().expect("an answer")
    }
}
