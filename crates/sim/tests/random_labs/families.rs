//! Labs of special families, and what must hold in them beyond what holds in every lab.
