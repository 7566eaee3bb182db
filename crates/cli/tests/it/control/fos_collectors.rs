//! Requests of programs that collect values, and changes of a whole switch.

use super::fos::{JSON, Managed};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const RUNNING: &str = "/rest/running";

/// Body of an answer in JSON.
fn body(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Conversation 3.6: collectors send `Basic` with each GET and a slash at the end, and expect lists
/// and typed values.
#[test]
fn collectors_read_lists_with_typed_values() {
    let mut lab = Managed::start("fos-collectors", Some(18_080), &[]);
    let basic = format!("Authorization: Basic {}", STANDARD.encode(format!("admin:{}", lab.password)));
    let get = |path: &str| lab.send(&format!("GET {RUNNING}/{path}"), &[&basic, JSON[0]], "");
    for (path, list, texts, numbers) in [
        (
            "brocade-interface/fibrechannel-statistics/",
            "fibrechannel-statistics",
            &["name"][..],
            &["in-frames", "out-frames", "crc-errors", "link-failures", "loss-of-signal", "class-3-discards"][..],
        ),
        (
            "brocade-interface/fibrechannel/",
            "fibrechannel",
            &["name", "user-friendly-name", "physical-state", "fcid-hex"],
            &["port-type", "operational-status", "enabled-state", "index"],
        ),
        (
            "brocade-fabric/fabric-switch/",
            "fabric-switch",
            &["name", "switch-user-friendly-name", "ip-address", "firmware-version"],
            &["domain-id", "principal", "fcid"],
        ),
        (
            "brocade-name-server/fibrechannel-name-server/",
            "fibrechannel-name-server",
            &["port-id", "port-name", "node-name", "fc4-type", "fabric-port-name"],
            &["port-index"],
        ),
    ] {
        let answer = get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let found = body(&answer.body);
        let rows = found["Response"][list].as_array().unwrap_or_else(|| panic!("{path} is no list: {found}"));
        assert!(!rows.is_empty(), "{path}");
        for row in rows {
            assert!(texts.iter().all(|leaf| row[leaf].is_string()), "{path}: {row}");
            assert!(numbers.iter().all(|leaf| row[leaf].is_u64()), "{path}: {row}");
        }
    }
    let resources = body(&get("brocade-maps/system-resources/").body);
    let resources = &resources["Response"]["system-resources"];
    assert!(resources["total-memory"].as_u64().is_some_and(|kib| kib > 1_024), "{resources}");
    assert!(["cpu-usage", "memory-usage"].iter().all(|leaf| resources[leaf].is_u64()), "{resources}");
    let chassis = body(&get("brocade-chassis/chassis").body);
    assert_eq!(chassis["Response"]["chassis"]["vf-enabled"], Value::Bool(false));
    let status = body(&get("brocade-chassis/ha-status").body);
    assert_eq!(status["Response"]["ha-status"]["active-cp"], 0);
    // Nothing of the kind exists: 404 is an empty list, and 400 no virtual fabrics.
    for (path, status, text) in [
        ("brocade-media/media-rdp/", 404, "No entries found"),
        ("brocade-zone/defined-configuration/alias", 404, "No entries found"),
        ("brocade-fibrechannel-logical-switch/fibrechannel-logical-switch", 400, "VF feature is not enabled"),
        ("brocade-interface/unknown", 400, "Invalid REST URI"),
    ] {
        let answer = get(path);
        let error = body(&answer.body)["errors"]["error"][0].clone();
        assert_eq!((answer.status, &error["error-message"]), (status, &Value::from(text)), "{path}");
        assert!(error["error-info"]["error-code"].is_i64(), "{error}");
    }
    lab.instance.stop();
}

#[test]
fn a_switch_is_disabled_and_enabled_with_all_its_ports() {
    let mut lab = Managed::start("fos-switch-off", Some(18_080), &[]);
    let token = lab.login();
    let switch = format!("{RUNNING}/brocade-fibrechannel-switch/fibrechannel-switch");
    let name = lab.send(&format!("GET {switch}"), &[&token], "").tree();
    let name = name.child("fibrechannel-switch").unwrap().leaf("name").unwrap();
    let set = |leaf: &str| {
        let body = format!("<fibrechannel-switch><name>{name}</name>{leaf}</fibrechannel-switch>");
        lab.send(&format!("PATCH {switch}"), &[&token], &body)
    };
    let state = || {
        let answer = lab.send(&format!("GET {switch}"), &[&token], "").tree();
        let entry = answer.child("fibrechannel-switch").unwrap();
        ["enabled-state", "operational-status"].map(|leaf| entry.leaf(leaf).unwrap())
    };
    let before = lab.state();
    // A port that was disabled before stays disabled.
    lab.instance.run("port disable LAB sw1:0").good();
    assert_eq!(state(), ["2", "2"]);
    assert_eq!(set("<enabled-state>3</enabled-state>").status, 204);
    assert_eq!(state(), ["3", "3"]);
    let off = lab.state();
    assert!(["disabled 0", "disabled 1", "disabled 2"].iter().all(|line| off.contains(*line)), "{off:?}");
    assert_eq!(set("<is-enabled-state>true</is-enabled-state>").status, 204);
    assert_eq!(state(), ["2", "2"]);
    let left: Vec<String> = lab.state().difference(&before).cloned().collect();
    assert_eq!(left, ["disabled 0"]);
    let refused = set("<enabled-state>7</enabled-state>");
    assert_eq!((refused.status, refused.message().contains("not a value")), (400, true), "{refused:?}");
    let refused = set("<domain-id>7</domain-id>");
    assert_eq!(
        (refused.status, refused.message()),
        (400, "domain-id of fibrechannel-switch cannot be changed here".into())
    );
    lab.instance.stop();
}
