//! Zone members as written in the file: [`Members`].

use super::nodes::Names;
use super::ports;
use crate::diagnostic::{Origin, Sink};
use crate::value;
use sanloom_fc::config::{BadZoneMember, Node, ZoneMember};
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::{AliasMembers, MemberRef};
use std::collections::BTreeMap;

/// Code of a zone member in an unknown form.
pub(crate) const BAD_MEMBER: &str = "bad-zone-member";

/// Names that zone members can refer to.
pub(crate) struct Members<'l> {
    pub lab: &'l Lab,
    pub names: &'l Names,
    pub aliases: &'l BTreeMap<String, AliasMembers>,
}

impl Members<'_> {
    /// Returns the members of a text of a zone: an alias, or the result of
    /// [`plain`](Members::plain).
    pub fn with_aliases(&self, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<MemberRef> {
        if self.aliases.contains_key(text) {
            return vec![MemberRef::Alias(text.to_owned())];
        }
        self.plain(text, origin, sink).into_iter().map(MemberRef::Member).collect()
    }

    /// Returns the members of a text: an explicit member, or the port names of a node or of one of
    /// its ports.
    pub fn plain(&self, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<ZoneMember> {
        if let Ok(member) = text.parse::<ZoneMember>() {
            return vec![member];
        }
        let has_form = text.contains(',') || ["wwnn:", "wwpn:", "0x"].iter().any(|form| text.starts_with(form));
        if has_form || text.split(':').count() == 8 {
            let reason = format!("`{}` is not a zone member", value::cut(text));
            sink.error(BAD_MEMBER, origin, reason, BadZoneMember.to_string());
            return Vec::new();
        }
        let accept = |node| matches!(node, Node::Host(_) | Node::Storage(_));
        let wanted = match self.aliases.is_empty() {
            true => "host or storage system",
            false => "host, storage system or alias",
        };
        let Some(end) = ports::end(text, self.names, wanted, accept, origin, sink) else {
            return Vec::new();
        };
        let all: Vec<ZoneMember> = match end.node {
            Node::Host(i) => self.lab.hosts[usize::from(i)].hbas.iter().map(|h| ZoneMember::PortName(h.wwpn)).collect(),
            Node::Storage(i) => {
                self.lab.storage[usize::from(i)].ports.iter().map(|p| ZoneMember::PortName(p.wwpn)).collect()
            }
            Node::Switch(_) | Node::Loop(_) => Vec::new(),
        };
        match end.port {
            None => all,
            Some(port) => match all.get(usize::from(port)) {
                Some(&name) => vec![name],
                None => {
                    ports::no_such_port(text, all.len(), origin, sink);
                    Vec::new()
                }
            },
        }
    }
}
