//! JSON form of machine inputs: [`InputValue`].

use sanloom_api::zone_database::{Database, Edit};
use sanloom_fc::dcbx;
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::{fcf, vn2vn};
use sanloom_fc::switch::PortKind;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_fc::zoning::{ObjectKind, Transaction, ZoneDatabase, ZoneEdit, ZoneLimits};
use sanloom_wire::ct::Service;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::message::ReplyTo;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwnn, fcs, fdmi, fzs, ns};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// An input of a machine. The fields are those of the inputs of [`fabric_switch`], [`fcf`],
/// [`vn2vn`] and [`dcbx`]; bytes are hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the inputs document them
pub enum InputValue {
    PortUp { port: u16, kind: Kind },
    PortDown { port: u16 },
    Frame { port: u16, frame: FrameValue },
    Incident { port: u16, code: u8 },
    ChangeZones { tag: u32, change: ChangeValue },
    Retry { port: u16 },
    Rebuild { disruptive: bool },
    LinkUp,
    LinkDown,
    Fip { to: String, from: String, pdu: String },
    Send { port: u16, frame: FrameValue },
    SendFromStation { frame: FrameValue },
    Lldp { from: String, pdu: String },
    Removed { port_id: u32 },
    Fabric { name: String, available: bool },
    Clear { port: u16 },
    Shutdown,
    Timeout,
}

/// Attachment of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as PortKind
pub enum Kind {
    F,
    E,
    Isolated,
}

/// A frame: its bytes, and whether the machine received it decoded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrameValue {
    /// Header bytes.
    header: String,
    /// Payload bytes.
    payload: String,
    /// Set if the frame arrived decoded; contains the request where a reply needs it for decoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Reading>,
}

/// Context for decoding a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reading {
    Alone,
    ReplyToEls(u8),
    ReplyToSwIls(u8),
    ReplyToCt(u16),
}

/// A change of the zone database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeValue {
    /// Edits of the currently committed database.
    Edits(Vec<Edit>),
    /// A transaction on a database.
    Commit {
        /// Database on which the transaction started.
        base: Box<Database>,
        /// Edits of the transaction.
        edits: Vec<Edit>,
    },
    /// Replacement of the database.
    Replace(Box<Database>),
}

impl InputValue {
    /// Encodes an input of a switch; `None` if it cannot be encoded.
    pub fn of_switch(input: &fabric_switch::Input) -> Option<InputValue> {
        use fabric_switch::Input;
        Some(match input {
            Input::PortUp { port, kind } => InputValue::PortUp { port: *port, kind: Kind::from(*kind) },
            Input::PortDown { port } => InputValue::PortDown { port: *port },
            // Ethernet has no arbitrated loops.
            Input::LoopUp { .. } => return None,
            Input::Frame { port, frame } => InputValue::Frame { port: *port, frame: FrameValue::of(frame)? },
            Input::Incident { port, code } => InputValue::Incident { port: *port, code: *code },
            Input::ChangeZones { tag, change } => {
                InputValue::ChangeZones { tag: *tag, change: ChangeValue::of(change)? }
            }
            Input::Retry { port } => InputValue::Retry { port: *port },
            Input::Rebuild { disruptive } => InputValue::Rebuild { disruptive: *disruptive },
            Input::Timeout => InputValue::Timeout,
        })
    }

    /// Encodes an input of an FCF; `None` if it cannot be encoded.
    pub fn of_fcf(input: &fcf::Input) -> Option<InputValue> {
        use fcf::Input;
        Some(match input {
            Input::LinkUp => InputValue::LinkUp,
            Input::LinkDown => InputValue::LinkDown,
            Input::Fip { to, from, pdu } => InputValue::Fip { to: hex(&to.0), from: hex(&from.0), pdu: hex(pdu) },
            Input::Send { port, frame } => InputValue::Send { port: *port, frame: FrameValue::of(frame)? },
            Input::Removed { port_id } => InputValue::Removed { port_id: port_id.to_u32() },
            Input::Fabric { name, available } => InputValue::Fabric { name: name.to_string(), available: *available },
            Input::Clear { port } => InputValue::Clear { port: *port },
            Input::Shutdown => InputValue::Shutdown,
            Input::Timeout => InputValue::Timeout,
        })
    }

    /// Encodes an input of a VN2VN station; `None` if it cannot be encoded.
    pub fn of_station(input: &vn2vn::Input) -> Option<InputValue> {
        use vn2vn::Input;
        Some(match input {
            Input::LinkUp => InputValue::LinkUp,
            Input::LinkDown => InputValue::LinkDown,
            Input::Fip { to, from, pdu } => InputValue::Fip { to: hex(&to.0), from: hex(&from.0), pdu: hex(pdu) },
            Input::Send(frame) => InputValue::SendFromStation { frame: FrameValue::of(frame)? },
            Input::Timeout => InputValue::Timeout,
        })
    }

