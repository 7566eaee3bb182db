//! The REST interface and the command line of the switches of a running lab: recorded
//! conversations, pyfos as a real client, and the shapes of commands.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use crate::sanloom::SANLOOM;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use sanloom_api::view::{Dark, Table, View};
use sanloom_api::zone_database::Member;
use sanloom_surface::fos::tree::Element;
use sanloom_surface::fos::{json, xml};
use sanloom_surface::server::users::{Role, Users};
use sanloom_test_support::needs;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const MORE: &str = r#"
[storage.disk3]
lun_size = "1MiB"

[[link]]
from = "disk3"
to = "sw2"

[[isl]]
from = "sw1"
to = "sw2"
"#;

/// Names of the storage ports, as the table of scripts writes them.
const PORTS: [(&str, &str); 3] =
    [("H1", "50:25:a0:00:00:00:10:01"), ("H2", "50:25:a0:00:00:00:20:01"), ("H3", "50:25:a0:00:00:00:30:01")];

/// Address of the first switch of a lab. Each call has a /24 of its own, because a switch takes the
/// address after that of the one before it. Test programs that run at the same time have other ones
/// unless their process numbers differ by a multiple of 800.
pub(super) fn own_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let net = std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{}.1", 2 + net / 256 % 200, net % 256)
}

/// A lab of two switches with their interfaces.
pub(super) struct Managed {
    pub instance: Instance,
    pub address: String,
    port: u16,
    pub password: String,
}

impl Managed {
    /// Starts the lab at addresses of its own; `ADDRESS` in `more` is replaced by the first one.
    pub fn start(name: &str, port: Option<u16>, more: &[&str]) -> Managed {
        Managed::start_with(name, port, more, |_| {})
    }

    /// The same after `prepare` has written files into the folder of the lab.
    pub fn start_with(name: &str, port: Option<u16>, more: &[&str], prepare: impl Fn(&Path)) -> Managed {
        Managed::start_wide(name, port, more, None, prepare)
    }

    /// The same with switches that have this number of ports.
    pub fn start_wide(
        name: &str,
        port: Option<u16>,
        more: &[&str],
        ports: Option<u32>,
        prepare: impl Fn(&Path),
    ) -> Managed {
        let ports = ports.map(|ports| format!("ports = {ports}\n")).unwrap_or_default();
        let lab = two_disks(&format!("[switch.\"sw{{1..2}}\"]\ndomain = 1\n{ports}"), "sw1") + MORE;
        let managed = Managed::start_lab(name, port, more, &lab, prepare);
        managed.instance.wait("three devices", |instance| instance.zones("sw1").ports.len() == 3);
        managed
    }

    /// The same for another lab.
    pub fn start_lab(name: &str, port: Option<u16>, more: &[&str], lab: &str, prepare: impl Fn(&Path)) -> Managed {
        let address = own_address();
        let listen = port.map_or(address.clone(), |port| format!("{address}:{port}"));
        let more: Vec<String> = more.iter().map(|word| word.replace("ADDRESS", &address)).collect();
        let instance = Instance::start_under(name, lab, |lab, folder| {
            prepare(folder);
            let mut command = Command::new(SANLOOM);
            command.args(["up", lab, "--fos", &listen]).args(&more);
            command
        });
        let word = |log: &str| Some(log.split_once("with the password ")?.1.get(..24)?.to_owned());
        instance.wait("the password", |instance| word(&instance.log()).is_some());
        let password = word(&instance.log()).unwrap();
        Managed { instance, address, port: port.unwrap_or(80), password }
    }

    /// The same with a table of users with the role `administer`. The first is `admin`, which
    /// [`Managed::login`] uses.
    pub fn start_with_users(name: &str, port: u16, users: &[(&str, &str)]) -> Managed {
        let users: Vec<_> = users.iter().map(|(user, password)| (*user, Role::Administer, *password)).collect();
        Managed::start_with_roles(name, port, &users, &[])
    }

