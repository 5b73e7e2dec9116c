//! Requests that must be refused, each with the answer that says so.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::common::{MIB, Scratch, Tool, skip_without};
use crate::server::{Web, over_unix, with_results};

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn who_has_no_token_or_comes_from_elsewhere_is_refused() {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let (host, port) = (web.host(), web.host().rsplit_once(':').unwrap().1.to_owned());
    let good = format!("Bearer {}", web.token());
    let wrong = format!("Bearer {}", "0".repeat(64));
    let own = ("host", host);
    let may = ("authorization", good.as_str());
    let paths = [
        "/api/v1",
        "/api/v1/volumes",
        "/api/v1/events",
        "/api/v1/reports",
        "/api/v2",
        "/api/v1/openapi.json",
    ];
    for path in paths {
        web.send("GET", path, &[own], "").refused(401, "the token is missing");
        web.send("GET", path, &[own, ("authorization", &wrong)], "").refused(401, "not the token");
        let cookie = format!("token={}", web.token());
        web.send("GET", path, &[own, ("cookie", &cookie)], "").refused(401, "the token is missing");
        web.send("GET", &format!("{path}?token={}", web.token()), &[own], "")
            .refused(401, "missing");
    }
    // DNS rebinding: a foreign name that points here.
    let (other_port, evil) = (format!("127.0.0.1:1{port}"), format!("evil.example:{port}"));
    for name in ["evil.example", evil.as_str(), "127.0.0.1", other_port.as_str(), ""] {
        web.send("GET", "/", &[("host", name)], "").refused(421, "no name of this server");
        web.send("GET", "/api/v1", &[("host", name), may], "")
            .refused(421, "no name of this server");
    }
    assert_eq!(web.send("GET", "/", &[], "").status, 421, "no name at all");
    web.send("GET", &format!("http://{evil}/api/v1"), &[own, may], "").refused(421, "no name");
    web.send("GET", "/", &[("host", &format!("localhost:{port}"))], "");
    // Another page: it may know the token, and still may not ask.
    let foreign =
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")];
    for from in foreign {
        web.send("GET", "/api/v1/volumes", &[own, may, from], "").refused(403, "another page asks");
        let order = web.send("POST", "/api/v1/volumes", &[own, may, from, JSON], "{}");
        order.refused(403, "another page asks");
    }
    // What a form can send is no request; what would let it send more is never answered.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let form = web.send("POST", "/api/v1/volumes", &[own, may, ("content-type", kind)], "{}");
        form.refused(415, "a body is application/json");
    }
    let asked = [own, ("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let preflight = web.send("OPTIONS", "/api/v1/volumes", &asked, "");
    assert_eq!(preflight.status, 403, "{preflight:?}");
    let same = web.send("GET", "/api/v1", &[own, may, ("origin", &format!("http://{host}"))], "");
    assert_eq!(same.status, 200);
    for answer in
        [&preflight, &same, &web.send("GET", "/", &[own], ""), &web.send("GET", "/x", &[own], "")]
    {
        assert!(!answer.head.contains("access-control-"), "{answer:?}");
        assert!(!answer.head.contains("set-cookie"), "{answer:?}");
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
        ] {
            assert!(answer.head.contains(header), "{header}: {answer:?}");
        }
    }
}

#[test]
fn the_token_is_kept_and_its_owners() {
    let scratch = Scratch::new();
    let first = Web::start(&scratch, &[]);
    let kept = first.token().to_owned();
    drop(first);
    let again = Web::start(&scratch, &[]);
    assert_eq!(again.token(), kept);
    drop(again);
    let file = scratch.join("state/web-token");
    let hidden = Web::start(&scratch, &["--hide-token"]);
    assert!(!hidden.printed.contains(&kept), "{}", hidden.printed);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = scratch.run(&["web", "--listen", "127.0.0.1:0"]);
    refused.fails(3, &["may be known to others", "chmod 600"]);
    let open = scratch.run(&["web", "--listen", "0.0.0.0:0"]);
    open.fails(3, &["may be known to others"]);
    std::fs::remove_file(&file).unwrap();
    let open = scratch.run(&["web", "--listen", "0.0.0.0:0"]);
    open.fails(3, &["can be reached from other machines, and there is no TLS", "ssh -L"]);
    scratch.run(&["web", "--listen", "elsewhere"]).fails(2, &["no place to listen at"]);
}

