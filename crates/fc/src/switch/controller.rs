//! The fabric controller: registrations for state changes, and RSCNs to the registered ports.

use super::context::Context;
use super::database::Database;
use super::rscn::{Interest, Reply, RscnQueue};
use crate::fabric::ZoneMembership;
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason, Rscn};
use sanloom_wire::{FcId, Header};

/// SCR function that ends a registration.
const CLEAR_REGISTRATION: u8 = 0xff;

/// Sender of RSCNs.
#[derive(Debug)]
pub(super) struct FabricController {
    pub(super) queue: RscnQueue,
}

impl FabricController {
    /// Handles SCR (FC-LS, state change registration). Fabric login is the only requirement,
    /// because hosts register without PLOGI.
    pub(super) fn register(&mut self, id: FcId, function: u8) -> Result<LsAcc, LsRjt> {
        if function == CLEAR_REGISTRATION {
            self.queue.deregister(id);
            return Ok(LsAcc::Empty);
        }
        match Interest::of_function(function) {
            Some(interest) => {
                self.queue.register(id, interest);
                Ok(LsAcc::Empty)
            }
            None => Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::NONE)),
        }
    }

    /// Handles an RSCN from an N_Port about itself, and notifies the ports registered for
    /// N_Port-detected changes.
    ///
    /// Pages for other addresses are ignored, so that no port can make hosts log out of a third
    /// port.
    pub(super) fn reported_change(&mut self, cx: &mut Context<'_>, objects: &Database, id: FcId, rscn: &Rscn) {
        if rscn.pages.iter().any(|page| page.address == id)
            && let Some(known) = objects.get(id)
        {
            self.notify(cx, objects, id, &known.membership, true);
        }
    }

    /// Handles the reply of an N_Port to an RSCN.
    pub(super) fn reply(&mut self, cx: &mut Context<'_>, header: &Header, els: &Els) {
        match self.queue.reply(cx.now, header.s_id, header.ox_id, Reply::of(els)) {
            Reply::Accepted | Reply::Busy => {}
            Reply::Rejected => cx.out.counters.rscn_rejected += 1,
            Reply::Unknown => cx.out.discard(),
        }
    }

    /// Queues an RSCN page for each local port that may see the changed port.
    pub(super) fn notify(
        &mut self,
        cx: &mut Context<'_>,
        objects: &Database,
        id: FcId,
        membership: &ZoneMembership,
        by_n_port: bool,
    ) {
        for recipient in self.audience(cx, objects, id, membership) {
            let queued = self.queue.notify(cx.now, recipient, id, by_n_port);
            cx.out.work.notifications += u64::from(queued);
        }
    }

    /// Local ports that are registered for changes and may communicate with `id`, sorted, without
    /// `id` itself. The search covers its zone-mates or all registered ports, whichever are fewer.
    fn audience(&self, cx: &mut Context<'_>, objects: &Database, id: FcId, membership: &ZoneMembership) -> Vec<FcId> {
        let zones = objects.zones();
        let registered = self.queue.recipients();
        if membership.is_zoned() && zones.mates_bound(membership) < registered.len() {
            return objects.local_mates(cx.logins, id, membership, &mut cx.out.work);
        }
        cx.out.work.objects += registered.len() as u64;
        if !zones.permits_all() && !objects.may_have_own_mates(membership) {
            return Vec::new();
        }
        let may_see = |mate: &FcId| {
            zones.permits_all()
                || objects.get(*mate).is_some_and(|known| zones.permitted(membership, &known.membership))
        };
        registered.filter(|mate| *mate != id && may_see(mate)).collect()
    }

    /// Sends the RSCNs that are due.
    pub(super) fn send_due(&mut self, cx: &mut Context<'_>) {
        while let Some(due) = self.queue.due(cx.now) {
            let Some(port) = cx.logins.port_of(due.to) else {
                continue;
            };
            cx.out.counters.rscn_sent += 1;
            cx.out.counters.rscn_pages += due.rscn.pages.len() as u64;
            cx.out.counters.rscn_repeated += u64::from(due.repeated);
            cx.out.els_request(port, FcId::FABRIC_CONTROLLER, due.to, due.ox_id, Els::Rscn(due.rscn));
        }
    }
}
