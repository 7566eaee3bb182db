//! Results of storage systems.

use super::view::{View, latency};
use crate::world::{ControllerCount, Disks, MetadataCount, StorageNode};
use sanloom_api::results::measure::{mean_level, mean_us, per_s, ratio, us_of_ps};
use sanloom_api::results::{AdapterResult, ControllerResult, DiskResult, GatewayResult, MetadataResult, StorageResult};
use sanloom_fc::config::Storage;

fn disks(view: &View<'_>, storage: &StorageNode, config: &Storage) -> Vec<DiskResult> {
    let disks = storage.controller.disks().zip(config.disk.as_ref());
    disks.map(|(disks, config)| disks.results(config, view.now_ps, view.measured_ps)).unwrap_or_default()
}

fn controllers(view: &View<'_>, storage: &StorageNode, config: &Storage) -> Vec<ControllerResult> {
    let Some(partners) = storage.controller.partners() else { return Vec::new() };
    let busy = storage.controller.busy_of_each_ps(view.now_ps).zip(partners.counts());
    let of = |(number, (busy_ps, count)): (u8, (u128, &ControllerCount))| ControllerResult {
        controller: number.into(),
        works: partners.works(number),
        luns: partners.units_of(number) as u32,
        commands: count.commands,
        forwarded: count.forwarded,
        takeovers: count.takeovers,
        utilisation: utilisation(view, busy_ps, config.service.servers),
    };
    (0..).zip(busy).map(of).collect()
}

fn metadata(view: &View<'_>, count: &MetadataCount<'_>) -> MetadataResult {
    let changes = count.changes;
    MetadataResult {
        hits: count.hits,
        misses: count.misses,
        hit_share: ratio(count.hits, count.hits + count.misses),
        miss_latency: latency(count.miss_latency),
        unanswered: count.unanswered,
        messages: count.served,
        repeated: count.repeated,
        queue: view.depth(count.queue),
        utilisation: mean_level(count.busy_ps.into(), view.measured_ps).min(1.0),
        epoch: count.epoch,
        changes: changes.count(),
        change_mean_us: mean_us(changes.sum(), changes.count()),
        change_max_us: changes.max().map_or(0.0, us_of_ps),
        useless_moves: count.useless,
        stalled: count.held,
        fenced: count.fenced,
        refused: count.refused,
    }
}

/// Returns the fraction of the time in which servers were busy, of `busy_ps` in all.
fn utilisation(view: &View<'_>, busy_ps: u128, servers: u32) -> f64 {
    mean_level(busy_ps / u128::from(servers.max(1)), view.measured_ps).min(1.0)
}

pub(super) fn storage(view: &View<'_>) -> Vec<StorageResult> {
    let pairs = view.world.storage.systems.iter().zip(&view.world.lab.storage);
    (0..)
        .zip(pairs)
        .map(|(number, (storage, config))| {
            let controller = &storage.controller;
            let ([reads, writes], [read_bytes, written_bytes]) = (storage.ios, storage.bytes);
            let servers = config.service.servers.saturating_mul(config.controllers.count.max(1).into());
            StorageResult {
                name: config.name.clone(),
                ios_completed: reads + writes,
                reads,
                writes,
                read_bytes,
                written_bytes,
                throughput_bytes_per_s: per_s(read_bytes + written_bytes, view.measured_ps),
                iops: per_s(reads + writes, view.measured_ps),
                utilisation: utilisation(view, controller.busy_ps(view.now_ps), servers),
                queue: view.depth(&controller.depth),
                task_set_full: controller.refused,
                latency: latency(&controller.latency),
                waiting: latency(&controller.waiting),
                controllers: controllers(view, storage, config),
                gateway: crate::world::gateway_count(view.world, number).map(|count| GatewayResult {
                    conventional: count.conventional,
                    forwarded: count.forwarded,
                    recalled: count.recalled,
                    aborted: count.aborted,
                    unit_attentions: count.attentions,
                    logouts: count.logouts,
                    ended_sessions: count.ended_sessions,
                    cpu_utilisation: count.busy,
                }),
                metadata: crate::world::metadata_count(view.world, number).map(|count| metadata(view, &count)),
                adapters: storage.adapters.as_deref().map(|adapters| AdapterResult {
                    bus_utilisation: adapters.bus_utilisation(view.now_ps),
                    cpu_utilisation: adapters.cpu_utilisation(view.now_ps),
                    interrupts: adapters.interrupts(),
                }),
                disk_loop_utilisation: controller
                    .disks()
                    .and_then(|disks| disks.loop_utilisation(view.now_ps, view.measured_ps)),
                cache: controller.disks().and_then(Disks::cache),
                data_loss: controller.disks().map(|disks| disks.data_loss(view.world.start_ps)),
                raid: controller.disks().map(Disks::raid).unwrap_or_default(),
                disks: disks(view, storage, config),
                ssds: controller.disks().map(|disks| disks.ssds(view.now_ps, view.measured_ps)).unwrap_or_default(),
            }
        })
        .collect()
}
