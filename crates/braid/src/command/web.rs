//! `braid web`: the page and the interface for programs, until interrupted.

mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;

use braid_rescue::Case;
use braid_shell::shell_path;
use braid_web::{Bound, Config, Listen, ListenError, Tls, Token, TokenFile, serve};

use crate::cli::{Web, WebCommand};
use braid_service::confine;
use braid_service::control::EVENTS;
use braid_service::failure::{Context, Failure};
use braid_service::places::Places;

pub(super) fn web(web: &Web) -> Result<(), Failure> {
    let places = Places::from_environment();
    if let Some(WebCommand::Token(what)) = &web.what {
        return tokens::tokens(what, &places);
    }
    let listen = match web.listen.strip_prefix("unix:") {
        Some(path) => Listen::Unix(path.into()),
        None => Listen::Tcp(address(&web.listen)?),
    };
    let (run, records) = places.run_and_records();
    if let Listen::Unix(path) = &listen
        && path.parent() == Some(run.as_path())
    {
        let text = format!("{} is the folder of volumes' sockets", run.display());
        return Err(Failure::usage(text).next("braid web --listen unix:/run/braid-web.sock"));
    }
    let token = match listen {
        Listen::Tcp(_) => Some(token(web, &places)?),
        Listen::Unix(_) => None,
    };
    confine::tell(confine::web());
    let program = std::env::current_exe().context("cannot find this program")?;
    let secret = token.clone();
    let files = web.tls_cert.clone().zip(web.tls_key.clone());
    let tls = files.map(|(cert, key)| Tls { cert, key });
    let (lab, hosts) = (web.lab.clone(), web.host.clone());
    let tokens = TokenFile(places.web_tokens());
    let events = places.state_folder().join(EVENTS);
    let absolute = |case: &PathBuf| {
        let folder = Case::folder_of(case);
        std::path::absolute(&folder).unwrap_or(folder)
    };
    let cases = web.case.iter().map(absolute).collect();
    let config =
        Config { listen, token, tokens, events, run, records, program, lab, cases, tls, hosts };
    serve(config, |bound| match (bound, &secret) {
        (Bound::Url(url), Some(token)) if !web.hide_token => {
            println!("{url}#token={}", token.secret());
        }
        (Bound::Url(url), _) => println!("{url}"),
        (Bound::Unix(path), _) => println!("unix:{}", path.display()),
    })
    .map_err(|error| failure(&error))
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(format!("{text:?} is no place to listen at"))
            .next("braid web --listen 127.0.0.1:7374, or --listen unix:/run/braid-web.sock")
    })
}

/// The token that is named, or the one that is kept, which is made if there is none.
fn token(web: &Web, places: &Places) -> Result<Token, Failure> {
    let (file, token) = match &web.token_file {
        Some(file) => (file.clone(), Token::read(file)),
        None => {
            let file = places.prepare_web_token()?;
            let token = Token::read_or_make(&file);
            (file, token)
        }
    };
    token.map_err(|error| {
        let file = shell_path(&file);
        Failure::refused(error)
            .next(format!("chmod 600 {file}; or remove it, and `braid web` makes a new one"))
    })
}

fn failure(error: &ListenError) -> Failure {
    match error {
        ListenError::Exposed(address) => Failure::refused(error).next(format!(
            "braid web --listen 127.0.0.1:{port}, and from elsewhere ssh -L {port}:127.0.0.1:{port} this-machine; or \
             give it --tls-cert and --tls-key",
            port = address.port()
        )),
        ListenError::InUse(_) => Failure::refused(error).next("use that one, or name another"),
        ListenError::Tls(_) => Failure::refused(error)
            .next("--tls-cert and --tls-key name PEM files of a certificate and its key; chmod 600 the key"),
        ListenError::Io(..) | ListenError::NoToken => Failure::failed(error),
    }
}
