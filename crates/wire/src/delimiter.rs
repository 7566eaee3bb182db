//! Frame delimiters (FC-FS, ordered sets; RFC 3643, section 5.3): [`Sof`] and [`Eof`]. Each has a
//! code for encapsulations and an ordered set for native links.

use crate::header::{FCtl, FcType, Header};
use crate::id::FcId;
use std::fmt;

/// An ordered set of a native link. K28.5 is written as BC.
pub type OrderedSet = [u8; 4];

/// Defines a delimiter type from a table: variant, code of RFC 3643 and name.
macro_rules! delimiters {
    (
        $(#[$doc:meta])* $type:ident { $($variant:ident = $code:literal, $name:literal;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs)] // the names are the standard's own
        #[repr(u8)]
        pub enum $type {
            $($variant = $code,)*
        }

        impl $type {
            /// All delimiters of the type, in the order of their codes.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// Code in FCoE, FCIP and iFCP.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// Delimiter with the given code in FCoE, FCIP and iFCP; `None` for an unknown code.
            pub const fn from_code(code: u8) -> Option<$type> {
                match code {
                    $($code => Some($type::$variant),)*
                    _ => None,
                }
            }

            /// Name in the standard, for example SOFi3.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

delimiters!(
    /// Start of frame. It gives the class of service. Kinds with i start a sequence; kinds with n
    /// continue it.
    Sof {
        F = 0x28, "SOFf";
        I4 = 0x29, "SOFi4";
        I2 = 0x2d, "SOFi2";
        I3 = 0x2e, "SOFi3";
        N4 = 0x31, "SOFn4";
        N2 = 0x35, "SOFn2";
        N3 = 0x36, "SOFn3";
        C4 = 0x39, "SOFc4";
    }
);

delimiters!(
    /// End of frame. Kinds with n end the frame, and kinds with t also end the sequence. Kinds with
    /// i mark the frame as invalid.
    Eof {
        N = 0x41, "EOFn";
        T = 0x42, "EOFt";
        Rt = 0x44, "EOFrt";
        Dt = 0x46, "EOFdt";
        Ni = 0x49, "EOFni";
        Dti = 0x4e, "EOFdti";
        Rti = 0x4f, "EOFrti";
        A = 0x50, "EOFa";
    }
);

/// Running disparity before an EOF. It selects one of the two ordered sets of each EOF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Disparity {
    /// More zeros than ones so far.
    Negative,
    /// More ones than zeros so far.
    Positive,
}

impl Sof {
    /// SOF of a frame that this process originates: class F between switches, and class 3 for all
    /// others. Both ends are switches if they exchange SW_ILS, or if both addresses are those of
    /// domain controllers or of fabric controllers.
    pub fn of(header: &Header) -> Sof {
        let controllers = header.s_id.is_domain_controller() && header.d_id.is_domain_controller();
        let ports = [header.s_id, header.d_id] == [FcId::FABRIC_CONTROLLER; 2];
        match header.fc_type == FcType::SW_ILS || controllers || ports {
            true => Sof::F,
            false => Sof::class_3(header.seq_cnt == 0),
        }
    }

    /// SOF of a class 3 frame: SOFi3 for the first frame of a sequence, SOFn3 for later frames.
    pub const fn class_3(first_of_sequence: bool) -> Sof {
        if first_of_sequence { Sof::I3 } else { Sof::N3 }
    }

    /// Class of service.
    pub const fn class(self) -> Class {
        match self {
            Sof::F => Class::F,
            Sof::I2 | Sof::N2 => Class::Two,
            Sof::I3 | Sof::N3 => Class::Three,
            Sof::C4 | Sof::I4 | Sof::N4 => Class::Four,
        }
    }

    /// Ordered set on a native link.
    pub const fn ordered_set(self) -> OrderedSet {
        let byte = match self {
            Sof::F => 0x58,
            Sof::I4 => 0x59,
            Sof::I2 => 0x55,
            Sof::I3 => 0x56,
            Sof::N4 => 0x39,
            Sof::N2 => 0x35,
            Sof::N3 => 0x36,
            Sof::C4 => 0x19,
        };
        [0xbc, 0xb5, byte, byte]
    }

    /// SOF with the given ordered set; `None` if there is none.
    pub fn from_ordered_set(set: OrderedSet) -> Option<Sof> {
        Sof::ALL.iter().copied().find(|sof| sof.ordered_set() == set)
    }
}

impl Eof {
    /// EOF of a frame that this process originates.
    pub const fn of(header: &Header) -> Eof {
        Eof::class_3(header.f_ctl.has(FCtl::END_SEQUENCE))
    }

    /// EOF of a valid class 3 frame: EOFt for the last frame of a sequence, EOFn for earlier
    /// frames.
    pub const fn class_3(last_of_sequence: bool) -> Eof {
        if last_of_sequence { Eof::T } else { Eof::N }
    }

    /// Ordered set on a native link.
    pub const fn ordered_set(self, disparity: Disparity) -> OrderedSet {
        let byte = match self {
            Eof::T => 0x75,
            Eof::Dt | Eof::Dti => 0x95,
            Eof::A => 0xf5,
            Eof::N | Eof::Ni => 0xd5,
            Eof::Rt | Eof::Rti => 0x99,
        };
        let second = match (self, disparity) {
            (Eof::Ni | Eof::Dti | Eof::Rti, Disparity::Negative) => 0x8a,
            (Eof::Ni | Eof::Dti | Eof::Rti, Disparity::Positive) => 0xaa,
            (_, Disparity::Negative) => 0x95,
            (_, Disparity::Positive) => 0xb5,
        };
        [0xbc, second, byte, byte]
    }

    /// EOF with the given ordered set, for either disparity; `None` if there is none.
    pub fn from_ordered_set(set: OrderedSet) -> Option<Eof> {
        Eof::ALL
            .iter()
            .copied()
            .find(|eof| [Disparity::Negative, Disparity::Positive].iter().any(|&d| eof.ordered_set(d) == set))
    }
}

/// Class of service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Acknowledged datagrams.
    Two,
    /// Datagrams.
    Three,
    /// Fractional bandwidth.
    Four,
    /// Between switches.
    F,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Class::Two => "class 2",
            Class::Three => "class 3",
            Class::Four => "class 4",
            Class::F => "class F",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_ordered_sets_lead_back_to_the_delimiter() {
        for &sof in Sof::ALL {
            assert_eq!(Sof::from_code(sof.code()), Some(sof));
            assert_eq!(Sof::from_ordered_set(sof.ordered_set()), Some(sof));
        }
        for &eof in Eof::ALL {
            assert_eq!(Eof::from_code(eof.code()), Some(eof));
            for disparity in [Disparity::Negative, Disparity::Positive] {
                assert_eq!(Eof::from_ordered_set(eof.ordered_set(disparity)), Some(eof));
            }
        }
    }

    #[test]
    fn unknown_codes_are_not_delimiters() {
        let known = (0..=255).filter(|&code| Sof::from_code(code).is_some() || Eof::from_code(code).is_some());
        assert_eq!(known.count(), 16);
    }

    #[test]
    fn normal_codes_are_eight_above_the_initiating_ones() {
        for (initiate, normal) in [(Sof::I2, Sof::N2), (Sof::I3, Sof::N3), (Sof::I4, Sof::N4)] {
            assert_eq!(normal.code() - initiate.code(), 8);
            assert_eq!(initiate.class(), normal.class());
        }
    }

    #[test]
    fn ordered_sets_are_those_of_the_standard() {
        assert_eq!(Sof::I3.ordered_set(), [0xbc, 0xb5, 0x56, 0x56]);
        assert_eq!(Sof::N3.ordered_set(), [0xbc, 0xb5, 0x36, 0x36]);
        assert_eq!(Eof::T.ordered_set(Disparity::Negative), [0xbc, 0x95, 0x75, 0x75]);
        assert_eq!(Eof::N.ordered_set(Disparity::Positive), [0xbc, 0xb5, 0xd5, 0xd5]);
        assert_eq!(Eof::Ni.ordered_set(Disparity::Negative), [0xbc, 0x8a, 0xd5, 0xd5]);
    }
}
