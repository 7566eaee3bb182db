#![no_main]
//! Command line of a switch as SSH clients reach it: the bytes of a terminal become lines, and the
//! lines run in a session. The first byte selects a terminal or a plain channel.

use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{SwitchRow, SwitchView, Table, View};
use sanloom_surface::fos::commands::Console;
use sanloom_surface::fos::{Now, Shared};
use sanloom_surface::server::Peer;
use sanloom_surface::server::users::Role;
use sanloom_surface::ssh::{Key, MAX_LINE, Terminal};
use sanloom_surface::{Busy, Fabric};

/// One switch without ports, which refuses all changes.
struct Alone;

impl Fabric for Alone {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        match request {
            Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                let row = SwitchRow { switch: "sw1".to_owned(), up: true, domain: Some(1), ..Default::default() };
                Ok(Answer::View(View::new("lab", 1.0, Table::Switch(SwitchView { switches: vec![row] }))))
            }
            _ => Err(Busy),
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let mut terminal = Terminal::new(first % 2 == 0);
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 22));
    let peer = Peer { address: here, local: here, tls: true };
    let mut console = Console::new("sw1", Shared::default(), ("admin", Role::Administer), "fuzz", "SSH", peer);
    let mut shown = Vec::new();
    for byte in bytes {
        let Some(key) = terminal.take(*byte, &mut shown) else { continue };
        if let Key::Line(line) = key {
            // A byte that is not UTF-8 becomes a character of three bytes.
            assert!(line.len() <= 3 * MAX_LINE);
            let reply = console.line(Now::default(), &line, &mut Alone);
            if reply.ends {
                break;
            }
        }
    }
    console.end(Now::default(), &mut Alone);
});
