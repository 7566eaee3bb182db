//! Bodies and paths of the HTTP interface: every request is answered, and none ends in a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sanloom_api::control::{Answer, Request};
use sanloom_surface::server::http;
use sanloom_surface::server::{Bytes, Handler, Peer};
use sanloom_surface::web::{Access, Connect, Settings, Web};
use sanloom_surface::{Busy, Fabric};
use std::sync::{Arc, LazyLock};

struct Nothing;

impl Fabric for Nothing {
    fn ask(&mut self, _: Request) -> Result<Answer, Busy> {
        Ok(Answer::Done)
    }
}

static WEB: LazyLock<Web> = LazyLock::new(|| {
    let connect: Connect = Arc::new(|| Box::new(Nothing));
    let settings =
        Settings { access: Access::Open, names: Vec::new(), assets: None, kind: "live", results: Vec::new() };
    Web::start(settings, &connect).unwrap()
});

const PATHS: [&str; 4] = ["/api/v1/request", "/api/v1/decode", "/api/v1/login", "/api/v1/"];

fuzz_target!(|data: &[u8]| {
    let [number, body @ ..] = data else { return };
    let path = PATHS[usize::from(number % 4)];
    let text = String::from_utf8_lossy(body);
    let (uri, method) = if path.ends_with("v1/") { (format!("{path}{text}"), "GET") } else { (path.to_owned(), "POST") };
    let head = http::Request::builder().method(method).uri(uri).header("host", "127.0.0.1");
    let head = head.header("content-type", "application/json");
    let Ok(request) = head.body(Bytes::copy_from_slice(body)) else { return };
    let address = "127.0.0.1:1".parse().unwrap();
    let peer = Peer { address, local: address, tls: false };
    if WEB.at_once(&request, &peer).is_none() {
        WEB.answer(request, &peer, &mut Nothing);
    }
});