    /// Encodes an input of an LLDP agent; `None` if it cannot be encoded.
    pub fn of_agent(input: &dcbx::Input) -> Option<InputValue> {
        use dcbx::Input;
        Some(match input {
            Input::LinkUp => InputValue::LinkUp,
            Input::LinkDown => InputValue::LinkDown,
            Input::Lldp { from, pdu } => InputValue::Lldp { from: hex(&from.0), pdu: hex(pdu) },
            Input::Shutdown => InputValue::Shutdown,
            Input::Timeout => InputValue::Timeout,
            // The settings of a switch come from its lab.
            Input::Settings(_) => return None,
        })
    }

    /// Decodes an input of a switch; `None` if it is invalid. `limits` are the zone limits of the
    /// lab.
    pub fn to_switch(&self, limits: ZoneLimits) -> Option<fabric_switch::Input> {
        use fabric_switch::Input;
        Some(match self {
            InputValue::PortUp { port, kind } => Input::PortUp { port: *port, kind: PortKind::from(*kind) },
            InputValue::PortDown { port } => Input::PortDown { port: *port },
            InputValue::Frame { port, frame } => Input::Frame { port: *port, frame: frame.read()? },
            InputValue::Incident { port, code } => Input::Incident { port: *port, code: *code },
            InputValue::ChangeZones { tag, change } => Input::ChangeZones { tag: *tag, change: change.read(limits)? },
            InputValue::Retry { port } => Input::Retry { port: *port },
            InputValue::Rebuild { disruptive } => Input::Rebuild { disruptive: *disruptive },
            InputValue::Timeout => Input::Timeout,
            _ => return None,
        })
    }

    /// Decodes an input of an FCF; `None` if it is invalid.
    pub fn to_fcf(&self) -> Option<fcf::Input> {
        use fcf::Input;
        Some(match self {
            InputValue::LinkUp => Input::LinkUp,
            InputValue::LinkDown => Input::LinkDown,
            InputValue::Fip { to, from, pdu } => Input::Fip { to: mac(to)?, from: mac(from)?, pdu: unhex(pdu)?.into() },
            InputValue::Send { port, frame } => Input::Send { port: *port, frame: frame.read()? },
            InputValue::Removed { port_id } => Input::Removed { port_id: FcId::new(*port_id & 0xff_ffff) },
            InputValue::Fabric { name, available } => {
                Input::Fabric { name: name.parse::<Wwnn>().ok()?, available: *available }
            }
            InputValue::Clear { port } => Input::Clear { port: *port },
            InputValue::Shutdown => Input::Shutdown,
            InputValue::Timeout => Input::Timeout,
            _ => return None,
        })
    }

    /// Decodes an input of a station; `None` if it is invalid.
    pub fn to_station(&self) -> Option<vn2vn::Input> {
        use vn2vn::Input;
        Some(match self {
            InputValue::LinkUp => Input::LinkUp,
            InputValue::LinkDown => Input::LinkDown,
            InputValue::Fip { to, from, pdu } => Input::Fip { to: mac(to)?, from: mac(from)?, pdu: unhex(pdu)?.into() },
            InputValue::SendFromStation { frame } => Input::Send(frame.read()?),
            InputValue::Timeout => Input::Timeout,
            _ => return None,
        })
    }

    /// Decodes an input of an LLDP agent; `None` if it is invalid.
    pub fn to_agent(&self) -> Option<dcbx::Input> {
        use dcbx::Input;
        Some(match self {
            InputValue::LinkUp => Input::LinkUp,
            InputValue::LinkDown => Input::LinkDown,
            InputValue::Lldp { from, pdu } => Input::Lldp { from: mac(from)?, pdu: unhex(pdu)?.into() },
            InputValue::Shutdown => Input::Shutdown,
            InputValue::Timeout => Input::Timeout,
            _ => return None,
        })
    }
}

impl From<PortKind> for Kind {
    fn from(kind: PortKind) -> Kind {
        match kind {
            PortKind::F => Kind::F,
            PortKind::E => Kind::E,
            PortKind::Isolated => Kind::Isolated,
        }
    }
}

impl From<Kind> for PortKind {
    fn from(kind: Kind) -> PortKind {
        match kind {
            Kind::F => PortKind::F,
            Kind::E => PortKind::E,
            Kind::Isolated => PortKind::Isolated,
        }
    }
}

