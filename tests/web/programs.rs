//! Needs of programs that run for long: jobs that are waited for and ended, events that are resumed, tokens with
//! rights and an expiry.

use std::io::{BufRead, Read};

use serde_json::{Value, json};

use crate::common::{MIB, Scratch, wait_until};
use crate::server::{Answer, Web, with_home};

const ORDERS: &str = "/api/v1/volumes/home/orders";

fn order(web: &Web<'_>, order: Value) {
    web.post(ORDERS, &json!({ "order": order })).ok();
}

/// The path of the last job of a kind.
fn job_of(web: &Web<'_>, kind: &str) -> String {
    let jobs = web.get("/api/v1/jobs").ok()["jobs"].as_array().cloned().expect("jobs");
    let job = jobs.iter().rev().find(|job| job["kind"] == kind).expect("a job of that kind");
    format!("/api/v1/jobs/{}", job["id"].as_str().expect("an id"))
}

#[test]
fn a_job_is_waited_for_and_ended() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    assert_eq!(web.get("/api/v1/jobs").ok()["jobs"], json!([]));
    let speed = |bytes: u64| order(&web, json!({ "speed": { "max_bytes_per_second": bytes } }));
    speed(256 << 10);
    order(&web, json!({ "scrub": {} }));
    let check = job_of(&web, "check");
    wait_until("the check runs", || web.get(&check).ok()["state"] == "running");
    let job = web.get(&check).ok();
    assert_eq!((&job["volume"], &job["array"]), (&json!("home"), &json!("home")));
    assert_eq!((&job["can_be_ended"], &job["ended_ms"]), (&json!(true), &Value::Null));
    // A request that waits is answered when it ends.
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| web.get(&format!("{check}?wait=50")));
        assert!(web.delete(&check).ok()["done"].is_string());
        waits.join().expect("an answer")
    });
    let ended = waited.ok();
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(ended["ended_ms"].as_u64() >= ended["began_ms"].as_u64(), "{ended}");
    assert_eq!(web.delete(&check).ok()["done"], "Nothing: the check has ended already.");
    // What no order ends is said to be so, and goes on.
    let path = |name: &str| scratch.join(name).display().to_string();
    order(&web, json!({ "replace": { "member": path("b.img"), "with": path("c.img") } }));
    wait_until("the replacement is a job", || {
        web.get("/api/v1/jobs").ok()["jobs"].to_string().contains("\"replace\"")
    });
    let replace = job_of(&web, "replace");
    assert_eq!(web.get(&replace).ok()["member"], path("c.img"));
    web.delete(&replace).refused(409, "cannot be ended by an order");
    speed(0);
    let done = web.get(&format!("{replace}?wait=50")).ok();
    assert_eq!((&done["state"], &done["done_bytes"]), (&json!("done"), &done["total_bytes"]));
    // Numbers grow; ids that lead to nothing say so.
    assert!(done["number"].as_u64() > ended["number"].as_u64());
    for wrong in ["home.a0.1", "home.a9.1", "nobody.v.1", "x"] {
        web.get(&format!("/api/v1/jobs/{wrong}")).refused(404, "there is no job");
    }
    web.get(&format!("{replace}?wait=301")).refused(400, "longer than 300 s");
    web.get(&format!("{replace}?until=1")).refused(400, "means nothing here");
    // An image is a job of the volume as a whole.
    scratch.run(&["up", "ram(4M)", "--name", "r", "--attach", "none"]).ok();
    let save = json!({ "order": { "whole": { "save": { "file": path("r.lz4") } } } });
    web.post("/api/v1/volumes/r/orders", &save).ok();
    let job = web.get(&job_of(&web, "save")).ok();
    assert_eq!(
        (&job["volume"], &job["array"], &job["state"]),
        (&json!("r"), &Value::Null, &json!("done"))
    );
    assert_eq!((&job["done_bytes"], &job["total_bytes"]), (&json!(4 * MIB), &json!(4 * MIB)));
    // The same file again is refused: that is no job.
    assert_eq!(web.post("/api/v1/volumes/r/orders", &save).status, 409);
    assert_eq!(web.get("/api/v1/jobs").ok()["jobs"].to_string().matches("\"save\"").count(), 1);
    scratch.run(&["down", "home"]).ok();
    web.get(&replace).refused(404, "there is no job");
}

/// An event of a stream: its id, kind and data.
type Told = (Option<u64>, String, Value);

fn next(stream: &mut impl BufRead) -> Told {
    let (mut id, mut kind) = (None, String::new());
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream ended");
        match line.trim_end().split_once(": ") {
            Some(("id", text)) => id = text.parse().ok(),
            Some(("event", text)) => kind = text.to_owned(),
            Some(("data", text)) => return (id, kind, serde_json::from_str(text).expect("JSON")),
            _ => {}
        }
    }
}

