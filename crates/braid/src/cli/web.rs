//! `braid web`: what can be typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "The address that is printed has the token, which lets in whoever has it: it is kept in the \
                        state folder, for this user alone. Over a Unix socket none is asked for:\n\n    \
                        braid web --listen unix:/run/braid-web.sock\n    curl --unix-socket \
                        /run/braid-web.sock http://localhost/api/v1/volumes"
)]
pub(crate) struct Web {
    /// Where to listen: an address of the loopback with its port, or unix:PATH
    #[arg(long, value_name = "IP:PORT|unix:PATH", default_value = "127.0.0.1:7374")]
    pub(crate) listen: String,
    /// Show the reports of the laboratory below this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lab: Option<PathBuf>,
    /// Encrypt with this certificate, in PEM; needed to listen beyond the loopback
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key, which only its owner may read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name by which this server may be called besides its address (may be repeated; with TLS)
    #[arg(long, value_name = "NAME", requires = "tls_cert")]
    pub(crate) host: Vec<String>,
    /// Take the token from this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the address without the token, for a log that others read
    #[arg(long)]
    pub(crate) hide_token: bool,
}
