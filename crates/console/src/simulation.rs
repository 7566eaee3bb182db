//! One simulation as its user requests it: [`Simulation`].

use crate::output::shell_word;
use crate::outputs::Sets;
use sanloom_api::results::{EthernetLinkResult, InfinibandLinkResult, LinkResult, Results};
use sanloom_fc::san::Lab;
use sanloom_lab::{LoadedLab, Override, topology};

/// Lab file and values of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// Lab file as the user named it; `-` if its text came from elsewhere.
    pub path: String,
    /// Values that override those of the file.
    pub sets: Sets,
    /// Seed, in place of that of the lab.
    pub seed: Option<u64>,
    /// Duration with its unit, in place of that of the lab.
    pub duration: Option<String>,
    /// Number of replications.
    pub replications: u32,
}

impl Simulation {
    /// All overrides of the lab file, in their order.
    pub fn overrides(&self) -> Vec<Override> {
        let set = |key: &str, value: String| Override { key: key.to_owned(), value };
        let seed = self.seed.map(|seed| set("run.seed", seed.to_string()));
        let duration = (self.duration.as_ref()).map(|duration| set("run.duration", duration.clone()));
        (self.sets.set.iter().cloned()).chain(seed).chain(duration).collect()
    }

    /// Adds facts unknown to the simulation: program, lab file, and the command that gives the same
    /// numbers.
    pub fn describe(&self, results: &mut Results, text: &str) {
        results.lab.sanloom_version = env!("CARGO_PKG_VERSION").into();
        results.lab.source = Some(text.to_owned());
        let mut command = format!("sanloom sim {}", shell_word(&self.path));
        command.push_str(&self.sets.arguments());
        if let Some(seed) = self.seed {
            command.push_str(&format!(" --seed {seed}"));
        }
        if let Some(duration) = &self.duration {
            command.push_str(&format!(" --duration {}", shell_word(duration)));
        }
        if self.replications > 1 {
            command.push_str(&format!(" --replications {}", self.replications));
        }
        results.lab.command = Some(command);
    }
}

/// The drawing of the topology. Links are coloured by the utilisation of their busier direction;
/// faults, causes and victims are marked.
pub fn coloured_topology(lab: &Lab, isolated: &[usize], results: &Results) -> String {
    // The links of all networks have one count: Fibre Channel, Ethernet, InfiniBand.
    let utilisation = |link: usize| {
        let fibre = results.links.get(link).map(LinkResult::utilisation);
        let on_ethernet = link.checked_sub(lab.links.len());
        let count = if lab.ethernet_is_implied() { 0 } else { lab.ethernet_links.len() };
        let ethernet = on_ethernet.filter(|link| *link < count);
        let ethernet = ethernet.and_then(|link| results.ethernet_links.get(link)).map(EthernetLinkResult::utilisation);
        let infiniband = on_ethernet.and_then(|link| link.checked_sub(count));
        let infiniband = infiniband.and_then(|link| results.infiniband_links.get(link));
        fibre.or(ethernet).or(infiniband.map(InfinibandLinkResult::utilisation)).unwrap_or(0.0)
    };
    let faults = results.faults.iter().flat_map(|fault| fault.link.iter().chain(&fault.node)).cloned().collect();
    let culprits = results.findings.iter().flat_map(|finding| finding.culprits.iter().chain(&finding.culprit));
    let culprits = culprits.cloned().collect();
    let victims =
        results.findings.iter().flat_map(|finding| &finding.victims).map(|victim| victim.name.clone()).collect();
    topology::marked_svg(lab, &topology::Marks { isolated, busy: Some(&utilisation), faults, culprits, victims })
}

/// Sentences on the redundancy of a lab, for its report.
pub fn redundancy(loaded: &LoadedLab) -> Vec<String> {
    topology::Report::of(&loaded.lab, &loaded.isolated).redundancy()
}