#[test]
fn what_is_too_large_or_too_slow_is_ended_and_others_are_served() {
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    let large = json!({ "up": { "name": "x".repeat(70_000) } });
    web.post("/api/v1/volumes", &large).refused(413, "at most 65536 bytes");
    let head =
        format!("GET / HTTP/1.1\r\nhost: {}\r\nx: {}\r\n\r\n", web.host(), "y".repeat(64 << 10));
    assert_eq!(web.raw(head.as_bytes()).status, 431);
    web.post("/api/v1/volumes", &json!([])).refused(400, "the body is not what was expected");
    // More than there is room for: a head that never ends, and a body that never comes.
    let bearer = web.token().to_owned();
    let begun = |text: String| {
        let mut stream = web.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let mut slow: Vec<_> = (0..40).map(|_| begun("GET / HT".to_owned())).collect();
    slow.extend((0..24).map(|_| {
        begun(format!(
            "POST /api/v1/volumes HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {bearer}\r\n\
             content-type: application/json\r\ncontent-length: 10\r\n\r\n{{",
            web.host()
        ))
    }));
    // A client that comes then waits until one of them is ended, which is soon.
    assert_eq!(web.get("/api/v1").status, 200);
    let mut answer = Vec::new();
    let _ = slow.pop().expect("one of them").read_to_end(&mut answer);
    crate::server::Answer::parse(&answer).refused(408, "did not come in time");
}

#[test]
fn no_path_leads_out_of_the_reports() {
    let scratch = Scratch::new();
    let lab = scratch.join("lab");
    std::fs::create_dir_all(lab.join("one")).unwrap();
    std::fs::write(lab.join("one/report.html"), "<title>r</title><script>x</script>").unwrap();
    std::fs::write(scratch.join("secret.html"), "secret").unwrap();
    symlink(scratch.join("secret.html"), lab.join("link.html")).unwrap();
    let web = Web::start(&scratch, &["--lab", lab.to_str().unwrap()]);
    let listed = web.get("/api/v1/reports").ok();
    let paths: Vec<_> =
        listed["reports"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["one/report.html"]);
    let secret = scratch.join("secret.html").display().to_string();
    for path in
        ["../secret.html", "one/../../secret.html", "link.html", &secret, "/etc/passwd", "", "one"]
    {
        web.post("/api/v1/reports/open", &json!({ "path": path }))
            .refused(404, "there is no report");
    }
    let host = [("host", web.host())];
    for path in [
        "/../secret.html",
        "/%2e%2e/secret.html",
        "/reports/../../secret.html",
        "/reports/..%2f..%2fsecret.html",
        "//etc/passwd",
    ] {
        assert_eq!(web.send("GET", path, &host, "").status, 404, "{path}");
    }
    for name in ["..", "..%2f..%2fetc", "a%00b", "--force", "%ff"] {
        let answer = web.get(&format!("/api/v1/volumes/{name}"));
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
    }
    let opened = web.post("/api/v1/reports/open", &json!({ "path": "one/report.html" })).ok();
    let url = opened["url"].as_str().unwrap();
    let report = web.send("GET", url, &host, "");
    assert_eq!((report.status, report.body.contains("<title>r")), (200, true), "{report:?}");
    assert!(
        report.head.contains("content-security-policy: sandbox; default-src 'none'"),
        "{report:?}"
    );
    web.send("GET", url, &host, "").refused(404, "has been used");
    // Of results without a page it is drawn, and nothing is written.
    std::fs::create_dir(lab.join("two")).unwrap();
    with_results(&scratch, &lab.join("two"));
    let names = || {
        let all = std::fs::read_dir(lab.join("two")).unwrap().map(|one| one.unwrap());
        let mut all: Vec<_> =
            all.map(|one| (one.file_name(), one.metadata().unwrap().modified().unwrap())).collect();
        all.sort();
        all
    };
    let before = names();
    let draw = |path: &str| {
        let opened = web.post("/api/v1/reports/open", &json!({ "path": path })).ok();
        web.send("GET", opened["url"].as_str().unwrap(), &host, "")
    };
    let listed = web.get("/api/v1/reports").ok();
    let listed = listed["reports"].as_array().unwrap();
    assert!(listed.iter().any(|one| one["path"] == "two/results.sqlite"), "{listed:?}");
    let drawn = draw("two/results.sqlite");
    assert!(drawn.status == 200 && drawn.body.contains("cruzer-titanium"), "{drawn:?}");
    assert!(drawn.head.contains("content-security-policy: sandbox; default-src 'none'"));
    assert_eq!(names(), before);
    let page = scratch.run(&["lab", "report", "--print-html", lab.join("two").to_str().unwrap()]);
    assert!(page.ok().out.trim() == drawn.body.trim(), "as the command line draws it");
    std::fs::create_dir(lab.join("three")).unwrap();
    std::fs::write(lab.join("three/results.sqlite"), "of another user").unwrap();
    draw("three/results.sqlite").refused(502, "results.sqlite");
    symlink(scratch.join("lab/two"), lab.join("four")).unwrap();
    for path in ["four/results.sqlite", "two/../two/results.sqlite", "results.sqlite"] {
        web.post("/api/v1/reports/open", &json!({ "path": path }))
            .refused(404, "there is no report");
    }
    // Without a folder there are none.
    let without = Web::start(&scratch, &[]);
    without.get("/api/v1/reports").refused(404, "was not told where reports are");
}

#[test]
fn a_unix_socket_is_its_owners_and_needs_no_token() {
    let scratch = Scratch::new();
    let socket = scratch.join("web.sock");
    let listen = format!("unix:{}", socket.display());
    let web = Web::start(&scratch, &["--listen", &listen]);
    assert_eq!(web.printed, listen);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let ask = |host: &str| {
        over_unix(
            &socket,
            &format!("GET /api/v1/volumes HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
        )
    };
    assert_eq!(ask("localhost").ok(), json!({ "health": "ok", "volumes": [] }));
    ask("evil.example").refused(421, "no name of this server");
    scratch.run(&["web", "--listen", &listen]).fails(3, &["another process listens"]);
    let among = format!("unix:{}", scratch.run_folder().join("web.sock").display());
    scratch.run(&["web", "--listen", &among]).fails(2, &["is the folder of volumes' sockets"]);
    drop(web);
    // What one that was killed left is no hindrance, and what is no socket is left alone.
    drop(Web::start(&scratch, &["--listen", &listen]));
    let file = scratch.sparse("file", MIB);
    let over = format!("unix:{}", file.display());
    scratch.run(&["web", "--listen", &over]).fails(1, &["cannot listen"]);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), MIB);
}

