//! Counters of an export. Each shard has its own set, so that shards share no cache line; a status query adds
//! them up.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts of one shard, written by it alone and read by anybody.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// A reading of [`Counters`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Returns the present values.
            pub fn read(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }

            /// Adds what a session counted since it last did so.
            pub(crate) fn add(&self, counts: &mut Counts) {
                let counts = std::mem::take(counts);
                $(if counts.$name != 0 {
                    self.$name.fetch_add(counts.$name, Ordering::Relaxed);
                })*
            }
        }

        impl std::ops::AddAssign for Counts {
            fn add_assign(&mut self, other: Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections,
    /// Connections that have ended, for whatever reason.
    disconnections,
    /// Connections turned away because there were too many.
    connections_refused,
    /// Connections cut off for breaking the protocol, or stalling inside a request.
    protocol_errors,
    /// Receives that brought something.
    receives,
    /// Requests taken.
    requests,
    /// Sends that took something.
    sends,
    /// Replies given.
    replies,
    /// Requests answered with an error.
    errors,
    /// Bytes of read replies.
    read_bytes,
    /// Bytes of write requests.
    written_bytes,
}
