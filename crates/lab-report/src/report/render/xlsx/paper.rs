//! How sheets are printed.

use rust_xlsxwriter::{Worksheet, XlsxError};

/// Columns that can be read side by side on one sheet of paper.
const COLUMNS_A_PAGE: usize = 20;

/// A column's number as the format counts.
pub(super) fn to_column(column: usize) -> Result<u16, XlsxError> {
    u16::try_from(column).map_err(|_| XlsxError::RowColumnLimitError)
}

/// The first rows and columns, on the sheet's long side, all columns on one page or on as few as can
/// be read. What a text needs beyond the last column is not printed: it would make all else small.
pub(super) fn set_page(sheet: &mut Worksheet, rows: u32, columns: usize) -> Result<(), XlsxError> {
    let last = (rows.saturating_sub(1), to_column(columns.saturating_sub(1))?);
    sheet.set_print_area(0, 0, last.0, last.1)?;
    let pages = columns.div_ceil(COLUMNS_A_PAGE).max(1);
    sheet.set_landscape().set_print_fit_to_pages(to_column(pages)?, 0);
    if pages > 1 {
        sheet.set_repeat_columns(0, 0)?;
    }
    Ok(())
}
