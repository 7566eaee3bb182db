//! Problems of a zone database or of an edit: [`ZoneProblem`].

use super::database::ObjectKind;
use super::limits::Limit;

/// Error in a zone database or in an edit, described for the person who can correct it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum ZoneProblem {
    /// The name contains an invalid character or does not begin with a letter or `_`.
    #[error("`{name}` cannot be the name of {}: a name starts with a letter or _; letters, digits and $ - ^ _ follow", kind.with_article())]
    BadName {
        /// Kind of the named object.
        kind: ObjectKind,
        /// Invalid name.
        name: String,
    },
    /// The name is too long.
    #[error("the name `{name}` of {} has {chars} characters; at most {max} are allowed", kind.with_article())]
    NameTooLong {
        /// Kind of the named object.
        kind: ObjectKind,
        /// Name in full.
        name: String,
        /// Length in characters.
        chars: usize,
        /// Maximum length in characters.
        max: usize,
    },
    /// The name is already in use.
    #[error("the name `{name}` already belongs to {}", by.with_article())]
    NameTaken {
        /// Name in use.
        name: String,
        /// Kind of the object that has the name.
        by: ObjectKind,
    },
    /// The object does not exist.
    #[error("there is no {kind} `{name}`")]
    NotFound {
        /// Kind of the missing object.
        kind: ObjectKind,
        /// Name of the missing object.
        name: String,
    },
    /// The member to be removed is not in the list.
    #[error("`{member}` is not in {kind} `{name}`")]
    NotAMember {
        /// Kind of the object with the list.
        kind: ObjectKind,
        /// Name of the object with the list.
        name: String,
        /// Missing member.
        member: String,
    },
    /// The object has no members.
    #[error("{kind} `{name}` is empty")]
    Empty {
        /// Kind of the empty object.
        kind: ObjectKind,
        /// Name of the empty object.
        name: String,
    },
    /// The peer zone has only principals.
    #[error("peer zone `{zone}` has principals only, so it permits nothing")]
    OnlyPrincipals {
        /// Name of the zone.
        zone: String,
    },
    /// A zone refers to an undefined alias.
    #[error("zone `{zone}` names the alias `{alias}`, which is not defined")]
    UnknownAlias {
        /// Name of the zone.
        zone: String,
        /// Name of the undefined alias.
        alias: String,
    },
    /// A configuration refers to an undefined zone.
    #[error("configuration `{config}` names the zone `{zone}`, which is not defined")]
    UnknownZone {
        /// Name of the configuration.
        config: String,
        /// Name of the undefined zone.
        zone: String,
    },
    /// The object has more members than a switch accepts.
    #[error("{kind} `{name}` has {members} members; at most {max} are allowed")]
    TooManyMembers {
        /// Kind of the object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
        /// Number of members.
        members: usize,
        /// Maximum number of members.
        max: usize,
    },
    /// The database is larger than a switch accepts.
    #[error("the zone database has {size} {limit}; at most {max} are allowed")]
    TooLarge {
        /// Exceeded limit.
        limit: Limit,
        /// Actual size, in the unit of the limit.
        size: usize,
        /// Maximum size, in the unit of the limit.
        max: usize,
    },
    /// The database changed after the transaction began.
    #[error("the zone database changed after this transaction began")]
    Stale,
    /// There is no earlier database to roll back to.
    #[error("there is no earlier zone database to roll back to")]
    NothingToRollBack,
}
