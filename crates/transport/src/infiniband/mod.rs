//! InfiniBand: fabrics and their subnet manager.
