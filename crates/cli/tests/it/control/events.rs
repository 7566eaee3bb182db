//! The event log, as each surface shows it.

use super::fos::{Managed, Response};
use crate::control::zoned::two_disks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sanloom_api::control::{Answer, Request};
use sanloom_api::view::{Dark, EventRow, PortRow, Severity, Table, View};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const HTTP: u16 = 18_080;

fn rows(lab: &Managed) -> Vec<EventRow> {
    let shown = lab.instance.run("show LAB events --live --json").good();
    match serde_json::from_str::<View>(&shown).unwrap().table {
        Table::Events(view) => view.events,
        other => panic!("{other:?}"),
    }
}

fn ports(lab: &Managed) -> Vec<PortRow> {
    let shown = lab.instance.run("show LAB ports --live --json").good();
    match serde_json::from_str::<View>(&shown).unwrap().table {
        Table::Ports(view) => view.ports,
        other => panic!("{other:?}"),
    }
}

fn has(lab: &Managed, id: &str, switch: &str) -> bool {
    rows(lab).iter().any(|row| row.id == id && row.switch == switch)
}

fn wrong_password(lab: &Managed) -> u16 {
    let basic = format!("Authorization: Basic {}", STANDARD.encode("mallory:guess"));
    lab.send("GET /rest/running/brocade-time/time-zone", &[&basic], "").status
}

