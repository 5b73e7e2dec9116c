//! Real volumes whose members fail, a real mail server, a real web server, real programs.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::common::{self, Scratch, skip_without, wait_until};
use crate::running::{
    MAIL_SERVER, WEB_SERVER, configure, count, got, hooked, mirror, script, server, watch,
};

#[test]
fn everybody_is_told_once_of_what_happens_and_that_it_is_well_again() {
    skip_without!("python3");
    if !Path::new("/usr/lib/python3/dist-packages/aiosmtpd").exists() {
        println!("skipped: python3-aiosmtpd is not installed");
        return;
    }
    let scratch = Scratch::new();
    let (_mail, mail_port) = server(&scratch, "mail", MAIL_SERVER, &["clear"]);
    let (_web, web_port) = server(&scratch, "web", WEB_SERVER, &["2"]);
    let told = script(
        &scratch,
        "told",
        "echo \"$# $* | $BRAID_SEVERITY | $BRAID_NEXT\" >> \"$(dirname \"$0\")/program.got\"",
    );
    let config = configure(
        &scratch,
        &format!(
            "interval = \"1s\"\nsettle = \"0\"\nleave_out = [\"RebuildNN\"]\n\
             [limit]\nburst = 100\n[retry]\nfirst = \"1s\"\n\
             [mail]\nto = [\"admin@example.org\", \"Ops <ops@example.org>\"]\nfrom = \"braid@example.org\"\n\
             via = \"smtp\"\n[smtp]\nhost = \"127.0.0.1\"\nport = {mail_port}\n\
             [[webhook]]\nurl = \"http://127.0.0.1:{web_port}/hook\"\n\
             [[program]]\npath = \"{told}\"\n"
        ),
    );
    let home = mirror(&scratch, "home");
    let monitor = watch(&scratch, &config, "monitor.log");
    wait_until("the array is known", || count(&scratch, "NewArray") == 1);

    scratch.run(&["member", "fail", "home", "home-b.img"]).ok();
    let has = |name: &'static str, text: &'static str| {
        let scratch = &scratch;
        wait_until(text, move || got(scratch, name).contains(text));
    };
    has("mail", "Subject: Fail event on home");
    has("mail", "END");
    has("program", "Fail home");
    wait_until("the webhook", || count(&scratch, "Fail") == 1);
    let mail = got(&scratch, "mail");
    let failed = scratch.join("home-b.img").display().to_string();
    let next = format!(
        "`braid member remove home {failed}`, then `braid member add home DEVICE`; the member that was removed: \
         `braid member re-add home DEVICE`"
    );
    for part in [
        "ENVELOPE braid@example.org admin@example.org,ops@example.org",
        "To: admin@example.org, Ops <ops@example.org>",
        "event: Fail (critical)",
        "since: 20",
        "meaning: a member that was in use",
        &format!("where: home {failed}, on "),
        &format!("next: {next}\n"),
    ] {
        // Long lines are folded by what a mail may have.
        let flat = mail.replace("\r\n", "\n").replace("=\n", "");
        assert!(flat.contains(part), "{part} is not in {mail}");
    }
    let program = got(&scratch, "program");
    assert!(program.contains(&format!("3 Fail home {failed} | critical | {next}\n")), "{program}");

    // Started anew it has nothing to say but what is new.
    monitor.stop();
    let monitor = watch(&scratch, &config, "monitor2.log");
    let other = scratch.up("ram(1M)", &["--name", "other", "--attach", "none"]);
    wait_until("what is new", || count(&scratch, "NewArray") == 2);
    assert_eq!((count(&scratch, "Fail"), count(&scratch, "DegradedArray")), (1, 0));

    scratch.run(&["member", "remove", "home", "home-b.img"]).ok();
    scratch.run(&["member", "re-add", "home", "home-b.img"]).ok();
    has("mail", "Subject: WellAgain (DegradedArray) event on home");
    wait_until("the webhook", || count(&scratch, "WellAgain") == 1);
    let again =
        hooked(&scratch).into_iter().find(|one| one["event"] == "WellAgain").expect("it came");
    assert_eq!((&again["ended"], &again["array"]), (&"DegradedArray".into(), &"home".into()));

    // A process that dies has not been taken down; one that was taken down has.
    home.kill();
    has("mail", "Subject: VolumeGone event on home");
    other.down();
    wait_until("the webhook", || count(&scratch, "DeviceDisappeared") == 1);
    assert_eq!((count(&scratch, "Fail"), count(&scratch, "VolumeGone")), (1, 1));
    assert!(!got(&scratch, "mail").contains("NewArray"), "mail is of warnings and worse");
    let log = monitor.text();
    assert!(log.contains("VolumeGone on home (critical)"), "{log}");
    monitor.stop();
}

