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

fn client(session: &str) -> ZoneClient {
    ZoneClient { session: session.to_owned(), user: "ada".to_owned(), ..ZoneClient::default() }
}

/// Zone request of a session at sw1, with the answer after some time.
fn ask(lab: &mut Operated, session: &str, action: ZoneAction) -> Answer {
    let action = ZoneAction::As { client: client(session), checksum: None, action: Box::new(action) };
    lab.zone("sw1", action).recv_timeout_after(lab)
}

#[track_caller]
fn refused(answer: Answer, why: &str) {
    let Answer::Failed(error) = answer else { panic!("{answer:?}") };
    assert!(error.reason.contains(why), "no `{why}` in {}", error.reason);
}

#[test]
fn a_commit_with_edits_that_fails_leaves_the_transaction_as_it_was() {
    let mut lab = Operated::of(PAIRS);
    let disable = || ZoneAction::EditAndCommit { edits: vec![Edit::Disable] };
    let missing = Edit::Enable { config: "none".to_owned() };
    refused(ask(&mut lab, "1", ZoneAction::EditAndCommit { edits: vec![missing.clone()] }), "none");
    assert_eq!(lab.zones("sw1").transaction, None, "none is opened");
    status(ask(&mut lab, "1", edit()));
    let before = lab.zones("sw1");
    refused(ask(&mut lab, "1", ZoneAction::EditAndCommit { edits: vec![Edit::Disable, missing] }), "none");
    let after = lab.zones("sw1");
    assert_eq!((&after.working, &after.committed), (&before.working, &before.committed));
    // Another session has no part in it.
    refused(ask(&mut lab, "2", disable()), "an outstanding transaction");
    let after = status(ask(&mut lab, "1", disable()));
    assert!(after.committed.aliases.contains_key("z9") && after.committed.effective.is_none());
    assert_eq!(after.transaction, None);
}

#[test]
fn a_lost_transaction_is_reported_once_to_the_session_that_had_it() {
    let mut lab = Operated::of(PAIRS);
    let lost = "no transaction is open at sw1: that of this client has ended, because ";
    status(ask(&mut lab, "1", edit()));
    status(lab.zone("sw2", ZoneAction::EditAndCommit { edits: vec![Edit::Disable] }).recv_timeout_after(&mut lab));
    let shown = status(ask(&mut lab, "1", ZoneAction::Show));
    assert_eq!(shown.lost.as_deref(), Some("another user has changed the zones of the fabric"));
    assert_eq!(status(ask(&mut lab, "2", ZoneAction::Show)).lost, None);
    let commit = || ZoneAction::EditAndCommit { edits: Vec::new() };
    status(ask(&mut lab, "2", commit()));
    refused(ask(&mut lab, "1", commit()), &format!("{lost}another user has changed the zones"));
    status(ask(&mut lab, "1", commit()));

    // The control socket ends any transaction; an abort of the owner forgets it.
    for forgets in [false, true] {
        status(ask(&mut lab, "1", edit()));
        status(lab.zone("sw1", ZoneAction::Abort).recv_timeout_after(&mut lab));
        match forgets {
            false => refused(ask(&mut lab, "1", edit()), &format!("{lost}a user of the control socket has aborted it")),
            true => drop(status(ask(&mut lab, "1", ZoneAction::Abort))),
        }
    }
    refused(ask(&mut lab, "1", ZoneAction::Abort), "no transaction is open at sw1; begin one");
    status(ask(&mut lab, "1", edit()));

    // Of more sessions than a switch remembers, the first are forgotten.
    for session in 0..80 {
        status(lab.zone("sw1", ZoneAction::Abort).recv_timeout_after(&mut lab));
        status(ask(&mut lab, &format!("s{session}"), edit()));
    }
    status(lab.zone("sw1", ZoneAction::Abort).recv_timeout_after(&mut lab));
    refused(ask(&mut lab, "s79", edit()), lost);
    status(ask(&mut lab, "s0", edit()));
}

#[test]
fn a_preview_contains_the_pending_edits_of_its_client_only() {
    let mut lab = Operated::of(PAIRS);
    let disable = ZoneAction::Edit { edits: vec![Edit::Disable] };
    status(ask(&mut lab, "1", disable));
    let loses = |answer: Answer| match answer {
        Answer::ZonePreview(preview) => preview.loses.len(),
        other => panic!("{other:?}"),
    };
    let preview = || ZoneAction::Preview { edits: Vec::new() };
    assert_eq!(loses(ask(&mut lab, "2", preview())), 0);
    assert_eq!(loses(ask(&mut lab, "1", preview())), 2, "the pairs of z1 and z2");
    assert_eq!(loses(lab.zone("sw1", preview()).recv_timeout_after(&mut lab)), 2);
}
