//! TLS of a volume's NBD clients: from options to certificates and rights, or a refusal.
//!
//! | `mode` | without certificates | with certificates |
//! |---|---|---|
//! | `auto` | off | required over TCP, offered on Unix sockets |
//! | `off` | off | off |
//! | `on` | refused | offered |
//! | `require` | refused | required everywhere |
//!
//! Invariant: a list of clients is never without effect. It makes each TLS client show a certificate, and is refused where
//! clients get in over TCP without TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use braid_export_nbd::{Required, Security};
use braid_tls::{Certificates, Client, Clients, TlsError};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Time between two looks at the files of certificates.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The use of TLS by NBD clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// Required over TCP if there are certificates, else off
    #[default]
    Auto,
    /// Not used
    Off,
    /// Offered
    On,
    /// Required at all addresses
    Require,
}

/// TLS of a volume's NBD clients, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// The use of TLS.
    #[serde(default)]
    pub mode: TlsMode,
    /// The folder of `ca-cert.pem`, `server-cert.pem` and `server-key.pem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
    /// Clients need a certificate of an authority in `ca-cert.pem`.
    #[serde(default, rename = "verify-peer", skip_serializing_if = "std::ops::Not::not")]
    pub verify_peer: bool,
    /// Rights by the names in certificates of clients; if there are any, other clients have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Client>,
}

/// Why TLS is not used as asked for.
#[derive(Debug, thiserror::Error)]
pub enum TlsRefusal {
    /// TLS without certificates.
    #[error("TLS needs a certificate, and no folder of certificates is named")]
    NoFolder,
    /// Rights by name that clients without TLS would have, too.
    #[error("rights of clients (--allow) need TLS: without it, a client has no name and could do everything")]
    RightsWithoutTls,
    /// The folder cannot be used.
    #[error("{0}")]
    Certificates(#[from] TlsError),
}

impl TlsRefusal {
    /// The failure that says so, and what to do about it.
    pub fn failure(&self) -> Failure {
        match self {
            TlsRefusal::NoFolder => Failure::usage(self).next(
                "--tls-certificates DIR, a folder with ca-cert.pem, server-cert.pem and server-key.pem; \
                 docs/exports.md has the commands that make them",
            ),
            TlsRefusal::RightsWithoutTls => {
                Failure::refused(self).next("--tls require --tls-certificates DIR, or no --allow")
            }
            TlsRefusal::Certificates(TlsError::Exposed { .. }) => Failure::refused(self),
            TlsRefusal::Certificates(TlsError::File { .. }) => Failure::failed(self).next(
                "a folder with ca-cert.pem, server-cert.pem and server-key.pem; docs/exports.md has the \
                 commands that make them",
            ),
        }
    }
}

impl TlsOptions {
    /// Returns true for the default.
    pub fn is_usual(&self) -> bool {
        *self == TlsOptions::default()
    }

    /// Loads certificates and rights; `None` if TLS is off.
    ///
    /// # Errors
    /// Certificates that cannot be used; rights that would have no effect.
    pub(super) fn security(&self) -> Result<Option<Security>, TlsRefusal> {
        let folder = self.certificates.as_deref();
        let required = match (self.mode, folder) {
            (TlsMode::Off, _) | (TlsMode::Auto, None) if !self.allow.is_empty() => {
                return Err(TlsRefusal::RightsWithoutTls);
            }
            (TlsMode::Off, _) | (TlsMode::Auto, None) => return Ok(None),
            (TlsMode::On | TlsMode::Require, None) => return Err(TlsRefusal::NoFolder),
            (TlsMode::On, _) if !self.allow.is_empty() => {
                return Err(TlsRefusal::RightsWithoutTls);
            }
            (TlsMode::On, _) => Required::Nowhere,
            (TlsMode::Auto, _) => Required::Tcp,
            (TlsMode::Require, _) => Required::Everywhere,
        };
        // Names count only in certificates that were verified.
        let verify_peer = self.verify_peer || !self.allow.is_empty();
        let folder = folder.ok_or(TlsRefusal::NoFolder)?;
        let certificates = Arc::new(Certificates::load(folder, verify_peer)?);
        let clients = Arc::new(Clients(self.allow.clone()));
        Ok(Some(Security { certificates, clients, required }))
    }
}

/// Has later connections use the files that are in the folder by then, for as long as the certificates are in use. A
/// thread of its own looks at them: a folder that does not respond delays no request.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn follow(certificates: &Arc<Certificates>) -> std::io::Result<()> {
    let certificates = Arc::downgrade(certificates);
    let follow = move || {
        loop {
            std::thread::sleep(LOOK_AGAIN);
            let Some(certificates) = certificates.upgrade() else { return };
            match certificates.refresh() {
                Ok(false) => {}
                Ok(true) => eprintln!("nbd: new connections use the changed certificates"),
                Err(error) => eprintln!("nbd: the certificates in use stay: {error}"),
            }
        }
    };
    std::thread::Builder::new().name("certificates".to_owned()).spawn(follow).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_never_without_effect() {
        let allow: Vec<Client> = vec!["a=read".parse().unwrap()];
        let folder = Some(PathBuf::from("/nonexistent"));
        for (mode, certificates) in
            [(TlsMode::Auto, None), (TlsMode::Off, folder.clone()), (TlsMode::On, folder.clone())]
        {
            let options = TlsOptions { mode, certificates, allow: allow.clone(), verify_peer: true };
            assert!(matches!(options.security(), Err(TlsRefusal::RightsWithoutTls)), "{mode:?}");
        }
        let options = TlsOptions { mode: TlsMode::Require, ..TlsOptions::default() };
        assert!(matches!(options.security(), Err(TlsRefusal::NoFolder)));
        let options = TlsOptions { certificates: folder, ..TlsOptions::default() };
        assert!(matches!(options.security(), Err(TlsRefusal::Certificates(_))));
        assert!(TlsOptions::default().security().unwrap().is_none());
    }

    #[test]
    fn options_come_back_from_their_text() {
        let text = "mode = \"require\"\ncertificates = \"/c\"\nverify-peer = true\nallow = [\"a=read\"]\n";
        let options: TlsOptions = toml::from_str(text).unwrap();
        assert_eq!(toml::to_string(&options).unwrap(), text);
        assert!(toml::from_str::<TlsOptions>("allow = [\"a=all\"]").is_err());
    }
}
