//! Refusals and failures have a code, a sentence and the next command, each of its own.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use braid_control::{
    CacheOrder, ErrorCode, Failure, FailureKind, Order, OrderAnswer, WholeOrder, post_order,
    post_plan,
};

use super::{MIB, Scratch};

const NONE: [&str; 2] = ["--attach", "none"];

/// Codes of what a plan cannot know: an image is read as a whole, and the record is written, when the order has begun.
const FOUND_LATER: [ErrorCode; 2] = [ErrorCode::ImageDamaged, ErrorCode::NotRecorded];

/// The answer of a volume to an order that it does not carry out, which is that of the plan.
#[track_caller]
fn refused(scratch: &Scratch, volume: &str, order: Order, code: ErrorCode) -> Failure {
    let socket = scratch.run_folder().join(format!("{volume}.sock"));
    let plan = post_plan(&socket, &order).expect("a plan");
    let failure = post_order(&socket, &order, 0).expect("an answer").expect_err("it is refused");
    assert_eq!(failure.code, code, "{order:?}: {failure:?}");
    let is_found_later = FOUND_LATER.contains(&code);
    assert_eq!(plan.refusal, (!is_found_later).then(|| failure.clone()), "{order:?}");
    assert!(!failure.why.contains("next: "), "{failure:?}");
    failure
}

#[track_caller]
fn done(scratch: &Scratch, volume: &str, order: &Order) {
    let socket = scratch.run_folder().join(format!("{volume}.sock"));
    let plan = post_plan(&socket, order).expect("a plan");
    let carried = post_order(&socket, order, 0).expect("an answer").expect("it is carried out");
    assert_eq!((plan.refusal, plan.changes), (None, carried.changed), "{order:?}");
}

fn fail(member: &Path) -> Order {
    Order::Fail { member: member.display().to_string(), array: None }
}

fn add(member: &Path) -> Order {
    Order::Add {
        member: member.to_owned(),
        force: false,
        again: false,
        write_mostly: false,
        array: None,
    }
}

/// The failure of a command, as programs read it.
#[track_caller]
pub(super) fn failure(scratch: &Scratch, arguments: &[&str]) -> Failure {
    let output = scratch.braid().env("BRAID_ERRORS", "json").args(arguments).run();
    let failure = Failure::said_last(&output.err).unwrap_or_else(|| panic!("{output}"));
    assert_eq!(output.code(), i32::from(failure.kind.exit_status()), "{output}");
    failure
}

/// The array `home` of a.img and b.img.
fn home(scratch: &Scratch) -> [PathBuf; 2] {
    let members = ["a.img", "b.img"].map(|name| scratch.sparse(name, 8 * MIB));
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "a.img", "b.img"];
    scratch.run(&create).ok();
    members
}

#[test]
fn orders_about_members_say_why_not_by_a_code() {
    let scratch = Scratch::new();
    let [a, b] = home(&scratch);
    let volume = scratch.up("home", &NONE);
    let refused = |order: Order, code| refused(&scratch, "home", order, code);
    let none = Order::Retest { array: Some("none".to_owned()) };
    let failure = refused(none, ErrorCode::NoSuchArray);
    assert_eq!((failure.kind, &failure.values["array"]), (FailureKind::Refused, &"none".into()));
    let failure = refused(fail(Path::new("/nowhere")), ErrorCode::NoSuchMember);
    assert_eq!(failure.values["members"].as_array().map(Vec::len), Some(2), "{failure:?}");
    let failure = refused(add(&a), ErrorCode::AlreadyMember);
    assert!(failure.next.is_some_and(|next| next.starts_with("`braid member remove`")));
    let remove = || Order::Remove { member: a.display().to_string(), array: None };
    refused(remove(), ErrorCode::MemberActive);
    let roles = Order::RaidDisks { count: 0, array: None };
    refused(roles, ErrorCode::Unsuitable);
    refused(add(&scratch.join("nowhere.img")), ErrorCode::Missing);
    refused(add(scratch.path()), ErrorCode::WrongKind);
    refused(add(&scratch.sparse("tiny.img", 512)), ErrorCode::TooSmall);
    let swap = scratch.sparse("swap.img", 8 * MIB);
    scratch.patch("swap.img", 4086, b"SWAPSPACE2");
    refused(add(&swap), ErrorCode::HasContents);
    let disk = scratch.sparse("disk.img", 8 * MIB);
    scratch.patch("disk.img", 0, b"QFI\xfb\0\0\0\x03");
    refused(add(&disk), ErrorCode::NotRaw);
    done(&scratch, "home", &fail(&a));
    let failure = refused(fail(&b), ErrorCode::LastCopy);
    assert_eq!(failure.values["member"], b.display().to_string());
    let (member, with) = (a.display().to_string(), scratch.sparse("c.img", 8 * MIB));
    let replace = Order::Replace { member, with, force: false, write_mostly: false, array: None };
    refused(replace, ErrorCode::NotReplaceable);
    done(&scratch, "home", &remove());
    let again = Order::Add {
        member: a.clone(),
        force: false,
        again: true,
        write_mostly: false,
        array: None,
    };
    refused(again, ErrorCode::NotByBitmap);
    volume.down();
}

