//! Rights by the names in certificates, and certificates that are replaced while clients are connected.

use std::process::{Child, Stdio};

use crate::authority::{Period, SERVER};
use crate::common::{MIB, Scratch, Tool, skip_without, start, wait_until};
use crate::{plugin, serve, size, uri, world};

#[test]
fn clients_have_the_rights_of_their_names_and_others_have_none() {
    skip_without!("openssl", "nbdinfo", "nbdcopy");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = |name: &str| {
        let names = format!("DNS:{name}.example");
        authority.folder(&scratch, name, "client", &names, Period::Valid)
    };
    // Without --tls-verify-peer: names make it necessary.
    let allow = [
        "--allow",
        "writer.example",
        "--allow",
        "reader.example=read",
        "--allow",
        "bad.example=none",
    ];
    let volume = serve(&scratch, "v", &server, &allow);
    let read_only = |name: &str| {
        let uri = uri(&volume, &client(name));
        Tool::new("nbdinfo").args(["--is", "read-only", &uri]).run()
    };
    assert!(read_only("reader").status.success());
    let writer = read_only("writer");
    assert_eq!(writer.code(), 2, "it may write: {writer}");
    for name in ["bad", "unlisted"] {
        let refused = size(&uri(&volume, &client(name)));
        assert!(!refused.status.success(), "{refused}");
    }
    let anonymous = scratch.join("anonymous");
    std::fs::create_dir(&anonymous).expect("a folder");
    std::fs::copy(server.join("ca-cert.pem"), anonymous.join("ca-cert.pem")).expect("a file");
    assert!(!size(&uri(&volume, &anonymous)).status.success(), "a client without a certificate");
    let bytes = scratch.file("bytes", 16 * MIB, 3).display().to_string();
    let copy = |name: &str| {
        let uri = uri(&volume, &scratch.join(name));
        Tool::new("nbdcopy").args([&bytes, &uri]).run()
    };
    copy("writer").ok();
    assert!(!copy("reader").status.success());
}

/// A program that ends with the test.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn replaced_certificates_are_for_new_clients_and_connected_ones_stay() {
    skip_without!("openssl", "nbdinfo", "nbdkit");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = authority.folder(&scratch, "client", "client", "DNS:host.example", Period::Valid);
    let volume = serve(&scratch, "v", &server, &["--tls-verify-peer"]);
    let uri = uri(&volume, &client);
    // A client that stays connected: nbdkit, which others ask through a socket.
    let socket = scratch.join("kept.sock");
    let kept = Tool::new("nbdkit").args(["-f", "-U"]).arg(&socket);
    let kept = kept.args(plugin(&volume, &client)).arg("shared=true");
    let kept = start(kept.into_command().stdin(Stdio::null())).expect("nbdkit");
    let _kept = Kept(kept);
    let through = format!("nbd+unix:///?socket={}", socket.display());
    wait_until("nbdkit listens", || size(&through).status.success());
    authority.sign(&server, "server", "DNS:elsewhere.example", Period::Valid);
    wait_until("new clients see the new name", || !size(&uri).status.success());
    size(&through).ok();
    // Half a certificate leaves those in use; a good one is taken again.
    let whole = std::fs::read(server.join("server-cert.pem")).expect("a certificate");
    std::fs::write(server.join("server-cert.pem"), &whole[..whole.len() / 2]).expect("a file");
    let problem = || volume.status()["exports"][0]["tls"]["problem"].clone();
    wait_until("the broken file is noticed", || problem().is_string());
    authority.sign(&server, "server", SERVER, Period::Valid);
    wait_until("new clients are served again", || size(&uri).status.success());
    assert!(problem().is_null());
    size(&through).ok();
}
