//! The switch's own domain, which may come late and may go: logins wait for it and end with it.
//!
//! ```text
//!                 FLOGI: held, the latest of each port                  FLOGI: answered
//!                  +-----+                                               +-----+
//!                  |     v            Domain: held FLOGIs answered       |     v
//!                 no domain ----------------------------------------> domain
//!                      ^                                                 |
//!                      +-------------------------------------------------+
//!                        no domain, or another: LOGO to the N_Ports, every login gone
//! ```

use super::Switch;
use super::login::DOMAINS;
use crate::fabric::FibDelta;
use crate::time::Instant;
use sanloom_wire::els::{Els, Logo};
use sanloom_wire::{FcId, Header, Message, login};

/// A FLOGI that waits for the switch to have a domain.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) header: Header,
    pub(super) request: login::Login,
}

impl Switch {
    pub(super) fn set_domain(&mut self, now: Instant, domain: Option<u8>) {
        let domain = domain.filter(|domain| DOMAINS.contains(domain));
        if domain == self.domain {
            return;
        }
        for port in 0..self.config.ports {
            self.tell_to_log_in_again(port);
            self.log_out_port(now, port);
        }
        if let Some(domain) = domain {
            // Whoever had it before has it no more.
            if self.reachable.set(domain, false) {
                self.fib(FibDelta::Routes { domain, legs: Vec::new() });
            }
            self.remove_domain(now, domain);
        }
        self.domain = domain;
        self.database.set_domain(domain);
        self.addresses.set_domain(domain);
        self.fib(FibDelta::Domain { domain });
        if domain.is_some() {
            for port in 0..self.config.ports {
                if let Some(held) = self.ports[usize::from(port)].held.take() {
                    self.link_service(now, port, &held.header, Els::Flogi(held.request));
                }
            }
        }
    }

    /// Keeps the latest FLOGI of a port: an N_Port that sends another has given up the one before.
    pub(super) fn hold(&mut self, port: u16, header: &Header, request: &login::Login) {
        self.counters.logins_held += 1;
        self.ports[usize::from(port)].held = Some(Box::new(Held { header: *header, request: request.clone() }));
    }

    /// LOGO from the F_Port: a Linux host answers it by a new FLOGI, and the virtual ports follow their base.
    fn tell_to_log_in_again(&mut self, port: u16) {
        let state = &self.ports[usize::from(port)];
        if let Some(id) = state.base.or(state.ids.first().copied()) {
            let logo = Logo { port_id: FcId::F_PORT, port_name: self.f_port_name(port) };
            let ox_id = self.rscn.ox_id();
            self.request(port, FcId::F_PORT, id, ox_id, Message::Els(Box::new(Els::Logo(logo))));
        }
    }
}
