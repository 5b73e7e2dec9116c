//! Configurations that are refused although each value is valid.

use super::{Config, Encryption, Span, Via, known_events};
use crate::event::{KINDS, Severity};

/// The first thing that makes no sense: its key, and why.
pub(super) fn problem(config: &Config) -> Option<(String, String)> {
    ranges(config)
        .or_else(|| left_out(config))
        .or_else(|| mail(config))
        .or_else(|| webhooks(config))
        .or_else(|| twice(config))
}

fn ranges(config: &Config) -> Option<(String, String)> {
    let Config { interval, disks, settle, reminder, timeout, increment, thresholds, .. } = config;
    let Config { limit, retry, .. } = config;
    let spans = [
        ("interval", *interval, 1, 3_600),
        ("disks", *disks, 0, 30 * 86_400),
        ("settle", *settle, 0, 86_400),
        ("reminder", *reminder, 0, 365 * 86_400),
        ("timeout", *timeout, 1, 600),
        ("thresholds.write_back_age", thresholds.write_back_age, 1, 365 * 86_400),
        ("limit.every", limit.every, 1, 86_400),
        ("retry.first", retry.first, 1, 3_600),
    ];
    let numbers = [
        ("increment", u64::from(*increment), 1, 99),
        ("thresholds.log_full", u64::from(thresholds.log_full), 1, 100),
        ("limit.burst", limit.burst, 1, 1_000),
        ("retry.attempts", u64::from(retry.attempts), 1, 20),
    ];
    let outside = |value: u64, least: u64, most: u64| value < least || value > most;
    let span = spans.iter().find(|(_, value, least, most)| outside(value.0, *least, *most));
    let span = span.map(|(key, value, least, most)| {
        let problem = format!("{value} is not within {} and {}", Span(*least), Span(*most));
        ((*key).to_owned(), problem)
    });
    let number = numbers.iter().find(|(_, value, least, most)| outside(*value, *least, *most));
    let number = number.map(|(key, value, least, most)| {
        ((*key).to_owned(), format!("{value} is not within {least} and {most}"))
    });
    let reminds_too_often = reminder.0 > 0 && reminder.0 < 60.max(interval.0);
    span.or(number).or_else(|| {
        let problem = format!(
            "{reminder} would be a reminder with nearly every look: 0 is for none, else it is 1m and the interval at \
             least"
        );
        reminds_too_often.then(|| ("reminder".to_owned(), problem))
    })
}

fn left_out(config: &Config) -> Option<(String, String)> {
    let is_known = |name: &&String| KINDS.iter().any(|kind| kind.name == **name);
    let wrong = |problem| Some(("leave_out".to_owned(), problem));
    if let Some(unknown) = config.leave_out.iter().find(|name| !is_known(name)) {
        return wrong(format!("{unknown:?} is no event; known are {}", known_events()));
    }
    // A receiver that would never be told anything was meant otherwise.
    let is_told = |least: Severity| {
        KINDS.iter().any(|kind| {
            kind.severity >= least && kind.name != "TestMessage" && config.is_told(kind.name)
        })
    };
    let idle = config.targets().into_iter().find(|(_, least, _)| !is_told(*least));
    idle.and_then(|(name, ..)| wrong(format!("nothing is left that {name} would be told")))
}

fn mail(config: &Config) -> Option<(String, String)> {
    let wrong = |key: &str, problem: &str| Some((key.to_owned(), problem.to_owned()));
    let Some(mail) = &config.mail else {
        let smtp = config.smtp.as_ref()?;
        return wrong("smtp", &format!("there is no [mail] that would go to {}", smtp.host));
    };
    if mail.to.is_empty() {
        return wrong("mail.to", "the mail has no recipient");
    }
    let Some(smtp) = &config.smtp else {
        return match mail.via {
            Via::Smtp => wrong("mail.via", "\"smtp\" needs an [smtp] with the host"),
            Via::Sendmail => None,
        };
    };
    if mail.via == Via::Sendmail {
        return wrong(
            "smtp",
            "mail goes by sendmail: `via = \"smtp\"` in [mail] sends it to the host",
        );
    }
    if smtp.user.is_some() != smtp.password_file.is_some() {
        return wrong("smtp", "user and password_file go together");
    }
    if smtp.ca_file.is_some() && smtp.tls() == Encryption::None {
        return wrong("smtp.ca_file", "without TLS no certificate is looked at");
    }
    if smtp.tls() == Encryption::None && !smtp.is_local() && !smtp.insecure {
        let problem = "mails, and a password, would go to another machine in the clear: \"starttls\" or \"tls\", or \
                       `insecure = true` if that is meant";
        return wrong("smtp.tls", problem);
    }
    None
}

fn webhooks(config: &Config) -> Option<(String, String)> {
    let open =
        |hook: &&super::Webhook| !hook.url.is_encrypted() && !hook.url.is_local() && !hook.insecure;
    let hook = config.webhook.iter().find(open)?;
    let problem = format!(
        "{} is another machine, which would be told in the clear: https://, or `insecure = true` if that is meant",
        hook.url.shown()
    );
    Some(("webhook.url".to_owned(), problem))
}

/// Two receivers that cannot be told apart.
fn twice(config: &Config) -> Option<(String, String)> {
    let names: Vec<String> = config.targets().into_iter().map(|(name, ..)| name).collect();
    let again = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name))?.1;
    let key = again.split(' ').next().unwrap_or_default().to_owned();
    Some((key, format!("{again} stands there twice")))
}

/// The line, from 1, of a `key` or `table.key`; the table's where the key is not in it. Of several tables of
/// a name the first that has the key is meant.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let (table, key) = match key.split_once('.') {
        Some((table, key)) => (table, key),
        None => ("", key),
    };
    let mut current = "";
    let mut header = None;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if let Some(name) = content.strip_prefix('[') {
            current = name.trim_matches(['[', ']', ' ']);
            let is_meant = current == table || (table.is_empty() && current == key);
            header = header.or(is_meant.then_some(line));
        } else if current == table
            && content.split('=').next().is_some_and(|name| name.trim() == key)
        {
            return Some(line);
        }
    }
    header
}
