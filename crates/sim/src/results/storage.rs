//! Results of storage systems.

use super::view::{View, latency};
use crate::world::{ControllerCount, Disks, StorageNode};
use sanloom_api::results::measure::{mean_level, per_s};
use sanloom_api::results::{AdapterResult, ControllerResult, DiskResult, GatewayResult, StorageResult};
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
                    cpu_utilisation: count.busy,
                }),
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
