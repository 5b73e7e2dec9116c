//! What can be typed of metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "A volume says the same of itself at its control socket: curl --unix-socket \
                        /run/braid/NAME.sock http://braid/metrics"
)]
pub(crate) struct Metrics {
    /// The volume's name [default: all]
    pub(crate) name: Option<String>,
    /// Serve them at http://127.0.0.1:PORT/metrics until interrupted; no address but of this machine
    /// itself
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = loopback, conflicts_with = "textfile")]
    pub(crate) listen: Option<SocketAddr>,
    /// Write them to FILE, which is replaced in one go: for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    pub(crate) textfile: Option<PathBuf>,
}

/// An address that other machines do not reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "it is no address with a port, such as 127.0.0.1:9123".to_owned())?;
    if !address.ip().is_loopback() {
        return Err("other machines would reach it, without encryption or authentication; \
                    127.0.0.1 and [::1] are served, and node_exporter or a reverse proxy can pass \
                    them on"
            .to_owned());
    }
    Ok(address)
}
