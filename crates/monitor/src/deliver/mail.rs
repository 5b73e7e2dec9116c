//! Mail: a message that `lettre` makes, handed to a local sendmail, or to a server by SMTP.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{SmtpTransport, Transport};

use super::{Child, Outcome, about_certificates};
use crate::config::{Config, Encryption, Program, Smtp, Via};
use crate::message::Message;

/// From whom to whom, and by what.
pub(super) struct Post {
    to: Vec<Mailbox>,
    from: Mailbox,
    by: By,
}

enum By {
    Sendmail(Program),
    Smtp(Smtp),
}

impl Post {
    pub(super) fn new(config: &Config, host: &str) -> Result<Post, String> {
        let mail = config.mail.as_ref().ok_or("there is no [mail]")?;
        let from = match &mail.from {
            Some(from) => from.0.clone(),
            None => format!("braid monitor <root@{host}>").parse().map_err(|error| {
                format!("mail.from is not given, and root@{host} is no mail address: {error}")
            })?,
        };
        let by = match (&config.smtp, mail.via) {
            (Some(smtp), Via::Smtp) => By::Smtp(smtp.clone()),
            _ => By::Sendmail(mail.sendmail.clone()),
        };
        Ok(Post { to: mail.to.iter().map(|to| to.0.clone()).collect(), from, by })
    }

    pub(super) fn deliver(
        &self,
        message: &Message,
        host: &str,
        limit: Duration,
        ending: &AtomicBool,
    ) -> Outcome {
        let letter = match self.letter(message, host) {
            Ok(letter) => letter,
            Err(error) => return Outcome::Never(format!("no mail can be made of it: {error}")),
        };
        match &self.by {
            By::Sendmail(Program(path)) => {
                // A program of Unix gets lines of Unix.
                let formatted = letter.formatted();
                let input = String::from_utf8_lossy(&formatted).replace("\r\n", "\n").into_bytes();
                let arguments = ["-oi", "-t"].map(ToOwned::to_owned).to_vec();
                Child { path, arguments, input }.run(&[], limit, ending)
            }
            By::Smtp(smtp) => match transport(smtp, host, limit) {
                // A password or certificate that is not there may be there later.
                Err(why) => Outcome::Later(why),
                Ok(transport) => match transport.send(&letter) {
                    Ok(_) => Outcome::Delivered,
                    Err(error) if error.is_permanent() => Outcome::Never(why(&error)),
                    Err(error) => Outcome::Later(about_certificates(
                        why(&error),
                        "`smtp.host` is to be the name that it is for, and `smtp.ca_file` has who signed it, if this \
                         machine does not trust that anyway",
                    )),
                },
            },
        }
    }

    fn letter(
        &self,
        message: &Message,
        host: &str,
    ) -> Result<lettre::Message, lettre::error::Error> {
        let mut builder = lettre::Message::builder()
            .from(self.from.clone())
            .subject(message.subject(host))
            .message_id(None)
            .date_now()
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            builder = builder.to(to.clone());
        }
        builder.body(message.text(host))
    }
}

/// An error with what is behind it.
fn why(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let behind = error.to_string();
        if !text.contains(&behind) {
            text = format!("{text}: {behind}");
        }
        source = error.source();
    }
    text
}

fn transport(smtp: &Smtp, host: &str, limit: Duration) -> Result<SmtpTransport, String> {
    let tls = match smtp.tls() {
        Encryption::None => Tls::None,
        Encryption::Starttls => Tls::Required(parameters(smtp)?),
        Encryption::Always => Tls::Wrapper(parameters(smtp)?),
    };
    let mut builder = SmtpTransport::builder_dangerous(&smtp.host)
        .port(smtp.port())
        .tls(tls)
        .hello_name(ClientId::Domain(host.to_owned()))
        .timeout(Some(limit));
    if let (Some(user), Some(file)) = (&smtp.user, &smtp.password_file) {
        let password = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read the password in {}: {error}", file.display()))?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

fn parameters(smtp: &Smtp) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(smtp.host.clone());
    if let Some(file) = &smtp.ca_file {
        let name = file.display();
        let pem = std::fs::read(file).map_err(|error| format!("cannot read {name}: {error}"))?;
        let certificate =
            Certificate::from_pem(&pem).map_err(|error| format!("{name}: {}", why(&error)))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(|error| format!("TLS with {}: {}", smtp.host, why(&error)))
}