impl FrameValue {
    /// Encodes a frame; `None` for a decoded message that cannot be restored from its bytes.
    fn of(frame: &Frame) -> Option<FrameValue> {
        let mut payload = Vec::new();
        frame.payload.write_to(&mut payload);
        let value = match &frame.payload {
            Payload::Bytes(_) => None,
            Payload::Typed(message) => {
                let without_request = std::iter::once(Reading::Alone);
                let els = (0..=u8::MAX).map(Reading::ReplyToEls);
                let ils = (0..=u8::MAX).map(Reading::ReplyToSwIls);
                let good = |reading: &Reading| reading.read(&frame.header, &payload).as_ref() == Some(message);
                let ct = ct_commands().iter().copied().map(Reading::ReplyToCt);
                Some(without_request.chain(els).chain(ils).chain(ct).find(good)?)
            }
            Payload::Pattern { .. } => return None,
        };
        Some(FrameValue { header: hex(&frame.header.to_bytes()), payload: hex(&payload), value })
    }

    fn read(&self) -> Option<Frame> {
        let (header, payload) = (unhex(&self.header)?, unhex(&self.payload)?);
        let header = Header::parse(&header).ok().filter(|_| header.len() == HEADER_BYTES)?;
        let payload = match self.value {
            None => Payload::Bytes(payload.into()),
            Some(reading) => Payload::Typed(reading.read(&header, &payload)?),
        };
        Some(Frame { header, payload })
    }
}

impl Reading {
    fn read(self, header: &Header, payload: &[u8]) -> Option<Message> {
        let reply_to = match self {
            Reading::Alone => None,
            Reading::ReplyToEls(command) => Some(ReplyTo::Els(command)),
            Reading::ReplyToSwIls(command) => Some(ReplyTo::SwIls(command)),
            // The preamble of the reply identifies the service.
            Reading::ReplyToCt(command) => {
                let service = Service { gs_type: *payload.get(4)?, gs_subtype: *payload.get(5)? };
                Some(ReplyTo::Ct(service, command))
            }
        };
        Message::parse(header, payload, reply_to).ok()
    }
}

/// Known command codes of all CT services.
fn ct_commands() -> &'static [u16] {
    static COMMANDS: OnceLock<Vec<u16>> = OnceLock::new();
    COMMANDS.get_or_init(|| {
        let tables = [ns::command::name, fdmi::command::name, fcs::command::name, fzs::command::name];
        (0..=u16::MAX).filter(|code| tables.iter().any(|name| name(*code).is_some())).collect()
    })
}

impl ChangeValue {
    fn of(change: &ZoneChange) -> Option<ChangeValue> {
        let edits = |edits: &[ZoneEdit]| edits.iter().map(Edit::from).collect();
        Some(match change {
            ZoneChange::Edits(list) => ChangeValue::Edits(edits(list)),
            ZoneChange::Replace(database) => ChangeValue::Replace(Box::new(database.into())),
            ZoneChange::Commit(transaction) => {
                let (base, outcome) = (transaction.base(), transaction.commit().ok()?);
                let list = between(base, &outcome);
                ChangeValue::Commit { base: Box::new(base.into()), edits: edits(&list) }
            }
            // N_Ports request it through the management server inside the switch.
            ZoneChange::Activate(_) => return None,
        })
    }

    fn read(&self, limits: ZoneLimits) -> Option<ZoneChange> {
        let edits = |edits: &[Edit]| edits.iter().map(|edit| ZoneEdit::try_from(edit).ok()).collect::<Option<Vec<_>>>();
        Some(match self {
            ChangeValue::Edits(list) => ZoneChange::Edits(edits(list)?),
            ChangeValue::Replace(database) => ZoneChange::Replace(ZoneDatabase::try_from(&**database).ok()?),
            ChangeValue::Commit { base, edits: list } => {
                let base = ZoneDatabase::try_from(&**base).ok()?;
                let mut transaction = Transaction::begin(&base, limits);
                edits(list)?.into_iter().try_for_each(|edit| transaction.apply(edit)).ok()?;
                ZoneChange::Commit(Box::new(transaction))
            }
        })
    }
}

