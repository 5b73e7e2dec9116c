//! One attempt to bring a message to a receiver. It has a time limit, and says whether another one is worth it.

mod child;
mod mail;
mod webhook;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::config::{Config, Program, Target};
use crate::message::Message;
use child::Child;
use mail::Post;

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Delivered,
    /// It may work later.
    Later(String),
    /// It will not.
    Never(String),
}

/// Brings messages to one receiver.
pub(crate) struct Courier {
    host: String,
    limit: Duration,
    to: To,
}

enum To {
    Post(Box<Post>),
    Webhook(String),
    Program(Program),
}

impl Courier {
    /// # Errors
    /// Why `config` does not say enough to reach it.
    pub(crate) fn new(config: &Config, target: &Target, host: &str) -> Result<Courier, String> {
        let to = match target {
            Target::Mail => To::Post(Box::new(Post::new(config, host)?)),
            Target::Webhook(url) => To::Webhook(url.0.clone()),
            Target::Program(program) => To::Program(program.clone()),
        };
        let limit = Duration::from_secs(config.timeout.0);
        Ok(Courier { host: host.to_owned(), limit, to })
    }

    /// Brings `message`. `ending`: programs are not waited for any longer.
    pub(crate) fn deliver(&self, message: &Message, ending: &AtomicBool) -> Outcome {
        let Courier { host, limit, to } = self;
        match to {
            To::Post(post) => post.deliver(message, host, *limit, ending),
            To::Webhook(url) => webhook::deliver(url, &message.json(host), *limit),
            To::Program(Program(path)) => {
                let child = Child { path, arguments: message.arguments(), input: Vec::new() };
                child.run(&message.environment(host), *limit, ending)
            }
        }
    }
}

/// The advice about a refused certificate, after the reason.
fn about_certificates(why: String, advice: &str) -> String {
    match why.contains("invalid peer certificate") {
        true => format!("{why}: {advice}"),
        false => why,
    }
}
