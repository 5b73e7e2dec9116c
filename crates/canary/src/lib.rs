//! Planted faults, for tests of the tests: rules that are broken on purpose. Two kinds, by the way they are planted.
//!
//! ```text
//!   plantable!   by the thread of a test: a simulation of many seeds must find it      engine, cache
//!   faults!      for a process: one test, named beside the fault, must find it         the other crates
//!
//!   hunt ──▶ the program of the test again, this one test, the fault in its environment ──▶ it must fail
//! ```
//!
//! Invariants
//! * Without a crate's feature `canary` a planted fault is a constant `false`, and the program has no code for it.
//! * A test that finds a fault is an ordinary test: without the fault it runs beside the others, and passes.
//!
//! Deliberately absent: a choice among tests. A fault that several tests find names the one that is closest to it.

mod hunt;

pub use hunt::hunt;

use std::sync::OnceLock;

/// The environment variable that plants a fault: its value is a [`Fault::name`].
const PLANTED: &str = "BRAID_PLANTED_FAULT";

/// A fault that can be planted in a process.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The crate and the name in its source, such as `md::ChecksumIgnored`.
    pub name: &'static str,
    /// The file in the crate's folder, and the test in it that must find the fault.
    pub found_by: &'static str,
}

/// Returns true if the fault of this name is planted in this process.
pub fn is_planted(name: &str) -> bool {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(PLANTED).ok()).as_deref() == Some(name)
}

/// Defines the faults that can be planted in a crate, each with the rule that it breaks and the test that finds it.
#[macro_export]
macro_rules! faults {
    ($of:literal, $faults:ident { $($(#[doc = $rule:literal])+ $name:ident: $test:literal,)+ }) => {
        /// A rule that is broken on purpose, in a process of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $faults {
            $($(#[doc = $rule])+ $name,)+
        }

        impl $faults {
            /// All of them.
            #[cfg(feature = "canary")]
            pub const ALL: &[$crate::Fault] = &[
                $($crate::Fault { name: concat!($of, "::", stringify!($name)), found_by: $test },)+
            ];

            /// Returns true if this fault is planted in this process.
            #[cfg(feature = "canary")]
            pub fn is_planted(self) -> bool {
                $crate::is_planted(match self {
                    $($faults::$name => concat!($of, "::", stringify!($name)),)+
                })
            }

            /// Returns false: without the feature no fault is planted.
            #[cfg(not(feature = "canary"))]
            #[inline(always)]
            pub const fn is_planted(self) -> bool {
                false
            }
        }
    };
}

/// Implements planting by threads for a type of faults: in the crate that has the type, if the crate's feature
/// `canary` is set.
#[macro_export]
macro_rules! plantable {
    ($canary:ty) => {
        impl $canary {
            /// Returns true if this fault is planted in this thread.
            #[cfg(feature = "canary")]
            pub fn is_planted(self) -> bool {
                PLANTED.get() == Some(self)
            }

            /// Returns false: without the feature no fault is planted.
            #[cfg(not(feature = "canary"))]
            #[inline(always)]
            pub const fn is_planted(self) -> bool {
                false
            }
        }

        #[cfg(feature = "canary")]
        thread_local! {
            static PLANTED: std::cell::Cell<Option<$canary>> = const { std::cell::Cell::new(None) };
        }

        /// Plants a fault in this thread; `None` removes it.
        #[cfg(feature = "canary")]
        pub fn plant(canary: Option<$canary>) {
            PLANTED.set(canary);
        }
    };
}
