//! The page: what is built into the program, and what a browser is told of it.

use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};

/// Its files: the path, the type, the text.
pub(crate) const FILES: [(&str, &str, &str); 6] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("/view.js", "text/javascript; charset=utf-8", include_str!("../page/view.js")),
    ("/cases.js", "text/javascript; charset=utf-8", include_str!("../page/cases.js")),
    ("/chart.js", "text/javascript; charset=utf-8", include_str!("../page/chart.js")),
];

/// Its own files only, no script in its text, no frame around it.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A report is a user's file: it may have any appearance, and runs nothing.
pub(crate) const REPORT_POLICY: &str =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";

/// Headers of every answer that has no others.
pub(crate) const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// One of [`FILES`].
pub(crate) fn file(path: &str) -> Option<Response> {
    let (_, kind, text) = FILES.iter().find(|(own, ..)| *own == path)?;
    Some(([(header::CONTENT_TYPE, *kind)], *text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_and_styles_are_small_and_the_page_has_none_of_its_own() {
        let size: usize = FILES[1..].iter().map(|(.., text)| text.len()).sum();
        println!("script and styles: {size} bytes");
        assert!(size < 200_000);
        let page = FILES[0].2;
        for forbidden in
            [" style=", "<style", " onclick", " onload", "javascript:", "http:", "https:"]
        {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        for (path, _, text) in &FILES[1..] {
            for forbidden in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(forbidden), "{path}: {forbidden}");
            }
        }
    }
}
