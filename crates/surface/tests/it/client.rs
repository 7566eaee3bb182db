//! A plain HTTP client and a fabric of the tests.

use sanloom_api::control::{Answer, PortChange, Request, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{EventRow, EventsView, FdmiView, PortsView, SwitchRow, SwitchView, Table, View};
use sanloom_surface::server::{Listen, Server};
use sanloom_surface::web::{Access, Connect, Settings, Web};
use sanloom_surface::{Busy, Fabric};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Sends bytes and returns everything that the server sends before it closes the connection.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address);
    // The server may close the connection before it has read all bytes.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Connects with a time limit for reads.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends a request with the fields, and returns the response.
pub fn request(address: SocketAddr, line: &str, fields: &[&str], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !fields.iter().any(|field| field.starts_with("Host:")) {
        text += &format!("Host: {address}\r\n");
    }
    fields.iter().for_each(|field| text += &format!("{field}\r\n"));
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    exchange(address, format!("{text}\r\n{body}").as_bytes())
}

/// Status of a response.
pub fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no status: {response:?}"))
}

/// A fabric that answers every request at once, by the function.
pub struct Fake(pub fn(Request) -> Answer);

impl Fabric for Fake {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        Ok((self.0)(request))
    }
}

/// Starts the page at a free address.
pub fn page(access: Access, fabric: impl Fn() -> Box<dyn Fabric> + Send + Sync + 'static) -> (Server, SocketAddr) {
    let connect: Connect = Arc::new(fabric);
    let settings = Settings { access, names: Vec::new(), assets: None, kind: "live", results: Vec::new() };
    let handler = Arc::new(Web::start(settings, &connect).unwrap());
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, handler };
    let server = Server::start(vec![listen], move || connect()).unwrap();
    let address = server.addresses()[0];
    (server, address)
}

/// An event with each leaf.
fn event() -> EventRow {
    let (text, id) = ("A <login> has failed.".to_owned(), "SEC-1193".to_owned());
    EventRow { sequence: 7, unix_s: Some(1_710_465_925.0), id, text, audit: true, count: 2, ..EventRow::default() }
}

/// A switch of four ports that permits a number of changes, and is busy afterwards.
#[derive(Default)]
pub struct Limited {
    pub changes: usize,
    disabled: BTreeSet<String>,
}

impl Limited {
    pub fn new(changes: usize) -> Limited {
        Limited { changes, disabled: BTreeSet::new() }
    }

    /// Numbers of the disabled ports.
    pub fn disabled(&self) -> Vec<u32> {
        self.disabled.iter().map(|port| port.strip_prefix("sw1:").unwrap().parse().unwrap()).collect()
    }

    fn change(&mut self, changes: Vec<PortChange>) -> Result<Answer, Busy> {
        self.changes = self.changes.checked_sub(1).ok_or(Busy)?;
        for PortChange { port, enabled } in changes {
            _ = if enabled { self.disabled.remove(&port) } else { self.disabled.insert(port) };
        }
        Ok(Answer::Done)
    }
}

impl Fabric for Limited {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        match request {
            Request::Port { port, enabled, .. } => self.change(vec![PortChange { port, enabled }]),
            Request::Ports { changes, .. } => self.change(changes),
            Request::Show { table: ShowTable::Fabric(Which::Flogi), .. } => {
                Ok(Answer::View(View::new("lab", 1.0, Table::Flogi(Default::default()))))
            }
            Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                let row = SwitchRow { ports: 4, disabled_ports: self.disabled(), ..Alone::row() };
                Ok(Answer::View(View::new("lab", 1.0, Table::Switch(SwitchView { switches: vec![row] }))))
            }
            request => Alone.ask(request),
        }
    }
}

/// One switch without ports, which refuses all changes.
pub struct Alone;

impl Alone {
    fn row() -> SwitchRow {
        let [switch, switch_name] = ["sw1", "10:00:00:00:00:00:00:01"].map(str::to_owned);
        SwitchRow { switch, switch_name, up: true, domain: Some(1), ..SwitchRow::default() }
    }
}

impl Fabric for Alone {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        match request {
            Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                let switches = vec![Alone::row()];
                Ok(Answer::View(View::new("lab", 1.0, Table::Switch(SwitchView { switches }))))
            }
            Request::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
                Ok(Answer::View(View::new("lab", 1.0, Table::Ports(PortsView { ports: Vec::new() }))))
            }
            Request::Show { table: ShowTable::Fabric(Which::Fdmi), .. } => {
                Ok(Answer::View(View::new("lab", 1.0, Table::Fdmi(FdmiView::default()))))
            }
            Request::Show { table: ShowTable::Fabric(Which::Events), .. } => Ok(Answer::View(View::new(
                "lab",
                1.0,
                Table::Events(EventsView { events: vec![event()], ..EventsView::default() }),
            ))),
            _ => Err(Busy),
        }
    }
}
