//! The REST interface without a server: encodings, addresses, sessions, hostile requests.

use crate::client::{Alone, Fake};
use proptest::prelude::*;
use sanloom_api::control::{Answer, Request as Ask, ShowTable, ZoneAction};
use sanloom_api::view::build::Which;
use sanloom_api::view::{
    AdapterPortRow, AdapterRow, FabricSwitch, FabricView, FdmiView, SwitchRow, SwitchView, Table, View,
};
use sanloom_api::zone_database::{Definition, Member};
use sanloom_api::zoning::ZoneStatus;
use sanloom_surface::Fabric;
use sanloom_surface::fos::tree::{Content, Element};
use sanloom_surface::fos::{Burst, Mode, Now, Rest, Shared, json, xml};
use sanloom_surface::server::http::{Request, Response};
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::server::{Bytes, Interface, Peer};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

pub struct Client {
    rest: Rest,
    now: Duration,
}

impl Client {
    pub fn new(mode: Mode) -> Client {
        let mut users = Users::new().unwrap();
        users.set("admin", Role::Administer, "password").unwrap();
        users.set("guest", Role::View, "password").unwrap();
        Client::of(Rest::new("sw1", mode, Arc::new(users), Shared::default()))
    }

    pub fn of(rest: Rest) -> Client {
        Client { rest, now: Duration::ZERO }
    }

