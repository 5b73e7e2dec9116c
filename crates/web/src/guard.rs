//! Admission of requests. Pure: it sees the words of a request alone.
//!
//! | what is refused                          | by                                                    |
//! |------------------------------------------|-------------------------------------------------------|
//! | a name that was made to point here       | `Host` is one of the names of this server             |
//! | another page, reading or writing         | `Origin`, `Sec-Fetch-Site`; no answer permits another |
//! | a form or a link of another page         | the token, which is in a header and not a cookie      |
//! | a body that a form could send            | `Content-Type: application/json`                      |

use axum::http::{HeaderMap, Method, StatusCode, header};
use braid_control::ErrorCode;

use crate::answer::Refusal;
use crate::token::Token;
use crate::tokens::{NotAdmitted, Rights, TokenFile};

/// Names by which this server may be called.
#[derive(Clone, Debug)]
pub(crate) enum Names {
    /// These, each with its port.
    These(Vec<String>),
    /// The loopback, by any port: over a Unix socket only the program that forwards it knows the port.
    Loopback,
}

/// The means by which requests are admitted.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) names: Names,
    pub(crate) scheme: &'static str,
    /// None over a Unix socket.
    pub(crate) token: Option<Token>,
    /// Tokens beside it.
    pub(crate) tokens: TokenFile,
}

/// A name without its port.
fn without_port(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    }
}

/// The value of a header that is there once; nothing if it is not there.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let bad = || Refusal::bad(format!("{name} is given twice, or is no text"));
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return Err(bad());
    }
    first.map(|value| value.to_str().map_err(|_| bad())).transpose()
}

impl Guard {
    /// Admits a request for the page or for a file that it loads, or refuses it with the reason. `authority` is that of
    /// a target in absolute form.
    pub(crate) fn admit(
        &self,
        authority: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let host = only(headers, "host")?.unwrap_or_default().to_ascii_lowercase();
        let is_ours = |name: &str| match &self.names {
            Names::These(names) => names.iter().any(|own| own == name),
            Names::Loopback => ["localhost", "127.0.0.1", "[::1]"].contains(&without_port(name)),
        };
        if !is_ours(&host) || authority.is_some_and(|target| !target.eq_ignore_ascii_case(&host)) {
            let names = match &self.names {
                Names::These(names) => names.join(", "),
                Names::Loopback => "localhost".to_owned(),
            };
            return Err(Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                format!("{host:?} is no name of this server: a page elsewhere may have made it point here"),
            )
            .next(format!(
                "ask for it by {names}; a port that is forwarded has to keep its number, and with TLS --host allows a name"
            )));
        }
        if let Some(origin) = only(headers, "origin")?
            && !origin.eq_ignore_ascii_case(&format!("{}://{host}", self.scheme))
        {
            return foreign("Origin", origin);
        }
        Ok(())
    }

    /// Admits to the API a request that was admitted to the page, or refuses it with the reason. `reads` is true if it
    /// changes nothing, whatever its method and body.
    pub(crate) fn admit_to_api(&self, headers: &HeaderMap, reads: bool) -> Result<(), Refusal> {
        // A link elsewhere may lead to the page, which shows nothing by itself.
        if let Some(site) = only(headers, "sec-fetch-site")?
            && !["same-origin", "none"].contains(&site)
        {
            return foreign("Sec-Fetch-Site", site);
        }
        let Some(token) = &self.token else { return Ok(()) };
        let sent = only(headers, header::AUTHORIZATION.as_str())?.unwrap_or_default();
        // The scheme's letters may be small or capital (RFC 9110, 11.1).
        let (scheme, secret) = sent.split_once(' ').unwrap_or_default();
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        let rights = match is_bearer {
            true if token.is(secret) => Ok(Rights::All),
            true => self.tokens.rights(secret),
            false => Err(NotAdmitted::Unknown),
        };
        let unauthorized =
            |why: &str, next: &str| Err(Refusal::new(StatusCode::UNAUTHORIZED, why).next(next));
        let next = "send Authorization: Bearer TOKEN; `braid web` prints the address with it when it starts";
        match rights {
            Ok(Rights::ReadOnly) if !reads => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this token may only read, and the request changes something",
            )
            .code(ErrorCode::ReadOnlyToken)
            .next("`braid web token add NAME` makes a token with all rights")),
            Ok(_) => Ok(()),
            Err(NotAdmitted::Unknown) if sent.is_empty() => {
                unauthorized("the token is missing", next)
            }
            Err(NotAdmitted::Unknown) => unauthorized("that is not the token", next),
            Err(NotAdmitted::Expired(name)) => unauthorized(
                &format!("the token {name} has expired"),
                "`braid web token remove` and `add` make a new one of its name",
            ),
            Err(NotAdmitted::Unreadable(why)) => unauthorized(&why, "`braid web token list`"),
        }
    }
}

/// Returns true for a request that changes nothing: a `GET`, a plan, and what is a `POST` only because it has a body.
pub(crate) fn reads(method: &Method, path: &str, query: Option<&str>) -> bool {
    let by_post = ["/api/v1/reports/open", "/api/v1/examine"];
    match *method {
        Method::GET | Method::HEAD => true,
        Method::POST => query == Some("plan=1") || by_post.contains(&path),
        _ => false,
    }
}

fn foreign(what: &str, from: &str) -> Result<(), Refusal> {
    let text = format!("{what} says that another page asks: {from}");
    Err(Refusal::new(StatusCode::FORBIDDEN, text).next("open the page of this server"))
}

