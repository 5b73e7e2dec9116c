//! The answer to a request that is refused or fails: a status, a code, the reason, the next command.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use braid_control::{ErrorCode, Failure, FailureKind};
use serde_json::{Map, Value, json};

/// Why a request is not answered as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The same as the sentence, for programs.
    pub(crate) code: ErrorCode,
    pub(crate) why: String,
    pub(crate) next: Option<String>,
    /// Values that the sentence names.
    values: Map<String, Value>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        let Failure { kind, code, why, next, values } = failure;
        let status = match kind {
            FailureKind::Usage => StatusCode::BAD_REQUEST,
            FailureKind::Refused => StatusCode::CONFLICT,
            FailureKind::Failed | FailureKind::Interrupted => StatusCode::BAD_GATEWAY,
        };
        Refusal { status, code, why, next, values }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::refused(refusal.why).code(refusal.code).led_on(refusal.next)
    }
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Refusal {
        Refusal { status, code: usual(status), why: why.into(), next: None, values: Map::new() }
    }

    /// Says more for programs than the status does.
    pub(crate) fn code(self, code: ErrorCode) -> Refusal {
        Refusal { code, ..self }
    }

    /// Adds what to do next.
    pub(crate) fn next(self, next: impl Into<String>) -> Refusal {
        Refusal { next: Some(next.into()), ..self }
    }

    pub(crate) fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn conflict(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, error)
    }

    pub(crate) fn not_found(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// Something of this server that does not work.
    pub(crate) fn broken(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }
}

/// Returns the code of a status, if the refusal has no other.
fn usual(status: StatusCode) -> ErrorCode {
    match status {
        StatusCode::UNAUTHORIZED => ErrorCode::Unauthorized,
        StatusCode::FORBIDDEN => ErrorCode::OtherPage,
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
        StatusCode::REQUEST_TIMEOUT => ErrorCode::Timeout,
        StatusCode::CONFLICT => ErrorCode::Refused,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::MediaType,
        StatusCode::MISDIRECTED_REQUEST => ErrorCode::OtherName,
        StatusCode::BAD_GATEWAY => ErrorCode::Failed,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::Busy,
        status if status.is_client_error() => ErrorCode::BadRequest,
        _ => ErrorCode::Internal,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal { status, code, why, next, values } = self;
        let body = json!({ "code": code, "why": why, "next": next, "values": values });
        (status, Json(body)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_a_kind_have_each_their_code() {
        for (status, code) in [
            (StatusCode::BAD_REQUEST, ErrorCode::BadRequest),
            (StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized),
            (StatusCode::FORBIDDEN, ErrorCode::OtherPage),
            (StatusCode::NOT_FOUND, ErrorCode::NotFound),
            (StatusCode::METHOD_NOT_ALLOWED, ErrorCode::MethodNotAllowed),
            (StatusCode::REQUEST_TIMEOUT, ErrorCode::Timeout),
            (StatusCode::CONFLICT, ErrorCode::Refused),
            (StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::TooLarge),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::MediaType),
            (StatusCode::MISDIRECTED_REQUEST, ErrorCode::OtherName),
            (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal),
            (StatusCode::BAD_GATEWAY, ErrorCode::Failed),
            (StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy),
        ] {
            assert_eq!(Refusal::new(status, "no").code, code);
        }
        for (kind, status) in FailureKind::ALL.into_iter().zip([502, 400, 409, 502]) {
            let refusal = Refusal::from(kind.because("no").value("member", "/dev/sdb"));
            assert_eq!(refusal.status, status);
            assert_eq!(refusal.values["member"], "/dev/sdb");
        }
    }
}