#[test]
fn orders_for_an_array_that_is_not_there_or_not_alone_say_so() {
    let scratch = Scratch::new();
    for (name, members) in [("one", ["a.img", "b.img"]), ("two", ["c.img", "d.img"])] {
        for member in members {
            scratch.sparse(member, 8 * MIB);
        }
        let create = ["create", name, "--level", "raid1", "--assume-clean"];
        scratch.run(&[&create[..], &members].concat()).ok();
    }
    let both = "linear(md(a.img, b.img), md(c.img, d.img))";
    let volume = scratch.up(both, &["--name", "both", "--attach", "none"]);
    let retest = || Order::Retest { array: None };
    let failure = refused(&scratch, "both", retest(), ErrorCode::WhichArray);
    assert_eq!(failure.values["arrays"], serde_json::json!(["one", "two"]));
    volume.down();
    let volume = scratch.up("ram(1M)", &["--name", "ram", "--attach", "none"]);
    refused(&scratch, "ram", retest(), ErrorCode::NoArray);
    volume.down();
}

#[test]
fn orders_for_a_volume_as_a_whole_say_why_not_by_a_code() {
    let scratch = Scratch::new();
    scratch.file("f.img", MIB, 1);
    let file = scratch.up("./f.img", &["--name", "file", "--attach", "none"]);
    let ram = scratch.up("ram(1M)", &["--name", "ram", "--attach", "none"]);
    let whole = |volume: &str, order, code| refused(&scratch, volume, Order::Whole(order), code);
    let resize = |bytes| WholeOrder::Resize { bytes };
    let save = |name: &str, force| WholeOrder::Save { file: scratch.join(name), force };
    let restore = |name: &str| WholeOrder::Restore { file: scratch.join(name), force: false };
    whole("file", resize(2 * MIB), ErrorCode::NotRam);
    whole("file", WholeOrder::Erase { force: false }, ErrorCode::NotRam);
    done(&scratch, "file", &Order::Whole(save("image", false)));
    let failure = whole("file", save("image", false), ErrorCode::FileExists);
    assert!(failure.next.is_some_and(|next| next.starts_with("another FILE; or `braid save file")));
    whole("file", save("f.img", true), ErrorCode::NoImage);
    let failure = whole("file", restore("image"), ErrorCode::HasData);
    assert_eq!(failure.values["volume"], "file");
    let failure = whole("ram", resize(MIB + 1), ErrorCode::BadSize);
    assert_eq!(failure.values["block_bytes"], 512);
    whole("ram", resize(1 << 50), ErrorCode::TooMuchMemory);
    done(&scratch, "ram", &Order::Whole(resize(2 * MIB)));
    whole("ram", restore("image"), ErrorCode::ImageSize);
    done(&scratch, "ram", &Order::Whole(resize(MIB)));
    std::fs::copy(scratch.join("image"), scratch.join("cut")).expect("a copy");
    scratch.resize("cut", std::fs::metadata(scratch.join("image")).expect("it is").len() / 2);
    whole("ram", restore("cut"), ErrorCode::ImageDamaged);
    done(&scratch, "ram", &Order::Whole(restore("image")));
    let failure = whole("ram", resize(MIB / 2), ErrorCode::DataBehindEnd);
    assert_eq!(failure.values["data_end"], MIB);
    done(&scratch, "ram", &Order::Whole(WholeOrder::Lock { force: false }));
    whole("ram", WholeOrder::Erase { force: true }, ErrorCode::Locked);
    done(&scratch, "ram", &Order::Whole(WholeOrder::Unlock));
    std::fs::write(scratch.config_file("ram"), "no record").expect("it is written");
    let failure = whole("ram", resize(2 * MIB), ErrorCode::NotRecorded);
    assert_eq!(failure.kind, FailureKind::Failed);
    file.down();
    ram.down();
    let options = ["--name", "read", "--attach", "none", "--read-only"];
    let volume = scratch.up("./f.img", &options);
    whole("read", WholeOrder::Unlock, ErrorCode::ReadOnly);
    volume.down();
}

