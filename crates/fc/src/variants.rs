//! Enums whose variants are listed once, with their names.

/// Declares an enum, the list of its variants in the order of their declaration, and the name of
/// each variant.
macro_rules! named_variants {
    (
        $(#[$of_type:meta])*
        $vis:vis enum $type:ident {
            $($(#[$doc:meta])+ $variant:ident => $name:literal,)+
        }
    ) => {
        $(#[$of_type])*
        $vis enum $type {
            $($(#[$doc])+ $variant,)+
        }

        impl $type {
            /// All variants, in the order of their numbers as `usize`.
            $vis const ALL: [$type; [$($name,)+].len()] = [$($type::$variant,)+];

            /// Returns the name of the variant in lab files, results and metrics.
            $vis const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
}

/// Declares an enum and the list of its variants in the order of their declaration.
macro_rules! listed_variants {
    (
        $(#[$of_type:meta])*
        $vis:vis enum $type:ident {
            $($(#[$doc:meta])* $variant:ident,)+
        }
    ) => {
        $(#[$of_type])*
        $vis enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            $vis const COUNT: usize = [$($type::$variant,)+].len();
            $vis const ALL: [$type; Self::COUNT] = [$($type::$variant,)+];
        }
    };
}
