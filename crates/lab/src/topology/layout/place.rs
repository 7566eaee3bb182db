//! Coordinates of the shapes.

use super::{BOX_HEIGHT, CELL_HEIGHT, Column, HEADING, Kind, Label, Layout, MARGIN, Shape, centred, text_width};
use std::ops::Range;

/// Width that a drawing should have.
const TARGET_WIDTH: f64 = 1_600.0;
/// Width at which a row of panels is broken into lines.
const MAX_WIDTH: f64 = 2_600.0;
/// Distance between shapes of one row.
const GAP: f64 = 16.0;
/// Distance between nodes of one panel.
const CELL_GAP: f64 = 4.0;
/// Distance between lines of one row.
const LINE_GAP: f64 = 22.0;
/// Distance between fabrics.
const FABRIC_GAP: f64 = 56.0;
/// Space around the switches of a fabric.
const PADDING: f64 = 18.0;
/// Least and greatest distance of two rows. Wide drawings get more, so that lines are not too flat.
const ROW_GAP: Range<f64> = 90.0..220.0;

impl Layout {
    /// Places the shapes in rows. `fabrics` has the names of the fabrics and networks.
    pub(super) fn place(&mut self, rows: usize, fabrics: &[String]) {
        self.size_panels();
        let mut order: Vec<Vec<usize>> = vec![Vec::new(); rows];
        for (index, shape) in self.shapes.iter().enumerate() {
            order[shape.row].push(index);
        }
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.shapes.len()];
        for cable in &self.cables {
            let [a, b] = cable.shapes;
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        self.spread(&order, fabrics);
        // Rows are sorted by the positions of their neighbours, alternately from the top and from
        // the bottom, to reduce crossings.
        for sweep in 0..6 {
            let down = sweep % 2 == 0;
            let mut indices: Vec<usize> = (0..rows).collect();
            if !down {
                indices.reverse();
            }
            for row in indices {
                let key = |&shape: &usize| {
                    let near = neighbours[shape].iter();
                    let near = near.filter(|&&n| (self.shapes[n].row < row) == down && self.shapes[n].row != row);
                    let near: Vec<f64> = near.map(|&n| self.shapes[n].x).collect();
                    let mean = near.iter().sum::<f64>() / near.len() as f64;
                    if near.is_empty() { self.shapes[shape].x } else { mean }
                };
                let mut keyed: Vec<(f64, usize)> = order[row].iter().map(|shape| (key(shape), *shape)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                order[row] = keyed.into_iter().map(|(_, shape)| shape).collect();
                self.spread(&order, fabrics);
            }
        }
        self.place_cells();
    }

    /// Gives panels their sizes: the more panels a row has, the narrower they are.
    fn size_panels(&mut self) {
        for kind in [Kind::Host, Kind::Storage] {
            let of_kind = |shape: &&Shape| shape.kind == kind;
            let single: f64 =
                self.shapes.iter().filter(of_kind).filter(|s| s.cells.is_empty()).map(|s| s.width + GAP).sum();
            let panels = self.shapes.iter().filter(of_kind).filter(|s| !s.cells.is_empty()).count();
            let room = ((TARGET_WIDTH - single) / panels.max(1) as f64 - GAP).max(0.0);
            for shape in self.shapes.iter_mut().filter(|shape| shape.kind == kind && !shape.cells.is_empty()) {
                let step = shape.cells[0].width + CELL_GAP;
                let count = shape.cells.len();
                // A panel is at most about three times as high as it is wide.
                let least = (count as f64 * (CELL_HEIGHT + CELL_GAP) / step / 3.0).sqrt().ceil() as usize;
                let columns = ((room / step) as usize).max(least).clamp(1, count);
                let lines = count.div_ceil(columns);
                shape.width = (columns as f64 * step + 12.0).max(text_width(&shape.label) + 18.0);
                shape.height = HEADING + lines as f64 * (CELL_HEIGHT + CELL_GAP) + 6.0;
            }
        }
    }

    /// Places the nodes of panels.
    fn place_cells(&mut self) {
        for shape in self.shapes.iter_mut().filter(|shape| !shape.cells.is_empty()) {
            let step = shape.cells[0].width + CELL_GAP;
            let columns = (((shape.width - 12.0) / step) as usize).max(1);
            let (left, top) = (shape.x - shape.width / 2.0 + 6.0, shape.y - shape.height / 2.0 + HEADING);
            for (index, cell) in shape.cells.iter_mut().enumerate() {
                let (line, column) = (index / columns, index % columns);
                cell.x = left + step * (column as f64 + 0.5);
                cell.y = top + (CELL_HEIGHT + CELL_GAP) * (line as f64 + 0.5);
            }
        }
    }

    /// Places the shapes in their order: each fabric in its column, hosts and storage over all
    /// columns, in several lines if they are many.
    fn spread(&mut self, order: &[Vec<usize>], names: &[String]) {
        let fabrics = names.len();
        let widths: Vec<f64> = (0..fabrics).map(|fabric| self.fabric_width(order, fabric, names)).collect();
        let gaps = FABRIC_GAP * (fabrics.max(1) - 1) as f64;
        let inner = widths.iter().sum::<f64>() + gaps;
        let lines: Vec<Vec<Vec<usize>>> = order.iter().map(|row| self.lines(row)).collect();
        let widest = (lines.iter().flatten().map(|line| self.line_width(line))).fold(inner.max(200.0), f64::max);
        // Columns share the space that hosts or storage need beyond them.
        let spare = (widest - inner) / fabrics.max(1) as f64;
        let mut columns: Vec<(f64, f64)> = Vec::new();
        let mut left = MARGIN;
        for width in &widths {
            columns.push((left, width + spare));
            left += width + spare + FABRIC_GAP;
        }
        let heading = if fabrics > 1 { HEADING } else { 0.0 };
        let row_gap = (widest / 14.0).clamp(ROW_GAP.start, ROW_GAP.end);
        let mut top = MARGIN;
        let mut band: Option<(f64, f64)> = None;
        for (row, lines) in order.iter().zip(&lines) {
            let is_switch = row.first().is_some_and(|&shape| self.shapes[shape].kind == Kind::Switch);
            if is_switch {
                let start = if band.is_none() { top + heading } else { top };
                for (fabric, &(left, width)) in columns.iter().enumerate() {
                    let of_fabric = row.iter().copied().filter(|&shape| self.shapes[shape].fabric == fabric);
                    let members: Vec<usize> = of_fabric.collect();
                    self.put(&members, left + PADDING, width - 2.0 * PADDING, start + BOX_HEIGHT / 2.0);
                }
                let first = band.map_or(start, |(first, _)| first);
                band = Some((first, start + BOX_HEIGHT));
                top = start + BOX_HEIGHT + row_gap;
                continue;
            }
            for line in lines {
                let height = line.iter().map(|&shape| self.shapes[shape].height).fold(0.0, f64::max);
                self.put(line, MARGIN, widest, top + height / 2.0);
                top += height + LINE_GAP;
            }
            top += row_gap - LINE_GAP;
        }
        self.width = widest + 2.0 * MARGIN;
        self.height = top - row_gap + MARGIN + if band.is_some() { PADDING } else { 0.0 };
        self.columns = match band {
            Some((first, last)) if fabrics > 1 => {
                let column = |(fabric, &(left, width)): (usize, &(f64, f64))| Column {
                    label: names[fabric].clone(),
                    left,
                    top: first - heading,
                    width,
                    height: last - first + heading + PADDING,
                };
                columns.iter().enumerate().map(column).collect()
            }
            _ => Vec::new(),
        };
    }

    /// Width of the widest tier of a fabric.
    fn fabric_width(&self, order: &[Vec<usize>], fabric: usize, names: &[String]) -> f64 {
        let width = |row: &Vec<usize>| -> f64 {
            let of_fabric = |shape: &&Shape| shape.kind == Kind::Switch && shape.fabric == fabric;
            row.iter().map(|&shape| &self.shapes[shape]).filter(of_fabric).map(|shape| shape.width + GAP).sum()
        };
        let heading = if names.len() > 1 { text_width(&names[fabric]) } else { 0.0 };
        order.iter().map(width).fold(text_width("Fabric AA").max(heading), f64::max) + 2.0 * PADDING
    }

    /// Breaks a row of hosts or storage into lines.
    fn lines(&self, row: &[usize]) -> Vec<Vec<usize>> {
        if row.first().is_none_or(|&shape| self.shapes[shape].kind == Kind::Switch) {
            return Vec::new();
        }
        let total: f64 = row.iter().map(|&shape| self.shapes[shape].width + GAP).sum();
        let count = (total / MAX_WIDTH).ceil().max(1.0);
        let mut lines: Vec<Vec<usize>> = vec![Vec::new()];
        let mut used = 0.0;
        for &shape in row {
            let width = self.shapes[shape].width + GAP;
            // Each line gets its share of the whole, so that the last one is not nearly empty.
            if used > 0.0 && used + width / 2.0 > total / count * lines.len() as f64 {
                lines.push(Vec::new());
            }
            used += width;
            if let Some(line) = lines.last_mut() {
                line.push(shape);
            }
        }
        lines
    }

    fn line_width(&self, line: &[usize]) -> f64 {
        line.iter().map(|&shape| self.shapes[shape].width + GAP).sum()
    }

    /// Places shapes side by side in a part of the drawing.
    fn put(&mut self, members: &[usize], left: f64, width: f64, y: f64) {
        let used = self.line_width(members);
        let free = ((width - used) / (members.len() as f64 + 1.0)).max(0.0);
        // A few boxes stay near the middle and are not stretched over a wide drawing.
        let free = free.min(width / 5.0);
        let total = used + free * (members.len() as f64 - 1.0).max(0.0);
        let mut at = left + (width - total) / 2.0;
        for &shape in members {
            let shape = &mut self.shapes[shape];
            shape.x = at + (shape.width + GAP) / 2.0;
            shape.y = y;
            at += shape.width + GAP + free;
        }
    }

    /// Places the numbers of parallel links, where they cover no other text and no box.
    pub(super) fn place_counts(&mut self) {
        let mut taken = self.labels();
        let boxes = self.shapes.iter().map(|shape| Label {
            text: String::new(),
            left: shape.x - shape.width / 2.0,
            top: shape.y - shape.height / 2.0,
            width: shape.width,
            height: shape.height,
        });
        taken.extend(boxes);
        for cable in self.cables.iter().filter(|cable| cable.links.len() > 1) {
            let [a, b] = cable.shapes.map(|shape| &self.shapes[shape]);
            if (a.kind, b.kind) != (Kind::Switch, Kind::Switch) || (a.y - b.y).abs() < 1.0 {
                continue;
            }
            // Along the line, from its middle to both ends.
            let places = [0.5, 0.4, 0.6, 0.3, 0.7].map(|part| {
                let (x, y) = (a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part);
                centred(&format!("×{}", cable.links.len()), x, y)
            });
            if let Some(free) = places.into_iter().find(|place| taken.iter().all(|other| !place.overlaps(other))) {
                taken.push(free.clone());
                self.counts.push(free);
            }
        }
    }
}
