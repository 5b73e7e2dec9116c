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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use braid_export_nbd::{Required, Security};
use braid_tls::{Certificates, Client, Clients, TlsError, Validity};
use serde::{Deserialize, Serialize};

use crate::control::TlsStatus;
use crate::failure::Failure;

/// Time between two looks at the files of certificates.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Time before a certificate's end from which on it is warned about.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 86_400);

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
    #[error(
        "rights of clients (--allow) need TLS: without it, a client has no name and could do everything"
    )]
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

    /// Returns the status that TLS would have if it were started now; `None` if it is off.
    ///
    /// # Errors
    /// As for a start.
    pub fn examine(&self) -> Result<Option<TlsStatus>, TlsRefusal> {
        Ok(self.security()?.as_ref().map(status_of))
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

/// Returns the status of TLS, with a warning if the certificate needs attention.
pub(super) fn status_of(security: &Security) -> TlsStatus {
    let Security { certificates, clients, required } = security;
    let (validity, problem) = (certificates.validity(), certificates.problem());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let not_used = |why: &String| format!("NBD uses the certificates from before, because {why}");
    let folder = certificates.folder().display();
    let of_time = || {
        let why = concern(validity?, i64::try_from(now).unwrap_or(i64::MAX))?;
        Some(format!(
            "the certificate {folder}/server-cert.pem {why}; next: replace it there with its key, and new connections use it"
        ))
    };
    TlsStatus {
        required: match required {
            Required::Nowhere => "none",
            Required::Tcp => "tcp",
            Required::Everywhere => "all",
        }
        .to_owned(),
        certificates: folder.to_string(),
        verify_peer: certificates.verifies_peers(),
        allow: clients.0.iter().map(Client::to_string).collect(),
        expires_at: validity.and_then(|one| u64::try_from(one.until).ok()),
        warning: problem.as_ref().map(not_used).or_else(of_time),
        problem,
    }
}

/// Returns the fault of a period of validity at `now`, in seconds since 1970.
fn concern(Validity { from, until }: Validity, now: i64) -> Option<String> {
    const DAY: i64 = 86_400;
    match until.saturating_sub(now) {
        _ if now < from => Some(format!("is not valid for {} days yet", (from - now) / DAY + 1)),
        left if left < 0 => Some(format!("expired {} days ago", -left / DAY)),
        left if left < WARN_BEFORE.as_secs().cast_signed() => {
            Some(format!("expires in {} days", left / DAY))
        }
        _ => None,
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
            let options =
                TlsOptions { mode, certificates, allow: allow.clone(), verify_peer: true };
            assert!(matches!(options.security(), Err(TlsRefusal::RightsWithoutTls)), "{mode:?}");
        }
        let options = TlsOptions { mode: TlsMode::Require, ..TlsOptions::default() };
        assert!(matches!(options.security(), Err(TlsRefusal::NoFolder)));
        let options = TlsOptions { certificates: folder, ..TlsOptions::default() };
        assert!(matches!(options.security(), Err(TlsRefusal::Certificates(_))));
        assert!(TlsOptions::default().security().unwrap().is_none());
    }

    #[test]
    fn certificates_are_warned_about_before_and_after_their_time() {
        let validity = Validity { from: 100 * 86_400, until: 200 * 86_400 };
        let on = |day: i64| concern(validity, day * 86_400 + 1);
        assert_eq!(on(98).as_deref(), Some("is not valid for 2 days yet"));
        assert_eq!((on(100), on(185)), (None, None));
        assert_eq!(on(186).as_deref(), Some("expires in 13 days"));
        assert_eq!(on(202).as_deref(), Some("expired 2 days ago"));
    }

    #[test]
    fn options_come_back_from_their_text() {
        let text =
            "mode = \"require\"\ncertificates = \"/c\"\nverify-peer = true\nallow = [\"a=read\"]\n";
        let options: TlsOptions = toml::from_str(text).unwrap();
        assert_eq!(toml::to_string(&options).unwrap(), text);
        assert!(toml::from_str::<TlsOptions>("allow = [\"a=all\"]").is_err());
    }
}
