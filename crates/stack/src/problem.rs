//! Errors of an expression, each with what to write instead.

use crate::MAX_MEMBERS;
use crate::size::{ByteSize, Latency, QuantityError};

/// The kind of an error, with its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing but white space.
    #[error("the expression is empty")]
    Empty,
    /// Longer than an expression may be.
    #[error("the expression has {length} bytes; at most {limit} are read")]
    TooLong {
        /// Length in bytes.
        length: usize,
        /// The largest length in bytes.
        limit: usize,
    },
    /// Calls nest deeper than they may.
    #[error("levels nest deeper than {limit}")]
    TooDeep {
        /// The greatest depth.
        limit: usize,
    },
    /// A control character outside quotes.
    #[error("stray character {character:?}")]
    StrayCharacter {
        /// The character.
        character: char,
    },
    /// A `"` without its partner.
    #[error("the quote is not closed")]
    UnclosedQuote,
    /// An unknown escape inside quotes.
    #[error("`{escape}` is not an escape")]
    BadEscape {
        /// The backslash and what follows.
        escape: String,
    },
    /// A token where another one is needed.
    #[error("found {found} where {expected} is needed")]
    Unexpected {
        /// The text at this place.
        found: String,
        /// The text that would be right.
        expected: &'static str,
    },
    /// The text ends inside a call.
    #[error("`)` is missing for `{name}(`")]
    MissingParenthesis {
        /// The name of the unclosed call.
        name: String,
    },
    /// A name is followed by something else than its arguments.
    #[error("`(` is missing behind `{name}`")]
    MissingOpening {
        /// The name.
        name: String,
    },
    /// A word that cannot be a name is followed by `(`.
    #[error("`(` inside the path `{word}`")]
    ParenthesisInPath {
        /// The word before the parenthesis.
        word: String,
    },
    /// No level has this name.
    #[error("`{name}` is not a level")]
    UnknownName {
        /// The name as written.
        name: String,
        /// The level that was perhaps meant.
        suggestion: Option<&'static str>,
        /// All levels of this version, comma-separated.
        known: String,
    },
    /// The name of a level stands alone.
    #[error("`{name}` needs its arguments in parentheses")]
    BareLevel {
        /// The name of the level.
        name: &'static str,
        /// Its spelling in expressions.
        usage: &'static str,
    },
    /// A word that is neither a level nor looks like a path.
    #[error("`{word}` is neither a level nor a path")]
    NotAPath {
        /// The word.
        word: String,
    },
    /// A path that no file can have.
    #[error("a path cannot be empty or contain a NUL character")]
    ImpossiblePath,
    /// A partition that no table has.
    #[error("the number of a partition is one of 1 to 1024")]
    NoPartitionNumber,
    /// A parameter that the level does not have.
    #[error("`{level}` has no parameter `{parameter}`")]
    UnknownParameter {
        /// The level.
        level: &'static str,
        /// The parameter as written.
        parameter: String,
        /// The parameter that was perhaps meant.
        suggestion: Option<&'static str>,
        /// The spelling of the level.
        usage: &'static str,
    },
    /// A parameter given twice.
    #[error("`{parameter}` is given twice")]
    DuplicateParameter {
        /// The parameter.
        parameter: String,
    },
    /// A required argument is not there.
    #[error("`{level}` needs {what}")]
    MissingArgument {
        /// The level.
        level: &'static str,
        /// The missing part.
        what: &'static str,
        /// The spelling of the level.
        usage: &'static str,
    },
    /// An argument more than the level takes.
    #[error("`{level}` does not take this argument")]
    TooManyArguments {
        /// The level.
        level: &'static str,
        /// The spelling of the level.
        usage: &'static str,
    },
    /// A call where a plain value is needed.
    #[error("`{what}` needs a plain value")]
    NotAValue {
        /// The parameter.
        what: &'static str,
    },
    /// Too few or too many members.
    #[error("`{level}` has {count} members; 1 to {MAX_MEMBERS} are possible")]
    MemberCount {
        /// The level.
        level: &'static str,
        /// The number of those given.
        count: usize,
    },
    /// `missing` where no member may be missing, or with parentheses.
    #[error("`missing` can only stand alone, in place of a member of a level with redundancy")]
    MisplacedMissing {
        /// The levels that take it, comma-separated.
        levels: String,
    },
    /// No member is there.
    #[error("all members of `{level}` are missing; at least one must be there")]
    AllMissing {
        /// The level.
        level: &'static str,
    },
    /// A raid10 whose copies cannot lie on different members.
    #[error("`{level}` has {count} members; {copies} copies of everything need {copies}")]
    FewerMembersThanCopies {
        /// The level.
        level: &'static str,
        /// The number of members given.
        count: usize,
        /// The number of copies in this layout.
        copies: usize,
    },
    /// Fewer members than the level makes sense with.
    #[error("`{level}` needs at least {least} members, not {count}")]
    TooFewMembers {
        /// The level.
        level: &'static str,
        /// The number of members given.
        count: usize,
        /// The number that it needs.
        least: usize,
    },
    /// More members are missing than the level can do without.
    #[error("{missing} members of `{level}` are missing; it can do without {most}")]
    TooManyMissing {
        /// The level.
        level: &'static str,
        /// The number of missing members.
        missing: usize,
        /// The number that may be missing.
        most: usize,
    },
    /// A member that cannot carry a superblock that describes the array.
    #[error("`{level}` takes files and block devices, which describe the array themselves")]
    NotAFile {
        /// The level.
        level: &'static str,
    },
    /// A size, rate or latency that cannot be read.
    #[error("`{what}` cannot be `{text}`: {reason}")]
    BadQuantity {
        /// The parameter.
        what: &'static str,
        /// The value as written.
        text: String,
        /// Why it cannot be read.
        reason: QuantityError,
    },
    /// A zero where something is needed.
    #[error("`{what}` cannot be zero")]
    Zero {
        /// The parameter.
        what: &'static str,
    },
    /// A size that is not on the needed grid.
    #[error("`{what}` {value} is not a multiple of {multiple}")]
    NotMultiple {
        /// The parameter.
        what: &'static str,
        /// The value.
        value: ByteSize,
        /// The grid.
        multiple: ByteSize,
    },
    /// A size that must be a power of two.
    #[error("`{what}` {value} is not a power of two")]
    NotPowerOfTwo {
        /// The parameter.
        what: &'static str,
        /// The value.
        value: ByteSize,
    },
    /// A size outside its range.
    #[error("`{what}` {value} is outside {min} to {max}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// The value.
        value: ByteSize,
        /// The least possible value.
        min: ByteSize,
        /// The greatest possible value.
        max: ByteSize,
    },
    /// A word that is not among the choices.
    #[error("`{text}` is not a {what}")]
    UnknownChoice {
        /// The parameter.
        what: &'static str,
        /// The value as written.
        text: String,
        /// The choice that was perhaps meant.
        suggestion: Option<&'static str>,
        /// All choices, comma-separated.
        known: String,
    },
    /// A name of a profile or a bus with characters that it cannot have.
    #[error("`{what}` cannot be `{text}`")]
    BadName {
        /// The parameter.
        what: &'static str,
        /// The value as written.
        text: String,
    },
    /// An address that cannot be that of an NBD export.
    #[error("`{uri}` is no address of an export: {why}")]
    BadUri {
        /// The address as written.
        uri: String,
        /// The fault.
        why: &'static str,
    },
    /// An invalid name of an image of a Ceph cluster, or of a client.
    #[error("`{name}` is no name of an image and its client: {why}")]
    BadImage {
        /// The name as written.
        name: String,
        /// The fault.
        why: &'static str,
    },
    /// A number that is none, or outside its range.
    #[error("`{what}` {text} is no number from 1 to {most}")]
    BadCount {
        /// The parameter.
        what: &'static str,
        /// The value as written.
        text: String,
        /// The greatest possible value.
        most: u32,
    },
    /// A deadline outside its range.
    #[error("`deadline` {given} is outside 1s to 3600s")]
    BadDeadline {
        /// The value.
        given: Latency,
    },
    /// Write-back without anything that keeps what is flushed.
    #[error(
        "mode=write-back needs a log, which keeps over a crash what the origin does not have yet"
    )]
    NoLog,
    /// A log, and none.
    #[error("a cache with a log is not volatile")]
    VolatileLog,
    /// A parameter of write-back mode in another one.
    #[error("`{parameter}` is for mode=write-back")]
    OnlyWriteBack {
        /// The parameter.
        parameter: &'static str,
    },
    /// The saved expression, without its place.
    #[error("`saved` is for a cache with warm=PATH")]
    OnlyWarm,
    /// Two members would be the same bytes of the same path.
    #[error("`{path}` is a member twice")]
    SamePathTwice {
        /// The path as written the second time.
        path: String,
        /// The 1-based column of the first time.
        first_column: usize,
    },
}