    fn send(&mut self, method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Response<Bytes> {
        self.send_to(&mut Alone, method, path, fields, body)
    }

    pub fn send_to(
        &mut self,
        fabric: &mut dyn Fabric,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Response<Bytes> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let peer = "127.0.0.1:1000".parse().unwrap();
        let peer = Peer { address: peer, local: "127.1.0.1:80".parse().unwrap(), tls: false };
        let now = Now { elapsed: self.now, unix_s: 0 };
        self.rest.handle(now, &request.body(Bytes::copy_from_slice(body)).unwrap(), &peer, fabric)
    }

    fn login(&mut self) -> Response<Bytes> {
        // admin:password
        self.send("POST", "/rest/login", &[("authorization", "Custom_Basic YWRtaW46cGFzc3dvcmQ=")], b"")
    }

    pub fn token(&mut self) -> String {
        let response = self.login();
        response.headers()["authorization"].to_str().unwrap().to_owned()
    }

    fn get(&mut self, path: &str, token: &str) -> Response<Bytes> {
        self.send("GET", path, &[("authorization", token)], b"")
    }
}

pub fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

/// Text of the only error of an XML body.
#[track_caller]
pub fn message(response: &Response<Bytes>) -> String {
    let errors = xml::read(text(response)).unwrap();
    let all: Vec<&Element> = errors[0].all("error").collect();
    assert_eq!((&*errors[0].name, all.len()), ("errors", 1), "{}", text(response));
    all[0].leaf("error-message").unwrap()
}

const SWITCH: &str = "/rest/running/brocade-fibrechannel-switch/fibrechannel-switch";

fn leaf() -> impl Strategy<Value = Content> {
    prop_oneof![
        "[ -~äé<>&\"']{0,12}".prop_map(|text| Content::Text(text.trim().to_owned())),
        any::<u64>().prop_map(|number| Content::Number(number.into())),
        any::<bool>().prop_map(Content::Bool),
    ]
}

fn tree() -> impl Strategy<Value = Element> {
    let name = "[a-z][a-z0-9-]{0,8}";
    let leaf = (name, leaf()).prop_map(|(name, content)| Element { name, content, in_list: false });
    let node = leaf.prop_recursive(4, 40, 5, move |inner| {
        let children = prop::collection::vec((inner, 1..4_usize), 0..5);
        (name, children).prop_map(|(name, children)| {
            // Entries of a list stand next to each other, and lists have different names.
            let mut all = Vec::new();
            for (index, (mut child, times)) in children.into_iter().enumerate() {
                child.name = format!("{}{index}", child.name);
                child.in_list = times > 1 || index % 2 == 0;
                all.extend(std::iter::repeat_n(child, times));
            }
            Element::container(&name, all)
        })
    });
    node.prop_map(|node| Element::container("Response", vec![node]))
}

proptest! {
    #[test]
    fn xml_and_json_decode_to_the_same_tree(root in tree()) {
        let expected = root.untyped();
        prop_assert_eq!(xml::read(&xml::write(&root)).unwrap(), vec![expected.clone()]);
        prop_assert_eq!(json::read(&json::write(&root, false)).unwrap(), vec![expected.clone()]);
        prop_assert_eq!(json::read(&json::write(&root, true)).unwrap(), vec![expected]);
    }

    #[test]
    fn no_body_and_no_path_ends_the_interface(path in "[ -~]{0,40}", body in any::<Vec<u8>>(), json in any::<bool>()) {
        // A login takes long, because passwords are hashed slowly.
        static CLIENT: LazyLock<Mutex<Client>> = LazyLock::new(|| Mutex::new(Client::new(Mode::default())));
        static TOKEN: LazyLock<String> = LazyLock::new(|| CLIENT.lock().unwrap().token());
        let token = TOKEN.clone();
        let mut client = CLIENT.lock().unwrap();
        let path: String = path.chars().filter(|c| !" \"<>\\^`{|}#".contains(*c)).collect();
        let kind = if json { "application/yang-data+json" } else { "application/yang-data+xml" };
        for path in [format!("/rest/running/{path}"), "/rest/running/brocade-zone/defined-configuration".to_owned()] {
            let response = client.send("PATCH", &path, &[("authorization", &token), ("content-type", kind)], &body);
            prop_assert!(response.status().is_client_error() || response.status() == 503);
            prop_assert!(!response.body().is_empty());
        }
    }
}

#[test]
fn a_list_is_an_array_even_with_one_entry_and_a_plain_object_under_old_addresses() {
    let list = Element::container("Response", vec![Element::entry("zone", vec![Element::number("zone-type", 0)])]);
    assert_eq!(json::write(&list, false), "{\"Response\":{\"zone\":[{\"zone-type\":0}]}}\n");
    assert_eq!(json::write(&list, true), "{\"Response\":{\"zone\":{\"zone-type\":0}}}\n");
    let names = Element::texts("neighbor", "wwn", ["a"]);
    assert_eq!(json::write(&names, true), "{\"neighbor\":{\"wwn\":[\"a\"]}}\n");
    let empty = Element::container("neighbor", Vec::new());
    assert_eq!(
        (json::write(&empty, false), xml::write(&empty)),
        ("{\"neighbor\":{}}\n".into(), "<?xml version=\"1.0\"?>\n<neighbor/>\n".into())
    );
}

#[test]
fn control_characters_of_names_do_not_reach_xml() {
    let element = Element::text("port-symbolic-name", "a\u{0}\u{1b}\nb]]>\u{ffff}");
    assert_eq!(
        xml::write(&element),
        "<?xml version=\"1.0\"?>\n<port-symbolic-name>a???b]]&gt;?</port-symbolic-name>\n"
    );
}

#[test]
fn a_login_returns_a_token_that_ends_with_the_logout() {
    let mut client = Client::new(Mode::default());
    let login = client.login();
    assert_eq!(
        (login.status().as_u16(), &login.headers()["content-type"]),
        (200, &"application/yang-data+xml;version=1.40.0".parse().unwrap())
    );
    assert!(text(&login).contains("<firmware-version>v9.1.1</firmware-version>"), "{}", text(&login));
    assert!(login.headers()["authorization"].is_sensitive(), "a token is not for logs");
    let token = client.token();
    let switch = client.get(SWITCH, &token);
    assert!(text(&switch).contains("<name>10:00:00:00:00:00:00:01</name>"), "{}", text(&switch));
    assert_eq!(client.send("POST", "/rest/logout", &[("authorization", &token)], b"").status(), 204);
    let again = client.send("POST", "/rest/logout", &[("authorization", &token)], b"");
    assert_eq!((again.status().as_u16(), message(&again)), (401, "Invalid session".to_owned()));
    assert_eq!(client.get(SWITCH, &token).status(), 401);
}

#[test]
fn a_wrong_password_and_a_missing_one_are_refused_with_a_body() {
    let mut client = Client::new(Mode::default());
    for value in ["Custom_Basic YWRtaW46d3Jvbmc=", "Basic !!!", "Basic", "Bearer x", "Custom_Basic 00"] {
        let response = client.send("POST", "/rest/login", &[("authorization", value)], b"");
        assert_eq!((response.status().as_u16(), &*message(&response)), (401, "Invalid credentials"), "{value}");
    }
    let none = client.send("GET", SWITCH, &[], b"");
    assert_eq!(none.status(), 401);
    let json = client.send("GET", SWITCH, &[("accept", "application/yang-data+json")], b"");
    assert!(text(&json).starts_with("{\"errors\":{\"error\":[{"), "{}", text(&json));
    assert!(text(&json).contains("\"error-code\":-1"));
    // A password with each request needs no session.
    assert_eq!(client.get(SWITCH, "Basic YWRtaW46cGFzc3dvcmQ=").status(), 200);
}

#[test]
fn strict_mode_refuses_the_fourth_session_until_one_is_idle_for_too_long() {
    let mut client = Client::new(Mode { strict: true, ..Mode::default() });
    for _ in 0..3 {
        assert_eq!(client.login().status(), 200);
    }
    let fourth = client.login();
    assert_eq!((fourth.status().as_u16(), &*message(&fourth)), (403, "Max limit for REST sessions reached"));
    assert!(text(&fourth).contains("<error-code>14</error-code>"));
    client.now = Duration::from_secs(7_199);
    assert_eq!(client.login().status(), 403);
    client.now = Duration::from_secs(7_200);
    assert_eq!(client.login().status(), 200);
    let mut open = Client::new(Mode::default());
    assert!((0..64).all(|_| open.login().status() == 200));
    assert_eq!(open.login().status(), 403);
}

#[test]
fn a_limit_of_sessions_that_a_client_sets_is_in_force_in_each_mode() {
    const LIMITS: &str = "/rest/running/brocade-chassis/management-interface-configuration";
    for strict in [false, true] {
        let mut client = Client::new(Mode { strict, ..Mode::default() });
        let token = client.token();
        let default = if strict { 3 } else { 64 };
        let shown = |client: &mut Client, limit: u32| {
            let answer = client.get(LIMITS, &token);
            assert!(text(&answer).contains(&format!("<max-rest-sessions>{limit}<")), "{}", text(&answer));
        };
        shown(&mut client, default);
        let patch = |client: &mut Client, limit: u32| {
            let body = format!("{{\"management-interface-configuration\":{{\"max-rest-sessions\":{limit}}}}}");
            let fields = [("authorization", &*token), ("content-type", "application/yang-data+json")];
            client.send("PATCH", LIMITS, &fields, body.as_bytes()).status().as_u16()
        };
        // The value that was read is no change, and another one above 10 is refused.
        assert_eq!((patch(&mut client, default), patch(&mut client, 11)), (204, 400));
        shown(&mut client, default);
        assert_eq!(patch(&mut client, 4), 204);
        shown(&mut client, 4);
        for _ in 1..4 {
            assert_eq!(client.login().status(), 200);
        }
        let fifth = client.login();
        assert_eq!((fifth.status().as_u16(), &*message(&fifth)), (403, "Max limit for REST sessions reached"));
    }
}

#[test]
fn a_busy_switch_answers_503_with_a_body_again_and_again() {
    let mut client = Client::new(Mode { burst: Some(Burst { served: 3, refused: 2 }), ..Mode::default() });
    let token = client.token();
    // The login is the first request.
    for statuses in [&[200, 200, 503, 503][..], &[200, 200, 200, 503, 503]] {
        for status in statuses {
            let response = client.get(SWITCH, &token);
            assert_eq!(response.status(), *status);
            if *status == 503 {
                assert_eq!(message(&response), "Service Unavailable");
            }
        }
    }
}

#[test]
fn absent_resources_answer_with_the_texts_that_clients_compare() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let expected = [
        ("brocade-security/radius-server", 404, "RADIUS configuration does not exist."),
        ("brocade-security/ldap-role-map", 404, "Role Map Configuration does not exist"),
        ("brocade-fibrechannel-trunk/trunk-area", 404, "No ports have Trunk Area enabled"),
        ("brocade-logging/syslog-server", 404, "No syslog servers are configured"),
        ("brocade-logging/audit", 404, "No entries found"),
        ("brocade-maps/dashboard-rule", 404, "No Rule violations found"),
        ("brocade-access-gateway/port-group", 400, "AG mode is not enabled"),
        ("brocade-fdmi/hba", 400, "No entries in the FDMI database"),
        ("brocade-extension-tunnel/extension-tunnel", 400, "Extension not supported on this platform"),
        ("brocade-license/license", 400, "No licenses installed"),
        ("brocade-fibrechannel-logical-switch/fibrechannel-logical-switch", 400, "VF feature is not enabled"),
        ("brocade-nothing/nothing", 400, "Invalid REST URI"),
        ("zoning/effective-configuration", 400, "Invalid REST URI"),
    ];
    for (path, status, words) in expected {
        let response = client.get(&format!("/rest/running/{path}"), &token);
        assert_eq!((response.status().as_u16(), &*message(&response)), (status, words), "{path}");
    }
    let virtual_fabrics =
        client.get("/rest/running/brocade-fibrechannel-logical-switch/fibrechannel-logical-switch", &token);
    assert!(text(&virtual_fabrics).contains("<error-code>16715785</error-code><error-module>cal</error-module>"));
    assert_eq!(message(&client.get("/rest/running", &token)), "Invalid REST URI");
    assert_eq!(client.get("/rest/running/brocade-zone/%ff/x", &token).status(), 400);
}

