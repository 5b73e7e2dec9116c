//! The arguments of one call, as a level's checks read them.
//!
//! Invariants: when [`Args`] exists, every named argument is one that the level has, and is given
//! once.

use std::str::FromStr;

use super::{Level, Node, Stack, check_expr, check_member_or_missing};
use crate::error::Fault;
use crate::expr::{Arg, Call, Expr, Word};
use crate::problem::Problem;
use crate::size::{ByteSize, QuantityError, Rate};
use crate::suggest::suggest;
use crate::{MAX_MEMBERS, Span};

/// The unit of every device: a size or an offset is a whole number of these.
const SECTOR: ByteSize = ByteSize(512);

/// The largest size or offset, 4 EiB: offset + length then fits in a signed 64-bit file offset.
const MAX_SIZE: ByteSize = ByteSize(1 << 62);

/// The arguments of one call of a known level.
pub(crate) struct Args<'a> {
    call: &'a Call,
    level: &'static str,
    usage: &'static str,
    takes_missing: bool,
    positional: Vec<&'a Expr>,
    named: Vec<(&'a Word, &'a Expr)>,
}

impl<'a> Args<'a> {
    /// Sorts the arguments of `call`, which is one of level `L`.
    ///
    /// # Errors
    /// A named argument that is not one of the level's parameters, or is given twice.
    pub(crate) fn new<L: Level>(call: &'a Call) -> Result<Self, Fault> {
        let mut args = Self {
            call,
            level: L::NAME,
            usage: L::USAGE,
            takes_missing: L::TAKES_MISSING,
            positional: Vec::new(),
            named: Vec::new(),
        };
        for arg in &call.args {
            match arg {
                Arg::Positional(expr) => args.positional.push(expr),
                Arg::Named { key, value } => args.push_named(key, value, L::PARAMETERS)?,
            }
        }
        Ok(args)
    }

