//! The table of registered host adapters.

use super::grid::{Column, Grid};
use crate::report::format::clean;
use sanloom_api::view::FdmiView;

/// One line for each port of an adapter.
pub(super) fn adapters(out: &mut String, table: &FdmiView, width: usize) {
    if table.adapters.is_empty() {
        out.push_str("no host adapter has registered with the management service\n");
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("switch"),
        Column::left("adapter"),
        Column::left("owner"),
        Column::left("port").rank(3),
        Column::left("FC_ID").rank(1),
        Column::left("manufacturer").rank(4),
        Column::left("model"),
        Column::left("driver").rank(1),
        Column::left("firmware").rank(3),
        Column::left("speed").rank(3),
        Column::left("device").rank(2),
        Column::left("host").rank(1),
        Column::left("operating system").rank(4),
    ]);
    for row in &table.adapters {
        for port in &row.ports {
            grid.row(vec![
                clean(&row.switch),
                row.adapter.clone(),
                clean(&row.owner),
                port.port_name.clone(),
                port.port_id.clone(),
                clean(&row.manufacturer),
                clean(&row.model),
                clean(&row.driver_version),
                clean(&row.firmware_version),
                port.speed.clone(),
                clean(&port.os_device_name),
                clean(&port.host_name),
                clean(&row.os),
            ]);
        }
    }
    out.push_str(&grid.render(width));
}
