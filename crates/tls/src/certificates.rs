//! A folder of PEM files, by the names that qemu and nbdkit use, as a configuration of rustls.
//!
//! | file | holds |
//! |---|---|
//! | `ca-cert.pem` | the authorities that sign the certificates of the other side |
//! | `ca-crl.pem` | certificates that were revoked; may be absent |
//! | `server-cert.pem`, `server-key.pem` | the server's certificate, with those between it and its authority; its key |
//! | `client-cert.pem`, `client-key.pem` | the same of a client |

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::channel::Channel;
use crate::der::Validity;

/// Files on which a server's configuration depends.
const FILES: [&str; 4] = ["ca-cert.pem", "ca-crl.pem", "server-cert.pem", "server-key.pem"];

/// Why a folder of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key that others can read.
    #[error("{}: every user of this machine can read it (mode {mode:o}); next: chmod o= {}", path.display(), path.display())]
    Exposed {
        /// The key.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

pub(crate) fn file(path: &Path) -> impl Fn(&dyn std::fmt::Display) -> TlsError + '_ {
    move |error| TlsError::File { path: path.to_owned(), reason: error.to_string() }
}

/// The facts by which a replaced or changed file is known: its inode, size, and time of change.
type Stamp = Option<(u64, u64, i64, i64)>;

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    validity: Option<Validity>,
}

#[derive(Debug)]
struct State {
    loaded: Loaded,
    stamps: [Stamp; 4],
    problem: Option<String>,
}

/// The certificates of a server, which follow the files of their folder.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    verify_peer: bool,
    state: Mutex<State>,
}

impl Certificates {
    /// Loads a folder. With `verify_peer`, clients need a certificate that an authority of `ca-cert.pem` has signed.
    ///
    /// # Errors
    /// Files that are missing, unreadable or do not fit together; a key that others can read.
    pub fn load(folder: &Path, verify_peer: bool) -> Result<Certificates, TlsError> {
        let stamps = stamps(folder);
        let loaded = load(folder, verify_peer)?;
        let state = Mutex::new(State { loaded, stamps, problem: None });
        Ok(Certificates { folder: folder.to_owned(), verify_peer, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the folder again if its files have changed, for later connections. Returns the failure of doing so, once for
    /// each change; the certificates in use stay then.
    ///
    /// # Errors
    /// As for [`Certificates::load`].
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let stamps = stamps(&self.folder);
        if self.state().stamps == stamps {
            return Ok(false);
        }
        let result = load(&self.folder, self.verify_peer);
        let mut state = self.state();
        state.stamps = stamps;
        match result {
            Ok(loaded) => {
                state.loaded = loaded;
                state.problem = None;
                Ok(true)
            }
            Err(error) => {
                state.problem = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Returns the reason why the files that are there now are not in use, if so.
    pub fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// Returns the period of validity of the server's certificate, if it can be read.
    pub fn validity(&self) -> Option<Validity> {
        self.state().loaded.validity
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true if clients need a certificate.
    pub fn verifies_peers(&self) -> bool {
        self.verify_peer
    }

    /// Returns the server's end of a new connection.
    ///
    /// # Errors
    /// The failure of rustls to start a connection.
    pub fn channel(&self) -> Result<Channel, rustls::Error> {
        let config = Arc::clone(&self.state().loaded.config);
        Ok(Channel::new(ServerConnection::new(config)?))
    }
}

fn stamps(folder: &Path) -> [Stamp; 4] {
    FILES.map(|name| {
        let metadata = std::fs::metadata(folder.join(name)).ok()?;
        Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    })
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn load(folder: &Path, verify_peer: bool) -> Result<Loaded, TlsError> {
    let path = folder.join("server-cert.pem");
    let chain = certificates(&path)?;
    let validity = chain.first().and_then(|first| Validity::of(first));
    let key = key(&folder.join("server-key.pem"))?;
    let failed = file(&path);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| failed(&error))?;
    let builder = match verify_peer {
        false => builder.with_no_client_auth(),
        true => builder.with_client_cert_verifier(verifier(folder)?),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| failed(&error))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Loaded { config: Arc::new(config), validity })
}

fn verifier(
    folder: &Path,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let roots = Arc::new(roots(folder)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    if let Some(lists) = revoked(folder)? {
        builder = builder.with_crls(lists).only_check_end_entity_revocation();
    }
    builder.build().map_err(|error| file(&folder.join("ca-cert.pem"))(&error))
}

/// Reads the authorities of the other side.
pub(crate) fn roots(folder: &Path) -> Result<RootCertStore, TlsError> {
    let path = folder.join("ca-cert.pem");
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&path)? {
        roots.add(certificate).map_err(|error| file(&path)(&error))?;
    }
    Ok(roots)
}

/// Reads the lists of revoked certificates, if there are any. They are of the authorities in the folder; certificates
/// between an authority and the other side have none.
pub(crate) fn revoked(
    folder: &Path,
) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>, TlsError> {
    let path = folder.join("ca-crl.pem");
    if !path.try_exists().map_err(|error| file(&path)(&error))? {
        return Ok(None);
    }
    let lists = CertificateRevocationListDer::pem_file_iter(&path);
    let lists = lists.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    lists.map(Some).map_err(|error| file(&path)(&error))
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = file(path);
    let chain =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| failed(&error))?;
    if chain.is_empty() {
        return Err(failed(&"it holds no certificate"));
    }
    Ok(chain)
}

pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let found = std::fs::metadata(path).map_err(|error| file(path)(&error))?;
    let mode = found.mode() & 0o7777;
    if mode & 0o007 != 0 {
        return Err(TlsError::Exposed { path: path.to_owned(), mode });
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| file(path)(&error))
}