#[test]
fn with_tls_it_is_reached_by_its_name_and_without_the_key_not_at_all() {
    skip_without!("openssl", "python3");
    let scratch = Scratch::new();
    let (cert, key) = (scratch.join("cert.pem"), scratch.join("key.pem"));
    let new = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ];
    let files = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=nas.lan"];
    let names = ["-addext", "subjectAltName=DNS:nas.lan,DNS:localhost,IP:127.0.0.1"];
    let openssl = Tool::new("openssl").folder(scratch.path()).args(new).args(files).args(names);
    openssl.run().ok();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let tls = ["--tls-cert", cert, "--tls-key", key, "--host", "nas.lan"];
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let start = |listen| scratch.braid().args(["web", "--listen", listen]).args(tls).run();
    start("127.0.0.1:0").fails(3, &["others may read it (mode 644)", "chmod 600"]);
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let web = Web::start(&scratch, &tls);
    let (address, token) = web.printed.split_once("/#token=").unwrap();
    let port = address.strip_prefix("https://nas.lan:").expect("its name").to_owned();
    let script = "import sys; from braid import Braid, Refused\n\
        url, token, cert = sys.argv[1:]\n\
        assert Braid(url, token=token, cafile=cert).volumes() == []\n\
        try: Braid(url, token='0' * 64, cafile=cert).volumes()\n\
        except Refused as refused: assert refused.status == 401\n\
        try: Braid(url, token=token).volumes()\n\
        except OSError as error: print(type(error).__name__)";
    let clients = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let url = format!("https://localhost:{port}");
    let python = Tool::new("python3")
        .env("PYTHONPATH", clients)
        .args(["-B", "-c", script, &url, token, cert]);
    let said = python.run().ok();
    assert_eq!(said.out.trim(), "SSLCertVerificationError", "{said}");
    // A client without encryption is not answered.
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: nas.lan\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}
