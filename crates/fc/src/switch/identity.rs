//! Names, addresses and parameters that a switch announces: [`Identity`].

use super::SwitchConfig;
use super::names::{extended_name, port_name};
use sanloom_scsi::time::Span;
use sanloom_wire::els::{Adisc, LsAcc, Rtv};
use sanloom_wire::login::{ClassParameters, CommonParameters, feature};
use sanloom_wire::{FcId, Wwnn, Wwpn, login};
use std::ops::RangeInclusive;

/// Legal domains of a switch (FC-SW, domain identifiers).
pub(super) const DOMAINS: RangeInclusive<u8> = 1..=239;

/// Parameters of a switch that do not depend on its logins.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) name: Wwnn,
    pub(super) fabric_name: Wwnn,
    /// `None` until a domain is assigned, and after it is lost.
    pub(super) domain: Option<u8>,
    pub(super) e_d_tov: Span,
    pub(super) r_a_tov: Span,
    /// Receive buffers by port; ports beyond the list announce none.
    bb_credit: Vec<u16>,
    bb_sc_n: Vec<u8>,
    receive_size_bytes: u16,
}

impl Identity {
    /// Identity of a switch without a domain.
    pub(super) fn new(config: &SwitchConfig) -> Identity {
        Identity {
            name: config.name,
            fabric_name: config.fabric_name,
            domain: None,
            e_d_tov: config.e_d_tov,
            r_a_tov: config.r_a_tov,
            bb_credit: config.bb_credit.clone(),
            bb_sc_n: config.bb_sc_n.clone(),
            receive_size_bytes: config.receive_size_bytes,
        }
    }

    /// Returns true if the address is in the domain of this switch.
    pub(super) fn owns(&self, id: FcId) -> bool {
        Some(id.domain()) == self.domain
    }

    /// Name of an F_Port, see [`port_name`].
    pub(super) fn f_port_name(&self, port: u16) -> Wwpn {
        port_name(self.name, port)
    }

    /// Name of a service, by its well-known address.
    pub(super) fn service_name(&self, service: FcId) -> Wwpn {
        extended_name(self.name.0, service_number(service))
    }

    /// Service parameters of the F_Port (FC-LS, FLOGI accept).
    ///
    /// `clean` sets the clean-address bit: address and names are those of the previous login, so
    /// peers need not drop their state for the port first.
    pub(super) fn login_accept(&self, port: u16, clean: bool) -> LsAcc {
        let clean = if clean { feature::CLEAN_ADDRESS } else { 0 };
        LsAcc::Login(login::Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.bb_credit.get(usize::from(port)).copied().unwrap_or(0),
                features: feature::F_PORT | feature::NPIV_SUPPORTED | clean,
                bb_sc_n: self.bb_sc_n.get(usize::from(port)).copied().unwrap_or(0),
                receive_size_bytes: self.receive_size_bytes,
                word_8: milliseconds(self.r_a_tov),
                e_d_tov: milliseconds(self.e_d_tov),
            },
            port_name: self.f_port_name(port),
            node_name: self.fabric_name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: CLASS_3, ..ClassParameters::default() },
        })
    }

    /// Service parameters of an FL_Port: the alternative BB_Credit model, and no virtual ports.
    pub(super) fn loop_login_accept(&self, port: u16) -> LsAcc {
        let mut accept = self.login_accept(port, false);
        if let LsAcc::Login(login) = &mut accept {
            login.common.features = feature::F_PORT | feature::ALTERNATE_BB_CREDIT;
        }
        accept
    }

    /// Service parameters of a service (FC-LS, PLOGI accept).
    pub(super) fn service_parameters(&self, service: FcId) -> LsAcc {
        LsAcc::Login(login::Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: SERVICE_CREDIT,
                features: feature::CONTINUOUS_OFFSET,
                bb_sc_n: 0,
                receive_size_bytes: self.receive_size_bytes,
                word_8: u32::from(SERVICE_SEQUENCES) << 16 | RELATIVE_OFFSETS,
                e_d_tov: milliseconds(self.e_d_tov),
            },
            port_name: self.service_name(service),
            node_name: self.name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: CLASS_3,
                receive_size_bytes: self.receive_size_bytes,
                concurrent_sequences: SERVICE_SEQUENCES,
                open_sequences: 1,
                ..ClassParameters::default()
            },
        })
    }

    /// Accept of ADISC to a service.
    pub(super) fn service_address(&self, service: FcId) -> LsAcc {
        LsAcc::Adisc(Adisc {
            hard_address: FcId::ZERO,
            port_name: self.service_name(service),
            node_name: self.name,
            port_id: service,
        })
    }

    /// Accept of RTV.
    pub(super) fn timeouts(&self) -> LsAcc {
        LsAcc::Rtv(Rtv { r_a_tov_ms: milliseconds(self.r_a_tov), e_d_tov: milliseconds(self.e_d_tov), qualifier: 0 })
    }
}

/// FC-PH version in the common service parameters, as sent and expected by hosts.
const FC_PH_3: u8 = 0x20;
/// Class 3 is valid, with sequential delivery.
const CLASS_3: u16 = ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY;
/// Buffer-to-buffer credit in a service's parameters; unused, but never zero (FC-LS, common
/// parameters).
const SERVICE_CREDIT: u16 = 10;
/// Concurrent sequences that a service accepts from one port.
const SERVICE_SEQUENCES: u16 = 255;
/// Information categories that may use relative offsets: all of them.
const RELATIVE_OFFSETS: u32 = 0x1f;

/// Low twelve bits of a well-known address, used in the name of the service.
fn service_number(service: FcId) -> u16 {
    (service.to_u32() & 0xfff) as u16
}

fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.as_ms()).unwrap_or(u32::MAX)
}
