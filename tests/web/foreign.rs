//! The API as programs of others see it: schemathesis, which makes requests from the description, and Ansible with
//! the module for volumes.
//!
//! Both are Python's, in target/python: `scripts/setup.sh test` installs them. Without them the tests are skipped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{MIB, Scratch, Tool};
use crate::server::{Web, with_home};

/// Time limit: Python starts slowly, and each example is a request.
const LIMIT: Duration = Duration::from_secs(280);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program of target/python; says why there is none.
fn program(name: &str) -> Option<PathBuf> {
    let path = root().join("target/python/bin").join(name);
    if !path.is_file() {
        println!("skipped: {} is not there: scripts/setup.sh test installs it", path.display());
        return None;
    }
    Some(path)
}

/// The description for requests that are drawn from it: images go into the scratch folder, no device
/// of this machine is searched, and texts in languages of their own (parameters of caches, layouts) are some that are valid.
fn narrowed(scratch: &Scratch) -> Value {
    let text = include_str!("../../docs/api/openapi.json");
    let mut document: Value = serde_json::from_str(text).expect("JSON");
    let image = scratch.join("image.lz4").display().to_string();
    let assemble = &mut document["components"]["schemas"]["DiskOrder"]["oneOf"][0]["properties"];
    if let Some(assemble) = assemble["assemble"].as_object_mut() {
        assemble.remove("anyOf");
        assemble.insert("required".to_owned(), json!(["members"]));
        assemble["properties"].as_object_mut().map(|fields| fields.remove("scan"));
    }
    // Each stack would be one more volume.
    let up = &mut document["components"]["schemas"]["NewVolume"]["oneOf"][0]["properties"];
    if let Some(up) = up["up"].as_object_mut() {
        up.remove("anyOf");
        up.insert("required".to_owned(), json!(["name"]));
        if let Some(fields) = up["properties"].as_object_mut() {
            fields.remove("stack");
            fields.insert("name".to_owned(), json!({ "$ref": "#/components/schemas/Name" }));
        }
    }
    let of = |name: &str, field: &Value| match name {
        "file" => Some(json!({ "type": "string", "enum": [image] })),
        "attach" if field["enum"].is_array() => Some(json!({ "enum": ["none", null] })),
        "nbd" => Some(json!({ "type": "array", "maxItems": 0 })),
        "parameters" if field["enum"].is_null() => {
            Some(json!({ "type": "string", "enum": ["size=1M", "size=2M, policy=lru"] }))
        }
        "mode" if field["properties"]["mode"].is_object() => {
            let mut mode = field.clone();
            mode["properties"]["parameters"] = json!({ "enum": [""] });
            mode["properties"]["mode"] = json!({ "enum": ["write-through", "write-around"] });
            Some(mode)
        }
        "layout" => Some(json!({ "type": "null" })),
        _ => None,
    };
    for request in ["NewVolume", "Order"] {
        narrow(&mut document["components"]["schemas"][request], &of);
    }
    document
}

/// Replaces the schemas of fields for which `of` has another.
fn narrow(schema: &mut Value, of: &dyn Fn(&str, &Value) -> Option<Value>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(fields)) = object.get_mut("properties") {
                for (name, field) in fields {
                    *field = of(name, field).unwrap_or_else(|| field.take());
                }
            }
            object.values_mut().for_each(|value| narrow(value, of));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| narrow(value, of)),
        _ => {}
    }
}

#[test]
fn schemathesis_finds_no_difference_between_the_description_and_the_answers() {
    let Some(schemathesis) = program("schemathesis") else { return };
    let scratch = Scratch::new();
    with_home(&scratch);
    scratch.run(&["up", "ram(4M)", "--name", "scratch", "--attach", "none"]).ok();
    scratch.run(&["save", "scratch", "image.lz4"]).ok();
    let lab = scratch.join("lab");
    std::fs::create_dir(&lab).unwrap();
    std::fs::write(lab.join("report.html"), "<title>r</title>").unwrap();
    let web = Web::start(&scratch, &["--lab", lab.to_str().expect("a plain path")]);
    let description = scratch.join("openapi.json");
    std::fs::write(&description, narrowed(&scratch).to_string()).unwrap();
    // The control sockets have paths of their own, and a stream of events has no end.
    let output = Tool::new(schemathesis)
        .arg("run")
        .arg(&description)
        .args(["--url", &format!("http://{}", web.host())])
        .args(["--header", &format!("Authorization: Bearer {}", web.token())])
        // Devices of the machine may be volumes of other tests, whose processes are stopped: they would be waited for.
        .args(["--exclude-name", "GET /api/v1/disks"])
        .args(["--include-path-regex", "^/api/v1", "--exclude-path", "/api/v1/events"])
        .args([
            "--request-timeout",
            "60",
            "--max-examples",
            "12",
            "--seed",
            "1",
            "--workers",
            "1",
            "--no-color",
        ])
        .args(["--checks", "all", "--suppress-health-check", "all"])
        .args(["--phases", "examples,coverage,fuzzing"])
        .env("HOME", scratch.path())
        .env("LC_ALL", "C.UTF-8")
        .folder(scratch.path())
        .limit(LIMIT)
        .run()
        .ok();
    println!("{}", output.out);
    // It came through to the end, and the server lives.
    assert!(output.out.contains("✅ Fuzzing"), "{output}");
    web.get("/api/v1").ok();
}

#[test]
fn ansible_ensures_the_state_of_volumes() {
    let Some(playbook) = program("ansible-playbook") else { return };
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    let read = ["web", "token", "add", "ansible", "--read-only", "--json"];
    let token = scratch.run(&read).ok().json()["token"].clone();
    let socket = format!("unix:{}", scratch.join("web.sock").display());
    let _unix = Web::start(&scratch, &["--listen", &socket]);
    let tcp = Web::start(&scratch, &[]);
    let variables = json!({
        "here": scratch.path(), "url": format!("http://{}", tcp.host()), "token": token,
        "ansible_python_interpreter": root().join("target/python/bin/python3"),
    });
    let output = Tool::new(playbook)
        .args(["-i", "localhost,", "--extra-vars", &variables.to_string()])
        .arg(root().join("tests/web/volumes.yml"))
        .env("ANSIBLE_LIBRARY", root().join("clients/ansible/library"))
        .env("ANSIBLE_NOCOLOR", "1")
        .env("HOME", scratch.path())
        .env("LC_ALL", "C.UTF-8")
        .folder(scratch.path())
        .limit(LIMIT)
        .run()
        .ok();
    assert!(output.out.contains("failed=0"), "{output}");
    let text = include_str!("../../clients/ansible/library/braid_volume.py");
    assert!(text.lines().count() < 200, "{}", text.lines().count());
}
