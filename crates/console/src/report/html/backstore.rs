//! Tables of caches, RAID groups, disks and SSDs behind the controllers of storage systems, and of
//! lost data.

use super::table::ALL_IN_JSON;
use super::{Cell, Table};
use sanloom_api::results::{Results, StorageResult};

const ROWS: usize = 500;

/// All tables that have rows.
pub fn tables(results: &Results) -> String {
    [
        losses(results),
        adapters(results),
        controllers(results),
        caches(results),
        groups(results),
        disks(results),
        ssds(results),
    ]
    .concat()
}

/// Returns a table below its heading, or nothing for a table without rows.
fn titled(title: &str, rows: usize, table: &Table) -> String {
    if rows == 0 {
        return String::new();
    }
    format!("<h3>{title}</h3>\n{}", table.html())
}

/// Name of a disk or SSD.
fn device(storage: &StorageResult, lun: u32, member: u32) -> String {
    match storage.raid.is_empty() {
        true => format!("{}:lun{lun}", storage.name),
        false => format!("{}:lun{lun}:{member}", storage.name),
    }
}

fn losses(results: &Results) -> String {
    let mut table = Table::new("losses")
        .text("LUN")
        .number("At")
        .text("Request")
        .number("Block")
        .number("Blocks")
        .text("Result")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for storage in &results.storage {
        for loss in storage.data_loss.iter().flat_map(|losses| &losses.first_requests) {
            rows += 1;
            table.row(vec![
                Cell::text(&format!("{}:lun{}", storage.name, loss.lun)),
                Cell::number(loss.at_s, format!("{:.6} s", loss.at_s)),
                Cell::text(if loss.write { "write" } else { "read" }),
                Cell::count(loss.block),
                Cell::count(loss.blocks.into()),
                Cell::text(&loss.reason).class("bad"),
            ]);
        }
    }
    titled("Lost requests, the first of each storage system", rows, &table)
}

fn adapters(results: &Results) -> String {
    let mut table = Table::new("adapters")
        .text("Adapters of")
        .number("Bus busy")
        .number("Interrupts")
        .number("Processor busy")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for (name, adapters) in results.storage.iter().filter_map(|of| Some((&of.name, of.adapters.as_ref()?))) {
        rows += 1;
        table.row(vec![
            Cell::text(name),
            Cell::share(adapters.bus_utilisation, "load"),
            Cell::count(adapters.interrupts),
            Cell::share(adapters.cpu_utilisation, "load"),
        ]);
    }
    titled("Adapters of storage systems", rows, &table)
}

fn controllers(results: &Results) -> String {
    let mut table = Table::new("controllers")
        .text("Controller")
        .text("State")
        .number("LUNs")
        .number("Commands")
        .number("Forwarded")
        .number("Takeovers")
        .number("Busy")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for (storage, controller) in results.storage.iter().flat_map(|of| of.controllers.iter().map(move |one| (of, one))) {
        rows += 1;
        let state = match controller.works {
            true => Cell::text("works"),
            false => Cell::text("failed").class("bad"),
        };
        table.row(vec![
            Cell::text(&format!("{}:controller{}", storage.name, controller.controller)),
            state,
            Cell::count(controller.luns.into()),
            Cell::count(controller.commands),
            Cell::count(controller.forwarded),
            Cell::count(controller.takeovers),
            Cell::share(controller.utilisation, "load"),
        ]);
    }
    titled("Controllers", rows, &table)
}

fn caches(results: &Results) -> String {
    let mut table = Table::new("caches")
        .text("Cache of")
        .number("Reads")
        .number("Hits")
        .number("Read ahead, used")
        .number("Writes")
        .number("Coalesced")
        .number("Destages")
        .number("KiB each")
        .number("Stalls")
        .number("Dirty KiB")
        .number("Lost KiB")
        .cap(ROWS, ALL_IN_JSON);
    let caches: Vec<_> = results.storage.iter().filter_map(|of| Some((&of.name, of.cache.as_ref()?))).collect();
    for (name, cache) in &caches {
        table.row(vec![
            Cell::text(name),
            Cell::count(cache.reads),
            Cell::share(cache.read_hit_share, "load"),
            Cell::share(cache.read_ahead_used_share, "load"),
            Cell::count(cache.writes),
            Cell::share(cache.coalesced_share, "load"),
            Cell::count(cache.destages),
            Cell::number(cache.blocks_per_destage / 2.0, format!("{:.1}", cache.blocks_per_destage / 2.0)),
            Cell::count(cache.stalls),
            Cell::count(cache.dirty_blocks / 2),
            Cell::bad_count(cache.lost_blocks / 2),
        ]);
    }
    titled("Caches", caches.len(), &table)
}

