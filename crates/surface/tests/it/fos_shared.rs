//! Names and settings that all interfaces of an instance share.

use crate::client::Fake;
use crate::fos::{Client, text};
use sanloom_api::control::{Answer, Request as Ask, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{
    FabricSwitch, FabricView, IslEnd, PortMode, PortRow, PortsView, RoutesView, SwitchRow, SwitchView, Table, View,
};
use sanloom_surface::fos::commands::Console;
use sanloom_surface::fos::{Mode, Now, Rest, Shared};
use sanloom_surface::nxos::{self, NxApi};
use sanloom_surface::server::http::Request;
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::server::{Bytes, Interface, Peer};
use sanloom_surface::snmp::{Agent, Message, Operation};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const SWITCH: &str = "fibrechannel-switch/fibrechannel-switch";
const PORTS: &str = "interface/fibrechannel";
const WWNS: [&str; 3] = ["10:00:00:00:00:00:00:03", "10:00:00:00:00:00:00:01", "10:00:00:00:00:00:00:05"];

fn row(index: usize) -> SwitchRow {
    let domain = u8::try_from(index + 1).unwrap();
    let first = 8 * u32::from(domain - 1);
    SwitchRow {
        switch: format!("sw{domain}"),
        switch_name: WWNS[index].to_owned(),
        chassis: (index < 2).then(|| "frame".to_owned()),
        vf_id: (index < 2).then_some(u16::from(domain) * 10),
        domain: Some(domain),
        up: true,
        ports: 8,
        port_numbers: (first..first + 8).collect(),
        ..SwitchRow::default()
    }
}

/// The chassis `frame` with the logical switches sw1 (10) and sw2 (20, ports 8 to 15), and sw3,
/// which has an ISL with port 9 of sw2.
fn fabric(request: Ask) -> Answer {
    let ends = [("sw2:9", "sw3:0"), ("sw3:0", "sw2:9")];
    let switch_of = |port: &str| port.split(':').next().unwrap().to_owned();
    let table = match request {
        Ask::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
            Table::Switch(SwitchView { switches: (0..3).map(row).collect() })
        }
        Ask::Show { table: ShowTable::Fabric(Which::Ports), switch } => {
            let port = |(port, attached): (&str, &str)| PortRow {
                port: port.to_owned(),
                attached: attached.to_owned(),
                number: port.split(':').nth(1).unwrap().parse().unwrap(),
                port_name: format!("20:00:00:00:00:00:00:{}", if port == "sw2:9" { "29" } else { "30" }),
                mode: PortMode::E,
                light: true,
                rate: "16GFC".to_owned(),
                ..PortRow::default()
            };
            let own = ends.into_iter().filter(|(port, _)| switch.as_ref().is_none_or(|own| switch_of(port) == *own));
            Table::Ports(PortsView { ports: own.map(port).collect() })
        }
        Ask::Show { table: ShowTable::Fabric(Which::Fabric), .. } => {
            let isl = |(port, neighbour): &(&str, &str)| IslEnd {
                port: (*port).to_owned(),
                neighbour: (*neighbour).to_owned(),
                state: "up".to_owned(),
                rate: "16GFC".to_owned(),
                ..IslEnd::default()
            };
            let fabric = |index| {
                let row = row(index);
                let isls = ends.iter().filter(|(port, _)| switch_of(port) == row.switch).map(isl).collect();
                let fabric_name = Some(if index == 0 { "one" } else { "two" }.to_owned());
                FabricSwitch { switch: row.switch, domain: row.domain, fabric_name, isls, ..FabricSwitch::default() }
            };
            Table::Fabric(FabricView { switches: (0..3).map(fabric).collect() })
        }
        Ask::Show { table: ShowTable::Fabric(Which::Routes), .. } => Table::Routes(RoutesView::default()),
        Ask::Show { table: ShowTable::Fabric(Which::Flogi), .. } => Table::Flogi(Default::default()),
        Ask::Zone { .. } => return Answer::Zones(Box::default()),
        _ => return Answer::Done,
    };
    Answer::View(View::new("lab", 1.0, table))
}

fn peer() -> Peer {
    let address = "127.0.0.1:1000".parse().unwrap();
    Peer { address, local: address, tls: false }
}

/// The interfaces of the three switches, as an instance has them.
struct Instance {
    shared: [Shared; 3],
    rest: Vec<(Client, String)>,
}

/// Passwords are hashed slowly.
static USERS: LazyLock<Arc<Users>> = LazyLock::new(|| {
    let mut users = Users::new().unwrap();
    users.set("admin", Role::Administer, "password").unwrap();
    Arc::new(users)
});

impl Instance {
    fn start() -> Instance {
        let instance = Shared::default();
        let shared = [0, 1, 2].map(|index| {
            let SwitchRow { switch, chassis, .. } = row(index);
            instance.set_address(&switch, format!("127.1.0.{}", index + 1).parse().unwrap());
            instance.at(&switch, chassis.as_deref())
        });
        let rest = shared.iter().enumerate().map(|(index, shared)| {
            let rest = Rest::new(&row(index).switch, Mode::default(), USERS.clone(), shared.clone());
            (Client::of(rest), "Basic YWRtaW46cGFzc3dvcmQ=".to_owned())
        });
        Instance { rest: rest.collect(), shared }
    }

