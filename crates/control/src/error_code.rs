//! Words for programs beside the sentences for people: why something failed. Sentences may change, words do not.
//! docs/codes.md has the same list.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($(#[doc = $doc:literal] $variant:ident = $word:literal,)*) => {
        /// Why something was not done.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ErrorCode {
            $(#[doc = $doc] #[serde(rename = $word)] $variant,)*
            /// Another version of braid has a word for it.
            #[default]
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl ErrorCode {
            /// All of them.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)* ErrorCode::Unknown];

            /// Returns the word.
            pub fn word(self) -> &'static str {
                match self { $(ErrorCode::$variant => $word,)* ErrorCode::Unknown => "unknown" }
            }

            /// Returns its meaning, a sentence.
            pub fn meaning(self) -> &'static str {
                let meaning = match self {
                    $(ErrorCode::$variant => $doc,)*
                    ErrorCode::Unknown => "Another version of braid has a word for it.",
                };
                meaning.trim_start()
            }
        }
    };
}

codes! {
    /// The request makes no sense.
    BadRequest = "bad-request",
    /// The token is missing or wrong.
    Unauthorized = "unauthorized",
    /// The token may only read.
    ReadOnlyToken = "read-only-token",
    /// The request comes from a page of another server.
    OtherPage = "other-page",
    /// There is no such thing.
    NotFound = "not-found",
    /// The volume is known, and down.
    NotUp = "not-up",
    /// The address does not take this method.
    MethodNotAllowed = "method-not-allowed",
    /// The body did not come in time.
    Timeout = "timeout",
    /// The body is too large.
    TooLarge = "too-large",
    /// The body is no JSON.
    MediaType = "media-type",
    /// The server is not called so.
    OtherName = "other-name",
    /// The volume has changed since the order was decided.
    StateChanged = "state-changed",
    /// The order does not suit the state of the volume.
    NotPossible = "not-possible",
    /// The volume is up already, or being brought up.
    AlreadyUp = "already-up",
    /// A volume of that name is known already.
    NameTaken = "name-taken",
    /// The volume or the device is in use.
    InUse = "in-use",
    /// The device carries something that would be overwritten.
    HasContents = "has-contents",
    /// The volume is locked.
    Locked = "locked",
    /// Another operation is under way.
    Busy = "busy",
    /// A safety rule says no.
    Refused = "refused",
    /// It was tried and did not work.
    Failed = "failed",
    /// A fault of the server.
    Internal = "internal",
    /// The volume or the array is read-only.
    ReadOnly = "read-only",
    /// The volume has no array that takes such an order.
    NoArray = "no-array",
    /// No array has that name or identifier.
    NoSuchArray = "no-such-array",
    /// Several arrays could be meant.
    WhichArray = "which-array",
    /// No array has that member.
    NoSuchMember = "no-such-member",
    /// The device is a member already.
    AlreadyMember = "already-member",
    /// The device holds the only copy of some of the data.
    LastCopy = "last-copy",
    /// The member takes part in the array.
    MemberActive = "member-active",
    /// The member has a replacement, or nothing that could be replaced.
    NotReplaceable = "not-replaceable",
    /// Requests of the former member are still under way.
    RequestsUnderWay = "requests-under-way",
    /// The device cannot hold what the array needs.
    Unfit = "unfit",
    /// The device was written without the array, and the array without the device.
    WentOnAlone = "went-on-alone",
    /// The write-intent bitmap does not bring the device up to date.
    NotByBitmap = "not-by-bitmap",
    /// The array does not have that change.
    Unsuitable = "unsuitable",
    /// The array has stopped.
    Stopped = "stopped",
    /// The members do not make an array that may be started.
    NotStartable = "not-startable",
    /// There is no such file or device.
    Missing = "missing",
    /// The path is neither a regular file nor a block device.
    WrongKind = "wrong-kind",
    /// The device is too small.
    TooSmall = "too-small",
    /// The file is the image of a virtual disk in a format of its own.
    NotRaw = "not-raw",
    /// Two members share bytes.
    SharedBytes = "shared-bytes",
    /// The device cannot be examined.
    NotExamined = "not-examined",
    /// The file or device lies on the volume itself.
    OnItself = "on-itself",
    /// There is a cache already.
    HasCache = "has-cache",
    /// There is no cache.
    NoCache = "no-cache",
    /// Several caches could be meant.
    SeveralCaches = "several-caches",
    /// The cache is a part of the stack, not in front of it.
    CacheInside = "cache-inside",
    /// The volume is memory itself.
    IsMemory = "is-memory",
    /// The cache is in write-back mode already.
    WriteBackAlready = "write-back-already",
    /// The cache is not in write-back mode.
    NotWriteBack = "not-write-back",
    /// More of the cache is dirty than would be left of it.
    CacheDirty = "cache-dirty",
    /// Dirty data could not be drained.
    NotDrained = "not-drained",
    /// The file or device cannot be the log of a cache.
    LogUnfit = "log-unfit",
    /// The contents of a cache cannot be kept in the file.
    WarmUnfit = "warm-unfit",
    /// More memory is asked for than the machine or the cgroup has.
    TooMuchMemory = "too-much-memory",
    /// There is no memory.
    NoMemory = "no-memory",
    /// The volume is no RAM disk.
    NotRam = "not-ram",
    /// Data lies behind the new end.
    DataBehindEnd = "data-behind-end",
    /// The volume cannot have that size.
    BadSize = "bad-size",
    /// The volume has data.
    HasData = "has-data",
    /// The file is there already.
    FileExists = "file-exists",
    /// The file is no image.
    NoImage = "no-image",
    /// The image is damaged.
    ImageDamaged = "image-damaged",
    /// The image has another size than the volume.
    ImageSize = "image-size",
    /// The order was given up before anything was changed.
    GivenUp = "given-up",
    /// The order was begun, and its outcome is not known.
    OutcomeUnknown = "outcome-unknown",
    /// The order was carried out, and the volume's record could not follow.
    NotRecorded = "not-recorded",
}
