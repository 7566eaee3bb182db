//! What a port gets to see of the name server: soft zoning, scopes, sizes.

use super::Switch;
use super::database::{Known, scope};
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{NsAccept, explanation};
use sanloom_wire::{FcId, Wwnn};

/// Objects that a query is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// 0: all domains.
    pub(super) domain: u8,
    /// 0: all areas of the domain.
    pub(super) area: u8,
    /// Only FCP targets can match, so only they need be looked at.
    pub(super) targets_only: bool,
}

/// Looks at objects in their order that take as long as one search by name.
const SEARCH_COST: usize = 8;

impl Switch {
    /// The object of an id, if it is listed and `viewer` may see it.
    pub(super) fn visible(&mut self, viewer: FcId, id: FcId) -> Option<&Known> {
        self.work.objects += 1;
        let viewer = self.database.get(viewer)?;
        let known = self.database.get(id)?;
        self.may_see(viewer, known).then_some(known)
    }

    /// The objects that `viewer` may see and that `wanted` picks, sorted by id. A viewer in a zone costs what its
    /// zone-mates are.
    pub(super) fn visible_objects(
        &mut self,
        viewer: FcId,
        filter: Filter,
        wanted: impl Fn(&Known) -> bool,
    ) -> Vec<(FcId, &Known)> {
        let ids = scope(filter.domain, filter.area);
        let Some(me) = self.database.get(viewer) else {
            return Vec::new();
        };
        // A port that may see nearly all is served faster by a look at each than by a search for each.
        let few = self.config.zoning.mates_bound(&me.place) <= self.database.len() / SEARCH_COST;
        if me.place.is_zoned() && few {
            let (mates, looked_at) = self.config.zoning.mates(&me.place);
            self.work.zone_members += looked_at as u64;
            let mut seen = self.database.ids_of(&mates);
            if let Err(at) = seen.binary_search(&viewer) {
                seen.insert(at, viewer);
            }
            return seen
                .into_iter()
                .filter(|id| ids.contains(id))
                .filter_map(|id| Some((id, self.database.get(id)?)))
                .filter(|(_, known)| known.entry.listed && wanted(known))
                .collect();
        }
        let mut looked_at = 0;
        let mut pick = |(_, known): &(FcId, &Known)| {
            looked_at += 1;
            self.may_see(me, known) && wanted(known)
        };
        let found = if filter.targets_only {
            self.database.targets(ids).filter(&mut pick).collect()
        } else {
            self.database.range(ids).filter(&mut pick).collect()
        };
        self.work.objects += looked_at;
        found
    }

    /// Objects of a node that `viewer` may see, sorted by id.
    pub(super) fn visible_of_node(&mut self, viewer: FcId, node: Wwnn) -> Vec<(FcId, &Known)> {
        let Some(me) = self.database.get(viewer) else {
            return Vec::new();
        };
        let mut looked_at = 0;
        let seen = |(_, known): &(FcId, &Known)| {
            looked_at += 1;
            self.may_see(me, known)
        };
        let found = self.database.of_node(node).filter(seen).collect();
        self.work.objects += looked_at;
        found
    }

    /// The next visible object after `id`, from the beginning again after the last one.
    pub(super) fn next_visible(&mut self, viewer: FcId, id: FcId) -> Option<FcId> {
        let me = self.database.get(viewer)?;
        let mut looked_at = 0;
        let after = FcId::new((id.to_u32() + 1).min(FcId::BROADCAST.to_u32()))..=FcId::BROADCAST;
        let up_to = FcId::ZERO..=id;
        let next = self
            .database
            .range(after)
            .chain(self.database.range(up_to))
            .inspect(|_| looked_at += 1)
            .find(|(_, known)| self.may_see(me, known))
            .map(|(next, _)| next);
        self.work.objects += looked_at;
        next
    }

    /// Soft zoning. A port sees itself.
    pub(super) fn may_see(&self, viewer: &Known, known: &Known) -> bool {
        let zones = &self.config.zoning;
        known.entry.listed
            && (viewer.entry.port_id == known.entry.port_id || zones.permitted(&viewer.place, &known.place))
    }

    /// Cuts an accept to the size that the requester takes, in words without the preamble; 0 is no limit. The second
    /// value is the number of words left out. A record is never cut, and what cannot be shortened is rejected.
    pub(super) fn fit(accept: NsAccept, max_words: u16) -> Result<(NsAccept, u16), CtReject> {
        let words = accept.encoded_len().div_ceil(4);
        let max = usize::from(max_words);
        if max == 0 || words <= max {
            return Ok((accept, 0));
        }
        let mut accept = accept;
        let kept = match &mut accept {
            NsAccept::PortIds(ids) => shorten(ids, max, 1),
            NsAccept::PortNames(names) => shorten(names, max, 4),
            NsAccept::NodeNames(names) => shorten(names, max, 4),
            _ => 0,
        };
        if kept == 0 {
            return Err(CtReject::new(CtReason::INVALID_SIZE, explanation::NONE));
        }
        Ok((accept, u16::try_from(words - kept).unwrap_or(u16::MAX)))
    }
}

/// Leaves as many records as fit, and says how many words they are.
fn shorten<T>(records: &mut Vec<T>, max_words: usize, record_words: usize) -> usize {
    records.truncate(max_words / record_words);
    records.len() * record_words
}
