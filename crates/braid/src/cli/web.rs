//! Arguments of `braid web`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "The printed address contains the token that gives access. The token is kept in the state \
                        folder, readable by this user only. A Unix socket needs no token:\n\n    \
                        braid web --listen unix:/run/braid-web.sock\n    curl --unix-socket \
                        /run/braid-web.sock http://localhost/api/v1/volumes"
)]
pub(crate) struct Web {
    /// Listening address: a loopback address with a port, or unix:PATH
    #[arg(long, value_name = "IP:PORT|unix:PATH", default_value = "127.0.0.1:7374")]
    pub(crate) listen: String,
    /// Show the laboratory reports below this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lab: Option<PathBuf>,
    /// Encrypt with this certificate in PEM; required to listen beyond the loopback
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Additional host name of this server (may be given several times; with TLS)
    #[arg(long, value_name = "NAME", requires = "tls_cert")]
    pub(crate) host: Vec<String>,
    /// Read the token from this file, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the address without the token, for a log that others can read
    #[arg(long)]
    pub(crate) hide_token: bool,
}