#[test]
fn names_that_a_client_sets_are_visible_at_once() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let body = "\n\t<fibrechannel-switch><user-friendly-name>&lt;core&gt;</user-friendly-name></fibrechannel-switch>";
    assert_eq!(client.send("PATCH", SWITCH, &[("authorization", &token)], body.as_bytes()).status(), 204);
    assert!(text(&client.get(SWITCH, &token)).contains("<user-friendly-name>&lt;core&gt;</user-friendly-name>"));
    let other = b"<fibrechannel-switch><domain-id>4</domain-id></fibrechannel-switch>";
    let refused = client.send("PATCH", SWITCH, &[("authorization", &token)], other);
    assert_eq!(
        (refused.status().as_u16(), &*message(&refused)),
        (400, "domain-id of fibrechannel-switch cannot be changed here")
    );
    let both = [&body.replace("core", "edge").into_bytes()[..], other].concat();
    assert_eq!(client.send("PATCH", SWITCH, &[("authorization", &token)], &both).status(), 400);
    assert!(text(&client.get(SWITCH, &token)).contains("&lt;core&gt;"), "a wrong entry changes no entry before it");
    // A user with the role view reads only.
    let guest = [("authorization", "Basic Z3Vlc3Q6cGFzc3dvcmQ=")];
    assert_eq!(client.send("PATCH", SWITCH, &guest, body.as_bytes()).status(), 403);
    assert_eq!(client.send("GET", SWITCH, &guest, b"").status(), 200);
}

