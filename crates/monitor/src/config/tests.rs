use super::*;

#[track_caller]
fn refused(text: &str, wanted: &[&str]) {
    let problem = Config::parse(text).expect_err(text);
    for part in wanted {
        assert!(problem.contains(part), "{part:?} is not in {problem:?}");
    }
}

const FULL: &str = include_str!("../../../../packaging/monitor.toml");

#[test]
fn the_example_is_read_with_and_without_its_comments() {
    let config = Config::parse(FULL).expect("the example");
    assert!(config.targets().is_empty(), "nothing is told before somebody says whom");
    // Each line that is commented out is one to take in.
    let all: String = FULL
        .lines()
        .map(|line| line.strip_prefix("#= ").unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let config = Config::parse(&all).expect("the example, all of it");
    assert_eq!(config.targets().len(), 3);
    let text = config.describe();
    for part in [
        "every 5s",
        "mail.example.org:587 (STARTTLS)",
        "admin@example.org",
        "wants 1 spares of home",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_is_not_known_is_refused_with_its_line_and_what_is() {
    refused("interval = \"5s\"\ncolour = 1\n", &["line 2", "colour", "`interval`", "`webhook`"]);
    refused("[mail]\nto = [\"a@b.org\"]\ncc = []\n", &["line 3", "cc", "`to`", "`from`"]);
    refused("leave_out = [\"Fial\"]", &["line 1: leave_out", "\"Fial\" is no event", "Fail,"]);
    refused("[mail]\nto = [\"a@b.org\"]\nvia = \"pigeon\"", &["line 3", "pigeon", "`sendmail`"]);
}

#[test]
fn values_that_are_none_are_refused_with_their_line() {
    refused("interval = \"soon\"", &["line 1", "no length of time"]);
    refused("\ninterval = \"0\"", &["line 2: interval: 0 is not within 1s and 1h"]);
    refused("[mail]\nto = [\"root\"]", &["line 2", "no \"@\"", "root@localhost"]);
    refused("[mail]\nto = [\"a@@b\"]", &["line 2", "\"a@@b\" is no mail address"]);
    refused("[mail]\nto = [\"a@b.org\\r\\nBcc: x@y.org\"]", &["line 2", "is no mail address"]);
    refused("[[webhook]]\nurl = \"ftp://x\"", &["line 2", "https:// or http://"]);
    refused("[[webhook]]\nurl = \"http://\"", &["line 2", "no address to post to"]);
    refused("[[program]]\npath = \"bin/x\"", &["line 2", "no absolute path"]);
    refused("[limit]\nburst = 0", &["line 2: limit.burst: 0 is not within 1 and 1000"]);
    refused("increment = 100", &["increment: 100 is not within 1 and 99"]);
}

/// In letters of any script, and as the name service has it.
#[test]
fn a_domain_may_be_international() {
    for domain in ["bücher.example", "xn--bcher-kva.example"] {
        let text = format!("[mail]\nto = [\"Jürgen <root@{domain}>\"]");
        assert!(Config::parse(&text).is_ok(), "{domain}");
    }
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    refused("reminder = \"5s\"", &["line 1: reminder", "every look"]);
    refused("[mail]\nto = []", &["line 2: mail.to: the mail has no recipient"]);
    refused("[mail]\nto = [\"a@b.org\"]\nvia = \"smtp\"", &["line 3: mail.via", "[smtp]"]);
    refused("[smtp]\nhost = \"x\"", &["line 1: smtp", "no [mail]"]);
    refused("[mail]\nto = [\"a@b.org\"]\n[smtp]\nhost = \"x\"", &["line 3: smtp", "by sendmail"]);
    let smtp = "[mail]\nto = [\"a@b.org\"]\nvia = \"smtp\"\n[smtp]\n";
    refused(&format!("{smtp}host = \"x.org\"\ntls = \"none\""), &["line 6", "in the clear"]);
    refused(&format!("{smtp}user = \"me\""), &["line 4: smtp", "go together"]);
    refused("[[webhook]]\nurl = \"http://x.org/y\"", &["line 2: webhook.url", "in the clear"]);
    let hook = "[[webhook]]\nurl = \"https://x.org/y\"\n";
    refused(&format!("{hook}{hook}"), &["https://x.org stands there twice"]);
    let names: Vec<String> = KINDS.iter().map(|kind| format!("{:?}", kind.name)).collect();
    let nothing = format!("leave_out = [{}]\n{hook}", names.join(", "));
    refused(&nothing, &["line 1: leave_out", "nothing is left that webhook https://x.org"]);
}

#[test]
fn a_local_server_is_talked_to_in_the_clear_and_another_is_not() {
    let smtp = |text: &str| {
        let all = format!("[mail]\nto = [\"a@b.org\"]\nvia = \"smtp\"\n[smtp]\n{text}");
        let config = Config::parse(&all).expect("a configuration");
        let smtp = config.smtp.expect("a server");
        (smtp.tls(), smtp.port())
    };
    assert_eq!(smtp(""), (Encryption::None, 25));
    assert_eq!(smtp("host = \"127.0.0.1\"\nport = 2525"), (Encryption::None, 2525));
    assert_eq!(smtp("host = \"x.org\""), (Encryption::Starttls, 587));
    assert_eq!(smtp("host = \"x.org\"\ntls = \"tls\""), (Encryption::Always, 465));
    assert_eq!(smtp("host = \"x.org\"\ntls = \"none\"\ninsecure = true"), (Encryption::None, 25));
}

#[test]
fn steps_are_left_out_together() {
    let config = Config::parse("leave_out = [\"RebuildNN\"]").expect("a configuration");
    assert!(!config.is_told("Rebuild20") && config.is_told("RebuildStarted"));
}
