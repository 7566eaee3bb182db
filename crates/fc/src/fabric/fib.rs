//! Forwarding table of a switch: [`Fib`].

use super::delta::{Decision, DropReason, Egress, FibDelta, Leg, PortMode};
use super::hash::{below, mix, salted};
use super::key_set::KeySet;
use crate::config::IslChoice;
use sanloom_wire::FcId;
use std::collections::BTreeSet;

/// Forwarding table of a switch.
///
/// [`decide`](Fib::decide) runs once per frame. It reads the mode of the ingress port, the owner of
/// the S_ID, and the owner of the D_ID or the legs of its domain (two loads). With zoning it also
/// makes one or two probes of a hash set.
///
/// N_Port_IDs may be in any area. An area with one N_Port_ID, as for an F_Port without NPIV, keeps
/// its owner in a table small enough to stay in the cache for every switch of a large fabric. An
/// area with more has a page of owners.
#[derive(Clone, Debug)]
pub struct Fib {
    /// [`NO_DOMAIN`] while the switch has no domain.
    domain: u8,
    zoning: bool,
    isl_choice: IslChoice,
    /// Mixed into the hashes of `isl_choice`; 0 for none.
    salt: u64,
    epoch: u64,
    modes: Box<[PortMode]>,
    /// FL_Ports, which have mode F.
    loop_ports: BTreeSet<u16>,
    areas: Box<[Area; 256]>,
    /// Owning port by page and port byte; [`NO_OWNER`] without an owner. Page 0 is always empty.
    owners: Vec<[u16; 256]>,
    /// Number of owned N_Port_IDs by page; an empty page is reused.
    page_ids: Vec<u16>,
    /// Distinct lists of legs; the first one is empty. Most domains behind one neighbour share the
    /// same legs.
    lists: Vec<Box<[Leg]>>,
    /// Index in `lists` by domain.
    list_of: Box<[u16; 256]>,
    /// Representative of each ingress port for the choice of a leg: the first port of its bundle.
    ingress: Box<[u16]>,
    /// Leg to which each port belongs.
    leg_of: Box<[Leg]>,
    /// Permitted pairs of S_ID and D_ID, each packed into one key.
    pairs: KeySet,
    /// N_Port_IDs in the open default zone.
    default_zone: KeySet,
    work: FibWork,
}

/// Work done on a [`Fib`] since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FibWork {
    /// Deltas applied, including those without effect.
    pub deltas: u64,
    /// Permissions and default-zone entries written or removed.
    pub permissions: u64,
}

/// Domain byte that no port address has.
const NO_DOMAIN: u8 = 0;

/// Marks an N_Port_ID without an owner; port numbers are below it.
const NO_OWNER: u16 = u16::MAX;

/// Owners of the N_Port_IDs of an area.
#[derive(Clone, Copy, Debug)]
struct Area {
    /// Page of the owners; 0 while the area has at most one N_Port_ID.
    page: u16,
    /// Owner of the only N_Port_ID; [`NO_OWNER`] if there is none.
    owner: u16,
    /// Port byte of the only N_Port_ID.
    port: u8,
}

impl Area {
    const EMPTY: Area = Area { page: 0, owner: NO_OWNER, port: 0 };
}

impl Fib {
    /// Returns a table without routes, N_Port_IDs and permissions, with all ports down and zoning
    /// off. Domain 0 means none.
    pub fn new(domain: u8, ports: u16, isl_choice: IslChoice) -> Fib {
        Fib {
            domain,
            zoning: false,
            isl_choice,
            salt: 0,
            epoch: 0,
            modes: vec![PortMode::Down; usize::from(ports)].into(),
            loop_ports: BTreeSet::new(),
            areas: Box::new([Area::EMPTY; 256]),
            owners: vec![[NO_OWNER; 256]],
            page_ids: vec![0],
            lists: vec![Box::default()],
            list_of: Box::new([0; 256]),
            ingress: (0..ports).collect(),
            leg_of: (0..ports).map(Leg::Port).collect(),
            pairs: KeySet::default(),
            default_zone: KeySet::default(),
            work: FibWork::default(),
        }
    }

    /// Mixes `salt` into the hashes that choose a leg, so that the choices of two switches are
    /// independent. 0 means no salt.
    pub fn with_salt(self, salt: u64) -> Fib {
        Fib { salt: if salt == 0 { 0 } else { mix(salt) | 1 }, ..self }
    }

