//! Arguments of `braid web`.

use std::path::PathBuf;

use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The printed address contains the token that gives access. The token is kept in the state \
                        folder, readable by this user only. A Unix socket needs no token:\n\n    \
                        braid web --listen unix:/run/braid-web.sock\n    curl --unix-socket \
                        /run/braid-web.sock http://localhost/api/v1/volumes"
)]
pub(crate) struct Web {
    #[command(subcommand)]
    pub(crate) what: Option<WebCommand>,
    /// Listening address: a loopback address with a port, or unix:PATH
    #[arg(long, value_name = "IP:PORT|unix:PATH", default_value = "127.0.0.1:7374")]
    pub(crate) listen: String,
    /// Show the laboratory reports below this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) lab: Option<PathBuf>,
    /// Show this case of `braid rescue`, for reading (may be given several times)
    #[arg(long, value_name = "CASE")]
    pub(crate) case: Vec<PathBuf>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Manage further tokens, each with its rights and an expiry
    #[command(subcommand)]
    Token(WebToken),
}

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Only digests of the tokens are kept. A server that runs uses the new list from the next \
                        request on."
)]
pub(crate) enum WebToken {
    /// Make a token and print it, this once
    Add(WebTokenAdd),
    /// List the tokens: their names, rights and expiry
    List(WebTokenList),
    /// Remove a token: it gives no access any more
    Remove(WebTokenRemove),
}

#[derive(Debug, Args)]
pub(crate) struct WebTokenAdd {
    /// Name of the token
    pub(crate) name: String,
    /// Only requests that change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Time after which the token gives no access, such as 12h or 30d [default: never]
    #[arg(long, value_name = "TIME", value_parser = super::lab::parse_time)]
    pub(crate) expires: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WebTokenList {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WebTokenRemove {
    /// Name of the token
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
