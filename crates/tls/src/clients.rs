//! Rights of clients by the DNS names of their certificates.

use std::fmt;
use std::str::FromStr;

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is not served.
    None,
    /// It may read.
    Read,
    /// It may read and write.
    Write,
}

impl Access {
    const WORDS: [(&str, Access); 3] =
        [("none", Access::None), ("read", Access::Read), ("write", Access::Write)];

    /// Returns the rights that `word` names: `none`, `read` or `write`.
    pub fn of_word(word: &str) -> Option<Access> {
        Access::WORDS.iter().find(|(known, _)| *known == word).map(|(_, access)| *access)
    }

    /// Returns the word for them.
    pub fn word(self) -> &'static str {
        Access::WORDS.iter().find(|(_, access)| *access == self).map_or("", |(word, _)| word)
    }
}

/// A name and its rights: `NAME`, `NAME=none`, `NAME=read` or `NAME=write`, which is meant without a word. The name `*`
/// is every client.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Client {
    name: String,
    access: Access,
}

/// Why a text is no name with rights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no client: NAME, NAME=none, NAME=read or NAME=write")]
pub struct ClientError {
    /// The text.
    pub text: String,
}

impl FromStr for Client {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Client, ClientError> {
        let error = || ClientError { text: text.to_owned() };
        let (name, word) = text.split_once('=').unwrap_or((text, "write"));
        let access = Access::of_word(word).ok_or_else(error)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name != "*" && (name.is_empty() || !name.bytes().all(is_name)) {
            return Err(error());
        }
        Ok(Client { name: name.to_ascii_lowercase(), access })
    }
}

impl TryFrom<String> for Client {
    type Error = ClientError;

    fn try_from(text: String) -> Result<Client, ClientError> {
        text.parse()
    }
}

impl From<Client> for String {
    fn from(client: Client) -> String {
        client.to_string()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.access.word())
    }
}

/// The clients of an export. If none is listed, every client may write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients(pub Vec<Client>);

impl Clients {
    /// Returns the rights of a client with these names: those of the first listed name that is one of them. A client that
    /// is not listed has none.
    pub fn access(&self, names: &[String]) -> Access {
        if self.0.is_empty() {
            return Access::Write;
        }
        let is_one = |client: &&Client| {
            client.name == "*" || names.iter().any(|name| name.eq_ignore_ascii_case(&client.name))
        };
        self.0.iter().find(is_one).map_or(Access::None, |client| client.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_is_listed_counts() {
        let list = ["bad.example=none", "Host.example", "backup.example=read"];
        let clients = Clients(list.iter().map(|text| text.parse().unwrap()).collect());
        let access = |names: &[&str]| {
            clients.access(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(access(&["host.example"]), Access::Write);
        assert_eq!(access(&["x", "BACKUP.example"]), Access::Read);
        assert_eq!(access(&["backup.example", "host.example"]), Access::Write);
        assert_eq!(access(&["host.example", "bad.example"]), Access::None);
        assert_eq!(access(&["other"]), Access::None);
        assert_eq!(access(&[]), Access::None);
        assert_eq!(Clients::default().access(&[]), Access::Write);
        let all = Clients(vec!["*=read".parse().unwrap()]);
        assert_eq!(all.access(&[]), Access::Read);
    }

    #[test]
    fn texts_of_clients_are_checked_and_come_back() {
        for text in ["", "=read", "a=b", "a b", "a=read=write", "*x"] {
            assert!(text.parse::<Client>().is_err(), "{text:?}");
        }
        for text in ["a.example=none", "*=write"] {
            assert_eq!(text.parse::<Client>().unwrap().to_string(), text);
        }
    }
}
