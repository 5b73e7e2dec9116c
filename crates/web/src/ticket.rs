//! Addresses of reports that hold once, and for a minute: a frame sends no token.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::token::Token;

const HOLDS: Duration = Duration::from_secs(60);
/// More are not out at a time; the oldest goes.
const MOST: usize = 64;

/// Tickets that are out: what each is for, and since when.
#[derive(Default)]
pub(crate) struct Tickets(Mutex<BTreeMap<String, (String, Instant)>>);

impl Tickets {
    /// A ticket for `path`.
    ///
    /// # Errors
    /// The kernel has no randomness.
    pub(crate) fn issue(&self, path: String, now: Instant) -> std::io::Result<String> {
        let ticket = Token::random()?.secret().to_owned();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (_, since)| now.duration_since(*since) < HOLDS);
        if all.len() >= MOST
            && let Some(oldest) = all.iter().min_by_key(|(_, (_, since))| *since)
        {
            let oldest = oldest.0.clone();
            all.remove(&oldest);
        }
        all.insert(ticket.clone(), (path, now));
        Ok(ticket)
    }

    /// Returns the request of a ticket, which is used up then.
    pub(crate) fn redeem(&self, ticket: &str, now: Instant) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, since) = all.remove(ticket)?;
        (now.duration_since(since) < HOLDS).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_holds_once_and_for_a_minute() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let issue = |path: &str, after| tickets.issue(path.into(), now + after).unwrap();
        let one = issue("a", Duration::ZERO);
        assert_eq!(tickets.redeem(&one, now).as_deref(), Some("a"));
        assert_eq!(tickets.redeem(&one, now), None, "once");
        let late = issue("b", Duration::ZERO);
        assert_eq!(tickets.redeem(&late, now + HOLDS), None);
        let first = issue("c", Duration::ZERO);
        let others: Vec<String> = (0..MOST).map(|_| issue("d", Duration::from_secs(1))).collect();
        assert_eq!(tickets.redeem(&first, now), None, "the oldest went");
        assert!(others.iter().all(|one| tickets.redeem(one, now).is_some()));
    }
}
