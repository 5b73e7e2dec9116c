//! A webhook: JSON by HTTP POST.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::{Outcome, about_certificates};

/// Posts `body`. A redirection is not followed, because the user did not configure its target.
pub(super) fn deliver(url: &str, body: &Value, limit: Duration) -> Outcome {
    let mut builder = ureq::Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .max_redirects_will_error(true)
        .proxy(None)
        .user_agent(concat!("braid/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("https://") {
        builder = builder.tls_config(TlsConfig::builder().root_certs(roots()).build());
    }
    let agent = builder.build().new_agent();
    let posted = agent.post(url).header("content-type", "application/json").send(body.to_string());
    match posted {
        Ok(_) => Outcome::Delivered,
        Err(ureq::Error::StatusCode(code)) => judge(code),
        Err(error) => Outcome::Later(about_certificates(
            error.to_string(),
            "it is to be for the host of the address, and signed by whom this machine trusts (/etc/ssl/certs, \
             `update-ca-certificates`)",
        )),
    }
}

/// By RFC 9110, what the client did wrong it would do wrong again; being too early or too often it would not.
fn judge(code: u16) -> Outcome {
    let why = format!("it answered with status {code}");
    match code {
        408 | 425 | 429 | 500.. => Outcome::Later(why),
        _ => Outcome::Never(why),
    }
}

/// Whom this machine trusts; Mozilla's list where it does not say.
fn roots() -> RootCerts {
    let native = rustls_native_certs::load_native_certs().certs;
    let own = native.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    match native.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::Specific(Arc::new(own.collect())),
    }
}
