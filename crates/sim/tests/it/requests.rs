//! Requests to a running world, and runs at a pace.

use crate::labs::lab;
use sanloom_api::control::{Answer, PortChange, Request, RequestUser, ShowTable, ZoneAction, ZoneClient};
use sanloom_api::inject::RuleRow;
use sanloom_api::results::Results;
use sanloom_api::view::build::{LiveWhich, Which};
use sanloom_api::view::{Dark, NodeRow, PortMode, PortRow, Table, View};
use sanloom_api::zone_database::Edit;
use sanloom_api::zoning::ZoneStatus;
use sanloom_fc::san::Lab;
use sanloom_sim::requests::{Effect, Requests};
use sanloom_sim::results;
use sanloom_sim::run::{Blind, Observer, Options, go_on, simulate, world_at};
use sanloom_sim::world::World;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

pub(crate) const PAIRS: &str = r#"
[run]
duration = "200ms"
warmup = "30ms"
[switch."sw{1..2}"]
ports = 8
[host."h{1..2}"]
[storage."d{1..2}"]
[zoning]
default = "closed"
[[link]]
from = "h{1..2}"
to = "sw1"
[[link]]
from = "d{1..2}"
to = "sw2"
[[isl]]
from = "sw1"
to = "sw2"
[[zone]]
name = "z{1..2}"
members = ["h{1..2}", "d{1..2}"]
spread = "round-robin"
[workload."w{1..2}"]
hosts = "h{1..2}"
targets = "d{1..2}"
arrivals = "poisson 1000/s"
spread = "round-robin"
"#;

pub(crate) const MS: u64 = 1_000_000_000;

/// A world that is operated.
pub(crate) struct Operated {
    pub(crate) world: World,
    pub(crate) requests: Requests,
}

impl Operated {
    fn start() -> Operated {
        Operated::of(PAIRS)
    }

    pub(crate) fn of(text: &str) -> Operated {
        let mut world = world_at(&lab(text), Some(0), &mut Blind);
        let requests = Requests::begin(&mut world);
        Operated { world, requests }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let now = self.world.net.now();
        for step in 1..=ms {
            self.world.run_until(now + step * MS);
            self.requests.advance(&mut self.world);
        }
    }

    pub(crate) fn send(&mut self, request: Request) -> Receiver<Answer> {
        let (answer, answers) = channel();
        self.requests.request(&mut self.world, request, answer);
        answers
    }

    pub(crate) fn ask(&mut self, request: Request) -> Answer {
        self.send(request).try_recv().expect("an answer at once")
    }

