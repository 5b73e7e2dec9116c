//! Watches volumes and tells somebody: what they say of themselves becomes events, events become a bounded
//! number of messages, and messages go to receivers.
//!
//! ```text
//!  sockets ──observe──▶ Observation ──Known::step──▶ Event ──▶ Outbox, one for each receiver ──▶ deliver
//!           (control)                 what was known           what waits, and how fast it may go    mail
//!                                     before, causes                                                 webhook
//!                                     that last                                                      program
//! ```
//!
//! Invariants:
//! * A cause makes one message while it lasts, one when it has ended, and a reminder at most so often.
//! * Whatever a receiver does, it delays neither another one nor the next look at volumes; what waits for it
//!   takes a bounded amount of memory, and nothing that happened is left uncounted.
//! * `watch`, `outbox`, `message`, `config` are pure: `now` is an argument.
//!
//! Beside that, what the disks below members say of themselves is asked for (`disks`), and a spare goes to an array
//! of its group that needs it (`watch::moves` decides, `spares` has it done).
//!
//! Deliberately absent: any change of a volume but moves of spares, which commands of `braid` make; and any knowledge
//! of volumes beyond [`braid_control::Status`].

mod config;
mod deliver;
mod disks;
mod event;
mod message;
mod observe;
mod outbox;
mod program;
mod receivers;
mod service;
mod span;
mod spares;
mod state;
mod watch;

pub use config::{Config, ConfigError};
pub use disks::{find_smartctl, known_disks, look_at_disks};
pub use event::{Event, KINDS, Kind, Severity};
pub use receivers::Wake;
pub use service::{Monitor, MonitorError, Tested};