/// Returns the edits that turn `base` into `outcome`.
fn between(base: &ZoneDatabase, outcome: &ZoneDatabase) -> Vec<ZoneEdit> {
    let (old, new) = (&base.defined, &outcome.defined);
    let mut edits = Vec::new();
    let delete = |kind: ObjectKind, name: &String| ZoneEdit::Delete { kind, name: name.clone() };
    for (name, members) in &old.aliases {
        if new.aliases.get(name) != Some(members) {
            edits.push(delete(ObjectKind::Alias, name));
        }
    }
    for (name, zone) in &old.zones {
        if new.zones.get(name) != Some(zone) {
            edits.push(delete(ObjectKind::Zone, name));
        }
    }
    for (name, zones) in &old.configs {
        if new.configs.get(name) != Some(zones) {
            edits.push(delete(ObjectKind::Config, name));
        }
    }
    for (name, members) in &new.aliases {
        if old.aliases.get(name) != Some(members) {
            edits.push(ZoneEdit::CreateAlias { name: name.clone(), members: members.clone() });
        }
    }
    for (name, zone) in &new.zones {
        if old.zones.get(name) != Some(zone) {
            edits.push(ZoneEdit::CreateZone { name: name.clone(), zone: zone.clone() });
        }
    }
    for (name, zones) in &new.configs {
        if old.configs.get(name) != Some(zones) {
            edits.push(ZoneEdit::CreateConfig { name: name.clone(), zones: zones.clone() });
        }
    }
    if base.default_zone != outcome.default_zone {
        edits.push(ZoneEdit::SetDefault(outcome.default_zone));
    }
    if base.effective != outcome.effective {
        edits.push(match &outcome.effective {
            Some(effective) => ZoneEdit::Enable(effective.name.clone()),
            None => ZoneEdit::Disable,
        });
    }
    edits
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8);
    digits.chunks(2).map(byte).collect()
}

fn mac(text: &str) -> Option<MacAddr> {
    unhex(text)?.try_into().ok().map(MacAddr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::Wwpn;
    use sanloom_wire::ct::{Ct, CtBody};
    use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
    use sanloom_wire::ns::NsAccept;
    use sanloom_wire::sw_ils::{SwAcc, SwIls, ZoneReply};

    #[test]
    fn bytes_decode_to_their_original() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for wrong in ["1", "0g", "é1"] {
            assert_eq!(unhex(wrong), None);
        }
    }

    #[test]
    fn frames_decode_to_their_original() {
        let messages: Vec<Message> = vec![
            Els::Rtv.into(),
            Els::LsRjt(LsRjt::new(LsRjtReason(9), LsRjtExplanation(0x29))).into(),
            Els::LsAcc(LsAcc::Empty).into(),
            SwIls::Ufc.into(),
            SwIls::SwAcc(SwAcc::Zone(ZoneReply::DONE)).into(),
            Ct::request(Service::NAME_SERVER, CtBody::NsAccept(NsAccept::Empty)).into(),
            Ct::request(Service::NAME_SERVER, CtBody::NsAccept(NsAccept::PortName(Wwpn(7)))).into(),
        ];
        for message in messages {
            let header = message.header(FcId::new(1), FcId::new(2), 3, 4);
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            for payload in [Payload::Typed(message.clone()), Payload::Bytes(bytes.clone().into())] {
                let frame = Frame { header, payload };
                let value = FrameValue::of(&frame).unwrap_or_else(|| panic!("{frame:?}"));
                let text = serde_json::to_string(&value).unwrap();
                assert_eq!(serde_json::from_str::<FrameValue>(&text).unwrap().read(), Some(frame), "{text}");
            }
        }
    }

    #[test]
    fn a_recorded_transaction_decodes_with_its_outcome() {
        let zone = |port| sanloom_fc::zoning::ZoneDefinition {
            members: vec![sanloom_fc::zoning::MemberRef::Member(sanloom_fc::config::ZoneMember::DomainPort {
                domain: 1,
                port,
            })],
            principals: Vec::new(),
        };
        let create = |name: &str, port| ZoneEdit::CreateZone { name: name.to_owned(), zone: zone(port) };
        let config = |zones: &[&str]| ZoneEdit::CreateConfig {
            name: "day".to_owned(),
            zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
        };
        let limits = ZoneLimits::default();
        let made = |base: &ZoneDatabase, edits: Vec<ZoneEdit>| {
            let mut transaction = Transaction::begin(base, limits);
            edits.into_iter().for_each(|edit| transaction.apply(edit).unwrap());
            transaction
        };
        let day = ZoneEdit::Enable("day".to_owned());
        let empty = ZoneDatabase::default();
        let base = made(&empty, vec![create("a", 1), create("b", 2), config(&["a"]), day.clone()]).commit().unwrap();
        let delete = |kind, name: &str| ZoneEdit::Delete { kind, name: name.to_owned() };
        let edits = [
            vec![delete(ObjectKind::Zone, "b"), create("c", 3)],
            vec![delete(ObjectKind::Config, "day"), config(&["a", "b"]), day],
            vec![ZoneEdit::Disable],
        ];
        for edits in edits {
            let transaction = made(&base, edits);
            let outcome = transaction.commit().unwrap();
            let value = ChangeValue::of(&ZoneChange::Commit(Box::new(transaction))).unwrap();
            let text = serde_json::to_string(&value).unwrap();
            let read: ChangeValue = serde_json::from_str(&text).unwrap();
            let Some(ZoneChange::Commit(again)) = read.read(limits) else { panic!("{text}") };
            assert_eq!((again.base(), again.commit()), (&base, Ok(outcome)), "{text}");
        }
    }
}
