//! JSON values as Arrow columns: [`batch`].
//!
//! A row is an object. Members of inner objects become columns of their own, whose names follow a
//! dot, as in the paths of results. Lists stay lists. A map, whose keys are not fixed, becomes a
//! list of pairs.

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, ListArray, NullArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use sanloom_api::results::ANY;
use sanloom_console::node::Node;
use serde_json::Value;
use std::sync::Arc;

/// Type of a column.
#[derive(Clone, PartialEq, Debug)]
enum Kind {
    /// Only nulls so far.
    Null,
    Bool,
    /// Whole numbers from 0 on.
    Count,
    /// Whole numbers, some below 0.
    Whole,
    Float,
    Text,
    List(Box<Kind>),
    Struct(Vec<(String, Kind)>),
    /// Values by keys that are not fixed.
    Map(Box<Kind>),
}

impl Kind {
    fn of(node: &Node) -> Kind {
        match node {
            Node::Leaf(Value::Bool(_)) => Kind::Bool,
            Node::Leaf(Value::String(_)) => Kind::Text,
            Node::Leaf(Value::Number(number)) if number.is_u64() => Kind::Count,
            Node::Leaf(Value::Number(number)) if number.is_i64() => Kind::Whole,
            Node::Leaf(Value::Number(_)) => Kind::Float,
            Node::Leaf(_) => Kind::Null,
            Node::List(elements) => Kind::List(Box::new(Kind::of_all(elements))),
            Node::Map(members) => match &members[..] {
                [(any, value)] if any == ANY => Kind::Map(Box::new(Kind::of(value))),
                _ => Kind::Struct(members.iter().map(|(name, value)| (name.clone(), Kind::of(value))).collect()),
            },
        }
    }

    fn of_all<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Kind {
        nodes.into_iter().fold(Kind::Null, |kind, node| kind.with(Kind::of(node)))
    }

    /// The kind that holds values of both.
    fn with(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Null, kind) | (kind, Kind::Null) => kind,
            (Kind::List(a), Kind::List(b)) => Kind::List(Box::new(a.with(*b))),
            (Kind::Map(a), Kind::Struct(members)) => {
                Kind::Map(Box::new(members.into_iter().fold(*a, |kind, (_, member)| kind.with(member))))
            }
            (Kind::Map(a), Kind::Map(b)) => Kind::Map(Box::new(a.with(*b))),
            (Kind::Struct(mut fields), Kind::Struct(others)) => {
                for (name, kind) in others {
                    match fields.iter_mut().find(|(field, _)| *field == name) {
                        Some((_, field)) => *field = std::mem::replace(field, Kind::Null).with(kind),
                        None => fields.push((name, kind)),
                    }
                }
                Kind::Struct(fields)
            }
            (a, b) if a == b => a,
            (Kind::Count | Kind::Whole, Kind::Count | Kind::Whole) => Kind::Whole,
            (Kind::Count | Kind::Whole | Kind::Float, Kind::Count | Kind::Whole | Kind::Float) => Kind::Float,
            _ => Kind::Text,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Kind::Null => DataType::Null,
            Kind::Bool => DataType::Boolean,
            Kind::Count => DataType::UInt64,
            Kind::Whole => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::List(inner) => DataType::List(item(inner)),
            Kind::Struct(members) => DataType::Struct(fields(members)),
            Kind::Map(value) => DataType::List(item(&pair(value))),
        }
    }

    /// Builds the column of these values; `None` and values that do not fit are null.
    fn build(&self, values: &[Option<&Node>]) -> Result<ArrayRef, ArrowError> {
        let leaves = || {
            values.iter().map(|value| match value {
                Some(Node::Leaf(leaf)) => Some(leaf),
                _ => None,
            })
        };
        Ok(match self {
            Kind::Null => Arc::new(NullArray::new(values.len())),
            Kind::Bool => {
                let mut column = BooleanBuilder::with_capacity(values.len());
                leaves().for_each(|leaf| column.append_option(leaf.and_then(Value::as_bool)));
                Arc::new(column.finish())
            }
            Kind::Count => {
                let mut column = UInt64Builder::with_capacity(values.len());
                leaves().for_each(|leaf| column.append_option(leaf.and_then(Value::as_u64)));
                Arc::new(column.finish())
            }
            Kind::Whole => {
                let mut column = Int64Builder::with_capacity(values.len());
                leaves().for_each(|leaf| column.append_option(leaf.and_then(Value::as_i64)));
                Arc::new(column.finish())
            }
            Kind::Float => {
                let mut column = Float64Builder::with_capacity(values.len());
                leaves().for_each(|leaf| column.append_option(leaf.and_then(Value::as_f64)));
                Arc::new(column.finish())
            }
            Kind::Text => {
                let mut column = StringBuilder::new();
                for leaf in leaves() {
                    match leaf {
                        Some(Value::String(text)) => column.append_value(text),
                        Some(Value::Null) | None => column.append_null(),
                        Some(other) => column.append_value(other.to_string()),
                    }
                }
                Arc::new(column.finish())
            }
            Kind::List(inner) => {
                let lists: Vec<Option<&[Node]>> = values.iter().map(|value| value.and_then(elements)).collect();
                let flat: Vec<Option<&Node>> = lists.iter().flatten().flat_map(|list| list.iter().map(Some)).collect();
                list_of(inner, &lists.iter().map(|list| list.map(<[Node]>::len)).collect::<Vec<_>>(), &flat)?
            }
            Kind::Struct(members) => {
                let columns: Result<Vec<ArrayRef>, ArrowError> = (members.iter())
                    .map(|(name, kind)| {
                        kind.build(&values.iter().map(|value| member((*value)?, name)).collect::<Vec<_>>())
                    })
                    .collect();
                let present: NullBuffer = values.iter().map(Option::is_some).collect();
                let nulls = (present.null_count() > 0).then_some(present);
                Arc::new(StructArray::try_new_with_length(fields(members), columns?, nulls, values.len())?)
            }
            Kind::Map(value) => {
                let pairs: Vec<Option<Vec<Node>>> = values.iter().map(|value| value.and_then(pairs)).collect();
                let flat: Vec<Option<&Node>> = pairs.iter().flatten().flatten().map(Some).collect();
                let lengths: Vec<Option<usize>> = pairs.iter().map(|pairs| pairs.as_ref().map(Vec::len)).collect();
                list_of(&pair(value), &lengths, &flat)?
            }
        })
    }
}

