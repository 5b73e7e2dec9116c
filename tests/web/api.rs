//! The interface for programs: volumes are created, brought up, followed, changed and ended. The OpenAPI document
//! lists every route, and every answer matches its schema.

use std::collections::BTreeSet;
use std::io::BufRead;

use braid_control::Order;
use serde_json::{Value, json};

use crate::common::{MIB, Scratch, wait_until};
use crate::server::{Web, with_home};

fn member_state(web: &Web<'_>, member: &str) -> String {
    let volume = web.get("/api/v1/volumes/home").ok();
    let members = volume["arrays"][0]["members"].as_array().expect("members").clone();
    let found = members.into_iter().find(|one| one["member"] == member);
    found.map_or("gone".to_owned(), |one| one["state"].as_str().expect("a state").to_owned())
}

#[test]
fn a_member_is_planned_out_taken_out_and_taken_in_again() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    let path = |name: &str| scratch.join(name).display().to_string();
    let (a, b, c) = (path("a.img"), path("b.img"), path("c.img"));
    let orders = "/api/v1/volumes/home/orders";
    let planned = format!("{orders}?plan=1");
    let fail = |member: &str| json!({ "order": { "fail": { "member": member } } });
    let plan = web.post(&planned, &fail(&b)).ok();
    assert_eq!((&plan["possible"], &plan["why_not"]), (&json!(true), &Value::Null), "{plan}");
    assert_eq!(plan["command"], format!("braid member fail home {b}"));
    assert_eq!(member_state(&web, &b), "in_sync", "a plan does nothing");
    let seen = web.get("/api/v1/volumes/home").ok()["if_state"].clone();
    let with_state = |mut order: Value, seen: &Value| {
        order["if_state"] = seen.clone();
        order
    };
    let done = web.post(orders, &with_state(fail(&b), &seen)).ok();
    assert!(done["done"].as_str().expect("what was done").contains("is faulty now"), "{done}");
    assert_eq!(member_state(&web, &b), "faulty");
    // Only possible orders are offered: the last copy cannot be removed.
    let offers = web.get("/api/v1/volumes/home").ok()["offers"].clone();
    let offered = |label: &str, member: &str| {
        let mut all = offers.as_array().expect("offers").iter();
        all.any(|one| one["label"] == label && one["member"] == member)
    };
    assert!(offered("Remove", &b), "{offers}");
    assert!(!offered("Take out", &b) && !offered("Take out", &a) && !offered("Remove", &a));
    // With the name of an earlier state a possible order is refused, and an impossible one with its own reason.
    let remove = json!({ "order": { "remove": { "member": b } } });
    let changed = web.post(orders, &with_state(remove.clone(), &seen));
    assert_eq!(changed.refused(409, "has changed since it was looked at"), "state-changed");
    let last = web.post(orders, &with_state(fail(&a), &seen));
    assert_eq!(last.refused(409, "holds the only copy"), "last-copy");
    // A plan is refused as the order is, with the same code.
    let plan = web.post(&planned, &fail(&a)).ok();
    assert_eq!((&plan["possible"], &plan["code"]), (&json!(false), &json!("last-copy")), "{plan}");
    let last = web.post(orders, &fail(&a));
    assert_eq!(last.refused(409, "holds the only copy"), "last-copy");
    assert_eq!(member_state(&web, &a), "in_sync");
    let plan = web.post(&planned, &fail(&b)).ok();
    assert_eq!((&plan["possible"], &plan["changes"]), (&json!(true), &json!(false)), "{plan}");
    assert_eq!(web.post(orders, &fail(&b)).ok()["changed"], false, "it is faulty already");
    web.post(orders, &remove).ok();
    web.post(orders, &json!({ "order": { "add": { "member": "b.img" } } }))
        .refused(400, "no whole path");
    web.post(orders, &json!({ "order": { "add": { "member": b, "again": true } } })).ok();
    wait_until("b is in sync again", || member_state(&web, &b) == "in_sync");
    // An order that changes members also changes the record, as on the command line.
    web.post(orders, &json!({ "order": { "add": { "member": c } } })).ok();
    let record = std::fs::read_to_string(scratch.config_file("home")).unwrap();
    assert!(record.contains("c.img") && record.contains("b.img"), "{record}");
    // A refusal of the program is passed on with its next command.
    for name in ["d.img", "e.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch.run(&["create", "other", "--level", "raid1", "d.img", "e.img"]).ok();
    let refused = web.post(orders, &json!({ "order": { "add": { "member": path("d.img") } } }));
    refused.refused(409, "other");
    web.get("/api/v1/volumes/nobody").refused(404, "no volume called nobody is up");
    web.post("/api/v1/volumes/home/orders?x=1", &fail(&a)).refused(400, "means nothing here");
}

