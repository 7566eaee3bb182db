//! Parameters of real disks, each with its sources.

mod data_sheet;
mod measured;
mod modern;

use super::config::DiskConfig;

pub use data_sheet::DataSheet;
pub use measured::{atlas_10k, c2247a, cheetah_9lp};
pub use modern::{
    savvio_10k4, st2000dm006, travelstar_5k320, travelstar_7k320, ultrastar_7k8, ultrastar_15k450, ultrastar_146z10,
    ultrastar_c15k600, ultrastar_dc_hc310,
};

/// Returns all presets, the oldest disk first.
pub fn all() -> Vec<DiskConfig> {
    vec![
        c2247a(),
        cheetah_9lp(),
        atlas_10k(),
        ultrastar_146z10(),
        ultrastar_15k450(),
        travelstar_5k320(),
        travelstar_7k320(),
        savvio_10k4(),
        ultrastar_c15k600(),
        st2000dm006(),
        ultrastar_7k8(),
        ultrastar_dc_hc310(),
    ]
}

/// Returns the preset with a name.
pub fn find(name: &str) -> Option<DiskConfig> {
    all().into_iter().find(|config| config.name == name)
}
