//! A fit as the text of a profile.

use crate::fitted::{Fit, Fitted};

/// A share in per cent.
fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// A number with four figures, or as many as stand before its point.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1000.0 {
        return format!("{value:.0}");
    }
    let before = value.abs().log10().floor().max(-9.0) as i64;
    let digits = usize::try_from(3 - before).unwrap_or(0);
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The remarks that a reader must know before the constants.
pub(crate) fn comments(fit: &Fit) -> Vec<String> {
    let mut lines = vec![
        format!(
            "On experiments that no constant is from the model errs by {} in the median, {} at worst;",
            percent(fit.held_out.median),
            percent(fit.held_out.worst)
        ),
        format!(
            "on those that constants are from by {} and {}: |ln(model / measured)|.",
            percent(fit.used.median),
            percent(fit.used.worst)
        ),
    ];
    let tried: Vec<String> =
        fit.tried.iter().map(|(kind, mean)| format!("{kind} {}", percent(*mean))).collect();
    lines.push(format!("Kinds by their mean error on what was held out: {}.", tried.join(", ")));
    lines.extend(fit.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    lines.extend(fit.facts.iter().map(|fact| format!("Seen beside: {fact}.")));
    lines
}

impl Fit {
    /// The words for a device of its kind.
    pub fn called(&self) -> &'static str {
        match self.kind {
            "disk" => "a disk that turns",
            "usb-flash" => "flash, or like it",
            _ => "like a rate and a latency",
        }
    }

    /// Constants and intervals, a line each; what no experiment saw says so.
    pub fn table(&self) -> String {
        let mut text = format!("{:18} {:>12}  {:27} FROM\n", "CONSTANT", "VALUE", "INTERVAL");
        for Fitted { name, estimate, measured, source } in &self.constants {
            let interval = match measured {
                true => format!("[{}, {}]", number(estimate.low), number(estimate.high)),
                false => "-".to_owned(),
            };
            text += &format!("{name:18} {:>12}  {interval:27} {source}\n", number(estimate.value));
        }
        text
    }
}

/// The text of a profile.
pub(crate) fn profile(
    kind: &str,
    label: &str,
    size: u64,
    constants: &[Fitted],
    comments: &[String],
) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text: String = comments.iter().map(|line| format!("# {line}\n")).collect();
    text += &format!(
        "kind = {}\nlabel = {}\ncapacity = {size}\n\n[constant]\n",
        quoted(kind),
        quoted(label)
    );
    for constant in constants {
        let Fitted { name, estimate, measured, source } = constant;
        let interval = match measured {
            true => format!("fitted, [{}, {}]: ", number(estimate.low), number(estimate.high)),
            false => String::new(),
        };
        let source = quoted(&format!("{interval}{source}"));
        text += &format!("{name} = [{}, {source}]\n", number(estimate.value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_figures() {
        let numbers = [0.0, 0.000123456, 0.8, 8.33333, 325.04, 999.96, 33_200_000.4].map(number);
        assert_eq!(numbers, ["0", "0.0001235", "0.8", "8.333", "325", "1000", "33200000"]);
    }
}
