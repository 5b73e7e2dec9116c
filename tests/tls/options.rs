//! Options of TLS: refusals with the next command, and the record.

use crate::authority::{Period, SERVER};
use crate::common::{Scratch, skip_without, wait_until};
use crate::{serve, size, uri, world};

#[test]
fn bad_folders_and_rights_without_tls_are_refused_with_the_next_command() {
    skip_without!("openssl");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let folder = server.display().to_string();
    let refused = |options: &[&str], code: i32, parts: &[&str]| {
        let usual = ["serve", "ram(1M)", "--nbd", "tcp:127.0.0.1:0"];
        scratch.run(&[&usual[..], options].concat()).fails(code, parts)
    };
    refused(&["--tls", "require"], 2, &["no folder", "--tls-certificates DIR", "docs/exports.md"]);
    let missing = ["--tls-certificates", "/nonexistent"];
    refused(&missing, 1, &["/nonexistent/server-cert.pem", "No such file", "docs/exports.md"]);
    for mode in ["off", "on"] {
        let options = ["--tls", mode, "--tls-certificates", &folder, "--allow", "a=read"];
        refused(&options, 3, &["--allow", "without it, a client has no name"]);
    }
    refused(&["--allow", "a=all"], 2, &["NAME=read"]);
    // Beyond the loopback: not without TLS, and not if TLS is only offered.
    let beyond = ["--nbd", "tcp:0.0.0.0:0"];
    refused(
        &beyond,
        3,
        &["can be reached from other machines", "--tls-certificates", "--insecure"],
    );
    let offered = ["--nbd", "tcp:0.0.0.0:0", "--tls", "on", "--tls-certificates", &folder];
    refused(&offered, 3, &["can be reached from other machines"]);
    // Files that do not fit together, and a key that all users can read.
    let mixed = authority.folder(&scratch, "mixed", "server", "DNS:a", Period::Valid);
    std::fs::copy(server.join("server-key.pem"), mixed.join("server-key.pem")).expect("a file");
    let options = ["--tls-certificates", mixed.to_str().expect("plain")];
    let output = refused(&options, 1, &["server-cert.pem"]);
    assert!(!output.err.contains("PRIVATE"), "{output}");
    let key = server.join("server-key.pem");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, mode).expect("a mode");
    refused(&["--tls-certificates", &folder], 3, &["every user", "chmod o="]);
}

#[test]
fn certificates_let_a_volume_be_reached_beyond_the_loopback_and_are_remembered() {
    skip_without!("openssl", "nbdinfo");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = authority.folder(&scratch, "client", "client", "DNS:host.example", Period::Valid);
    let folder = server.display().to_string();
    let options = ["--nbd", "tcp:0.0.0.0:0", "--tls-certificates", &folder];
    scratch.serve("ram(1M)", &options).assert_serves();
    let volume = serve(&scratch, "v", &server, &["--allow", "host.example=read", "--remember"]);
    let status = volume.status();
    assert_eq!(status["exports"][0]["tls"]["verify_peer"], true, "{status}");
    size(&uri(&volume, &client)).ok();
    volume.down();
    let record = std::fs::read_to_string(scratch.config_file("v")).expect("a record");
    for part in ["[tls]", "host.example=read", &folder] {
        assert!(record.contains(part), "{part} is not in {record}");
    }
    let volume = scratch.up("v", &[]);
    size(&uri(&volume, &client)).ok();
    let plain = volume.uris[0].replacen("nbds", "nbd", 1);
    assert!(!size(&plain).status.success(), "a client without TLS");
}

#[test]
fn a_certificate_near_its_end_is_warned_about_until_it_is_replaced() {
    skip_without!("openssl");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    authority.sign(&server, "server", SERVER, Period::Days(10));
    let volume = serve(&scratch, "v", &server, &["--remember"]);
    let is_told = || {
        let status = scratch.run(&["status", "v"]).ok().out;
        let doctor = scratch.run(&["doctor"]).ok().out;
        let warned = |text: &str| text.contains("server-cert.pem expires in ");
        assert_eq!(warned(&status), warned(&doctor), "{status} {doctor}");
        assert!(!format!("{status}{doctor}").contains("PRIVATE"));
        warned(&status)
    };
    assert!(is_told());
    let metrics = scratch.run(&["metrics"]).ok().out;
    assert!(metrics.contains("braid_nbd_tls_expires_timestamp_seconds{volume=\"v\"}"), "{metrics}");
    authority.sign(&server, "server", SERVER, Period::Valid);
    wait_until("the warning ends", || {
        volume.status()["warnings"].as_array().is_some_and(|all| {
            !all.iter().any(|one| one.as_str().is_some_and(|text| text.contains("expires in")))
        })
    });
    assert!(!is_told());
}
