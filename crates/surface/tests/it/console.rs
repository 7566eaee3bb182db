//! The command line of a switch without a server: commands of a line, arguments, logical switches.

use crate::client::Limited;
use sanloom_api::control::{Answer, Request, ShowTable, ZoneAction};
use sanloom_api::view::build::Which;
use sanloom_api::view::{FlogiView, PortMode, PortRow, PortsView, SwitchRow, SwitchView, Table, View};
use sanloom_api::zone_database::Edit;
use sanloom_api::zoning::ZoneStatus;
use sanloom_surface::fos::commands::{Console, Reply};
use sanloom_surface::fos::{Now, Shared};
use sanloom_surface::server::Peer;
use sanloom_surface::server::users::Role;
use sanloom_surface::{Busy, Fabric};
use std::time::Duration;

/// A chassis of two logical switches with the fabric IDs 10 and 20, or a switch of its own. Each
/// has two ports.
struct Chassis(bool);

impl Fabric for Chassis {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        let table = match request {
            Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                let row = |(switch, id): (&str, u8)| SwitchRow {
                    switch: switch.to_owned(),
                    switch_name: format!("10:00:00:00:00:00:00:{id:02x}"),
                    chassis: self.0.then(|| "frame".to_owned()),
                    vf_id: self.0.then_some(id.into()),
                    domain: Some(id),
                    up: true,
                    ports: 2,
                    ..SwitchRow::default()
                };
                Table::Switch(SwitchView { switches: [("sw1", 10), ("sw2", 20)].map(row).into() })
            }
            Request::Show { table: ShowTable::Fabric(Which::Ports), switch } => {
                let row = |(switch, number): (&str, u32)| PortRow {
                    port: format!("{switch}:{number}"),
                    number,
                    light: true,
                    mode: PortMode::F,
                    rate: "16GFC".to_owned(),
                    port_name: format!("20:{number:02x}:00:00:00:00:00:01"),
                    ..PortRow::default()
                };
                let all = [("sw1", 0), ("sw1", 1), ("sw2", 2), ("sw2", 3)];
                let own = all.into_iter().filter(|(name, _)| switch.as_ref().is_none_or(|own| own == name));
                Table::Ports(PortsView { ports: own.map(row).collect() })
            }
            Request::Show { table: ShowTable::Fabric(Which::Flogi), .. } => Table::Flogi(FlogiView::default()),
            Request::Show { table: ShowTable::Fabric(Which::Fabric), .. } => {
                let row = |name: &str| sanloom_api::view::FabricSwitch {
                    switch: name.to_owned(),
                    fabric_name: Some(name.to_owned()),
                    ..Default::default()
                };
                Table::Fabric(sanloom_api::view::FabricView { switches: ["sw1", "sw2"].map(row).into() })
            }
            Request::Show { table: ShowTable::Fabric(Which::Ns), .. } => Table::Ns(Default::default()),
            Request::Show { table: ShowTable::Fabric(Which::Events), .. } => Table::Events(Default::default()),
            Request::Zone { .. } => {
                let mut status = ZoneStatus { database_max_bytes: u64::MAX, ..ZoneStatus::default() };
                status.state.database_bytes = 10;
                return Ok(Answer::Zones(Box::new(status)));
            }
            Request::Ports { .. } | Request::Log { .. } => return Ok(Answer::Done),
            _ => return Err(Busy),
        };
        Ok(Answer::View(View::new("lab", 1.0, table)))
    }
}

fn console(role: Role) -> (Console, Shared) {
    let shared = Shared::default();
    let address = "127.0.0.1:22".parse().unwrap();
    let peer = Peer { address, local: address, tls: false };
    (Console::new("sw1", shared.clone(), ("admin", role), "s", "SSH", peer), shared)
}

fn run(console: &mut Console, fabric: &mut Chassis, line: &str) -> Reply {
    console.line(Now { elapsed: Duration::ZERO, unix_s: 0 }, line, fabric)
}

