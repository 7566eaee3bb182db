//! Tables of codes. Each row has the name of the constant, the number and the text, as in the
//! standard.

/// Defines the constants and [`std::fmt::Display`] of a newtype over a code. `$kind` is printed
/// before the number of an unknown code.
macro_rules! codes {
    ($type:ident, $repr:ty, $kind:literal { $($name:ident = $value:literal, $text:literal;)* }) => {
        #[allow(missing_docs)] // the names are the standard's own
        impl $type {
            $(pub const $name: Self = Self($value);)*
        }

        impl $type {
            /// Name of the code; `None` if the table does not list it.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, concat!($kind, " {:0width$x}"), self.0, width = 2 * size_of::<$repr>()),
                }
            }
        }
    };
}

/// Defines constants and a `name` function for codes that are plain integers. Invoke it in a module
/// of its own.
macro_rules! code_constants {
    ($repr:ty { $($name:ident = $value:literal, $text:literal;)* }) => {
        $(
            #[doc = concat!($text, ".")]
            pub const $name: $repr = $value;
        )*

        /// Name of a code; `None` if the table does not list it.
        pub const fn name(code: $repr) -> Option<&'static str> {
            match code {
                $($value => Some($text),)*
                _ => None,
            }
        }
    };
}

pub(crate) use {code_constants, codes};