    /// Decides about a frame that entered through port `ingress`. The result is constant for the
    /// same arguments until [`epoch`](Fib::epoch) changes.
    ///
    /// At an F_Port the S_ID must belong to the port. The only exception is a FLOGI or FDISC, S_ID
    /// 0 to FFFFFE (FC-LS, fabric login), or from 0000xx at an FL_Port. Hard zoning is checked in
    /// the switch that owns the D_ID, which is also the ingress switch when both are local.
    /// Services are always reachable.
    ///
    /// No frame returns over its ingress leg. While switches disagree on paths, two switches that
    /// forward frames to each other would fill all buffers in between, and these would stay blocked
    /// until the hold time is over.
    #[inline(always)]
    pub fn decide(&self, ingress: u16, s_id: FcId, d_id: FcId, ox_id: u16) -> Decision {
        match self.modes.get(usize::from(ingress)) {
            Some(PortMode::F) => {
                if self.owner_of(s_id) != ingress {
                    return if d_id == FcId::F_PORT && self.may_log_in(ingress, s_id) {
                        Decision::Local
                    } else {
                        Decision::Drop(DropReason::BadSourceId)
                    };
                }
            }
            Some(PortMode::E) => {}
            Some(PortMode::Isolated) if d_id == FcId::FABRIC_CONTROLLER => return Decision::Local,
            Some(PortMode::Isolated | PortMode::Down) | None => return Decision::Drop(DropReason::PortDown),
        }
        if d_id.domain() == self.domain {
            let owner = self.owner_of(d_id);
            if owner == NO_OWNER {
                return Decision::Drop(DropReason::UnknownDestination);
            }
            if self.zoning && !self.permits(s_id, d_id) {
                return Decision::Drop(DropReason::ZoneDenied);
            }
            return Decision::Forward(Egress::Port(owner));
        }
        if d_id.domain() == WELL_KNOWN && d_id.is_well_known() {
            // FFFCdd is the domain controller of domain dd; any other well-known address is a
            // service of the ingress switch.
            let controller_of = d_id.port();
            if d_id.area() != DOMAIN_CONTROLLERS || controller_of == self.domain {
                return Decision::Local;
            }
            return self.route(ingress, s_id, d_id, ox_id, controller_of);
        }
        self.route(ingress, s_id, d_id, ox_id, d_id.domain())
    }

    /// Applies a change. A delta without effect changes nothing, including [`epoch`](Fib::epoch). A
    /// delta for a port or N_Port_ID that this switch does not have is ignored.
    pub fn apply(&mut self, delta: &FibDelta) {
        self.work.deltas += 1;
        let changed = match *delta {
            FibDelta::PortMode { port, mode } => match self.modes.get_mut(usize::from(port)) {
                Some(current) => std::mem::replace(current, mode) != mode,
                None => false,
            },
            FibDelta::LoopPort { port, is_loop: true } => {
                usize::from(port) < self.modes.len() && self.loop_ports.insert(port)
            }
            FibDelta::LoopPort { port, is_loop: false } => self.loop_ports.remove(&port),
            FibDelta::OwnId { port, id } => usize::from(port) < self.modes.len() && self.set_owner(id, port),
            FibDelta::RemoveId { id } => self.set_owner(id, NO_OWNER),
            FibDelta::Permit { s, d } => self.count(|fib| fib.pairs.insert(pair(s, d))),
            FibDelta::Revoke { s, d } => self.count(|fib| fib.pairs.remove(pair(s, d))),
            FibDelta::JoinDefaultZone { id } => self.count(|fib| fib.default_zone.insert(u64::from(id.to_u32()))),
            FibDelta::LeaveDefaultZone { id } => self.count(|fib| fib.default_zone.remove(u64::from(id.to_u32()))),
            FibDelta::Domain { domain } => self.set_domain(domain.unwrap_or(NO_DOMAIN)),
            FibDelta::ZoningOn => !std::mem::replace(&mut self.zoning, true),
            FibDelta::ZoningOff => {
                self.pairs.clear();
                self.default_zone.clear();
                std::mem::replace(&mut self.zoning, false)
            }
            FibDelta::Routes { domain, ref legs } => self.set_legs(domain, legs),
        };
        self.epoch += u64::from(changed);
    }

    /// Counter of effective changes. A driver may cache results of [`decide`](Fib::decide) while it
    /// is constant.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Legs of a spray group, sorted by port number. The list is not empty for a group that
    /// [`decide`](Fib::decide) returned since the last change. The group number of a domain is the
    /// domain itself.
    pub fn spray_members(&self, group: u16) -> &[Leg] {
        u8::try_from(group).map_or(&[], |domain| self.legs(domain))
    }

