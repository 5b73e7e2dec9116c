//! One server for people and for programs: all volumes over HTTP and JSON, and the page that shows them.
//!
//! ```text
//!   listen ──▶ guard ──▶ app ──┬─ watch ──▶ control sockets of volumes      (asks)
//!   bounds      rights         ├─ plan      what an order would do          (pure)
//!   in time     ask            ├─ shared ─▶ orders to control sockets       (does)
//!                              ├─ program ─▶ this same program: up, create  (does)
//!                              ├─ reports ─▶ files below one folder         (reads)
//!                              ├─ cases  ──▶ folders of `braid rescue`      (reads)
//!                              └─ page       what is built in
//! ```
//!
//! Invariants
//! * A volume that is up is changed by orders to its own process, which refuses and records them. All else is a
//!   command line of this program, run as it would be typed. The equivalent command is shown before.
//! * No address is trusted: each request to the API needs the token, except over a Unix socket, which only its
//!   owner can open (0600). The token is never a cookie, so no other page can borrow it.
//! * Beyond the loopback there is no listener without TLS.
//! * Slow clients cost a bounded number of connections and bytes, for a bounded time.
//!
//! * A token that may only read reaches nothing that changes anything: [`guard`] decides by method and path, before
//!   a handler is called.
//!
//! Deliberately absent: the engine, and any state of its own but tickets for reports, which last a minute.

mod answer;
mod app;
mod asked;
mod cases;
mod change;
mod disks;
mod doors;
mod followers;
mod guard;
mod jobs;
mod listen;
mod offers;
mod page;
mod plan;
mod program;
mod report_pages;
mod reports;
mod seen;
mod shared;
mod state;
mod ticket;
mod tls;
mod token;
mod tokens;
mod up;
mod watch;

pub use app::ROUTES;
pub use listen::{Bound, Config, Listen, ListenError, serve};
pub use tls::Tls;
pub use token::{Token, TokenError};
pub use tokens::{NamedToken, Rights, TokenFile, TokenList, now_s};