    #[track_caller]
    pub(crate) fn refused(&mut self, request: Request, why: &str) {
        match self.ask(request) {
            Answer::Failed(error) => assert!(error.reason.contains(why), "{}", error.reason),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn table(&mut self, table: ShowTable) -> Table {
        match self.ask(Request::Show { table, switch: None }) {
            Answer::View(View { table, .. }) => table,
            other => panic!("{other:?}"),
        }
    }

    fn port(&mut self, name: &str) -> PortRow {
        let Table::Ports(view) = self.table(ShowTable::Fabric(Which::Ports)) else { panic!("no ports") };
        view.ports.into_iter().find(|row| row.port == name).unwrap()
    }

    fn node(&mut self, name: &str) -> NodeRow {
        let Table::Nodes(view) = self.table(ShowTable::Fabric(Which::Nodes)) else { panic!("no nodes") };
        view.nodes.into_iter().find(|row| row.port == name).unwrap()
    }

    fn rules(&mut self) -> Vec<RuleRow> {
        let Table::Injections(view) = self.table(ShowTable::Live(LiveWhich::Injections)) else { panic!("no rules") };
        view.rules
    }

    pub(crate) fn zone(&mut self, switch: &str, action: ZoneAction) -> Receiver<Answer> {
        self.send(Request::Zone { switch: Some(switch.to_owned()), by: None, action })
    }

    pub(crate) fn zones(&mut self, switch: &str) -> ZoneStatus {
        status(self.zone(switch, ZoneAction::Show).try_recv().unwrap())
    }

    /// Requests of each host that have succeeded.
    fn completed(&self) -> Vec<u64> {
        results::of(&self.world, false).hosts.iter().map(|host| host.io.ios_completed).collect()
    }

    /// Requests of each host that succeed within this time.
    fn completed_in(&mut self, ms: u64) -> Vec<u64> {
        let before = self.completed();
        self.run(ms);
        self.completed().iter().zip(&before).map(|(now, before)| now - before).collect()
    }
}

#[track_caller]
pub(crate) fn status(answer: Answer) -> ZoneStatus {
    match answer {
        Answer::Zones(status) => *status,
        other => panic!("{other:?}"),
    }
}

fn port(port: &str, enabled: bool) -> Request {
    Request::Port { port: port.to_owned(), enabled, by: None }
}

fn inject(port: &str, matches: &str, act: &str, count: Option<u64>) -> Request {
    Request::Inject { port: port.to_owned(), matches: matches.to_owned(), act: act.to_owned(), count }
}

/// Pauses a run at many times, reads tables, and changes nothing.
#[derive(Default)]
struct Pauses {
    requests: Option<Requests>,
    count: u64,
    most: u64,
}

impl Observer for Pauses {
    fn limit_ps(&mut self, world: &mut World) -> Option<u64> {
        let requests = self.requests.get_or_insert_with(|| Requests::begin(world));
        requests.advance(world);
        let (answer, answers) = channel();
        let show = Request::Show { table: ShowTable::Fabric(Which::Ports), switch: None };
        assert_eq!(requests.request(world, show, answer), Effect::None);
        assert!(matches!(answers.try_recv(), Ok(Answer::View(_))));
        self.count += 1;
        // Some steps end with a number of events, the others at a time.
        let step = if self.count.is_multiple_of(20) { 5_000_000_000 } else { 77_777_777 * (1 + self.count % 7) };
        (self.count < self.most).then(|| world.run_ps() + step)
    }
}

fn text(mut results: Results) -> String {
    // The time of the machine.
    results.engine = Default::default();
    serde_json::to_string(&results).unwrap()
}

#[test]
fn a_paced_run_without_changes_has_the_results_of_the_same_run_at_once() {
    for sets in ["", "[[fault]]\nkind = \"link-down\"\nlink = \"h1-sw1\"\nat = \"50ms\"\nuntil = \"90ms\"\n"] {
        let lab: Arc<Lab> = lab(&(PAIRS.to_owned() + sets));
        let at_once = simulate(&lab, &Options::default(), &mut Blind);
        let mut pauses = Pauses { most: u64::MAX, ..Pauses::default() };
        let paced = simulate(&lab, &Options::default(), &mut pauses);
        assert!(pauses.count > 300, "{} pauses", pauses.count);
        assert_eq!(text(paced.results), text(at_once.results));
    }
}

#[test]
fn a_run_goes_on_after_its_duration_until_the_observer_ends_it() {
    let lab = lab(PAIRS);
    let mut finished = simulate(&lab, &Options::default(), &mut Blind);
    let before = finished.results.totals.io.ios_completed;
    let mut pauses = Pauses { most: 3_000, ..Pauses::default() };
    go_on(&mut finished.world, &mut pauses);
    assert_eq!(pauses.count, 3_000);
    assert!(finished.world.run_ps() > 2 * lab.run.duration.0, "{}", finished.world.run_ps());
    let after = results::of(&finished.world, false).totals.io.ios_completed;
    assert!(after > 2 * before, "{before} requests, then {after}");
    finished.world.check().unwrap();
}

#[test]
fn a_zone_change_alters_which_commands_of_the_hosts_succeed() {
    let mut fabric = Operated::start();
    assert!(fabric.completed_in(100).iter().all(|done| (60..140).contains(done)));
    let before = fabric.zones("sw1");
    assert_eq!((before.kept, before.volatile, before.can_roll_back, before.ports.len()), (false, true, false, 4));
    let delete = vec![
        Edit::RemoveFromConfig { name: "all-zones".to_owned(), zones: vec!["z1".to_owned()] },
        Edit::Enable { config: "all-zones".to_owned() },
    ];
    let edited = status(fabric.zone("sw1", ZoneAction::Edit { edits: delete }).try_recv().unwrap());
    assert!(edited.transaction.is_some() && edited.checksum == before.checksum);
    assert!(fabric.completed_in(50).iter().all(|done| *done > 20), "an edit changes nothing");
    // The answer follows when the change is in force in the whole fabric.
    let commit = fabric.zone("sw1", ZoneAction::Commit);
    assert!(commit.try_recv().is_err());
    fabric.run(20);
    let after = status(commit.try_recv().unwrap());
    assert!(after.transaction.is_none() && after.checksum != before.checksum && after.can_roll_back);
    assert_eq!(fabric.zones("sw2").checksum, after.checksum, "the other switch has the zones, too");
    let done = fabric.completed_in(100);
    assert!(done[0] == 0 && (60..140).contains(&done[1]), "{done:?}");
    // Zones return, and with them the commands.
    let undo = fabric.zone("sw1", ZoneAction::Rollback);
    fabric.run(20);
    assert_eq!(status(undo.try_recv().unwrap()).checksum, before.checksum);
    fabric.run(6_000);
    assert!(fabric.completed_in(100)[0] > 60);
}

#[test]
fn an_edit_without_edits_opens_no_transaction_and_locks_out_nobody() {
    let mut fabric = Operated::start();
    let client = |session: &str| ZoneClient { session: session.to_owned(), ..ZoneClient::default() };
    let edit = |session: &str, edits: Vec<Edit>| ZoneAction::As {
        client: client(session),
        checksum: None,
        action: Box::new(ZoneAction::Edit { edits }),
    };
    let mut ask = |action: ZoneAction| fabric.zone("sw1", action).try_recv().unwrap();
    assert_eq!(status(ask(edit("a", Vec::new()))).transaction, None);
    let clear = vec![Edit::Clear];
    assert!(status(ask(edit("b", clear.clone()))).transaction.is_some(), "another client edits");
    assert!(matches!(ask(edit("a", Vec::new())), Answer::Failed(_)), "the transaction of another client");
    assert!(status(ask(edit("b", Vec::new()))).transaction.is_some(), "an open transaction stays open");
    // An empty edit fails with the reason for the end of a transaction, as any other.
    status(ask(ZoneAction::Abort));
    let Answer::Failed(error) = ask(edit("b", Vec::new())) else { panic!("the loss is not reported") };
    assert!(error.reason.contains("its edits are lost"), "{error:?}");
    assert_eq!(status(ask(edit("b", Vec::new()))).transaction, None);
}

#[test]
fn a_disabled_port_and_its_peer_are_down_until_it_is_enabled() {
    let mut fabric = Operated::start();
    assert_eq!((fabric.node("h1:0").light, fabric.port("sw1:0").mode), (Some(true), PortMode::F));
    assert_eq!(fabric.ask(port("sw1:0", false)), Answer::Done);
    let row = fabric.port("sw1:0");
    assert_eq!((row.mode, row.light, row.dark), (PortMode::Down, false, Some(Dark::Disabled)));
    let node = fabric.node("h1:0");
    assert_eq!((node.light, node.port_id), (Some(false), None));
    assert!(fabric.completed_in(50)[0] == 0 && fabric.port("sw1:0").dark == Some(Dark::Disabled));
    assert_eq!(fabric.ask(port("sw1:0", true)), Answer::Done);
    fabric.run(50);
    assert_eq!((fabric.port("sw1:0").mode, fabric.node("h1:0").light), (PortMode::F, Some(true)));

    // A link between switches has two ports, and both must be enabled.
    let isl = fabric.port("sw1:2");
    assert_eq!((&*isl.attached, isl.mode), ("sw2:2", PortMode::E));
    fabric.ask(port("sw1:2", false));
    fabric.ask(port("sw2:2", false));
    let peer = fabric.port("sw2:2");
    assert_eq!((peer.mode, peer.light, peer.dark), (PortMode::Down, false, Some(Dark::Disabled)));
    fabric.ask(port("sw1:2", true));
    assert_eq!((fabric.port("sw1:2").light, fabric.port("sw1:2").dark), (false, None));
    fabric.ask(port("sw2:2", true));
    fabric.run(200);
    assert_eq!(fabric.port("sw1:2").mode, PortMode::E);
    fabric.world.check().unwrap();
}

#[test]
fn several_ports_of_a_request_change_together_or_not_at_all() {
    let mut fabric = Operated::start();
    let ports = |names: &[&str], enabled| {
        let change = |name: &&str| PortChange { port: (*name).to_owned(), enabled };
        Request::Ports { changes: names.iter().map(change).collect(), by: None }
    };
    let modes = |fabric: &mut Operated| ["sw1:0", "sw1:1", "sw2:0"].map(|name| fabric.port(name).mode);
    for wrong in ["sw1:99", "sw9:0", "sw1"] {
        assert!(matches!(fabric.ask(ports(&["sw1:0", "sw2:0", wrong], false)), Answer::Failed(_)), "{wrong}");
        assert_eq!(modes(&mut fabric), [PortMode::F; 3], "{wrong}");
    }
    assert_eq!(fabric.ask(ports(&["sw1:0", "sw2:0"], false)), Answer::Done);
    assert_eq!(modes(&mut fabric), [PortMode::Down, PortMode::F, PortMode::Down]);
    assert_eq!(fabric.ask(ports(&["sw2:0", "sw1:0"], true)), Answer::Done);
    fabric.run(50);
    assert_eq!(modes(&mut fabric), [PortMode::F; 3]);
    fabric.world.check().unwrap();
}

#[test]
fn a_disabled_switch_is_dark_and_keeps_the_state_of_its_ports() {
    let mut fabric = Operated::start();
    let switch = |enabled| {
        let by = Some(RequestUser { user: "jane".to_owned(), interface: "REST".to_owned() });
        Request::Switch { switch: "sw1".to_owned(), enabled, by }
    };
    let disabled = |fabric: &mut Operated| {
        let request = Request::Show { table: ShowTable::Fabric(Which::Switch), switch: None };
        let Answer::View(View { table: Table::Switch(view), .. }) = fabric.ask(request) else { panic!("no table") };
        view.switches.iter().map(|row| row.disabled).collect::<Vec<bool>>()
    };
    fabric.ask(port("sw1:1", false));
    assert_eq!(fabric.ask(switch(false)), Answer::Done);
    fabric.run(50);
    assert_eq!(disabled(&mut fabric), [true, false]);
    let dark = |fabric: &mut Operated, name: &str| (fabric.port(name).mode, fabric.port(name).dark);
    assert_eq!(dark(&mut fabric, "sw1:0"), (PortMode::Down, Some(Dark::SwitchDisabled)));
    assert_eq!(dark(&mut fabric, "sw1:1"), (PortMode::Down, Some(Dark::Disabled)));
    assert_eq!(dark(&mut fabric, "sw2:2"), (PortMode::Down, None), "the other switch is not disabled");
    assert_eq!(fabric.node("h1:0").light, Some(false));
    // A port of a disabled switch changes its state, and no light.
    fabric.ask(port("sw1:1", true));
    fabric.ask(port("sw1:0", false));
    assert_eq!(dark(&mut fabric, "sw1:0"), (PortMode::Down, Some(Dark::Disabled)));
    assert_eq!(dark(&mut fabric, "sw1:1"), (PortMode::Down, Some(Dark::SwitchDisabled)));
    // The same requests again change nothing.
    assert_eq!(fabric.ask(switch(false)), Answer::Done);
    fabric.ask(port("sw1:0", false));
    assert_eq!(fabric.ask(switch(true)), Answer::Done);
    assert_eq!(fabric.ask(switch(true)), Answer::Done);
    fabric.run(200);
    assert_eq!(disabled(&mut fabric), [false, false]);
    assert_eq!(dark(&mut fabric, "sw1:0"), (PortMode::Down, Some(Dark::Disabled)));
    assert_eq!(dark(&mut fabric, "sw1:1"), (PortMode::F, None));
    assert_eq!(dark(&mut fabric, "sw1:2"), (PortMode::E, None));
    let Answer::View(View { table: Table::Events(log), .. }) = fabric.ask(Request::Events { after: 0 }) else {
        panic!("no events")
    };
    let changes = log.events.iter().filter(|row| row.audit);
    let changes: Vec<(&str, &str, u64, &str)> =
        changes.map(|row| (&*row.id, &*row.port, row.count, &*row.user)).collect();
    let expected = [
        ("PORT-1004", "sw1:1", 1, ""),
        ("SWCH-1002", "", 1, "jane"),
        ("PORT-1003", "sw1:1", 1, ""),
        ("PORT-1004", "sw1:0", 1, ""),
        ("SWCH-1001", "", 1, "jane"),
    ];
    assert_eq!(changes, expected);
    let wrong = Request::Switch { switch: "sw9".to_owned(), enabled: true, by: None };
    assert!(matches!(fabric.ask(wrong), Answer::Failed(_)));
    fabric.world.check().unwrap();
}

#[test]
fn counters_of_ports_count_on_through_the_end_of_the_warm_up() {
    let mut fabric = Operated::start();
    fabric.run(30);
    let before = fabric.port("sw1:0");
    fabric.world.begin_measurement();
    let after = fabric.port("sw1:0");
    assert!(before.frames_received > 20 && after == before, "{after:?}");
    fabric.run(30);
    assert!(fabric.port("sw1:0").frames_received > after.frames_received + 10);
}

#[test]
fn rules_lose_and_damage_the_frames_that_they_select() {
    let mut fabric = Operated::start();
    fabric.ask(inject("sw1:0", "fcp == CMND && direction == in", "corrupt", Some(3)));
    fabric.ask(inject("sw1:1", "els == FLOGI", "drop", None));
    let rows: Vec<(u64, Option<u64>)> = fabric.rules().iter().map(|rule| (rule.injected, rule.left)).collect();
    assert_eq!(rows, [(0, Some(3)), (0, None)]);
    fabric.run(100);
    // The other host loses its login again and again.
    fabric.ask(port("sw1:1", false));
    fabric.ask(port("sw1:1", true));
    fabric.run(5_000);
    let rules = fabric.rules();
    assert_eq!((rules[0].injected, rules[0].left), (3, Some(0)));
    assert!(rules[1].injected >= 1 && rules[1].left.is_none(), "{rules:?}");
    assert_eq!(fabric.node("h2:0").port_id, None);
    assert!(matches!(fabric.ask(Request::ClearInjections { port: Some("sw1:1".to_owned()) }), Answer::View(_)));
    assert_eq!(fabric.rules().len(), 1);
    fabric.run(30_000);
    assert!(fabric.node("h2:0").port_id.is_some());
    fabric.world.check().unwrap();
}

#[test]
fn a_request_that_a_simulation_cannot_execute_is_refused_with_the_reason() {
    let mut fabric = Operated::start();
    for (request, why) in [
        (port("sw1", false), "for example sw1:0"),
        (port("sw3:0", false), "it has sw1, sw2"),
        (port("sw1:999", false), "there is no port 999"),
        (inject("sw1:3", "fcp == CMND", "drop", None), "nothing is attached"),
        (inject("sw1:0", "fcp == CMND", "delay:1ms", None), "keep their order"),
        (inject("sw1:0", "fcp == CMND", "reject:09/29", None), "reject nothing on request"),
        (inject("sw1:0", "!(parameter == 0)", "drop", None), "seq_cnt or length"),
        (inject("sw1:0", "fcp = CMND", "drop", None), "operator"),
        (Request::Capture { link: "h9-sw1".to_owned(), file: Some("x".to_owned()) }, "such as sw1:0"),
        (Request::Capture { link: "sw1:3".to_owned(), file: Some("x".to_owned()) }, "nothing is attached"),
        (Request::Capture { link: "sw1:0".to_owned(), file: None }, "no capture of `sw1:0` is running"),
        (Request::Trace { file: None, format: None, hosts: Vec::new() }, "sanloom trace record"),
        (Request::Apply { lab: String::new(), preview: false, set: Vec::new() }, "start it with the changed file"),
        (Request::PortGroup { group: "g".to_owned(), state: None, preferred: None }, "without --simulated"),
        (Request::Show { table: ShowTable::Fabric(Which::Ports), switch: Some("x".to_owned()) }, "no switch `x`"),
    ] {
        fabric.refused(request, why);
    }
}

#[test]
fn a_port_without_a_link_is_disabled_until_it_is_enabled() {
    let mut fabric = Operated::start();
    let disabled = |fabric: &mut Operated| {
        let show = Request::Show { table: ShowTable::Fabric(Which::Switch), switch: Some("sw1".to_owned()) };
        let Answer::View(View { table: Table::Switch(view), .. }) = fabric.ask(show) else { panic!("another table") };
        view.switches[0].disabled_ports.clone()
    };
    assert_eq!(disabled(&mut fabric), Vec::<u32>::new());
    for (name, enabled, expected) in [("sw1:3", false, vec![3]), ("sw1:0", false, vec![3]), ("sw1:3", true, vec![])] {
        assert_eq!(fabric.ask(port(name, enabled)), Answer::Done, "{name}");
        fabric.run(10);
        assert_eq!(disabled(&mut fabric), expected, "a port with a link has a row of its own");
    }
    assert_eq!(fabric.port("sw1:0").dark, Some(Dark::Disabled));
    fabric.world.check().unwrap();
}

#[test]
fn errors_are_counted_at_the_port_where_they_happen() {
    let text = PAIRS
        .replace("ports = 8", "ports = 8\nforwarding = \"store-and-forward\"")
        .replace("from = \"sw1\"\nto = \"sw2\"", "from = \"sw1\"\nto = \"sw2\"\ncredits = 1\nlength = \"100km\"");
    let mut fabric = Operated::of(&text);
    fabric.run(20);
    let errors = |fabric: &mut Operated, name: &str| fabric.port(name).errors;
    let isl = errors(&mut fabric, "sw2:2");
    // One frame at a time: a credit returns after twice 500 us, and each frame uses the only one.
    let frames = fabric.port("sw2:2").frames_sent;
    assert!(frames > 10, "{frames} frames to the hosts");
    let zeros = isl.credit_zeros.unwrap();
    assert_eq!(zeros, frames);
    let zero_ns = isl.credit_zero_ns.unwrap();
    assert!(zero_ns >= (zeros - 1) * 1_000_000, "{zeros} times for 1 ms each, not {zero_ns} ns");
    assert!(isl.credit_wait_ns.is_some_and(|wait| wait > 0 && wait <= zero_ns), "{isl:?}");
    assert_eq!(errors(&mut fabric, "sw1:0").credit_zeros, Some(0), "16 buffers are enough");

    fabric.ask(inject("sw1:0", "fcp == CMND && direction == in", "corrupt", Some(3)));
    fabric.run(20);
    let host = errors(&mut fabric, "sw1:0");
    assert_eq!((host.crc_errors, host.discards_received), (Some(3), Some(3)));
    assert_eq!(errors(&mut fabric, "sw1:1").crc_errors, Some(0));

    fabric.ask(port("sw1:2", false));
    fabric.ask(port("sw1:2", true));
    assert_eq!(errors(&mut fabric, "sw1:2").link_failures, Some(0), "an operator has disabled this end");
    assert_eq!(errors(&mut fabric, "sw2:2").link_failures, Some(1));
}

#[test]
fn metrics_name_each_port_and_switch() {
    let mut fabric = Operated::start();
    fabric.run(20);
    fabric.ask(port("sw1:0", false));
    let Answer::Metrics { text } = fabric.ask(Request::Metrics) else { panic!("no metrics") };
    let up = |name: &str, port: &PortRow, value: u8| {
        let PortRow { link, port_name, .. } = port;
        format!("sanloom_port_up{{link=\"{link}\",switch=\"sw1\",port=\"{name}\",wwn=\"{port_name}\"}} {value}")
    };
    let (first, second) = (fabric.port("sw1:0"), fabric.port("sw1:1"));
    for line in [up("0/0", &first, 0), up("0/1", &second, 1)] {
        assert!(text.lines().any(|one| one == line), "no `{line}` in {text}");
    }
    for line in [
        "sanloom_uptime_seconds{lab=\"test\"} 0.02",
        "sanloom_switch_domain{switch=\"sw2\"} 2",
        "sanloom_switch_logins{switch=\"sw1\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "no `{line}` in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}
