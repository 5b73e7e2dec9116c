//! Watches volumes and reports to receivers: status answers become events, events become a bounded number of
//! messages, and messages go to receivers.
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
//! * A receiver delays neither another one nor the next look at volumes, whatever it does; its waiting messages
//!   take a bounded amount of memory, and no event is left uncounted.
//! * `watch`, `outbox`, `message`, `config` are pure: `now` is an argument.
//!
//! It also asks the disks below members for their own reports (`disks`), and moves a spare to an array of its
//! group that needs it (`watch::moves` decides, `spares` carries it out).
//!
//! Deliberately absent: any change of a volume except moves of spares, which commands of `braid` make; and any
//! knowledge of volumes beyond [`braid_control::Status`].

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
