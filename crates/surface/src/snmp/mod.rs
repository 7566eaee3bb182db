//! SNMP agent of a switch, version 2c, read only: [`Agent`], [`Server`].
//!
//! The encoding is written out here, because it needs ten types only. Bytes that are no request,
//! and requests with another community, have no answer, as the protocol demands.
//!
//! ```text
//!   packet -> ber, message -> Agent -> tree <- mib <- values of the views of `api`
//! ```

mod ber;
mod message;
pub(crate) mod mib;
mod server;
mod tree;

pub use ber::Oid;
pub use message::{Message, Operation, Value};
pub use server::{Listen, Server};
pub use tree::Tree;

use crate::Fabric;
use crate::fos::room::{Room, Who};
use crate::fos::{Mode, Shared};
use crate::server::users::Role;
use crate::server::{Now, Peer};
use message::{Status, size};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Largest response in bytes: one Ethernet frame.
pub const MAX_RESPONSE: usize = 1_472;
/// Bytes of a response besides its variables and the community.
const FRAME: usize = 40;
/// Longest community in bytes.
pub const MAX_COMMUNITY: usize = 64;
/// Time for which the objects of a switch are kept. A walk reads them many times.
const KEPT: Duration = Duration::from_secs(1);

/// Checks a community that a user has chosen.
///
/// # Errors
/// Its rule.
pub fn check_community(community: &str) -> Result<(), &'static str> {
    let is_valid = (8..=MAX_COMMUNITY).contains(&community.len()) && community.chars().all(|c| c.is_ascii_graphic());
    if is_valid { Ok(()) } else { Err("a community has 8 to 64 letters, digits and signs, without spaces") }
}

/// The agent of one switch.
pub struct Agent {
    switch: String,
    community: Vec<u8>,
    shared: Shared,
    /// The objects, with the time at which they were read.
    kept: Mutex<Option<(Duration, Arc<Tree>)>>,
}

impl Agent {
    /// Creates the agent of a switch of the lab. `shared` has the settings that all interfaces of
    /// the switch share.
    pub fn new(switch: &str, community: &str, shared: Shared) -> Agent {
        shared.register(switch);
        Agent { switch: switch.to_owned(), community: community.as_bytes().to_vec(), shared, kept: Mutex::default() }
    }

    /// Reads a packet. `None` for one that has no answer.
    pub fn request(&self, packet: &[u8]) -> Option<Message> {
        Message::read(packet).filter(|message| bool::from(message.community.ct_eq(&self.community)))
    }

    /// Answers a request.
    pub fn answer(&self, now: Now, request: &Message, peer: &Peer, fabric: &mut dyn Fabric) -> Vec<u8> {
        match self.tree(now, peer, fabric) {
            Some(tree) => respond(request, &tree),
            None => {
                let response = request.response(Status::GenErr, 1.min(request.names.len()), &unread(request));
                match response.len() > MAX_RESPONSE {
                    true => request.response(Status::TooBig, 0, &[]),
                    false => response,
                }
            }
        }
    }

    /// Objects of the switch, not older than [`KEPT`].
    fn tree(&self, now: Now, peer: &Peer, fabric: &mut dyn Fabric) -> Option<Arc<Tree>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, tree)) = &*kept()
            && now.elapsed.saturating_sub(*at) < KEPT
        {
            return Some(tree.clone());
        }
        let who = Who {
            session: format!("{}/snmp", self.switch),
            user: "snmp".to_owned(),
            role: Role::View,
            address: peer.address.ip().to_string(),
            application: String::new(),
        };
        let mut room = Room::new(fabric, &self.switch, &self.shared, Mode::default(), now, who, peer);
        room.interface = "SNMP";
        let tree = Arc::new(mib::read(&mut room).ok()?);
        *kept() = Some((now.elapsed, tree.clone()));
        Some(tree)
    }
}

/// The variables of a request without values, as an error returns them.
fn unread(request: &Message) -> Vec<(Oid, Value)> {
    request.names.iter().map(|name| (name.clone(), Value::NoSuchObject)).collect()
}

/// Variables of a response, as many as fit.
struct Fitting {
    variables: Vec<(Oid, Value)>,
    left: usize,
}

impl Fitting {
    fn new(request: &Message) -> Fitting {
        let left = MAX_RESPONSE.saturating_sub(FRAME + request.community.len());
        Fitting { variables: Vec::new(), left }
    }

    /// Adds a variable. Returns false if it does not fit.
    fn add(&mut self, name: Oid, value: Value) -> bool {
        let Some(left) = self.left.checked_sub(size(&name, &value)) else { return false };
        self.left = left;
        self.variables.push((name, value));
        true
    }
}

/// The variable behind a name.
fn next(tree: &Tree, name: &Oid) -> (Oid, Value) {
    tree.next(name).cloned().unwrap_or_else(|| (name.clone(), Value::EndOfMibView))
}

/// Answers a request from the objects of a switch.
pub fn respond(request: &Message, tree: &Tree) -> Vec<u8> {
    let mut fitting = Fitting::new(request);
    let too_big = || request.response(Status::TooBig, 0, &[]);
    let all_fit = match request.operation {
        Operation::Get => request.names.iter().all(|name| fitting.add(name.clone(), tree.get(name))),
        Operation::GetNext => request.names.iter().all(|name| {
            let (name, value) = next(tree, name);
            fitting.add(name, value)
        }),
        Operation::Set => {
            let at = 1.min(request.names.len());
            let response = request.response(Status::NotWritable, at, &unread(request));
            return if response.len() > MAX_RESPONSE { too_big() } else { response };
        }
        Operation::GetBulk { once, repetitions } => {
            bulk(request, tree, (once, repetitions), &mut fitting);
            // A response without any variable tells a client nothing.
            request.names.is_empty() || !fitting.variables.is_empty()
        }
    };
    if all_fit { request.response(Status::NoError, 0, &fitting.variables) } else { too_big() }
}

/// Adds the variables of a GETBULK until the response is full (RFC 3416, section 4.2.3).
fn bulk(request: &Message, tree: &Tree, (once, repetitions): (usize, usize), fitting: &mut Fitting) {
    let (once, repeated) = request.names.split_at(once.min(request.names.len()));
    for name in once {
        let (name, value) = next(tree, name);
        if !fitting.add(name, value) {
            return;
        }
    }
    let mut names: Vec<Oid> = repeated.to_vec();
    for _ in 0..repetitions {
        let mut has_ended = true;
        for name in &mut names {
            let (found, value) = next(tree, name);
            has_ended &= value == Value::EndOfMibView;
            name.clone_from(&found);
            if !fitting.add(found, value) {
                return;
            }
        }
        if has_ended {
            return;
        }
    }
}