impl Problem {
    /// The text to write instead, if one is known.
    pub(crate) fn help(&self) -> Option<String> {
        let fixed = match self {
            Problem::Empty => "write a path, or for example raid0(chunk=64K, a.img, b.img)",
            Problem::UnclosedQuote => "end the path with \"",
            Problem::BadEscape { .. } => {
                "inside quotes write \\\\ for a backslash and \\\" for a quote"
            }
            Problem::MissingParenthesis { .. } => "add `)`",
            Problem::ParenthesisInPath { .. } => {
                "put a path with parentheses, commas or spaces in double quotes"
            }
            Problem::NoLog => {
                "log=PATH names a file or a device for it; volatile=yes does without: what is dirty is lost \
                 with the power, and FLUSH writes all of it to the origin"
            }
            Problem::VolatileLog => "leave out log= or volatile=yes",
            Problem::OnlyWarm => "add warm=PATH, a file for it, or leave it out",
            Problem::OnlyWriteBack { .. } => "add mode=write-back, or leave it out",
            Problem::DuplicateParameter { .. } => "keep one of them",
            Problem::AllMissing { .. } | Problem::TooManyMissing { .. } => {
                "name the members that hold the data"
            }
            Problem::FewerMembersThanCopies { .. } | Problem::TooFewMembers { .. } => {
                "add members, or `missing` for those that come later"
            }
            Problem::NotAFile { .. } => {
                "write their paths, or the level over these devices, as `braid rescue open` prints it"
            }
            Problem::BadName { what: "profile", .. } => {
                "use letters, digits, `.`, `_`, `-` and `:`; the path of a file has a `/` or ends in `.toml`"
            }
            Problem::BadName { .. } => "use letters, digits, `.`, `_`, `-` and `:`",
            _ => return self.help_with_values(),
        };
        Some(fixed.to_owned())
    }