#[test]
fn a_receiver_that_hangs_delays_nobody() {
    let scratch = Scratch::new();
    // It takes connections, as the kernel does for it, and never answers.
    let hangs = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = hangs.local_addr().expect("an address").port();
    let sleeps = script(&scratch, "sleeps", "echo $$ > \"$0.pid\"; exec sleep 1000");
    let told = script(&scratch, "told", "echo \"$*\" >> \"$(dirname \"$0\")/program.got\"");
    let config = configure(
        &scratch,
        &format!(
            "interval = \"1s\"\nsettle = \"0\"\ntimeout = \"10m\"\n[limit]\nburst = 100\n\
             [[webhook]]\nurl = \"http://127.0.0.1:{port}/\"\n[[program]]\npath = \"{sleeps}\"\n\
             [[program]]\npath = \"{told}\"\n"
        ),
    );
    let home = scratch.up("ram(1M)", &["--name", "home", "--attach", "none"]);
    let monitor = watch(&scratch, &config, "monitor.log");
    let (_connection, _) = hangs.accept().expect("the webhook comes");
    let pid = scratch.join("sleeps.pid");
    wait_until("the program that hangs", || {
        std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    home.kill();
    wait_until("the other program is told all the same", || {
        got(&scratch, "program").contains("VolumeGone home")
    });
    monitor.stop();
    let pid = std::fs::read_to_string(&pid).expect("a number");
    assert!(!common::is_alive(pid.trim().parse().expect("a number")), "it sleeps on");
    // What was not delivered is kept.
    let state = std::fs::read_to_string(scratch.join("state/monitor.json")).expect("a state");
    let state: Value = serde_json::from_str(&state).expect("JSON");
    let waiting = &state["waiting"][format!("webhook http://127.0.0.1:{port}")];
    assert_eq!(waiting["under_way"]["events"][0]["event"], "NewArray", "{waiting}");
    assert_eq!(waiting["events"][0]["event"], "VolumeGone", "{waiting}");
}

#[test]
fn once_tells_what_is_wrong_by_mail_and_exit_status() {
    let scratch = Scratch::new();
    let sendmail = script(
        &scratch,
        "sendmail",
        "folder=$(dirname \"$0\"); echo \"$*\" >> \"$folder/sendmail.got\"; cat >> \"$folder/sendmail.got\"",
    );
    let config = configure(
        &scratch,
        &format!(
            "[mail]\nto = [\"root@localhost\"]\nfrom = \"a@b.org\"\nsendmail = \"{sendmail}\"\n"
        ),
    );
    let once = || scratch.run(&["monitor", "--oneshot", "--config", &config]);
    once().ok();
    assert_eq!(got(&scratch, "sendmail"), "");
    let home = mirror(&scratch, "home");
    once().ok();
    scratch.run(&["member", "fail", "home", "home-a.img"]).ok();
    once().fails(1, &["Fail on home", "home-a.img failed", "now: DegradedArray on home"]);
    let mail = got(&scratch, "sendmail");
    assert!(mail.starts_with("-oi -t\n") && !mail.contains('\r'), "{mail}");
    assert!(
        mail.contains("\nTo: root@localhost\n") && mail.contains("\nSubject: Fail event on home")
    );
    // It is as wrong as before, and was told.
    once().fails(1, &["now: DegradedArray on home"]);
    assert_eq!(got(&scratch, "sendmail"), mail);
    home.down();
    let watches = watch(&scratch, &config, "monitor.log");
    wait_until("it watches", || watches.text().contains("watches"));
    once().fails(3, &["another monitor runs already", "next: "]);
    watches.stop();
    once().ok();
}

#[test]
fn a_test_says_which_messages_arrived() {
    let scratch = Scratch::new();
    let told = script(&scratch, "told", "echo \"$*\" >> \"$(dirname \"$0\")/program.got\"");
    let fails = script(&scratch, "fails", "exit 3");
    // This port is closed again.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port").port();
    let config = configure(
        &scratch,
        &format!(
            "[[webhook]]\nurl = \"http://127.0.0.1:{port}/secret\"\n[[program]]\npath = \"{told}\"\n\
             [[program]]\npath = \"{fails}\"\n"
        ),
    );
    let _one = scratch.up("raid1(ram(1M), ram(1M))", &["--name", "one", "--attach", "none"]);
    let _two = scratch.up("ram(1M)", &["--name", "two", "--attach", "none"]);
    let test = || scratch.run(&["monitor", "--test", "--config", &config]);
    let output = test().fails(1, &[]);
    for part in [
        &format!("program {told}: 2 messages were handed over"),
        &format!("program {fails}: failed: {fails} ended with exit status 3"),
        &format!("webhook http://127.0.0.1:{port}: failed: "),
    ] {
        assert!(output.out.contains(part), "{part} is not in {output}");
    }
    assert!(!output.out.contains("secret"), "{output}");
    assert_eq!(got(&scratch, "program"), "TestMessage one\nTestMessage two\n");
    let nobody = configure(&scratch, "");
    scratch
        .run(&["monitor", "--test", "--config", &nobody])
        .fails(1, &["has no receivers", "next: "]);
}

#[test]
fn a_configuration_is_checked_and_nobody_is_told() {
    let scratch = Scratch::new();
    let check = |text: &str| {
        let config = configure(&scratch, text);
        scratch.run(&["monitor", "--check", "--config", &config])
    };
    let fine =
        check("[[program]]\npath = \"/bin/false\"\nleast = \"critical\"\n[spares]\nhome = 2\n")
            .ok();
    for part in
        ["tells program /bin/false, of what is critical", "every 5s", "wants 2 spares of home"]
    {
        assert!(fine.out.contains(part), "{part} is not in {fine}");
    }
    check("[mail]\nto = [\"a@b.org\"]\ncolour = 1\n").fails(2, &["monitor.toml", "line 3", "`to`"]);
    check("[mail]\nto = [\"nobody\"]\n").fails(2, &["monitor.toml", "line 2", "nobody@localhost"]);
    check("reminder = \"1s\"\n").fails(2, &["monitor.toml: line 1: reminder", "next: "]);
    let missing = ["monitor", "--config", "missing.toml"];
    scratch.run(&missing).fails(2, &["cannot read missing.toml"]);
    assert!(!scratch.join("state").exists(), "a refusal leaves nothing");
    // Without being named, a file that is not there is one that says nothing.
    let nothing = scratch.run(&["monitor", "--check"]).ok();
    assert!(
        nothing.out.contains("is not there") && nothing.out.contains("sends no messages"),
        "{nothing}"
    );
}
