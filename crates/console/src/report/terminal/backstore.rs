//! Tables of what is behind the controllers of storage systems: caches, RAID groups and disks.

use super::*;

pub(super) fn tables(out: &mut String, results: &Results, width: usize) {
    adapters(out, results, width);
    controllers(out, results, width);
    caches(out, results, width);
    groups(out, results, width);
    disks(out, results, width);
    ssds(out, results, width);
    loops(out, results);
    losses(out, results);
}

/// A line for each storage system whose disks share loops.
fn loops(out: &mut String, results: &Results) {
    for storage in &results.storage {
        if let Some(share) = storage.disk_loop_utilisation {
            let _ = writeln!(
                out,
                "\nBusiest loop of disks of {}: occupied for {} of the time",
                storage.name,
                percent(share)
            );
        }
    }
}

/// A line for each storage system that has lost data.
fn losses(out: &mut String, results: &Results) {
    for storage in &results.storage {
        let Some(loss) = &storage.data_loss else { continue };
        let parts = [
            (loss.lost_requests, plural(loss.lost_requests, "lost request")),
            (loss.wrong_reads, format!("{} of wrong data", plural(loss.wrong_reads, "read"))),
            (loss.lost_blocks, format!("{} lost in caches", plural(loss.lost_blocks, "acknowledged block"))),
            (loss.damaged_stripes, format!("damaged data in {}", plural(loss.damaged_stripes, "stripe"))),
        ];
        let parts: Vec<&str> = parts.iter().filter(|(count, _)| *count > 0).map(|(_, words)| words.as_str()).collect();
        if !parts.is_empty() {
            let _ = writeln!(out, "\nData loss of {}: {}", storage.name, parts.join(", "));
        }
    }
}

fn adapters(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().filter_map(|s| Some((&s.name, s.adapters.as_ref()?))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Adapters"),
        Column::right("bus busy"),
        Column::right("interrupts"),
        Column::right("processor busy"),
    ]);
    for (name, adapters) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            (*name).clone(),
            percent(adapters.bus_utilisation),
            grouped(adapters.interrupts),
            percent(adapters.cpu_utilisation),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn controllers(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().flat_map(|s| s.controllers.iter().map(move |of| (&s.name, of))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Controllers"),
        Column::left("state"),
        Column::right("LUNs"),
        Column::right("commands"),
        Column::right("forwarded"),
        Column::right("takeovers"),
        Column::right("busy"),
    ]);
    for (name, controller) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            format!("{name}:controller{}", controller.controller),
            if controller.works { "works" } else { "failed" }.to_owned(),
            grouped(controller.luns.into()),
            grouped(controller.commands),
            grouped(controller.forwarded),
            grouped(controller.takeovers),
            percent(controller.utilisation),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn caches(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().filter_map(|s| Some((&s.name, s.cache.as_ref()?))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Caches"),
        Column::right("reads"),
        Column::right("hits"),
        Column::right("read ahead, used").rank(3),
        Column::right("writes"),
        Column::right("coalesced"),
        Column::right("destages"),
        Column::right("KiB each").rank(2),
        Column::right("stalls"),
        Column::right("dirty KiB").rank(1),
        Column::right("lost KiB"),
    ]);
    for (name, cache) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            (*name).clone(),
            grouped(cache.reads),
            percent(cache.read_hit_share),
            percent(cache.read_ahead_used_share),
            grouped(cache.writes),
            percent(cache.coalesced_share),
            grouped(cache.destages),
            format!("{:.1}", cache.blocks_per_destage / 2.0),
            grouped(cache.stalls),
            grouped(cache.dirty_blocks / 2),
            grouped(cache.lost_blocks / 2),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn groups(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().flat_map(|s| s.raid.iter().map(move |group| (&s.name, group))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("RAID"),
        Column::left("condition"),
        Column::right("requests"),
        Column::right("lost"),
        Column::right("disk reads"),
        Column::right("disk writes"),
        Column::right("read-modify-write"),
        Column::right("reconstruct").rank(2),
        Column::right("full stripe").rank(1),
        Column::right("degraded"),
        Column::right("rebuilt"),
    ]);
    for (name, group) in rows.iter().take(MAX_ROWS) {
        let rebuilt = match group.rebuilt {
            Some(part) => percent(part),
            None => "-".to_owned(),
        };
        grid.row(vec![
            format!("{name}:lun{}", group.lun),
            group.condition.clone(),
            grouped(group.requests),
            grouped(group.lost_requests),
            grouped(group.disk_reads),
            grouped(group.disk_writes),
            grouped(group.read_modify_writes),
            grouped(group.reconstruct_writes),
            grouped(group.full_stripes),
            grouped(group.degraded),
            rebuilt,
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn disks(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().flat_map(|s| s.disks.iter().map(move |disk| (s, disk))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Disks"),
        Column::left("model").rank(2),
        Column::right("commands"),
        Column::right("busy"),
        Column::right("hits"),
        Column::right("response ms"),
        Column::right("queue"),
        Column::right("overhead").rank(4),
        Column::right("seek"),
        Column::right("rotation"),
        Column::right("medium").rank(1),
        Column::right("bus").rank(3),
    ]);
    for (storage, disk) in rows.iter().take(MAX_ROWS) {
        let hits = (disk.read_hits + disk.cached_writes) as f64 / disk.commands.max(1) as f64;
        let ms = |ms: f64| format!("{ms:.3}");
        grid.row(vec![
            match storage.raid.is_empty() {
                true => format!("{}:lun{}", storage.name, disk.lun),
                false => format!("{}:lun{}:{}", storage.name, disk.lun, disk.member),
            },
            disk.model.clone(),
            grouped(disk.commands),
            percent(disk.utilisation),
            percent(hits),
            ms(disk.response_ms),
            ms(disk.queue_ms),
            ms(disk.overhead_ms),
            ms(disk.seek_ms),
            ms(disk.rotation_ms),
            ms(disk.medium_ms),
            ms(disk.bus_ms),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn ssds(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.storage.iter().flat_map(|s| s.ssds.iter().map(move |ssd| (s, ssd))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("SSDs"),
        Column::left("model").rank(3),
        Column::right("reads"),
        Column::right("read us"),
        Column::right("writes"),
        Column::right("write us"),
        Column::right("dies busy"),
        Column::right("collecting"),
        Column::right("amplification"),
        Column::right("erases").rank(1),
        Column::right("stalls").rank(2),
    ]);
    for (storage, ssd) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            match storage.raid.is_empty() {
                true => format!("{}:lun{}", storage.name, ssd.lun),
                false => format!("{}:lun{}:{}", storage.name, ssd.lun, ssd.member),
            },
            ssd.model.clone(),
            grouped(ssd.reads),
            format!("{:.0}", ssd.read_response_us),
            grouped(ssd.writes),
            format!("{:.0}", ssd.write_response_us),
            percent(ssd.utilisation),
            percent(ssd.collection),
            format!("{:.2}", ssd.write_amplification),
            grouped(ssd.erases),
            grouped(ssd.stalls),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}