#[test]
fn events_begin_with_all_and_go_on_with_what_changed() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    let mut lines = web.follow().0.lines().map(|line| line.expect("events go on"));
    let mut next = |kind: &str| -> Value {
        let event = format!("event: {kind}");
        lines.by_ref().find(|line| *line == event).expect("an event");
        let data = lines.next().expect("its data");
        serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON")
    };
    let all = next("state");
    assert_eq!(all["volumes"]["home"]["state"], "online");
    assert_eq!(all["health"], "ok");
    let member = scratch.join("b.img").display().to_string();
    scratch.run(&["member", "fail", "home", &member]).ok();
    let changed = loop {
        let patch = next("patch");
        if patch["volumes"]["home"]["state"].is_string() {
            break patch;
        }
    };
    let home = &changed["volumes"]["home"];
    assert_eq!((&home["state"], &changed["health"]), (&json!("degraded"), &json!("degraded")));
    assert!(home["stack"].is_null(), "what did not change is not sent: {home}");
    scratch.run(&["down", "home"]).ok();
    loop {
        let patch = next("patch");
        if patch["volumes"]["home"]["state"] == "down" {
            let home = patch["volumes"]["home"].as_object().expect("what changed");
            assert_eq!(home.get("pid"), Some(&Value::Null), "what is gone is taken away: {home:?}");
            break;
        }
    }
}

/// Checks a value against a schema of OpenAPI, of which it knows the keywords that the document uses. Returns each fault
/// with its place.
fn wrong(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#").expect("a schema of this document");
        return wrong(
            document,
            document.pointer(name).expect("a schema that is there"),
            value,
            place,
        );
    }
    let mut found = Vec::new();
    if let Some(all) = schema["oneOf"].as_array() {
        let fits = all.iter().filter(|one| wrong(document, one, value, place).is_empty()).count();
        if fits != 1 {
            found.push(format!("{place}: {fits} of the alternatives fit {value}"));
        }
        return found;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => vec![kind],
    };
    let is_kind = kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number");
    if !is_kind {
        found.push(format!("{place}: {kind} is not one of {kinds:?}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        found.push(format!("{place}: {value} is not one of {allowed:?}"));
    }
    if let Value::Object(object) = value {
        for required in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(required.as_str().expect("a name")) {
                found.push(format!("{place}: no {required}"));
            }
        }
        for (key, value) in object {
            let place = format!("{place}/{key}");
            match &schema["properties"][key] {
                Value::Null if schema["additionalProperties"] == false => {
                    found.push(format!("{place}: not described"))
                }
                Value::Null => {}
                schema => found.extend(wrong(document, schema, value, &place)),
            }
        }
    }
    if let (Value::Array(all), items @ Value::Object(_)) = (value, &schema["items"]) {
        for (index, value) in all.iter().enumerate() {
            found.extend(wrong(document, items, value, &format!("{place}/{index}")));
        }
    }
    found
}

const DOCUMENT: &str = include_str!("../../docs/api/openapi.json");

/// Each operation: its method, path and description.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods").clone();
        methods.into_iter().map(|(method, one)| (method, path.clone(), one)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

#[test]
fn the_description_has_all_routes_and_the_program_answers_with_it() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let mut described: Vec<(String, String)> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let routes =
        braid_web::ROUTES.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned()));
    // The volume's own socket is described in the same document.
    let own = [
        ("get", "/v1/status"),
        ("get", "/v1/curves"),
        ("post", "/v1/order"),
        ("post", "/v1/plan"),
        ("post", "/v1/stop"),
    ];
    let own = own.map(|(method, path)| (method.to_owned(), path.to_owned()));
    let mut expected: Vec<(String, String)> = routes.chain(own).collect();
    described.sort();
    expected.sort();
    assert_eq!(described, expected);
    let scratch = Scratch::new();
    let web = Web::start(&scratch, &[]);
    assert_eq!(web.get("/api/v1/openapi.json").ok(), document);
}

/// The names that the program takes at a place within an order, as its error about another one lists them.
fn taken(place: &[&str]) -> BTreeSet<String> {
    let unknown =
        place.iter().rev().fold(json!({ "?": null }), |inner, name| json!({ *name: inner }));
    let error = serde_json::from_value::<Order>(unknown).expect_err("no order").to_string();
    match error.starts_with("unknown ") {
        true => error.split('`').skip(3).step_by(2).map(str::to_owned).collect(),
        false => BTreeSet::new(),
    }
}

