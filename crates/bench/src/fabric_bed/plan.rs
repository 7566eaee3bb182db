//! Size and zones of a fabric: [`FabricPlan`].

use sanloom_fc::config::CostRule;
use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use sanloom_fc::domain::DomainConfig;
use sanloom_fc::fabric::ZoneSet;
use sanloom_fc::fabric_switch::{FabricSwitchConfig, IslConfig};
use sanloom_fc::fspf::FspfConfig;
use sanloom_fc::names::NamesConfig;
use sanloom_fc::switch::{Addressing, Policy, SwitchConfig};
use sanloom_fc::zoning::server::ZoneServerConfig;
use sanloom_fc::zoning::{ZoneDatabase, Zones};
use sanloom_scsi::time::Span;
use sanloom_wire::sw_ils::FlowControl;
use sanloom_wire::{Wwnn, Wwpn};
use std::sync::Arc;

/// Size and zones of a fabric. Every tenth N_Port is the principal of a peer zone. The zone has 99
/// other N_Ports as members, or all others if there are fewer.
#[derive(Clone, Debug)]
pub struct FabricPlan {
    switches: usize,
    ports: usize,
    later: usize,
    zoning: Arc<Zoning>,
    zones: Arc<ZoneSet>,
    database: Zones,
    /// Initial zones of all switches except the first one; they receive the zones over their links.
    nothing: Zones,
}

/// Members of a peer zone besides its principal.
const MEMBERS: usize = 99;
/// Number of N_Ports per principal.
const PER_PRINCIPAL: usize = 10;
/// Number of switches per core switch.
const PER_CORE: usize = 30;
const E_D_TOV: Span = Span::from_secs(2);
const R_A_TOV: Span = Span::from_secs(10);

impl FabricPlan {
    /// Returns a fabric of 1 to 239 switches and `ports` N_Ports. The zones also include `later`
    /// N_Ports that log in later.
    pub fn new(switches: usize, ports: usize, later: usize) -> FabricPlan {
        let zoning = zoning(ports, later);
        let database = Zones::new(ZoneDatabase::of_zoning(&zoning, "fabric"));
        FabricPlan {
            switches,
            ports,
            later,
            zones: database.index(),
            nothing: database.successor(ZoneDatabase { default_zone: zoning.default, ..ZoneDatabase::default() }),
            database,
            zoning: Arc::new(zoning),
        }
    }

    /// Returns the number of zones.
    pub fn zone_count(&self) -> usize {
        self.zoning.zones.len()
    }

    pub(super) fn zones(&self) -> &ZoneSet {
        &self.zones
    }

    pub(super) fn zoning(&self) -> &Zoning {
        &self.zoning
    }

    pub(super) fn database(&self) -> &ZoneDatabase {
        self.database.database()
    }

    /// Returns the number of initial N_Ports.
    pub(super) fn ports(&self) -> usize {
        self.ports
    }

    /// Returns the number of all N_Ports, including those that log in later.
    pub(super) fn names(&self) -> usize {
        self.ports + self.later
    }

    pub(super) fn is_principal(&self, n_port: usize) -> bool {
        n_port < self.zone_count()
    }

    /// Returns the number of ports of a switch for N_Ports, which are its first ports.
    pub(super) fn n_port_ports(&self) -> u16 {
        self.names().div_ceil(self.switches) as u16
    }

    /// Returns switch and port of an N_Port.
    pub(super) fn place(&self, n_port: usize) -> (usize, u16) {
        (n_port % self.switches, (n_port / self.switches) as u16)
    }

    pub(super) fn n_port_at(&self, node: usize, port: u16) -> usize {
        usize::from(port) * self.switches + node
    }

    /// Returns the other ends of the links of each switch. Their ports follow those of N_Ports.
    pub(super) fn cables(&self) -> Vec<Vec<(usize, u16)>> {
        let core = self.switches.div_ceil(PER_CORE).max(2).min(self.switches);
        let in_core = (0..core).flat_map(|a| (a + 1..core).map(move |b| (a, b)));
        let to_edge = (core..self.switches).flat_map(|edge| [(edge % core, edge), ((edge + 1) % core, edge)]);
        let mut ends: Vec<Vec<(usize, u16)>> = vec![Vec::new(); self.switches];
        for (a, b) in in_core.chain(to_edge) {
            let port = |ends: &[(usize, u16)]| self.n_port_ports() + ends.len() as u16;
            let (at_a, at_b) = (port(&ends[a]), port(&ends[b]));
            ends[a].push((b, at_b));
            ends[b].push((a, at_a));
        }
        ends
    }

    pub(super) fn config(&self, number: usize, ports: u16) -> FabricSwitchConfig {
        let name = Wwnn(0x1000_0000_0000_0001 + number as u64);
        let database = if number == 0 { &self.database } else { &self.nothing };
        FabricSwitchConfig {
            services: SwitchConfig {
                domain: None,
                name,
                fabric_name: name,
                ports,
                e_d_tov: E_D_TOV,
                r_a_tov: R_A_TOV,
                rscn_delay: Span::from_ms(5),
                bb_credit: vec![16; usize::from(ports)],
                bb_sc_n: Vec::new(),
                receive_size_bytes: 2112,
                zoning: database.index(),
                policy: Policy { addressing: Addressing::Flat, ..Policy::default() },
            },
            domain: DomainConfig {
                switch_name: name,
                priority: 128,
                preferred: None,
                insistent: false,
                allow_rcf: false,
                auto_reconfigure: false,
                f_s_tov: Span::from_secs(5),
            },
            zones: ZoneServerConfig::default(),
            database: database.clone(),
            fspf: FspfConfig::default(),
            cost_rule: CostRule::Standard,
            names: NamesConfig::default(),
            flow_control: vec![FlowControl::R_RDY],
            isls: vec![
                IslConfig { bytes_per_s: 1_600_000_000, bb_credit: 16, bb_sc_n: 0, bundle: None };
                usize::from(ports)
            ],
        }
    }
}

/// Returns the port name of an N_Port.
pub(super) fn port_name(n_port: usize) -> Wwpn {
    Wwpn(0x2100_0024_ff00_0000 + n_port as u64)
}

fn zoning(ports: usize, later: usize) -> Zoning {
    let principals = ports.div_ceil(PER_PRINCIPAL);
    let others = ports + later - principals;
    let member = |n_port| ZoneMember::PortName(port_name(n_port));
    // Zones and members are in the order that a merge produces, so that a merge does not change
    // them.
    let zone = |number: usize| {
        // N_Ports are distributed to the zones in turn, all equally often.
        let dealt = (0..MEMBERS.min(others)).map(|n| principals + (number * MEMBERS + n) % others);
        let mut members: Vec<ZoneMember> = dealt.map(member).collect();
        members.sort_unstable();
        Zone { name: format!("zone{number:05}"), members, principals: vec![member(number)] }
    };
    Zoning { zones: (0..principals).map(zone).collect(), default: ZoneDefault::Closed }
}
