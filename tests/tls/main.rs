//! NBD inside TLS, with clients of others, and certificates that are made for the test.

#[path = "../common/mod.rs"]
mod common;

mod authority;
mod clients;
mod hostile;
mod members;
mod options;
mod rights;

use std::path::Path;

use authority::{Authority, Period, SERVER};
use common::{Output, Scratch, Tool, UpVolume};

/// Brings `ram(16M)` up on the loopback as `name`, with the certificates in `folder`.
fn serve<'a>(scratch: &'a Scratch, name: &str, folder: &Path, options: &[&str]) -> UpVolume<'a> {
    let folder = folder.to_str().expect("scratch paths are plain");
    let usual = ["--name", name, "--attach", "none", "--nbd", "tcp:127.0.0.1:0"];
    let own = ["--tls-certificates", folder];
    scratch.up("ram(16M)", &[&usual[..], &own, options].concat())
}

/// The address of a volume for a client with the certificates in `folder`.
fn uri(volume: &UpVolume<'_>, folder: &Path) -> String {
    let uri = &volume.uris[0];
    assert!(uri.starts_with("nbds://127.0.0.1:"), "{uri}");
    format!("{uri}/?tls-certificates={}", folder.display())
}

/// nbdkit's parameters for its nbd plugin, whose URIs may not name certificates.
fn plugin(volume: &UpVolume<'_>, folder: &Path) -> [String; 6] {
    let port = volume.uris[0].rsplit(':').next().expect("a port");
    let folder = folder.display();
    [
        "nbd".to_owned(),
        "hostname=127.0.0.1".to_owned(),
        format!("port={port}"),
        "tls=require".to_owned(),
        format!("tls-certificates={folder}"),
        "tls-verify=true".to_owned(),
    ]
}

/// `nbdinfo --size`.
fn size(uri: &str) -> Output {
    Tool::new("nbdinfo").args(["--size", uri]).run()
}

/// An authority, with the folder of a server that it has signed.
fn world(scratch: &Scratch) -> (Authority, std::path::PathBuf) {
    let authority = Authority::new(scratch, "authority");
    let server = authority.folder(scratch, "server", "server", SERVER, Period::Valid);
    (authority, server)
}
