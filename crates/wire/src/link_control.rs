//! Link control frames (FC-FS, link control): acknowledgements, busies and rejects. They carry no data field; their
//! content is R_CTL and the parameter word.

/// A link control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkControl {
    /// ACK_1.
    Ack1,
    /// ACK_0.
    Ack0,
    /// Reject by the N_Port.
    PRjt(Reject),
    /// Reject by the fabric.
    FRjt(Reject),
    /// Busy N_Port.
    PBsy(Reject),
    /// Busy fabric, in answer to a data frame.
    FBsy(Reject),
}

/// The parameter word of a reject or busy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reject {
    /// 1: may be tried again, 2: may not (P_RJT, F_RJT).
    pub action: u8,
    /// Reason code.
    pub reason: u8,
    /// Vendor specific.
    pub vendor: u8,
}