#[test]
fn orders_about_caches_say_why_not_by_a_code() {
    let scratch = Scratch::new();
    scratch.sparse("f.img", 8 * MIB);
    scratch.sparse("g.img", 8 * MIB);
    let up = |stack: &str, name: &str| scratch.up(stack, &["--name", name, "--attach", "none"]);
    let attach = |parameters: String| CacheOrder::Attach { parameters };
    let mode = |mode: &str, parameters: &str| CacheOrder::Mode {
        mode: mode.to_owned(),
        parameters: parameters.to_owned(),
    };
    let drain = || CacheOrder::Drain { bytes_per_second: None };
    let cache = |volume: &str, order, code| refused(&scratch, volume, Order::Cache(order), code);
    let volume = up("./f.img", "v");
    cache("v", CacheOrder::Detach, ErrorCode::NoCache);
    cache("v", attach("size=8T".to_owned()), ErrorCode::TooMuchMemory);
    let foreign = scratch.file("foreign", MIB, 1).display().to_string();
    cache("v", attach(format!("size=1M, warm={foreign}")), ErrorCode::WarmUnfit);
    let small = scratch.sparse("small", 4096).display().to_string();
    let logged = attach(format!("size=1M, mode=write-back, log={small}"));
    cache("v", logged, ErrorCode::LogUnfit);
    done(&scratch, "v", &Order::Cache(attach("size=1M".to_owned())));
    cache("v", attach("size=1M".to_owned()), ErrorCode::HasCache);
    let failure = cache("v", mode("fast", ""), ErrorCode::BadRequest);
    assert_eq!(failure.kind, FailureKind::Usage);
    cache("v", drain(), ErrorCode::NotWriteBack);
    done(&scratch, "v", &Order::Cache(mode("write-back", "volatile=yes")));
    cache("v", mode("write-back", "volatile=yes"), ErrorCode::WriteBackAlready);
    volume.down();
    let volume = up("ram(1M)", "r");
    cache("r", attach("size=1M".to_owned()), ErrorCode::IsMemory);
    volume.down();
    let volume = up("raid0(cache(size=1M, f.img), g.img)", "i");
    cache("i", CacheOrder::Detach, ErrorCode::CacheInside);
    volume.down();
    let volume = up("raid0(cache(size=1M, f.img), cache(size=1M, g.img))", "s");
    cache("s", CacheOrder::Resize { bytes: 2 * MIB }, ErrorCode::SeveralCaches);
    volume.down();
}

