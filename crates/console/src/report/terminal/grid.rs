//! A table fitted to a width: the least important columns are dropped first.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

/// Length from which names are shortened in the middle as the last resort.
const SHORTEST_NAME: usize = 12;
/// Maximum line length of paragraphs, regardless of the terminal's width.
const LONGEST_LINE: usize = 120;

/// A column of a [`Grid`].
pub struct Column {
    title: String,
    right: bool,
    rank: u8,
}

impl Column {
    /// A left-aligned column for text.
    pub fn left(title: &str) -> Column {
        Column { title: title.to_owned(), right: false, rank: 0 }
    }

    /// A right-aligned column for numbers.
    pub fn right(title: &str) -> Column {
        Column { right: true, ..Column::left(title) }
    }

    /// Sets the order of dropping: the highest rank first, 0 never.
    pub fn rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

/// Builder of a table.
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Creates a table with these columns and no rows.
    pub fn new(columns: Vec<Column>) -> Grid {
        Grid { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Adds a row with the number of rows not shown, if any.
    pub fn more(&mut self, count: usize) {
        if count > 0 {
            let mut cells = vec![String::new(); self.columns.len()];
            cells[0] = format!("and {count} more");
            self.rows.push(cells);
        }
    }

    /// Adds the row of totals.
    pub fn last_row(&mut self, cells: Vec<String>) {
        self.row(cells);
    }

    /// Renders the table with a final end of line.
    pub fn render(&self, width: usize) -> String {
        let mut shown: Vec<usize> =
            (0..self.columns.len()).filter(|&i| self.rows.iter().any(|row| !row[i].is_empty())).collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut left_out: Vec<&str> = Vec::new();
        while self.width_of(&shown) > width {
            let Some(at) = (1..shown.len())
                .filter(|&at| self.columns[shown[at]].rank > 0)
                .max_by_key(|&at| (self.columns[shown[at]].rank, at))
            else {
                break;
            };
            left_out.push(self.columns[shown.remove(at)].title.as_str());
        }
        let over = self.width_of(&shown).saturating_sub(width);
        let name_width = self.column_width(0).saturating_sub(over).max(SHORTEST_NAME);

        let mut table = Table::new();
        table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('-').junction('-')));
        table.set_content_arrangement(ContentArrangement::Disabled);
        let cell = |column: usize, text: &str| {
            let text = if column == 0 { shortened(text, name_width) } else { text.to_owned() };
            Cell::new_owned(text).set_alignment(if self.columns[column].right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            })
        };
        table.set_header(shown.iter().map(|&i| cell(i, &self.columns[i].title)).collect::<Vec<_>>());
        for row in &self.rows {
            table.add_row(shown.iter().map(|&i| cell(i, &row[i])).collect::<Vec<_>>());
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((u16::from(at > 0), 0));
        }
        let mut out = String::new();
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if !left_out.is_empty() {
            left_out.reverse();
            out.push_str(&wrap(
                &format!("(no room for {}; a wider terminal or --json shows them)", left_out.join(", ")),
                width,
                1,
            ));
        }
        out
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.columns[column].title.chars().count()]).max().unwrap_or(0)
    }

    fn width_of(&self, shown: &[usize]) -> usize {
        let gaps = 2 * shown.len().saturating_sub(1);
        shown.iter().map(|&i| self.column_width(i)).sum::<usize>() + gaps
    }
}

/// Removes the middle of a text that is too long.
fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let head = (width - 1).div_ceil(2);
    let tail = width - 1 - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// Breaks a paragraph at spaces and adds an end of line; lines after the first are indented.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let width = width.min(LONGEST_LINE);
    let mut out = String::new();
    let mut used = 0;
    let lead = text.chars().take_while(|c| *c == ' ').count();
    out.push_str(&" ".repeat(lead));
    used += lead;
    let mut first = true;
    for word in text.split(' ').skip(lead) {
        let length = word.chars().count();
        if !first && used + 1 + length > width {
            while out.ends_with(' ') {
                out.pop();
            }
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if !first {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
        first = false;
    }
    out.push('\n');
    out
}