#[test]
fn events_of_the_monitor_are_resumed_by_their_id() {
    let scratch = Scratch::new();
    with_home(&scratch);
    scratch.run(&["monitor", "--oneshot"]).ok();
    let web = Web::start(&scratch, &[]);
    let follow = |query: &str, headers: &str| web.follow_as(web.token(), query, headers).0;
    let mut live = follow("", "");
    let (id, kind, state) = next(&mut live);
    let seen = id.expect("the first state has the id of the last event");
    assert_eq!((kind.as_str(), &state["volumes"]["home"]["state"]), ("state", &json!("online")));
    let member = scratch.join("b.img").display().to_string();
    scratch.run(&["member", "fail", "home", &member]).ok();
    scratch.run(&["monitor", "--oneshot"]).fails(1, &["Fail"]);
    let event = |stream: &mut _| loop {
        let (id, kind, data) = next(stream);
        if kind == "event" {
            return (id.expect("an id"), data["event"].as_str().expect("a name").to_owned(), data);
        }
        assert!(kind != "missed", "{data}");
    };
    let (failed, name, data) = event(&mut live);
    assert_eq!((name.as_str(), &data["member"]), ("Fail", &json!(member)));
    assert!(failed > seen);
    // A client that comes again goes on behind what it saw, also when the server was started anew.
    drop(web);
    let web = Web::start(&scratch, &[]);
    let follow = |query: &str, headers: &str| web.follow_as(web.token(), query, headers).0;
    let header = |id: u64| format!("Last-Event-ID: {id}\r\n");
    for mut stream in [follow("", &header(seen)), follow(&format!("?after={seen}"), "")] {
        let (id, kind, _) = next(&mut stream);
        assert_eq!((id, kind.as_str()), (None, "state"));
        assert_eq!(event(&mut stream).0, failed);
    }
    // What a browser sends that connects again goes before the query of the first time.
    let mut stream = follow("?after=0", &header(seen));
    assert_eq!(event(&mut stream).0, failed);
    let mut stream = follow("?after=0", "");
    assert_eq!(event(&mut stream).1, "NewArray");
    // One that is too far behind is told so, and gets what is left.
    let mut stream = follow("", &header(7));
    assert_eq!(next(&mut stream).1, "state");
    let (_, kind, data) = next(&mut stream);
    assert_eq!((kind.as_str(), &data["after"]), ("missed", &json!(7)));
    assert_eq!(event(&mut stream).0, data["first"].as_u64().expect("the first that is left"));
    web.get("/api/v1/events?after=x").refused(400, "means nothing here");
    assert!(web.follow_as(web.token(), "", "Last-Event-ID: x\r\n").1.contains(" 400 "));
}

#[test]
fn a_token_has_rights_and_an_expiry() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    let add = |name: &str, options: &[&str]| {
        let all = [&["web", "token", "add", name, "--json"][..], options].concat();
        scratch.run(&all).ok().json()["token"].as_str().expect("a token").to_owned()
    };
    let ask = |token: &str, method: &str, path: &str, body: Value| -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("host", web.host()),
            ("authorization", &bearer),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        web.send(method, path, &headers, &body)
    };
    let get = |token: &str| ask(token, "GET", "/api/v1/volumes", Value::Null);
    let (view, ci) = (add("view", &["--read-only"]), add("ci", &["--expires", "30d"]));
    let lock = json!({ "order": { "whole": { "lock": {} } } });
    // One reads, the other does everything, and so does the token of the server.
    assert_eq!((get(&view).status, get(&ci).status, get(web.token()).status), (200, 200, 200));
    let refused = ask(&view, "POST", ORDERS, lock.clone());
    refused.refused(403, "this token may only read");
    assert_eq!(refused.json()["code"], "read-only-token");
    let volumes = "/api/v1/volumes";
    for (method, path, body) in [
        ("POST", volumes, json!({ "up": { "name": "home" } })),
        ("POST", "/api/v1/volumes/home/stop", json!({})),
        ("POST", "/api/v1/volumes/home/stop?plan=0", json!({})),
        ("DELETE", "/api/v1/jobs/home.a0.1", Value::Null),
    ] {
        ask(&view, method, path, body).refused(403, "this token may only read");
    }
    assert_eq!(web.get("/api/v1/volumes/home").ok()["device"]["locked"], false);
    ask(&view, "POST", &format!("{ORDERS}?plan=1"), lock.clone()).ok();
    ask(&ci, "POST", ORDERS, lock).ok();
    // The list and the file do not give them away.
    let file = std::fs::read_to_string(scratch.join("state/web-tokens.json")).unwrap();
    let listed = scratch.run(&["web", "token", "list"]).ok();
    for secret in [&view, &ci] {
        assert!(!file.contains(secret.as_str()) && !listed.out.contains(secret.as_str()));
    }
    assert!(listed.out.contains("view  read-only  does not expire"), "{listed}");
    assert!(listed.out.contains("ci  all  expires "), "{listed}");
    scratch.run(&["web", "token", "add", "ci"]).fails(3, &["is a token called ci already"]);
    scratch.run(&["web", "token", "remove", "other"]).fails(1, &["no token called other"]);
    scratch.run(&["web", "token", "add", "../x"]).fails(2, &["cannot name a token"]);
    // One that is removed opens nothing, and what it had open ends.
    let mut stream = web.follow_as(&view, "", "connection: close\r\n").0;
    assert_eq!(next(&mut stream).1, "state");
    scratch.run(&["web", "token", "remove", "view"]).ok();
    get(&view).refused(401, "that is not the token");
    scratch.run(&["down", "home"]).ok();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end of the stream");
    assert_eq!(get(&ci).status, 200, "the other one goes on");
    let short = add("short", &["--expires", "1s"]);
    wait_until("it has expired", || get(&short).status == 401);
    get(&short).refused(401, "the token short has expired");
    assert_eq!(get(web.token()).status, 200);
}

