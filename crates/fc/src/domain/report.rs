//! Changes for the other machines of the switch: [`Reported`].

use super::Output;
use super::domain_list::{DomainList, Owners};
use super::links::Links;
use super::outbox::Outbox;
use super::selection::Claim;
use sanloom_wire::Wwnn;

/// Last reported values.
#[derive(Default, Debug)]
pub(super) struct Reported {
    principal: Option<(Wwnn, u8)>,
    domains: Owners,
}

impl Reported {
    pub(super) fn domains(&self) -> &Owners {
        &self.domains
    }

    /// Reports the principal if it has changed.
    pub(super) fn report_principal(&mut self, claim: Claim, own_name: Wwnn, outbox: &mut Outbox) {
        let Claim { priority, name, .. } = claim;
        if self.principal == Some((name, priority)) {
            return;
        }
        let renamed = self.principal.is_none_or(|(before, _)| before != name);
        self.principal = Some((name, priority));
        outbox.report(Output::Principal { name, priority, ours: name == own_name });
        if renamed {
            outbox.report(Output::FabricName(name));
        }
    }

    /// Reports the domains if they have changed.
    pub(super) fn report_domains(&mut self, list: &DomainList, outbox: &mut Outbox) {
        let domains = list.published();
        if self.domains != domains {
            outbox.report(Output::Domains(domains.iter().map(|(&domain, &name)| (domain, name)).collect()));
            self.domains = domains;
        }
    }
}

/// Reports links that have become part of the fabric of `principal`.
pub(super) fn report_links(links: &mut Links, list: &DomainList, principal: Wwnn, outbox: &mut Outbox) {
    for (port, link) in links.iter_mut() {
        let joined = !link.ready && link.belongs_to(principal) && link.rebuild.is_none();
        if joined && list.domain_of(link.neighbour).is_some() {
            link.ready = true;
            outbox.report(Output::LinkReady { port });
        }
    }
}