/// The same as the description has it.
fn described(schema: &Value, place: &[&str]) -> BTreeSet<String> {
    let choices = |schema: &Value| {
        schema["oneOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()])
    };
    let here = place.iter().fold(schema.clone(), |schema, name| {
        let below = choices(&schema).into_iter().map(|one| one["properties"][*name].clone());
        below.into_iter().find(|one| !one.is_null()).unwrap_or_default()
    });
    let names = |one: Value| {
        let fields = one["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned());
        let words = one["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        fields.chain(words.map(str::to_owned)).collect::<Vec<_>>()
    };
    choices(&here).into_iter().flat_map(names).collect()
}

#[test]
fn the_description_has_every_order_with_all_its_fields() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let schema = &document["components"]["schemas"]["Order"];
    let mut places = vec![Vec::new()];
    let mut fields = 0;
    while let Some(place) = places.pop() {
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        let names = taken(&place);
        if names.is_empty() {
            // A value, which has no names.
            continue;
        }
        assert_eq!(described(schema, &place), names, "{place:?}");
        fields += names.len();
        let below =
            |name: String| place.iter().map(|one| (*one).to_owned()).chain([name]).collect();
        places.extend(names.into_iter().map(below));
    }
    assert!(fields > 50, "{fields}");
}

/// Runs the examples of `x-examples` in their order: each has a request and the expected status. `/srv` stands for a folder
/// with image files.
#[test]
fn every_example_is_run_and_answered_as_described() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    std::fs::create_dir(scratch.join("lab")).unwrap();
    std::fs::write(scratch.join("lab/report.html"), "<title>r</title>").unwrap();
    let lab = scratch.join("lab").display().to_string();
    let web = Web::start(&scratch, &["--lab", &lab]);
    let here = |value: &Value| {
        value.to_string().replace("/srv/", &format!("{}/", scratch.path().display()))
    };
    let mut examples = Vec::new();
    for (method, path, operation) in operations(&document) {
        for example in operation["x-examples"].as_array().into_iter().flatten() {
            let order = example["order"].as_u64().expect("its place among all examples");
            examples.push((
                order,
                method.clone(),
                path.clone(),
                operation.clone(),
                example.clone(),
            ));
        }
    }
    examples.sort_by_key(|(order, ..)| *order);
    assert!(examples.len() >= 20, "{}", examples.len());
    let mut with_one = std::collections::BTreeSet::new();
    for (order, method, path, operation, example) in examples {
        let name = example["name"].as_str().unwrap_or("home");
        let mut target =
            path.replace("{name}", name) + example["query"].as_str().unwrap_or_default();
        if path.contains("{id}") {
            // A job by its id, or the last one of a kind.
            let of_kind = || {
                let jobs = web.get("/api/v1/jobs").ok()["jobs"].as_array().cloned();
                let mut jobs = jobs.into_iter().flatten().rev();
                let job = jobs.find(|job| job["kind"] == example["id_of"]).expect("a job");
                job["id"].as_str().expect("an id").to_owned()
            };
            let id = example["id"].as_str().map_or_else(of_kind, str::to_owned);
            target = target.replace("{id}", &id);
        }
        if path == "/reports/{ticket}" {
            let opened = web.post("/api/v1/reports/open", &json!({ "path": "report.html" })).ok();
            target = opened["url"].as_str().expect("an address").to_owned();
        }
        if path == "/api/v1/events" {
            with_one.insert((method, path));
            continue;
        }
        let body = (method == "post").then(|| here(&example["body"]));
        let answer = match (&body, path.starts_with("/v1/")) {
            (body, true) => {
                let socket = scratch.run_folder().join(format!("{name}.sock"));
                let body = body.clone().unwrap_or_default();
                let request = format!(
                    "{} {target} HTTP/1.1\r\nhost: braid\r\nconnection: close\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{body}",
                    method.to_uppercase(),
                    body.len()
                );
                crate::server::over_unix(&socket, &request).after_interim()
            }
            (None, false) if method == "delete" => web.delete(&target),
            (Some(body), false) => web.post(&target, &serde_json::from_str(body).expect("JSON")),
            (None, false) => web.get(&target),
        };
        let place = format!("example {order}, {method} {target}");
        let status = example["status"].as_u64().unwrap_or(200);
        assert_eq!(u64::from(answer.status), status, "{place}: {answer:?}");
        if let Some(body) = &body {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let found = wrong(&document, schema, &serde_json::from_str(body).expect("JSON"), "");
            assert!(found.is_empty(), "{place}: the request: {found:?}");
        }
        let response = &operation["responses"][status.to_string()];
        assert!(response.is_object(), "{place}: no response {status} is described");
        let schema = &response["content"]["application/json"]["schema"];
        if schema.is_object() {
            let found = wrong(&document, schema, &answer.json(), "");
            assert!(found.is_empty(), "{place}: {found:#?}");
        }
        if example["then"] == "in sync" {
            wait_until("all members are in sync", || {
                let volume = web.get("/api/v1/volumes/home").ok();
                volume["arrays"][0]["in_sync"] == json!([true, true])
                    && volume["arrays"][0]["requested"].is_null()
            });
        }
        with_one.insert((method, path));
    }
    for (method, path, _) in operations(&document) {
        assert!(
            with_one.contains(&(method.clone(), path.clone())),
            "{method} {path} has no example"
        );
    }
}

#[test]
fn the_words_for_errors_are_those_of_the_description() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let words = braid_control::ErrorCode::ALL.iter().map(|code| code.word());
    assert_eq!(
        document["components"]["schemas"]["ErrorCode"]["enum"],
        serde_json::json!(words.collect::<Vec<_>>())
    );
}

