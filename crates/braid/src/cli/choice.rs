//! Options that take one of several words, whose types are the service's: they know their words, and nothing of options.

use braid_service::volume::{Attach, IoMode, ReAdd, TlsMode};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::value::{Error, StringDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// The words of an option: each with what help says of it.
type Words = &'static [(&'static str, &'static str)];

/// Parses `--attach`.
pub(crate) fn attach() -> impl TypedValueParser<Value = Attach> {
    one_of(Attach::WORDS)
}

/// Parses `--io`.
pub(crate) fn io() -> impl TypedValueParser<Value = IoMode> {
    one_of(&[
        ("auto", "io_uring where it is allowed, else threads"),
        ("uring", "io_uring, or an error"),
        ("threads", "System calls on a pool of threads"),
    ])
}

/// Parses `--re-add`.
pub(crate) fn re_add() -> impl TypedValueParser<Value = ReAdd> {
    one_of(&[
        ("auto", "It is re-added, if copying what was written meanwhile suffices"),
        ("ask", "Status says so, with the command that re-adds it"),
        ("never", "Nothing"),
    ])
}

/// Parses `--tls`.
pub(crate) fn tls() -> impl TypedValueParser<Value = TlsMode> {
    one_of(&[
        ("off", "Not used"),
        ("on", "Offered; clients may do without it"),
        ("require", "Required at all addresses, also of a Unix socket"),
    ])
}

fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: Words,
) -> impl TypedValueParser<Value = T> {
    let values = words.iter().map(|(word, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let word: StringDeserializer<Error> = word.into_deserializer();
        T::deserialize(word)
    })
}