/// Output and status of a line in a new session.
fn once(fabric: &mut Chassis, line: &str) -> (String, u8) {
    let reply = run(&mut console(Role::Administer).0, fabric, line);
    (reply.output, reply.status)
}

#[test]
fn several_ports_of_a_command_change_together_or_not_at_all() {
    let status = |fabric: &mut Limited, line: &str| {
        let now = Now { elapsed: Duration::ZERO, unix_s: 0 };
        console(Role::Administer).0.line(now, line, fabric).status
    };
    let mut fabric = Limited::default();
    assert_ne!(status(&mut fabric, "portdisable 0-2"), 0);
    assert!(fabric.disabled().is_empty(), "{:?}", fabric.disabled());
    fabric.changes = 1;
    assert_eq!((status(&mut fabric, "portdisable 0-2"), fabric.disabled()), (0, vec![0, 1, 2]));
    fabric.changes = 1;
    assert_eq!((status(&mut fabric, "portenable 1-3"), fabric.disabled()), (0, vec![0]));
}

#[test]
fn a_line_with_an_unknown_command_or_an_operator_renames_nothing() {
    let unknown = "rbash: nosuch: command not found\n";
    let cases = [
        ("switchname ; nosuch", format!("sw1\n{unknown}"), 127),
        ("switchname;nosuch", format!("sw1\n{unknown}"), 127),
        ("switchname; nosuch", format!("sw1\n{unknown}"), 127),
        ("nosuch;switchname", format!("{unknown}sw1\n"), 0),
        ("nosuch ; switchname", format!("{unknown}sw1\n"), 0),
        ("SwitchName", "sw1\n".to_owned(), 0),
        ("switchname && nosuch", "rbash: syntax error near unexpected token `&'\n".to_owned(), 2),
        ("switchname || nosuch", "rbash: syntax error near unexpected token `||'\n".to_owned(), 2),
        ("switchname \"", "rbash: unexpected EOF while looking for matching `\"'\n".to_owned(), 2),
        ("switchname a b", "Usage: switchname [NAME]\n".to_owned(), 1),
        ("portname 0 -n a b", "Usage: portname [[-i] PORT[-PORT] [[-n] \"NAME\"]]\n".to_owned(), 1),
        ("chassisname a b", "Usage: chassisname [NAME]\n".to_owned(), 1),
    ];
    for (line, output, status) in cases {
        let (mut session, shared) = console(Role::Administer);
        let reply = run(&mut session, &mut Chassis(false), line);
        assert_eq!((reply.output, reply.status), (output, status), "{line}");
        assert!(shared.lock().names.is_empty(), "{line}");
    }
    for name in ["';'", "'&&'", "'||'", "'a;b'", "''", "1st", "'a b'"] {
        for command in ["switchname", "chassisname"] {
            let (mut session, shared) = console(Role::Administer);
            assert_eq!(run(&mut session, &mut Chassis(false), &format!("{command} {name}")).status, 1, "{name}");
            assert!(shared.lock().names.is_empty(), "{name}");
        }
    }
}

#[test]
fn an_argument_that_a_command_does_not_have_is_refused_with_its_usage() {
    let help = once(&mut Chassis(false), "help").0;
    let names: Vec<&str> = help.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 70, "{names:?}");
    for name in names {
        for arguments in ["--nosuch", "--nosuch x", "-z 0", "0 --nosuch"] {
            let line = format!("{name} {arguments}");
            let (output, status) = once(&mut Chassis(false), &line);
            let is_other = name == "help" && arguments.starts_with('-');
            assert!(is_other || output.to_ascii_lowercase().starts_with("usage: "), "{line}: {output}");
            assert_eq!(status, 1, "{line}: {output}");
        }
        let (output, status) = once(&mut Chassis(false), &format!("{name} --help"));
        assert!(output.starts_with(&format!("Usage: {name}")) && status == 0, "{output}");
    }
    let lines = |line: &str| once(&mut Chassis(false), line).0.lines().count();
    assert_eq!((lines("porterrshow"), lines("porterrshow 0"), lines("porterrshow -i 0-1")), (4, 3, 4));
    assert_eq!(once(&mut Chassis(false), "switchshow -portcount"), ("ports = 2\n".to_owned(), 0));
}

