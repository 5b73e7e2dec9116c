//! What went wrong, for programs: the word beside the sentence for people. Sentences may change, words do not.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)*) => {
        /// Why something was not done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)*
        }

        impl ErrorCode {
            /// All of them.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// As it is written.
            pub fn word(self) -> &'static str {
                match self { $(ErrorCode::$variant => $word),* }
            }
        }
    };
}

codes! {
    /// What was asked for makes no sense.
    BadRequest = "bad_request",
    /// The token is missing or wrong.
    Unauthorized = "unauthorized",
    /// The token may only read.
    ReadOnlyToken = "read_only_token",
    /// Another page asks.
    OtherPage = "other_page",
    /// There is no such thing.
    NotFound = "not_found",
    /// The volume is known, and down.
    NotUp = "not_up",
    /// That cannot be done with it.
    MethodNotAllowed = "method_not_allowed",
    /// The body did not come in time.
    Timeout = "timeout",
    /// The body is too large.
    TooLarge = "too_large",
    /// The body is no JSON.
    MediaType = "media_type",
    /// The server is not called so.
    OtherName = "other_name",
    /// The volume is not as it was when that was decided.
    StateChanged = "state_changed",
    /// The volume is in a state in which that cannot be done.
    NotPossible = "not_possible",
    /// The volume is up already.
    AlreadyUp = "already_up",
    /// A volume of that name is known already.
    NameTaken = "name_taken",
    /// Somebody uses the volume or the member.
    InUse = "in_use",
    /// The member carries something that would be overwritten.
    HasContents = "has_contents",
    /// The volume is locked.
    Locked = "locked",
    /// Another operation is under way.
    Busy = "busy",
    /// A safety rule said no.
    Refused = "refused",
    /// It was tried and did not work.
    Failed = "failed",
    /// A fault of the server.
    Internal = "internal",
}
