//! Tables that can be sorted by a click, and are readable without scripts.

use super::page::escape;
use std::fmt::Write as _;

/// Sentence below a table that shows the first rows only.
pub const ALL_IN_JSON: &str = "The JSON results have all.";

/// Builder of a table.
pub struct Table {
    id: &'static str,
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
    cap: usize,
    rest: &'static str,
}

/// One cell.
pub struct Cell {
    text: String,
    sort: Option<f64>,
    meter: Option<(f64, &'static str)>,
    class: &'static str,
}

impl Cell {
    /// Plain text.
    pub fn text(text: &str) -> Cell {
        Cell { text: text.to_owned(), sort: None, meter: None, class: "" }
    }

    /// A number, sorted by its value and shown as a text with a unit.
    pub fn number(value: f64, shown: String) -> Cell {
        Cell { text: shown, sort: Some(value), meter: None, class: "" }
    }

    /// A whole number.
    pub fn count(value: u64) -> Cell {
        Cell::number(value as f64, crate::report::format::grouped(value))
    }

    /// A count that is highlighted unless it is 0.
    pub fn bad_count(value: u64) -> Cell {
        Cell::count(value).class(if value > 0 { "bad" } else { "" })
    }

    /// Bytes per second in MB/s, without the unit, which is in the column heading.
    pub fn mb_per_s(bytes_per_s: f64) -> Cell {
        Cell::number(bytes_per_s, format!("{:.1}", bytes_per_s / 1e6))
    }

    /// Microseconds.
    pub fn us(us: f64) -> Cell {
        Cell::number(us, crate::report::format::us(us))
    }

    /// A share with a bar behind it; `kind` is `load` or `wait`.
    pub fn share(share: f64, kind: &'static str) -> Cell {
        Cell {
            meter: Some((share.clamp(0.0, 1.0), kind)),
            ..Cell::number(share, crate::report::format::percent(share))
        }
    }

    /// Sets a CSS class of our style sheet.
    pub fn class(self, class: &'static str) -> Cell {
        Cell { class, ..self }
    }
}

impl Table {
    /// An empty table; `id` is unique in the page.
    pub fn new(id: &'static str) -> Table {
        Table { id, columns: Vec::new(), rows: Vec::new(), cap: usize::MAX, rest: "" }
    }

    /// Adds a column of text.
    pub fn text(self, title: &str) -> Table {
        self.column(title, false)
    }

    /// Adds a column of numbers.
    pub fn number(self, title: &str) -> Table {
        self.column(title, true)
    }

    fn column(mut self, title: &str, number: bool) -> Table {
        self.columns.push((title.to_owned(), number));
        self
    }

    /// Limits the number of rows; `rest` states where the others are.
    pub fn cap(mut self, rows: usize, rest: &'static str) -> Table {
        self.cap = rows;
        self.rest = rest;
        self
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Renders the table as HTML, or a sentence if it has no rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return "<p class=\"none\">None.</p>\n".into();
        }
        let long = if self.rows.len() > 40 { " long" } else { "" };
        let mut out =
            format!("<div class=\"scroll{long}\"><table id=\"t-{}\" class=\"sortable\">\n<thead><tr>", self.id);
        for (title, number) in &self.columns {
            let class = if *number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th{class} scope=\"col\">{}</th>", escape(title));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in self.rows.iter().take(self.cap) {
            out.push_str("<tr>");
            for (cell, (_, number)) in row.iter().zip(&self.columns) {
                cell.write(&mut out, *number);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table></div>\n");
        if self.rows.len() > self.cap {
            let _ =
                writeln!(out, "<p class=\"note\">{} of {} rows. {}</p>", self.cap, self.rows.len(), escape(self.rest));
        }
        out
    }
}

impl Cell {
    fn write(&self, out: &mut String, number: bool) {
        out.push_str("<td");
        let class = match (number, self.class) {
            (true, "") => "n".to_owned(),
            (true, class) => format!("n {class}"),
            (false, class) => class.to_owned(),
        };
        if !class.is_empty() {
            let _ = write!(out, " class=\"{class}\"");
        }
        if let Some(value) = self.sort {
            let _ = write!(out, " data-v=\"{value}\"");
        }
        out.push('>');
        match self.meter {
            Some((share, kind)) => {
                let _ = write!(
                    out,
                    "<span class=\"meter {kind}\" style=\"--v:{:.1}%\">{}</span>",
                    share * 100.0,
                    escape(&self.text)
                );
            }
            None => out.push_str(&escape(&self.text)),
        }
        out.push_str("</td>");
    }
}
