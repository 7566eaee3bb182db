//! Command codes of the fabric configuration server (FC-GS, fabric configuration server).

use crate::codes::code_constants;

code_constants!(u16 {
    GTIN = 0x0100, "GTIN";
    GIEL = 0x0101, "GIEL";
    GIET = 0x0111, "GIET";
    GDID = 0x0112, "GDID";
    GMID = 0x0113, "GMID";
    GFN = 0x0114, "GFN";
    GIELN = 0x0115, "GIELN";
    GMAL = 0x0116, "GMAL";
    GIEIL = 0x0117, "GIEIL";
    GPL = 0x0118, "GPL";
    GPT = 0x0121, "GPT";
    GPPN = 0x0122, "GPPN";
    GAPNL = 0x0124, "GAPNL";
    GPS = 0x0126, "GPS";
    GATIN = 0x0128, "GATIN";
    GPLNL = 0x0191, "GPLNL";
    GPLT = 0x0192, "GPLT";
    GPLML = 0x0193, "GPLML";
    GNPL = 0x01a1, "GNPL";
    GPNL = 0x01a2, "GPNL";
    GNID = 0x01b1, "GNID";
    RIELN = 0x0215, "RIELN";
    RPL = 0x0280, "RPL";
    RPLN = 0x0291, "RPLN";
    RPLT = 0x0292, "RPLT";
    RPLM = 0x0293, "RPLM";
    DPL = 0x0380, "DPL";
    DPLN = 0x0391, "DPLN";
    DPLML = 0x0393, "DPLML";
    GCAP = 0xe020, "GCAP";
});