#[test]
fn options_lists_the_methods_and_others_are_refused() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let options = client.send("OPTIONS", SWITCH, &[("authorization", &token)], b"");
    assert_eq!(
        (options.status().as_u16(), options.headers()["allow"].to_str().unwrap()),
        (204, "OPTIONS, GET, HEAD, PATCH")
    );
    assert_eq!(client.send("DELETE", SWITCH, &[("authorization", &token)], b"").status(), 405);
    for kind in ["image/png", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let fields = [("authorization", &*token), ("content-type", kind)];
        assert_eq!(client.send("PATCH", SWITCH, &fields, b"<fibrechannel-switch/>").status(), 415, "{kind}");
        assert_eq!(client.send("GET", SWITCH, &fields, b"").status(), 200, "{kind} without a body");
    }
}

#[test]
fn the_encoding_of_an_answer_is_the_one_that_the_client_prefers() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let (json, xml) = ("application/yang-data+json", "application/yang-data+xml");
    let cases = [
        ("", "", xml),
        ("", json, json),
        ("*/*", json, json),
        ("*/*", xml, xml),
        ("application/*", json, json),
        ("application/json", "", json),
        ("text/xml", json, xml),
        ("application/yang-data+json;q=0.1,application/yang-data+xml", "", xml),
        ("application/yang-data+xml;q=0.1, application/yang-data+json", "", json),
        ("application/yang-data+xml;q=0.1, application/json;q=0.1", "", json),
        ("application/yang-data+json;q=0, */*", "", xml),
        ("application/yang-data+json;q=0", "", xml),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "", xml),
        ("text/html", json, xml),
    ];
    for (accept, kind, expected) in cases {
        let mut fields = vec![("authorization", &*token), ("accept", accept)];
        fields.extend((!kind.is_empty()).then_some(("content-type", kind)));
        let response = client.send("GET", SWITCH, &fields, b"");
        let found = response.headers()["content-type"].to_str().unwrap();
        assert!(found.starts_with(expected), "{accept}, {kind}: {found}");
    }
}

