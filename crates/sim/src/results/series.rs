//! Time series of the results.

use super::view::View;
use crate::stats::{Counts, Step, warm_up};
use crate::world::LaneStep;
use sanloom_api::results::measure::{mean_level, mean_us, per_s, ratio, s_of_ps};
use sanloom_api::results::{HostSeries, LinkSeries, PlaneLinkSeries, Series, StorageSeries, TotalSeries};

/// Returns time series with equal steps over the whole run. Hosts and lanes may have merged their
/// steps a different number of times; the coarser interval applies to all.
pub(super) fn series(view: &View<'_>) -> Series {
    let world = view.world;
    let sample_ps = world.lab.run.sample_interval.0.max(1);
    let of_hosts = world.hosts.nodes.iter().map(|host| host.measured.series.interval_ps()).max().unwrap_or(0);
    let interval_ps = of_hosts.max(sample_ps.saturating_mul(world.lane_series.samples_per_step())).max(1);
    let run_ps = world.run_ps();
    let steps = run_ps.div_ceil(interval_ps) as usize;
    let lengths: Vec<u64> = (0..steps as u64).map(|step| interval_ps.min(run_ps - step * interval_ps)).collect();
    let lane_steps = lane_steps(view, interval_ps, steps);
    let mut total = vec![Step::default(); steps];
    let mut hosts = Vec::with_capacity(world.hosts.nodes.len());
    for (host, config) in world.hosts.nodes.iter().zip(&world.lab.hosts) {
        let own = &host.measured.series;
        let mut joined = vec![Step::default(); steps];
        for (index, step) in own.steps().iter().enumerate() {
            // A request that ends exactly at the end of the run belongs to the last step.
            let at = (index as u64 * own.interval_ps() / interval_ps) as usize;
            if let Some(last) = steps.checked_sub(1) {
                add(&mut joined[at.min(last)], step);
                add(&mut total[at.min(last)], step);
            }
        }
        let (throughput_bytes_per_s, iops, latency_mean_us) = rates(&joined, &lengths);
        hosts.push(HostSeries { name: config.name.clone(), throughput_bytes_per_s, iops, latency_mean_us });
    }
    let (throughput_bytes_per_s, iops, latency_mean_us) = rates(&total, &lengths);
    Series {
        interval_s: s_of_ps(interval_ps),
        steps: steps as u64,
        total: TotalSeries {
            throughput_bytes_per_s,
            iops,
            latency_mean_us,
            frames_dropped: lane_steps.iter().map(|step| step.dropped).collect(),
        },
        hosts,
        links: links(view, &lane_steps),
        plane_links: plane_links(view, &lane_steps),
        storage: storage(view, &lane_steps),
    }
}

/// Returns the end of the warm-up, see [`sanloom_api::results::LabInfo::settled_s`].
pub(super) fn settled_s(view: &View<'_>, series: &Series) -> Option<f64> {
    let lab = &view.world.lab;
    let disturbances = lab.faults.iter().map(|fault| fault.at).chain(lab.changes.iter().map(|change| change.at));
    let ends_ps = disturbances.chain(lab.run.stop_issuing).map(|at| at.0);
    let end_ps = ends_ps.chain([view.world.run_ps()]).min()?;
    let complete = (s_of_ps(end_ps) / series.interval_s) as usize;
    let observations = [&series.total.iops, &series.total.latency_mean_us];
    let settled = observations.map(|values| warm_up(&values[..complete.min(values.len())]));
    let [requests, latency] = settled;
    Some(requests?.max(latency?) as f64 * series.interval_s)
}

fn add(sum: &mut Step, step: &Step) {
    sum.bytes += step.bytes;
    sum.ios += step.ios;
    sum.latency_sum_ps = sum.latency_sum_ps.saturating_add(step.latency_sum_ps);
}

