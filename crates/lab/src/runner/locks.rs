//! Locks that keep two runs from measuring one device at the same time: each run takes a lock for every
//! identity of its members.
//!
//! A lock is an abstract Unix socket named after the identity. The kernel gives it to one process of any user,
//! and takes it back when the process ends in any way: there is no file that could stay, belong to another
//! user, or be removed by mistake.
//!
//! Deliberately absent: locks of other programs (use by others is checked before each write, and the trust
//! rules notice another writer), and runs in another network namespace, which has its own names.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::LabError;
use crate::facts::{Identity, identities_of};
use crate::matrix::Planned;
use crate::store::patiently;

/// Takes the locks of every device that a campaign uses. Dropping the result releases them.
///
/// # Errors
///
/// [`LabError::Busy`] with the first device that another run has locked.
pub(super) fn lock_devices(planned: &Planned) -> Result<Vec<UnixDatagram>, LabError> {
    // Each identity once, and in the same order in all runs.
    let members: BTreeMap<Identity, String> =
        planned.subjects.iter().flat_map(|subject| identities_of(&subject.source)).collect();
    members.iter().map(|(identity, member)| lock(identity, member)).collect()
}

fn lock(identity: &Identity, member: &str) -> Result<UnixDatagram, LabError> {
    let failed = |error: io::Error| {
        let reason = format!("{error}; are abstract Unix sockets forbidden here?");
        LabError::step(format!("lock {member}"), reason)
    };
    let address = SocketAddr::from_abstract_name(name_of(identity)).map_err(failed)?;
    patiently(member, || match UnixDatagram::bind_addr(&address) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(failed(error)),
    })
}

/// Returns a name of at most 107 bytes, different for different identities.
fn name_of(identity: &Identity) -> String {
    let Identity(text) = identity;
    let kind = text.split(' ').next().unwrap_or_default();
    let hash = braid_seed::mix(&text.bytes().map(u64::from).collect::<Vec<_>>());
    format!("braid-lab-{kind}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_where_identities_do() {
        let name = |text: &str| name_of(&Identity(text.to_owned()));
        assert_ne!(name("text /a/b-c"), name("text /a-b/c"));
        assert_ne!(name("text 8:0"), name("disk 8:0"));
        assert!(name(&format!("text {}", "x".repeat(5000))).len() < 107);
    }

    #[test]
    fn a_lock_is_had_once_and_again_when_it_was_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let mine = Identity(format!("text {}", dir.path().display()));
        let held = lock(&mine, "mine").unwrap();
        let error = lock(&mine, "mine").unwrap_err().to_string();
        assert_eq!(error, "another run uses mine; wait for its end, or stop it");
        drop(held);
        lock(&mine, "mine").unwrap();
    }
}
