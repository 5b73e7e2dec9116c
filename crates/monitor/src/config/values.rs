//! Values that are checked as they are read, so that the message has the line.

use std::path::PathBuf;

use lettre::message::Mailbox;
use serde::{Deserialize, Deserializer, de};

/// A mail address, perhaps with a name.
#[derive(Clone, Debug)]
pub(crate) struct Address(pub(crate) Mailbox);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        let has_domain = text.contains('@');
        text.parse().map(Address).map_err(|error| {
            de::Error::custom(match has_domain {
                false => format!(
                    "{text:?} is no mail address: it has no \"@\"; a user of this machine is \"{text}@localhost\""
                ),
                true => format!("{text:?} is no mail address: {error}"),
            })
        })
    }
}

/// An absolute path of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program(pub(crate) PathBuf);

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Program, D::Error> {
        let path = PathBuf::deserialize(deserializer)?;
        match path.is_absolute() {
            true => Ok(Program(path)),
            false => Err(de::Error::custom(format!(
                "{path:?} is no absolute path: a service has no folder of its own to start from"
            ))),
        }
    }
}

/// An address of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url(pub(crate) String);

impl Url {
    /// Scheme and authority: what follows may be a secret.
    pub(crate) fn shown(&self) -> &str {
        let start = self.0.find("://").map_or(0, |at| at + 3);
        let end = self.0[start..].find(['/', '?', '#']).map_or(self.0.len(), |at| start + at);
        &self.0[..end]
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.starts_with("https://")
    }

    pub(crate) fn is_local(&self) -> bool {
        let authority = self.shown().rsplit("://").next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        };
        is_local(host.unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = |why: &str| {
            Err(de::Error::custom(format!(
                "{text:?} is no address to post to: {why}, such as \"https://example.org/hook\""
            )))
        };
        let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))
        else {
            return wrong("it has to begin with https:// or http://");
        };
        let uri: Result<ureq::http::Uri, _> = text.parse();
        match uri {
            Err(error) => wrong(&format!("{error}")),
            Ok(_) if rest.contains('@') && !rest[..rest.find('@').unwrap_or(0)].contains('/') => {
                wrong("a user in it is not supported")
            }
            Ok(_) => Ok(Url(text)),
        }
    }
}

/// True if messages to this host do not leave the machine.
pub(super) fn is_local(host: &str) -> bool {
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}
