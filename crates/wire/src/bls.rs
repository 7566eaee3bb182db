//! Basic link services (FC-FS, basic link services).

/// A basic link service; which one it is also stands in R_CTL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bls {
    /// No operation.
    Nop,
    /// Abort sequence or exchange; parameter bit 0 set: the sequence only.
    Abts,
    /// Basic accept of an ABTS.
    BaAcc(BaAcc),
    /// Basic reject.
    BaRjt(BaRjt),
}

/// Payload of BA_ACC, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BaAcc {
    /// SEQ_ID of the last deliverable sequence, where the recipient names one.
    pub seq_id: Option<u8>,
    /// Originator's exchange number.
    pub ox_id: u16,
    /// Responder's exchange number.
    pub rx_id: u16,
    /// Lowest aborted SEQ_CNT; 0 with `high_seq_cnt` FFFF: the whole exchange.
    pub low_seq_cnt: u16,
    /// Highest aborted SEQ_CNT.
    pub high_seq_cnt: u16,
}

/// Payload of BA_RJT, 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BaRjt {
    /// Reason code.
    pub reason: u8,
    /// Reason explanation.
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}
