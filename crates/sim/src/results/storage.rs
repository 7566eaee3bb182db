//! Results of storage systems.

use super::view::{View, latency};
use crate::world::{Disks, StorageNode};
use sanloom_api::results::measure::{mean_level, per_s};
use sanloom_api::results::{AdapterResult, DiskResult, StorageResult};
use sanloom_fc::config::Storage;

fn disks(view: &View<'_>, storage: &StorageNode, config: &Storage) -> Vec<DiskResult> {
    let disks = storage.controller.disks().zip(config.disk.as_ref());
    disks.map(|(disks, config)| disks.results(config, view.now_ps, view.measured_ps)).unwrap_or_default()
}

pub(super) fn storage(view: &View<'_>) -> Vec<StorageResult> {
    let pairs = view.world.storage.systems.iter().zip(&view.world.lab.storage);
    pairs
        .map(|(storage, config)| {
            let controller = &storage.controller;
            let ([reads, writes], [read_bytes, written_bytes]) = (storage.ios, storage.bytes);
            let busy_ps = controller.busy_ps(view.now_ps) / u128::from(config.service.servers.max(1));
            StorageResult {
                name: config.name.clone(),
                ios_completed: reads + writes,
                reads,
                writes,
                read_bytes,
                written_bytes,
                throughput_bytes_per_s: per_s(read_bytes + written_bytes, view.measured_ps),
                iops: per_s(reads + writes, view.measured_ps),
                utilisation: mean_level(busy_ps, view.measured_ps).min(1.0),
                queue: view.depth(&controller.depth),
                task_set_full: controller.refused,
                latency: latency(&controller.latency),
                waiting: latency(&controller.waiting),
                adapters: storage.adapters.as_deref().map(|adapters| AdapterResult {
                    bus_utilisation: adapters.bus_utilisation(view.now_ps),
                    cpu_utilisation: adapters.cpu_utilisation(view.now_ps),
                    interrupts: adapters.interrupts(),
                }),
                cache: controller.disks().and_then(Disks::cache),
                data_loss: controller.disks().map(|disks| disks.data_loss(view.world.start_ps)),
                raid: controller.disks().map(Disks::raid).unwrap_or_default(),
                disks: disks(view, storage, config),
                ssds: controller.disks().map(|disks| disks.ssds(view.now_ps, view.measured_ps)).unwrap_or_default(),
            }
        })
        .collect()
}