#[test]
fn hostile_bodies_are_refused_with_a_reason() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let bomb = "<!DOCTYPE a [<!ENTITY b \"cccc\"><!ENTITY d \"&b;&b;\">]><a>&d;</a>";
    let many = format!("<a>{}</a>", "<b/>".repeat(300_000));
    let array = format!("{{\"a\":[{}]}}", vec!["1"; 300_000].join(","));
    let refused = [
        (xml::read(&deep("<a>", "</a>")), "more than 32 levels"),
        (xml::read(bomb), "document type"),
        (xml::read("<a>&d;</a>"), "unknown entity `d`"),
        (xml::read(&many), "more than 200000 elements"),
        (xml::read("<a><b></a>"), "not XML"),
        (xml::read("<a>"), "ends within"),
        (xml::read("< />"), "without a valid name"),
        (xml::read("<b:/>"), "without a valid name"),
        (xml::read("<1/>"), "without a valid name"),
        (xml::read("text"), "outside of elements"),
        (json::read(&deep("{\"a\":", "}")), "not JSON"),
        (json::read(&format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40))), "more than 32 levels"),
        (json::read(&array), "more than 200000 elements"),
        (json::read("{\"a\":[[1]]}"), "array in an array"),
        (json::read("[]"), "not a JSON object"),
    ];
    for (result, why) in refused {
        let error = result.unwrap_err();
        assert!(error.contains(why), "no `{why}` in {error}");
    }
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let zones = "/rest/running/brocade-zone/defined-configuration";
    let too_big = client.send("POST", zones, &[("authorization", &token)], &vec![b' '; (4 << 20) + 1]);
    assert_eq!(too_big.status(), 413);
    let utf8 = client.send("POST", zones, &[("authorization", &token)], b"<a>\xff</a>");
    assert_eq!((utf8.status().as_u16(), &*message(&utf8)), (400, "the body is not UTF-8"));
}