#[test]
fn what_is_asked_over_the_socket_has_code_why_and_next_apart() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(1M)", &["--name", "ram", "--attach", "none"]);
    let said = |body: &str| {
        let mut stream = UnixStream::connect(scratch.run_folder().join("ram.sock")).expect("up");
        let head = "POST /v1/order HTTP/1.1\r\nhost: braid\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).expect("a request");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("an answer");
        said
    };
    let answer = |body: &str| -> serde_json::Value {
        let said = said(body);
        let json = said.rsplit("\r\n\r\n").next().expect("a body");
        serde_json::from_str(json).expect("JSON")
    };
    // A field that is not known may be what makes an order safe: nothing is done without it.
    for order in [r#"{"whole":{"erase":{"force":true,"dry-run":true}}}"#, r#"{"scrub":{"pace":1}}"#]
    {
        let refused = said(order);
        assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        assert!(refused.contains("unknown field `"), "{refused}");
    }
    let said = answer(r#"{"cache":"detach"}"#);
    let expected = serde_json::json!({
        "outcome": "refused",
        "code": "no-cache",
        "why": "ram has no cache",
        "next": "`braid cache attach ram size=SIZE` puts one in front",
        "values": { "volume": "ram" },
    });
    assert_eq!(said, expected);
    let said: OrderAnswer =
        serde_json::from_value(answer(r#"{"whole":"unlock"}"#)).expect("an answer");
    assert!(
        matches!(said, OrderAnswer::Done { text, changed: false, .. } if text == "ram is not locked")
    );
    volume.down();
}

#[test]
fn a_start_that_is_refused_says_so_for_programs() {
    let scratch = Scratch::new();
    let [a, _] = home(&scratch);
    let failure = |arguments: &[&str]| failure(&scratch, arguments);
    let twice = scratch.sparse("x.img", MIB);
    std::os::unix::fs::symlink(&twice, scratch.join("link.img")).expect("a link");
    let twice = ["up", "raid0(x.img, link.img)", "--name", "x", "--attach", "none"];
    assert_eq!(failure(&twice).code, ErrorCode::SharedBytes);
    let volume = scratch.up("home", &NONE);
    assert_eq!(failure(&["up", "home", "--attach", "none"]).code, ErrorCode::AlreadyUp);
    let taken = failure(&["up", "./a.img", "--name", "x", "--attach", "none", "--force", "a.img"]);
    assert_eq!((taken.code, taken.next.as_deref()), (ErrorCode::InUse, Some("braid down home")));
    assert_eq!(taken.values["volume"], "home");
    volume.down();
    std::fs::remove_file(a).expect("it is there");
    let alone = failure(&["up", "home", "--attach", "none"]);
    assert_eq!((alone.kind, alone.code), (FailureKind::Refused, ErrorCode::NotStartable));
    assert!(alone.next.is_some(), "{alone:?}");
}

/// Codes that no test can make an order or a command say, and why.
const NOT_MADE: &[(&str, &str)] = &[
    ("requests-under-way", "a disk has to keep requests for longer than its limit"),
    ("not-examined", "root, as whom tests run, may read everything"),
    ("no-memory", "what the machine has is not the test's"),
    ("cache-dirty", "it is drained while it is looked at"),
    ("not-drained", "the origin's disk has to fail"),
];

/// Rust files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|one| one == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn each_code_is_documented_and_asked_for_by_a_test() {
    let row = |code: &ErrorCode| format!("| `{}` | {} |", code.word(), code.meaning());
    let table: Vec<String> = ErrorCode::ALL.iter().map(row).collect();
    let documented =
        include_str!("../../docs/codes.md").lines().filter(|line| line.starts_with("| `"));
    assert_eq!(documented.collect::<Vec<_>>(), table, "docs/codes.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root.join("tests"), &mut files);
    sources(&root.join("crates"), &mut files);
    // Tests of the API have the words, as its clients do.
    let (mut tests, mut of_api) = (String::new(), String::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        let is_in = |folder: &str| file.components().any(|one| one.as_os_str() == folder);
        let begin = if is_in("tests") { Some(0) } else { text.find("#[cfg(test)]") };
        let test = begin.map_or("", |begin| &text[begin..]);
        tests += test;
        of_api += if is_in("web") { test } else { "" };
    }
    for code in ErrorCode::ALL {
        let is_made = tests.contains(&format!("ErrorCode::{code:?}"))
            || of_api.contains(&format!("{:?}", code.word()));
        let is_told = NOT_MADE.iter().any(|(word, _)| *word == code.word());
        assert!(
            is_made != is_told,
            "{}: by a test: {is_made}, in the list: {is_told}",
            code.word()
        );
    }
}
