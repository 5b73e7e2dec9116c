//! Rights of the local users that connect to a Unix socket.
//!
//! ```text
//!   unix:PATH,users=alice:backup=read ──▶ Users ──resolve──▶ Rights ──▶ Visitor, or the connection is closed
//!                                        names    passwd      uids  ▲
//!                                                    SO_PEERCRED ───┘
//! ```
//!
//! Invariants
//! * Root and the user of the volume's process may always write.
//! * The first listed name of a user counts. A user that is not listed has no rights.
//! * Names become numbers once, at the start: no request waits for a name service.
//!
//! Absent on purpose: groups. The kernel tells the group of the client's process, not all groups of its user.

use std::fmt;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::Arc;

use braid_tls::Access;

use crate::end::End;

/// A user and its rights: `NAME`, `NAME=none`, `NAME=read` or `NAME=write`, which is meant without a word. A number is
/// a user's ID, and `*` is every user.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: String,
    access: Access,
}

/// The users of a Unix socket, with rights, as they are typed: `alice:backup=read`. Without any, the socket is open to the
/// user of the volume's process alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(Vec<User>);

impl FromStr for Users {
    type Err = ();

    fn from_str(text: &str) -> Result<Users, ()> {
        let user = |text: &str| {
            let (name, word) = text.split_once('=').unwrap_or((text, Access::Write.word()));
            let access = Access::of_word(word).ok_or(())?;
            let is_name = !name.is_empty() && !name.contains([',', '/']);
            if is_name { Ok(User { name: name.to_owned(), access }) } else { Err(()) }
        };
        text.split(':').map(user).collect::<Result<_, _>>().map(Users)
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().collect::<Vec<_>>().join(":"))
    }
}

impl Users {
    /// Returns true if no user is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of each.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|User { name, access }| format!("{name}={}", access.word()))
    }

    /// Returns the rights of `*`, which each user has that is not listed.
    pub(crate) fn of_all(&self) -> Access {
        self.0.iter().find(|user| user.name == "*").map_or(Access::None, |user| user.access)
    }

    /// Looks up the users.
    ///
    /// # Errors
    /// The first name that no user of this machine has.
    pub(crate) fn resolve(&self) -> Result<Rights, String> {
        let resolve = |User { name, access }: &User| match name.as_str() {
            "*" => Ok((None, *access)),
            name => id_of(name).map(|id| (Some(id), *access)).ok_or_else(|| name.to_owned()),
        };
        let listed = self.0.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        Ok(Rights { listed: listed.into(), own: rustix::process::geteuid().as_raw() })
    }
}

/// Returns the number of a user.
fn id_of(name: &str) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

/// The rights of users at one socket.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    listed: Arc<[(Option<u32>, Access)]>,
    own: u32,
}

/// A client that is let in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visitor {
    /// Its user, at a socket that lists users.
    pub(crate) user: Option<u32>,
    pub(crate) read_only: bool,
    pub(crate) is_told: bool,
}

impl Visitor {
    /// A client of this process's own, which it tells of another size and of whether it may write.
    pub fn told() -> Visitor {
        Visitor { is_told: true, ..Visitor::default() }
    }
}

impl Rights {
    /// Returns the IDs of listed users with rights, `None` for all users. Root has rights without a list.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Option<u32>> {
        let counts =
            |(id, access): &&(Option<u32>, Access)| *access != Access::None && *id != Some(0);
        self.listed.iter().filter(counts).map(|(id, _)| *id)
    }

    fn access(&self, user: u32) -> Access {
        if user == 0 || user == self.own {
            return Access::Write;
        }
        let is_it = |(id, _): &&(Option<u32>, Access)| id.is_none_or(|id| id == user);
        self.listed.iter().find(is_it).map_or(Access::None, |(_, access)| *access)
    }

    /// Judges the client at the other end of `connection`. Without a list, the socket's mode has done so.
    ///
    /// # Errors
    /// A user without rights; or the kernel does not tell the user.
    pub(crate) fn judge(&self, connection: impl AsFd) -> Result<Visitor, End> {
        if self.listed.is_empty() {
            return Ok(Visitor::default());
        }
        let peer = rustix::net::sockopt::socket_peercred(connection)
            .map_err(|error| End::Failed(error.into()))?;
        let user = peer.uid.as_raw();
        match self.access(user) {
            Access::None => Err(End::NotAllowed(user)),
            access => {
                let read_only = access == Access::Read;
                Ok(Visitor { user: Some(user), read_only, is_told: false })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_listed_name_counts_and_root_and_the_owner_may_write() {
        let users: Users = "8=none:7=read:9:*=read:7".parse().unwrap();
        let rights = Rights { own: 5, ..users.resolve().unwrap() };
        for (user, access) in [
            (8, Access::None),
            (7, Access::Read),
            (9, Access::Write),
            (6, Access::Read),
            (5, Access::Write),
            (0, Access::Write),
        ] {
            assert_eq!(rights.access(user), access, "{user}");
        }
        let rights = Rights { own: 5, ..Users::from_str("7").unwrap().resolve().unwrap() };
        assert_eq!(rights.access(6), Access::None);
    }

    #[test]
    fn texts_of_users_are_checked_and_come_back() {
        for text in ["", ":", "a:", "=read", "a=all", "a=read=write", "a,b", "a/b"] {
            assert!(text.parse::<Users>().is_err(), "{text:?}");
        }
        let users: Users = "Alice:www-data=read:*=none".parse().unwrap();
        assert_eq!(users.to_string(), "Alice=write:www-data=read:*=none");
        assert_eq!(users.to_string().parse(), Ok(users));
    }

    #[test]
    fn a_name_is_looked_up() {
        let listed = |text: &str| Users::from_str(text).unwrap().resolve().map(|one| one.listed);
        assert_eq!(listed("root=read").unwrap()[0], (Some(0), Access::Read));
        assert_eq!(listed("4711").unwrap()[0], (Some(4711), Access::Write));
        assert_eq!(listed("root:no-such-user").unwrap_err(), "no-such-user");
    }
}