#[test]
fn the_list_of_modules_has_what_is_served_and_nothing_else() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let modules = client.get("/rest/brocade-module-version", &token);
    let root = xml::read(text(&modules)).unwrap().remove(0);
    let list = root.child("brocade-module-version").unwrap();
    let mut objects = Vec::new();
    for module in list.all("module") {
        let uri = module.leaf("uri").unwrap();
        assert_eq!(uri, format!("/rest/running/{}", module.leaf("name").unwrap()));
        objects
            .extend(module.child("objects").unwrap().all("object").map(|object| format!("{uri}/{}", object.value())));
    }
    for expected in ["brocade-zone/defined-configuration", "brocade-interface/fibrechannel", "brocade-chassis/chassis"]
    {
        assert!(objects.contains(&format!("/rest/running/{expected}")), "{objects:?}");
    }
    let mut once = objects.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), objects.len());
    for object in objects {
        // The fabric of this test has few tables, and no ports.
        let response = client.get(&object, &token);
        let is_empty = response.status() == 404 && message(&response) == "No entries found";
        assert!(is_empty || [200, 400, 503].contains(&response.status().as_u16()), "{object}: {response:?}");
        assert!(!text(&response).contains("Invalid REST URI"), "{object}");
    }
}

/// Two switches with the same domain, which are in different fabrics.
fn two_fabrics() -> [(SwitchRow, FabricSwitch); 2] {
    ["sw1", "sw2"].map(|name| {
        let row = SwitchRow { switch: name.to_owned(), up: true, domain: Some(1), ..SwitchRow::default() };
        let fabric_name = Some(format!("fabric of {name}"));
        (row, FabricSwitch { switch: name.to_owned(), domain: Some(1), fabric_name, ..FabricSwitch::default() })
    })
}

