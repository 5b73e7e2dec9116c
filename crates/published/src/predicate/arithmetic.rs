//! Numbers as Python counts: division of whole numbers gives any number, `//` and `%` round down.

use super::expr::Binary;
use super::value::{Number, Value, float_text};

/// The value, or why there is none.
pub(super) fn arithmetic(binary: Binary, left: Number, right: Number) -> Result<Value, String> {
    let value = match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => whole(binary, left, right)?,
        (left, right) => Number::Float(float(binary, left.float(), right.float())?),
    };
    Ok(value.into())
}

fn whole(binary: Binary, left: i64, right: i64) -> Result<Number, String> {
    let value = match binary {
        Binary::Add => left.checked_add(right),
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::Divide => return float(binary, left as f64, right as f64).map(Number::Float),
        Binary::Power if right < 0 => {
            return float(binary, left as f64, right as f64).map(Number::Float);
        }
        Binary::Power => power(left, right),
        Binary::FloorDivide | Binary::Remainder if right == 0 => return Err(by_zero()),
        Binary::FloorDivide => left.checked_div(right).map(|quotient| {
            let is_exact = left % right == 0;
            quotient - i64::from(!is_exact && (left < 0) != (right < 0))
        }),
        Binary::Remainder => left
            .checked_rem(right)
            .map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }),
    };
    value.map(Number::Integer).ok_or_else(|| "this whole number has more than 63 bits".to_owned())
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => base.checked_pow(exponent),
        (0 | 1, Err(_)) => Some(base),
        (-1, Err(_)) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => None,
    }
}

fn float(binary: Binary, left: f64, right: f64) -> Result<f64, String> {
    let value = match binary {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide | Binary::FloorDivide | Binary::Remainder if right == 0.0 => {
            return Err(by_zero());
        }
        Binary::Divide => left / right,
        Binary::FloorDivide => divide(left, right).0,
        Binary::Remainder => divide(left, right).1,
        Binary::Power if left == 0.0 && right < 0.0 => return Err(by_zero()),
        Binary::Power if left < 0.0 && right.fract() != 0.0 => {
            return Err("a root of a negative number is not available".to_owned());
        }
        Binary::Power => left.powf(right),
    };
    match value.is_finite() {
        true => Ok(value),
        false => Err("this number is too large".to_owned()),
    }
}

/// Quotient, rounded down, and remainder, which has the sign of the divisor. As CPython does it
/// (`float_divmod`): what the remainder lost by rounding is not in the quotient.
fn divide(left: f64, right: f64) -> (f64, f64) {
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest == 0.0 {
        rest = 0f64.copysign(right);
    } else if (right < 0.0) != (rest < 0.0) {
        rest += right;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(left / right), rest);
    }
    let down = quotient.floor();
    (if quotient - down > 0.5 { down + 1.0 } else { down }, rest)
}

fn by_zero() -> String {
    "division by zero".to_owned()
}

/// Halves go to the even neighbour.
pub(super) fn round(number: Number, digits: Option<i64>) -> Result<Value, String> {
    match (number, digits) {
        (Number::Integer(value), None) => Ok(Value::Integer(value)),
        (Number::Integer(value), Some(digits)) if digits >= 0 => Ok(Value::Integer(value)),
        (Number::Float(value), None) => to_whole(value.round_ties_even()).map(Value::Integer),
        (Number::Float(value), Some(digits)) if digits >= 0 => {
            // Written with so many digits, a number is rounded from its exact value. No number has more.
            let digits = usize::try_from(digits).unwrap_or(usize::MAX).min(330);
            let rounded = format!("{value:.digits$}").parse();
            rounded
                .map(Value::Float)
                .map_err(|_| format!("{} cannot be rounded", float_text(value)))
        }
        _ => Err("rounding before the point is not available".to_owned()),
    }
}

/// The whole number that a float is, its fraction left out.
pub(super) fn to_whole(value: f64) -> Result<i64, String> {
    let cut = value.trunc();
    // Both ends are powers of 2, which floats have exactly.
    let limit = 2f64.powi(63);
    match (-limit..limit).contains(&cut) {
        true => Ok(cut as i64),
        false => Err(format!("{} has more than 63 bits", float_text(value))),
    }
}
