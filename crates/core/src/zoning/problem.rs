//! What can be wrong with a zone database or an edit of it: [`ZoneProblem`].

use super::database::ObjectKind;
use super::limits::Limit;

/// A mistake in a zone database or an edit of one, for a person who can mend it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum ZoneProblem {
    /// A name with a character that names may not have, or none at the beginning.
    #[error("`{name}` cannot be the name of {}: a name starts with a letter; letters, digits and $ - ^ _ follow", kind.with_article())]
    BadName {
        /// What has the name.
        kind: ObjectKind,
        /// The name.
        name: String,
    },
    /// A name that is too long.
    #[error("the name `{name}` of {} has {chars} characters; at most {max} are allowed", kind.with_article())]
    NameTooLong {
        /// What has the name.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// Its length.
        chars: usize,
        /// The limit.
        max: usize,
    },
    /// Two objects have one name.
    #[error("the name `{name}` is already that of {}", by.with_article())]
    NameTaken {
        /// The name.
        name: String,
        /// What has it.
        by: ObjectKind,
    },
    /// An object that is not there.
    #[error("there is no {kind} `{name}`")]
    NotFound {
        /// What was looked for.
        kind: ObjectKind,
        /// Its name.
        name: String,
    },
    /// A member that is not in the list that it was to be taken from.
    #[error("`{member}` is not in {kind} `{name}`")]
    NotAMember {
        /// What has the list.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// The member.
        member: String,
    },
    /// An object without members.
    #[error("{kind} `{name}` is empty")]
    Empty {
        /// What is empty.
        kind: ObjectKind,
        /// Its name.
        name: String,
    },
    /// A peer zone without members that are no principals.
    #[error("peer zone `{zone}` has principals only, so it permits nothing")]
    OnlyPrincipals {
        /// The zone.
        zone: String,
    },
    /// A zone names an alias that is not defined.
    #[error("zone `{zone}` names the alias `{alias}`, which is not defined")]
    UnknownAlias {
        /// The zone.
        zone: String,
        /// The alias.
        alias: String,
    },
    /// A configuration names a zone that is not defined.
    #[error("configuration `{config}` names the zone `{zone}`, which is not defined")]
    UnknownZone {
        /// The configuration.
        config: String,
        /// The zone.
        zone: String,
    },
    /// An object with more members than a switch takes.
    #[error("{kind} `{name}` has {members} members; at most {max} are allowed")]
    TooManyMembers {
        /// What has them.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// How many.
        members: usize,
        /// The limit.
        max: usize,
    },
    /// A database larger than a switch takes.
    #[error("the zone database has {size} {limit}; at most {max} are allowed")]
    TooLarge {
        /// What there is too much of.
        limit: Limit,
        /// How much there is.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// The database changed after the transaction began.
    #[error("the zone database changed after this transaction began")]
    Stale,
    /// Nothing was committed that could be rolled back.
    #[error("there is no earlier zone database to go back to")]
    NothingToRollBack,
}
