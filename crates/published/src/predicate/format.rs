//! `'…%d…' % value`: values put into a text.

use super::arithmetic::to_whole;
use super::value::{Items, Number, Value};

/// Widest field, and most digits.
const WIDEST: usize = 99;

/// A place in a text that a value is put into.
#[derive(Default)]
struct Field {
    left: bool,
    zeros: bool,
    plus: bool,
    width: usize,
    digits: Option<usize>,
}

/// The text with the values in their places.
pub(super) fn format(text: &str, values: &Value) -> Result<String, String> {
    let single = std::slice::from_ref(values);
    let mut values = match values {
        Value::Items(Items::Tuple, values) => values.iter(),
        _ => single.iter(),
    };
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut field = Field::default();
        while let Some(flag) = chars.next_if(|c| "-0+".contains(*c)) {
            match flag {
                '-' => field.left = true,
                '0' => field.zeros = true,
                _ => field.plus = true,
            }
        }
        field.width = number(&mut chars)?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            field.digits = Some(number(&mut chars)?.unwrap_or(0));
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some(kind) => {
                let value = values.next().ok_or("there are more places in the text than values")?;
                out += &field.fill(kind, value)?;
            }
            None => return Err("after % in a text comes one of d i s r f %".to_owned()),
        }
    }
    match values.next() {
        None => Ok(out),
        Some(_) => Err("there are more values than places in the text".to_owned()),
    }
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut value = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = usize::try_from(digit.to_digit(10).unwrap_or(0)).unwrap_or(0);
        let wider = value.unwrap_or(0) * 10 + digit;
        if wider > WIDEST {
            return Err(format!("a field of more than {WIDEST} characters"));
        }
        value = Some(wider);
    }
    Ok(value)
}

impl Field {
    fn fill(&self, kind: char, value: &Value) -> Result<String, String> {
        let wants = |what: &str| format!("%{kind} is for {what}, not for {}", value.kind());
        let body = match kind {
            'd' | 'i' | 'u' => {
                let whole = match value.number().ok_or_else(|| wants("a number"))? {
                    Number::Integer(whole) => whole,
                    Number::Float(value) => to_whole(value)?,
                };
                let digits = whole.unsigned_abs().to_string();
                let least = self.digits.unwrap_or(0);
                self.signed(whole < 0, &format!("{digits:0>least$}"))
            }
            'f' | 'F' => {
                let number = value.number().ok_or_else(|| wants("a number"))?.float();
                let digits = self.digits.unwrap_or(6);
                self.signed(number.is_sign_negative(), &format!("{:.digits$}", number.abs()))
            }
            's' | 'r' if !value.has_text() => return Err(format!("{} has no text", value.kind())),
            's' | 'r' => {
                let text = match value {
                    Value::Text(text) if kind == 's' => text.to_string(),
                    value => value.to_string(),
                };
                self.padded(
                    &text.chars().take(self.digits.unwrap_or(usize::MAX)).collect::<String>(),
                )
            }
            other => return Err(format!("%{other} is not available: one of d i s r f %")),
        };
        Ok(body)
    }

    /// A number with its sign, zeros between both if wanted.
    fn signed(&self, is_negative: bool, digits: &str) -> String {
        let sign = if is_negative {
            "-"
        } else if self.plus {
            "+"
        } else {
            ""
        };
        let width =
            if self.zeros && !self.left { self.width.saturating_sub(sign.len()) } else { 0 };
        self.padded(&format!("{sign}{digits:0>width$}"))
    }

    fn padded(&self, text: &str) -> String {
        let width = self.width;
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }
}