fn groups(results: &Results) -> String {
    let mut table = Table::new("raid")
        .text("RAID group")
        .text("Condition")
        .number("Requests")
        .number("Lost")
        .number("Wrong")
        .number("Disk reads")
        .number("Disk writes")
        .number("Read-modify-write")
        .number("Reconstruct")
        .number("Full stripe")
        .number("Degraded")
        .number("Rebuilt")
        .number("Unreadable blocks")
        .number("Repaired blocks")
        .number("Inconsistent stripes")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for (storage, group) in results.storage.iter().flat_map(|of| of.raid.iter().map(move |group| (of, group))) {
        rows += 1;
        table.row(vec![
            Cell::text(&format!("{}:lun{}", storage.name, group.lun)),
            Cell::text(&group.condition).class(if group.condition == "optimal" { "" } else { "bad" }),
            Cell::count(group.requests),
            Cell::bad_count(group.lost_requests),
            Cell::bad_count(group.wrong_requests),
            Cell::count(group.disk_reads),
            Cell::count(group.disk_writes),
            Cell::count(group.read_modify_writes),
            Cell::count(group.reconstruct_writes),
            Cell::count(group.full_stripes),
            Cell::count(group.degraded),
            group.rebuilt.map_or_else(|| Cell::text("–"), |part| Cell::share(part, "load")),
            Cell::bad_count(group.unreadable_blocks),
            Cell::count(group.repaired_blocks),
            Cell::bad_count(group.inconsistent_stripes),
        ]);
    }
    titled("RAID groups", rows, &table)
}

fn disks(results: &Results) -> String {
    let mut table = Table::new("disks")
        .text("Disk")
        .text("Model")
        .number("Commands")
        .number("Busy")
        .number("Hits")
        .number("Response ms")
        .number("Queue")
        .number("Overhead")
        .number("Seek")
        .number("Rotation")
        .number("Medium")
        .number("Bus")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for (storage, disk) in results.storage.iter().flat_map(|of| of.disks.iter().map(move |disk| (of, disk))) {
        rows += 1;
        let ms = |ms: f64| Cell::number(ms, format!("{ms:.3}"));
        let hits = (disk.read_hits + disk.cached_writes) as f64 / disk.commands.max(1) as f64;
        table.row(vec![
            Cell::text(&device(storage, disk.lun, disk.member)),
            Cell::text(&disk.model),
            Cell::count(disk.commands),
            Cell::share(disk.utilisation, "load"),
            Cell::share(hits, "load"),
            ms(disk.response_ms),
            ms(disk.queue_ms),
            ms(disk.overhead_ms),
            ms(disk.seek_ms),
            ms(disk.rotation_ms),
            ms(disk.medium_ms),
            ms(disk.bus_ms),
        ]);
    }
    titled("Disks", rows, &table)
}

fn ssds(results: &Results) -> String {
    let mut table = Table::new("ssds")
        .text("SSD")
        .text("Model")
        .number("Reads")
        .number("Read")
        .number("Writes")
        .number("Write")
        .number("Dies busy")
        .number("Collecting")
        .number("Write amplification")
        .number("Erases")
        .number("Stalls")
        .cap(ROWS, ALL_IN_JSON);
    let mut rows = 0;
    for (storage, ssd) in results.storage.iter().flat_map(|of| of.ssds.iter().map(move |ssd| (of, ssd))) {
        rows += 1;
        table.row(vec![
            Cell::text(&device(storage, ssd.lun, ssd.member)),
            Cell::text(&ssd.model),
            Cell::count(ssd.reads),
            Cell::us(ssd.read_response_us),
            Cell::count(ssd.writes),
            Cell::us(ssd.write_response_us),
            Cell::share(ssd.utilisation, "load"),
            Cell::share(ssd.collection, "load"),
            Cell::number(ssd.write_amplification, format!("{:.2}", ssd.write_amplification)),
            Cell::count(ssd.erases),
            Cell::count(ssd.stalls),
        ]);
    }
    titled("SSDs", rows, &table)
}
