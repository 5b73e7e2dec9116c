//! Tables on a terminal: the first column to the left, the others to the right.

use std::fmt;

/// Rows under a heading.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<const N: usize>(columns: [&str; N]) -> Table {
        Table { rows: vec![columns.map(str::to_owned).into()] }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not as many cells as there are columns.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(self.rows[0].len(), N, "cells of a row");
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> =
            (0..self.rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line += &format!("{cell:<width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
            if index == 0 {
                writeln!(f, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len() - 2))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["server", "µs"]);
        table.row(["braid".to_owned(), "10.5".to_owned()]);
        assert_eq!(table.to_string(), "server    µs\n------------\nbraid   10.5\n");
    }
}