    /// Sends a request to the address of a switch.
    fn send(&mut self, at: usize, method: &str, path: &str, body: &str) -> String {
        let (client, token) = &mut self.rest[at - 1];
        let path = format!("/rest/running/brocade-{path}");
        let answer = client.send_to(&mut Fake(fabric), method, &path, &[("authorization", token)], body.as_bytes());
        let expected = if method == "PATCH" { 204 } else { 200 };
        assert_eq!(answer.status(), expected, "{method} {path} at {at}: {}", text(&answer));
        text(&answer).to_owned()
    }

    fn get(&mut self, at: usize, path: &str) -> String {
        self.send(at, "GET", path, "")
    }

    /// Output of a command of Fabric OS.
    fn console(&self, at: usize, line: &str) -> String {
        let shared = self.shared[at - 1].clone();
        let mut console = Console::new(&format!("sw{at}"), shared, ("admin", Role::Administer), "s", "SSH", peer());
        let reply = console.line(Now::default(), line, &mut Fake(fabric));
        format!("{}{}", reply.output, console.prompt())
    }

    /// Answer to commands of NX-OS.
    fn nxapi(&self, at: usize, kind: &str, input: &str) -> String {
        let common = self.shared[at - 1].clone();
        let mut api = NxApi::new(&format!("sw{at}"), USERS.clone(), common, nxos::Shared::default());
        let message = serde_json::json!({"ins_api": {"version": "1.0", "type": kind, "chunk": "0", "sid": null,
                                                     "input": input, "output_format": "json"}});
        let request =
            Request::builder().method("POST").uri("/ins").header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=");
        let request =
            request.header("content-type", "application/json").body(Bytes::from(message.to_string())).unwrap();
        let response = api.handle(Now::default(), &request, &peer(), &mut Fake(fabric));
        text(&response).to_owned()
    }

    /// `sysName` of SNMP.
    fn system_name(&self, at: usize) -> String {
        let agent = Agent::new(&format!("sw{at}"), "secret-word", self.shared[at - 1].clone());
        let name = vec![1, 3, 6, 1, 2, 1, 1, 5, 0];
        let get = Message { community: b"secret-word".to_vec(), id: 1, operation: Operation::Get, names: vec![name] };
        String::from_utf8_lossy(&agent.answer(Now::default(), &get, &peer(), &mut Fake(fabric))).into_owned()
    }
}

#[test]
fn a_name_of_a_logical_switch_is_the_same_at_every_address_and_interface() {
    let mut lab = Instance::start();
    let name = |name: &str| {
        format!(
            "<fibrechannel-switch><name>{}</name><user-friendly-name>{name}</user-friendly-name></fibrechannel-switch>",
            WWNS[1]
        )
    };
    lab.send(1, "PATCH", &format!("{SWITCH}?vf-id=20"), &name("coreA"));
    let port = "<fibrechannel><name>0/9</name><user-friendly-name>viaVF</user-friendly-name></fibrechannel>";
    lab.send(1, "PATCH", &format!("{PORTS}?vf-id=20"), port);
    let named = "<user-friendly-name>coreA</user-friendly-name>";
    let of_port = "<user-friendly-name>viaVF</user-friendly-name>";
    // Both addresses of the chassis, and all interfaces of the logical switch.
    for (at, query) in [(1, "?vf-id=20"), (2, ""), (2, "?vf-id=20")] {
        assert!(lab.get(at, &format!("{SWITCH}{query}")).contains(named), "{at}{query}");
        assert!(lab.get(at, &format!("{PORTS}{query}")).contains(of_port), "{at}{query}");
    }
    assert!(!lab.get(1, SWITCH).contains("coreA"), "the other logical switch has its own name");
    assert_eq!(lab.console(2, "switchname"), "coreA\ncoreA:FID128:admin> ");
    assert!(lab.console(1, "setcontext 20; switchname; portname 9").starts_with("coreA\nport  9: viaVF\n"));
    assert!(lab.system_name(2).contains("coreA"), "{}", lab.system_name(2));
    assert!(lab.nxapi(2, "cli_show", "show switchname").contains("coreA"));
    assert!(lab.nxapi(1, "cli_show", "show switchname").contains("sw1"));
    // The other switch of the fabric.
    let rows = lab.get(3, "fabric/fabric-switch");
    assert!(rows.contains("<switch-user-friendly-name>coreA</switch-user-friendly-name>"), "{rows}");
    let ports = lab.get(3, PORTS);
    assert!(ports.contains("<neighbor-switch-user-friendly-name>coreA<"), "{ports}");
    for command in ["fabricshow", "islshow", "switchshow"] {
        let output = lab.console(3, command);
        assert!(output.contains("coreA") && !output.contains("sw2"), "{command}: {output}");
    }
    let topology = lab.nxapi(3, "cli_show_ascii", "show topology");
    assert!(topology.contains("127.1.0.2(coreA)"), "{topology}");
    // Names that the other interfaces give.
    lab.nxapi(1, "cli_conf", "interface fc1/10 ;switchport description byNX ;switchname frameA");
    for (at, query) in [(1, "?vf-id=20"), (2, "")] {
        assert!(lab.get(at, &format!("{PORTS}{query}")).contains("<user-friendly-name>byNX<"), "{at}");
        assert!(lab.get(at, &format!("{SWITCH}{query}")).contains(named), "{at}");
    }
    assert!(lab.get(1, SWITCH).contains("<user-friendly-name>frameA<"));
    assert!(lab.nxapi(2, "cli_show_ascii", "show interface description").contains("byNX"));
    lab.console(2, "switchname edge; portname 9 -n byCLI");
    assert!(lab.get(1, &format!("{SWITCH}?vf-id=20")).contains("<user-friendly-name>edge<"));
    assert!(lab.nxapi(1, "cli_show_ascii", "show interface description").contains("byCLI"));
    assert!(lab.get(3, "fabric/fabric-switch").contains(">edge<"));
}

