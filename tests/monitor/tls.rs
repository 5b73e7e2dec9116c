//! Mail servers and a web server that want TLS, with certificates of an authority that is made for the test.

use std::path::Path;

use crate::common::{Output, Scratch, Tool, skip_without};
use crate::running::{MAIL_SERVER, WEB_SERVER, configure, got, server};

/// An authority `NAME.pem`, and what it says of a server with these names: `NAME-server.pem` and its key.
fn authority(scratch: &Scratch, name: &str, server: &str) {
    let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let openssl = |args: &[&str]| Tool::new("openssl").args(args).folder(scratch.path()).run().ok();
    let file = |what: &str| format!("{name}{what}");
    let (key, pem) = (file(".key"), file(".pem"));
    let subject = format!("/CN={name}");
    let own = ["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", &key, "-out", &pem];
    openssl(&[&own[..], &new].concat());
    let (server_key, server_pem) = (file("-server.key"), file("-server.pem"));
    let (request, names) = (file(".csr"), file(".names"));
    let asked = ["req", "-subj", "/CN=server", "-keyout", &server_key, "-out", &request];
    openssl(&[&asked[..], &new].concat());
    std::fs::write(scratch.join(&names), format!("subjectAltName={server}\n")).expect("names");
    openssl(&[
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        &request,
        "-CA",
        &pem,
        "-CAkey",
        &key,
        "-CAcreateserial",
        "-extfile",
        &names,
        "-out",
        &server_pem,
    ]);
}

/// `braid monitor --test` with this configuration; the machine trusts what `trusted` says.
fn test(scratch: &Scratch, config: &str, trusted: Option<&Path>) -> Output {
    let config = configure(scratch, config);
    let tool = scratch.braid().args(["monitor", "--test", "--config", &config]);
    match trusted {
        Some(file) => tool.env("SSL_CERT_FILE", file).run(),
        None => tool.run(),
    }
}

fn mail(tls: &str, host: &str, port: u64, ca_file: Option<&Path>) -> String {
    let ca_file =
        ca_file.map_or(String::new(), |file| format!("ca_file = \"{}\"\n", file.display()));
    format!(
        "timeout = \"60s\"\n[mail]\nto = [\"a@example.org\"]\nfrom = \"b@example.org\"\nvia = \"smtp\"\n\
         [smtp]\nhost = \"{host}\"\nport = {port}\ntls = \"{tls}\"\n{ca_file}"
    )
}

#[test]
fn mail_goes_by_tls_to_a_server_that_is_who_it_says_and_to_no_other() {
    skip_without!("python3", "openssl");
    if !Path::new("/usr/lib/python3/dist-packages/aiosmtpd").exists() {
        println!("skipped: python3-aiosmtpd is not installed");
        return;
    }
    let scratch = Scratch::new();
    authority(&scratch, "good", "DNS:localhost,IP:127.0.0.1");
    authority(&scratch, "other", "DNS:mail.example.org");
    let file = |name: &str| scratch.join(name).display().to_string();
    let serve = |name: &str, mode: &str, by: &str| {
        let (pem, key) = (file(&format!("{by}-server.pem")), file(&format!("{by}-server.key")));
        server(&scratch, name, MAIL_SERVER, &[mode, &pem, &key])
    };
    let (good, other) = (scratch.join("good.pem"), scratch.join("other.pem"));
    for mode in ["starttls", "tls"] {
        let (_server, port) = serve(mode, mode, "good");
        let output = test(&scratch, &mail(mode, "127.0.0.1", port, Some(&good)), None).ok();
        assert!(output.out.contains("mail: 1 messages were handed over"), "{output}");
        assert!(got(&scratch, mode).contains("Subject: TestMessage event"));
        let before = got(&scratch, mode);
        // Neither an unknown authority, nor another one's.
        for ca_file in [None, Some(other.as_path())] {
            let output =
                test(&scratch, &mail(mode, "127.0.0.1", port, ca_file), None).fails(1, &[]);
            assert!(output.out.contains("mail: failed: "), "{output}");
            assert!(output.out.contains("certificate: UnknownIssuer"), "{output}");
            assert!(output.out.contains("`smtp.ca_file`"), "{output}");
        }
        assert_eq!(got(&scratch, mode), before, "nothing was handed over");
        // The right authority, and another server's certificate.
        let name = format!("{mode}-wrong");
        let (_server, port) = serve(&name, mode, "other");
        let output =
            test(&scratch, &mail(mode, "127.0.0.1", port, Some(&other)), None).fails(1, &[]);
        assert!(output.out.contains("mail.example.org"), "{output}");
        assert_eq!(got(&scratch, &name), "");
    }
    // A server without TLS gets nothing in the clear.
    let (_server, port) = serve("clear", "clear", "good");
    let output =
        test(&scratch, &mail("starttls", "127.0.0.1", port, Some(&good)), None).fails(1, &[]);
    assert!(output.out.contains("STARTTLS"), "{output}");
    assert_eq!(got(&scratch, "clear"), "");
}

#[test]
fn a_webhook_goes_by_tls_to_a_server_that_the_machine_trusts_and_to_no_other() {
    skip_without!("python3", "openssl");
    let scratch = Scratch::new();
    authority(&scratch, "good", "DNS:localhost,IP:127.0.0.1");
    authority(&scratch, "other", "DNS:example.org");
    let file = |name: &str| scratch.join(name).display().to_string();
    let serve = |name: &str, by: &str| {
        let (pem, key) = (file(&format!("{by}-server.pem")), file(&format!("{by}-server.key")));
        server(&scratch, name, WEB_SERVER, &["0", &pem, &key])
    };
    let hook = |port: u64| {
        format!("timeout = \"60s\"\n[[webhook]]\nurl = \"https://127.0.0.1:{port}/secret\"\n")
    };
    let (good, other) = (scratch.join("good.pem"), scratch.join("other.pem"));
    let (_web, port) = serve("web", "good");
    let output = test(&scratch, &hook(port), Some(&good)).ok();
    assert!(output.out.contains("1 messages were handed over"), "{output}");
    let before = got(&scratch, "web");
    assert!(before.contains("TestMessage"), "{before}");
    let output = test(&scratch, &hook(port), Some(&other)).fails(1, &[]);
    assert!(output.out.contains("certificate: UnknownIssuer"), "{output}");
    assert!(output.out.contains("/etc/ssl/certs") && !output.out.contains("secret"), "{output}");
    assert_eq!(got(&scratch, "web"), before, "nothing was handed over");
    let (_wrong, port) = serve("wrong", "other");
    let output = test(&scratch, &hook(port), Some(&other)).fails(1, &[]);
    assert!(output.out.contains("example.org"), "{output}");
    assert_eq!(got(&scratch, "wrong"), "");
}
