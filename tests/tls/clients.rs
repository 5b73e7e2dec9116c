//! Every client with every version of TLS, alone and with a certificate of its own; and certificates that are not accepted.

use std::path::Path;

use crate::authority::{Authority, Period, SERVER};
use crate::common::{MIB, Scratch, Tool, UpVolume, assert_same_bytes, skip_without};
use crate::{plugin, serve, size, uri, world};

/// A file that has clients with GnuTLS do without these versions.
fn without(scratch: &Scratch, versions: &[&str]) -> std::path::PathBuf {
    let path = scratch.join(&format!("without{}", versions.concat()));
    let lines: String = versions.iter().map(|one| format!("disabled-version = {one}\n")).collect();
    std::fs::write(&path, format!("[overrides]\n{lines}")).expect("a file");
    path
}

/// Copies a file to the volume at `uri` and back, by the client called `client`.
fn copy_both_ways(
    scratch: &Scratch,
    client: &str,
    (volume, folder): (&UpVolume<'_>, &Path),
    priority: &Path,
) {
    let uri = &uri(volume, folder);
    let (there, back) = (scratch.file("there", 16 * MIB, 7), scratch.join("back"));
    let _ = std::fs::remove_file(&back);
    let (from, to) = (there.display().to_string(), back.display().to_string());
    let run = |program: &str, args: &[&str]| {
        let tool = Tool::new(program).args(args).folder(scratch.path());
        tool.env("GNUTLS_SYSTEM_PRIORITY_FILE", priority).run().ok()
    };
    match client {
        "nbdcopy" => {
            run("nbdcopy", &["--flush", &from, uri]);
            run("nbdcopy", &[uri, &to]);
        }
        "qemu-img" => {
            let address = uri.strip_prefix("nbds://").expect("over TLS");
            let port = address.split('/').next().and_then(|host| host.rsplit(':').next());
            let image = format!(
                "driver=raw,file.driver=nbd,file.server.type=inet,file.server.host=127.0.0.1,\
                 file.server.port={},file.tls-creds=tls0",
                port.expect("a port")
            );
            let object = format!("tls-creds-x509,id=tls0,endpoint=client,dir={}", folder.display());
            let object = ["--object", object.as_str()];
            let to_image = ["convert", "-n", "-f", "raw", "--target-image-opts", &from, &image];
            let of_image = ["convert", "-O", "raw", "--image-opts", &image, &to];
            for args in [&to_image[..], &of_image] {
                let (command, rest) = args.split_first().expect("a command");
                run("qemu-img", &[&[*command][..], &object, rest].concat());
            }
        }
        "nbdkit" => {
            let plugin = plugin(volume, folder);
            let plugin = plugin.iter().map(String::as_str);
            let script = "nbdcopy --flush there \"$uri\" && nbdcopy \"$uri\" back";
            let args: Vec<&str> =
                ["-U", "-"].into_iter().chain(plugin).chain(["--run", script]).collect();
            run("nbdkit", &args);
        }
        other => panic!("no such client: {other}"),
    }
    assert_same_bytes(&there, &back);
}

#[test]
fn clients_with_either_version_read_and_write_with_and_without_certificates() {
    skip_without!("openssl", "nbdinfo", "nbdcopy", "qemu-img", "nbdkit");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let anonymous = scratch.join("anonymous");
    std::fs::create_dir(&anonymous).expect("a folder");
    std::fs::copy(server.join("ca-cert.pem"), anonymous.join("ca-cert.pem")).expect("a file");
    let known = authority.folder(&scratch, "known", "client", "DNS:host.example", Period::Valid);
    // 1.2 alone, 1.3 alone, and both: then 1.3 is agreed on. A client that lacks 1.2 must not offer what is older, either:
    // no server takes such a list of versions.
    let alone = without(&scratch, &["tls1.2", "tls1.1", "tls1.0", "dtls1.2", "dtls1.0"]);
    let versions = [without(&scratch, &["tls1.3"]), alone, without(&scratch, &[])];
    let old = without(&scratch, &["tls1.2", "tls1.3"]);
    let open = serve(&scratch, "open", &server, &[]);
    let mutual = serve(&scratch, "mutual", &server, &["--tls-verify-peer"]);
    for (volume, folder) in [(&open, &anonymous), (&mutual, &known)] {
        let uri = uri(volume, folder);
        for priority in &versions {
            let with =
                |program: &str| Tool::new(program).env("GNUTLS_SYSTEM_PRIORITY_FILE", priority);
            let info = with("nbdinfo").args(["--json", &uri]).run().ok().json();
            assert_eq!((&info["TLS"], &info["structured"]), (&true.into(), &true.into()));
            for client in ["nbdcopy", "qemu-img", "nbdkit"] {
                copy_both_ways(&scratch, client, (volume, folder), priority);
            }
        }
        // The file has effect, so 1.2 and 1.3 were used alone above; and older versions are refused.
        let with_old = Tool::new("nbdinfo").env("GNUTLS_SYSTEM_PRIORITY_FILE", &old);
        assert!(!with_old.args(["--size", &uri]).run().status.success());
    }
}

#[test]
fn certificates_that_are_not_valid_are_refused_by_either_side() {
    skip_without!("openssl", "nbdinfo");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let other = Authority::new(&scratch, "other");
    let mutual = serve(&scratch, "mutual", &server, &["--tls-verify-peer"]);
    let client = |by: &Authority, name: &str, period: Period| {
        let folder = by.folder(&scratch, name, "client", "DNS:host.example", period);
        // A client of another authority knows the server's.
        std::fs::copy(server.join("ca-cert.pem"), folder.join("ca-cert.pem")).expect("a file");
        size(&uri(&mutual, &folder))
    };
    client(&authority, "good", Period::Valid).ok();
    for refused in [
        client(&other, "of another", Period::Valid),
        client(&authority, "expired", Period::Expired),
        client(&authority, "not yet", Period::NotYet),
    ] {
        assert!(!refused.status.success(), "{refused}");
    }
    let anonymous = scratch.join("anonymous");
    std::fs::create_dir(&anonymous).expect("a folder");
    std::fs::copy(server.join("ca-cert.pem"), anonymous.join("ca-cert.pem")).expect("a file");
    assert!(!size(&uri(&mutual, &anonymous)).status.success(), "a client without a certificate");
    // The other side: servers that a client refuses.
    for (index, (by, names, period)) in [
        (&other, SERVER, Period::Valid),
        (&authority, SERVER, Period::Expired),
        (&authority, SERVER, Period::NotYet),
        (&authority, "DNS:elsewhere.example", Period::Valid),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bad{index}");
        let folder = by.folder(&scratch, &name, "server", names, period);
        let volume = serve(&scratch, &name, &folder, &[]);
        let refused = size(&uri(&volume, &anonymous));
        assert!(!refused.status.success(), "{name}: {refused}");
    }
    // Through all of it, good clients are served.
    size(&uri(&mutual, &scratch.join("good"))).ok();
}
