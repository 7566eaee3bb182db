//! Command codes of the switch fabric internal link services (FC-SW).

use crate::codes::code_constants;

code_constants!(u8 {
    SW_RJT = 0x01, "SW_RJT";
    SW_ACC = 0x02, "SW_ACC";
    ELP = 0x10, "ELP";
    EFP = 0x11, "EFP";
    DIA = 0x12, "DIA";
    RDI = 0x13, "RDI";
    HLO = 0x14, "HLO";
    LSU = 0x15, "LSU";
    LSA = 0x16, "LSA";
    BF = 0x17, "BF";
    RCF = 0x18, "RCF";
    SW_RSCN = 0x1b, "SW_RSCN";
    DRLIR = 0x1e, "DRLIR";
    DSCN = 0x20, "DSCN";
    LOOPD = 0x21, "LOOPD";
    MR = 0x22, "MR";
    ACA = 0x23, "ACA";
    RCA = 0x24, "RCA";
    SFC = 0x25, "SFC";
    UFC = 0x26, "UFC";
    CEC = 0x29, "CEC";
    EC = 0x2a, "EC";
    ESC = 0x30, "ESC";
    ESS = 0x31, "ESS";
    MRRA = 0x34, "MRRA";
    STR = 0x35, "STR";
    EVFP = 0x36, "EVFP";
    AUTH_ILS = 0x40, "AUTH_ILS";
    FFI = 0x50, "FFI";
});
