//! Prediction and measurement of a lab.

use super::compare::{Compared, judge};
use super::fill::{Filled, fill};
use super::network::Network;
use sanloom_api::results::Results;
use sanloom_fc::config::Node;
use sanloom_fc::san::Lab;
use sanloom_sim::run::{Blind, Options, simulate};
use std::sync::Arc;

/// The fluid model of a lab.
pub struct Model {
    pub network: Network,
    pub filled: Filled,
}

impl Model {
    /// Solves the model of a lab.
    ///
    /// # Errors
    ///
    /// The reason why a fluid model does not describe the lab.
    pub fn new(lab: &Lab) -> Result<Model, String> {
        let network = Network::new(lab)?;
        let filled = fill(&network.stations, network.flows.len());
        if !filled.converged {
            return Err("water filling does not converge".to_owned());
        }
        Ok(Model { network, filled })
    }

    /// Compares requests per second of each flow, measured over `seconds`, with the model.
    ///
    /// # Errors
    ///
    /// One line for each deviation.
    pub fn judge(&self, measured: &[f64], seconds: f64) -> Result<Compared, String> {
        judge(&self.network, &self.filled, measured, seconds)
    }
}

/// Returns the requests per second of each flow in the results of a lab. The data frames on the
/// link of the host or of the storage system count, if they belong to this flow alone, because
/// requests are too long for a short run.
pub fn measure(lab: &Lab, network: &Network, results: &Results) -> Vec<f64> {
    let seconds = results.measured_s();
    let rate = |number: usize| {
        let flow = &network.flows[number];
        let alone = |same: fn(&super::network::Flow, &super::network::Flow) -> bool| {
            network.flows.iter().filter(|other| other.write == flow.write && same(other, flow)).count() == 1
        };
        let host_alone = alone(|a, b| a.host == b.host).then_some(Node::Host(flow.host));
        let disk_alone = alone(|a, b| a.storage == b.storage).then_some(Node::Storage(flow.storage));
        // The sender may fill buffers, so the receiver is preferred.
        let node = if flow.write { disk_alone.or(host_alone) } else { host_alone.or(disk_alone) };
        let Some(node) = node else {
            let name = &lab.hosts[usize::from(flow.host)].name;
            let stream = results.streams[flow.workload].hosts.iter().find(|host| host.name == *name);
            return stream.map_or(0.0, |stream| stream.iops);
        };
        let sends = flow.write == matches!(node, Node::Host(_));
        let data = lab.links.iter().zip(&results.links).find_map(|(link, result)| {
            let end = link.ends.iter().position(|end| end.node == node)?;
            Some(if (end == 0) == sends { result.forward.data_bytes } else { result.backward.data_bytes })
        });
        data.unwrap_or(0) as f64 / seconds / f64::from(flow.bytes)
    };
    (0..network.flows.len()).map(rate).collect()
}

/// Simulates a lab file and compares it with its model.
///
/// # Errors
///
/// The deviations, all rates, and the lab file.
pub fn report(text: &str) -> Result<Compared, String> {
    let with_lab = |what: String| format!("{what}\n{text}");
    let loaded = sanloom_lab::load("fluid.toml", text, &[]).map_err(|mistakes| with_lab(mistakes.render(false)))?;
    let lab = Arc::new(loaded.lab);
    let model = Model::new(&lab).map_err(with_lab)?;
    let results = simulate(&lab, &Options::default(), &mut Blind).results;
    let measured = measure(&lab, &model.network, &results);
    model.judge(&measured, results.measured_s()).map_err(|what| {
        let rate = |flow: usize| {
            let (expected, is) = (model.filled.rates[flow], measured[flow]);
            let mb = f64::from(model.network.flows[flow].bytes) / 1e6;
            format!("  flow {flow}: {:.1} MB/s, fluid {:.1} MB/s", is * mb, expected * mb)
        };
        let rates: Vec<String> = (0..measured.len()).map(rate).collect();
        with_lab(format!("{what}\n{}", rates.join("\n")))
    })
}

/// Returns the lab file without the workloads that are not needed for a deviation.
pub fn shrink(text: &str) -> String {
    let mut best = text.to_owned();
    while let Some(smaller) = without_one_workload(&best).into_iter().find(|smaller| report(smaller).is_err()) {
        best = smaller;
    }
    best
}

/// Returns the lab file once for each workload, without it. The last workload stays.
fn without_one_workload(text: &str) -> Vec<String> {
    let mut parts = text.split("[workload.");
    let head = parts.next().unwrap_or_default();
    let works: Vec<&str> = parts.collect();
    if works.len() < 2 {
        return Vec::new();
    }
    let without = |left_out: usize| {
        let kept = works.iter().enumerate().filter(|&(number, _)| number != left_out);
        std::iter::once(head.to_owned()).chain(kept.map(|(_, work)| format!("[workload.{work}"))).collect()
    };
    (0..works.len()).map(without).collect()
}