    /// The same with roles, and more options of `up`.
    pub fn start_with_roles(name: &str, port: u16, users: &[(&str, Role, &str)], more: &[&str]) -> Managed {
        let lab = two_disks("[switch.\"sw{1..2}\"]\ndomain = 1\n", "sw1") + MORE;
        let address = own_address();
        let listen = format!("{address}:{port}");
        let mut table = Users::new().unwrap();
        for (user, role, password) in users {
            table.set(user, *role, password).unwrap();
        }
        let instance = Instance::start_under(name, &lab, |lab, folder| {
            table.write(&folder.join("users")).unwrap();
            let mut command = Command::new(SANLOOM);
            command.args(["up", lab, "--fos", &listen]).args(more);
            command
        });
        instance.wait("the interface", |_| TcpStream::connect((&*address, port)).is_ok());
        instance.wait("three devices", |instance| instance.zones("sw1").ports.len() == 3);
        Managed { instance, address, port, password: users[0].2.to_owned() }
    }

    /// Sends a request on a new connection: its line, its fields, and its body.
    pub fn send(&self, line: &str, fields: &[&str], body: &str) -> Response {
        self.send_to(self.port, line, fields, body)
    }

    /// The same at another port.
    pub fn send_to(&self, port: u16, line: &str, fields: &[&str], body: &str) -> Response {
        let mut text = format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        fields.iter().for_each(|field| write!(text, "{field}\r\n").unwrap());
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        exchange(TcpStream::connect((&*self.address, port)).unwrap(), &text)
    }

    /// As [`Managed::send`] without a body, from another address of this machine.
    pub fn send_from(&self, from: Ipv4Addr, line: &str, fields: &[&str]) -> Response {
        let mut text = format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        fields.iter().for_each(|field| write!(text, "{field}\r\n").unwrap());
        let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        net::connect(&socket, &SocketAddr::new(self.address.parse().unwrap(), self.port)).unwrap();
        exchange(socket.into(), &(text + "\r\n"))
    }

    /// Opens a session as pyfos does.
    pub fn login(&self) -> String {
        let basic = format!("Authorization: Custom_Basic {}", STANDARD.encode(format!("admin:{}", self.password)));
        let response = self.send("POST /rest/login", &[&basic, "User-Agent: Rest-Conf"], "");
        assert!(response.head.contains("content-type: application/yang-data+xml;version=1.40.0"), "{response:?}");
        format!("Authorization: {}", response.token.unwrap())
    }

    /// Lines that describe zones and disabled ports.
    pub fn state(&self) -> BTreeSet<String> {
        let zones = self.instance.zones("sw1").committed;
        let text = |member: &Member| match member {
            Member::Port(text) => text.clone(),
            Member::Alias { alias } => alias.clone(),
        };
        let mut lines = BTreeSet::new();
        for (name, members) in &zones.aliases {
            lines.insert(format!("alias {name} {}", members.join(";")));
        }
        for (name, zone) in &zones.zones {
            let principals = zone.principals.iter().map(|member| format!("*{}", text(member)));
            let members: Vec<String> = principals.chain(zone.members.iter().map(text)).collect();
            lines.insert(format!("zone {name} {}", members.join(";")));
        }
        lines.extend(zones.configs.iter().map(|(name, zones)| format!("cfg {name} {}", zones.join(";"))));
        lines.extend(zones.effective.map(|effective| format!("effective {}", effective.config)));
        lines.insert(format!("default {}", if zones.default_open { "open" } else { "closed" }));
        let view: View = serde_json::from_str(&self.instance.run("show LAB ports --live --json").good()).unwrap();
        let Table::Ports(ports) = view.table else { panic!("no ports") };
        let is_off = |dark: Option<Dark>| matches!(dark, Some(Dark::Disabled | Dark::SwitchDisabled));
        let off = ports.ports.iter().filter(|row| is_off(row.dark) && row.port.starts_with("sw1:"));
        lines.extend(off.map(|row| format!("disabled {}", row.number)));
        let short = |line: String| PORTS.iter().fold(line, |line, (short, name)| line.replace(name, short));
        lines.into_iter().map(short).collect()
    }
}

#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    head: String,
    pub token: Option<String>,
    pub body: String,
}

impl Response {
    /// The tree below the root.
    #[track_caller]
    pub fn tree(&self) -> Element {
        let read = if self.body.starts_with('{') { json::read(&self.body) } else { xml::read(&self.body) };
        read.unwrap().remove(0)
    }

    #[track_caller]
    pub fn message(&self) -> String {
        let errors = self.tree();
        assert_eq!(errors.name, "errors");
        errors.child("error").unwrap().leaf("error-message").unwrap()
    }
}