/// Values of a leaf in the answer, in order.
fn values(answer: &str, leaf: &str) -> Vec<String> {
    let start = format!("<{leaf}>");
    answer.split(&*start).skip(1).map(|part| part.split('<').next().unwrap().to_owned()).collect()
}

#[test]
fn a_chassis_has_one_name_one_world_wide_name_and_one_address_for_each_switch() {
    let mut lab = Instance::start();
    lab.send(
        2,
        "PATCH",
        "chassis/chassis",
        "<chassis><chassis-user-friendly-name>ch1</chassis-user-friendly-name></chassis>",
    );
    let sw3 = "<chassis><chassis-user-friendly-name>ch3</chassis-user-friendly-name></chassis>";
    lab.send(3, "PATCH", "chassis/chassis", sw3);
    let lowest = WWNS[1];
    for (at, path) in [(1, "chassis/chassis"), (1, "chassis/chassis?vf-id=20"), (2, "chassis/chassis")] {
        let answer = lab.get(at, path);
        assert_eq!(values(&answer, "chassis-wwn"), [lowest], "{at} {path}");
        assert_eq!(values(&answer, "chassis-user-friendly-name"), ["ch1"], "{at} {path}");
    }
    for line in ["chassisname", "chassisshow", "configshow -all"] {
        for at in [1, 2] {
            let output = lab.console(at, line);
            assert!(output.contains("ch1") && !output.contains("frame"), "{line}: {output}");
        }
    }
    assert!(lab.console(1, "chassisshow").contains(lowest));
    // Every switch of the fabric gives the same rows.
    for (at, query) in [(1, "?vf-id=20"), (2, ""), (3, "")] {
        let answer = lab.get(at, &format!("fabric/fabric-switch{query}"));
        assert_eq!(values(&answer, "name"), [WWNS[1], WWNS[2]], "{at}");
        assert_eq!(values(&answer, "chassis-wwn"), [lowest, WWNS[2]], "{at}");
        assert_eq!(values(&answer, "chassis-user-friendly-name"), ["ch1", "ch3"], "{at}");
        assert_eq!(values(&answer, "ip-address"), ["127.1.0.2", "127.1.0.3"], "{at}");
    }
    let own = lab.get(1, &format!("{SWITCH}?vf-id=20"));
    assert!(own.contains("<ip-address><ip-address>127.1.0.2</ip-address></ip-address>"), "{own}");
}

#[test]
fn limits_of_the_interface_belong_to_the_chassis() {
    let mut lab = Instance::start();
    let (limits, ttl) =
        ("chassis/management-interface-configuration", "fibrechannel-configuration/chassis-config-settings");
    lab.send(1, "PATCH", &format!("{limits}/max-rest-sessions/3?vf-id=20"), "");
    lab.send(2, "PATCH", &format!("{ttl}/http-session-ttl/60"), "");
    let expected: BTreeMap<usize, (&str, &str)> = [(1, ("3", "60")), (2, ("3", "60")), (3, ("64", "7200"))].into();
    for (at, (sessions, seconds)) in expected {
        assert_eq!(values(&lab.get(at, limits), "max-rest-sessions"), [sessions], "{at}");
        assert_eq!(values(&lab.get(at, ttl), "http-session-ttl"), [seconds], "{at}");
    }
    let (client, _) = &mut lab.rest[0];
    let mut login = || {
        let fields = [("authorization", "Custom_Basic YWRtaW46cGFzc3dvcmQ=")];
        client.send_to(&mut Fake(fabric), "POST", "/rest/login", &fields, b"").status().as_u16()
    };
    assert_eq!([login(), login(), login(), login()], [200, 200, 200, 403]);
}
