#![no_main]
//! Messages and commands of NX-API. The first byte selects a message of either encoding, or
//! commands, which run in a message of each type.

use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{SwitchRow, SwitchView, Table, View};
use sanloom_surface::fos::Shared as Common;
use sanloom_surface::fos::json;
use sanloom_surface::fos::tree::Element;
use sanloom_surface::nxos::{NxApi, Shared, known_commands};
use sanloom_surface::server::http;
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::server::{Bytes, Interface, Now, Peer};
use sanloom_surface::{Busy, Fabric};
use std::sync::{Arc, LazyLock, Mutex};

/// One switch without ports, which refuses all changes.
struct Alone;

impl Fabric for Alone {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        match request {
            Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                let row = SwitchRow { switch: "sw1".to_owned(), up: true, domain: Some(1), ..Default::default() };
                Ok(Answer::View(View::new("lab", 1.0, Table::Switch(SwitchView { switches: vec![row] }))))
            }
            Request::Zone { .. } => Ok(Answer::Zones(Box::default())),
            _ => Err(Busy),
        }
    }
}

static API: LazyLock<Mutex<NxApi>> = LazyLock::new(|| {
    let mut users = Users::new().unwrap();
    users.set("admin", Role::Administer, "password").unwrap();
    Mutex::new(NxApi::new("sw1", Arc::new(users), Common::default(), Shared::default()))
});

fn post(kind: &str, body: &[u8]) {
    // admin:password
    let head = http::Request::builder().method("POST").uri("/ins").header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=");
    let request = head.header("content-type", kind).body(Bytes::copy_from_slice(body)).unwrap();
    let address = "127.0.0.1:1".parse().unwrap();
    let peer = Peer { address, local: address, tls: false };
    let response = API.lock().unwrap().handle(Now::default(), &request, &peer, &mut Alone);
    assert_eq!(response.status(), 200);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    match first % 3 {
        0 => post("application/json", body),
        1 => post("application/json-rpc", body),
        _ => {
            let text = String::from_utf8_lossy(body);
            known_commands(&text);
            for kind in ["cli_show", "cli_show_ascii", "cli_conf"] {
                let leaves = vec![Element::text("type", kind), Element::text("input", &*text)];
                post("application/json", json::write(&Element::container("ins_api", leaves), false).as_bytes());
            }
        }
    }
});