/// Sends a request, and reads the response until the end of the connection.
fn exchange(mut stream: TcpStream, text: &str) -> Response {
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_ascii_lowercase(), token: token(head), body: body.to_owned() }
}

fn token(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:"))?;
    Some(line.split_once(' ')?.1.to_owned())
}

pub(super) const ZONE: &str = "/rest/running/brocade-zone";
pub(super) const JSON: [&str; 2] = ["Accept: application/yang-data+json", "Content-Type: application/yang-data+json"];

/// Conversation 3.1: pyfos creates an alias and saves it.
#[test]
fn the_conversation_of_pyfos_creates_an_alias_and_saves_it() {
    let mut lab = Managed::start("fos-pyfos", Some(18_080), &[]);
    let token = lab.login();
    let switch = lab.send("GET /rest/running/brocade-fibrechannel-switch/fibrechannel-switch", &[&token], "");
    assert_eq!(switch.tree().child("fibrechannel-switch").unwrap().leaf("firmware-version").unwrap(), "v9.1.1");
    let effective = |token: &str| lab.send(&format!("GET {ZONE}/effective-configuration"), &[token], "").tree();
    let leaf = |tree: &Element, name: &str| tree.child("effective-configuration").unwrap().leaf(name);
    let before = effective(&token);
    let checksum = leaf(&before, "checksum").unwrap();
    assert_eq!((checksum.len(), leaf(&before, "cfg-name").as_deref()), (32, Some("all-zones")));
    let alias = "<defined-configuration><alias><alias-name>h1</alias-name><member-entry>\
                 <alias-entry-name>10:00:00:00:00:00:01:00</alias-entry-name></member-entry></alias></defined-configuration>";
    assert_eq!(lab.send(&format!("POST {ZONE}/defined-configuration"), &[&token], alias).status, 201);

    // Another session sees the lock and the committed database, and cannot edit.
    let other = lab.login();
    let lock = lab.send(&format!("GET {ZONE}/fabric-lock"), &[&other], "").tree();
    let lock = lock.child("fabric-lock").unwrap();
    assert_eq!(
        (lock.leaf("lock-principal-domain-id"), lock.leaf("client-user-name")),
        (Some("1".into()), Some("admin".into()))
    );
    assert_eq!(
        lab.send(&format!("GET {ZONE}/defined-configuration/alias"), &[&other], "").message(),
        "No entries found"
    );
    let refused = lab.send(&format!("POST {ZONE}/defined-configuration"), &[&other], alias);
    assert!(refused.status == 400 && refused.body.contains("<error-code>-3</error-code>"), "{refused:?}");
    assert!(refused.message().contains("outstanding transaction"), "{refused:?}");
    let own = lab.send(&format!("GET {ZONE}/defined-configuration/alias"), &[&token], "").tree();
    assert_eq!(own.child("alias").unwrap().leaf("alias-name").unwrap(), "h1");
    assert_ne!(leaf(&effective(&token), "transaction-token").unwrap(), "0");

    let save = |sum: &str| {
        let body = format!(
            "<effective-configuration><checksum>{sum}</checksum><cfg-action>1</cfg-action></effective-configuration>"
        );
        lab.send(&format!("PATCH {ZONE}/effective-configuration"), &[&token], &body)
    };
    let wrong = save(&"0".repeat(32));
    assert!(wrong.status == 400 && wrong.message().contains("checksum"), "{wrong:?}");
    assert!(!lab.state().contains("alias h1 10:00:00:00:00:00:01:00"));
    assert_eq!(save(&checksum).status, 204);
    assert!(lab.state().contains("alias h1 10:00:00:00:00:00:01:00"));
    assert!(lab.instance.zones("sw2").kept, "the change is in the store when it is acknowledged");
    let after = effective(&token);
    assert_ne!(leaf(&after, "checksum").unwrap(), checksum);
    assert_eq!(leaf(&after, "transaction-token").unwrap(), "0");
    assert_eq!(lab.send("POST /rest/logout", &[&token], "").status, 204);
    let again = lab.send("POST /rest/logout", &[&token], "");
    assert_eq!((again.status, again.tree().name.as_str()), (401, "errors"));
    // A session that ends leaves no lock.
    assert_eq!(
        lab.send(&format!("POST {ZONE}/defined-configuration"), &[&other], &alias.replace("h1", "h2")).status,
        201
    );
    assert_eq!(lab.send("POST /rest/logout", &[&other], "").status, 204);
    assert_eq!(lab.instance.zones("sw1").transaction, None);
    lab.instance.stop();
}