#[test]
fn what_overwrites_is_done_by_the_ticket_of_its_plan_alone() {
    let scratch = Scratch::new();
    with_home(&scratch);
    let web = Web::start(&scratch, &[]);
    let path = |name: &str| scratch.join(name).display().to_string();
    let (disks, planned) = ("/api/v1/disks", "/api/v1/disks?plan=1");
    let wipe = |member: &str| json!({ "order": { "wipe": { "members": [path(member)] } } });
    let with = |mut body: Value, ticket: &Value| {
        body["ticket"] = ticket.clone();
        body
    };
    // What the command line refuses is refused here, too.
    web.post(planned, &wipe("a.img")).refused(409, "a member of home, which is up");
    scratch.run(&["down", "home"]).ok();
    let before = scratch.read("a.img");
    let plan = web.post(planned, &wipe("a.img")).ok();
    assert_eq!(plan["plan"]["superblocks"][0]["path"], path("a.img"));
    assert_eq!(plan["command"], format!("braid wipe {}", path("a.img")));
    let refused = web.post(disks, &wipe("a.img"));
    assert_eq!(refused.refused(409, "goes with the ticket of its plan"), "not-possible");
    // A ticket is for that request alone, holds once, and only while the plan is the same.
    web.post(disks, &with(wipe("b.img"), &plan["ticket"])).refused(409, "nothing was done");
    web.post(disks, &with(wipe("a.img"), &plan["ticket"])).refused(409, "nothing was done");
    let stale = web.post(planned, &wipe("a.img")).ok();
    scratch.run(&["wipe", &path("a.img")]).ok();
    web.post(disks, &with(wipe("a.img"), &stale["ticket"])).refused(409, "nothing was done");
    let change = web.get("/api/v1/changes").ok()["changes"][0]["number"].clone();
    let undo = json!({ "order": { "undo": { "change": change } } });
    let plan = web.post(planned, &undo).ok();
    assert_eq!(plan["plan"]["number"], change);
    web.post(disks, &with(undo, &plan["ticket"])).ok();
    assert!(scratch.read("a.img") == before, "it is as it was");
    let plan = web.post(planned, &wipe("a.img")).ok();
    let done = web.post(disks, &with(wipe("a.img"), &plan["ticket"])).ok();
    assert_eq!((&done["changed"], &done["answer"]["written"]), (&json!(true), &json!(true)));
    // What cannot be examined is said of each member.
    let members = [path("a.img"), path("b.img"), "/nowhere".to_owned()];
    let examined = web.post("/api/v1/examine", &json!({ "members": members })).ok();
    let error = |index: usize| examined["members"][index]["error"].as_str().unwrap_or_default();
    assert!(error(0).contains("has no md superblock"), "{examined}");
    assert_eq!(error(1), "");
    assert!(error(2).contains("/nowhere"), "{examined}");
    web.post("/api/v1/examine", &json!({ "members": ["a.img"] })).refused(400, "no whole path");
    // The list is that of the command line; paths of one machine are sorted alike.
    let listed = web.get(disks).ok()["disks"].as_array().cloned().expect("disks");
    assert!(
        listed
            .iter()
            .all(|disk| disk["path"].as_str().is_some_and(|path| path.starts_with("/dev/")))
    );
}