fn rates(steps: &[Step], lengths: &[u64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let per_step =
        |value: fn(&Step) -> u64| steps.iter().zip(lengths).map(|(step, &length)| per_s(value(step), length)).collect();
    let latency = steps.iter().map(|step| mean_us(u128::from(step.latency_sum_ps), step.ios)).collect();
    (per_step(|step| step.bytes), per_step(|step| step.ios), latency)
}

/// Returns the steps of lanes and storage, merged to the interval of the results and including the
/// open step.
fn lane_steps(view: &View<'_>, interval_ps: u64, steps: usize) -> Vec<LaneStep> {
    let world = view.world;
    let nothing = LaneStep {
        end_ps: 0,
        length_ps: 0,
        busy_ps: Counts::zeros(world.net.fc.lanes().len()),
        credit_wait_ps: Counts::zeros(world.net.fc.lanes().len()),
        planes_ps: Counts::zeros(world.net.ethernet.lines().len() + world.net.infiniband.lines().len()),
        dropped: 0,
        storage_bytes: Counts::zeros(world.storage.systems.len()),
        storage_area: vec![0; world.storage.systems.len()],
    };
    let mut joined = vec![nothing; steps];
    for step in world.lane_series.steps().iter().chain(world.lane_series.open_step(&world.net, &world.storage).iter()) {
        let begin_ps = step.end_ps - step.length_ps - world.start_ps;
        if let Some(sum) = joined.get_mut((begin_ps / interval_ps) as usize) {
            sum.join(step);
        }
    }
    joined
}

fn links(view: &View<'_>, steps: &[LaneStep]) -> Vec<LinkSeries> {
    let lanes = view.world.net.fc.lanes().iter().zip(0u32..);
    lanes
        .map(|(_, number)| {
            let at = number as usize;
            // The time of each run of frames is rounded down to picoseconds.
            let busy = |step: &LaneStep| ratio(step.busy_ps.get(at).min(step.length_ps), step.length_ps);
            let wait = |step: &LaneStep| ratio(step.credit_wait_ps.get(at).min(step.length_ps), step.length_ps);
            LinkSeries {
                name: view.names.lane(number),
                from: view.names.port(view.names.from(number)),
                to: view.names.port(view.names.to(number)),
                utilisation: steps.iter().map(busy).collect(),
                credit_wait_fraction: steps.iter().map(wait).collect(),
            }
        })
        .collect()
}

/// Returns the series of the lines of Ethernet and InfiniBand.
fn plane_links(view: &View<'_>, steps: &[LaneStep]) -> Vec<PlaneLinkSeries> {
    let lab = &view.world.lab;
    let ethernet = lab.ethernet_links.iter().map(|link| (&link.name, link.ends.each_ref().map(|end| end.name(lab))));
    let infiniband =
        lab.infiniband.links.iter().map(|link| (&link.name, link.ends.each_ref().map(|end| end.name(lab))));
    let both = ethernet.chain(infiniband).flat_map(|(name, [first, second])| {
        let forward = (format!("{name}.forward"), first.clone(), second.clone());
        [forward, (format!("{name}.backward"), second, first)]
    });
    let one = |(number, (name, from, to)): (usize, (String, String, String))| PlaneLinkSeries {
        name,
        from,
        to,
        // A frame counts in the step in which it begins.
        utilisation: (steps.iter())
            .map(|step| ratio(step.planes_ps.get(number).min(step.length_ps), step.length_ps))
            .collect(),
    };
    both.enumerate().map(one).collect()
}

fn storage(view: &View<'_>, steps: &[LaneStep]) -> Vec<StorageSeries> {
    let storage = view.world.lab.storage.iter().enumerate();
    storage
        .map(|(at, config)| StorageSeries {
            name: config.name.clone(),
            throughput_bytes_per_s: steps.iter().map(|s| per_s(s.storage_bytes.get(at), s.length_ps)).collect(),
            queue_mean: steps.iter().map(|s| mean_level(s.storage_area[at], s.length_ps)).collect(),
        })
        .collect()
}