fn list_of(inner: &Kind, lengths: &[Option<usize>], flat: &[Option<&Node>]) -> Result<ArrayRef, ArrowError> {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let present: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let nulls = (present.null_count() > 0).then_some(present);
    Ok(Arc::new(ListArray::try_new(item(inner), offsets, inner.build(flat)?, nulls)?))
}

fn item(kind: &Kind) -> Arc<Field> {
    Arc::new(Field::new("item", kind.data_type(), true))
}

fn fields(members: &[(String, Kind)]) -> Fields {
    members.iter().map(|(name, kind)| Field::new(name, kind.data_type(), true)).collect()
}

fn pair(value: &Kind) -> Kind {
    Kind::Struct(vec![("key".to_owned(), Kind::Text), ("value".to_owned(), value.clone())])
}

fn elements(node: &Node) -> Option<&[Node]> {
    match node {
        Node::List(elements) => Some(elements),
        _ => None,
    }
}

fn pairs(node: &Node) -> Option<Vec<Node>> {
    let Node::Map(members) = node else { return None };
    let pair = |(key, value): &(String, Node)| {
        let key = Node::Leaf(Value::String(key.clone()));
        Node::Map(vec![("key".to_owned(), key), ("value".to_owned(), value.clone())])
    };
    Some(members.iter().map(pair).collect())
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match node {
        Node::Map(members) => members.iter().find(|(member, _)| member == name).map(|(_, value)| value),
        _ => None,
    }
}

/// Columns of a kind, with the names of inner members behind a dot, and the way to their values.
fn leaves(prefix: &str, way: &[String], kind: &Kind, out: &mut Vec<(String, Vec<String>, Kind)>) {
    match kind {
        Kind::Struct(members) => {
            for (name, kind) in members {
                let whole = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                leaves(&whole, &[way, std::slice::from_ref(name)].concat(), kind, out);
            }
        }
        _ => out.push((prefix.to_owned(), way.to_vec(), kind.clone())),
    }
}

/// Returns the table of a list of objects. `example` is a row with every member, so that columns
/// and their types do not depend on the rows.
///
/// # Errors
/// If Arrow refuses the columns.
pub fn batch(example: Option<&Node>, rows: &[Node]) -> Result<RecordBatch, ArrowError> {
    let kind = example.map_or(Kind::Null, Kind::of).with(Kind::of_all(rows));
    let mut found = Vec::new();
    if let Kind::Struct(_) = kind {
        leaves("", &[], &kind, &mut found);
    }
    let mut schema = Vec::new();
    let mut columns = Vec::new();
    for (name, way, kind) in found {
        let value = |row| way.iter().try_fold(row, |node, name| member(node, name));
        columns.push(kind.build(&rows.iter().map(value).collect::<Vec<_>>())?);
        schema.push(Field::new(name, kind.data_type(), true));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(schema)), columns, &options)
}