#[test]
fn a_session_keeps_the_logical_switch_that_it_has_selected() {
    let (mut session, _) = console(Role::View);
    let mut line = |line: &str| run(&mut session, &mut Chassis(true), line);
    let wrong = line("setcontext 30; switchshow");
    assert_eq!(
        (&*wrong.output, wrong.status),
        ("The chassis has no logical switch with the FID 30.\n", 1),
        "no data of another switch"
    );
    let ports = line("setcontext 20; switchshow");
    assert!(ports.output.contains("switchDomain:\t20\n") && ports.output.contains("\n   3   3 "), "{}", ports.output);
    assert!(line("switchshow").output.contains("[FID: 20,"), "the next line has the same switch");
    assert_eq!(line("switchname").output, "sw2\n");
    assert!(line("setcontext 10; switchshow").output.contains("switchDomain:\t10\n"));
    assert_eq!(session.prompt(), "sw1:FID10:admin> ");
    let alone = once(&mut Chassis(false), "setcontext 20; switchshow");
    assert_eq!(alone, ("VF feature is not enabled\n".to_owned(), 1));
}

#[test]
fn fosexec_runs_a_command_at_one_logical_switch_or_at_all_of_them() {
    let rule = "-".repeat(51);
    let part = |id: u8, text: &str| format!("{rule}\n\"switchname\" on FID {id}:\n\n{text}\n");
    let cases = [
        ("fosexec --fid 20 -cmd \"switchname\"", part(20, "sw2"), 0),
        ("fosexec --fid all -cmd \"switchname\"; switchname", part(10, "sw1") + &part(20, "sw2") + "sw1\n", 0),
        ("fosexec --fid 30 -cmd switchname", "The chassis has no logical switch with the FID 30.\n".to_owned(), 1),
        ("fosexec --fid 20 -cmd \"setcontext 10\"", "setcontext is not allowed with fosexec.\n".to_owned(), 1),
    ];
    for (line, output, status) in cases {
        assert_eq!(once(&mut Chassis(true), line), (output, status), "{line}");
    }
    let (mut session, _) = console(Role::View);
    let reply = run(&mut session, &mut Chassis(true), "fosexec --fid all -cmd \"switchname x\"");
    assert!(reply.output.matches("RBAC permission denied.").count() == 2 && reply.status == 1, "{}", reply.output);
    let (output, status) = once(&mut Chassis(true), "fosexec --fid 20 -cmd cfgsave; switchname");
    assert!(output.contains("answer it with its option -f.\nsw1\n") && status == 0, "{output}");
}

/// A switch that keeps the zone edits that it receives.
#[derive(Default)]
struct Edited(Vec<Edit>);

impl Fabric for Edited {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        if let Request::Zone { action: ZoneAction::As { action, .. }, .. } = &request
            && let ZoneAction::Edit { edits } | ZoneAction::EditAndCommit { edits } = &**action
        {
            self.0.extend(edits.iter().cloned());
        }
        Chassis(true).ask(request)
    }
}

