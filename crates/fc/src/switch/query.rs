//! Visibility of name-server objects: soft zoning, scopes, reply sizes.

use super::Work;
use super::database::{Database, Known, scope};
use sanloom_wire::ct::{CtReason, CtReject};
use sanloom_wire::ns::{NsAccept, explanation};
use sanloom_wire::{FcId, Wwnn};

/// Objects that a query selects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Domain; 0 selects all domains.
    pub(super) domain: u8,
    /// Area; 0 selects all areas of the domain.
    pub(super) area: u8,
    /// True if only FCP targets can match, so that only they are examined.
    pub(super) targets_only: bool,
}

/// Number of sequential object reads that take as long as one search by name.
const SEARCH_COST: usize = 8;

/// Objects that soft zoning shows to one port, and the work to find them.
pub(super) struct Query<'d> {
    pub(super) objects: &'d Database,
    /// The port that sent the query.
    pub(super) viewer: FcId,
    pub(super) work: &'d mut Work,
}

impl<'d> Query<'d> {
    /// Object of an N_Port_ID, if it is listed and visible.
    pub(super) fn visible(&mut self, id: FcId) -> Option<&'d Known> {
        self.work.objects += 1;
        let viewer = self.objects.get(self.viewer)?;
        let known = self.objects.get(id)?;
        self.objects.may_see(viewer, known).then_some(known)
    }

    /// Visible objects that satisfy `condition`, sorted by N_Port_ID. For a zoned viewer the cost
    /// is proportional to the number of its zone-mates.
    pub(super) fn visible_objects(
        &mut self,
        filter: Filter,
        condition: impl Fn(&Known) -> bool,
    ) -> Vec<(FcId, &'d Known)> {
        let objects = self.objects;
        let ids = scope(filter.domain, filter.area);
        let Some(viewer) = objects.get(self.viewer) else {
            return Vec::new();
        };
        // For a port that may see nearly all objects, a scan is faster than one search per
        // zone-mate.
        let few = objects.zones().mates_bound(&viewer.membership) <= objects.len() / SEARCH_COST;
        if viewer.membership.is_zoned() && few {
            let (mates, examined) = objects.zones().mates(&viewer.membership);
            self.work.zone_members += examined as u64;
            let mut seen = objects.ids_of(&mates);
            if let Err(at) = seen.binary_search(&self.viewer) {
                seen.insert(at, self.viewer);
            }
            return seen
                .into_iter()
                .filter(|id| ids.contains(id))
                .filter_map(|id| Some((id, objects.get(id)?)))
                .filter(|(_, known)| known.entry.listed && condition(known))
                .collect();
        }
        let mut pick = |(_, known): &(FcId, &Known)| {
            self.work.objects += 1;
            objects.may_see(viewer, known) && condition(known)
        };
        if filter.targets_only {
            objects.targets(ids).filter(&mut pick).collect()
        } else {
            objects.range(ids).filter(&mut pick).collect()
        }
    }

    /// Visible objects of a node, sorted by N_Port_ID.
    pub(super) fn visible_of_node(&mut self, node: Wwnn) -> Vec<(FcId, &'d Known)> {
        let Some(viewer) = self.objects.get(self.viewer) else {
            return Vec::new();
        };
        let visible = |(_, known): &(FcId, &Known)| {
            self.work.objects += 1;
            self.objects.may_see(viewer, known)
        };
        self.objects.of_node(node).filter(visible).collect()
    }

    /// Next visible object after `id`; wraps around after the last one.
    pub(super) fn next_visible(&mut self, id: FcId) -> Option<FcId> {
        let objects = self.objects;
        let viewer = objects.get(self.viewer)?;
        let after = FcId::new((id.to_u32() + 1).min(FcId::BROADCAST.to_u32()))..=FcId::BROADCAST;
        let up_to = FcId::ZERO..=id;
        objects
            .range(after)
            .chain(objects.range(up_to))
            .inspect(|_| self.work.objects += 1)
            .find(|(_, known)| objects.may_see(viewer, known))
            .map(|(next, _)| next)
    }
}

impl Database {
    /// Returns true if soft zoning shows the object to `viewer`. A port always sees itself.
    pub(super) fn may_see(&self, viewer: &Known, known: &Known) -> bool {
        known.entry.listed
            && (viewer.entry.port_id == known.entry.port_id
                || self.zones().permitted(&viewer.membership, &known.membership))
    }
}

/// Truncates an accept to the requester's limit, in words without the preamble; 0 means no limit.
/// The second value is the number of words left out. A record is never split, and an accept that
/// cannot be shortened is rejected.
pub(super) fn fit(accept: NsAccept, max_words: u16) -> Result<(NsAccept, u16), CtReject> {
    let words = accept.encoded_len().div_ceil(4);
    let max = usize::from(max_words);
    if max == 0 || words <= max {
        return Ok((accept, 0));
    }
    let mut accept = accept;
    let kept = match &mut accept {
        NsAccept::PortIds(ids) => shorten(ids, words, max),
        NsAccept::PortNames(names) => shorten(names, words, max),
        NsAccept::NodeNames(names) => shorten(names, words, max),
        _ => 0,
    };
    if kept == 0 {
        return Err(CtReject::new(CtReason::INVALID_SIZE, explanation::NONE));
    }
    Ok((accept, u16::try_from(words - kept).unwrap_or(u16::MAX)))
}

/// Keeps as many of the records, which together have `words` words, as fit into `max_words`.
/// Returns the size of the kept ones in words.
fn shorten<T>(records: &mut Vec<T>, words: usize, max_words: usize) -> usize {
    // All records of a list have the same length, at least one word.
    let record_words = (words / records.len().max(1)).max(1);
    records.truncate(max_words / record_words);
    records.len() * record_words
}
