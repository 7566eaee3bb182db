//! Enums whose variants are listed once, with their names.

/// Declares an enum, and the table of its variants with their names.
macro_rules! named_variants {
    (
        $(#[$of_type:meta])*
        $vis:vis enum $type:ident {
            $($(#[$doc:meta])* $variant:ident => $name:literal,)+
        }
    ) => {
        $(#[$of_type])*
        $vis enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// Names of the variants, in the order of their declaration.
            pub(crate) const NAMES: [(&'static str, $type); [$($name,)+].len()] =
                [$(($name, $type::$variant),)+];
        }
    };
}
