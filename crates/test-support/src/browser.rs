//! Chromium without a window, driven over its debugging protocol: [`Browser`].

use crate::wait;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest wait for an answer of the browser.
const LIMIT: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Browser {
    process: Child,
    folder: PathBuf,
    socket: BufReader<TcpStream>,
    number: u64,
    session: String,
    /// Uncaught errors and refused loads of the page.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Starts Chromium with a new profile. `name` is unique among the tests.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(name: &str) -> Browser {
        let folder = std::env::temp_dir().join(format!("sanloom-browser-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("chromium");
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.args(["--disable-extensions", "--disable-background-networking", "--disable-component-update"]);
        command.args(["--remote-debugging-port=0", "--window-size=1400,1000", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", folder.display())).arg("about:blank");
        command.env("HOME", &folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once("DevTools listening on ws://")?.1.to_owned()));
        let address = address.expect("an address of the browser");
        // The browser must not wait for a reader of its messages.
        std::thread::spawn(move || lines.for_each(drop));
        let (host, path) = address.split_once('/').unwrap();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(
            &stream,
            "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        .unwrap();
        let mut socket = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            socket.read_line(&mut line).unwrap();
        }
        let mut browser =
            Browser { process, folder, socket, number: 0, session: String::new(), complaints: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and returns its result.
    ///
    /// # Panics
    /// If the browser reports an error.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.send(message.to_string().as_bytes());
        loop {
            let message: Value = serde_json::from_slice(&self.receive()).unwrap();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            match message["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.complaints.push(message["params"].to_string()),
                Some("Log.entryAdded") if message["params"]["entry"]["level"] == "error" => {
                    self.complaints.push(message["params"]["entry"].to_string());
                }
                _ => {}
            }
        }
    }

    /// One text frame, masked with zeros.
    fn send(&mut self, text: &[u8]) {
        let mut frame = vec![0x81];
        match text.len() {
            0..=125 => frame.push(0x80 | text.len() as u8),
            126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((text.len() as u16).to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend((text.len() as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text);
        self.socket.get_mut().write_all(&frame).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 2];
            self.socket.read_exact(&mut head).unwrap();
            let length = match head[1] & 0x7f {
                126 => {
                    let mut length = [0; 2];
                    self.socket.read_exact(&mut length).unwrap();
                    u64::from(u16::from_be_bytes(length))
                }
                127 => {
                    let mut length = [0; 8];
                    self.socket.read_exact(&mut length).unwrap();
                    u64::from_be_bytes(length)
                }
                length => u64::from(length),
            };
            let start = message.len();
            message.resize(start + length as usize, 0);
            self.socket.read_exact(&mut message[start..]).unwrap();
            if head[0] & 0x80 != 0 {
                return message;
            }
        }
    }

    /// Opens an address in the page.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Value of an expression in the page; promises are awaited.
    ///
    /// # Panics
    /// If the expression throws.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// If that takes too long; shows the text of the page.
    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        let mut text = String::new();
        let mut holds = || {
            // An element that is not there yet makes the expression fail.
            let guarded = format!("(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()");
            let holds = self.eval(&guarded) == true;
            text = self.eval("document.body ? document.body.innerText.slice(0, 3000) : ''").to_string();
            holds
        };
        if !std::iter::repeat_with(&mut holds).take(2000).any(|holds| {
            std::thread::sleep(Duration::from_millis(if holds { 0 } else { 20 }));
            holds
        }) {
            panic!("never true: {expression}\n{text}\n{:?}", self.complaints);
        }
    }

    /// Presses a key, for example `Tab`, `Enter` or `a`.
    pub fn key(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "ArrowDown" => 40,
            "ArrowUp" => 38,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let down = json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code, "code": key });
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }));
    }

    /// Writes a picture of the page as PNG.
    pub fn screenshot(&mut self, path: &Path) {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let text = picture["data"].as_str().unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, decoded(text)).unwrap();
    }

    /// Shows the page with a dark or light background.
    pub fn set_dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", scheme);
    }

    /// Findings of axe-core about the accessibility of the page: the rule, its text, and the
    /// elements.
    ///
    /// # Panics
    /// If tests/page/fetch.sh was not run.
    pub fn accessibility_findings(&mut self) -> Vec<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe/axe-4.14.1.js");
        let script = fs::read_to_string(path).unwrap();
        self.eval(&format!("window.axe ? 0 : (() => {{ {script}\n return 0 }})()"));
        let findings = self.eval(
            "axe.run().then((result) => result.violations.map((rule) => rule.id + ': ' + rule.help + ': ' + \
             rule.nodes.slice(0, 5).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary).join('; ')))",
        );
        findings.as_array().unwrap().iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Size of the heap of scripts in bytes, after a collection of garbage.
    pub fn heap(&mut self) -> f64 {
        self.call("HeapProfiler.collectGarbage", json!({}));
        let usage = self.call("Runtime.getHeapUsage", json!({}));
        usage["usedSize"].as_f64().unwrap()
    }

    /// Requires that no script of the page has failed and nothing was refused by its policy.
    ///
    /// # Panics
    /// If there are complaints.
    #[track_caller]
    pub fn no_complaints(&mut self) {
        self.eval("0");
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its children end a moment later.
        wait::until(|| "the profile is removed".to_owned(), || fs::remove_dir_all(&self.folder).is_ok());
    }
}

/// Bytes of a text in base64.
fn decoded(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|c| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