#[test]
fn health_is_one_word_for_each_volume_and_for_all_and_that_of_the_command_line() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let words: Vec<&str> = braid_control::Health::ALL.iter().map(|one| one.word()).collect();
    assert_eq!(document["components"]["schemas"]["Health"]["enum"], json!(words));
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    let health = || {
        let all = web.get("/api/v1/volumes").ok();
        let typed = scratch.run(&["status", "--json"]).ok().json();
        // The server alone knows a volume that is down.
        if all["volumes"][0]["health"] != "down" {
            assert_eq!(typed["health"], all["health"]);
            assert_eq!(typed["volumes"][0]["health"], all["volumes"][0]["health"]);
        }
        [all["health"].clone(), all["volumes"][0]["health"].clone()]
    };
    assert_eq!(health(), ["ok", "ok"]);
    let member = scratch.join("b.img").display().to_string();
    scratch.run(&["member", "fail", "home", &member]).ok();
    assert_eq!(health(), ["degraded", "degraded"]);
    assert_eq!(web.get("/api/v1/volumes/home").ok()["health"], "degraded");
    scratch.run(&["down", "home"]).ok();
    assert_eq!(health(), ["ok", "down"]);
}

#[test]
fn programs_tell_errors_apart_and_may_say_things_twice() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let monitor = scratch.config_file("monitor");
    std::fs::write(&monitor, "").unwrap();
    let web = Web::start(&scratch, &[]);
    let path = |name: &str| scratch.join(name).display().to_string();
    let code = |asked: crate::server::Answer, status: u16| {
        assert_eq!(asked.status, status, "{asked:?}");
        asked.json()["code"].as_str().expect("a word").to_owned()
    };
    let volumes = "/api/v1/volumes";
    let listed = web.get(volumes).ok()["volumes"].to_string();
    assert!(!listed.contains("monitor"), "its file is no volume: {listed}");
    let up = |name: &str| json!({ "up": { "name": name, "attach": "none" } });
    assert_eq!(code(web.post(volumes, &up("monitor")), 400), "bad-request");
    // A volume that is in the wanted state already is no error. Another difference is refused and named.
    let planned = format!("{volumes}?plan=1");
    assert_eq!(web.post(&planned, &up("home")).ok()["does"], "Nothing: home is up already.");
    assert_eq!(web.post(volumes, &up("home")).ok()["done"], "Nothing: home is up already.");
    let other = json!({ "up": { "name": "home", "read_only": true } });
    assert_eq!(web.post(&planned, &other).ok()["possible"], false);
    let refused = web.post(volumes, &other);
    refused.refused(409, "home is up already, and it can be written to");
    assert_eq!(code(refused, 409), "already-up");
    let create = |name: &str, member: &str| json!({ "create": { "name": name, "level": "raid1", "members": [member, "missing"] } });
    assert_eq!(code(web.post(volumes, &create("home", &path("c.img"))), 409), "name-taken");
    assert_eq!(code(web.post(volumes, &create("x", &path("a.img"))), 409), "in-use");
    std::fs::write(scratch.join("swap.img"), [&vec![0; 4086][..], b"SWAPSPACE2"].concat()).unwrap();
    std::fs::File::options()
        .write(true)
        .open(scratch.join("swap.img"))
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    assert_eq!(code(web.post(volumes, &create("x", &path("swap.img"))), 409), "has-contents");
    let order = |order: Value| web.post("/api/v1/volumes/home/orders", &json!({ "order": order }));
    for lock in [json!({ "whole": { "lock": {} } }), json!({ "whole": "unlock" })] {
        let said = [order(lock.clone()).ok(), order(lock).ok()];
        assert!(said[1]["done"].as_str().is_some_and(|done| !done.is_empty()), "{said:?}");
    }
    // A route that takes no POST says so for any body.
    assert_eq!(code(web.post("/api/v1/events", &json!({})), 405), "method-not-allowed");
    let stop = || web.post("/api/v1/volumes/home/stop", &json!({}));
    stop().ok();
    assert_eq!(stop().ok()["done"], "Nothing: home is down already.");
    assert_eq!(code(web.post("/api/v1/volumes/nobody/stop", &json!({})), 404), "not-found");
    assert_eq!(code(web.get("/api/v1/volumes/home"), 404), "not-up");
}
