//! A few shapes of SVG. Colours are classes (`s0`, `axis`, ...) so that the page's style decides
//! about light and dark.

use std::fmt::Write as _;

/// A picture that is being drawn, in user units; the page scales it to its width.
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    description: String,
    body: String,
}

/// How a text is anchored to its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        Self {
            width,
            height,
            title: escape(title),
            description: escape(description),
            body: String::new(),
        }
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" rx="2"/>"#,
            width.max(0.0),
            height.max(0.0)
        );
    }

    /// A disc with a tooltip.
    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tip: &str) {
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"><title>{}</title></circle>"#,
            escape(tip)
        );
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        );
    }

    /// The element, with title and description for those who do not see it.
    pub(super) fn finish(self) -> String {
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">\n<title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
            self.width, self.height, self.title, self.title, self.description, self.body
        )
    }
}

/// Text for an element or an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters are not allowed in XML at all.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A name that fits into `room` characters, shortened in the middle.
pub(super) fn shorten(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room || room < 4 {
        return text.to_owned();
    }
    let head = (room - 1) / 2;
    let tail = room - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// A class for each subject; the page knows eight.
pub(super) fn series(index: usize) -> String {
    format!("s{}", index % 8)
}

/// A round number at or above `value` for the end of an axis: 1, 2, 2.5, 5 times a power of ten.
pub(super) fn round_up(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|end| *end >= value * 0.999_999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<b a=\"1\">&'\u{1}"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39;\u{fffd}");
    }

    #[test]
    fn axes_end_on_round_numbers() {
        assert_eq!(round_up(0.0), 1.0);
        assert_eq!(round_up(100.0), 100.0);
        assert_eq!(round_up(101.0), 150.0);
        assert_eq!(round_up(7300.0), 8000.0);
        assert_eq!(round_up(f64::NAN), 1.0);
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("short", 10), "short");
        assert_eq!(shorten("abcdefghijkl", 7), "abc…jkl");
    }
}
