//! Any result as a flat table: one row for each element of its lists, for CSV and HTML.

use super::html::{Cell, Table};
use super::{csv, format};
use crate::node::Node;
use serde::{Serialize, ser};
use serde_json::Value;
use std::io::{self, Write};

/// Name of the column that names the list of a row, if a result has several lists.
const TABLE: &str = "table";

/// A flat table.
pub struct Rows {
    columns: Vec<String>,
    /// Cells by column; null where a row does not have the column.
    rows: Vec<Vec<Value>>,
}

type Row = Vec<(String, Value)>;

impl Rows {
    /// Makes the rows of a value. A list of objects gives one row per object, with the other
    /// members of the value in front. Names of inner members follow a dot.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn of(value: &impl Serialize) -> io::Result<Rows> {
        Ok(Rows::of_node(&Node::of(value)?))
    }

    fn of_node(node: &Node) -> Rows {
        let found = rows_of("", node);
        let mut columns: Vec<String> = Vec::new();
        for (name, _) in found.iter().flatten() {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        let cell = |row: &Row, column: &String| {
            let found = row.iter().find(|(name, _)| name == column);
            found.map_or(Value::Null, |(_, value)| value.clone())
        };
        let rows = found.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
        Rows { columns, rows }
    }

    /// Writes the columns and the rows as CSV.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        csv::write_line(out, &self.columns)?;
        self.rows.iter().try_for_each(|row| csv::write_line(out, &row.iter().map(shown).collect::<Vec<_>>()))
    }

    /// Writes one JSON object for each row.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write_json_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            super::json::write_line(out, &Members(&self.columns, row))?;
        }
        Ok(())
    }

    /// Returns the table of an HTML page.
    pub fn html(&self) -> String {
        let is_number = |column: usize| self.rows.iter().all(|row| row[column].is_number() || row[column].is_null());
        let numbers: Vec<bool> = (0..self.columns.len()).map(is_number).collect();
        let mut table = Table::new("rows");
        for (column, number) in self.columns.iter().zip(&numbers) {
            table = if *number { table.number(column) } else { table.text(column) };
        }
        for row in &self.rows {
            let cell = |value: &Value| match value.as_f64() {
                Some(number) => Cell::number(number, format::plain(number)),
                None => Cell::text(&shown(value)),
            };
            table.row(row.iter().map(cell).collect());
        }
        table.html()
    }
}

struct Members<'a>(&'a [String], &'a [Value]);

impl Serialize for Members<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rows_of(prefix: &str, node: &Node) -> Vec<Row> {
    match node {
        Node::List(elements) if node.has_rows() => elements.iter().flat_map(|node| rows_of("", node)).collect(),
        Node::Map(members) => {
            let (lists, scalars): (Vec<_>, Vec<_>) = members.iter().partition(|(_, node)| node.has_rows());
            let mut common = Vec::new();
            scalars.iter().for_each(|(name, node)| node.flatten(&join(prefix, name), &mut common));
            if lists.is_empty() {
                return vec![common];
            }
            let mut rows = Vec::new();
            for (name, list) in &lists {
                for row in rows_of("", list) {
                    let clashes = |column: &String| common.iter().any(|(other, _)| other == column);
                    let renamed =
                        |(column, value)| (if clashes(&column) { join(name, &column) } else { column }, value);
                    let table = (lists.len() > 1).then(|| (TABLE.to_owned(), Value::String(name.clone())));
                    rows.push(common.iter().cloned().chain(table).chain(row.into_iter().map(renamed)).collect());
                }
            }
            rows
        }
        other => {
            let mut row = Vec::new();
            other.flatten(if prefix.is_empty() { "value" } else { prefix }, &mut row);
            vec![row]
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

impl Node {
    /// True if a list of objects is inside.
    fn has_rows(&self) -> bool {
        match self {
            Node::Leaf(_) => false,
            Node::List(elements) => elements.iter().any(|node| matches!(node, Node::Map(_)) || node.has_rows()),
            Node::Map(members) => members.iter().any(|(_, node)| node.has_rows()),
        }
    }

    fn flatten(&self, name: &str, row: &mut Row) {
        match self {
            Node::Leaf(value) => row.push((name.to_owned(), value.clone())),
            Node::List(elements) => {
                (0..).zip(elements).for_each(|(index, node): (u32, _)| node.flatten(&format!("{name}.{index}"), row));
            }
            Node::Map(members) => members.iter().for_each(|(part, node)| node.flatten(&join(name, part), row)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Cell {
        size: u32,
        ratio: Option<f64>,
    }

    #[derive(Serialize)]
    struct Report {
        name: &'static str,
        span: [u8; 2],
        cells: Vec<Cell>,
    }

    fn csv(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        Rows::of(value).unwrap().write_csv(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn report() -> Report {
        let cells = vec![Cell { size: 4096, ratio: Some(0.5) }, Cell { size: 8192, ratio: None }];
        Report { name: "a, b", span: [1, 2], cells }
    }

    #[test]
    fn each_element_of_a_list_is_a_row_with_the_members_around_it() {
        let expected = "name,span.0,span.1,size,ratio\n\"a, b\",1,2,4096,0.5\n\"a, b\",1,2,8192,\n";
        assert_eq!(csv(&report()), expected);
    }

    #[test]
    fn several_lists_are_told_apart_by_a_column() {
        #[derive(Serialize)]
        struct Both {
            first: Report,
            second: Vec<Cell>,
        }
        let both = Both { first: report(), second: vec![Cell { size: 1, ratio: None }] };
        let text = csv(&both);
        assert_eq!(text.lines().next(), Some("table,name,span.0,span.1,size,ratio"));
        assert_eq!(text.lines().last(), Some("second,,,,1,"));
    }

    #[test]
    fn a_value_without_lists_is_one_row() {
        #[derive(Serialize)]
        struct Flat {
            ours: Cell,
            runs: Vec<f64>,
        }
        let flat = Flat { ours: Cell { size: 1, ratio: None }, runs: vec![1.5, 2.0] };
        assert_eq!(csv(&flat), "ours.size,ours.ratio,runs.0,runs.1\n1,,1.5,2.0\n");
    }

    #[test]
    fn json_lines_have_an_object_for_each_row() {
        let mut out = Vec::new();
        Rows::of(&report()).unwrap().write_json_lines(&mut out).unwrap();
        let lines = String::from_utf8(out).unwrap();
        assert_eq!(lines.lines().count(), 2);
        assert!(lines.starts_with(r#"{"name":"a, b","span.0":1,"span.1":2,"size":4096,"ratio":0.5}"#), "{lines}");
    }
}
