//! Logins: a snapshot table of requests and answers, and refused logins.

use crate::iscsi::bed::INITIATOR;
use sanloom_scsi::iscsi::chap::{Algorithm, Challenge, Credentials};
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_scsi::iscsi::target::login::{Input, LoginConfig, Output};
use sanloom_scsi::iscsi::target::{
    Access, Authentication, ConnectionId, Directory, Established, Login, Node, Portal, Redirect, Target,
};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::*;
use std::sync::Arc;

const PORTAL: &str = "192.0.2.1:3260";
const CHALLENGE: [u8; 16] = [7; 16];

fn target(name: &str) -> Target {
    let portals = vec![Portal { address: PORTAL.into(), group: 1 }];
    Target { portals, ..Target::new(&format!("iqn.2026-11.net.example:{name}")) }
}

fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.into(), secret: secret.into() }
}

fn node() -> Arc<Node> {
    let secret = Authentication {
        initiators: vec![credentials("host", "a secret of the host")],
        own: Some(credentials("array", "a secret of the array")),
    };
    let elsewhere = Target { portals: Vec::new(), ..target("elsewhere") };
    let redirect = |permanent| Some(Redirect { address: "192.0.2.9:3260".into(), permanent });
    Arc::new(Node {
        targets: vec![
            target("open"),
            Target { authentication: secret, ..target("secret") },
            Target { access: Access::Listed(["iqn.2026-11.net.example:only".into()].into()), ..target("private") },
            Target { redirect: redirect(false), ..target("moved") },
            Target { redirect: redirect(true), ..target("gone") },
            Target { max_sessions: 1, ..target("small") },
            Target { offers: Offers { header_digest: Digests::Always, ..Offers::default() }, ..target("strict") },
            elsewhere,
        ],
        discovery: Authentication::default(),
    })
}

struct Side {
    login: Login,
    directory: Directory,
    stage: u8,
    isid: u8,
    tsih: u16,
}

impl Side {
    fn new() -> Side {
        Side::with(Directory::default(), 1)
    }

    fn with(directory: Directory, connection: u64) -> Side {
        let config = LoginConfig {
            node: node(),
            address: PORTAL.into(),
            group: 1,
            connection: ConnectionId(connection),
            challenge: CHALLENGE,
            timeout: Span::from_secs(15),
        };
        Side { login: Login::new(Instant::ZERO, config), directory, stage: stage::SECURITY, isid: 1, tsih: 0 }
    }

    fn head(&self, flags: u8) -> Head {
        Head::new(LoginRequest {
            flags,
            version_max: 0,
            version_min: 0,
            isid: [self.isid; 6],
            tsih: self.tsih,
            initiator_tag: 1,
            cid: 0,
            cmd_sn: 5,
            exp_stat_sn: 9,
        })
    }

    /// Sends a request with these pairs; `next` is the stage for the transit.
    fn step(&mut self, pairs: &[(&str, &str)], next: Option<u8>) -> Vec<Output> {
        let mut bytes = Vec::new();
        pairs.iter().for_each(|(key, value)| text::emit(key, value, &mut bytes));
        let transit = next.map_or(0, |next| flag::TRANSIT | next);
        self.send(self.head(transit | self.stage << 2), &bytes)
    }

    fn send(&mut self, head: Head, bytes: &[u8]) -> Vec<Output> {
        let head = Head { data_bytes: bytes.len() as u32, ..head };
        self.login.handle(Instant::ZERO, Input::Pdu { head, text: bytes.into() }, &mut self.directory);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.login.poll_output()).collect();
        if let Some((response, _)) = response(&outputs)
            && response.flags & flag::TRANSIT != 0
        {
            self.stage = response.next_stage();
        }
        outputs
    }
}

