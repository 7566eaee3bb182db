//! Zone requests of the page and of programs over HTTP: [`ask`]. A transaction belongs to the
//! session of its client, whatever the client has sent.

use super::login::PLACE;
use crate::server::Peer;
use crate::server::sessions::Session;
use crate::server::users::Role;
use crate::{Busy, Fabric};
use sanloom_api::control::{Answer, ErrorKind, Request, RequestUser, ShowTable, ZoneAction, ZoneClient};
use sanloom_api::view::Table;
use sanloom_api::view::build::Which;

/// Maximum length of the name of a program in characters.
const MAX_APPLICATION: usize = 64;

/// Passes a zone request to the fabric as one of the session. An administrator may abort the
/// transaction of another client. Identifiers of sessions are not part of an answer.
///
/// # Errors
/// The fabric is busy.
pub(super) fn ask(
    session: &Session,
    peer: &Peer,
    (switch, by, action): (Option<String>, Option<RequestUser>, ZoneAction),
    fabric: &mut dyn Fabric,
) -> Result<Answer, Busy> {
    let aborts = session.role >= Role::Administer && is_abort(&action);
    let action = of_session(session, peer, action);
    let mut answer = fabric.ask(Request::Zone { switch: switch.clone(), by: by.clone(), action })?;
    if aborts && matches!(&answer, Answer::Failed(error) if error.kind == ErrorKind::Transaction) {
        answer = fabric.ask(Request::Zone { switch, by, action: ZoneAction::Abort })?;
    }
    if let Answer::Zones(status) = &mut answer
        && let Some(owner) = status.transaction.as_mut().and_then(|open| open.owner.as_mut())
    {
        owner.session.clear();
    }
    Ok(answer)
}

/// Discards the zone edits of a session that has ended, at each switch. Other sessions of the same
/// user keep theirs.
///
/// # Errors
/// The fabric is busy.
pub(super) fn end(session: &Session, peer: &Peer, fabric: &mut dyn Fabric) -> Result<(), Busy> {
    let table = ShowTable::Fabric(Which::Switch);
    let Answer::View(view) = fabric.ask(Request::Show { table, switch: None })? else { return Ok(()) };
    let Table::Switch(view) = view.table else { return Ok(()) };
    for row in view.switches {
        let mut ask = |action| {
            let action = of_session(session, peer, action);
            fabric.ask(Request::Zone { switch: Some(row.switch.clone()), by: None, action })
        };
        let Answer::Zones(status) = ask(ZoneAction::Show)? else { continue };
        let owner = status.transaction.and_then(|open| open.owner);
        if owner.is_some_and(|owner| owner.session == owner_of(session, peer)) {
            ask(ZoneAction::Abort)?;
        }
    }
    Ok(())
}

fn is_abort(action: &ZoneAction) -> bool {
    match action {
        ZoneAction::As { action, .. } => **action == ZoneAction::Abort,
        action => *action == ZoneAction::Abort,
    }
}

/// The operation as one of the session. A session of the page has an identifier of its own; the
/// requests of a user without a session have that of the user and the address.
fn of_session(session: &Session, peer: &Peer, action: ZoneAction) -> ZoneAction {
    let (checksum, application, action) = match action {
        ZoneAction::As { client, checksum, action } => (checksum, client.application, action),
        action => (None, String::new(), Box::new(action)),
    };
    let address = peer.address.ip().to_string();
    let client = ZoneClient {
        session: owner_of(session, peer),
        user: session.user.clone(),
        role: session.role.word().to_owned(),
        address,
        interface: PLACE.interface.to_owned(),
        application: application.chars().take(MAX_APPLICATION).collect(),
        timeout_s: None,
    };
    ZoneAction::As { client, checksum, action }
}

/// Owner of the transactions of a session.
fn owner_of(session: &Session, peer: &Peer) -> String {
    match &*session.id {
        "" => format!("HTTP user {} {}", session.user, peer.address.ip()),
        id => format!("HTTP session {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_api::view::{SwitchRow, SwitchView, View};
    use sanloom_api::zoning::{ZoneStatus, ZoneTransaction};

    fn peer() -> Peer {
        let address = "192.0.2.7:1000".parse().unwrap();
        Peer { address, local: address, tls: false }
    }

    #[test]
    fn a_client_cannot_choose_its_session_user_role_or_time_out() {
        let text = r#"{"do":"as","checksum":"1","action":{"do":"commit"},"client":
            {"session":"sw1/rest/2","user":"eve","role":"administer","interface":"REST","timeout_s":9}}"#;
        for id in ["", "17"] {
            let session = Session { user: "jane".to_owned(), role: Role::Operate, id: id.to_owned() };
            let sent = of_session(&session, &peer(), serde_json::from_str(text).unwrap());
            let ZoneAction::As { client, checksum, action } = sent else { panic!("{sent:?}") };
            assert_eq!((checksum.as_deref(), *action), (Some("1"), ZoneAction::Commit));
            let owner = if id.is_empty() { "HTTP user jane 192.0.2.7" } else { "HTTP session 17" };
            assert_eq!((&*client.session, &*client.user, &*client.role), (owner, "jane", "operate"));
            assert_eq!((&*client.interface, client.timeout_s), ("HTTP", None));
        }
    }

    /// Two switches, each with edits of a session, and the switches whose edits were aborted.
    struct Edited(Vec<String>);

    impl Fabric for Edited {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            let row = |switch: &str| SwitchRow { switch: switch.to_owned(), ..SwitchRow::default() };
            Ok(match request {
                Request::Show { .. } => {
                    let switches = ["sw1", "sw2"].map(row).into();
                    Answer::View(View::new("lab", 1.0, Table::Switch(SwitchView { switches })))
                }
                Request::Zone { switch: Some(switch), action: ZoneAction::As { action, .. }, .. } => {
                    if *action == ZoneAction::Abort {
                        self.0.push(switch.clone());
                    }
                    let session = if switch == "sw1" { "HTTP session 17" } else { "HTTP session 18" };
                    let owner = Some(ZoneClient { session: session.to_owned(), ..ZoneClient::default() });
                    let transaction = Some(ZoneTransaction { owner, ..ZoneTransaction::default() });
                    Answer::Zones(Box::new(ZoneStatus { transaction, ..ZoneStatus::default() }))
                }
                other => panic!("{other:?}"),
            })
        }
    }

    #[test]
    fn the_end_of_a_session_aborts_its_own_zone_edits_only() {
        let session = Session { user: "jane".to_owned(), role: Role::Operate, id: "17".to_owned() };
        let mut fabric = Edited(Vec::new());
        assert!(end(&session, &peer(), &mut fabric).is_ok());
        assert_eq!(fabric.0, ["sw1"]);
    }
}
