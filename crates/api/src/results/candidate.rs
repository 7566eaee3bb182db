//! Remedies that have not been tried yet: [`Candidate`].

/// A change of the lab that may remedy a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Candidate {
    /// The change in words.
    pub what: String,
    /// Keys of the lab file with their new values.
    pub set: Vec<(String, String)>,
}
