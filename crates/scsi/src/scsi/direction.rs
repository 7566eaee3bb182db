//! Direction of the data of a command: [`DataDirection`].

/// Direction in which the data of a command flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataDirection {
    /// No data.
    None,
    /// To the initiator.
    Read,
    /// To the target.
    Write,
}
