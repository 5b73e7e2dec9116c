//! Arguments of `braid metrics`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Each volume also serves its metrics at its control socket: curl \
                        --unix-socket /run/braid/NAME.sock http://braid/metrics")]
pub(crate) struct Metrics {
    /// Name of the volume [default: all]
    pub(crate) name: Option<String>,
    /// Serve the metrics at http://127.0.0.1:PORT/metrics until interrupted; only loopback
    /// addresses are accepted
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = loopback, conflicts_with = "textfile")]
    pub(crate) listen: Option<SocketAddr>,
    /// Write the metrics to FILE, which is replaced atomically (for node_exporter's textfile
    /// collector)
    #[arg(long, value_name = "FILE")]
    pub(crate) textfile: Option<PathBuf>,
}

/// Parses an address that other machines cannot reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "not an address with a port, such as 127.0.0.1:9123".to_owned())?;
    if !address.ip().is_loopback() {
        return Err(
            "other machines could reach it without encryption or authentication; use 127.0.0.1 or \
                    [::1], and a reverse proxy or node_exporter for remote access"
                .to_owned(),
        );
    }
    Ok(address)
}
