//! The colours of charts, and which series has which.
//!
//! Any two of a chart's first eight are at least 20 apart in CIELAB, also as seen by readers
//! without red, green or blue (simulated by the matrices of Machado and others, 2009), and each has
//! a contrast on white of about 3 or more. Each has a twin for dark pages in `page.css`.

use plotters::style::RGBColor;

use crate::report::model::{Block, Chart, Plot, Report};

/// Texts, intervals, marks.
pub(super) const INK: RGBColor = RGBColor(0x1a, 0x1d, 0x21);
/// Ticks and names of axes.
pub(super) const SOFT: RGBColor = RGBColor(0x5b, 0x64, 0x70);
/// The grid.
pub(super) const RULE: RGBColor = RGBColor(0xdf, 0xe3, 0xe8);
/// The ground under marks with a hole.
pub(super) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);

/// Of the series, in order.
pub(super) const SERIES: [RGBColor; 8] = [
    RGBColor(0x14, 0x3a, 0xa1),
    RGBColor(0xcf, 0x8e, 0x1b),
    RGBColor(0x2c, 0x7c, 0x58),
    RGBColor(0x89, 0x40, 0x7e),
    RGBColor(0x46, 0x9d, 0xff),
    RGBColor(0x7d, 0x21, 0x0e),
    RGBColor(0x99, 0x91, 0x9f),
    RGBColor(0x7c, 0x6d, 0x00),
];

/// Low to high of a heat map, even steps.
pub(super) const HEAT: [RGBColor; 5] = [
    RGBColor(0xee, 0xf4, 0xfa),
    RGBColor(0xb9, 0xd4, 0xe9),
    RGBColor(0x76, 0xad, 0xd3),
    RGBColor(0x30, 0x7b, 0xb0),
    RGBColor(0x0a, 0x42, 0x6e),
];
/// Texts on light and on dark fields of a heat map; not exchanged in the dark.
pub(super) const ON_LIGHT: RGBColor = RGBColor(0x11, 0x16, 0x1c);
pub(super) const ON_DARK: RGBColor = RGBColor(0xfd, 0xfe, 0xff);
/// A field of a heat map without a value.
pub(super) const EMPTY: RGBColor = RGBColor(0xf1, 0xf2, 0xf4);

/// As `#RRGGBB`, in the way plotters writes it.
pub(super) fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Colour of a heat map at `share`, 0 to 1.
pub(in crate::report::render) fn heat(share: f64) -> RGBColor {
    let steps = HEAT.len() - 1;
    let place = share.clamp(0.0, 1.0) * steps as f64;
    let step = (place as usize).min(steps - 1);
    let between = place - step as f64;
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * between).round() as u8;
    let (a, b) = (HEAT[step], HEAT[step + 1]);
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Gives a name the same colour in all charts of a report, as long as the colours last.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// The subjects first, in the order of their table, then the series in the order of the charts.
    pub fn of(report: &Report) -> Self {
        let mut palette = Self::default();
        for row in &report.subjects.rows {
            palette.learn(row.cells.first().map_or("", |cell| &cell.text));
        }
        for section in &report.sections {
            for block in &section.blocks {
                if let Block::Chart(chart) = block {
                    palette.learn_chart(chart);
                }
            }
        }
        palette
    }

    fn learn_chart(&mut self, chart: &Chart) {
        match &chart.plot {
            Plot::Bars { series, .. } => series.iter().for_each(|series| self.learn(&series.name)),
            Plot::Lines { series, .. } => series.iter().for_each(|series| self.learn(&series.name)),
            Plot::HeatMap { .. } => {}
        }
    }

    fn learn(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// A place in [`SERIES`] (or beyond, to be taken modulo) for each series of one chart: its own
    /// where it is free, else the next free one, so that two of one chart do not look alike.
    pub(in crate::report::render) fn places(&self, names: &[&str]) -> Vec<usize> {
        let mut taken: Vec<usize> = Vec::new();
        for name in names {
            let known = self.names.iter().position(|known| known == name);
            let wanted = known.unwrap_or(taken.len()) % SERIES.len();
            // After all eight are taken, the second round starts.
            let rounds = (0..).map(|round| round * SERIES.len());
            let free = rounds
                .flat_map(|round| (0..SERIES.len()).map(move |step| (round, step)))
                .map(|(round, step)| round + (wanted + step) % SERIES.len())
                .find(|place| !taken.contains(place));
            taken.push(free.unwrap_or(wanted));
        }
        taken
    }
}

/// The colour at a place that [`Palette::places`] gave.
pub(in crate::report::render) fn series(place: usize) -> RGBColor {
    SERIES[place % SERIES.len()]
}