    fn push_named(
        &mut self,
        key: &'a Word,
        value: &'a Expr,
        parameters: &'static [&'static str],
    ) -> Result<(), Fault> {
        if !parameters.contains(&key.text.as_str()) {
            let problem = Problem::UnknownParameter {
                level: self.level,
                parameter: key.text.clone(),
                suggestion: suggest(&key.text, parameters.iter().copied()),
                usage: self.usage,
            };
            return Err(Fault::new(problem, key.span));
        }
        if self.named.iter().any(|(known, _)| known.text == key.text) {
            let problem = Problem::DuplicateParameter { parameter: key.text.clone() };
            return Err(Fault::new(problem, key.span));
        }
        self.named.push((key, value));
        Ok(())
    }

    /// The place of the whole call.
    pub(crate) fn span(&self) -> Span {
        self.call.span
    }

    fn missing(&self, what: &'static str) -> Fault {
        let problem = Problem::MissingArgument { level: self.level, what, usage: self.usage };
        Fault::new(problem, self.call.span)
    }

    /// The only positional argument, as a plain value. `missing` names it with its article.
    pub(crate) fn only(
        &self,
        what: &'static str,
        missing: &'static str,
    ) -> Result<&'a Word, Fault> {
        match self.positional[..] {
            [] => Err(self.missing(missing)),
            [value] => plain_value(what, value),
            [_, extra, ..] => {
                let problem = Problem::TooManyArguments { level: self.level, usage: self.usage };
                Err(Fault::new(problem, extra.span()))
            }
        }
    }

    /// The only two positional arguments, as plain values. `missing` names them.
    pub(crate) fn two(&self, missing: &'static str) -> Result<(&'a Word, &'a Word), Fault> {
        match self.positional[..] {
            [] | [_] => Err(self.missing(missing)),
            [first, second] => Ok((plain_value(missing, first)?, plain_value(missing, second)?)),
            [_, _, extra, ..] => {
                let problem = Problem::TooManyArguments { level: self.level, usage: self.usage };
                Err(Fault::new(problem, extra.span()))
            }
        }
    }

    /// The plain value of parameter `key`, if it is given.
    pub(crate) fn word(&self, key: &'static str) -> Result<Option<&'a Word>, Fault> {
        match self.named.iter().find(|(known, _)| known.text == key) {
            Some((_, value)) => plain_value(key, value).map(Some),
            None => Ok(None),
        }
    }

    /// The place of the value of parameter `key`, if it is given.
    pub(crate) fn place(&self, key: &'static str) -> Option<Span> {
        self.named.iter().find(|(known, _)| known.text == key).map(|(_, value)| value.span())
    }

    /// The device of parameter `key`, if it is given.
    pub(crate) fn stack(&self, key: &'static str) -> Result<Option<Stack>, Fault> {
        let value = self.named.iter().find(|(known, _)| known.text == key);
        value.map(|(_, value)| check_expr(value)).transpose()
    }

    /// The quantity of parameter `key`, if it is given.
    pub(crate) fn quantity<T>(&self, key: &'static str) -> Result<Option<T>, Fault>
    where
        T: FromStr<Err = QuantityError>,
    {
        self.word(key)?.map(|word| parse_value(key, word)).transpose()
    }

    /// The rate of parameter `key`, if it is given. It is not zero, because a request would then never end.
    pub(crate) fn rate(&self, key: &'static str) -> Result<Option<Rate>, Fault> {
        let Some(word) = self.word(key)? else { return Ok(None) };
        let rate: Rate = parse_value(key, word)?;
        if rate.0 == 0 {
            return Err(Fault::new(Problem::Zero { what: key }, word.span));
        }
        Ok(Some(rate))
    }

    /// The size of parameter `key`: as [`device_size`].
    pub(crate) fn size(&self, key: &'static str) -> Result<Option<ByteSize>, Fault> {
        self.word(key)?.map(|word| device_size(key, word)).transpose()
    }

    /// As [`Args::size`], but required.
    pub(crate) fn required_size(
        &self,
        key: &'static str,
        what: &'static str,
    ) -> Result<ByteSize, Fault> {
        self.size(key)?.ok_or_else(|| self.missing(what))
    }

    /// The offset of parameter `key`: a size that may also be zero; 0 if it is not given.
    pub(crate) fn offset(&self, key: &'static str) -> Result<ByteSize, Fault> {
        match self.word(key)? {
            Some(word) => {
                in_range(key, word, parse_value(key, word)?, ByteSize(0), MAX_SIZE, SECTOR)
            }
            None => Ok(ByteSize(0)),
        }
    }

    /// The first positional argument as a plain value, and the options that the other arguments select, each at
    /// most once. `missing` names the first argument with its article, `what` an option.
    pub(crate) fn first_and_words<T: Copy>(
        &self,
        first: &'static str,
        missing: &'static str,
        what: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<(&'a Word, Vec<T>), Fault> {
        let [value, others @ ..] = &self.positional[..] else { return Err(self.missing(missing)) };
        let mut chosen: Vec<&Word> = Vec::new();
        for other in others {
            let word = plain_value(what, other)?;
            if chosen.iter().any(|before| before.text == word.text) {
                let problem = Problem::DuplicateParameter { parameter: word.text.clone() };
                return Err(Fault::new(problem, word.span));
            }
            chosen.push(word);
        }
        let words = chosen.into_iter().map(|word| chosen_of(what, word, choices));
        Ok((plain_value(first, value)?, words.collect::<Result<_, _>>()?))
    }

    /// The path of parameter `key`, if it is given: it is not empty and contains no NUL.
    pub(crate) fn path(&self, key: &'static str) -> Result<Option<String>, Fault> {
        let Some(word) = self.word(key)? else { return Ok(None) };
        if word.text.is_empty() || word.text.contains('\0') {
            return Err(Fault::new(Problem::ImpossiblePath, word.span));
        }
        Ok(Some(word.text.clone()))
    }

    /// As [`Args::path`], but required.
    pub(crate) fn required_path(
        &self,
        key: &'static str,
        what: &'static str,
    ) -> Result<String, Fault> {
        self.path(key)?.ok_or_else(|| self.missing(what))
    }

    /// The one of `choices` that parameter `key` names, if it is given.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, Fault> {
        self.word(key)?.map(|word| chosen_of(key, word, choices)).transpose()
    }

    /// The only positional argument, as a device.
    pub(crate) fn origin(&self) -> Result<Box<Stack>, Fault> {
        match &self.positional[..] {
            [] => Err(self.missing("a device")),
            [device] => check_expr(device).map(Box::new),
            [_, extra, ..] => {
                let problem = Problem::TooManyArguments { level: self.level, usage: self.usage };
                Err(Fault::new(problem, extra.span()))
            }
        }
    }

    /// The positional arguments as members.
    ///
    /// # Errors
    /// No member, or more than [`MAX_MEMBERS`]; a member that is itself wrong; only `missing` members, or a
    /// `missing` member in a level that accepts none.
    pub(crate) fn members(&self) -> Result<Vec<Stack>, Fault> {
        let count = self.positional.len();
        if count == 0 {
            let problem = Problem::MissingArgument {
                level: self.level,
                what: "at least one member",
                usage: self.usage,
            };
            return Err(Fault::new(problem, self.call.span));
        }
        if count > MAX_MEMBERS {
            let problem = Problem::MemberCount { level: self.level, count };
            return Err(Fault::new(problem, self.positional[MAX_MEMBERS].span()));
        }
        if !self.takes_missing {
            return self.positional.iter().map(|expr| check_expr(expr)).collect();
        }
        let members: Vec<Stack> = self
            .positional
            .iter()
            .map(|expr| check_member_or_missing(expr))
            .collect::<Result<_, _>>()?;
        if members.iter().all(|member| matches!(member.node, Node::Missing(_))) {
            return Err(Fault::new(Problem::AllMissing { level: self.level }, self.call.span));
        }
        Ok(members)
    }
}

/// The one of `choices` that `word` names.
fn chosen_of<T: Copy>(
    what: &'static str,
    word: &Word,
    choices: &[(&'static str, T)],
) -> Result<T, Fault> {
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word.text) {
        return Ok(*choice);
    }
    let names = || choices.iter().map(|(name, _)| *name);
    let problem = Problem::UnknownChoice {
        what,
        text: word.text.clone(),
        suggestion: suggest(&word.text, names()),
        known: names().collect::<Vec<_>>().join(", "),
    };
    Err(Fault::new(problem, word.span))
}

fn plain_value<'a>(what: &'static str, value: &'a Expr) -> Result<&'a Word, Fault> {
    match value {
        Expr::Word(word) => Ok(word),
        Expr::Call(call) => Err(Fault::new(Problem::NotAValue { what }, call.span)),
    }
}

fn parse_value<T>(what: &'static str, word: &Word) -> Result<T, Fault>
where
    T: FromStr<Err = QuantityError>,
{
    word.text.parse().map_err(|reason| {
        let problem = Problem::BadQuantity { what, text: word.text.clone(), reason };
        Fault::new(problem, word.span)
    })
}

/// A size of a device: not zero, whole sectors, at most 4 EiB.
pub(crate) fn device_size(what: &'static str, word: &Word) -> Result<ByteSize, Fault> {
    let value = parse_value(what, word)?;
    bounded_size(what, word, value, SECTOR, MAX_SIZE, SECTOR)
}

/// A size that is not zero, is a multiple of `multiple`, and lies in `min..=max`.
pub(crate) fn size_between(
    what: &'static str,
    word: &Word,
    min: ByteSize,
    max: ByteSize,
    multiple: ByteSize,
) -> Result<ByteSize, Fault> {
    let value = parse_value(what, word)?;
    bounded_size(what, word, value, min, max, multiple)
}

fn bounded_size(
    what: &'static str,
    word: &Word,
    value: ByteSize,
    min: ByteSize,
    max: ByteSize,
    multiple: ByteSize,
) -> Result<ByteSize, Fault> {
    if value.0 == 0 {
        return Err(Fault::new(Problem::Zero { what }, word.span));
    }
    in_range(what, word, value, min, max, multiple)
}

fn in_range(
    what: &'static str,
    word: &Word,
    value: ByteSize,
    min: ByteSize,
    max: ByteSize,
    multiple: ByteSize,
) -> Result<ByteSize, Fault> {
    if !value.0.is_multiple_of(multiple.0) {
        return Err(Fault::new(Problem::NotMultiple { what, value, multiple }, word.span));
    }
    if !(min..=max).contains(&value) {
        return Err(Fault::new(Problem::OutOfRange { what, value, min, max }, word.span));
    }
    Ok(value)
}