/// Checks the log of a lab on each surface after changes of an operator and of clients.
fn check(lab: &Managed) {
    let console = |line: &str| lab.instance.run(&format!("console LAB sw1 {line}")).good();
    lab.instance.run("port disable LAB sw1:0").good();
    lab.instance.wait("the end of the login", |_| has(lab, "NS-1002", "sw1"));
    assert_eq!(wrong_password(lab), 401);
    let token = lab.login();
    let object = "/rest/running/brocade-fibrechannel-switch/fibrechannel-switch";
    // State of the switch in the process of the fabric.
    let state = || {
        let answer = lab.send(&format!("GET {object}"), &[&token], "").tree();
        let switch = answer.child("fibrechannel-switch").unwrap();
        ["enabled-state", "operational-status-string"].map(|leaf| switch.leaf(leaf).unwrap()).join(" ")
    };
    let disabled = |name: &str| ports(lab).into_iter().find(|row| row.port == name).unwrap().dark;
    assert_eq!(state(), "2 online");
    // The console is a process of its own.
    assert!(console("switchdisable; switchshow").contains("switchState:\tOffline"));
    assert_eq!(state(), "3 offline");
    assert!(lab.instance.run("show LAB switch --live").good().contains("disabled"));
    assert_eq!([disabled("sw1:0"), disabled("sw1:1")], [Some(Dark::Disabled), Some(Dark::SwitchDisabled)]);
    // Users that disable it again change nothing.
    assert_eq!(console("switchdisable"), "");
    let patch = |state: &str| {
        let body = format!("<fibrechannel-switch><enabled-state>{state}</enabled-state></fibrechannel-switch>");
        assert_eq!(lab.send(&format!("PATCH {object}"), &[&token], &body).status, 204);
    };
    patch("3");
    lab.instance.wait("the switch is alone", |_| has(lab, "FABR-1003", "sw1"));
    patch("2");
    assert_eq!(state(), "2 online");
    assert!(console("switchshow").contains("switchState:\tOnline"));
    assert_eq!([disabled("sw1:0"), disabled("sw1:1")], [Some(Dark::Disabled), None], "ports keep their state");
    assert_eq!(console("switchdisable"), "");
    assert_eq!(lab.instance.run("port enable LAB sw1").good(), "sw1 is enabled\n");
    assert_eq!(state(), "2 online");
    assert_eq!(console("switchenable"), "");
    // Changes of ports and zones by users.
    let body = "<fibrechannel><name>0/1</name><enabled-state>6</enabled-state></fibrechannel>";
    assert_eq!(lab.send("PATCH /rest/running/brocade-interface/fibrechannel", &[&token], body).status, 204);
    assert_eq!(console("portenable 1"), "");
    console("alicreate a2,50:25:a0:00:00:00:10:02; cfgsave -f");
    let zones = |id: &str, switch: &str| rows(lab).into_iter().rev().find(|row| row.id == id && row.switch == switch);
    let changed = |id: &str| {
        lab.instance.wait("the zones of both switches", |_| {
            zones(id, "sw1").is_some_and(|row| row.user == "admin") && zones(id, "sw2").is_some()
        });
        (zones(id, "sw1").unwrap(), zones(id, "sw2").unwrap())
    };
    let effective = || rows(lab).iter().filter(|row| row.id == "ZONE-1022").count();
    let before = effective();
    let (own, other) = changed("ZONE-1024");
    assert!(own.audit && own.text == "The defined configuration was saved via console.", "{own:?}");
    assert!(!other.audit && other.user.is_empty() && !other.text.contains("via"), "{other:?}");
    assert_eq!(effective(), before, "a save of definitions changes no access");
    console("defzone --allaccess -f; cfgsave -f");
    let (own, _) = changed("ZONE-1022");
    assert!(own.audit && own.text.starts_with("The effective configuration has changed to "), "{own:?}");
    lab.send("POST /rest/logout", &[&token], "");
    lab.instance.wait("a link comes up", |_| {
        rows(lab).iter().rev().take_while(|row| row.id != "SWCH-1002").any(|row| row.id == "PORT-1001")
    });

    // The control interface, and the table of the command line.
    let all = rows(lab);
    assert!(all.iter().zip(&all[1..]).all(|(one, next)| one.sequence + 1 == next.sequence && one.at_s <= next.at_s));
    let find = |id: &str| all.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no {id} in {all:?}"));
    let down = all.iter().find(|row| row.id == "PORT-1002" && row.port == "sw1:0").unwrap();
    assert_eq!((down.severity, &*down.text, down.audit), (Severity::Warning, "The link of port 0 is down.", false));
    assert!(find("PORT-1004").audit && find("NS-1002").text.contains("is no longer logged in at port 0"));
    assert_eq!((&*find("SEC-1193").user, &*find("SEC-1193").switch), ("mallory", "sw1"));
    let changes = all.iter().filter(|row| row.id.starts_with("SWCH-"));
    let changes: Vec<(&str, &str)> = changes.map(|row| (&*row.user, &*row.text)).collect();
    let expected = [
        ("admin", "The switch is disabled via console."),
        ("admin", "The switch is enabled via REST."),
        ("admin", "The switch is disabled via console."),
        ("", "The switch is enabled by an operator."),
    ];
    assert_eq!(changes, expected);
    let changes = all.iter().filter(|row| row.id == "PORT-1003" || row.id == "PORT-1004");
    let changes: Vec<(&str, &str)> = changes.map(|row| (&*row.user, &*row.text)).collect();
    let expected = [
        ("", "Port 0 is disabled by an operator."),
        ("admin", "Port 1 is disabled via REST."),
        ("admin", "Port 1 is enabled via console."),
    ];
    assert_eq!(changes, expected);
    let Ok(Answer::View(view)) = lab.instance.ask(&Request::Events { after: down.sequence }) else { panic!("no view") };
    let Table::Events(view) = view.table else { panic!("no events") };
    assert_eq!(view.events.first().unwrap().sequence, down.sequence + 1);
    let table = lab.instance.run("show LAB events --live --switch sw1").good();
    assert!(table.contains("PORT-1002") && !table.contains("sw2"), "{table}");

    // REST: error-log has all events, and audit-log the actions.
    let token = lab.login();
    let get = |object: &str| {
        let answer = lab.send(&format!("GET /rest/running/brocade-logging/{object}"), &[&token], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    let (errors, audit) = (get("error-log"), get("audit-log"));
    for id in ["ZONE-1022", "ZONE-1024"] {
        let element = format!("<message-id>{id}</message-id>");
        assert!(errors.contains(&element) && audit.contains(&element), "{id} in {audit}");
        assert!(console("errdump").contains(&format!("[{id}], ")), "{id}");
    }
    assert!(errors.contains("<message-id>PORT-1002</message-id>") && !audit.contains("PORT-1002"), "{audit}");
    for part in ["SEC-1193", "<severity-level>WARNING</severity-level>", "<event-info>user: mallory</event-info>"] {
        assert!(audit.contains(part), "{part} in {audit}");
    }
    let with_key = format!("error-log/sequence-number/{}", down.sequence);
    assert_eq!(get(&with_key).matches("<error-log>").count(), 1);

    // The command line of the switch.
    let dump = console("errdump");
    let line = format!("[PORT-1002], {}, FID 128, WARNING, sw1, The link of port 0 is down.\n", down.sequence);
    assert!(dump.starts_with("Version: v9.1.1\n\n20") && dump.contains(&line), "{dump}");
    let severe = console("errdump --severity WARNING -r --count 2");
    assert_eq!(severe.matches(", WARNING, ").count(), 2, "{severe}");
    // A filter without a match is an empty answer, and hides no failure of its command.
    assert_eq!(console("errdump | grep nothing-of-this-kind"), "");
    assert_eq!(console("errdump | grep nothing-of-this-kind; switchname"), "sw1\n");
    lab.instance.run("console LAB sw1 errdump --severity loud | grep usage").refused("has failed");
    lab.instance.run("console LAB sw1 errdump | grep -x a").refused("has failed");
    assert!(console("errshow").contains(&format!("{line}\n")));
    lab.instance.run("console LAB sw1 errdump --severity loud").refused("has failed");

    // Metrics count them by severity.
    let Ok(Answer::Metrics { text }) = lab.instance.ask(&Request::Metrics) else { panic!("no metrics") };
    let counted = |severity: &str| {
        let line = format!("sanloom_events_total{{severity=\"{severity}\"}} ");
        let found = text.lines().find_map(|of| of.strip_prefix(&line)).unwrap_or_else(|| panic!("{text}"));
        found.parse::<u64>().unwrap()
    };
    assert!(counted("warning") >= 2 && counted("info") >= 4, "{text}");
}

#[test]
fn all_surfaces_show_the_events_of_a_live_fabric() {
    let mut lab = Managed::start("events-live", Some(HTTP), &[]);
    // The log begins with the fabric itself.
    let all = rows(&lab);
    for id in ["NS-1001", "PORT-1001", "FABR-1002", "FABR-1004", "FABR-1005"] {
        assert!(all.iter().any(|row| row.id == id), "no {id} in {all:?}");
    }
    let login = all.iter().find(|row| row.id == "NS-1001").unwrap();
    assert!(login.text.starts_with("N_Port 50:25:a0:00:00:00:"), "{login:?}");
    lab.instance.commit_alias(None, "a1", vec!["50:25:a0:00:00:00:10:01".to_owned()]).unwrap();
    lab.instance.wait("the zones of both switches", |_| has(&lab, "ZONE-1024", "sw1") && has(&lab, "ZONE-1024", "sw2"));
    check(&lab);
    lab.instance.stop();
}

#[test]
fn all_surfaces_show_the_events_of_a_simulated_fabric() {
    let text = two_disks("[switch.\"sw{1..2}\"]\ndomain = 1\n", "sw1")
        + "[storage.disk3]\nlun_size = \"1MiB\"\n[[link]]\nfrom = \"disk3\"\nto = \"sw2\"\n[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\n\
           [host.h1]\n[[zone]]\nname = \"zh\"\nmembers = [\"h1\", \"disk1\"]\n[[link]]\nfrom = \"h1\"\nto = \"sw1\"\n\
           [workload.reads]\nhosts = \"h1\"\ntargets = \"disk1\"\narrivals = \"constant 50/s\"\n";
    let mut lab = Managed::start_lab("events-simulated", Some(HTTP), &["--simulated"], &text, |_| {});
    check(&lab);
    lab.instance.stop();
}

#[test]
fn the_events_of_a_lab_that_does_not_run_are_those_of_its_simulation() {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isl-failure.toml");
    let output = std::process::Command::new(crate::sanloom::SANLOOM)
        .args(["show", lab, "events", "--at", "1100ms", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let Table::Events(view) = serde_json::from_slice::<View>(&output.stdout).unwrap().table else { panic!("events") };
    let first = view.events.first().unwrap();
    assert!(first.at_s < 0.0 && first.unix_s.is_none(), "{first:?}");
    assert!(view.events.iter().any(|row| row.id == "FABR-1003" && row.at_s > 0.0), "{view:?}");
}

/// Clients that send wrong passwords in the test of floods, each from its own addresses.
const ATTACKERS: u8 = 4;
/// Wrong passwords from one address in a minute after which it is refused.
const MAX_FAILURES: u64 = 10;

/// Answers that attackers have received, by kind.
#[derive(Default, Debug)]
struct Answers {
    /// The password was hashed, and is wrong.
    wrong: u64,
    /// The address has sent too many wrong passwords.
    too_many: u64,
}

impl Answers {
    fn count(&mut self, answer: &Response) {
        let kind = match answer.status {
            401 if answer.body.contains("too many wrong passwords") => &mut self.too_many,
            401 => &mut self.wrong,
            // The interface of a switch answers one request after the other, so no queue is full.
            _ => panic!("{answer:?}"),
        };
        *kind += 1;
    }
}

#[test]
fn a_flood_of_wrong_passwords_over_rest_leaves_sessions_and_honest_users_of_other_addresses_alone() {
    let users = [("admin", "of the session"), ("honest", "correct horse")];
    let mut lab = Managed::start_with_users("events-flood", HTTP, &users);
    const TIME: &str = "GET /rest/running/brocade-time/time-zone";
    let basic =
        |user: &str, password: &str| format!("Authorization: Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let token = lab.login();
    let before = lab.state();
    let is_over = AtomicBool::new(false);
    let (answers, addresses) = std::thread::scope(|scope| {
        let attackers: Vec<_> = (1..=ATTACKERS)
            .map(|number| {
                let (lab, is_over) = (&lab, &is_over);
                let guess = basic("honest", "guess");
                scope.spawn(move || {
                    // An address that is refused is followed by the next one.
                    let (mut answers, mut addresses) = (Answers::default(), 0);
                    while addresses == 0 || !is_over.load(Ordering::Relaxed) {
                        addresses += 1;
                        let from = Ipv4Addr::new(127, 77, number, addresses);
                        let (mut own, begin) = (Answers::default(), Instant::now());
                        while own.too_many < 3 {
                            own.count(&lab.send_from(from, TIME, &[&guess]));
                        }
                        let minutes = begin.elapsed().as_secs() / 60;
                        let limits = MAX_FAILURES..=MAX_FAILURES * (1 + minutes);
                        assert!(limits.contains(&own.wrong), "{own:?} in {minutes} min from {from}");
                        answers.wrong += own.wrong;
                        answers.too_many += own.too_many;
                    }
                    (answers, u64::from(addresses))
                })
            })
            .collect();
        // A client that has logged in is never refused, and the fabric stays as it is.
        for _ in 0..20 {
            assert_eq!(lab.send(TIME, &[&token], "").status, 200);
        }
        assert_eq!(lab.state(), before);
        // A user at another address, whose password is hashed for the first time.
        let right = basic("honest", "correct horse");
        let answer = lab.send_from(Ipv4Addr::new(127, 88, 0, 1), TIME, &[&right]);
        assert_eq!(answer.status, 200, "{answer:?}");
        is_over.store(true, Ordering::Relaxed);
        let ended = attackers.into_iter().map(|attacker| attacker.join().unwrap());
        ended.fold((Answers::default(), 0), |(mut sum, addresses), (one, more)| {
            (sum.wrong, sum.too_many) = (sum.wrong + one.wrong, sum.too_many + one.too_many);
            (sum, addresses + more)
        })
    });
    // Each event is a password that was hashed, and a refusal costs no hash.
    let hashed: u64 = rows(&lab).iter().filter(|row| row.id == "SEC-1193").map(|row| row.count).sum();
    assert_eq!(hashed, answers.wrong);
    assert!(addresses >= u64::from(ATTACKERS));
    assert_eq!(lab.send(TIME, &[&token], "").status, 200);
    lab.instance.stop();
}
