//! The Python client against the real program: over TCP with the token, and over a Unix socket.

use std::path::Path;

use crate::common::{MIB, Scratch, Tool, skip_without};
use crate::server::Web;

fn run(scratch: &Scratch, server: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = here.join("tests/web/client.py");
    let output = Tool::new("python3")
        .arg("-B")
        .arg(&script)
        .args([server, scratch.path().to_str().expect("a plain path")])
        .env("PYTHONPATH", here.join("clients/python"))
        .env("BRAID_RUN_DIR", scratch.run_folder())
        .run()
        .ok();
    assert_eq!(output.out.trim(), "all of it", "{output}");
}

#[test]
fn over_tcp_and_over_a_unix_socket() {
    skip_without!("python3");
    for is_unix in [false, true] {
        let scratch = Scratch::new();
        for name in ["a.img", "b.img", "c.img"] {
            scratch.sparse(name, 8 * MIB);
        }
        let listen = match is_unix {
            true => format!("unix:{}", scratch.join("web.sock").display()),
            false => "127.0.0.1:0".to_owned(),
        };
        let web = Web::start(&scratch, &["--listen", &listen]);
        run(&scratch, &web.printed);
    }
}

#[test]
fn the_client_is_small() {
    let text = include_str!("../../clients/python/braid.py");
    assert!(text.lines().count() < 300, "{}", text.lines().count());
}
