//! How cells look.

use rust_xlsxwriter::{Color, Format, FormatAlign, FormatBorder};

use crate::report::model::{Cell, Tone};

/// The looks that many cells share.
pub(super) struct Looks {
    pub(super) plain: Format,
    pub(super) bold: Format,
    pub(super) title: Format,
    pub(super) soft: Format,
    pub(super) wrapped: Format,
    pub(super) bold_wrapped: Format,
    pub(super) head: Format,
    pub(super) head_number: Format,
    pub(super) command: Format,
    /// Of a number that something speaks against.
    pub(super) suspect: Format,
}

const SOFT: Color = Color::RGB(0x5b_64_70);

impl Looks {
    pub(super) fn new() -> Self {
        let top = Format::new().set_align(FormatAlign::Top);
        let head = Format::new()
            .set_bold()
            .set_text_wrap()
            .set_align(FormatAlign::Bottom)
            .set_background_color(Color::RGB(0xf1_f2_f4))
            .set_border_bottom(FormatBorder::Thin);
        Self {
            plain: top.clone(),
            bold: top.clone().set_bold(),
            title: Format::new().set_bold().set_font_size(14),
            soft: top.clone().set_font_color(SOFT),
            wrapped: top.clone().set_text_wrap(),
            bold_wrapped: top.clone().set_bold().set_text_wrap(),
            head_number: head.clone().set_align(FormatAlign::Right),
            head,
            command: top.set_font_name("Consolas").set_font_size(10),
            suspect: of_suspect(Format::new()),
        }
    }
}

/// How a cell of a table looks: its tone as colour of the ground, its number with the digits that
/// its text has.
pub(super) fn of_cell(cell: &Cell, numeric: bool, total: bool) -> Format {
    let mut look = Format::new().set_align(FormatAlign::Top);
    if let Some(number) = cell.number {
        look = look.set_num_format(number_format(number, &cell.text));
    }
    if numeric {
        look = look.set_align(FormatAlign::Right);
    }
    if cell.text.contains('\n') {
        look = look.set_text_wrap();
    }
    if total {
        look = look.set_bold().set_border_top(FormatBorder::Thin);
    }
    match cell.tone {
        Tone::Plain => look,
        Tone::Baseline | Tone::Same | Tone::Missing => look.set_font_color(SOFT),
        Tone::Better => look
            .set_background_color(tint(0x8f_d4_be, cell.strength))
            .set_font_color(0x00_55_43_u32),
        Tone::Worse => look
            .set_background_color(tint(0xff_b9_80, cell.strength))
            .set_font_color(0x7a_30_08_u32),
        Tone::Suspect => of_suspect(look),
        Tone::Invalid => look
            .set_background_color(0xfb_df_e1_u32)
            .set_font_color(0xa8_20_2c_u32)
            .set_font_strikethrough(),
    }
}

fn of_suspect(look: Format) -> Format {
    look.set_background_color(0xff_f1_cc_u32).set_font_color(0x7a_50_00_u32)
}

/// White to the colour, never quite white.
fn tint(colour: u32, strength: f64) -> Color {
    let share = 0.2 + 0.8 * if strength.is_finite() { strength.clamp(0.0, 1.0) } else { 0.0 };
    let part = |shift: u32| {
        let full = f64::from(colour >> shift & 0xff);
        ((255.0 + (full - 255.0) * share).round() as u32) << shift
    };
    Color::RGB(part(16) | part(8) | part(0))
}

/// Three digits, with the percent sign where the text has one: the number is in percent already,
/// so the sign is a text.
fn number_format(number: f64, text: &str) -> String {
    let digits = match number.abs() {
        v if v >= 1e12 || (v < 1e-3 && v > 0.0) => "0.00E+00",
        v if v >= 999.5 => "#,##0",
        v if v >= 99.95 => "0",
        v if v >= 9.995 => "0.0",
        _ => "0.00",
    };
    if text.trim_end().ends_with('%') { format!("{digits}\" %\"") } else { digits.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(number_format(1234.5, "1234"), "#,##0");
        assert_eq!(number_format(187.2, "187 %"), "0\" %\"");
        assert_eq!(number_format(0.5, "0.50"), "0.00");
        assert_eq!(number_format(-12.0, ""), "0.0");
        assert_eq!(number_format(1e-9, ""), "0.00E+00");
    }

    #[test]
    fn strength_is_a_tint() {
        assert_eq!(tint(0x00_00_00, 1.0), Color::RGB(0));
        assert_eq!(tint(0x00_00_00, 7.0), Color::RGB(0));
        assert_eq!(tint(0x00_00_00, 0.0), Color::RGB(0xcc_cc_cc));
        assert_eq!(tint(0xff_ff_ff, f64::NAN), Color::RGB(0xff_ff_ff));
    }
}
