//! The look of cells.

use rust_xlsxwriter::{Format, FormatAlign, FormatBorder};

use crate::report::model::{Cell, Tone};

/// The looks that many cells share.
pub(super) struct Looks {
    pub(super) bold: Format,
    pub(super) title: Format,
    pub(super) soft: Format,
    pub(super) wrapped: Format,
    pub(super) head: Format,
    pub(super) head_number: Format,
    /// The look of a doubtful number.
    pub(super) suspect: Format,
}

const SOFT: u32 = 0x5b_64_70;

impl Looks {
    pub(super) fn new() -> Self {
        let top = Format::new().set_align(FormatAlign::Top);
        let head = Format::new()
            .set_bold()
            .set_align(FormatAlign::Bottom)
            .set_background_color(0xf1_f2_f4_u32)
            .set_border_bottom(FormatBorder::Thin);
        Self {
            bold: top.clone().set_bold(),
            title: Format::new().set_bold().set_font_size(14),
            soft: top.clone().set_font_color(SOFT),
            wrapped: top.set_text_wrap(),
            head_number: head.clone().set_align(FormatAlign::Right),
            head,
            suspect: of_suspect(Format::new()),
        }
    }
}

/// The look of a table's cell: its tone as background colour, its number with as many digits as its text.
pub(super) fn of_cell(cell: &Cell, numeric: bool, total: bool) -> Format {
    let mut look = Format::new().set_align(FormatAlign::Top);
    if let Some(number) = cell.number {
        look = look.set_num_format(number_format(number));
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
        Tone::Better => look.set_background_color(0xc7_e9_df_u32).set_font_color(0x00_55_43_u32),
        Tone::Worse => look.set_background_color(0xff_dc_c0_u32).set_font_color(0x7a_30_08_u32),
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

/// Three digits.
fn number_format(number: f64) -> &'static str {
    match number.abs() {
        v if v >= 1e12 || (v < 1e-3 && v > 0.0) => "0.00E+00",
        v if v >= 999.5 => "#,##0",
        v if v >= 99.95 => "0",
        v if v >= 9.995 => "0.0",
        _ => "0.00",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(number_format(1234.5), "#,##0");
        assert_eq!(number_format(0.5), "0.00");
        assert_eq!(number_format(-12.0), "0.0");
        assert_eq!(number_format(1e-9), "0.00E+00");
    }
}
