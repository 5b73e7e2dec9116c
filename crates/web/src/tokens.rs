//! Named tokens beside the one that `braid web` makes for itself: each with its rights and an expiry. The file has
//! their SHA-256 digests alone; a token is 256 random bits, so a digest that is known does not give it away.
//!
//! The server reads the file at each request that does not bring its own token, so a token that is removed or has
//! expired opens nothing from then on. `braid web token` changes the file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::token::{Token, TokenError, read_private, same};

/// The largest file that is read, in bytes: some 10,000 tokens.
const LARGEST: u64 = 2 << 20;

/// Rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rights {
    /// Everything that the server can do.
    All,
    /// Requests that change nothing: `GET`, plans, `examine`, reports.
    ReadOnly,
}

/// A token as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedToken {
    /// The name by which it is listed and removed.
    pub name: String,
    /// Its rights.
    pub rights: Rights,
    /// The time when it was made, in seconds since 1970.
    pub made_s: u64,
    /// The time from which it opens nothing, in seconds since 1970.
    pub expires_s: Option<u64>,
    /// The SHA-256 digest of the token, in hexadecimal digits.
    sha256: String,
}

impl NamedToken {
    /// Returns whether it opens nothing any more at `now_s`, in seconds since 1970.
    pub fn is_expired(&self, now_s: u64) -> bool {
        self.expires_s.is_some_and(|expires| now_s >= expires)
    }
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenList {
    /// In the order in which they were made.
    pub tokens: Vec<NamedToken>,
}

fn hash(secret: &str) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, secret.as_bytes()).as_ref() {
        // A text takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl TokenList {
    /// Reads the tokens in a file; none if it is not there.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it holds no list.
    pub fn read(path: &Path) -> Result<TokenList, TokenError> {
        match read_private(path, LARGEST) {
            Err(TokenError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(TokenList::default())
            }
            text => serde_json::from_str(&text?)
                .map_err(|error| TokenError::List(path.to_owned(), error.to_string())),
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }

    /// Adds a new token, which is returned this once. `None` if there is one of that name.
    ///
    /// # Errors
    /// The kernel has no randomness.
    pub fn add(
        &mut self,
        name: &str,
        rights: Rights,
        now_s: u64,
        expires_s: Option<u64>,
    ) -> io::Result<Option<Token>> {
        if self.tokens.iter().any(|one| one.name == name) {
            return Ok(None);
        }
        let token = Token::random()?;
        let sha256 = hash(token.secret());
        let name = name.to_owned();
        self.tokens.push(NamedToken { name, rights, made_s: now_s, expires_s, sha256 });
        Ok(Some(token))
    }

    /// Removes the token of that name; false if there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|one| one.name != name);
        self.tokens.len() < before
    }

    /// Returns the token that `sent` is, also an expired one, in a time that says nothing of where digests differ.
    fn find(&self, sent: &str) -> Option<&NamedToken> {
        let sent = hash(sent);
        self.tokens.iter().fold(None, |found, one| match same(&one.sha256, &sent) {
            true => Some(one),
            false => found,
        })
    }
}

/// Why a token does not let a request in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// No token is that one.
    Unknown,
    /// The token of this name has expired.
    Expired(String),
    /// The file of tokens cannot be used, and why.
    Unreadable(String),
}

/// The file of named tokens, as a server asks it.
#[derive(Clone, Debug)]
pub struct TokenFile(pub PathBuf);

impl TokenFile {
    /// Returns the rights of the token `sent`, now.
    pub(crate) fn rights(&self, sent: &str) -> Result<Rights, NotAdmitted> {
        let list =
            TokenList::read(&self.0).map_err(|error| NotAdmitted::Unreadable(error.to_string()))?;
        let found = list.find(sent).ok_or(NotAdmitted::Unknown)?;
        match found.is_expired(now_s()) {
            true => Err(NotAdmitted::Expired(found.name.clone())),
            false => Ok(found.rights),
        }
    }
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_opens_until_it_expires_or_is_removed_and_is_not_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let file = TokenFile(path.clone());
        assert_eq!(file.rights("x"), Err(NotAdmitted::Unknown), "no file is no token");
        let mut list = TokenList::default();
        let all = list.add("ci", Rights::All, 1, None).unwrap().unwrap();
        let read = list.add("view", Rights::ReadOnly, 1, Some(now_s() + 600)).unwrap().unwrap();
        let old = list.add("old", Rights::All, 1, Some(now_s())).unwrap().unwrap();
        assert!(list.add("ci", Rights::All, 1, None).unwrap().is_none(), "a name is one token's");
        let store = |list: &TokenList| {
            std::fs::write(&path, list.text()).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        };
        store(&list);
        for token in [&all, &read, &old] {
            assert!(!list.text().contains(token.secret()));
        }
        assert_eq!(TokenList::read(&path).unwrap(), list);
        assert_eq!(file.rights(all.secret()), Ok(Rights::All));
        assert_eq!(file.rights(read.secret()), Ok(Rights::ReadOnly));
        assert_eq!(file.rights(old.secret()), Err(NotAdmitted::Expired("old".into())));
        // A digest opens nothing.
        assert_eq!(file.rights(&hash(all.secret())), Err(NotAdmitted::Unknown));
        assert!(list.remove("ci") && !list.remove("ci"));
        store(&list);
        assert_eq!(file.rights(all.secret()), Err(NotAdmitted::Unknown));
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(file.rights(read.secret()), Err(NotAdmitted::Unreadable(_))));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(TokenList::read(&path), Err(TokenError::Open(_, 0o644))));
    }

    #[test]
    fn the_digest_is_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash("abc"), abc);
    }
}