    fn help_with_values(&self) -> Option<String> {
        Some(match self {
            Problem::MissingOpening { name } => format!("write {name}(…)"),
            Problem::UnknownName { suggestion: Some(name), .. }
            | Problem::UnknownChoice { suggestion: Some(name), .. } => {
                format!("did you mean `{name}`?")
            }
            Problem::UnknownParameter { suggestion: Some(name), .. } => {
                format!("did you mean `{name}=`?")
            }
            Problem::UnknownName { known, .. } => {
                format!("this version has {known}")
            }
            Problem::UnknownChoice { known, .. } => format!("use one of {known}"),
            Problem::BareLevel { usage, .. }
            | Problem::MissingArgument { usage, .. }
            | Problem::TooManyArguments { usage, .. }
            | Problem::UnknownParameter { usage, .. } => format!("the form is {usage}"),
            Problem::NotAPath { word } => {
                format!("write ./{word} for a file, /dev/{word} for a device")
            }
            Problem::NotMultiple { value, multiple, .. } => {
                let below = value.0 / multiple.0 * multiple.0;
                match below.checked_add(multiple.0) {
                    Some(above) if below > 0 => {
                        format!("the nearest are {} and {}", ByteSize(below), ByteSize(above))
                    }
                    Some(above) => format!("the least is {}", ByteSize(above)),
                    None => format!("the nearest is {}", ByteSize(below)),
                }
            }
            Problem::NotPowerOfTwo { value, .. } => {
                let above = value.0.checked_next_power_of_two().unwrap_or(1 << 63);
                format!("the nearest are {} and {}", ByteSize(above / 2), ByteSize(above))
            }
            Problem::MisplacedMissing { levels } => {
                format!("the levels with redundancy are {levels}")
            }
            Problem::SamePathTwice { first_column, .. } => format!(
                "it is already at column {first_column}; each member needs bytes of its own"
            ),
            _ => return None,
        })
    }
}
