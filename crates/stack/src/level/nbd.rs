//! `nbd(URI, …)`: an export of an NBD server.
//!
//! ```text
//!   nbd(nbd://host:port/EXPORT)     nbd(nbd+unix:///EXPORT?socket=/path)     the default export has no name
//! ```
//!
//! Deliberately absent: what a server offers, which is asked when the member is opened; credentials.

use std::fmt;
use std::time::Duration;

use super::Level;
use super::args::Args;
use crate::error::Fault;
use crate::expr::fmt_word;
use crate::problem::Problem;
use crate::size::Latency;

/// An export of an NBD server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nbd {
    /// The address, as written: `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=/PATH`.
    pub uri: String,
    /// Connections at once, from 1 to [`Nbd::MAX_CONNECTIONS`], if the server allows more than one.
    pub connections: u32,
    /// Time for which requests wait for an answer or for a connection before they fail; at least a second.
    pub deadline: Latency,
    /// A server without flush is used, although its writes are never known to be durable.
    pub may_lack_flush: bool,
}

impl Nbd {
    /// Connections if no number is given.
    pub const DEFAULT_CONNECTIONS: u32 = 4;
    /// The most connections.
    pub const MAX_CONNECTIONS: u32 = 16;
    /// The deadline if none is given.
    pub const DEFAULT_DEADLINE: Latency = Latency(30_000_000_000);
    /// The least and the greatest deadline.
    const DEADLINES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

    /// Returns the export at `uri`, with defaults for the rest.
    #[must_use]
    pub fn at(uri: &str) -> Nbd {
        Nbd {
            uri: uri.to_owned(),
            connections: Self::DEFAULT_CONNECTIONS,
            deadline: Self::DEFAULT_DEADLINE,
            may_lack_flush: false,
        }
    }
}

/// Returns the fault of an address, if it has one, and the byte of `uri` at which it is.
fn fault_of(uri: &str) -> Option<(usize, &'static str)> {
    let printable = |c: char| !c.is_control() && !c.is_whitespace();
    if let Some(at) = uri.find(|c| !printable(c)) {
        return Some((at, "it has a space or a control character; write %20 for a space"));
    }
    if let Some(rest) = uri.strip_prefix("nbd+unix://") {
        if !rest.starts_with('/') && !rest.starts_with('?') {
            return Some((11, "a Unix socket has no host: nbd+unix:///EXPORT?socket=/PATH"));
        }
        let Some(at) = uri.find("?socket=") else {
            return Some((uri.len(), "it names no socket: nbd+unix:///EXPORT?socket=/PATH"));
        };
        let socket = &uri[at + 8..];
        let is_absolute = socket.starts_with('/') || socket.starts_with("%2F");
        return (!is_absolute).then_some((at + 8, "the path of the socket does not begin with /"));
    }
    let Some(rest) = uri.strip_prefix("nbd://") else {
        return Some(match uri.starts_with("nbds") {
            true => (0, "TLS is not in this version; nbd:// and nbd+unix:// are"),
            false => (0, "an address begins with nbd:// or nbd+unix://"),
        });
    };
    let host = rest.split('/').next().unwrap_or_default();
    if let Some(at) = host.find('@') {
        return Some((6 + at, "user names are for TLS, which is not in this version"));
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some((6 + name.len() + 1, port))),
        _ => (host, None),
    };
    if name.is_empty() {
        return Some((6, "it names no host"));
    }
    if name.contains(':') && !(name.starts_with('[') && name.ends_with(']')) {
        return Some((6, "an address of IPv6 stands in brackets: nbd://[::1]:10809"));
    }
    if let Some((at, port)) = port
        && port.parse::<u16>().ok().is_none_or(|port| port == 0)
    {
        return Some((at, "its port is no number from 1 to 65535"));
    }
    let at = uri.find('?')?;
    Some((at, "nbd:// has no parameters; connections= and deadline= stand behind a comma"))
}

/// Returns the deadline of a member on another machine.
pub(super) fn deadline(args: &Args<'_>) -> Result<Latency, Fault> {
    let Some(word) = args.word("deadline")? else { return Ok(Nbd::DEFAULT_DEADLINE) };
    let (least, most) = Nbd::DEADLINES;
    let given: Latency = args.quantity("deadline")?.unwrap_or(Nbd::DEFAULT_DEADLINE);
    match (least..=most).contains(&given.duration()) {
        true => Ok(given),
        false => Err(Fault::new(Problem::BadDeadline { given }, word.span)),
    }
}

impl Level for Nbd {
    const NAME: &'static str = "nbd";
    const USAGE: &'static str = "nbd(URI, connections=4, deadline=30s, flush=required|missing), for example nbd(nbd://host/export)";
    const PARAMETERS: &'static [&'static str] = &["connections", "deadline", "flush"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let word = args.only("URI", "the address of an export")?;
        if let Some((at, why)) = fault_of(&word.text) {
            let problem = Problem::BadUri { uri: word.text.clone(), why };
            return Err(Fault::new(problem, word.from(at)));
        }
        let mut nbd = Self::at(&word.text);
        if let Some(word) = args.word("connections")? {
            let most = Self::MAX_CONNECTIONS;
            let count = word.text.parse().ok().filter(|count| (1..=most).contains(count));
            let problem = Problem::BadCount { what: "connections", text: word.text.clone(), most };
            nbd.connections = count.ok_or_else(|| Fault::new(problem, word.span))?;
        }
        nbd.deadline = deadline(args)?;
        let flush = args.choice("flush", &[("required", false), ("missing", true)])?;
        nbd.may_lack_flush = flush.unwrap_or(false);
        Ok(nbd)
    }
}

impl fmt::Display for Nbd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nbd(")?;
        fmt_word(f, &self.uri)?;
        if self.connections != Self::DEFAULT_CONNECTIONS {
            write!(f, ", connections={}", self.connections)?;
        }
        if self.deadline != Self::DEFAULT_DEADLINE {
            write!(f, ", deadline={}", self.deadline)?;
        }
        if self.may_lack_flush {
            f.write_str(", flush=missing")?;
        }
        f.write_str(")")
    }
}
