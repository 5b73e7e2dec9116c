//! `braid web token`: further tokens, of which the server keeps digests.

use std::path::Path;
use std::time::Duration;

use braid_shell::shell_path;
use braid_web::{NamedToken, Rights, TokenError, TokenList, now_s};

use crate::cli::{WebToken, WebTokenAdd};
use crate::command::local_time::utc_offset;
use braid_service::beside::Beside;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};
use braid_service::volume::NameLock;

/// The time for which another command may have the list.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn tokens(what: &WebToken, places: &Places) -> Result<(), Failure> {
    let file = places.web_tokens();
    match what {
        WebToken::Add(options) => {
            check_name(&options.name).map_err(|_| {
                Failure::usage(format!("{:?} cannot name a token", options.name))
                    .next("a name as of a volume: letters, digits, '-', '_' and '.'")
            })?;
            places.prepare_web_token()?;
            change(&file, |list| add(options, list)).map(|(name, secret, expires_s)| match options
                .json
            {
                true => print(serde_json::json!({
                    "name": name, "token": secret, "expires_s": expires_s,
                })),
                false => println!("{secret}"),
            })
        }
        WebToken::List(options) => {
            let list = read(&file)?;
            match options.json {
                true => print(serde_json::json!({
                    "tokens": list.tokens.iter().map(described).collect::<Vec<_>>(),
                })),
                false => list.tokens.iter().for_each(|one| println!("{}", line(one))),
            }
            Ok(())
        }
        WebToken::Remove(options) => {
            let name = &options.name;
            places.prepare_web_token()?;
            change(&file, |list| match list.remove(name) {
                true => Ok(()),
                false => Err(Failure::failed(format!("there is no token called {name}"))
                    .next("braid web token list")),
            })?;
            match options.json {
                true => print(serde_json::json!({ "removed": name })),
                false => println!("the token {name} is removed: it gives no access any more"),
            }
            Ok(())
        }
    }
}

/// Name of a token that was made, the token, and the time when it expires.
type Added = (String, String, Option<u64>);

fn add(options: &WebTokenAdd, list: &mut TokenList) -> Result<Added, Failure> {
    let WebTokenAdd { name, read_only, expires, .. } = options;
    let rights = if *read_only { Rights::ReadOnly } else { Rights::All };
    let now = now_s();
    let expires_s = expires.map(|time| now.saturating_add(time.as_secs().max(1)));
    let token = list.add(name, rights, now, expires_s).context("cannot make a token")?;
    let token = token.ok_or_else(|| {
        Failure::refused(format!("there is a token called {name} already"))
            .next(format!("another name; or `braid web token remove {name}`"))
    })?;
    Ok((name.clone(), token.secret().to_owned(), expires_s))
}

/// Changes the list while no other command does.
fn change<T>(
    file: &Path,
    work: impl FnOnce(&mut TokenList) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let lock = file.with_extension("lock");
    let held = NameLock::claim_within(PATIENCE, &lock);
    let held = held.context(format_args!("cannot lock {}", lock.display()))?;
    let _held = held.ok_or_else(|| {
        Failure::refused("another command changes the tokens").next("try again when it has ended")
    })?;
    let mut list = read(file)?;
    let done = work(&mut list)?;
    let written = Beside::replace(file, 0o600, list.text().as_bytes());
    written.context(format_args!("cannot write {}", file.display()))?;
    Ok(done)
}

fn read(file: &Path) -> Result<TokenList, Failure> {
    TokenList::read(file).map_err(|error| {
        let path = shell_path(file);
        let next = match &error {
            TokenError::Open(..) => format!("chmod 600 {path}"),
            _ => format!("remove {path}; then make the tokens again"),
        };
        Failure::refused(error).next(next)
    })
}

fn rights(token: &NamedToken) -> &'static str {
    match token.rights {
        Rights::All => "all",
        Rights::ReadOnly => "read-only",
    }
}

fn described(token: &NamedToken) -> serde_json::Value {
    serde_json::json!({
        "name": token.name, "rights": rights(token), "made_s": token.made_s,
        "expires_s": token.expires_s, "expired": token.is_expired(now_s()),
    })
}

fn line(token: &NamedToken) -> String {
    let ahead = utc_offset();
    let expiry = match token.expires_s {
        None => "does not expire".to_owned(),
        Some(time) => {
            let verb = if token.is_expired(now_s()) { "expired" } else { "expires" };
            format!("{verb} {}", braid_md_text::examine::ctime(time, ahead(time)))
        }
    };
    format!("{}  {}  {expiry}", token.name, rights(token))
}

fn print(mut json: serde_json::Value) {
    json["output_version"] = OUTPUT_VERSION.into();
    println!("{json}");
}
