//! The switch's own domain, which may be assigned late and may be lost. Logins wait for it and end
//! with it.
//!
//! ```text
//!                 FLOGI: held, the latest of each port                  FLOGI: answered
//!                  +-----+                                               +-----+
//!                  |     v            Domain: held FLOGIs answered       |     v
//!                 no domain ----------------------------------------> domain
//!                      ^                                                 |
//!                      +-------------------------------------------------+
//!                        no domain, or another: LOGO to the N_Ports, every login removed
//! ```

use super::Switch;
use super::identity::DOMAINS;
use crate::fabric::FibDelta;
use sanloom_scsi::time::Instant;
use sanloom_wire::FcId;
use sanloom_wire::els::{Els, Logo};

impl Switch {
    pub(super) fn set_domain(&mut self, now: Instant, domain: Option<u8>) {
        let domain = domain.filter(|domain| DOMAINS.contains(domain));
        if domain == self.identity.domain {
            return;
        }
        for port in 0..self.logins.port_count() {
            self.request_login(port);
            self.log_out_port(now, port);
        }
        if let Some(domain) = domain {
            let (mut cx, directory, _) = self.services(now);
            directory.take_over(&mut cx, domain);
        }
        self.identity.domain = domain;
        self.directory.objects.set_domain(domain);
        self.addresses.set_domain(domain);
        self.out.fib(FibDelta::Domain { domain });
        if domain.is_some() {
            for port in 0..self.logins.port_count() {
                for held in self.logins.take_held(port) {
                    self.link_service(now, port, &held.header, Els::Flogi(held.request));
                }
            }
        }
    }

    /// Sends a LOGO from the F_Port. A Linux host replies with a new FLOGI, and its virtual ports
    /// log in again after their base port. An FL_Port sends one to each NL_Port.
    fn request_login(&mut self, port: u16) {
        let ids: Vec<FcId> = match self.logins.is_loop(port) {
            true => self.logins.at_port(port).collect(),
            false => self.logins.first_at(port).into_iter().collect(),
        };
        for id in ids {
            let logo = Logo { port_id: FcId::F_PORT, port_name: self.identity.f_port_name(port) };
            let ox_id = self.directory.controller.queue.ox_id();
            self.out.els_request(port, FcId::F_PORT, id, ox_id, Els::Logo(logo));
        }
    }
}
