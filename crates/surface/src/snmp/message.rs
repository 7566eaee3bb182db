//! Messages of SNMPv2c (RFC 1901, RFC 3416): [`Message`], [`Value`].

use super::ber::{Oid, Reader, Writer, tag};

/// Number of SNMPv2c in a message.
const VERSION_2C: i32 = 1;
/// Maximum number of variables of a request.
pub const MAX_VARIABLES: usize = 128;

/// A value of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of RFC 2578")]
pub enum Value {
    Integer(i32),
    Octets(Vec<u8>),
    Oid(Oid),
    Counter32(u32),
    Gauge32(u32),
    TimeTicks(u32),
    Counter64(u64),
    NoSuchObject,
    NoSuchInstance,
    EndOfMibView,
}

impl Value {
    /// Text.
    pub fn text(text: &str) -> Value {
        Value::Octets(text.as_bytes().to_vec())
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Value::Integer(value) => writer.integer(tag::INTEGER, (*value).into()),
            Value::Octets(bytes) => writer.value(tag::OCTETS, bytes),
            Value::Oid(oid) => writer.oid(oid),
            Value::Counter32(value) => writer.integer(tag::COUNTER32, (*value).into()),
            Value::Gauge32(value) => writer.integer(tag::GAUGE32, (*value).into()),
            Value::TimeTicks(value) => writer.integer(tag::TIME_TICKS, (*value).into()),
            Value::Counter64(value) => writer.integer(tag::COUNTER64, (*value).into()),
            Value::NoSuchObject => writer.value(tag::NO_SUCH_OBJECT, &[]),
            Value::NoSuchInstance => writer.value(tag::NO_SUCH_INSTANCE, &[]),
            Value::EndOfMibView => writer.value(tag::END_OF_MIB_VIEW, &[]),
        }
    }
}

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Values of the named variables.
    Get,
    /// Values of the variables behind the named ones.
    GetNext,
    /// As [`Operation::GetNext`], several times for the variables behind the first ones.
    GetBulk {
        /// Number of variables that are not repeated.
        once: usize,
        /// Number of repetitions of the others.
        repetitions: usize,
    },
    /// A change, which is refused.
    Set,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The password of the client.
    pub community: Vec<u8>,
    /// Number of the request.
    pub id: i32,
    /// The operation.
    pub operation: Operation,
    /// Names of the variables.
    pub names: Vec<Oid>,
}

/// Error of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of RFC 3416")]
pub enum Status {
    NoError = 0,
    TooBig = 1,
    GenErr = 5,
    NotWritable = 17,
}

impl Message {
    /// Reads a request; `None` for bytes that are no request of SNMPv2c. The protocol answers
    /// neither these nor requests of other versions.
    pub fn read(packet: &[u8]) -> Option<Message> {
        let mut message = Reader(Reader(packet).tagged(tag::SEQUENCE)?);
        if message.integer()? != VERSION_2C {
            return None;
        }
        let community = message.tagged(tag::OCTETS)?.to_vec();
        let (kind, body) = message.value()?;
        let mut body = Reader(body);
        let (id, first, second) = (body.integer()?, body.integer()?, body.integer()?);
        let count = |number: i32| usize::try_from(number).unwrap_or_default();
        let operation = match kind {
            0xa0 => Operation::Get,
            0xa1 => Operation::GetNext,
            0xa3 => Operation::Set,
            0xa5 => Operation::GetBulk { once: count(first), repetitions: count(second) },
            _ => return None,
        };
        let mut variables = Reader(body.tagged(tag::SEQUENCE)?);
        let mut names = Vec::new();
        while !variables.is_empty() {
            if names.len() == MAX_VARIABLES {
                return None;
            }
            let mut variable = Reader(variables.tagged(tag::SEQUENCE)?);
            names.push(variable.oid()?);
            variable.value()?;
        }
        Some(Message { community, id, operation, names })
    }

    /// Writes the response to the request. `at` is the variable of the error, from 1.
    pub fn response(&self, status: Status, at: usize, variables: &[(Oid, Value)]) -> Vec<u8> {
        let mut writer = Writer::default();
        for (name, value) in variables.iter().rev() {
            let start = writer.len();
            value.write(&mut writer);
            writer.oid(name);
            writer.wrap(tag::SEQUENCE, start);
        }
        writer.wrap(tag::SEQUENCE, 0);
        writer.integer(tag::INTEGER, at as i128);
        writer.integer(tag::INTEGER, i128::from(status as u8));
        writer.integer(tag::INTEGER, self.id.into());
        writer.wrap(0xa2, 0);
        writer.value(tag::OCTETS, &self.community);
        writer.integer(tag::INTEGER, VERSION_2C.into());
        writer.wrap(tag::SEQUENCE, 0);
        writer.finish()
    }
}

/// Number of bytes of a variable in a response, rounded up.
pub fn size(name: &[u32], value: &Value) -> usize {
    let value = match value {
        Value::Octets(bytes) => bytes.len(),
        Value::Oid(oid) => 5 * oid.len(),
        _ => 9,
    };
    // Two bytes of tag and length for short lists, four for long ones, three times.
    name.iter().map(|part| 1 + part.checked_ilog2().unwrap_or_default() as usize / 7).sum::<usize>() + value + 12
}
