//! Options of TLS for NBD clients, with the words of nbdkit.

use std::path::PathBuf;

use braid_service::volume::{NbdClient, TlsMode};
use clap::Args;

use super::choice;

#[derive(Debug, Args)]
pub(crate) struct TlsArgs {
    /// TLS of NBD clients [default: with --tls-certificates required over TCP, else off]
    #[arg(long, value_name = "MODE", value_parser = choice::tls())]
    pub(crate) tls: Option<TlsMode>,
    /// Folder with ca-cert.pem, server-cert.pem and server-key.pem, and perhaps ca-crl.pem
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Require a certificate of each TLS client, signed by an authority of ca-cert.pem
    #[arg(long)]
    pub(crate) tls_verify_peer: bool,
    /// Rights of a TLS client by a DNS name of its certificate, which is then required: NAME=read, NAME=write or
    /// NAME=none; * is every name. Other clients have no rights (may be given several times)
    #[arg(long, value_name = "NAME=RIGHTS")]
    pub(crate) allow: Vec<NbdClient>,
}
