//! A folder of PEM files as a client's certificates: the authorities that it trusts, and its own certificate if there is one.

use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::certificates::{TlsError, certificates, file, key, provider, revoked, roots};
use crate::channel::Channel;

/// The certificates of a client, as their files were when it was loaded.
#[derive(Clone, Debug)]
pub struct Trust {
    config: Arc<ClientConfig>,
}

/// Why a client cannot begin TLS.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The server cannot be called so.
    #[error("{host:?} is no name of a server")]
    Name {
        /// The name.
        host: String,
    },
    /// TLS cannot be started.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

impl Trust {
    /// Loads a folder.
    ///
    /// # Errors
    /// `ca-cert.pem` is missing or of no use; a client's certificate without its key; a key that others can read.
    pub fn load(folder: &Path) -> Result<Trust, TlsError> {
        let path = folder.join("ca-cert.pem");
        let failed = file(&path);
        let roots = Arc::new(roots(folder)?);
        let mut verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
        if let Some(lists) = revoked(folder)? {
            verifier = verifier.with_crls(lists).only_check_end_entity_revocation();
        }
        let verifier = verifier.build().map_err(|error| failed(&error))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| failed(&error))?
            .with_webpki_verifier(verifier);
        let own = folder.join("client-cert.pem");
        let failed = file(&own);
        let mut config = match own.try_exists().map_err(|error| failed(&error))? {
            false => builder.with_no_client_auth(),
            true => {
                let (chain, key) = (certificates(&own)?, key(&folder.join("client-key.pem"))?);
                builder.with_client_auth_cert(chain, key).map_err(|error| failed(&error))?
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Trust { config: Arc::new(config) })
    }

    /// Returns the client's end of a new connection to the server whose certificate has the name or address `host`.
    ///
    /// # Errors
    /// `host` is no name of a server.
    pub fn channel(&self, host: &str) -> Result<Channel, TrustError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TrustError::Name { host: host.to_owned() })?;
        Ok(Channel::new(ClientConnection::new(Arc::clone(&self.config), name)?))
    }
}
