//! A member on another machine: a link in each direction, and the time of its server.
//!
//! ```text
//!  read   |─ half a round trip ─|─ server ─|░░ bytes, behind those of earlier reads ░░|─ half a round trip ─|
//!  write  |░░ bytes, behind those of earlier writes ░░|─ half a round trip ─|─ server ─|─ half a round trip ─|
//! ```
//!
//! Requests overlap: the member is free for the next one at once, and only bytes wait for each other. A lost packet
//! delays the request that it is a part of. Losses are counted, not drawn: with a loss of 0.01,
//! each hundredth packet is lost, so that a run is a function of its load.
//!
//! Deliberately absent: the windows of TCP, which limit one connection over a long way; several connections; bytes of
//! headers.

use crate::bus::{Bus, Direction};
use crate::constants::{Constants, ProfileError};
use crate::nanoseconds;
use crate::place::Place;

/// Bytes of data in a packet of Ethernet: 1500, less the headers of IPv4, and of TCP with its time stamps.
const PACKET: u64 = 1448;

/// A member on another machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remote {
    /// Rate of the link from the server, in bytes per second; at least 1.
    pub read_rate: u64,
    /// Rate of the link to the server, in bytes per second; at least 1.
    pub write_rate: u64,
    /// Time from a request to its answer without any bytes and without the server's work, in nanoseconds.
    pub round_trip_ns: u64,
    /// Time of a request in the server, which works on several at once; in nanoseconds.
    pub server_ns: u64,
    /// Share of packets that are lost, from 0 to 1.
    pub loss: f64,
    /// Time until a lost packet is sent again, in nanoseconds.
    pub retry_ns: u64,
}

/// The links of a [`Remote`], and the losses so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemoteState {
    /// When the link from the server, and that to it, take further bytes.
    free_ns: (u64, u64),
    /// Time during which either link was in use.
    pub(crate) busy_ns: u64,
    /// Packets that count as lost; whole ones have delayed a request.
    lost: f64,
}

impl Remote {
    /// Returns when a request that comes at `at.now_ns` is answered.
    pub(crate) fn serve(&self, state: &mut RemoteState, bus: &mut Bus, at: &Place) -> u64 {
        let half_ns = self.round_trip_ns / 2;
        let (ready_ns, then_ns, rate) = match at.direction() {
            Direction::In => (at.now_ns + half_ns + self.server_ns, half_ns, self.read_rate),
            Direction::Out => (at.now_ns, self.round_trip_ns + self.server_ns, self.write_rate),
        };
        let (read_ns, write_ns) = &mut state.free_ns;
        let free_ns = if at.write { write_ns } else { read_ns };
        let begin_ns = ready_ns.max(*free_ns);
        let end_ns = begin_ns + nanoseconds(at.bytes, rate);
        let end_ns = end_ns.max(bus.reserve(at.now_ns, begin_ns, at.bytes, at.direction()));
        *free_ns = end_ns;
        state.busy_ns += end_ns - begin_ns;
        end_ns + then_ns + self.retries_ns(state, at.bytes)
    }

    /// Returns when a request without bytes that comes at `now_ns` is answered.
    pub(crate) fn command(&self, state: &mut RemoteState, now_ns: u64) -> u64 {
        now_ns + self.round_trip_ns + self.server_ns + self.retries_ns(state, 1)
    }

    /// The delay of a request by lost packets: they are sent again together.
    fn retries_ns(&self, state: &mut RemoteState, bytes: u64) -> u64 {
        state.lost += self.loss * bytes.div_ceil(PACKET) as f64;
        if state.lost < 1.0 {
            return 0;
        }
        state.lost = state.lost.fract();
        self.retry_ns
    }

    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Remote, ProfileError> {
        let mut ns = |name| Ok((constants.at_least_zero(name)? * 1e3) as u64);
        let (round_trip_ns, server_ns) = (ns("round_trip_us")?, ns("server_us")?);
        let retry_ns = ns("retry_us")?;
        let loss = constants.at_least_zero("loss")?;
        if loss > 1.0 {
            let (value, must) = (loss.to_string(), "from zero to 1");
            return Err(ProfileError::Range { name: "loss", value, must });
        }
        Ok(Remote {
            read_rate: constants.positive("read_rate")? as u64,
            write_rate: constants.positive("write_rate")? as u64,
            round_trip_ns,
            server_ns,
            loss,
            retry_ns,
        })
    }
}