    /// Legs towards a domain, sorted by port number.
    #[inline]
    pub fn legs(&self, domain: u8) -> &[Leg] {
        &self.lists[usize::from(self.list_of[usize::from(domain)])]
    }

    /// Port that owns an N_Port_ID of this domain.
    pub fn port_of(&self, id: FcId) -> Option<u16> {
        Some(self.owner_of(id)).filter(|&port| port != NO_OWNER)
    }

    /// Owned N_Port_IDs with their ports, sorted.
    pub fn ids(&self) -> impl Iterator<Item = (FcId, u16)> + '_ {
        (0..=255u8).flat_map(move |area| {
            (0..=255u8)
                .map(move |port| FcId::from_parts(self.domain, area, port))
                .filter_map(|id| self.port_of(id).map(|owner| (id, owner)))
        })
    }

    /// Returns true if hard zoning permits frames from `s` to `d`. Valid only in the switch that
    /// owns `d`.
    #[inline]
    pub fn permits(&self, s: FcId, d: FcId) -> bool {
        !self.zoning
            || self.pairs.contains(pair(s, d))
            || (self.default_zone.contains(u64::from(d.to_u32())) && self.default_zone.contains(u64::from(s.to_u32())))
    }

    /// Permitted pairs of S_ID and D_ID, sorted, without those of the default zone.
    pub fn permitted_pairs(&self) -> Vec<(FcId, FcId)> {
        let ids = |key: u64| (FcId::new((key >> 24) as u32), FcId::new(key as u32));
        self.pairs.sorted().into_iter().map(ids).collect()
    }

    /// N_Port_IDs in the open default zone, sorted.
    pub fn default_zone(&self) -> Vec<FcId> {
        let ids = self.default_zone.sorted();
        ids.into_iter().map(|key| FcId::new(key as u32)).collect()
    }

    /// Makes frames that enter through `port` use the same leg as those through `first`. Both ports
    /// belong to one bundle, and the frames of one exchange arrive over all its links. Ports that
    /// do not exist are ignored.
    pub fn join_bundle(&mut self, port: u16, first: u16, bundle: u16) {
        if let Some(ingress) = self.ingress.get_mut(usize::from(port)) {
            *ingress = first;
            self.leg_of[usize::from(port)] = Leg::Bundle(bundle);
        }
    }

    /// Returns true if a frame that entered through `ingress` would return over its ingress leg. A
    /// driver that sprays frames then takes another leg.
    #[inline]
    pub fn leads_back(&self, ingress: u16, leg: Leg) -> bool {
        self.leg_of.get(usize::from(ingress)) == Some(&leg)
    }

    /// Raises the number of ports to `ports`, never lowers it; the new ports are down.
    pub fn grow(&mut self, ports: u16) {
        let (mut modes, mut ingress, mut leg_of) = (self.modes.to_vec(), self.ingress.to_vec(), self.leg_of.to_vec());
        modes.resize(usize::from(ports).max(modes.len()), PortMode::Down);
        leg_of.extend((ingress.len() as u16..ports).map(Leg::Port));
        ingress.extend(ingress.len() as u16..ports);
        (self.modes, self.ingress, self.leg_of) = (modes.into(), ingress.into(), leg_of.into());
    }

    /// Work done on the table since its creation.
    pub fn work(&self) -> FibWork {
        self.work
    }

    /// Memory of the tables that grow with logins and permissions, in bytes.
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.owners) + self.pairs.bytes() + self.default_zone.bytes()
    }

    /// Number of permissions and default-zone entries.
    pub fn permissions(&self) -> usize {
        self.pairs.len() + self.default_zone.len()
    }

    #[inline]
    fn owner_of(&self, id: FcId) -> u16 {
        if id.domain() != self.domain {
            return NO_OWNER;
        }
        let area = &self.areas[usize::from(id.area())];
        if area.page != 0 {
            return self.owners[usize::from(area.page)][usize::from(id.port())];
        }
        if area.port == id.port() { area.owner } else { NO_OWNER }
    }

    /// Returns true for the S_ID of a FLOGI: 0, or 0000xx at an FL_Port.
    fn may_log_in(&self, ingress: u16, s_id: FcId) -> bool {
        s_id == FcId::ZERO || s_id.to_u32() <= 0xff && self.loop_ports.contains(&ingress)
    }

    #[inline]
    fn route(&self, ingress: u16, s_id: FcId, d_id: FcId, ox_id: u16, domain: u8) -> Decision {
        let legs = self.legs(domain);
        let chosen = match *legs {
            [] => return Decision::Drop(DropReason::NoRoute),
            [only] if self.leads_back(ingress, only) => return Decision::Drop(DropReason::NoRoute),
            [only] => only,
            _ => {
                let number = match self.isl_choice {
                    IslChoice::Ingress => usize::from(self.ingress[usize::from(ingress)]) % legs.len(),
                    IslChoice::DevicePair => below(salted(mix(pair(s_id, d_id)), self.salt), legs.len()),
                    IslChoice::Exchange => {
                        let key = pair(s_id, d_id) ^ u64::from(ox_id) << 48;
                        below(salted(mix(key), self.salt), legs.len())
                    }
                    IslChoice::Spray | IslChoice::LeastLoaded => {
                        return Decision::Forward(Egress::Spray(u16::from(domain)));
                    }
                };
                if self.leads_back(ingress, legs[number]) { legs[(number + 1) % legs.len()] } else { legs[number] }
            }
        };
        Decision::Forward(match chosen {
            Leg::Port(port) => Egress::Port(port),
            Leg::Bundle(bundle) => Egress::Bundle(bundle),
        })
    }

    /// Applies a change and counts it if it was effective.
    fn count(&mut self, change: impl FnOnce(&mut Fib) -> bool) -> bool {
        let changed = change(self);
        self.work.permissions += u64::from(changed);
        changed
    }

    fn set_legs(&mut self, domain: u8, legs: &[Leg]) -> bool {
        if self.legs(domain) == legs {
            return false;
        }
        let known = self.lists.iter().position(|list| **list == *legs);
        // The new list reuses the slot of a list that no domain uses. The first list stays empty.
        let number = known.unwrap_or_else(|| {
            self.list_of[usize::from(domain)] = 0;
            let unused = (1..self.lists.len()).find(|&list| self.list_of.iter().all(|&used| usize::from(used) != list));
            let number = unused.unwrap_or(self.lists.len());
            self.lists.resize(self.lists.len().max(number + 1), Box::default());
            self.lists[number] = legs.into();
            number
        });
        self.list_of[usize::from(domain)] = number as u16;
        true
    }

    fn set_domain(&mut self, domain: u8) -> bool {
        if self.domain == domain {
            return false;
        }
        self.domain = domain;
        *self.areas = [Area::EMPTY; 256];
        self.owners.truncate(1);
        self.page_ids.truncate(1);
        true
    }

    fn set_owner(&mut self, id: FcId, owner: u16) -> bool {
        if id.domain() != self.domain || self.domain == NO_DOMAIN || self.owner_of(id) == owner {
            return false;
        }
        let number = usize::from(id.area());
        let area = &mut self.areas[number];
        if area.page == 0 {
            if area.owner == NO_OWNER || area.port == id.port() {
                *area = Area { page: 0, owner, port: id.port() };
                return true;
            }
            // For the second N_Port_ID of the area, both move to a page.
            let only = *area;
            let page = self.free_page();
            self.areas[number] = Area { page: page as u16, ..Area::EMPTY };
            self.owners[page][usize::from(only.port)] = only.owner;
            self.page_ids[page] = 1;
        }
        let page = usize::from(self.areas[number].page);
        let before = std::mem::replace(&mut self.owners[page][usize::from(id.port())], owner);
        if before == NO_OWNER {
            self.page_ids[page] += 1;
        } else if owner == NO_OWNER {
            self.page_ids[page] -= 1;
            if self.page_ids[page] == 0 {
                self.areas[number] = Area::EMPTY;
            }
        }
        true
    }

    fn free_page(&mut self) -> usize {
        let free = self.page_ids.iter().skip(1).position(|&ids| ids == 0);
        free.map(|found| found + 1).unwrap_or_else(|| {
            self.owners.push([NO_OWNER; 256]);
            self.page_ids.push(0);
            self.owners.len() - 1
        })
    }
}

/// Domain byte of the well-known addresses.
const WELL_KNOWN: u8 = 0xff;
/// Area byte of the domain controllers.
const DOMAIN_CONTROLLERS: u8 = 0xfc;

#[inline]
fn pair(s: FcId, d: FcId) -> u64 {
    u64::from(s.to_u32()) << 24 | u64::from(d.to_u32())
}