fn response(outputs: &[Output]) -> Option<(LoginResponse, Vec<(String, String)>)> {
    outputs.iter().find_map(|output| match output {
        Output::Send { head: Head { header: Header::LoginResponse(response), .. }, text } => {
            let pairs = text::parse(text).expect("text");
            Some((*response, pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
        }
        _ => None,
    })
}

fn refusal(outputs: &[Output]) -> Option<LoginStatus> {
    let closed = outputs.last() == Some(&Output::Close);
    response(outputs).map(|(response, _)| response.status).filter(|status| closed && !status.is_success())
}

fn established(outputs: &[Output]) -> Option<Established> {
    outputs.iter().find_map(|output| match output {
        Output::Done(established) => Some((**established).clone()),
        _ => None,
    })
}

fn leading(target: &str) -> Vec<(&str, &str)> {
    vec![("InitiatorName", INITIATOR), ("SessionType", "Normal"), ("TargetName", target), ("AuthMethod", "CHAP,None")]
}

fn name(target: &str) -> String {
    format!("iqn.2026-11.net.example:{target}")
}

fn lines(outputs: &[Output]) -> String {
    let mut text = String::new();
    for output in outputs {
        text += &match output {
            Output::Send { head: Head { header: Header::LoginResponse(response), .. }, .. } => {
                let transit = if response.flags & flag::TRANSIT != 0 {
                    format!(" -> {}", stage::name(response.next_stage()).unwrap_or("?"))
                } else {
                    String::new()
                };
                let mut line = format!("      {}, stage {}{transit}\n", response.status, response.stage());
                for (key, value) in super::login::response(std::slice::from_ref(output)).expect("one").1 {
                    line += &format!("        {key}={value}\n");
                }
                line
            }
            Output::Done(established) => {
                format!("      session {} of target {:?}\n", established.tsih, established.key.target)
            }
            Output::Close => "      close\n".to_owned(),
            other => format!("      {other:?}\n"),
        };
    }
    text
}

#[test]
fn logins_step_by_step() {
    type Script = (&'static str, &'static [(&'static [(&'static str, &'static str)], Option<u8>)]);
    const OPEN: (&str, &str) = ("TargetName", "iqn.2026-11.net.example:open");
    const SECRET: (&str, &str) = ("TargetName", "iqn.2026-11.net.example:secret");
    const STRICT: (&str, &str) = ("TargetName", "iqn.2026-11.net.example:strict");
    const WHO: (&str, &str) = ("InitiatorName", INITIATOR);
    const ALL: Option<u8> = Some(stage::FULL_FEATURE);
    const OPERATIONAL: Option<u8> = Some(stage::OPERATIONAL);
    let scripts: &[Script] = &[
        ("all at once", &[(&[WHO, OPEN, ("AuthMethod", "None"), ("MaxBurstLength", "4096")], ALL)]),
        (
            "stage by stage",
            &[
                (&[WHO, OPEN, ("AuthMethod", "None,CHAP")], OPERATIONAL),
                (&[("HeaderDigest", "CRC32C,None"), ("InitialR2T", "No")], None),
                (&[("MaxConnections", "4")], ALL),
            ],
        ),
        (
            "discovery",
            &[(&[WHO, ("SessionType", "Discovery"), ("AuthMethod", "None"), ("MaxBurstLength", "4096")], ALL)],
        ),
        ("a proof is wanted", &[(&[WHO, SECRET, ("AuthMethod", "None")], ALL)]),
        ("a proof is wanted, the stage is left out", &[(&[WHO, SECRET], ALL)]),
        (
            "CHAP, with an unknown name",
            &[
                (&[WHO, SECRET, ("AuthMethod", "CHAP,None")], OPERATIONAL),
                (&[("CHAP_A", "7,5")], None),
                (&[("CHAP_N", "stranger"), ("CHAP_R", "0x00")], OPERATIONAL),
            ],
        ),
        (
            "CHAP, with no algorithm in common",
            &[(&[WHO, SECRET, ("AuthMethod", "CHAP")], None), (&[("CHAP_A", "99")], None)],
        ),
        (
            "CHAP, a response before a challenge",
            &[(&[WHO, SECRET, ("AuthMethod", "CHAP")], None), (&[("CHAP_N", "host"), ("CHAP_R", "0x00")], None)],
        ),
        ("a method that nobody here has", &[(&[WHO, OPEN, ("AuthMethod", "KRB5")], OPERATIONAL)]),
        ("no name", &[(&[OPEN], ALL)]),
        ("no target", &[(&[WHO], ALL)]),
        ("a target that is not here", &[(&[WHO, ("TargetName", "iqn.2026-11.net.example:nothing")], ALL)]),
        ("a target at other portals", &[(&[WHO, ("TargetName", "iqn.2026-11.net.example:elsewhere")], ALL)]),
        ("a target for others", &[(&[WHO, ("TargetName", "iqn.2026-11.net.example:private")], ALL)]),
        ("a target that has moved", &[(&[WHO, ("TargetName", "iqn.2026-11.net.example:moved")], ALL)]),
        ("a target that has moved for ever", &[(&[WHO, ("TargetName", "iqn.2026-11.net.example:gone")], ALL)]),
        (
            "digests are insisted on, and agreed to",
            &[(&[WHO, STRICT, ("AuthMethod", "None"), ("HeaderDigest", "None,CRC32C")], ALL)],
        ),
        (
            "digests are insisted on, and refused",
            &[(&[WHO, STRICT, ("AuthMethod", "None"), ("HeaderDigest", "None")], ALL)],
        ),
        ("digests are insisted on, and not spoken of", &[(&[WHO, STRICT, ("AuthMethod", "None")], ALL)]),
        ("a kind of session that nobody knows", &[(&[WHO, ("SessionType", "Other")], ALL)]),
        (
            "a key twice",
            &[(&[WHO, OPEN, ("AuthMethod", "None"), ("MaxBurstLength", "512"), ("MaxBurstLength", "512")], ALL)],
        ),
    ];
    let mut text = String::new();
    for (what, steps) in scripts {
        text += &format!("{what}\n");
        let mut side = Side::new();
        for (number, (pairs, next)) in steps.iter().enumerate() {
            if number == 0 && !pairs.iter().any(|(key, _)| *key == "AuthMethod") {
                side.stage = stage::OPERATIONAL;
            }
            text += &format!(
                "    {}\n",
                pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
            );
            text += &lines(&side.step(pairs, *next));
        }
    }
    insta::assert_snapshot!(text);
}

/// Logs in with CHAP; the arguments are the initiator's proof and challenge.
fn chap(secret: &[u8], mutual: Option<(u8, Vec<u8>)>) -> (Side, Vec<Output>) {
    let mut side = Side::new();
    side.step(&leading(&name("secret")), Some(stage::OPERATIONAL));
    let (_, reply) = response(&side.step(&[("CHAP_A", "5")], None)).expect("a challenge");
    let value = |key| reply.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).expect("a value");
    assert_eq!(value("CHAP_A"), "5");
    let id = value("CHAP_I").parse().expect("a number");
    let bytes = text::binary(&value("CHAP_C")).expect("bytes");
    assert_eq!(bytes, CHALLENGE);
    let proof = text::to_binary(&Challenge { algorithm: Algorithm::Md5, id, bytes }.answer(secret));
    let mutual = mutual.map(|(id, bytes)| (id.to_string(), text::to_binary(&bytes)));
    let mut pairs = vec![("CHAP_N", "host"), ("CHAP_R", &proof)];
    if let Some((id, bytes)) = &mutual {
        pairs.extend([("CHAP_I", &id[..]), ("CHAP_C", &bytes[..])]);
    }
    let outputs = side.step(&pairs, Some(stage::OPERATIONAL));
    (side, outputs)
}

#[test]
fn mutual_chap_succeeds_with_the_right_secrets() {
    let (mut side, outputs) = chap(b"a secret of the host", Some((3, vec![1, 2, 3])));
    let (answer, reply) = response(&outputs).expect("a response");
    assert_eq!((answer.status, answer.next_stage()), (LoginStatus::SUCCESS, stage::OPERATIONAL));
    let mutual = Challenge { algorithm: Algorithm::Md5, id: 3, bytes: vec![1, 2, 3] };
    let proof = text::to_binary(&mutual.answer(b"a secret of the array"));
    assert_eq!(reply, [("CHAP_N".to_owned(), "array".to_owned()), ("CHAP_R".to_owned(), proof)]);
    assert!(established(&side.step(&[], Some(stage::FULL_FEATURE))).is_some());
    let (_, outputs) = chap(b"a secret of the host", None);
    assert_eq!(response(&outputs).map(|(response, _)| response.status), Some(LoginStatus::SUCCESS));
}

#[test]
fn a_wrong_response_and_a_reflected_challenge_are_refused() {
    let (_, outputs) = chap(b"another secret", None);
    assert_eq!(refusal(&outputs), Some(LoginStatus::AUTHENTICATION_FAILURE));
    let (_, outputs) = chap(b"a secret of the host", Some((3, CHALLENGE.to_vec())));
    assert_eq!(refusal(&outputs), Some(LoginStatus::AUTHENTICATION_FAILURE));
}

#[test]
fn a_login_with_a_known_name_replaces_the_session() {
    let mut side = Side::new();
    let first = established(&side.step(&leading(&name("small")), Some(stage::FULL_FEATURE))).expect("a session");
    assert_eq!((first.tsih, first.replaces, first.stat_sn, first.exp_cmd_sn), (1, None, 10, 5));
    let mut again = Side::with(side.directory.clone(), 2);
    let second = established(&again.step(&leading(&name("small")), Some(stage::FULL_FEATURE))).expect("a session");
    assert_eq!((second.tsih, second.replaces), (2, Some(ConnectionId(1))));
    // The old connection ends later; the new session stays.
    again.directory.leave(&first.key, ConnectionId(1));
    assert_eq!(again.directory.tsih(&second.key), Some(2));
    // Another initiator port makes another session, for which there is no room.
    let mut other = Side::with(again.directory.clone(), 3);
    other.isid = 2;
    assert_eq!(refusal(&other.step(&leading(&name("small")), None)), Some(LoginStatus::OUT_OF_RESOURCES));
    // A second connection of a session, and a connection of an unknown session.
    for (tsih, status) in [(2, LoginStatus::TOO_MANY_CONNECTIONS), (9, LoginStatus::NO_SESSION)] {
        let mut side = Side { tsih, ..Side::with(again.directory.clone(), 4) };
        assert_eq!(refusal(&side.step(&leading(&name("small")), None)), Some(status));
    }
}

#[test]
fn text_in_pieces_is_one_text() {
    let mut side = Side::new();
    let mut bytes = Vec::new();
    leading(&name("open")).iter().for_each(|(key, value)| text::emit(key, value, &mut bytes));
    let (first, rest) = bytes.split_at(30);
    let outputs = side.send(side.head(flag::CONTINUE), first);
    assert_eq!(response(&outputs), Some((response(&outputs).expect("a response").0, Vec::new())));
    assert!(established(&side.send(side.head(flag::TRANSIT | stage::FULL_FEATURE), rest)).is_some());
}

#[test]
fn other_pdus_than_login_requests_are_refused() {
    let mut side = Side::new();
    let nop = NopOut { lun: [0; 8], initiator_tag: 1, target_tag: NO_TAG, cmd_sn: 1, exp_stat_sn: 1 };
    assert_eq!(side.send(Head::new(nop), &[]), [Output::Close]);
    let mut side = Side::new();
    let Header::LoginRequest(request) = side.head(0).header else { return };
    let newer = Head::new(LoginRequest { version_min: 1, version_max: 1, ..request });
    assert_eq!(refusal(&side.send(newer, &[])), Some(LoginStatus::UNSUPPORTED_VERSION));
    for (flags, bytes) in
        [(flag::TRANSIT | flag::CONTINUE, &b"InitiatorName=x\0"[..]), (2 << 2, b""), (0, b"InitiatorName"), (0, b"=\0")]
    {
        let mut side = Side::new();
        assert_eq!(refusal(&side.send(side.head(flags), bytes)), Some(LoginStatus::INITIATOR_ERROR), "{flags:x}");
    }
    // A PDU of another type during a login. Afterwards the login is over.
    let mut side = Side::new();
    side.step(&leading(&name("open")), Some(stage::OPERATIONAL));
    assert_eq!(refusal(&side.send(Head::new(nop), &[])), Some(LoginStatus::INVALID_REQUEST));
    let details = side.login.refusal();
    assert_eq!((details.initiator, details.target), (Some(INITIATOR), Some(&*name("open"))));
    assert_eq!(details.status, Some(LoginStatus::INVALID_REQUEST));
    assert_eq!(side.send(side.head(0), b""), []);
    // A tag, session or connection other than that of the previous request, although text was to
    // continue.
    let other: [fn(&mut LoginRequest); 3] =
        [|request| request.initiator_tag = 2, |request| request.isid = [3; 6], |request| request.cid = 1];
    for change in other {
        let mut side = Side::new();
        side.send(side.head(flag::CONTINUE), b"InitiatorName=");
        let Header::LoginRequest(mut request) = side.head(0).header else { return };
        change(&mut request);
        assert_eq!(refusal(&side.send(Head::new(request), b"x\0")), Some(LoginStatus::INITIATOR_ERROR));
    }
    // Text longer than a login allows, in the first request and in a later one. A PDU of another
    // type gets no answer.
    for before in [0, 1] {
        let mut side = Side::new();
        (0..before).for_each(|_| drop(side.send(side.head(flag::CONTINUE), b"a")));
        let head = Head { data_bytes: 8193, ..side.head(0) };
        side.login.handle(Instant::ZERO, Input::TooLong(head), &mut side.directory);
        let outputs: Vec<Output> = std::iter::from_fn(|| side.login.poll_output()).collect();
        assert_eq!(refusal(&outputs), Some(LoginStatus::INITIATOR_ERROR));
        assert_eq!(response(&outputs).map(|(response, _)| response.stat_sn), Some(9 + before));
    }
    let mut side = Side::new();
    side.login.handle(Instant::ZERO, Input::TooLong(Head { data_bytes: 8193, ..Head::new(nop) }), &mut side.directory);
    assert_eq!(side.login.poll_output(), Some(Output::Close));
    // A stage that goes back, and endless text.
    let mut side = Side::new();
    side.step(&leading(&name("open")), Some(stage::OPERATIONAL));
    side.stage = stage::SECURITY;
    assert_eq!(refusal(&side.step(&[], None)), Some(LoginStatus::INITIATOR_ERROR));
    let mut side = Side::new();
    let refused = (0..100).find_map(|_| refusal(&side.send(side.head(flag::CONTINUE), &[b'a'; 8192])));
    assert_eq!(refused, Some(LoginStatus::OUT_OF_RESOURCES));
}

#[test]
fn an_incomplete_login_times_out() {
    let mut side = Side::new();
    assert_eq!(side.login.poll_timeout(), Some(Instant::ZERO + Span::from_secs(15)));
    side.login.handle(Instant::ZERO + Span::from_secs(15), Input::Timeout, &mut side.directory);
    assert_eq!(side.login.poll_output(), Some(Output::Close));
    assert_eq!(side.login.poll_timeout(), None);
}

#[test]
fn a_target_without_its_medium_refuses_logins_as_unavailable() {
    let mut side = Side::new();
    side.login.set_unavailable();
    let outputs = side.step(&leading(&name("open")), None);
    assert_eq!(refusal(&outputs), Some(LoginStatus::SERVICE_UNAVAILABLE));
}