#[test]
fn cfgclear_asks_and_has_no_option_that_answers() {
    let question = "Do you really want to clear all configurations?  (yes, y, no, n): [no] ";
    for (answer, output, cleared) in
        [("", "Operation cancelled.\n", false), ("no", "Operation cancelled.\n", false), ("yes", "\n", true)]
    {
        let ((mut session, _), mut fabric) = (console(Role::Administer), Edited::default());
        let now = Now { elapsed: Duration::ZERO, unix_s: 0 };
        let asked = session.line(now, "cfgclear", &mut fabric);
        assert!(asked.asks && asked.output.ends_with(question), "{}", asked.output);
        assert!(asked.output.starts_with("The Clear All action will clear all Aliases, Zones, FA Zones\nand "));
        assert!(fabric.0.is_empty());
        let reply = session.line(now, answer, &mut fabric);
        assert_eq!((&*reply.output, reply.asks, fabric.0 == [Edit::Clear]), (output, false, cleared), "{answer}");
    }
    assert_eq!(once(&mut Chassis(true), "cfgclear -f"), ("Usage: cfgclear\n".to_owned(), 1));
    let (output, _) = once(&mut Chassis(true), "fosexec --fid 20 -cmd cfgclear; switchname");
    assert!(output.ends_with("select the switch with setcontext, and run it there.\nsw1\n"), "{output}");
}

#[test]
fn a_filter_without_a_match_is_no_failure_with_fosexec_either() {
    let failed = |line: &str| {
        let reply = run(&mut console(Role::Administer).0, &mut Chassis(true), line);
        (reply.failed, reply.status)
    };
    let cases = [
        ("switchname | grep nosuch", (0, 1)),
        ("fosexec --fid 20 -cmd \"switchname | grep nosuch\"", (0, 1)),
        ("fosexec --fid all -cmd \"switchname | grep sw1\"", (0, 1)),
        ("fosexec --fid all -cmd \"switchname | grep sw\"", (0, 0)),
        ("fosexec --fid 20 -cmd \"switchname\" | grep nosuch", (0, 1)),
        // Each switch at which the command fails counts.
        ("fosexec --fid all -cmd \"switchname a b\"", (2, 1)),
        ("fosexec --fid all -cmd \"nosuch | grep nosuch\"", (2, 0)),
        ("fosexec --fid 20 -cmd \"nosuch\" | grep nosuch", (1, 0)),
        ("fosexec --fid 20 -cmd cfgsave", (1, 1)),
        ("fosexec --fid 30 -cmd switchname", (1, 1)),
        ("fosexec", (1, 1)),
        ("setcontext 30", (1, 1)),
    ];
    for (line, expected) in cases {
        assert_eq!(failed(line), expected, "{line}");
    }
}

#[test]
fn the_command_line_shows_the_limit_of_the_zone_database_that_rest_shows() {
    let (output, _) = once(&mut Chassis(false), "cfgsize");
    let expected = "Zone DB max size - 4294967295 bytes\nAvailable Zone DB size - 4294967285 bytes\n\
                    committed - 10\ntransaction - 0\n";
    assert_eq!(output, expected);
}

#[test]
fn names_of_a_logical_switch_are_those_of_its_own_address() {
    let (mut session, _) = console(Role::Administer);
    let mut line = |line: &str| run(&mut session, &mut Chassis(true), line).output;
    line("setcontext 20; switchname edge");
    assert_eq!(line("switchname; setcontext 10; switchname; setcontext 20; switchname"), "edge\nsw1\nedge\n");
    let list = line("lscfg --show");
    assert!(list.starts_with("Created switches FIDs(Domain IDs):  10(10) 20(20)\n"), "{list}");
    assert!(list.contains("  1   |   10 |\n  2   |   20 |\n"), "{list}");
}

#[test]
fn a_user_with_the_role_view_reads_names_and_changes_none() {
    let (mut session, shared) = console(Role::View);
    for (line, status) in [
        ("portname", 0),
        ("portname 0", 0),
        ("portname 0 x", 1),
        ("portname 0 -n x", 1),
        ("switchname", 0),
        ("switchname x", 1),
        ("chassisname x", 1),
        ("zone --show", 0),
        ("zone --delete z", 1),
        ("portcfgpersistentdisable 0", 1),
    ] {
        let reply = run(&mut session, &mut Chassis(false), line);
        assert_eq!(reply.status, status, "{line}: {}", reply.output);
        assert_eq!(reply.output == "RBAC permission denied.\n", status == 1, "{line}");
    }
    assert!(shared.lock().names.is_empty());
}
