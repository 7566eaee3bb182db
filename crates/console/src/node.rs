//! A JSON value whose members keep their order: [`Node`].

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// A JSON value whose members keep their order.
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// Null, a truth value, a number or a text.
    Leaf(Value),
    /// A list.
    List(Vec<Node>),
    /// The members of an object.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Returns a value as JSON has it.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Node> {
        serde_json::from_str(&serde_json::to_string(value)?)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON value")
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
                Ok(Node::Leaf(flag.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
                Ok(Node::Leaf(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
                Ok(Node::Leaf(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
                Ok(Node::Leaf(number.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Leaf(text.into()))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Node::List(elements))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Node::Map(members))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
