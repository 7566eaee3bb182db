//! Command codes of FDMI (FC-GS, HBA management service).

use crate::codes::code_constants;

code_constants!(u16 {
    GRHL = 0x0100, "GRHL";
    GHAT = 0x0101, "GHAT";
    GRPL = 0x0102, "GRPL";
    GPAT = 0x0110, "GPAT";
    RHBA = 0x0200, "RHBA";
    RHAT = 0x0201, "RHAT";
    RPRT = 0x0210, "RPRT";
    RPA = 0x0211, "RPA";
    DHBA = 0x0300, "DHBA";
    DHAT = 0x0301, "DHAT";
    DPRT = 0x0310, "DPRT";
    DPA = 0x0311, "DPA";
});
