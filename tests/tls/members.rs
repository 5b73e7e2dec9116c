//! Remote members inside TLS: braid against braid, and against nbdkit.

use std::path::Path;
use std::process::Stdio;

use crate::authority::{Authority, Period, SERVER};
use crate::common::{MIB, Scratch, Tool, assert_same_bytes, skip_without, start, wait_until};
use crate::{serve, world};

/// A volume of the member at `uri` takes a file and gives it back.
fn copy_through(scratch: &Scratch, uri: &str) {
    let (there, back) = (scratch.file("there", 16 * MIB, 11), scratch.join("back"));
    let volume = scratch.serve(&format!("nbd({uri}, connections=2)"), &[]);
    Tool::new("nbdcopy").arg("--flush").arg(&there).arg(volume.uri()).run().ok();
    Tool::new("nbdcopy").arg(volume.uri()).arg(&back).run().ok();
    assert_same_bytes(&there, &back);
    assert!(volume.stop().success());
}

fn with(uri: &str, folder: &Path) -> String {
    format!("{uri}/?tls-certificates={}", folder.display())
}

#[test]
fn a_member_is_reached_over_tls_by_name_and_certificate() {
    skip_without!("openssl", "nbdcopy");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = |name: &str, by: &Authority, period: Period| {
        by.folder(&scratch, name, "client", &format!("DNS:{name}.example"), period)
    };
    let known = client("known", &authority, Period::Valid);
    let mutual = serve(&scratch, "mutual", &server, &["--allow", "known.example"]);
    copy_through(&scratch, &with(&mutual.uris[0], &known));
    let refused = |uri: &str, part: &str| {
        let stack = format!("nbd({uri})");
        let output = scratch.run(&["serve", &stack, "--nbd", "unix:refused"]);
        assert_eq!(output.code(), 1, "{output}");
        assert!(output.err.contains(part), "{part:?} is not in {output}");
        assert!(!output.err.contains("PRIVATE"), "{output}");
    };
    let other = Authority::new(&scratch, "other");
    let unlisted = client("unlisted", &authority, Period::Valid);
    refused(&with(&mutual.uris[0], &unlisted), "nbds://");
    let expired = client("expired", &authority, Period::Expired);
    refused(&with(&mutual.uris[0], &expired), "xpired");
    // Of another authority: the client does not accept the server.
    refused(&with(&mutual.uris[0], &client("foreign", &other, Period::Valid)), "TLS: ");
    let elsewhere = "tls-hostname=elsewhere.example";
    refused(&format!("{}&{elsewhere}", with(&mutual.uris[0], &known)), "TLS: ");
    refused(&with(&mutual.uris[0], Path::new("/nonexistent")), "/nonexistent/ca-cert.pem");
    // A server without TLS gets nothing but the question for it.
    let plain =
        scratch.up("ram(1M)", &["--name", "plain", "--attach", "none", "--nbd", "tcp:127.0.0.1:0"]);
    let uri = plain.uris[0].replacen("nbd", "nbds", 1);
    refused(&with(&uri, &known), "the server does not offer TLS");
    copy_through(&scratch, &with(&mutual.uris[0], &known));
}

#[test]
fn a_member_of_nbdkit_is_reached_over_tls_and_comes_back() {
    skip_without!("openssl", "nbdcopy", "nbdkit");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = authority.folder(&scratch, "client", "client", "DNS:host.example", Period::Valid);
    let disk = scratch.sparse("disk", 16 * MIB);
    let socket = scratch.join("kit.sock");
    let serve = || {
        let _ = std::fs::remove_file(&socket);
        let kit = Tool::new("nbdkit").args(["-f", "--tls=require", "--tls-verify-peer", "-U"]);
        let kit = kit.arg(&socket).arg(format!("--tls-certificates={}", server.display()));
        let mut kit = kit.arg("file").arg(&disk).into_command();
        let kit = start(kit.stdin(Stdio::null())).expect("nbdkit");
        wait_until("nbdkit listens", || socket.exists());
        kit
    };
    let mut kit = serve();
    let uri =
        format!("nbds+unix:///?socket={}&tls-certificates={}", socket.display(), client.display());
    let volume = scratch.serve(&format!("nbd({uri}, connections=2)"), &[]);
    let mut user = volume.client();
    user.write(0, &[7; 65536], false).expect("a write");
    kit.kill().and_then(|()| kit.wait()).expect("nbdkit ends");
    // The next server has another certificate.
    authority.sign(&server, "server", SERVER, Period::Valid);
    let mut kit = serve();
    user.flush().expect("requests are held until the server is back");
    assert_eq!(user.read(0, 65536).expect("a read"), [7; 65536]);
    kit.kill().and_then(|()| kit.wait()).expect("nbdkit ends");
}
