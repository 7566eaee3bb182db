//! JSON bodies.

use super::tree::{Content, Element};
use super::{MAX_DEPTH, MAX_ELEMENTS};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Writes an object with one member for the root. If `plain` is set, a list with one entry is a
/// plain object, as under the old addresses.
pub fn write(root: &Element, plain: bool) -> String {
    let mut text = String::new();
    members(&mut text, std::slice::from_ref(root), plain);
    text.push('\n');
    text
}

fn members(out: &mut String, elements: &[Element], plain: bool) {
    out.push('{');
    for (index, group) in elements.chunk_by(|a, b| a.name == b.name).enumerate() {
        if index > 0 {
            out.push(',');
        }
        quoted(out, &group[0].name);
        out.push(':');
        if group.len() > 1 || group[0].in_list && !(plain && matches!(group[0].content, Content::Children(_))) {
            out.push('[');
            for (index, element) in group.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                value(out, element, plain);
            }
            out.push(']');
        } else {
            value(out, &group[0], plain);
        }
    }
    out.push('}');
}

fn value(out: &mut String, element: &Element, plain: bool) {
    match &element.content {
        Content::Children(children) => members(out, children, plain),
        Content::Text(text) => quoted(out, text),
        Content::Number(_) | Content::Bool(_) => *out += &element.value(),
    }
}

fn quoted(out: &mut String, text: &str) {
    *out += &serde_json::Value::from(text).to_string();
}

/// Reads the members of a JSON object. An array becomes one element for each entry.
///
/// # Errors
/// The first error of the body, in one sentence.
pub fn read(body: &str) -> Result<Vec<Element>, String> {
    if body.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut left = MAX_ELEMENTS;
    match serde_json::from_str(body).map_err(|error| format!("the body is not JSON: {error}"))? {
        Node::Object(object) => elements(object, 1, &mut left),
        _ => Err("the body is not a JSON object".to_owned()),
    }
}

enum Node {
    Leaf(String),
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
}

fn elements(object: Vec<(String, Node)>, depth: usize, left: &mut usize) -> Result<Vec<Element>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("the body has more than {MAX_DEPTH} levels"));
    }
    let mut found = Vec::new();
    for (name, node) in object {
        let nodes = match node {
            Node::Array(nodes) => nodes,
            node => vec![node],
        };
        for node in nodes {
            *left = left.checked_sub(1).ok_or_else(|| format!("the body has more than {MAX_ELEMENTS} elements"))?;
            let content = match node {
                Node::Leaf(text) if text.is_empty() => Content::Children(Vec::new()),
                Node::Leaf(text) => Content::Text(text),
                Node::Object(object) => Content::Children(elements(object, depth + 1, left)?),
                Node::Array(_) => return Err(format!("`{name}` is an array in an array")),
            };
            found.push(Element { name: name.clone(), content, in_list: false });
        }
    }
    Ok(found)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Leaf(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Leaf(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Leaf(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Leaf(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Leaf(value.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf(String::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = seq.next_element()? {
                    nodes.push(node);
                }
                Ok(Node::Array(nodes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Node::Object(members))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