/// Refuses a body that a form could send, of a request that may have one.
pub(crate) fn only_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = only(headers, header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let text = format!("a body is application/json, not {kind:?}");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
        .next("send Content-Type: application/json"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const OWN: &str = "127.0.0.1:80";

    fn guard() -> (Guard, String) {
        let token = Token::random().unwrap();
        let bearer = format!("Bearer {}", token.secret());
        let names = Names::These(vec![OWN.into(), "localhost:80".into()]);
        let tokens = TokenFile("/nowhere/tokens".into());
        (Guard { names, scheme: "http", token: Some(token), tokens }, bearer)
    }

    /// Returns the HTTP status for a request with these headers to the page or the API, with a body or without.
    fn asked(guard: &Guard, is_api: bool, has_body: bool, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let admitted = guard
            .admit(None, &map)
            .and_then(|()| if is_api { guard.admit_to_api(&map, false) } else { Ok(()) })
            .and_then(|()| if has_body { only_json(&map) } else { Ok(()) });
        admitted.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn each_header_is_enough_to_be_refused() {
        let (guard, bearer) = guard();
        let own = ["host", "origin", "sec-fetch-site", "authorization", "content-type"];
        let good = [OWN, "http://127.0.0.1:80", "same-origin", &bearer, "application/json"];
        let post = |change: &dyn Fn(&str) -> Option<String>| {
            let all = own.iter().zip(good);
            let texts: Vec<(&str, String)> =
                all.map(|(name, value)| (*name, change(name).unwrap_or(value.into()))).collect();
            let headers: Vec<(&str, &str)> = texts
                .iter()
                .filter(|(_, value)| value != "-")
                .map(|(n, v)| (*n, v.as_str()))
                .collect();
            asked(&guard, true, true, &headers)
        };
        let with = |name: &'static str, value: &str| {
            let value = value.to_owned();
            post(&move |one| (one == name).then(|| value.clone()))
        };
        assert_eq!(post(&|_| None), 200);
        for wrong in
            ["-", "evil.example:80", "127.0.0.1", "127.0.0.1:81", "127.0.0.1.evil.example:80", ""]
        {
            assert_eq!(with("host", wrong), 421, "{wrong}");
        }
        for wrong in [
            "null",
            "http://evil.example",
            "https://127.0.0.1:80",
            "http://localhost:80",
            "http://127.0.0.1:81",
        ] {
            assert_eq!(with("origin", wrong), 403, "{wrong}");
        }
        for wrong in ["cross-site", "same-site", ""] {
            assert_eq!(with("sec-fetch-site", wrong), 403, "{wrong}");
        }
        let bare = bearer.trim_start_matches("Bearer ").to_owned();
        for wrong in [
            "-",
            "Bearer",
            "Bearer ",
            "Bearer 00",
            &bare,
            &format!("{bearer} "),
            &format!("Basic {bare}"),
        ] {
            assert_eq!(with("authorization", wrong), 401, "{wrong}");
        }
        for wrong in [
            "-",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; x=application/json",
        ] {
            assert_eq!(with("content-type", wrong), 415, "{wrong}");
        }
        assert_eq!(with("content-type", "application/json; charset=utf-8"), 200);
        assert_eq!(with("authorization", &format!("bEARER {bare}")), 200);
        for optional in ["origin", "sec-fetch-site"] {
            assert_eq!(with(optional, "-"), 200, "programs send none");
        }
    }

    #[test]
    fn the_page_needs_no_token_and_two_hosts_are_none() {
        let (guard, bearer) = guard();
        assert_eq!(asked(&guard, false, false, &[("host", OWN)]), 200);
        assert_eq!(asked(&guard, false, false, &[("host", "evil.example")]), 421);
        assert_eq!(asked(&guard, false, false, &[("host", OWN), ("host", OWN)]), 400);
        let twice = [("host", OWN), ("authorization", bearer.as_str()), ("authorization", "x")];
        assert_eq!(asked(&guard, true, false, &twice), 400);
        let mut map = HeaderMap::new();
        map.insert("host", HeaderValue::from_static(OWN));
        let absolute = guard.admit(Some("evil.example"), &map);
        assert_eq!(absolute.unwrap_err().status.as_u16(), 421);
    }

    #[test]
    fn what_changes_something_needs_all_rights() {
        let read = |method, path: &str, query| reads(&method, path, query);
        assert!(read(Method::GET, "/api/v1/volumes", None) && read(Method::HEAD, "/", None));
        let orders = "/api/v1/volumes/home/orders";
        assert!(read(Method::POST, orders, Some("plan=1")));
        assert!(read(Method::POST, "/api/v1/examine", None));
        for query in [None, Some("plan=0"), Some("plan=1&plan=0"), Some("")] {
            assert!(!read(Method::POST, orders, query), "{query:?}");
        }
        assert!(!read(Method::DELETE, "/api/v1/jobs/1", Some("plan=1")));
    }

    #[test]
    fn over_a_unix_socket_the_loopback_alone_is_a_name() {
        let tokens = TokenFile("/nowhere/tokens".into());
        let guard = Guard { names: Names::Loopback, scheme: "http", token: None, tokens };
        for good in ["localhost", "localhost:9000", "127.0.0.1:1", "[::1]:8", "[::1]"] {
            assert_eq!(asked(&guard, true, false, &[("host", good)]), 200, "{good}");
        }
        for wrong in ["braid.example", "localhost.example:80", "127.0.0.1:80@evil.example", "::1"] {
            assert_eq!(asked(&guard, true, false, &[("host", wrong)]), 421, "{wrong}");
        }
    }
}