/// Conversations 3.3 and 3.4: JSON, `vf-id`, path keys and old addresses.
#[test]
fn json_path_keys_and_old_addresses_change_the_same_database() {
    let mut lab = Managed::start("fos-json", Some(18_080), &["--fos-old"]);
    let token = lab.login();
    let fields = [&token[..], JSON[0], JSON[1]];
    let sum = || lab.instance.zones("sw1").checksum;
    let zone = r#"{"defined-configuration":{"zone":[{"zone-name":"bz","zone-type":0,"member-entry":{"entry-name":["50:25:a0:00:00:00:10:01","50:25:A0:00:00:00:30:01"]}}]}}"#;
    assert_eq!(lab.send(&format!("POST {ZONE}/defined-configuration?vf-id=128"), &fields, zone).status, 201);
    let cfg = r#"{"defined-configuration":{"cfg":[{"cfg-name":"bcfg","member-zone":{"zone-name":["bz"]}}]}}"#;
    assert_eq!(lab.send(&format!("POST {ZONE}/defined-configuration"), &fields, cfg).status, 201);
    let enable =
        format!(r#"{{"effective-configuration":{{"cfg-name":"bcfg","checksum":"{}","cfg-action":1}}}}"#, sum());
    assert_eq!(lab.send(&format!("PATCH {ZONE}/effective-configuration"), &fields, &enable).status, 204);
    let state = lab.state();
    assert!(state.contains("zone bz H1;H3") && state.contains("effective bcfg"), "{state:?}");

    let old = "/rest/running/zoning";
    let effective = lab.send(&format!("GET {old}/effective-configuration"), &fields, "");
    assert!(
        effective.body.contains(r#""cfg-name":"bcfg""#) && effective.body.contains(r#""enabled-zone":{"#),
        "{effective:?}"
    );
    let checksum = lab.send(&format!("GET {old}/effective-configuration/checksum"), &fields, "");
    assert_eq!(checksum.body, format!("{{\"Response\":{{\"checksum\":\"{}\"}}}}\n", sum()));
    let name = format!("{old}/defined-configuration/zone/zone-name/bz");
    let members = |text: &str| format!(r#"{{"member-entry":{{"entry-name":[{text}]}}}}"#);
    assert_eq!(lab.send(&format!("PATCH {name}"), &fields, &members(r#""1,5""#)).status, 204);
    assert_eq!(lab.send(&format!("POST {name}"), &fields, &members(r#""1,6""#)).status, 201);
    assert_eq!(lab.send(&format!("DELETE {name}"), &fields, &members(r#""1,5""#)).status, 204);
    let save = format!(r#"{{"checksum":"{}"}}"#, sum());
    assert_eq!(lab.send(&format!("PATCH {old}/effective-configuration/cfg-action/1"), &fields, &save).status, 204);
    assert!(lab.state().contains("zone bz 1,6"), "{:?}", lab.state());
    let rename = r#"{"zone-name":"nz"}"#;
    assert_eq!(lab.send(&format!("PATCH {ZONE}/defined-configuration/zone/zone-name/bz"), &fields, rename).status, 204);
    let save = format!("<checksum>{}</checksum>", sum());
    let path = format!("PATCH {ZONE}/effective-configuration/cfg-action-v2/save");
    assert_eq!(lab.send(&path, &[&token], &save).status, 204);
    let state = lab.state();
    assert!(state.contains("zone nz 1,6") && state.contains("cfg bcfg nz"), "{state:?}");

    // A key with a slash, one leaf of one port, and both encodings of the same tree.
    let port = "/rest/running/brocade-interface/fibrechannel/name/0%2f1";
    let one = lab.send(&format!("GET {port}"), &fields, "");
    let two = lab.send(&format!("GET {port}/"), &[&token], "");
    assert_eq!((one.tree(), one.tree().all("fibrechannel").count()), (two.tree(), 1));
    let by_body = lab.send(
        "GET /rest/running/brocade-interface/fibrechannel",
        &[&token],
        "<fibrechannel><name>0/1</name></fibrechannel>",
    );
    assert_eq!(by_body.tree(), two.tree());
    let none = lab.send("GET /rest/running/brocade-interface/fibrechannel/name/0%2f99", &[&token], "");
    assert_eq!((none.status, none.message().as_str()), (404, "No entries found"));
    lab.instance.stop();
}

#[test]
fn the_console_prints_the_shapes_that_parsers_need() {
    let mut lab = Managed::start("fos-console", Some(18_080), &[]);
    let console = |line: &str| lab.instance.run(&format!("console LAB sw2 {line}")).good();
    let fabric = console("fabricshow");
    let principals: Vec<&str> = fabric.lines().filter(|line| line.contains(">\"")).collect();
    assert!(principals.len() == 1 && principals[0].starts_with("  1: fffc01 10:00:"), "{fabric}");
    assert!(principals[0].ends_with(">\"sw1\""), "{fabric}");
    let uptime = console("uptime");
    let words: Vec<&str> = uptime.trim_end().split(' ').collect();
    assert!((10..=13).contains(&words.len()) && words[1] == "up" && !uptime.contains("  "), "{uptime}");
    assert!(console("version").contains("Fabric OS:  v9.1.1\n"));
    assert_eq!(console("sensorshow"), "");
    let errors = console("porterrshow");
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines.len() >= 4 && errors.ends_with('\n') && !errors.ends_with("\n\n"), "{errors}");
    for (number, line) in lines[2..].iter().enumerate() {
        let (port, columns) = line.split_once(':').unwrap();
        assert_eq!(port.trim(), number.to_string());
        let columns: Vec<&str> = columns.split_whitespace().collect();
        assert!(columns.len() == 19 && columns.iter().all(|column| column.parse::<u64>().is_ok()), "{line}");
    }
    let blocks = console("portstatsshow -i 0-1");
    let blocks: Vec<&str> = blocks.split("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    for (number, block) in blocks.iter().enumerate() {
        assert!(block.contains(&format!("port:  {number}\n")) && block.contains("fec_cor_detected"), "{block}");
    }
    let active = console("cfgactvshow");
    assert!(
        active.contains(" cfg:\tall-zones\t\n zone:\tz12\t50:25:a0:00:00:00:10:01\n \t\t50:25:a0:00:00:00:20:01\n"),
        "{active}"
    );
    let local = console("nsshow;nscamshow");
    assert!(
        local.contains(" N    020000;      3;50:25:a0:00:00:00:30:01;50:25:a0:00:00:00:30:00; na\n    FC4s: "),
        "{local}"
    );
    assert!(local.contains(" N    010000;      3;50:25:a0:00:00:00:10:01;"), "{local}");
    let isl = console("islshow");
    assert!(isl.starts_with("  1:  1->  2 10:00:") && isl.contains("  1 sw1 ") && isl.contains("sp: 16.000G"), "{isl}");
    let unknown = lab.instance.run("console LAB sw2 reboot");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, "rbash: reboot: command not found\n"));
    lab.instance.run("console LAB sw9 uptime").refused("the lab has no switch `sw9`; it has sw1, sw2");

    // The importer of real configurations reads the texts.
    let mut session = String::new();
    for command in ["switchshow", "islshow", "fabricshow", "nsshow", "cfgshow"] {
        write!(session, "sw2:admin> {command}\n{}", console(command)).unwrap();
    }
    lab.instance.write("session.txt", &session);
    let imported = lab.instance.run("import @session.txt -o @imported.toml");
    assert_eq!(imported.code, 0, "{imported:?}");
    let text = std::fs::read_to_string(lab.instance.path("imported.toml")).unwrap();
    for part in ["sw2", "z12", "all-zones"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    lab.instance.stop();
}

#[test]
fn zone_commands_print_nothing_and_ask_before_they_change_the_fabric() {
    let mut lab = Managed::start("fos-zones", Some(18_080), &[]);
    let session = |switch: &str, lines: &str| {
        let lab_file = lab.instance.path("lab.toml");
        let mut process = Command::new(SANLOOM);
        let mut process =
            process.args(["console", &lab_file, switch]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap()
    };
    let lines = "alicreate \"a1\", \"50:25:a0:00:00:00:10:01\"\nzonecreate z1, a1;50:25:a0:00:00:00:30:01\n\
                 zoneadd \"z1\", \"1,5\"\nzoneremove \"z1\", \"1,5\"\ncfgcreate \"c1\", \"z1\"; cfgadd c1, z12\n";
    let opened = session("sw1", &format!("{lines}cfgtransshow\n"));
    assert_eq!(opened, "Current transaction token is 0x1\nIt is abortable\n");
    assert_eq!(lab.instance.zones("sw1").transaction, None, "the end of a session discards its edits");
    let before = lab.state();
    let refused = session("sw1", &format!("{lines}cfgenable c1\nn\n"));
    assert!(refused.contains("(yes, y, no, n): [no] Operation cancelled.\n"), "{refused}");
    assert_eq!(lab.state(), before);
    let enabled = session("sw1", &format!("{lines}cfgenable c1\ny\ncfgtransshow\n"));
    assert!(enabled.contains("zone config \"c1\" is in effect\n"), "{enabled}");
    assert!(enabled.ends_with("There is no outstanding zoning transactions\n"), "{enabled}");
    let state = lab.state();
    for line in ["alias a1 H1", "zone z1 a1;H3", "cfg c1 z1;z12", "effective c1"] {
        assert!(state.contains(line), "no {line} in {state:?}");
    }
    let wrong = session("sw1", "zonecreate \"z1\", \"a1\"\nzonedelete none\n");
    assert_eq!(wrong, "error: \"z1\" duplicate name\nthere is no zone none\n");
    session("sw2", "cfgdisable\ny\nzoneobjectexpunge z1\ncfgsave\ny\n");
    let state = lab.state();
    assert!(state.contains("cfg c1 z12") && !state.iter().any(|line| line.starts_with("effective")), "{state:?}");
    session("sw1", "portdisable 1\n");
    assert!(lab.state().contains("disabled 1"));
    session("sw1", "portenable 0/1\n");
    assert!(!lab.state().contains("disabled 1"));
    lab.instance.stop();
}

/// Scripts of pyfos, unchanged: arguments, and the change of the state of the fabric or a text.
#[needs("pyfos")]
#[test]
fn scripts_of_pyfos_run_unchanged() {
    let mut lab = Managed::start("fos-scripts", None, &[]);
    run_scripts(&lab, &[]);
    lab.instance.stop();
}

#[needs("pyfos")]
#[test]
fn scripts_of_pyfos_run_unchanged_over_https() {
    let mut lab = Managed::start("fos-https", None, &[]);
    run_scripts(&lab, &["-s", "self"]);
    lab.instance.stop();
}

/// Runs the table of scripts of pyfos against a lab, at the ports of a switch, with more options.
pub(super) fn run_scripts(lab: &Managed, options: &[&str]) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let table = std::fs::read_to_string(format!("{root}/tests/pyfos/scripts.txt")).unwrap();
    let mut runner = Command::new(format!("{root}/target/pyfos/bin/python"));
    let runner = runner.arg(format!("{root}/tests/pyfos/run.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut runner = runner.spawn().unwrap();
    let (mut input, output) = (runner.stdin.take().unwrap(), runner.stdout.take().unwrap());
    let mut output = BufReader::new(output).lines();
    let (mut count, mut wrong) = (0, String::new());
    let mut before = lab.state();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        count += 1;
        let (script, expected) = line.split_once(" | ").unwrap();
        let words = PORTS.iter().fold(script.to_owned(), |words, (short, name)| words.replace(short, name));
        let words: Vec<&str> =
            words.split(' ').chain(["-i", &lab.address, "-L", "admin", "-P", &lab.password]).collect();
        let words = [words, options.to_vec()].concat();
        writeln!(input, "{}", words.join("\t")).unwrap();
        let lines = output.by_ref().map(Result::unwrap).take_while(|line| line != "== end");
        let printed = lines.collect::<Vec<_>>().join("\n");
        let after = lab.state();
        let gone = before.difference(&after).map(|line| format!("-{line}"));
        let new = after.difference(&before).map(|line| format!("+{line}"));
        let changes = gone.chain(new).collect::<Vec<_>>().join(", ");
        let is_right = match expected.strip_prefix("prints ") {
            Some(text) => printed.contains(text) && changes.is_empty(),
            None => changes == if expected == "nothing" { "" } else { expected },
        };
        if !is_right || printed.contains("Traceback") {
            writeln!(wrong, "{script}: expected {expected}, found [{changes}]\n{printed}\n").unwrap();
        }
        before = after;
    }
    drop(input);
    assert!(runner.wait().unwrap().success());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 40, "{count} scripts");
}