#[test]
fn registered_adapters_of_the_fabric_and_their_ports_have_the_leaves_that_clients_read() {
    let mut fabric = Fake(|request| match request {
        Ask::Show { table: ShowTable::Fabric(which @ (Which::Switch | Which::Fabric)), switch: None } => {
            let table = match which {
                Which::Switch => Table::Switch(SwitchView { switches: two_fabrics().map(|(row, _)| row).into() }),
                _ => Table::Fabric(FabricView { switches: two_fabrics().map(|(_, row)| row).into() }),
            };
            Answer::View(View::new("lab", 1.0, table))
        }
        Ask::Show { table: ShowTable::Fabric(Which::Fdmi), switch: None } => {
            let port = AdapterPortRow {
                port_name: "10:00:00:00:00:00:00:01".to_owned(),
                port_id: "010300".to_owned(),
                supported_speeds: vec!["8G".to_owned(), "16G".to_owned()],
                max_frame_bytes: Some(2112),
                host_name: "h<1>".to_owned(),
                ..AdapterPortRow::default()
            };
            let listed =
                AdapterPortRow { port_name: "10:00:00:00:00:00:00:02".to_owned(), ..AdapterPortRow::default() };
            let row = AdapterRow {
                switch: "sw1".to_owned(),
                domain: Some(1),
                adapter: port.port_name.clone(),
                model: "m".to_owned(),
                number_of_ports: Some(1),
                ports: vec![port, listed],
                ..AdapterRow::default()
            };
            // Domains are unique in a fabric only.
            let other = AdapterRow { switch: "sw2".to_owned(), model: "other".to_owned(), ..row.clone() };
            Answer::View(View::new("lab", 1.0, Table::Fdmi(FdmiView { adapters: vec![row, other] })))
        }
        request => Alone.ask(request).unwrap_or(Answer::Done),
    });
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let mut get = |path: &str, fields: &[(&str, &str)]| {
        let fields = [&[("authorization", &*token)], fields].concat();
        let path = format!("/rest/running/brocade-fdmi/{path}");
        let response = client.send_to(&mut fabric, "GET", &path, &fields, b"");
        assert_eq!(response.status(), 200, "{path}");
        text(&response).to_owned()
    };
    let hba = get("hba", &[]);
    let expected = "<hba><hba-id>10:00:00:00:00:00:00:01</hba-id><domain-id>1</domain-id><model>m</model>\
                    <number-of-ports>1</number-of-ports><hba-port-list><wwn>10:00:00:00:00:00:00:01</wwn>\
                    <wwn>10:00:00:00:00:00:00:02</wwn></hba-port-list></hba>";
    assert!(hba.contains(expected) && !hba.contains("other"), "{hba}");
    let port = get("port/port-name/10:00:00:00:00:00:00:01", &[]);
    let expected = "<hba-id>10:00:00:00:00:00:00:01</hba-id><domain-id>1</domain-id><port-id>0x010300</port-id>\
                    <supported-speed>8G 16G</supported-speed><host-name>h&lt;1&gt;</host-name>\
                    <maximum-frame-size>2112</maximum-frame-size></port>";
    assert!(port.contains(expected), "{port}");
    let json = get("hba", &[("accept", "application/yang-data+json")]);
    assert!(
        json.contains(r#""hba-port-list":{"wwn":["10:00:00:00:00:00:00:01","10:00:00:00:00:00:00:02"]}"#),
        "{json}"
    );
    let ports = get("port", &[]);
    assert!(!ports.contains("10:00:00:00:00:00:00:02"), "a port that has registered nothing: {ports}");
    assert_eq!(ports.matches("<port-name>").count(), 1, "the port of the other fabric: {ports}");
}

/// A switch whose fabric has the peer zone z, with two principals.
fn peer_zone(request: Ask) -> Answer {
    match request {
        Ask::Zone { action, .. } => {
            let edits = matches!(&action, ZoneAction::As { action, .. } if matches!(**action, ZoneAction::Edit { .. }));
            let member = |last: u8| Member::Port(format!("10:00:00:00:00:00:00:{last:02x}"));
            let zone = Definition { members: vec![member(3), member(4)], principals: vec![member(1), member(2)] };
            let mut status = ZoneStatus::default();
            status.committed.zones.insert("z".to_owned(), zone);
            if edits { Answer::Done } else { Answer::Zones(Box::new(status)) }
        }
        request => Alone.ask(request).unwrap_or(Answer::Done),
    }
}

#[test]
fn a_body_that_names_a_peer_zone_twice_does_not_take_its_principals() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let path = "/rest/running/brocade-zone/defined-configuration";
    let zone = |principals: &[u8]| {
        let principal =
            |last: &u8| format!("<principal-entry-name>10:00:00:00:00:00:00:{last:02x}</principal-entry-name>");
        let principals: String = principals.iter().map(principal).collect();
        format!("<zone><zone-name>z</zone-name><member-entry>{principals}</member-entry></zone>")
    };
    let mut send = |method: &str, zones: String| {
        let body = format!("<defined-configuration>{zones}</defined-configuration>");
        let response =
            client.send_to(&mut Fake(peer_zone), method, path, &[("authorization", &token)], body.as_bytes());
        (response.status().as_u16(), message(&response))
    };
    let mut delete = |zones: String| send("DELETE", zones);
    let (status, why) = delete(zone(&[1, 2]));
    assert!(status == 400 && why.contains("lose its last principal"), "{status} {why}");
    let twice = (400, "the body names the zone z twice; name its members in one zone".to_owned());
    assert_eq!(delete(zone(&[1]) + &zone(&[2])), twice);
    // A POST with the type of a plain zone cannot mean this one.
    let typed = zone(&[1]).replace("</zone-name>", "</zone-name><zone-type>0</zone-type>");
    let (status, why) = send("POST", typed.replace("principal-entry-name", "entry-name"));
    assert!(status == 400 && why.contains("zone z is a peer zone"), "{status} {why}");
    let mut delete = |zones: String| send("DELETE", zones);
    // The fabric of the test does not answer an edit with zones, so the edit has reached it.
    let (_, why) = delete(zone(&[1]));
    assert_eq!(why, "the fabric has answered without zones");
}
