//! TLS 1.3 with a certificate and its key, from PEM files. Deliberately absent: certificates of clients, older
//! versions, and making certificates: ssh does without them.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Paths of the certificate and the key.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server's certificate, and those that it rests on.
    pub cert: PathBuf,
    /// Its key, which only its owner may read.
    pub key: PathBuf,
}

impl Tls {
    /// Returns the acceptor of connections with them, or the reason why there is none.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        fn why(path: &std::path::Path) -> impl Fn(&dyn Display) -> String + '_ {
            move |error| format!("{}: {error}", path.display())
        }
        let (cert, key) = (why(&self.cert), why(&self.key));
        let found = std::fs::metadata(&self.key).map_err(|error| key(&error))?;
        if found.mode() & 0o077 != 0 {
            return Err(key(&format_args!(
                "others may read it (mode {:o})",
                found.mode() & 0o7777
            )));
        }
        let chain = CertificateDer::pem_file_iter(&self.cert).map_err(|error| cert(&error))?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|error| cert(&error))?;
        let secret = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| key(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| cert(&error))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
